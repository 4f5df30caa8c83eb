//go:build linux

package selfmod_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// children are the live processes that this one started. Tests that use them do
// not run beside others, so a child is the worker of the one Rig.
func children(t testing.TB) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	self := strconv.Itoa(os.Getpid())
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == self && fields[0] != "Z" {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

// worker is the process id of the one worker.
func worker(t testing.TB) int {
	t.Helper()
	pids := children(t)
	if len(pids) != 1 {
		t.Fatalf("there are %d workers", len(pids))
	}
	return pids[0]
}

func signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(worker(t), sig); err != nil {
		t.Fatal(err)
	}
}

// noWorker demands that no worker outlives its Rig.
func noWorker(t *testing.T) {
	t.Cleanup(func() {
		if left := children(t); len(left) > 0 {
			t.Errorf("workers are left: %v", left)
		}
	})
}

// The signals by which a worker ends, and how long a call may take to notice.
var ends = []struct {
	name   string
	signal syscall.Signal
	notice time.Duration
}{
	{"killed", syscall.SIGKILL, replacing},
	// A stopped worker is noticed when a call is overdue: vmTimeout, a second, and a second for the probe.
	{"stopped", syscall.SIGSTOP, small.VMTimeout + 2*time.Second + replacing},
	{"terminated", syscall.SIGTERM, replacing},
	{"crashed", syscall.SIGSEGV, replacing},
}

// The worker ends while nothing runs: what was mounted comes back by itself, with
// empty state, and says so.
func TestWorkerEndsWhileIdle(t *testing.T) {
	for _, e := range ends {
		t.Run(e.name, func(t *testing.T) {
			noWorker(t)
			r := selfmodtest.New(t, small)
			a := r.Mount(withTool("counts", "[]", "return ++n", "let n = 0"))
			p := r.Mount(provider("p", "base", "p"))
			c := r.Mount(asks("consumer", "base"))
			r.Works(r.Call("counts", nil), "1")
			r.Works(r.Call("counts", nil), "2")
			signal(t, e.signal)
			within(t, e.notice, "the next call", func() {
				r.Eventually("an answer", func() (string, bool) {
					res := r.Call("counts", nil)
					if res.IsError {
						hasAll(t, selfmodtest.Text(res), a) // whatever it says, it names the mount
					}
					if !strings.Contains(stateOf(r, a), "mounted again") {
						return "not mounted again yet", false // a crash takes its time; who calls meanwhile is not to blame
					}
					return selfmodtest.Text(res), !res.IsError
				})
			})
			r.Eventually("everything", func() (string, bool) {
				res := r.Call("consumer", nil)
				return selfmodtest.Text(res), selfmodtest.Text(res) == "p"
			})
			for _, id := range []string{a, p, c} {
				eventuallyHas(r, "the state", func() string { return stateOf(r, id) }, "[running]", "mounted again from its source 1 time", "empty state")
				hasAll(t, r.Inspect("temporary", id), "worker process", "ended")
			}
			for _, id := range []string{a, p, c} {
				r.Unmount(id)
			}
		})
	}
}

// The worker ends during each kind of entry: that call fails with the reason,
// soon, and what comes after works.
func TestWorkerEndsDuring(t *testing.T) {
	const forever = "await new Promise(() => {})"
	for _, e := range ends[:2] {
		for _, c := range []struct {
			name string
			code string
			call string // the tool to call; "": the mount itself is under way
		}{
			{"body", "console.log('here'); " + forever + "; return () => {}", ""},
			{"body_endless", "console.log('here'); const t = Date.now(); while (Date.now() - t < 250); " + forever, ""},
			{"apply", "return { name: 'x', async apply(ctx) { ctx.provide('left', 1); console.log('here'); " + forever + " } }", ""},
			{"call", selfmodtest.Tool("victim", "console.log('here'); "+forever), "victim"},
			{"call_in_the_engine", selfmodtest.Tool("victim", "console.log('here'); const t = Date.now(); while (Date.now() - t < 200);"+forever), "victim"},
			{"sleep", selfmodtest.Tool("victim", "console.log('here'); await ctx.timeout(1e6)"), "victim"},
			{"listener", selfmodtest.Tool("victim", "return 'x'", "ctx.on('tools/pre-execute', async (exec, next) => { if (exec.name === 'victim') { console.log('here'); "+forever+" } return next() })"), "victim"},
			{"timer", selfmodtest.Tool("victim", "await new Promise((ok) => ctx.setTimeout(async () => { console.log('here'); "+forever+" }, 1))"), "victim"},
		} {
			if e.signal == syscall.SIGSTOP && c.name != "call" {
				continue // found out in the same way, slowly
			}
			t.Run(e.name+"_"+c.name, func(t *testing.T) {
				noWorker(t)
				r := selfmodtest.New(t, small)
				other := r.Mount(selfmodtest.Tool("other", "return 'other'"))
				if c.call != "" {
					r.Mount(c.code)
				}
				done := make(chan *tool.Result, 1)
				go func() {
					if c.call == "" {
						done <- r.Call("cordis_mount", map[string]string{"code": c.code})
					} else {
						done <- r.Call(c.call, nil)
					}
				}()
				eventuallyHas(r, "the entry", func() string { return strings.Join(r.Console(), "\n") }, "[cordis:dyn-2] here")
				signal(t, e.signal)
				// A mount whose apply was cut off is mounted again, and hangs again.
				within(t, e.notice+map[bool]time.Duration{true: small.CallTimeout}[c.name == "apply"], "the failure", func() { r.Fails(<-done, "dyn-2") })
				r.Eventually("the other mount", func() (string, bool) {
					res := r.Call("other", nil)
					return selfmodtest.Text(res), !res.IsError
				})
				// Its tool answers as soon as it is registered, before it is active.
				eventuallyHas(r, "its state", func() string { return stateOf(r, other) }, "[running]", "mounted again")
				answers(r, prompt)
				if c.call == "" {
					r.Fails(r.Call("cordis_unmount", map[string]string{"id": "dyn-2"}), "dyn-2 failed to mount")
				} else {
					r.Unmount("dyn-2")
				}
				r.Mount(selfmodtest.Tool("next", "return 'next'"))
				r.Works(r.Call("next", nil), "next")
			})
		}
	}
}

// The worker ends while a mount is being unmounted, its calls and disposers
// running: the receipt comes.
func TestWorkerEndsDuringUnmount(t *testing.T) {
	for _, e := range ends[:2] {
		for _, c := range []struct{ name, code string }{
			{"call", selfmodtest.Tool("victim", "console.log('here'); await ctx.timeout(1e6)")},
			{"disposer", selfmodtest.Tool("victim", "return 'x'", "ctx.effect(() => () => { console.log('here'); return new Promise(() => {}) })")},
		} {
			if e.signal == syscall.SIGSTOP && c.name == "disposer" {
				continue // found out in the same way, slowly
			}
			t.Run(e.name+"_"+c.name, func(t *testing.T) {
				noWorker(t)
				r := selfmodtest.New(t, small)
				before := r.Root.Runtime().Digest()
				r.Mount(c.code)
				called := make(chan *tool.Result, 1)
				if c.name == "call" {
					go func() { called <- r.Call("victim", nil) }()
					eventuallyHas(r, "the call", func() string { return strings.Join(r.Console(), "\n") }, "here")
				}
				done := make(chan *tool.Result, 1)
				go func() { done <- r.Call("cordis_unmount", map[string]string{"id": "dyn-1"}) }()
				eventuallyHas(r, "the unmount", func() string { return strings.Join(r.Console(), "\n") + stateOf(r, "dyn-1") }, "here", "unloading")
				signal(t, e.signal)
				within(t, e.notice+small.CallTimeout, "the receipt", func() { r.Works(<-done, "dyn-1 was unmounted and removed") })
				if c.name == "call" {
					r.Fails(<-called, "dyn-1")
				}
				if now := r.Root.Runtime().Digest(); now != before {
					t.Errorf("left behind:\n%s\nwant\n%s", now, before)
				}
				r.Mount(selfmodtest.Tool("next", "return 'next'"))
				r.Works(r.Call("next", nil), "next")
			})
		}
	}
}

// A guard whose worker was killed denies until it is back.
func TestGuardWhoseWorkerDies(t *testing.T) {
	noWorker(t)
	r := selfmodtest.New(t, small)
	ran := make(chan string, 1000)
	id := r.Mount(guardian("return exec.name === 'other' ? next() : exec.name === 'forbidden' ? { kind: 'deny', reason: 'as ever' } : next()"))
	r.Mount(selfmodtest.Tool("forbidden", "return 'must not run'"))
	for range 2 {
		signal(t, syscall.SIGKILL)
		r.Eventually("the guard's own answer", func() (string, bool) {
			res := r.Call("forbidden", nil)
			if !res.IsError {
				ran <- selfmodtest.Text(res)
			}
			text := selfmodtest.Text(res)
			return text, strings.Contains(text, "as ever") || !res.IsError
		})
	}
	select {
	case text := <-ran:
		t.Errorf("a forbidden call ran: %s", text)
	default:
	}
	hasAll(t, stateOf(r, id), "mounted again from its source 2 times")
}

// After more deaths in a minute than are allowed nothing comes back by itself;
// inspect says so, unmounting and mounting still work.
func TestWorkerDiesTooOften(t *testing.T) {
	noWorker(t)
	r := selfmodtest.New(t, small)
	id := r.Mount(selfmodtest.Tool("victim", "return 'back'"))
	other := r.Mount(selfmodtest.Tool("other", "return 'back'"))
	guard := r.Mount(guardian("return next()"))
	for n := 1; ; n++ {
		signal(t, syscall.SIGKILL)
		var text string
		r.Eventually("what follows", func() (string, bool) {
			res := r.Call("victim", nil)
			text = stateOf(r, id)
			return text, !res.IsError && strings.Contains(text, fmt.Sprintf("%d time", n)) || strings.Contains(text, "[failed]")
		})
		if strings.Contains(text, "[failed]") {
			if n != limits.WorkerDeaths {
				t.Errorf("nothing came back after death %d, the limit is %d", n, limits.WorkerDeaths)
			}
			break
		}
		if n > 2*limits.WorkerDeaths {
			t.Fatalf("it still comes back: %s", text)
		}
	}
	for _, i := range []string{id, other, guard} {
		eventuallyHas(r, "the others", func() string { return stateOf(r, i) }, "[failed]", "the worker process")
	}
	hasAll(t, r.Inspect("temporary", ""), "Attention: ", "nothing is mounted again by itself")
	r.Fails(r.Call("victim", nil))
	hasAll(t, r.Inspect("temporary", id), "cordis_unmount it, then mount it again")
	r.Fails(r.Call("cordis_mount", map[string]string{"code": "return () => {}"}), guard, "cordis_unmount "+guard)
	for _, i := range []string{guard, id, other} {
		r.Unmount(i)
	}
	r.Mount(selfmodtest.Tool("victim", "return 'mounted again'"))
	r.Works(r.Call("victim", nil), "mounted again")
}

// The toolset goes while its worker is stopped.
func TestToolsetGoesWithAStoppedWorker(t *testing.T) {
	noWorker(t)
	r := selfmodtest.New(t, small)
	r.Mount(selfmodtest.Tool("victim", "return 'x'", "ctx.effect(() => () => console.log('bye'))"))
	signal(t, syscall.SIGSTOP)
	within(t, small.CallTimeout+2*time.Second+replacing, "the disposal", func() {
		_, _ = r.Toolset.Dispose(r.Context())
	})
}

// Deaths at arbitrary moments while everything goes on.
func TestWorkerEndsAtAnyMoment(t *testing.T) {
	noWorker(t)
	for range 2 {
		r := selfmodtest.New(t, small)
		before := r.Root.Runtime().Digest()
		done := make(chan struct{})
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			var fns []func()
			for i := range 6 {
				fns = append(fns, func() {
					for {
						select {
						case <-done:
							return
						default:
						}
						name := fmt.Sprintf("k%d", i)
						res := r.Call("cordis_mount", map[string]string{"code": withTool(name, "{ optional: ['s"+name+"'] }", "return 'x'", "ctx.provide('p"+name+"', { f() {} })", "ctx.effect(() => () => {})")})
						id, _, _ := strings.Cut(strings.TrimPrefix(selfmodtest.Text(res), "Temporary Plugin "), " ")
						r.Call(name, nil)
						if !res.IsError {
							if res = r.Call("cordis_unmount", map[string]string{"id": id}); res.IsError {
								t.Errorf("unmount %s: %s", id, selfmodtest.Text(res))
							}
						}
					}
				})
			}
			at(fns...)
		}()
		for range limits.WorkerDeaths + 1 {
			r.Eventually("a worker", func() (string, bool) { return "", len(children(t)) > 0 })
			for _, pid := range children(t) {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			within(t, 5*time.Second+replacing, "the next mount", func() {
				r.Eventually("a mount", func() (string, bool) {
					res := r.Call("cordis_mount", map[string]string{"code": "return () => {}"})
					id, _, _ := strings.Cut(strings.TrimPrefix(selfmodtest.Text(res), "Temporary Plugin "), " ")
					if !res.IsError {
						r.Call("cordis_unmount", map[string]string{"id": id})
					}
					return selfmodtest.Text(res), !res.IsError
				})
			})
		}
		close(done)
		<-stopped
		if now := r.Root.Runtime().Digest(); now != before {
			t.Errorf("left behind:\n%s\nwant\n%s", now, before)
		}
		if _, err := r.Toolset.Dispose(r.Context()); err != nil {
			t.Error(err)
		}
	}
}
