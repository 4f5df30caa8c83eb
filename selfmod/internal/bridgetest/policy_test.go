package bridgetest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// guard is a plugin that listens to the intent with the given body.
func guard(body string) string {
	return fmt.Sprintf(`return { name: 'guard', inject: ['shapes', 'timer'], apply(ctx) {
  const s = ctx.shapes
  ctx.on('shapes/read-intent', async (what, next) => { %s })
} }`, body)
}

// A mounted guard of a service's intent tightens, and fails closed.
func TestIntentGuards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, body, want string }{
		{"passes", "return next()", "no error: secret"},
		{"allows", "return { kind: 'allow' }", "no error: secret"},
		{"denies", "return what.path === 'secret' ? { kind: 'deny', reason: 'no, ' + what.by } : next()", "true | Error | SHAPES_DENIED | no, dyn-2 (refused by temporary Plugin dyn-1 (guard))"},
		{"asks", "return { kind: 'ask', reason: 'shall I' }", "true | Error | SHAPES_DENIED | shall I"},
		{"throws", "throw new Error('boom')", "true | Error | SHAPES_DENIED | shapes/read-intent was denied because the guard of temporary Plugin dyn-1 (guard) failed: "},
		{"hangs", "await new Promise(() => {})", "did not settle within"},
		{"nonsense", "return 'yes'", `it returned "yes"; return next(), or { kind: 'deny', reason: '…' }. cordis_unmount dyn-1 removes the guard`},
		{"reads_itself", "const same = await s.read(what.path); return { kind: 'deny', reason: 'read ' + same }", "true | Error | SHAPES_DENIED | read secret (refused by temporary Plugin dyn-1 (guard))"},
		{"reads_later", "await ctx.timeout(1); const same = await s.read(what.path); return { kind: 'deny', reason: 'read ' + same }", "SHAPES_DENIED | read secret (refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := small
			cfg.CallTimeout /= 2
			if c.name == "hangs" {
				cfg.CallTimeout /= 4
			}
			r, _ := rig(t, cfg)
			id := r.Mount(guard(c.body))
			r.Mount(withService("reader", "return failed(() => s.read('secret'))"))
			if got := selfmodtest.Text(r.Call("reader", nil)); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			r.Unmount(id)
			if got := selfmodtest.Text(r.Call("reader", nil)); got != "no error: secret" {
				t.Errorf("without the guard: %s", got)
			}
		})
	}
}

// While a guard is down the act is denied, by name, until it is unmounted.
func TestIntentGuardDown(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	needed, err := r.Root.Mount(&cordis.Plugin{Name: "needed", Apply: func(c *cordis.Context, _ any) error {
		_, err := c.Provide("needed", 1)
		return err
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	id := r.Mount("return { name: 'guard', inject: ['needed'], apply(ctx) { ctx.on('shapes/read-intent', (what, next) => next()) } }")
	r.Mount(withService("reader", "return failed(() => s.read('secret'))"))
	r.Works(r.Call("reader", nil), "no error: secret")
	if _, err := needed.Dispose(r.Context()); err != nil {
		t.Fatal(err)
	}
	r.Works(r.Call("reader", nil), "SHAPES_DENIED | shapes/read-intent was denied: temporary Plugin "+id+" (guard) listens to it and is pending, so nothing can be allowed; cordis_unmount "+id+" removes its guard")
	r.Unmount(id)
	r.Works(r.Call("reader", nil), "no error: secret")
}

// What a plugin is asked on behalf of a call that it awaits comes when its engine
// is free, not inside another call that it waits in.
func TestAskedWhileItCalls(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	r.Mount(`return { name: 'busy', inject: ['shapes'], apply(ctx) {
  const s = ctx.shapes
  ctx.on('shapes/read-intent', async (what, next) => next())
  harness.registerTool(ctx, harness.defineTool({ name: 'busy', description: 'd', parameters: {},
    output: { schema: { type: 'string' }, render: (_a, v) => [{ type: 'text', text: v }] },
    async execute() {
      const reading = s.read('mine')
      const each = s.each(['a', 'b'], async ({ name }) => name + '!')
      for (let i = 0; i < 50; i++) s.add(i, i)
      return await reading + ' ' + (await each).length
    } }))
} }`)
	for range 20 {
		r.Works(r.Call("busy", nil), "mine 2")
	}
}

// Only what a guard does itself is left out: what its mount does meanwhile, for
// nobody, is not.
func TestIntentGuardHearsOthers(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	r.Mount(`return { name: 'guard', inject: ['shapes', 'timer', 'tools'], apply(ctx) {
  const s = ctx.shapes, seen = []
  ctx.on('shapes/read-intent', async (what, next) => {
    seen.push(what.path)
    if (what.path === 'outer') { await s.read('inner'); await ctx.timeout(20) }
    return next()
  })
  harness.registerTool(ctx, harness.defineTool({ name: 'both', description: 'd', parameters: {},
    output: { schema: { type: 'string' }, render: (_a, v) => [{ type: 'text', text: v }] },
    async execute() { const p = s.read('outer'); await s.read('beside'); await p; return seen.sort().join() } }))
} }`)
	if got := selfmodtest.Text(r.Call("both", nil)); got != "beside,outer" {
		t.Errorf("the guard saw %s", got)
	}
}

// A listener of an observation that does what is observed does not hear itself.
func TestObserverDoesNotHearItself(t *testing.T) {
	t.Parallel()
	r, s := rig(t, small)
	r.Mount(`return { name: 'observer', inject: ['shapes'], apply(ctx) {
  ctx.on('shapes/observed', async (what) => { await ctx.shapes.read('again'); ctx.shapes.keep(() => {}) })
} }`)
	r.Mount(withService("reader", "return s.read('x')"))
	for range 3 {
		r.Works(r.Call("reader", nil), "x")
	}
	r.Eventually("three observations", func() (string, bool) { n := len(s.Kept()); return fmt.Sprint(n), n == 3 })
	r.Works(r.Call("reader", nil), "x")
	r.Eventually("the fourth", func() (string, bool) { n := len(s.Kept()); return fmt.Sprint(n), n == 4 })
}
