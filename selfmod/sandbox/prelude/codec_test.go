package prelude_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// anyJSON draws a JSON value.
func anyJSON(t *rapid.T, depth int) any {
	kinds := 6
	if depth > 3 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return rapid.Float64Range(-1e15, 1e15).Draw(t, "number")
	case 3:
		return rapid.String().Draw(t, "string")
	case 4:
		list := make([]any, rapid.IntRange(0, 4).Draw(t, "length"))
		for i := range list {
			list[i] = anyJSON(t, depth+1)
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		key := rapid.SampledFrom([]string{"$", "__proto__", "constructor", "toJSON", "then", "0", "a", "length", "é"}).Draw(t, "key")
		object[key] = anyJSON(t, depth+1)
	}
	return object
}

// Data that crosses to another machine and back is what it was, as plain JSON and
// as a graph.
func TestCodecRoundTrip(t *testing.T) {
	_, consumer, _ := peers(t, "{ echo: (x) => x, later: async (x) => x }", "")
	consumer.run(`return { inject: ['svc'], apply(ctx) { ctx.on('go', async (x, next) => {
		const want = JSON.stringify(x)
		const graph = ctx.svc.echo({ x, u: undefined, again: [x] })
		return [JSON.stringify(ctx.svc.echo(x)), JSON.stringify(graph.x), JSON.stringify(await ctx.svc.later([x]))].map((got) => got === want || got === '[' + want + ']' || got)
	}) } }`, provided(consumer.world[1], 0))
	fn := itoa(2)
	rapid.Check(t, func(rt *rapid.T) {
		text, err := json.Marshal(anyJSON(rt, 0))
		if err != nil {
			rt.Skip(err)
		}
		got := consumer.call("invoke", "listener", fn, `{"args":[`+string(text)+`],"next":true}`)
		if got == "~" {
			got = consumer.done[itoa(consumer.calls)]
		}
		if got != "=[true,true,true]" {
			rt.Fatalf("%s: %s", text, got)
		}
	})
}

// Whatever a request says, the machine answers it and goes on.
func FuzzPeerRequest(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"run":1,"h":4,"op":"call","k":".f"}`, `[]`}, {`{"run":1,"h":4,"op":"call","k":".f"}`, `"x"`}, {`{"run":1,"h":4,"op":"get","k":".f"}`, ``},
		{`{"run":1,"h":4,"op":"set","k":".x"}`, `[{"$":"g","n":[["o","a",["#",0]]],"r":["#",0]}]`},
		{`{"run":1,"h":4,"op":"keys","f":[[4,1]]}`, ``}, {`{"run":1,"h":4,"op":"apply"}`, `[{"$":"f","h":5}]`},
		{`{"run":1,"h":4,"op":"call","k":".f"}`, `[{"$":"g","n":[["d",1],["r","a","g",0],["b","AA=="],["t","Uint8Array","AA=="],["e","E","m",null,"s"],["m",1,2],["s",1],["A",3,"0",1]],"r":["#",7]}]`},
		{``, ``}, {`null`, `null`}, {`{"h":{}}`, `{}`}, {`{"run":1,"h":4,"op":"own","k":"@iterator"}`, ``}, {`{"run":1,"h":4,"op":"new","k":""}`, `[1]`},
	} {
		f.Add(seed[0], seed[1])
	}
	if raceDetector {
		f.Skip("too slow under the race detector")
	}
	m := newMachine(f)
	m.run("return (ctx) => { ctx.provide('svc', { f: (...a) => a }) }", "{}")
	f.Fuzz(func(t *testing.T, request, args string) {
		m.t = t
		text := m.dispatch("peer", "2:1", request, args)
		if !strings.HasPrefix(text, "=") && !strings.HasPrefix(text, "!") && !strings.HasPrefix(text, "~") {
			t.Errorf("%q %q: %q", request, args, text)
		}
		m.drain()
		if got := m.load("return () => {}"); got != `={"name":"","inject":[]}` {
			t.Errorf("after %q: %s", request, got)
		}
	})
}
