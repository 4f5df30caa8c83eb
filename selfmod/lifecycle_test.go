package selfmod_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// A mount that registers one thing of each kind and then throws leaves nothing:
// all is undone, strictly in reverse.
func TestHalfMountIsUndoneInReverse(t *testing.T) {
	t.Parallel()
	const half = `return { name: 'half', inject: ['timer'], apply(ctx) {
    ctx.effect(() => () => console.log('undo 1'))
    ctx.provide('half-service', { a: 1 })
    harness.registerTool(ctx, harness.defineTool({ name: 'half_tool', description: 'd', parameters: {},
      output: { schema: { type: 'string' }, render: (_, v) => [{ type: 'text', text: v }] }, execute: async () => 'x' }))
    ctx.effect(() => async () => { console.log('undo 2: ' + (ctx.tools.get('half_tool') ? 'tool there' : 'tool gone')) })
    ctx.on('tools/change', () => {})
    ctx.once('tools/result', () => {})
    ctx.on('tools/pre-execute', (exec, next) => next())
    ctx.setInterval(() => {}, 1)
    ctx.setTimeout(() => {}, 100000)
    ctx.effect(function* () { yield () => console.log('undo 3a'); yield () => console.log('undo 3b') })
    %s
  } }`
	for _, c := range []struct{ name, end, says string }{
		{"throws", "throw new Error('half way')", "half way"},
		{"rejects", "return (async () => { await ctx.timeout(5); throw new Error('half way') })()", "half way"},
		{"returns_nonsense", "return 42", "Invalid effect"},
		{"name_is_taken", "ctx.provide('half-service', 1)", "half-service"},
		{"hangs", "return new Promise(() => {})", "callTimeout"},
		{"endless", "for (;;) {}", "vmTimeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			before := r.Root.Runtime().Digest()
			stop := bystander(r, prompt)
			code := fmt.Sprintf(half, c.end)
			text := r.MountFails(code, c.says, "Nothing is mounted; the id dyn-2 is used up")
			stop()
			if now := r.Root.Runtime().Digest(); now != before {
				t.Errorf("left behind:\n%s\nwant\n%s", now, before)
			}
			var undone []string
			r.Eventually("the disposers", func() (string, bool) {
				undone = nil
				for _, l := range r.Console() {
					if _, what, ok := strings.Cut(l, "undo "); ok {
						undone = append(undone, what)
					}
				}
				return fmt.Sprint(undone), len(undone) >= 4
			})
			if got, want := strings.Join(undone, ", "), "3b, 3a, 2: tool there, 1"; got != want && c.name != "endless" {
				t.Errorf("undone in the order %s, want %s; the answer was:\n%s", got, want, text)
			}
			// All names are free again, and the id is explained.
			r.Fails(r.Call("half_tool", nil), "unknown tool")
			r.Fails(r.Call("cordis_unmount", map[string]string{"id": "dyn-2"}), "dyn-2 failed to mount")
			id := r.Mount(fmt.Sprintf(half, ""))
			r.Works(r.Call("half_tool", nil), "x")
			receipt := r.Unmount(id)
			hasAll(t, receipt, "1 tool, 1 service, ", "2 timers, ", "Gone tools: half_tool.", "Gone services: half-service.")
		})
	}
}

// A Go tool, wrapped by a listener of the mount, does something to that mount
// while the call runs in it.
func TestGoToolActsOnTheMountThatRuns(t *testing.T) {
	t.Parallel()
	const wraps = "ctx.on('tools/execute', async (exec, next) => { if (exec.name === 'act') { const res = await next(); console.log('wrapped'); return res } return next() })"
	wrapper := withTool("mine", "[]", "return 'mine'", wraps)
	start := func(t *testing.T, act func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, id string) (string, error)) (*selfmodtest.Rig, string, string) {
		r := selfmodtest.New(t, small)
		id := r.Mount(wrapper)
		goTool(r, "act", func(ctx context.Context, exec *tool.Exec) (string, error) { return act(ctx, r, exec, id) })
		var text string
		within(t, replacing, "the call", func() { text = selfmodtest.Text(r.Call("act", nil)) })
		return r, id, text
	}
	t.Run("unmounts_it", func(t *testing.T) {
		t.Parallel()
		r, id, text := start(t, func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, id string) (string, error) {
			first, err := nested(ctx, r, exec, "cordis_unmount", map[string]string{"id": id})
			if err != nil {
				return "", err
			}
			_, err = nested(ctx, r, exec, "cordis_unmount", map[string]string{"id": id})
			return first + "|" + fmt.Sprint(err), nil
		})
		hasAll(t, text, "is being unmounted", "follows when the call has ended", "|cordis_unmount: Error: ", id)
		r.Eventually("the unmount", func() (string, bool) {
			line := stateOf(r, id)
			return line, line == ""
		})
		r.Fails(r.Call("mine", nil), "unknown tool", id)
		r.Fails(r.Call("cordis_unmount", map[string]string{"id": id}), id+" was unmounted")
		eventuallyHas(r, "the wrapper's own end", func() string { return strings.Join(r.Console(), "\n") }, "wrapped")
	})
	t.Run("mounts_another", func(t *testing.T) {
		t.Parallel()
		r, _, text := start(t, func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, _ string) (string, error) {
			return nested(ctx, r, exec, "cordis_mount", map[string]string{"code": withTool("fresh", "[]", "return 'fresh'")})
		})
		hasAll(t, text, "is running", "fresh")
		r.Works(r.Call("fresh", nil), "fresh")
	})
	t.Run("mounts_what_collides_with_it", func(t *testing.T) {
		t.Parallel()
		_, id, text := start(t, func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, _ string) (string, error) {
			return nested(ctx, r, exec, "cordis_mount", map[string]string{"code": wrapper})
		})
		hasAll(t, text, "already registered by temporary Plugin", id, "REPLACE")
	})
	t.Run("calls_it", func(t *testing.T) {
		t.Parallel()
		_, _, text := start(t, func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, _ string) (string, error) {
			return nested(ctx, r, exec, "mine", nil)
		})
		hasAll(t, text, "mine")
	})
	t.Run("calls_itself_through_it", func(t *testing.T) {
		t.Parallel()
		_, _, text := start(t, func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, _ string) (string, error) {
			return nested(ctx, r, exec, "act", nil)
		})
		hasAll(t, text, "64 calls are ")
	})
	t.Run("inspects_it", func(t *testing.T) {
		t.Parallel()
		_, id, text := start(t, func(ctx context.Context, r *selfmodtest.Rig, exec *tool.Exec, id string) (string, error) {
			return nested(ctx, r, exec, "cordis_inspect", map[string]string{"what": "temporary", "name": id})
		})
		hasAll(t, text, "Temporary Plugin "+id, "running")
	})
}

// Two tools that unmount each other's mounts, both with a running call: nobody
// waits for ever, and both are gone in the end.
func TestMountsThatUnmountEachOther(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	wraps := func(name string) string {
		return fmt.Sprintf("return { name: %[1]q, apply(ctx) { ctx.on('tools/execute', async (exec, next) => exec.name === %[1]q ? await next() : next()) } }", name)
	}
	a, b := r.Mount(wraps("in_a")), r.Mount(wraps("in_b"))
	var both sync.WaitGroup
	both.Add(2)
	meets := func(other string) func(context.Context, *tool.Exec) (string, error) {
		return func(ctx context.Context, exec *tool.Exec) (string, error) {
			both.Done()
			both.Wait()
			return nested(ctx, r, exec, "cordis_unmount", map[string]string{"id": other})
		}
	}
	goTool(r, "in_a", meets(b))
	goTool(r, "in_b", meets(a))
	within(t, small.CallTimeout+replacing, "both calls", func() {
		at(func() { r.Call("in_a", nil) }, func() { r.Call("in_b", nil) })
	})
	r.Eventually("both unmounts", func() (string, bool) {
		now := stateOf(r, a) + stateOf(r, b)
		return now, now == ""
	})
	stop()
}

// The second of two unmounts is told that the first goes on.
func TestUnmountTwiceAtOnce(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	id := r.Mount(selfmodtest.Tool("slow", "console.log('begun'); await ctx.timeout(300); return 'true result'"))
	calls := make(chan *tool.Result, 1)
	go func() { calls <- r.Call("slow", nil) }()
	eventuallyHas(r, "the running call", func() string { return strings.Join(r.Console(), "\n") }, "begun")
	results := make(chan *tool.Result, 2)
	at(
		func() { results <- r.Call("cordis_unmount", map[string]string{"id": id}) },
		func() { results <- r.Call("cordis_unmount", map[string]string{"id": id}) },
		func() {
			eventuallyHas(r, "the refusal of new calls", func() string { return selfmodtest.Text(r.Call("slow", nil)) }, "slow")
		},
	)
	one, two := <-results, <-results
	if one.IsError {
		one, two = two, one
	}
	r.Works(one, "was unmounted and removed", "Gone tools: slow.")
	r.Fails(two, id, "is already being unmounted", "goes on")
	r.Works(<-calls, "true result")
	var v struct {
		Drained   bool
		Abandoned int
	}
	if err := json.Unmarshal(one.Value, &v); err != nil || !v.Drained || v.Abandoned != 0 {
		t.Errorf("value %s: %v", one.Value, err)
	}
	r.Fails(r.Call("cordis_unmount", map[string]string{"id": id}), id+" was unmounted")
	stop()
}

// An id can be unmounted while its code is still being loaded or applied.
func TestUnmountWhileMounting(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, code string }{
		{"body", "console.log('up'); await new Promise(() => {}); return () => {}"},
		{"body_that_ends", "console.log('up'); const t = Date.now(); while (Date.now() - t < 200); return { name: 'x', apply(ctx) { ctx.provide('left', 1) } }"},
		{"apply", "return { name: 'x', async apply(ctx) { ctx.provide('left', 1); console.log('up'); await new Promise(() => {}) } }"},
		{"apply_that_ends", "return { name: 'x', inject: ['timer'], async apply(ctx) { ctx.provide('left', 1); console.log('up'); await ctx.timeout(200) } }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			before := r.Root.Runtime().Digest()
			stop := bystander(r, prompt)
			mounted := make(chan *tool.Result, 1)
			go func() { mounted <- r.Call("cordis_mount", map[string]string{"code": c.code}) }()
			eventuallyHas(r, "the code's start", func() string { return strings.Join(r.Console(), "\n") }, "[cordis:dyn-2] up")
			within(t, small.CallTimeout+replacing, "the unmount", func() { r.Works(r.Call("cordis_unmount", map[string]string{"id": "dyn-2"}), "dyn-2 was unmounted") })
			r.Fails(<-mounted, "dyn-2")
			stop()
			if now := r.Root.Runtime().Digest(); now != before {
				t.Errorf("left behind:\n%s\nwant\n%s", now, before)
			}
			if line := stateOf(r, "dyn-2"); line != "" {
				t.Errorf("it is still there: %s", line)
			}
		})
	}
}

// Fifty mounts and unmounts at once, with calls between them.
func TestFiftyAtOnce(t *testing.T) {
	t.Parallel()
	roomy := small
	roomy.VMTimeout, roomy.CallTimeout, roomy.MaxCallTimeout = 5*time.Second, 10*time.Second, 10*time.Second // fifty share the processors
	r := selfmodtest.New(t, roomy)
	before := r.Root.Runtime().Digest()
	fns := make([]func(), 50)
	for i := range fns {
		fns[i] = func() {
			name := fmt.Sprintf("t%d", i)
			res := r.Call("cordis_mount", map[string]string{"code": withTool(name, "[]", "return "+quote(name), "ctx.provide('s"+name+"', { x: 1 })", "ctx.on('tools/change', () => {})")})
			if res.IsError {
				t.Errorf("mount: %s", selfmodtest.Text(res))
				return
			}
			text := selfmodtest.Text(res)
			if strings.Contains(text, "Became active") || strings.Contains(text, "Failed:") {
				t.Errorf("consequences of others: %s", text)
			}
			var v struct{ ID string }
			if err := json.Unmarshal(res.Value, &v); err != nil {
				t.Error(err)
			}
			if got := selfmodtest.Text(r.Call(name, nil)); got != name {
				t.Errorf("%s answered %s", name, got)
			}
			res = r.Call("cordis_unmount", map[string]string{"id": v.ID})
			text = selfmodtest.Text(res)
			if res.IsError || !strings.Contains(text, "Gone tools: "+name+".") || strings.Contains(text, "Parked") {
				t.Errorf("unmount: %s", text)
			}
		}
	}
	within(t, 10*time.Second, "all", func() { at(fns...) })
	if now := r.Root.Runtime().Digest(); now != before {
		t.Errorf("left behind:\n%s\nwant\n%s", now, before)
	}
}

// A disposal of the toolset takes everything with it, running or hanging.
func TestToolsetGoesWhileEverythingHangs(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	r.Mount(selfmodtest.Tool("hangs", "await new Promise(() => {})"))
	r.Mount(selfmodtest.Tool("spins", "for (;;) {}", "ctx.effect(() => () => { for (;;) {} })"))
	r.Mount(selfmodtest.Tool("disposer", "return ''", "ctx.effect(() => () => new Promise(() => {}))"))
	results := make(chan *tool.Result, 2)
	go func() { results <- r.Call("hangs", nil) }()
	go func() { results <- r.Call("spins", nil) }()
	within(t, 3*small.CallTimeout+replacing, "the disposal", func() {
		_, err := r.Toolset.Dispose(r.Context())
		_ = err // that calls were abandoned
	})
	r.Fails(<-results)
	r.Fails(<-results)
	r.Fails(r.Call("cordis_inspect", nil), "unknown tool")
	if f := r.Toolset; f.State() != cordis.Disposed {
		t.Errorf("the toolset is %s", f.State())
	}
}
