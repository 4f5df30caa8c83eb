package worker

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

func BenchmarkZZ(b *testing.B) {
	h := startOptions(b, Options{Prelude: prelude.Core(), Parts: prelude.Parts(), PreludeHash: prelude.Hash()})
	var tool struct{ Fn uint32 }
	h.sync = func(h *host, f wire.Frame) {
		if f.Name == "tool" {
			_ = json.Unmarshal(f.Payload, &tool)
		}
		h.reply(f, wire.Ok([]byte(`{"effect":1}`)))
	}
	h.must(loadFrame(1, "return { name: 'counter', inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'bench', description: 'for a test', parameters: {}, output: { schema: { type: 'string' }, render(_a, v) { return [{ type: 'text', text: v }] } }, async execute(args, exec) { return 'x' }, })) } }", 5*time.Second))
	h.must(wire.Frame{Kind: wire.Apply, Mount: 1, Run: 1, Payload: []byte(`{"tools":{"kind":"host"}}`)})
	f := invoke(1, tool.Fn, `{"args":{"a":1},"exec":{"callId":"c","rootCallId":"c","name":"bench","nested":false}}`)
	var sum time.Duration
	for b.Loop() {
		sum += h.do(f).stats.Engine
	}
	b.ReportMetric(float64(sum.Nanoseconds())/1e3/float64(b.N), "engine-us/op")
}
