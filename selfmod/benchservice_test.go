//go:build linux

package selfmod_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/kv"
)

// withServices is a rig whose plugins may use fs, in a folder with a file of a
// megabyte, and kv.
func withServices(b *testing.B) *selfmodtest.Rig {
	b.Helper()
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mega.txt"), []byte(strings.Repeat("0123456789abcde\n", 1<<16)), 0o644); err != nil {
		b.Fatal(err)
	}
	r := selfmodtest.New(b, selfmod.Config{})
	for _, p := range []*cordis.Plugin{fs.Plugin(fs.Config{Roots: []string{dir}}), kv.Plugin(kv.Config{})} {
		f, err := r.Root.Mount(p, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Await(r.Context()); err != nil {
			b.Fatal(err)
		}
	}
	return r
}

// BenchmarkServiceCall calls methods of the host's services from a plugin, a hundred
// times in one tool call; what a call of a tool takes is in it, a hundredth.
func BenchmarkServiceCall(b *testing.B) {
	const times = 100
	for _, kind := range []struct{ name, call string }{
		{"kv", "(await ctx.kv.get('a')) === undefined ? 0 : 1"},
		{"stat", "(await ctx.fs.stat('mega.txt')).size && 1"},
	} {
		b.Run(kind.name, func(b *testing.B) {
			r := withServices(b)
			r.Mount(withTool("bench", "['fs', 'kv']", fmt.Sprintf("await ctx.kv.set('a', 1); let n = 0; for (let i = 0; i < %d; i++) n += %s; return String(n)", times, kind.call)))
			s := newStopwatch(b)
			for b.Loop() {
				began := time.Now()
				r.Works(r.Call("bench", nil), strconv.Itoa(times))
				s.laps.add(began)
			}
			s.report(times)
		})
	}
}

// BenchmarkReadText1MB reads a file of a megabyte from a plugin; the call of the
// tool that does it is a small part.
func BenchmarkReadText1MB(b *testing.B) {
	r := withServices(b)
	r.Mount(withTool("bench", "['fs']", "return String((await ctx.fs.readText('mega.txt')).length)"))
	s := newStopwatch(b)
	for b.Loop() {
		began := time.Now()
		r.Works(r.Call("bench", nil), "1048576")
		s.laps.add(began)
	}
	s.report(1)
}

// BenchmarkBashRuns2000 runs two thousand small commands from a plugin, eight at a
// time, again and again: nothing grows with them.
func BenchmarkBashRuns2000(b *testing.B) {
	r := selfmodtest.New(b, selfmod.Config{})
	f, err := r.Root.Mount(bash.Plugin(bash.Config{Dir: b.TempDir()}), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Await(r.Context()); err != nil {
		b.Fatal(err)
	}
	tool := withTool("bench", "['bash']", `
    let left = 2000, ok = 0
    const run = async () => { while (left-- > 0) { const r = await ctx.bash.run('echo x'); if (r.stdout.text === 'x\n') ok++ } }
    await Promise.all(Array.from({ length: 8 }, run))
    return String(ok)`)
	r.Mount(strings.Replace(tool, "parameters:", "timeoutMs: 600000, parameters:", 1))
	descriptors := func() int {
		open, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			b.Fatal(err)
		}
		return len(open)
	}
	r.Works(r.Call("bench", nil), "2000")
	memory, files, routines := resident(b), descriptors(), runtime.NumGoroutine()
	for b.Loop() {
		r.Works(r.Call("bench", nil), "2000")
	}
	b.ReportMetric(resident(b)-memory, "MB-growth")
	b.ReportMetric(float64(descriptors()-files), "files-growth")
	b.ReportMetric(float64(runtime.NumGoroutine()-routines), "goroutines-growth")
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*2000), "us/run")
}
