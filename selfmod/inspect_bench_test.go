package selfmod_test

import (
	"testing"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// BenchmarkInspect reports on a runtime in which every service of the catalog
// is live and three plugins are mounted, as a call of the tool.
func BenchmarkInspect(b *testing.B) {
	r := selfmodtest.New(b, selfmod.Config{})
	everyService(b, r)
	r.Mount(listenerPlugin)
	r.Mount(selfmodtest.Tool("bench", "return 'x'"))
	r.Mount(`return { name: 'adder', apply(ctx) { ctx.provide('adder', { add: (a, b) => a + b }) } }`)
	for _, report := range []struct{ name, args string }{
		{"everything", `{}`},
		{"api", `{"what":"api"}`},
		{"events", `{"what":"events"}`},
		{"services", `{"what":"services"}`},
		{"service", `{"what":"api","name":"tools"}`},
		{"temporary", `{"what":"temporary"}`},
		{"mount", `{"what":"temporary","name":"dyn-2"}`},
	} {
		b.Run(report.name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				size = len(r.Works(r.Call("cordis_inspect", report.args)))
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
