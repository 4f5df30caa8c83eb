//go:build linux

package worker

import (
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// BenchmarkMount is a warm Load and Apply of a tool plugin with two synchronous
// registrations, and its Unload.
func BenchmarkMount(b *testing.B) {
	h := startProcess(b, 0)
	const source = `
		const words = (text) => text.split(/\s+/).filter(Boolean)
		return {
			name: 'counter', inject: ['clock'],
			apply(ctx) {
				host.fn(1, async ({ text }) => ({ words: words(text).length }))
				host.sync('tool', { fn: 1, name: 'count', parameters: { text: { type: 'string' } } })
				host.sync('on', { fn: 2, event: 'tools/change' })
			},
		}`
	h.mount(1, source, time.Second)
	b.Run("load_apply", func(b *testing.B) {
		n := uint32(10)
		for b.Loop() {
			n++
			h.mount(n, source, time.Second)
			b.StopTimer()
			h.must(wire.Frame{Kind: wire.Unload, Mount: n})
			b.StartTimer()
		}
	})
}

func BenchmarkInvoke(b *testing.B) {
	h := startProcess(b, 0)
	h.mount(1, `
		host.export('plus', (a, b) => a + b)
		host.fn(1, async ({ text }) => ({ words: text.split(' ').length }))
		host.fn(2, async (a) => host.async('x', a))
		host.fn(3, (a) => host.sync('x', a))
		host.fn(4, (n) => { for (let i = 0; i < n; i++) host.peer(2, 'plus', i, 1) })`, 10*time.Second)
	h.mount(2, "host.export('plus', (a, b) => a + b)", 10*time.Second)
	for name, frame := range map[string]wire.Frame{
		"tool":  invoke(1, 1, `{"text":"how many words are there"}`),
		"async": invoke(1, 2, `{"x":1}`),
		"sync":  invoke(1, 3, `{"x":1}`),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				h.must(frame)
			}
		})
	}
	// One operation is a call of another mount's member.
	b.Run("peer", func(b *testing.B) {
		const batch = 1000
		for b.Loop() {
			h.must(invoke(1, 4, "1000"))
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/call")
	})
}
