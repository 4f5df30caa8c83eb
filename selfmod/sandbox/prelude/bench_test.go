//go:build unix

package prelude_test

import (
	"syscall"
	"testing"
	"time"
)

// reportCPU measures the processor time from here to the call of what it returns,
// which other work on the machine changes less than the clock's. Each iteration
// does n operations.
func reportCPU(b *testing.B, n int) func() {
	b.Helper()
	before := cpuTime(b)
	return func() {
		b.ReportMetric(float64((cpuTime(b)-before).Nanoseconds())/float64(b.N*n), "cpu-ns/op")
	}
}

func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// BenchmarkTool enters a tool whose execute is async. The engine's time is most of
// it.
func BenchmarkTool(b *testing.B) {
	for _, c := range []struct{ name, execute, args string }{
		{"string", "async execute() { return 'x' }", `{"args":{"a":1},"exec":{"callId":"c1","rootCallId":"c0","name":"x","nested":false}}`},
		{"object", "async execute(args) { return { text: args.a } }", toolArgs},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := newMachine(b)
			tool(m, c.execute)
			defer reportCPU(b, 1)()
			for b.Loop() {
				m.log = m.log[:0]
				if got := m.call("invoke", "tool", "1", c.args); got[0] != '=' {
					b.Fatal(got)
				}
				clear(m.done)
			}
		})
	}
}

// BenchmarkListener enters a listener of an event.
func BenchmarkListener(b *testing.B) {
	m := newMachine(b)
	m.run("return (ctx) => { ctx.on('tools/change', (event) => { event.name }) }", "{}")
	defer reportCPU(b, 1)()
	for b.Loop() {
		if got := m.call("invoke", "listener", "1", `{"args":[{"name":"x"}],"next":false}`); got != "=" {
			b.Fatal(got)
		}
		m.log = m.log[:0]
	}
}

// BenchmarkPeerCall looks up and calls a member of another machine's service.
func BenchmarkPeerCall(b *testing.B) {
	const calls = 1000
	_, _, enter := peers(b, "{ greet: (who) => 'hi ' + who }", "for (let i = 0; i < 1000; i++) svc.greet('x'); return 1")
	defer reportCPU(b, calls)()
	for b.Loop() {
		if got := enter(); got != "=1" {
			b.Fatal(got)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
}

// BenchmarkMount loads and applies a plugin in a machine of its own, which is made,
// and the plugin compiled, outside of the timed part.
func BenchmarkMount(b *testing.B) {
	for _, c := range []struct{ name, body string }{
		{"listener", "return { name: 'listener', apply(ctx) { ctx.on('tools/change', () => {}) } }"},
		{"tool", `return { name: 'bench', inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({
			name: 'bench', description: 'd', parameters: { a: { type: 'integer' } },
			output: { schema: { type: 'string' }, render: (_a, v) => [{ type: 'text', text: v }] }, execute() { return 'x' } })) } }`},
	} {
		b.Run(c.name, func(b *testing.B) {
			var spent time.Duration
			for b.Loop() {
				b.StopTimer()
				m := newMachine(b)
				if c.name == "tool" { // which the worker has ready
					if err := m.part("tool"); err != nil {
						b.Fatal(err)
					}
				}
				code, err := m.vm.Compile("(async function(ctx,harness,console){\n"+c.body+"\n})", "cordis-mount-dyn-1.js")
				if err != nil {
					b.Fatal(err)
				}
				fn, err := m.vm.RunBytecode(code)
				if err != nil {
					b.Fatal(err)
				}
				before := cpuTime(b)
				b.StartTimer()
				if text := m.call("load", fn); text[0] != '=' {
					b.Fatal(text)
				}
				if text := m.call("apply", "1", "{}"); text != "=" {
					b.Fatal(text)
				}
				b.StopTimer()
				spent += cpuTime(b) - before
				m.vm.Close()
				b.StartTimer()
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
}
