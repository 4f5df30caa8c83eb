package selfmod_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// guardian is a plugin whose guard is the given body, with exec and next in scope.
func guardian(body string, before ...string) string {
	return fmt.Sprintf(`return { name: 'guardian', inject: { required: ['timer'], optional: [] }, apply(ctx) {
    %s
    ctx.on('tools/pre-execute', async (exec, next) => { %s })
  } }`, strings.Join(before, "\n"), body)
}

// A guard that does not decide denies, by name, until its mount is gone.
func TestGuardFailsClosed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, body string
		has        []string
	}{
		{"throws", "throw new Error('guard boom')", []string{"guard boom"}},
		{"throws_no_error", "throw null", nil},
		{"never_settles", "await new Promise(() => {})", []string{"1500 ms", "callTimeout"}},
		{"endless", "for (;;) {}", []string{"300 ms", "vmTimeout"}},
		{"returns_nothing", "next()", []string{"returned nothing"}},
		{"returns_true", "return true", []string{"it returned true"}},
		{"returns_text", "return 'allow'", []string{"it returned"}},
		{"returns_number", "return 1", []string{"it returned 1"}},
		{"returns_list", "return [{ kind: 'allow' }]", []string{"it returned"}},
		{"unknown_kind", "return { kind: 'permit' }", []string{"permit"}},
		{"no_kind", "return {}", []string{"kind"}},
		{"kind_is_no_text", "return { kind: ['allow'] }", []string{"it returned"}},
		{"reason_is_no_text", "return { kind: 'deny', reason: {} }", nil},
		{"function", "return () => ({ kind: 'allow' })", nil},
		{"getter_throws", "return { get kind() { throw new Error('guard boom') } }", nil},
		{"proxy", "return new Proxy({}, { get() { throw new Error('guard boom') }, ownKeys() { throw new Error('guard boom') } })", nil},
		{"cyclic", "const a = { kind: 'allow' }; a.a = a; return a", nil},
		{"next_twice", "await next(); return next()", []string{"next() was called twice"}},
		{"huge", "return { kind: 'x'.repeat(1e6) }", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			r.Mount(selfmodtest.Tool("work", "return 'done'"))
			id := r.Mount(guardian(c.body))
			text := r.Fails(r.Call("work", nil), append(c.has, `tool "work" was denied`, id, "guardian", "cordis_unmount "+id)...)
			if len(text) > 2500 {
				t.Errorf("the denial has %d bytes", len(text))
			}
			answers(r, prompt)
			r.Works(r.Call("cordis_inspect", map[string]string{"what": "temporary", "name": id}), "last errors")
			within(t, replacing+small.CallTimeout, "the unmount", func() { r.Unmount(id) })
			r.Works(r.Call("work", nil), "done")
		})
	}
}

// What a guard decides, with and without next, alone and around another.
func TestGuardDecisions(t *testing.T) {
	t.Parallel()
	const denies, allows, passes = "return { kind: 'deny', reason: 'no, says one' }", "return { kind: 'allow' }", "return next()"
	for _, c := range []struct {
		name, outer, inner string
		denied             string // "": allowed
		unreached          bool   // the inner guard is not asked
		eitherWay          bool   // … or is: nothing says which
	}{
		{name: "deny_without_next", outer: denies, inner: passes, denied: "no, says one", unreached: true},
		{name: "deny_after_next", outer: "await next(); " + denies, inner: passes, denied: "no, says one"},
		{name: "allow_counts_as_next", outer: allows, inner: passes},
		{name: "allow_does_not_hide_a_refusal", outer: allows, inner: denies, denied: "no, says one"},
		{name: "allow_after_a_refusing_next", outer: "const d = await next(); if (d.kind !== 'deny') throw new Error('a denial was expected'); return { kind: 'allow' }", inner: denies, denied: "no, says one"},
		{name: "changed_result_of_next", outer: "const d = await next(); d.kind = 'allow'; delete d.reason; return d", inner: denies, denied: "no, says one"},
		{name: "next_unawaited_then_allow", outer: "next(); return { kind: 'allow' }", inner: denies, denied: "no, says one"},
		{name: "deny_after_next_unawaited", outer: "next(); " + denies, inner: denies, denied: "no, says one", eitherWay: true},
		{name: "another_reason", outer: "await next(); return { kind: 'deny', reason: 'mine' }", inner: denies, denied: "no, says one"},
		{name: "ask_with_nobody_to_ask", outer: "return { kind: 'ask', reason: 'shall I' }", inner: passes, denied: "shall I"},
		{name: "ask_does_not_soften_a_refusal", outer: "return { kind: 'ask', reason: 'shall I' }", inner: denies, denied: "no, says one"},
		{name: "error_behind_an_allow", outer: allows, inner: "throw new Error('second boom')", denied: "second boom"},
		{name: "both_pass", outer: passes, inner: passes},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			var ran atomic.Int32
			goTool(r, "work", func(context.Context, *tool.Exec) (string, error) {
				ran.Add(1)
				return "done", nil
			})
			r.Mount(guardian("if (exec.name !== 'work') return next(); " + c.outer))
			second := r.Mount(guardian("if (exec.name !== 'work') return next(); console.log('asked'); " + c.inner))
			res := r.Call("work", nil)
			if c.denied == "" {
				r.Works(res, "done")
			} else {
				r.Fails(res, c.denied)
			}
			if got, want := ran.Load() == 1, c.denied == ""; got != want {
				t.Errorf("the body ran: %v, want %v", got, want)
			}
			if asked := strings.Contains(r.Inspect("temporary", second), "- asked"); asked == c.unreached && !c.eitherWay {
				t.Errorf("the inner guard was asked: %v", asked)
			}
		})
	}
}

// TestLongReasonNamesGuard: however much a guard has to say, the refusal says whose
// it is, and holds nothing that controls a terminal.
func TestLongReasonNamesGuard(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	r.Mount(`return { name: 'talker', apply(ctx) {
  ctx.on('tools/pre-execute', (exec, next) => exec.name === 'cordis_mount' ? { kind: 'deny', reason: 'no\x1b[31m ' + 'x'.repeat(100000) } : next())
} }`)
	text := r.MountFails("return { apply() {} }", "(refused by temporary Plugin dyn-1 (talker))")
	if strings.Contains(text, "\x1b") || len(text) > limits.ErrorText+50 {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

// A guard sees calls of the composition and of mounts, their own mount's too,
// with arguments that are valid, but never cordis_inspect and cordis_unmount.
func TestGuardSees(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	goTool(r, "work", func(context.Context, *tool.Exec) (string, error) { return "done", nil })
	id := r.Mount(withTool("own", "[]", "return 'own'",
		"ctx.on('tools/pre-execute', (exec, next) => { if (Object.values(exec.arguments).some(v => v !== 'yes')) return { kind: 'deny', reason: 'not ' + exec.name }; return next() })"))
	r.Works(r.Call("own", map[string]string{"x": "yes"}), "own")
	r.Fails(r.Call("own", map[string]string{"x": "no"}), "not own")
	r.Fails(r.Call("cordis_mount", map[string]string{"code": "no"}), "not cordis_mount")
	r.Works(r.Call("cordis_inspect", map[string]string{"what": "services"}))
	r.Works(r.Call("cordis_unmount", map[string]string{"id": id}))
}

// While a guard's mount is down, in whichever way, it denies; until it is
// unmounted or active again.
func TestGuardWhileDown(t *testing.T) {
	t.Parallel()
	const listens = "ctx.on('tools/pre-execute', (exec, next) => exec.name === 'forbidden' ? { kind: 'deny', reason: 'as ever' } : next())"
	down := func(r *selfmodtest.Rig, id, state string) {
		r.T.Helper()
		r.Fails(r.Call("work", nil), `tool "work" was denied`, id, "tools/pre-execute", state, "cordis_unmount "+id)
		answers(r, prompt)
		hasAll(r.T, stateOf(r, id), id)
	}
	start := func(t *testing.T) *selfmodtest.Rig {
		r := selfmodtest.New(t, small)
		goTool(r, "work", func(context.Context, *tool.Exec) (string, error) { return "done", nil })
		goTool(r, "forbidden", func(context.Context, *tool.Exec) (string, error) { return "must not run", nil })
		return r
	}
	t.Run("parked", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		needed := r.Mount(provider("needed", "needed", "x"))
		id := r.Mount("return { name: 'guardian', inject: ['needed'], apply(ctx) { " + listens + " } }")
		r.Works(r.Call("work", nil), "done")
		r.Unmount(needed)
		down(r, id, "pending")
		r.Fails(r.Call("cordis_mount", map[string]string{"code": provider("needed", "needed", "x")}), "denied", "cordis_unmount "+id)
		r.Unmount(id)
		r.Works(r.Call("work", nil), "done")
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		needed := r.Mount(provider("needed", "needed", "x"))
		id := r.Mount("let runs = 0; return { name: 'guardian', inject: { optional: ['needed'] }, apply(ctx) { " + listens + "; if (runs++) throw new Error('second run') } }")
		restart(r, "guardian")
		down(r, id, "failed")
		r.Fails(r.Call("forbidden", nil), "denied")
		r.Unmount(id)
		r.Works(r.Call("work", nil), "done")
		r.Unmount(needed)
	})
	t.Run("spent", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.Mount(selfmodtest.Tool("other", "return 'x'"))
		id := r.Mount(selfmodtest.Tool("bomb", "const a = []; for (;;) a.push(new Uint8Array(8 << 20))", listens))
		r.Fails(r.Call("bomb", nil), id)
		// From here on it is being mounted again: nothing that it forbids may run.
		for r.Works(r.Call("cordis_inspect", map[string]string{"what": "temporary"})); ; {
			if res := r.Call("work", nil); !res.IsError {
				break
			}
			r.Fails(r.Call("forbidden", nil))
		}
		r.Fails(r.Call("forbidden", nil), "as ever")
		hasAll(t, stateOf(r, id), "running", "mounted again")
	})
	t.Run("half_mounted", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.MountFails("return { name: 'guardian', apply(ctx) { ctx.on('tools/pre-execute', () => ({ kind: 'deny', reason: 'x' })); throw new Error('no') } }", "no")
		r.Works(r.Call("work", nil), "done")
	})
	t.Run("active_again_without_a_guard", func(t *testing.T) {
		t.Parallel()
		r := start(t)
		r.Mount("let runs = 0; return { name: 'guardian', apply(ctx) { if (!runs++) { " + listens + " } } }")
		r.Fails(r.Call("forbidden", nil), "as ever")
		restart(r, "guardian")
		r.Works(r.Call("forbidden", nil), "must not run")
	})
}

// A call never slips past a guard that is just being started again.
func TestGuardRestartHasNoGap(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	var ran atomic.Int32
	goTool(r, "forbidden", func(context.Context, *tool.Exec) (string, error) {
		ran.Add(1)
		return "must not run", nil
	})
	r.Mount("return { name: 'first', apply(ctx) { ctx.on('tools/pre-execute', async (exec, next) => next()) } }")
	r.Mount("return { name: 'guardian', apply(ctx) { ctx.on('tools/pre-execute', (exec, next) => exec.name === 'forbidden' ? { kind: 'deny', reason: 'as ever' } : next()) } }")
	r.Mount("return { name: 'last', apply(ctx) { ctx.on('tools/pre-execute', async (exec, next) => next()) } }")
	done := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if res := r.Call("forbidden", nil); !res.IsError {
					return
				}
			}
		})
	}
	for range 100 {
		restart(r, "guardian")
	}
	close(done)
	callers.Wait()
	if n := ran.Load(); n > 0 {
		t.Errorf("%d calls ran that the guard forbids", n)
	}
}

// restart restarts the fibers of that name and waits until they have settled.
func restart(r *selfmodtest.Rig, name string) {
	r.T.Helper()
	for _, f := range r.Root.Runtime().Fibers() {
		if f.Name() == name {
			_ = f.Restart(r.Context()) // a body that fails is what some tests want
		}
	}
}
