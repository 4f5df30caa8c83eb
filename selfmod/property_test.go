//go:build linux

package selfmod_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// services is how many services of each kind a program has to do with.
const services = 2

// piece is a plugin as the model knows it.
type piece struct {
	kind string // base, relay, user, maybe
	n    int
}

func (p piece) String() string { return p.kind + strconv.Itoa(p.n) }

func (p piece) code() string {
	n := strconv.Itoa(p.n)
	switch p.kind {
	case "base":
		return provider("base"+n, "s"+n, "base"+n)
	case "relay":
		return withTool("relay"+n, "['s"+n+"']", "return 'relay of ' + ctx.s"+n+".who()", "ctx.provide('r"+n+"', { who: () => 'relay of ' + ctx.s"+n+".who() })", "ctx.on('tools/change', () => {})")
	case "user":
		return withTool("user"+n, "['r"+n+"', 'timer']", "await ctx.timeout(0); return 'user of ' + ctx.r"+n+".who()", "ctx.setInterval(() => {}, 5)", "ctx.effect(() => () => {})")
	}
	return withTool("maybe"+n, "{ optional: ['s"+n+"'] }", "const s = ctx.get('s"+n+"'); return s ? s.who() : 'nobody'")
}

// model is what should be there.
type model map[piece]string // its id

func (m model) has(kind string, n int) bool { return m[piece{kind, n}] != "" }

// runs says whether a piece is active.
func (m model) runs(p piece) bool {
	switch p.kind {
	case "relay":
		return m.has("base", p.n)
	case "user":
		return m.has("relay", p.n) && m.has("base", p.n)
	}
	return true
}

// answer is what the piece's tool says; "": there is none.
func (m model) answer(p piece) string {
	n := strconv.Itoa(p.n)
	switch {
	case m[p] == "" || !m.runs(p):
		return ""
	case p.kind == "relay":
		return "relay of base" + n
	case p.kind == "user":
		return "user of relay of base" + n
	case p.kind == "maybe" && m.has("base", p.n):
		return "base" + n
	case p.kind == "maybe":
		return "nobody"
	}
	return ""
}

func pieces() (all []piece) {
	for _, kind := range []string{"base", "relay", "user", "maybe"} {
		for n := range services {
			all = append(all, piece{kind, n})
		}
	}
	return all
}

// wrong compares the runtime with the model; "": they agree.
func (m model) wrong(r *selfmodtest.Rig) string {
	report := selfmodtest.Text(r.Call("cordis_inspect", map[string]string{"what": "temporary"}))
	for _, p := range pieces() {
		id := m[p]
		if id != "" {
			state := "[pending]"
			if m.runs(p) {
				state = "[running]"
			}
			if !strings.Contains(report, fmt.Sprintf("- Temporary Plugin %s: %s %s", id, p, state)) {
				return fmt.Sprintf("%s (%s) is not %s:\n%s", p, id, state, report)
			}
		}
		if p.kind == "base" {
			continue
		}
		res := r.Call(p.String(), nil)
		if want, got := m.answer(p), selfmodtest.Text(res); want == "" && (!res.IsError || !strings.Contains(got, "unknown tool")) || want != "" && got != want {
			return fmt.Sprintf("%s answers %s, want %q", p, got, want)
		}
	}
	if lines := strings.Count(report, "\n- Temporary Plugin "); lines != len(m)+1 {
		return fmt.Sprintf("there are %d mounts, want %d:\n%s", lines, len(m)+1, report)
	}
	return ""
}

// Random programs of mounting, unmounting, calling and killing agree with a
// simple model after every step, and leave the runtime as it was.
func TestPrograms(t *testing.T) {
	noWorker(t)
	defer setFlag(t, "rapid.checks", "12")()
	defer setFlag(t, "rapid.steps", "20")()
	rapid.Check(t, func(rt *rapid.T) {
		r := selfmodtest.New(t, small)
		pulse := r.Mount(selfmodtest.Tool("pulse", "return 'here'"))
		before := r.Root.Runtime().Digest()
		m := model{}
		kills := 0
		ids := map[string]bool{}
		check := func(rt *rapid.T, after string) {
			if wrong := m.wrong(r); wrong != "" {
				rt.Fatalf("after %s: %s", after, wrong)
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"mount": func(rt *rapid.T) {
				p := rapid.SampledFrom(pieces()).Draw(rt, "piece")
				taken := m[p] != ""
				if taken && !m.runs(p) {
					rt.Skip("a second one would wait too: the model knows one of each")
				}
				res := r.Call("cordis_mount", map[string]string{"code": p.code()})
				if res.IsError != taken {
					rt.Fatalf("mount %s: %s", p, selfmodtest.Text(res))
				}
				if res.IsError {
					check(rt, "a refused mount of "+p.String())
					return
				}
				var v struct{ ID string }
				if err := json.Unmarshal(res.Value, &v); err != nil || ids[v.ID] {
					rt.Fatalf("mount %s gave the id %q again: %v", p, v.ID, err)
				}
				ids[v.ID] = true
				m[p] = v.ID
				check(rt, "mounting "+p.String())
			},
			"half": func(rt *rapid.T) {
				code := strings.Replace(rapid.SampledFrom(pieces()).Draw(rt, "piece").code(), "ctx.provide(", "ctx.setTimeout(() => {}, 1); ctx.provide(", 1)
				res := r.Call("cordis_mount", map[string]string{"code": "const p = await (async () => { " + code + " })(); return { name: 'half', inject: ['timer'], apply(ctx) { ctx.provide('half', 1); ctx.on('tools/change', () => {}); throw new Error('half') } }"})
				if !res.IsError || !strings.Contains(selfmodtest.Text(res), "half") {
					rt.Fatalf("half a mount: %s", selfmodtest.Text(res))
				}
				check(rt, "half a mount")
			},
			"unmount": func(rt *rapid.T) {
				if len(m) == 0 {
					rt.Skip("nothing is mounted")
				}
				p := rapid.SampledFrom(slices.SortedFunc(maps.Keys(m), func(a, b piece) int { return strings.Compare(a.String(), b.String()) })).Draw(rt, "piece")
				if res := r.Call("cordis_unmount", map[string]string{"id": m[p]}); res.IsError {
					rt.Fatalf("unmount %s: %s", p, selfmodtest.Text(res))
				}
				delete(m, p)
				check(rt, "unmounting "+p.String())
			},
			"kill": func(rt *rapid.T) {
				pids := children(t)
				if kills == 2 || len(pids) == 0 {
					rt.Skip("enough, or nothing to kill")
				}
				kills++
				_ = syscall.Kill(pids[0], syscall.SIGKILL)
				eventuallyHas(r, "the worker's return", func() string { return stateOf(r, pulse) }, "[running]", fmt.Sprintf("mounted again from its source %d time", kills))
				deadline := time.Now().Add(selfmodtest.Wait)
				for wrong := "?"; wrong != ""; {
					if wrong = m.wrong(r); wrong != "" && time.Now().After(deadline) {
						rt.Fatalf("after a kill: %s", wrong)
					}
				}
			},
		})
		for _, id := range m {
			if res := r.Call("cordis_unmount", map[string]string{"id": id}); res.IsError {
				rt.Fatalf("unmount %s: %s", id, selfmodtest.Text(res))
			}
		}
		if now := r.Root.Runtime().Digest(); now != before {
			rt.Fatalf("left behind:\n%s\nwant\n%s", now, before)
		}
		if _, err := r.Toolset.Dispose(r.Context()); err != nil {
			rt.Fatal(err)
		}
	})
}

// setFlag sets a flag of the test binary, unless the command line did.
func setFlag(t *testing.T, name, value string) (restore func()) {
	t.Helper()
	f := flag.Lookup(name)
	if f == nil {
		t.Fatalf("there is no flag %s", name)
	}
	was := f.Value.String()
	if was != f.DefValue {
		return func() {}
	}
	if err := f.Value.Set(value); err != nil {
		t.Fatal(err)
	}
	return func() { _ = f.Value.Set(was) }
}

// A thousand mounts and unmounts cost what the first cost, in time and memory.
func TestThousandCyclesAreFlat(t *testing.T) {
	if testing.Short() {
		t.Skip("a thousand mounts")
	}
	noWorker(t)
	roomy := small // a garbage collection among many may take its time
	roomy.VMTimeout = 5 * time.Second
	roomy.CallTimeout, roomy.MaxCallTimeout = 10*time.Second, 10*time.Second
	r := selfmodtest.New(t, roomy)
	code := withTool("cycle", "['timer']", "return 'x'", "ctx.provide('s', { f() {} })", "ctx.on('tools/change', () => {})", "ctx.setInterval(() => {}, 1000)", "ctx.effect(() => () => {})")
	before := r.Root.Runtime().Digest()
	cycles := func(n int) time.Duration {
		began := time.Now()
		for range n {
			id := r.Mount(code)
			r.Works(r.Call("cycle", nil), "x")
			r.Unmount(id)
		}
		return time.Since(began) / time.Duration(n)
	}
	cycles(200)
	firstTime, firstMemory := cycles(100), memoryOf(t, worker(t))+memoryOf(t, os.Getpid())
	cycles(600)
	lastTime, lastMemory := cycles(100), memoryOf(t, worker(t))+memoryOf(t, os.Getpid())
	t.Logf("a cycle took %v at the start, %v at the end; memory grew by %d KB", firstTime, lastTime, (lastMemory-firstMemory)>>10)
	if lastTime > 5*firstTime {
		t.Errorf("a cycle took %v at the start and %v at the end", firstTime, lastTime)
	}
	if grown := lastMemory - firstMemory; grown > 16<<20 {
		t.Errorf("memory grew by %d KB", grown>>10)
	}
	if now := r.Root.Runtime().Digest(); now != before {
		t.Errorf("left behind:\n%s\nwant\n%s", now, before)
	}
}

// memoryOf is the resident memory of a process in bytes.
func memoryOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
