package prelude_test

import (
	"strings"
	"testing"
)

// tool runs a plugin with one tool whose options are overridden by more.
func tool(m *machine, more string) {
	m.t.Helper()
	m.run(`return (ctx) => { harness.registerTool(ctx, harness.defineTool({ name: 'x', description: 'd', parameters: {},
		output: { schema: { type: 'json' }, render(args, value) { return [{ type: 'text', text: 'r' }] } },
		async execute(args, exec) { return 'ok' }, `+more+` })) }`, "{}")
}

const toolArgs = `{"args":{"a":[1,{"b":2}]},"exec":{"callId":"c1","rootCallId":"c0","name":"x","nested":false}}`

func TestDefineToolRefuses(t *testing.T) {
	const ok = "name: 'x', description: 'd', parameters: {}, output: { schema: { type: 'string' }, render() {} }, execute() {}"
	for _, c := range []struct{ name, options, want string }{
		{"none", "", "harness.defineTool options must be an object"},
		{"array", "[]", "harness.defineTool options must be an object"},
		{"name", "{ name: 5 }", "harness.defineTool name must be a string, got the number 5"},
		{"name-rule", "{ name: 'a b' }", `harness.defineTool "a b" name must match ^[a-zA-Z0-9_-]{1,64}$`},
		{"name-long", "{ name: 'a'.repeat(65) }", "name must match"},
		{"description", "{ name: 'x', description: 5 }", `harness.defineTool "x" description must be a string`},
		{"title", "{ name: 'x', title: 5 }", "title must be a string when present"},
		{"timeout", "{ name: 'x', timeoutMs: 0 }", "timeoutMs must be a positive finite number"},
		{"no-parameters", "{ name: 'x' }", `harness.defineTool "x" parameters must be a ParameterSchemaSpec object, got undefined`},
		{"parameters-array", "{ name: 'x', parameters: [] }", "parameters must be a ParameterSchemaSpec object, got an array"},
		{"no-output", "{ name: 'x', parameters: {} }", "output must declare { schema, render, presentationMeta? }"},
		{"no-schema", "{ name: 'x', parameters: {}, output: { render() {} } }", "output must declare { schema, render, presentationMeta? }"},
		{"no-render", "{ name: 'x', parameters: {}, output: { schema: {} } }", "output.render must be a function"},
		{"meta", "{ name: 'x', parameters: {}, output: { schema: {}, render() {}, presentationMeta: 5 } }", "output.presentationMeta must be a function when present"},
		{"no-execute", "{ name: 'x', parameters: {}, output: { schema: {}, render() {} } }", "execute must be a function"},
		{"safe", "{ " + ok + ", isConcurrencySafe: true }", "isConcurrencySafe must be a function when present"},
		{"circular", "(() => { const p = { a: { type: 'object', properties: {} } }; p.a.properties.p = p; return { name: 'x', parameters: p } })()", `harness.defineTool "x" parameters.a.properties.p is circular`},
		{"symbol", "{ name: 'x', parameters: { [Symbol('s')]: 1 } }", "parameters must contain only own enumerable string keys (it has the symbol key Symbol(s))"},
		{"hidden", "{ name: 'x', parameters: Object.defineProperty({}, 'h', { value: 1 }) }", "parameters.h must contain only own enumerable string keys"},
		{"accessor", "{ name: 'x', parameters: { get a() { return 1 } } }", "parameters.a must contain only own enumerable string keys (it is an accessor, not data"},
		{"undefined", "{ name: 'x', parameters: { a: { type: 'string', default: undefined } } }", "parameters.a.default must be lossless JSON data (it is undefined; leave it out or use null)"},
		{"sparse", "{ name: 'x', parameters: { a: { enum: ['x', , 'y'] } } }", "parameters.a.enum[1] must be lossless JSON data (it is a hole in a sparse array"},
		{"subclass", "{ name: 'x', parameters: { a: { enum: new (class L extends Array {})() } } }", "parameters.a.enum must be lossless JSON data (it is an instance of L"},
		{"extra", "{ name: 'x', parameters: { a: { enum: Object.assign(['x'], { y: 1 }) } } }", "parameters.a.enum must contain only own enumerable string keys (it is an array with extra properties"},
		{"date", "{ name: 'x', parameters: { 'odd key': { default: new Date() } } }", `parameters["odd key"].default must be lossless JSON data (it is a Date`},
		{"schema-nan", "{ " + strings.Replace(ok, "{ type: 'string' }", "{ default: NaN }", 1) + " }", "output.schema.default must be lossless JSON data (it is NaN"},
		{"deep", "(() => { let p = {}; for (let i = 0; i < 1e5; i++) p = { a: p }; return { name: 'x', parameters: p } })()", "is nested deeper than 10000"},
		{"hostile", "new Proxy({}, { get() { throw new Error('hostile getter') } })", "hostile getter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			if got := message(t, m.load("return harness.defineTool("+c.options+")")); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("check", func(t *testing.T) {
		m := newMachine(t)
		m.sync["check"] = `!{"name":"TypeError","message":"harness.defineTool \"x\" parameters.a must declare a valid type"}`
		if got := m.load("return harness.defineTool({ " + ok + " })"); !strings.Contains(got, `"name":"TypeError","message":"harness.defineTool \"x\" parameters.a must declare`) {
			t.Error(got)
		}
	})
}

func TestDefineToolSends(t *testing.T) {
	m := newMachine(t)
	m.run(`return (ctx) => {
		const parameters = JSON.parse('{"z":{"type":"string"},"__proto__":{"type":"integer"},"a":{"oneOf":[{"type":"null"}]}}')
		const shared = { type: 'string' }
		parameters.x = shared; parameters.y = shared
		const t = harness.defineTool({ name: 'x', description: 'd', title: 'T', timeoutMs: 50, parameters, output: { schema: { type: 'string' }, render() {}, presentationMeta() {} }, execute() {}, isConcurrencySafe() {} })
		const off = ctx.tools.register(t)
		ctx.tools.register(t)
		console.log(Object.isFrozen(t), typeof off)
	}`, "{}")
	parameters := `{"z":{"type":"string"},"__proto__":{"type":"integer"},"a":{"oneOf":[{"type":"null"}]},"x":{"type":"string"},"y":{"type":"string"}}`
	if got, want := m.asks("check", "")[0].args[0], `{"name":"x","parameters":`+parameters+`,"output":{"type":"string"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	want := `{"fn":1,"name":"x","description":"d","title":"T","parameters":` + parameters + `,"output":{"type":"string"},"timeoutMs":50,"has":{"render":true,"meta":true,"finalize":false,"safe":true,"presentCall":false,"presentResult":false}}`
	if got := m.asks("sync", "tool"); len(got) != 2 || got[0].args[3] != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
	if m.console[0] != "log: true function" {
		t.Error(m.console)
	}
}

func TestDefineToolDeep(t *testing.T) {
	m := newMachine(t)
	if got := m.load("let p = { type: 'string' }; for (let i = 0; i < 4990; i++) p = { type: 'array', items: p }; harness.defineTool({ name: 'x', parameters: { p }, output: { schema: { type: 'json' }, render() {} }, execute() {} }); return () => {}"); got[0] != '=' {
		t.Fatal(got[:200])
	}
	if got := strings.Count(m.asks("check", "")[0].args[0], `"items"`); got != 4990 {
		t.Error(got)
	}
}

func TestToolCall(t *testing.T) {
	for _, c := range []struct{ name, more, want string }{
		{"async", "", `={"value":"ok","content":[{"type":"text","text":"r"}]}`},
		{"sync", "execute() { return { z: 1, a: [null, -5, 1.5] } }", `={"value":{"z":1,"a":[null,-5,1.5]},"content":[{"type":"text","text":"r"}]}`},
		{"arguments", "execute(args, exec) { return [args, exec.arguments === args, Object.isFrozen(args.a[1]), args instanceof Object, args.a instanceof Array] }", `={"value":[{"a":[1,{"b":2}]},true,true,true,true],"content":[{"type":"text","text":"r"}]}`},
		{"exec", "execute(args, exec) { return [exec.callId, exec.rootCallId, exec.name, exec.signal instanceof AbortSignal, exec.signal.aborted, exec.signal === exec.signal, Object.isFrozen(exec)] }", `={"value":["c1","c0","x",true,false,true,true],"content":[{"type":"text","text":"r"}]}`},
		{"this", "tag: 5, execute() { return this.tag }", `={"value":5,"content":[{"type":"text","text":"r"}]}`},
		{"render-async", "output: { schema: {}, async render(args, v) { return [{ type: 'text', text: v + args.a.length }] } }", `={"value":"ok","content":[{"type":"text","text":"ok2"}]}`},
		{"render-unknown-type", "output: { schema: {}, render: () => [{ type: 'chart', data: [1] }] }", `={"value":"ok","content":[{"type":"chart","data":[1]}]}`},
		{"render-frozen-copy", "output: { schema: {}, render(a, v) { 'use strict'; try { v.list.push(2) } catch (e) { return [{ type: e.name }] } } }, state: { list: [] }, execute() { return this.state }", `={"value":{"list":[]},"content":[{"type":"TypeError"}]}`},
		{"render-throws", "output: { schema: {}, render() { throw new Error('no view') } }", `={"value":"ok","contentError":"no view"}`},
		{"render-string", "output: { schema: {}, render: () => 'x'.repeat(500) }", `={"value":"ok","contentError":"output.render returned \"` + strings.Repeat("x", 119) + `… — it must return an ARRAY of content blocks:\n  ✓ return [{ type: 'text', text: String(value) }]"}`},
		{"render-no-type", "output: { schema: {}, render: () => [{ text: 'hi' }] }", `={"value":"ok","contentError":"output.render returned [{\"text\":\"hi\"}] — it must return an ARRAY of content blocks:\n  ✓ return [{ type: 'text', text: String(value) }]"}`},
		{"render-lossy", "output: { schema: {}, render: () => [{ type: 'text', text: undefined }] }", `={"value":"ok","contentError":"output.render result must be lossless JSON data: value[0].text is undefined — leave it out or use null"}`},
		{"meta", "output: { schema: {}, render: () => [], presentationMeta: (a, v) => ({ v, n: a.a.length }) }", `={"value":"ok","content":[],"meta":{"v":"ok","n":2}}`},
		{"meta-nothing", "output: { schema: {}, render: () => [], async presentationMeta() {} }", `={"value":"ok","content":[]}`},
		{"meta-throws", "output: { schema: {}, render: () => [], presentationMeta() { throw 'meta' } }", `={"value":"ok","content":[],"metaError":"meta"}`},
		{"meta-lossy", "output: { schema: {}, render: () => [], presentationMeta: () => ({ x: 1n }) }", `={"value":"ok","content":[],"metaError":"output.presentationMeta result must be lossless JSON data: value.x is a BigInt — pass it as a string: String(value)"}`},
		{"shared", "execute() { const s = { a: 1 }; return [s, s] }", `={"value":[{"a":1},{"a":1}],"content":[{"type":"text","text":"r"}]}`},
		{"null-prototype", "execute() { return Object.assign(Object.create(null), { a: 1 }) }", `={"value":{"a":1},"content":[{"type":"text","text":"r"}]}`},
		{"dunder", "execute() { return JSON.parse('{\"__proto__\":{\"x\":1}}') }", `={"value":{"__proto__":{"x":1}},"content":[{"type":"text","text":"r"}]}`},
		{"surrogate", "execute() { return 'a\\ud800' }", `={"value":"a\ud800","content":[{"type":"text","text":"r"}]}`},
		{"thenable", "execute() { return { then(ok) { ok(7) } } }", `={"value":7,"content":[{"type":"text","text":"r"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			tool(m, c.more)
			if got := m.call("invoke", "tool", "1", toolArgs); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestToolLossyResults(t *testing.T) {
	const head = "harness.defineTool execute result must be lossless JSON data: "
	for _, c := range []struct{ name, value, want string }{
		{"undefined", "undefined", "it is undefined — did execute forget to return?"},
		{"nan", "NaN", "it is NaN — use null or a string"},
		{"infinity", "[Infinity]", "value[0] is Infinity"},
		{"negative-zero", "{ a: -0 }", "value.a is -0 — use 0"},
		{"bigint", "10n", "it is a BigInt — pass it as a string"},
		{"date", "{ when: new Date(0) }", "value.when is a Date — use date.toISOString()"},
		{"map", "new Map()", "it is a Map"},
		{"set", "[new Set()]", "value[0] is a Set"},
		{"function", "{ f() {} }", "value.f is a function"},
		{"symbol", "[Symbol('x')]", "value[0] is a symbol"},
		{"sparse", "[1, , 2]", "value[1] is a hole in a sparse array"},
		{"cycle", "(() => { const a = {}; a.b = { a }; return a })()", "value.b.a is circular"},
		{"class", "new (class Box { v = 1 })()", "it is an instance of Box"},
		{"nested-promise", "[Promise.resolve(1)]", "value[0] is a Promise — await it"},
		{"symbol-key", "{ [Symbol('k')]: 1 }", "it has the symbol key Symbol(k)"},
		{"hidden", "Object.defineProperty({}, 'h', { value: 1 })", "value.h is not enumerable"},
		{"undefined-member", "{ list: [{ x: undefined }] }", "value.list[0].x is undefined"},
		{"regexp", "/x/", "it is an instance of RegExp"},
		{"error", "new Error('x')", "it is an instance of Error"},
		{"deep", "(() => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a })()", "is nested deeper than 10000"},
		{"extra", "Object.assign([1], { x: 1 })", "it is an array with extra properties"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			tool(m, "async execute() { return "+c.value+" }")
			got := message(t, m.call("invoke", "tool", "1", toolArgs))
			if !strings.HasPrefix(got, head) || !strings.Contains(got, c.want) || len(got) > 900 {
				t.Errorf("got  %s\nwant %s", got, head+c.want)
			}
		})
	}
	t.Run("throws", func(t *testing.T) {
		m := newMachine(t)
		tool(m, "async execute() { await 0; throw Object.assign(new TypeError('bad'), { code: 'E' }) }")
		if got := m.call("invoke", "tool", "1", toolArgs); !strings.HasPrefix(got, `!{"name":"TypeError","message":"bad","code":"E","stack":`) {
			t.Error(got)
		}
	})
	t.Run("large", func(t *testing.T) {
		m := newMachine(t)
		tool(m, "execute() { return 'x'.repeat(17 * 1024 * 1024) }")
		if got := message(t, m.call("invoke", "tool", "1", toolArgs)); !strings.Contains(got, "the limit is 16777216") {
			t.Error(got)
		}
	})
	t.Run("deep-works", func(t *testing.T) {
		m := newMachine(t)
		tool(m, "execute() { let a = []; for (let i = 1; i < 5000; i++) a = [a]; return a }")
		if got := m.call("invoke", "tool", "1", toolArgs); !strings.HasPrefix(got, `={"value":`+strings.Repeat("[", 5000)+strings.Repeat("]", 5000)+`,"content"`) {
			t.Error(got[:200])
		}
	})
	t.Run("deep-arguments", func(t *testing.T) {
		m := newMachine(t)
		tool(m, "execute(args) { let n = 0; for (let a = args; a; a = a[0]) n++; return n }")
		deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
		if got := m.call("invoke", "tool", "1", `{"args":`+deep+`,"exec":{}}`); !strings.HasPrefix(got, `={"value":5000,`) {
			t.Error(got)
		}
		deeper := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
		if got := message(t, m.call("invoke", "tool", "1", `{"args":`+deeper+`,"exec":{}}`)); !strings.Contains(got, "nested deeper") {
			t.Error(got)
		}
	})
}

func TestToolPhases(t *testing.T) {
	m := newMachine(t)
	tool(m, "output: { schema: {}, render: () => [], presentationMeta: () => 1 }")
	m.call("invoke", "tool", "1", toolArgs)
	m.call("invoke", "tool", "1", strings.Replace(toolArgs, `"nested":false`, `"nested":true`, 1))
	var got []string
	for _, a := range m.asks("phase", "") {
		got = append(got, strings.Join(a.args, ":"))
	}
	if want := "3:render 3:presentationMeta 4:render"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

// What execute left to run comes before render, and when it left nothing, the call
// is answered at once.
func TestToolOrder(t *testing.T) {
	for _, c := range []struct{ name, execute, want string }{
		{"at-once", "async execute() { return 'x' }", `={"value":"x","content":[{"type":"text","text":"0"}]}`},
		{"job-waits", "async execute() { Promise.resolve().then(() => { globalThis.ran++ }); return 'x' }", "~"},
		{"awaits", "async execute() { await 0; globalThis.ran++; return 'x' }", "~"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			tool(m, "output: { schema: {}, render: () => [{ type: 'text', text: String(ran) }] }, "+c.execute)
			m.load("globalThis.ran = 0; return () => {}")
			got := m.dispatch("invoke", "77", "tool", "1", toolArgs)
			if got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			m.drain()
			if want := `={"value":"x","content":[{"type":"text","text":"1"}]}`; got == "~" && m.done["77"] != want {
				t.Errorf("done %s, want %s", m.done["77"], want)
			}
		})
	}
}

func TestToolExec(t *testing.T) {
	m := newMachine(t)
	tool(m, `async execute(args, exec) {
		exec.progress({ text: 'half', done: 1, total: 2 }); exec.progress('plain'); exec.progress({ text: 'x'.repeat(5000) })
		exec.deferContext({ role: 'user', content: ['c'] }); exec.concludeTurn()
		const bad = []
		for (const f of [() => exec.progress(5), () => exec.progress({ done: 'x' }), () => exec.progress({ text: 1 }), () => exec.deferContext(undefined)]) try { f() } catch (e) { bad.push(e.message) }
		globalThis.late = exec
		queueMicrotask(() => 0)
		return bad
	}, isConcurrencySafe() { late.progress({ done: 9 }); return true }`)
	got := m.call("invoke", "tool", "1", toolArgs)
	for _, want := range []string{"exec.progress takes { text?, done?, total? }, got the number 5", "exec.progress: done must be a finite number", "exec.progress: text must be a string", "exec.deferContext: the message must be lossless JSON data"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if got := m.call("invoke", "safe", "1", `{"args":{}}`); got != "=true" {
		t.Error(got)
	}
	var sent []string
	for _, a := range m.asks("send", "") {
		if a.args[0] != "3" || a.args[1] != "1" {
			t.Errorf("%v", a)
		}
		sent = append(sent, a.args[2]+a.args[3])
	}
	want := `progress{"call":3,"text":"half","done":1,"total":2} progress{"call":3,"text":"plain"} progress{"call":3,"text":"` + strings.Repeat("x", 2000) + `…"} defer{"call":3,"message":{"role":"user","content":["c"]}} conclude{"call":3}`
	if strings.Join(sent, " ") != want {
		t.Errorf("got  %s\nwant %s", sent, want)
	}
}

func TestToolAbort(t *testing.T) {
	m := newMachine(t)
	tool(m, "execute(args, exec) { return new Promise((_, reject) => { exec.signal.addEventListener('abort', () => reject(exec.signal.reason)) }) }")
	if got := m.call("invoke", "tool", "1", toolArgs); got != "~" {
		t.Fatal(got)
	}
	m.dispatch("abort", itoa(m.calls), "the client cancelled")
	m.drain()
	if got := m.done[itoa(m.calls)]; !strings.HasPrefix(got, `!{"name":"AbortError","message":"the client cancelled","code":"ABORT_ERR"`) {
		t.Error(got)
	}
	m.dispatch("abort", "99", "nobody")
}

func TestToolMembers(t *testing.T) {
	m := newMachine(t)
	tool(m, `output: { schema: {}, render: (a, v) => [{ type: 'text', text: v + a.k }], presentationMeta: (a, v) => ({ v }) },
		finalizeContent(exec, result) { return exec.name === 'keep' ? undefined : [{ type: 'text', text: exec.callId + result.isError }] },
		isConcurrencySafe: (a) => a.safe, presentCall: (a) => ({ title: a.k }), async presentResult(a, r) { return r.card }`)
	for _, c := range []struct{ kind, args, want string }{
		{"render", `{"args":{"k":1},"value":"v"}`, `=[{"type":"text","text":"v1"}]`},
		{"meta", `{"args":{},"value":[1]}`, `={"v":[1]}`},
		{"finalize", `{"exec":{"callId":"c","name":"x"},"result":{"isError":true}}`, `=[{"type":"text","text":"ctrue"}]`},
		{"finalize", `{"exec":{"name":"keep"},"result":{}}`, `=`},
		{"safe", `{"args":{"safe":true}}`, `=true`},
		{"safe", `{"args":{"safe":1}}`, `=false`},
		{"presentCall", `{"args":{"k":"t"}}`, `={"title":"t"}`},
		{"presentResult", `{"args":{},"result":{"card":{"x":1}}}`, `={"x":1}`},
		{"presentResult", `{"args":{},"result":{}}`, `=`},
	} {
		if got := m.call("invoke", c.kind, "1", c.args); got != c.want {
			t.Errorf("%s: got %s, want %s", c.kind, got, c.want)
		}
	}
	if got := message(t, m.call("invoke", "nonsense", "1", "{}")); !strings.Contains(got, "unknown kind") {
		t.Error(got)
	}
	if got := message(t, m.call("invoke", "tool", "77", toolArgs)); !strings.Contains(got, "no longer registered") {
		t.Error(got)
	}
}
