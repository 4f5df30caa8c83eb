package bridgetest

import (
	"strconv"
	"testing"

	"github.com/dsh-go/dsh/selfmod"
)

// BenchmarkServiceCall calls a method of a host service a thousand times in one
// tool call; the metric is of one.
func BenchmarkServiceCall(b *testing.B) {
	const times = 1000
	for _, kind := range []struct{ name, body string }{
		{"async", "let n = 0; for (let i = 0; i < 1000; i++) n += (await s.read('abc')).length; return n"},
		{"sync", "let n = 0; for (let i = 0; i < 1000; i++) n = s.add(n, 3); return n"},
		{"options", "let n = 0; for (let i = 0; i < 1000; i++) n += (await s.read('abc', { maxBytes: 1 })).length && 3; return n"},
		{"property", "const p = await s.start('x'); let n = 0; for (let i = 0; i < 1000; i++) n += p.pid && 3; return n"},
		{"value", "let n = 0; for await (const v of s.count(1000)) n += 3; return n"},
		{"callback", "let n = 0; await s.each(Array(1000).fill('a'), () => { n += 3; return '' }); return n"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			r, _ := rig(b, selfmod.Config{})
			r.Mount(withService("bench", kind.body))
			for b.Loop() {
				r.Works(r.Call("bench", nil), strconv.Itoa(3*times))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*times), "us/call")
		})
	}
}

// BenchmarkBigText gets, and gives, a megabyte; the tool call around it is a small
// part.
func BenchmarkBigText(b *testing.B) {
	for _, kind := range []struct{ name, body string }{
		{"get", "return (await s.big(1 << 20)).length"},
		{"give", "return (await s.read(long)).length"},
		{"bytes", "return (await s.bytes(bytes)).length"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			r, _ := rig(b, selfmod.Config{})
			r.Mount(withService("bench", kind.body, "const long = 'x'.repeat(1 << 20), bytes = new Uint8Array(1 << 20)"))
			for b.Loop() {
				r.Works(r.Call("bench", nil), strconv.Itoa(1<<20))
			}
		})
	}
}
