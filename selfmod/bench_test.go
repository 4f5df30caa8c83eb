//go:build linux

package selfmod_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

const listenerPlugin = `return { name: 'listener', apply(ctx) { ctx.on('tools/change', () => {}) } }`

// resident is the resident memory of this process and of its workers, in MB,
// after everything that is not used has been given back.
func resident(b *testing.B) float64 {
	runtime.GC()
	debug.FreeOSMemory()
	pages := residentPages(b, "self")
	self := strconv.Itoa(os.Getpid())
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		b.Skip("resident memory is read from /proc")
	}
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == self && fields[0] != "Z" {
			pages += residentPages(b, filepath.Base(filepath.Dir(name)))
		}
	}
	return float64(pages*os.Getpagesize()) / (1 << 20)
}

func residentPages(b *testing.B, pid string) int {
	text, err := os.ReadFile("/proc/" + pid + "/statm")
	if err != nil {
		b.Skipf("resident memory: %v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		b.Fatal(err)
	}
	return pages
}

// breath is what the worker gets, outside of the timed part, to make machines
// ready again, as it has between the calls of a model.
const breath = 5 * time.Millisecond

// BenchmarkMount mounts on a warm worker with a machine ready; what was mounted
// is taken out again outside of the timed part.
func BenchmarkMount(b *testing.B) {
	for _, kind := range []struct{ name, code string }{
		{"listener", listenerPlugin},
		{"tool", selfmodtest.Tool("bench", "return 'x'")},
	} {
		b.Run(kind.name, func(b *testing.B) {
			r := selfmodtest.New(b, selfmod.Config{})
			r.Unmount(r.Mount(kind.code))
			args, err := json.Marshal(map[string]string{"code": kind.code})
			if err != nil {
				b.Fatal(err)
			}
			s := newStopwatch(b)
			for b.Loop() {
				began := time.Now()
				res := r.Call("cordis_mount", string(args))
				s.laps.add(began)
				s.skip(func() {
					var mounted struct{ ID string }
					if err := json.Unmarshal(res.Value, &mounted); err != nil || res.IsError {
						b.Fatalf("%v: %s", err, selfmodtest.Text(res))
					}
					r.Unmount(mounted.ID)
					time.Sleep(breath)
				})
			}
			s.report(1)
		})
	}
}

// BenchmarkMountCold is the first mount of a toolset: the worker starts with it.
func BenchmarkMountCold(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		r := selfmodtest.New(b, selfmod.Config{})
		b.StartTimer()
		r.Mount(listenerPlugin)
		b.StopTimer()
		if _, err := r.Toolset.Dispose(r.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkUnmount takes out a plugin with one tool, receipt included.
func BenchmarkUnmount(b *testing.B) {
	r := selfmodtest.New(b, selfmod.Config{})
	code := selfmodtest.Tool("bench", "return 'x'")
	s := newStopwatch(b)
	for b.Loop() {
		var id string
		s.skip(func() {
			id = r.Mount(code)
			time.Sleep(breath)
		})
		began := time.Now()
		res := r.Call("cordis_unmount", `{"id":"`+id+`"}`)
		s.laps.add(began)
		r.Works(res)
	}
	s.report(1)
}

// BenchmarkCall calls a mounted tool through the registry.
func BenchmarkCall(b *testing.B) {
	r := selfmodtest.New(b, selfmod.Config{})
	r.Mount(selfmodtest.Tool("bench", "return 'x'"))
	args := `{"a":1}`
	b.ReportAllocs()
	s := newStopwatch(b)
	for b.Loop() {
		began := time.Now()
		r.Works(r.Call("bench", args))
		s.laps.add(began)
	}
	s.report(1)
}

// BenchmarkMember looks up and calls a member of another mount's service, a
// thousand times in one tool call; the metric is of one.
func BenchmarkMember(b *testing.B) {
	const times = 1000
	r := selfmodtest.New(b, selfmod.Config{})
	r.Mount(`return { name: 'adder', apply(ctx) { ctx.provide('adder', { add: (a, b) => a + b }) } }`)
	r.Mount(fmt.Sprintf(`return { name: 'user', inject: ['tools', 'adder'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'sum', description: 'd', parameters: {},
			output: { schema: { type: 'integer' }, render: (_a, v) => [{ type: 'text', text: String(v) }] },
			execute() { let n = 0; for (let i = 0; i < %d; i++) n = ctx.adder.add(n, 1); return n } })) } }`, times))
	s := newStopwatch(b)
	for b.Loop() {
		began := time.Now()
		r.Works(r.Call("sum", nil), strconv.Itoa(times))
		s.laps.add(began)
	}
	s.report(times)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*times), "ns/member")
}

// BenchmarkMounts1000 mounts a thousand plugins and takes them out: the time of
// each, what each keeps resident, and what stays afterwards.
func BenchmarkMounts1000(b *testing.B) {
	const n = 1000
	r := selfmodtest.New(b, selfmod.Config{})
	r.Unmount(r.Mount(listenerPlugin))
	for b.Loop() {
		before := resident(b)
		ids := make([]string, n)
		for i := range ids {
			ids[i] = r.Mount(listenerPlugin)
		}
		full := resident(b)
		for _, id := range ids {
			r.Unmount(id)
		}
		b.ReportMetric((full-before)*1024/n, "KB/mount")
		b.ReportMetric(resident(b)-before, "MB-left")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/mount+unmount")
}

// BenchmarkCycles10000 mounts and unmounts ten thousand times; the metric is
// how much memory host and worker keep.
func BenchmarkCycles10000(b *testing.B) {
	const n = 10_000
	r := selfmodtest.New(b, selfmod.Config{})
	code := selfmodtest.Tool("bench", "return 'x'")
	for range 200 { // until buffers and pools have their size
		r.Unmount(r.Mount(code))
	}
	for b.Loop() {
		before := resident(b)
		for range n {
			r.Unmount(r.Mount(code))
		}
		b.ReportMetric(resident(b)-before, "MB-growth")
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "us/cycle")
}
