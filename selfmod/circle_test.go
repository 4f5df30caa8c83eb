package selfmod_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// Plugins that wait for each other stay pending, and inspect calls it a circle.
func TestServiceCycle(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	needs := func(name, provides, injects string) string {
		return fmt.Sprintf("return { name: %q, inject: [%q], apply(ctx) { ctx.provide('%s', { who: () => ctx[%q].who() }) } }", name, injects, provides, injects)
	}
	for _, c := range []struct {
		name   string
		codes  []string
		circle string
	}{
		{"two", []string{needs("one", "a", "b"), needs("two", "b", "a")}, "one → two → one"},
		{"three", []string{needs("one", "a", "b"), needs("two", "b", "c"), needs("three", "c", "a")}, "one → two → three → one"},
		{"itself", []string{needs("one", "a", "a")}, "one → one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			var ids []string
			for _, code := range c.codes {
				ids = append(ids, r.Mount(code))
			}
			for _, id := range ids {
				hasAll(t, stateOf(r, id), "[pending]", "waits in a circle: ")
				hasAll(t, r.Inspect("temporary", id), "waits in a circle: ")
			}
			hasAll(t, stateOf(r, ids[0]), c.circle)
			// Whoever breaks the circle from outside wakes all of it.
			if c.name != "itself" {
				one := r.Unmount(ids[0])
				hasAll(t, one, "was unmounted")
				outside := r.Mount(provider("outside", "a", "outside"))
				for _, id := range ids[1:] {
					hasAll(t, stateOf(r, id), "[running]")
				}
				ids[0] = outside
			}
			for _, id := range ids {
				r.Unmount(id)
			}
		})
	}
}

// A circle can be closed later: those that ran are known by what they provided.
func TestServiceCycleClosedLater(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	base := r.Mount(provider("base", "b", "base"))
	one := r.Mount("return { name: 'one', inject: ['b'], apply(ctx) { ctx.provide('a', { who: () => 'one' }) } }")
	r.Unmount(base)
	two := r.Mount("return { name: 'two', inject: ['a'], apply(ctx) { ctx.provide('b', { who: () => 'two' }) } }")
	hasAll(t, stateOf(r, one), "[pending]", "waits in a circle: one → two → one")
	hasAll(t, stateOf(r, two), "[pending]", "waits in a circle: two → one → two")
	r.Mount(provider("base", "b", "base"))
	hasAll(t, stateOf(r, one), "[running]")
}

// pingPong are two plugins whose services call each other through callbacks:
// ping needs pong, and hands it the way back.
func pingPong(r *selfmodtest.Rig, body string) {
	r.T.Helper()
	r.Mount("let back; return { name: 'pong', apply(ctx) { ctx.provide('pong', { meet(f) { back = f }, hit(n) { " + body + " } }) } }")
	r.Mount(withTool("ping", "['pong']", "return String(await ctx.pong.hit(args.x))", "ctx.pong.meet((n) => n <= 0 ? 'done' : ctx.pong.hit(n - 1))"))
}

// Members that call each other recursively work, down to a depth that is named.
func TestMembersThatRecurse(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	pingPong(r, "return back(n)")
	r.Works(r.Call("ping", map[string]any{"x": 40}), "done")
	within(t, small.CallTimeout+replacing, "endless recursion", func() {
		text := r.Fails(r.Call("ping", map[string]any{"x": 1e9}))
		if !strings.Contains(text, "deeper") && !strings.Contains(text, "stack") && !strings.Contains(text, "300 ms") {
			t.Errorf("the error names no limit: %s", text)
		}
	})
	r.Works(r.Call("ping", map[string]any{"x": 3}), "done")
	stop()
}

// Promises may be passed round for as long as the calls' limits allow.
func TestMembersThatRecurseAsynchronously(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	pingPong(r, "return Promise.resolve().then(() => back(n))")
	r.Works(r.Call("ping", map[string]any{"x": 60}), "done")
}

// Two mounts that wait for each other's promises never settle; each call ends at
// its own limit, and says so.
func TestPromisesThatWaitForEachOther(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	r.Mount("let gate; const p = new Promise((ok) => { gate = ok }); return { name: 'a', apply(ctx) { ctx.provide('a', { wait: () => p, open: (x) => gate(x) }) } }")
	r.Mount(withTool("knot", "['a']", "ctx.a.open(ctx.a.wait()); return await ctx.a.wait()"))
	within(t, small.CallTimeout+replacing, "the knot", func() { r.Fails(r.Call("knot", nil), `tool "knot"`, "1500 ms") })
	stop()
}

// Two chains that cross, A into B and B into A at once, both synchronously: one
// of them is told by name, or both get through; none hangs.
func TestChainsThatCross(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	// Each is inside its own VM when it calls the other.
	spin := "const t = Date.now(); while (Date.now() - t < 30);"
	r.Mount(withTool("left", "{ optional: ['right'] }", spin+" return ctx.get('right').say()", "ctx.provide('left', { say: () => 'left' })"))
	r.Mount(withTool("right", "{ optional: ['left'] }", spin+" return ctx.get('left').say()", "ctx.provide('right', { say: () => 'right' })"))
	crossed := 0
	for range 10 {
		var mu sync.Mutex
		var results []*tool.Result
		call := func(name string) func() {
			return func() {
				res := r.Call(name, nil)
				mu.Lock()
				defer mu.Unlock()
				results = append(results, res)
			}
		}
		within(t, small.CallTimeout+replacing, "the crossing", func() { at(call("left"), call("right")) })
		for _, res := range results {
			if res.IsError {
				crossed++
				r.Fails(res, "deadlock", "temporary Plugin dyn-2", "temporary Plugin dyn-3", "promise")
			}
		}
		if results[0].IsError && results[1].IsError {
			t.Errorf("both failed: %s; %s", selfmodtest.Text(results[0]), selfmodtest.Text(results[1]))
		}
	}
	t.Logf("%d of 10 crossings met", crossed)
	r.Works(r.Call("left", nil), "right")
	r.Works(r.Call("right", nil), "left")
	stop()
}

// Many chains through three mounts in a ring.
func TestRingOfChains(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	names := []string{"r0", "r1", "r2"}
	for i, n := range names {
		next := names[(i+1)%3]
		r.Mount(withTool(n, "{ optional: ['"+next+"'] }", "return ctx.get('"+next+"').go(args.x)",
			"ctx.provide('"+n+"', { go: (x) => x > 0 ? ctx.get('"+next+"').go(x - 1) : '"+n+"' })"))
	}
	var fns []func()
	for i := range 12 {
		fns = append(fns, func() {
			for range 10 {
				res := r.Call(names[i%3], map[string]any{"x": 7})
				if text := selfmodtest.Text(res); res.IsError && !strings.Contains(text, "deadlock") {
					t.Errorf("%s: %s", names[i%3], text)
				}
			}
		})
	}
	within(t, 10*small.CallTimeout, "the ring", func() { at(fns...) })
	for _, n := range names {
		r.Works(r.Call(n, map[string]any{"x": 7}))
	}
	stop()
}

// Go tools on the way: a chain that comes back into a mount which waits in it.
func TestChainThroughGuardsAndTools(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for i := range 3 {
		r.Mount(withTool(fmt.Sprintf("t%d", i), "[]", "return 'x'", "ctx.on('tools/execute', async (exec, next) => { const res = await next(); return res })", "ctx.on('tools/pre-execute', (exec, next) => next())"))
	}
	var fns []func()
	for i := range 20 {
		fns = append(fns, func() { r.Works(r.Call(fmt.Sprintf("t%d", i%3), nil), "x") })
	}
	at(fns...)
}
