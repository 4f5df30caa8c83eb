package worker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// TestRealPrelude goes once through everything with the prelude that ships.
func TestRealPrelude(t *testing.T) {
	h := startServe(t, prelude.Source(), prelude.Hash())
	if h.hello.Prelude != prelude.Hash() {
		t.Errorf("hello: %+v", h.hello)
	}
	var tool struct{ Fn uint32 }
	var provided struct {
		Binding struct {
			Kind   string
			Handle uint32
		}
	}
	h.sync = func(h *host, f wire.Frame) {
		switch f.Name {
		case "tool":
			_ = json.Unmarshal(f.Payload, &tool)
		case "provide":
			_ = json.Unmarshal(f.Payload, &provided)
		}
		h.reply(f, wire.Ok([]byte(`{"effect":1}`)))
	}
	limit := 5 * time.Second
	if raceEnabled {
		limit = time.Minute
	}
	value := h.must(loadFrame(1, `
return {
  name: 'counter',
  apply(ctx) {
    ctx.provide('greeter', { greet: (who) => 'hello ' + who, later: async (who) => 'later ' + who })
    harness.registerTool(ctx, harness.defineTool({
      name: 'count', description: 'counts words',
      parameters: { text: { type: 'string', required: true } },
      output: { schema: { type: 'object', properties: { words: { type: 'integer' } } }, render: (args, v) => [{ type: 'text', text: v.words + ' words' }] },
      async execute({ text }) { console.log('counting'); return { words: text.split(' ').length } },
    }))
  },
}`, limit))
	var loaded wire.Loaded
	if err := json.Unmarshal([]byte(value), &loaded); err != nil || loaded.Name != "counter" || loaded.TypeScript {
		t.Errorf("loaded: %s %v", value, err)
	}
	h.must(wire.Frame{Kind: wire.Apply, Mount: 1, Run: 1, Payload: []byte("{}")})
	got := h.must(invoke(1, tool.Fn, `{"args":{"text":"a b c"},"exec":{"callId":"1","rootCallId":"1","name":"count","nested":false}}`))
	if !strings.Contains(got, `"words":3`) || !strings.Contains(got, "3 words") {
		t.Errorf("tool: %s", got)
	}
	value = h.must(loadFrame(2, `
const shout: (s: string) => string = (s) => s.toUpperCase()
return {
  name: 'user', inject: ['greeter'],
  async apply(ctx: any) {
    console.log(shout(ctx.greeter.greet('you')))
    console.log(await ctx.greeter.later('you'))
  },
}`, limit))
	if err := json.Unmarshal([]byte(value), &loaded); err != nil || !loaded.TypeScript || len(loaded.Inject) != 1 || loaded.Inject[0].Name != "greeter" {
		t.Errorf("loaded: %s %v", value, err)
	}
	binding, _ := json.Marshal(map[string]any{"greeter": map[string]any{"kind": "peer", "mount": 1, "handle": provided.Binding.Handle}})
	h.must(wire.Frame{Kind: wire.Apply, Mount: 2, Run: 2, Payload: binding})
	h.oneWay(wire.Frame{Kind: wire.Retire, Mount: 1, Run: 1})
	h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
	h.must(wire.Frame{Kind: wire.Unload, Mount: 2})
	var lines []string
	for _, f := range h.console {
		lines = append(lines, string(f.Payload))
	}
	if got := strings.Join(lines, "|"); got != "counting|HELLO YOU|later you" {
		t.Errorf("console: %s", got)
	}
	if len(h.late) > 0 {
		t.Errorf("late: %+v", lateFault(t, h.late[0]))
	}
}
