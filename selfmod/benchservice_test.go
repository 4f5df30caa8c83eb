//go:build linux

package selfmod_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
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
