//go:build linux

package selfmod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// ownTime is what this process has used of the processor.
func ownTime(b testing.TB) time.Duration {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	return time.Duration(own.Utime.Nano() + own.Stime.Nano())
}

// threadsTime is what the live threads of a process have run.
func threadsTime(pid int) (sum time.Duration) {
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	if err != nil {
		return 0
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		ran, _, _ := strings.Cut(string(text), " ")
		n, _ := strconv.ParseInt(ran, 10, 64)
		sum += time.Duration(n)
	}
	return sum
}

// stopwatch measures the processor time of this process and its workers beside
// the benchmark's timer. What it takes itself is not counted.
type stopwatch struct {
	b       *testing.B
	workers []int
	own     time.Duration // when it began
	theirs  time.Duration
	sum     time.Duration
	laps    samples
}

func newStopwatch(b *testing.B) *stopwatch {
	s := &stopwatch{b: b, workers: children(b)}
	s.start()
	return s
}

func (s *stopwatch) start() {
	s.theirs = 0
	for _, pid := range s.workers {
		s.theirs += threadsTime(pid)
	}
	s.own = ownTime(s.b)
}

func (s *stopwatch) stop() {
	s.sum += ownTime(s.b) - s.own - s.theirs
	for _, pid := range s.workers {
		s.sum += threadsTime(pid)
	}
}

// skip runs f outside of what is measured.
func (s *stopwatch) skip(f func()) {
	s.b.StopTimer()
	s.stop()
	f()
	s.start()
	s.b.StartTimer()
}

func (s *stopwatch) report(times int) {
	s.stop()
	s.b.ReportMetric(float64(s.sum.Nanoseconds())/1e3/float64(s.b.N*times), "cpu-us/op")
	if len(s.laps) > 0 {
		s.b.ReportMetric(s.laps.below(0.1)/float64(times), "p10-us/op")
		s.b.ReportMetric(s.laps.below(0.5)/float64(times), "p50-us/op")
	}
}

// samples are durations of single operations. The tenth that is fastest is what
// an operation takes while nothing else wants the processor.
type samples []time.Duration

func (s *samples) add(began time.Time) { *s = append(*s, time.Since(began)) }

// below is the duration, in microseconds, that a part of them stay below.
func (s samples) below(part float64) float64 {
	sorted := slices.Sorted(slices.Values(s))
	return float64(sorted[int(float64(len(sorted))*part)].Nanoseconds()) / 1e3
}

// BenchmarkFloor is what a round trip to a worker costs without a plugin's work:
// a Ping that the benchmark itself reads the answer of, and a listener that does
// nothing, through a Sandbox.
func BenchmarkFloor(b *testing.B) {
	b.Run("ping", func(b *testing.B) {
		cmd := exec.Command("/proc/self/exe", "__worker")
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
		w, r := wire.NewWriter(in), wire.NewReader(out)
		if _, err := r.Read(); err != nil {
			b.Fatal(err)
		}
		s := newStopwatch(b)
		for b.Loop() {
			began := time.Now()
			if err := w.Write(wire.Frame{Kind: wire.Ping, ID: 1}); err != nil {
				b.Fatal(err)
			}
			if _, err := r.Read(); err != nil {
				b.Fatal(err)
			}
			s.laps.add(began)
		}
		s.report(1)
	})
	for _, c := range []struct{ kind, code, args string }{
		{"listener", listenerPlugin, `{"args":[]}`},
		{"tool", selfmodtest.Tool("bench", "return 'x'"), `{"args":{"a":1},"exec":{"callId":"c","rootCallId":"c","name":"bench","nested":false}}`},
	} {
		b.Run(c.kind, func(b *testing.B) {
			vm, h := bareVM(b, c.code)
			s := newStopwatch(b)
			before := vm.Counters().Engine
			for b.Loop() {
				began := time.Now()
				if _, err := vm.Invoke(b.Context(), sandbox.Call{Kind: c.kind, Run: 1, Fn: h.fn(), Args: json.RawMessage(c.args)}); err != nil {
					b.Fatal(err)
				}
				s.laps.add(began)
			}
			s.report(1)
			b.ReportMetric(float64((vm.Counters().Engine-before).Nanoseconds())/1e3/float64(b.N), "engine-us/op")
		})
	}
	b.Run("sync", func(b *testing.B) {
		const times = 100
		vm, h := bareVM(b, fmt.Sprintf("return { name: 'x', inject: ['tools'], apply(ctx) { ctx.on('tools/change', () => { for (let i = 0; i < %d; i++) ctx.tools.schemas() }) } }", times))
		s := newStopwatch(b)
		for b.Loop() {
			began := time.Now()
			if _, err := vm.Invoke(b.Context(), sandbox.Call{Kind: "listener", Run: 1, Fn: h.fn(), Args: json.RawMessage(`{"args":[]}`)}); err != nil {
				b.Fatal(err)
			}
			s.laps.add(began)
		}
		s.report(times)
	})
}

// BenchmarkSteps are the steps of a mount and an unmount, without a runtime: the
// Load, the Apply and the Unload of a machine.
func BenchmarkSteps(b *testing.B) {
	for _, kind := range []struct{ name, code string }{
		{"listener", listenerPlugin},
		{"tool", selfmodtest.Tool("bench", "return 'x'")},
	} {
		b.Run(kind.name, func(b *testing.B) {
			s, err := sandbox.New(sandbox.Config{})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(s.Close)
			var took [3]samples
			var engine [2]time.Duration
			h := &bareHost{}
			for b.Loop() {
				time.Sleep(breath)
				began := time.Now()
				vm, _, err := s.Load(b.Context(), sandbox.Spec{ID: "dyn-1", File: "x.js", Source: kind.code}, h)
				if err != nil {
					b.Fatal(err)
				}
				took[0].add(began)
				engine[0] += vm.Counters().Engine
				began = time.Now()
				if err := vm.Apply(b.Context(), 1, json.RawMessage(`{"tools":{"kind":"host"}}`), nil); err != nil {
					b.Fatal(err)
				}
				took[1].add(began)
				engine[1] += vm.Counters().Engine
				time.Sleep(breath)
				began = time.Now()
				vm.Close(b.Context())
				took[2].add(began)
			}
			per := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 / float64(b.N) }
			b.ReportMetric(took[0].below(0.1), "load-us")
			b.ReportMetric(took[1].below(0.1), "apply-us")
			b.ReportMetric(took[2].below(0.1), "close-us")
			b.ReportMetric(per(engine[0]), "load-engine-us")
			b.ReportMetric(per(engine[1]-engine[0]), "apply-engine-us")
		})
	}
}

// bareHost answers registrations as a mount would.
type bareHost struct {
	mu   sync.Mutex
	last uint32
}

func (h *bareHost) fn() uint32 { h.mu.Lock(); defer h.mu.Unlock(); return h.last }

func (h *bareHost) Sync(_ context.Context, a sandbox.Ask) (json.RawMessage, error) {
	if a.Verb == "schemas" {
		return json.RawMessage(`[]`), nil
	}
	var p struct{ Fn uint32 }
	if err := json.Unmarshal(a.Payload, &p); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last = p.Fn
	return json.RawMessage(`{"effect":1}`), nil
}
func (h *bareHost) Async(context.Context, sandbox.Ask) (json.RawMessage, error) { return nil, nil }
func (h *bareHost) Send(context.Context, sandbox.Ask)                           {}
func (h *bareHost) Console(_, _ string)                                         {}
func (h *bareHost) Late(uint64, *wire.Fault, bool)                              {}
func (h *bareHost) Died(*sandbox.Error, bool)                                   {}

// bareVM is a plugin in a worker without a runtime around it.
func bareVM(b *testing.B, source string) (*sandbox.VM, *bareHost) {
	s, err := sandbox.New(sandbox.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	h := &bareHost{}
	vm, _, err := s.Load(b.Context(), sandbox.Spec{ID: "dyn-1", File: "x.js", Source: source}, h)
	if err != nil {
		b.Fatal(err)
	}
	if err := vm.Apply(b.Context(), 1, json.RawMessage(`{"tools":{"kind":"host"}}`), nil); err != nil {
		b.Fatal(err)
	}
	return vm, h
}

// BenchmarkCallers is a tool that computes for a while, called by eight callers at
// once in machines of their own or in one.
func BenchmarkCallers(b *testing.B) {
	for _, machines := range []int{8, 1} {
		b.Run(fmt.Sprintf("machines%d", machines), func(b *testing.B) {
			r := selfmodtest.New(b, selfmod.Config{})
			for i := range machines {
				r.Mount(selfmodtest.Tool(fmt.Sprintf("work%d", i), "let n = 0; for (let i = 0; i < 2000; i++) n += i; return String(n)"))
			}
			s := newStopwatch(b)
			const each = 20
			for b.Loop() {
				var callers sync.WaitGroup
				for i := range 8 {
					callers.Go(func() {
						for range each {
							r.Call(fmt.Sprintf("work%d", i%machines), nil)
						}
					})
				}
				callers.Wait()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*8*each), "ns/call")
			s.report(8 * each)
		})
	}
}
