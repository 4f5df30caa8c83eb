package selfmod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// printed waits until a mount has printed these lines, in this order, and no others.
func printed(r *selfmodtest.Rig, id string, want ...string) {
	r.T.Helper()
	eventuallyHas(r, "the lines", func() string { return strings.Join(linesOf(r, id), "\n") }, want...)
	if got := linesOf(r, id); strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.T.Errorf("printed:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func linesOf(r *selfmodtest.Rig, id string) []string {
	var out []string
	for _, l := range r.Console() {
		if text, ok := strings.CutPrefix(l, "[cordis:"+id+"] "); ok {
			out = append(out, text)
		}
	}
	return out
}

// Plain events reach a mount after the fact, in order, and cannot stop anything.
func TestEventOrder(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	id := r.Mount(`return { name: 'ear', inject: ['timer'], apply(ctx) {
    ctx.on('tools/change', async (c) => { const n = c.name; await ctx.timeout(n === 'one' ? 20 : 0); console.log(c.action + ' ' + n) })
    ctx.on('tools/result', (exec, result) => { if (exec.name.length < 4) console.log(exec.name + ' ' + result.isError + ' ' + (result.value ?? result.error.message.split('\n')[0])) })
  } }`)
	a := r.Mount(selfmodtest.Tool("one", "return 'fine'"))
	r.Call("one", nil)
	b := r.Mount(selfmodtest.Tool("two", "throw new Error('bad')"))
	r.Call("two", nil)
	r.Unmount(b)
	r.Unmount(a)
	r.Call("one", nil)
	eventuallyHas(r, "the last event", func() string { return strings.Join(linesOf(r, id), "\n") }, "one true unknown tool")
	got := strings.Join(linesOf(r, id), "\n")
	want := "registered one\none false fine\nregistered two\ntwo true bad\ndisposed two\ndisposed one\none true unknown tool"
	if !strings.HasPrefix(got, want) {
		t.Errorf("heard:\n%s\nwant:\n%s", got, want)
	}
}

// Order among listeners: registration, prepend before it, once and off.
func TestListenerOrder(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
	id := r.Mount(`return { name: 'ear', apply(ctx) {
    const say = (what) => (exec, next) => { if (exec.name === 'go') console.log(what); return typeof next === 'function' ? next() : undefined }
    ctx.on('tools/execute', say('around 1'))
    ctx.on('tools/execute', say('around 2'))
    ctx.on('tools/execute', say('prepended'), { prepend: true })
    ctx.on('tools/execute', say('first of all'), true)
    const off = ctx.on('tools/execute', say('never'))
    ctx.once('tools/execute', (exec, next) => { console.log('once'); return next() })
    ctx.on('tools/execute', say('once too'), { once: true })
    off()
    off()
  } }`)
	for range 2 {
		r.Works(r.Call("go", nil), "x")
	}
	printed(r, id, "first of all", "prepended", "around 1", "around 2", "once", "once too", "first of all", "prepended", "around 1", "around 2")
	hasAll(t, r.Unmount(id), "4 listeners")
}

// A listener may take itself and others out while it runs.
func TestListenersThatRemoveListeners(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
	id := r.Mount(`return { name: 'ear', apply(ctx) {
    const off1 = ctx.on('tools/execute', async (exec, next) => { console.log('one'); await off1(); await off2(); return next() })
    const off2 = ctx.on('tools/execute', (exec, next) => { console.log('two'); return next() })
    ctx.on('tools/execute', (exec, next) => { console.log('three'); return next() })
  } }`)
	r.Works(r.Call("go", nil), "x")
	r.Works(r.Call("go", nil), "x")
	eventuallyHas(r, "the lines", func() string { return strings.Join(linesOf(r, id), " ") }, "one three three")
}

// A slow listener delays nobody; what does not fit its queue is counted.
func TestEventQueueIsBounded(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
	id := r.Mount("let n = 0; return { name: 'ear', inject: ['timer'], apply(ctx) { ctx.on('tools/result', async (exec) => { if (exec.name !== 'go') return; if (n++ === 0) { console.log('first'); await ctx.timeout(500) } if (n % 100 === 0) console.log('heard ' + n) }) } }")
	other := r.Mount("return { name: 'other', apply(ctx) { let n = 0; ctx.on('tools/result', (exec) => { if (exec.name === 'go' && ++n % 100 === 0) console.log('heard ' + n) }) } }")
	r.Call("go", nil)
	printed(r, id, "first")
	total := limits.EventQueue + 100
	within(t, replacing, "the calls", func() {
		for i := range total {
			r.Call("go", nil)
			if i%50 == 0 {
				n := (i / 100) * 100
				eventuallyHas(r, "the other listener", func() string { return "heard 0 " + strings.Join(linesOf(r, other), " ") }, fmt.Sprintf("heard %d", n))
			}
		}
	})
	eventuallyHas(r, "the queue's end", func() string { return strings.Join(linesOf(r, id), " ") }, "heard 200")
	hasAll(t, stateOf(r, id), "events dropped: ")
	if strings.Contains(stateOf(r, other), "dropped") {
		t.Errorf("the other dropped: %s", stateOf(r, other))
	}
}

// Events that were queued when the unmount began are heard, the run's own too.
func TestQueueIsDrainedAtUnmount(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
	id := r.Mount("let n = 0; return { name: 'ear', inject: ['timer'], apply(ctx) { ctx.on('tools/result', async (exec) => { if (exec.name !== 'go') return; await ctx.timeout(10); console.log('heard ' + ++n) }); ctx.effect(() => () => console.log('bye')) } }")
	for range 10 {
		r.Call("go", nil)
	}
	r.Unmount(id)
	got := linesOf(r, id)
	if len(got) != 11 || got[9] != "heard 10" || got[10] != "bye" {
		t.Errorf("printed %q", got)
	}
}

// What cannot be listened to, and how it is said.
func TestListenRefusals(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for _, c := range []struct{ name, call, says string }{
		{"unknown", "ctx.on('tools/nope', () => {})", "tools/pre-execute"},
		{"internal", "ctx.on('internal/status', () => {})", "there is no event"},
		{"not_for_plugins", "ctx.on('tools/progress', () => {})", "there is no event"},
		{"no_function", "ctx.on('tools/change', 'x')", "function"},
		{"no_name", "ctx.on(undefined, () => {})", "ctx.on"},
		{"emit", "ctx.emit('tools/change', {})", "cannot dispatch events"},
		{"too_many", "for (let i = 0; i < 300; i++) ctx.on('tools/change', () => {})", "200 listeners"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.For(t).MountFails("return (ctx) => { "+c.call+" }", c.says, "Nothing is mounted")
		})
	}
}

// A wrapper may change the result of a call, and what is no result is an error
// that names it.
func TestAroundExecute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, want, fails string }{
		{"passes", "return await next()", "x", ""},
		{"passes_the_promise", "return next()", "x", ""},
		{"own_value", "return { isError: false, value: 'mine', content: [] }", "mine", ""},
		{"without_running", "return { isError: false, value: 'instead', content: [] }", "instead", ""},
		{"changed_value", "const { content, ...res } = await next(); return { ...res, value: res.value + '!' }", "x!", ""},
		{"error", "return { isError: true, error: { message: 'refused here' }, content: [] }", "", "refused here"},
		{"throws", "throw new Error('wrapper boom')", "", "wrapper boom"},
		{"nothing", "await next()", "", "returned nothing"},
		{"text", "return 'x'", "", "no result"},
		{"wrong_type", "return { isError: false, value: 42, content: [] }", "", "string"},
		{"hangs", "return new Promise(() => {})", "", "1500 ms"},
		{"endless", "for (;;) {}", "", "300 ms"},
		{"catches", "try { return await next() } catch { return { isError: false, value: 'caught', content: [] } }", "x", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
			id := r.Mount("return { name: 'around', apply(ctx) { ctx.on('tools/execute', async (exec, next) => { if (exec.name !== 'go') return next(); " + c.body + " }) } }")
			res := r.Call("go", nil)
			if c.fails != "" {
				r.Fails(res, c.fails)
			} else if got := selfmodtest.Text(res); res.IsError || got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			r.Unmount(id)
			r.Works(r.Call("go", nil), "x")
		})
	}
}

// A post-execute listener accepts, changes or blocks, failures too.
func TestPostExecute(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tool, body, want, fails string }{
		{"passes", "go", "return next()", "x", ""},
		{"accepts", "go", "return { kind: 'accept' }", "x", ""},
		{"content", "go", "return { kind: 'accept', content: [{ type: 'text', text: 'shown' }] }", "shown", ""},
		{"value", "go", "return { kind: 'accept', value: 'other' }", "other", ""},
		{"value_is_checked", "go", "return { kind: 'accept', value: 42 }", "", "string"},
		{"blocks", "go", "return { kind: 'block', feedback: 'not for you' }", "", "not for you"},
		{"sees_failures", "bad", "return { kind: 'accept', content: [{ type: 'text', text: 'saw ' + result.error.message }] }", "", "saw go boom"},
		{"both", "go", "return { kind: 'accept', content: [], value: 'x' }", "", "not both"},
		{"nothing", "go", "", "", "returned nothing"},
		{"unknown_kind", "go", "return { kind: 'maybe' }", "", "maybe"},
		{"throws", "go", "throw new Error('post boom')", "", "post boom"},
		{"hangs", "go", "return new Promise(() => {})", "", "1500 ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			goTool(r, "go", func(context.Context, *tool.Exec) (string, error) { return "x", nil })
			goTool(r, "bad", func(context.Context, *tool.Exec) (string, error) { return "", fmt.Errorf("go boom") })
			id := r.Mount("return { name: 'post', apply(ctx) { ctx.on('tools/post-execute', async (exec, result, next) => { if (exec.name !== '" + c.tool + "') return next(); " + c.body + " }) } }")
			res := r.Call(c.tool, nil)
			if c.fails != "" {
				r.Fails(res, c.fails)
			} else if got := selfmodtest.Text(res); res.IsError || got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			r.Works(r.Call("cordis_inspect", nil))
			r.Unmount(id)
		})
	}
}

// What a running call says beside its result.
func TestProgressContextAndConclude(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	r.Mount(withTool("talk", "['timer']", `
      exec.progress({ text: 'one', done: 1, total: 2 })
      await ctx.timeout(5)
      exec.progress({ text: 'two', done: 2, total: 2 })
      await ctx.timeout(5)
      exec.deferContext('read this too')
      exec.concludeTurn()
      globalThis.late = exec
      return 'done'`))
	r.Mount(withTool("flood", "[]", "for (let i = 0; i < 5000; i++) exec.progress({ text: 'p' + i }); exec.progress({ text: 'x'.repeat(1e5)}); return 'done'"))
	var mu sync.Mutex
	var heard []string
	run := func(name string) *tool.Result {
		return r.Registry.Execute(r.Context(), tool.Call{Name: name, OnProgress: func(p tool.Progress) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, p.Text)
		}})
	}
	res := run("talk")
	r.Works(res, "done")
	mu.Lock()
	if got := strings.Join(heard, ","); got != "one,two" {
		t.Errorf("heard %s", got)
	}
	heard = nil
	mu.Unlock()
	if !res.ConcludeTurn {
		t.Error("the turn is not concluded")
	}
	text, err := json.Marshal(res.Contexts)
	if err != nil || !strings.Contains(string(text), "read this too") {
		t.Errorf("contexts %s %v", text, err)
	}
	within(t, replacing, "the flood", func() { r.Works(run("flood"), "done") })
	mu.Lock()
	defer mu.Unlock()
	if len(heard) > 400 {
		t.Errorf("%d reports got through", len(heard))
	}
	for _, h := range heard {
		if len(h) > limits.Progress+8 {
			t.Errorf("a report has %d bytes", len(h))
		}
	}
}

// The caller gives up: the body's signal fires, the call ends at once.
func TestSignal(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	id := r.Mount(withTool("waits", "[]", "if (args.x) return 'idle'; exec.signal.addEventListener('abort', () => console.log('aborted: ' + exec.signal.aborted)); console.log('waiting'); await new Promise(() => {})"))
	ctx, cancel := context.WithCancel(r.Context())
	done := make(chan *tool.Result, 1)
	go func() { done <- r.CallContext(ctx, "waits", nil) }()
	printed(r, id, "waiting")
	r.Works(r.Call("waits", map[string]bool{"x": true}), "idle") // what printed it has left the engine, where a cancellation ends it
	began := time.Now()
	cancel()
	r.Fails(<-done)
	if d := time.Since(began); d > prompt {
		t.Errorf("the call ended %v after its cancellation", d)
	}
	printed(r, id, "waiting", "aborted: true")
	stop()
}
