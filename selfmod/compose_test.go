package selfmod_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// A chain of plugins works whatever the order in which they are mounted, and
// what is left works again whatever the order in which they come back.
func TestComposeInEveryOrder(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	link := func(name, needs string) string {
		return fmt.Sprintf("return { name: %[1]q, inject: [%[2]q], apply(ctx) { ctx.provide(%[1]q, { who: () => %[1]q + ' of ' + ctx[%[2]q].who() }) } }", name, needs)
	}
	for _, order := range [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}, {1, 2, 3, 0}, {3, 0, 1, 2}} {
		t.Run(strings.Trim(strings.ReplaceAll(fmt.Sprint(order), " ", "_"), "[]"), func(t *testing.T) {
			r := r.For(t)
			before := r.Root.Runtime().Digest()
			codes := []string{provider("base", "base", "base"), link("one", "base"), link("two", "one"), asks("end", "two")}
			ids := make([]string, len(codes))
			for _, i := range order {
				ids[i] = r.Mount(codes[i])
			}
			chain := fmt.Sprintf("one (%s), two (%s), end (%s", ids[1], ids[2], ids[3])
			r.Works(r.Call("end", nil), "two of one of base")
			receipt := r.Unmount(ids[0])
			hasAll(t, receipt, "Gone tools: end.", "Gone services: base.", "Parked until a service comes back: "+chain+").")
			r.Fails(r.Call("end", nil), "unknown tool", ids[0])
			hasAll(t, stateOf(r, ids[1]), "pending", "waiting for: base")
			hasAll(t, stateOf(r, ids[3]), "pending", "waiting for: two")
			res := r.Call("cordis_mount", map[string]string{"code": provider("base again", "base", "another base")})
			r.Works(res, "Became active: "+chain+"; tools: end).")
			r.Works(r.Call("end", nil), "two of one of another base")
			hasAll(t, stateOf(r, ids[3]), "running")
			for _, i := range order {
				if i > 0 {
					r.Unmount(ids[i])
				}
			}
			_, last, _ := strings.Cut(selfmodtest.Text(res), "Temporary Plugin ")
			last, _, _ = strings.Cut(last, " ")
			r.Unmount(last)
			if now := r.Root.Runtime().Digest(); now != before {
				t.Errorf("left behind:\n%s\nwant\n%s", now, before)
			}
		})
	}
}

// Every form of inject says what it looks like it says.
func TestInjectForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, inject, waits string }{
		{"list", "['needed']", "needed"},
		{"one_name", "'needed'", "needed"},
		{"map", "{ needed: { some: 'config' } }", "needed"},
		{"required_and_optional", "{ required: ['needed'], optional: ['wanted'] }", "needed"},
		{"required_only", "{ required: ['needed'] }", "needed"},
		{"optional_only", "{ optional: ['needed'] }", ""},
		{"with_the_harness_own", "['tools', 'timer', 'needed']", "needed"},
		{"named_required", "['required']", "required"},
		{"several", "['needed', 'wanted']", "needed, wanted"},
		{"twice", "['needed', 'needed']", "needed"},
		{"none", "[]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			id := r.Mount("return { name: 'x', inject: " + c.inject + ", apply() {} }")
			want := "waiting for: none"
			if c.waits != "" {
				want = "[pending] — provides: none; waiting for: " + c.waits
			}
			hasAll(t, stateOf(r, id), want+";")
		})
	}
	for _, c := range []struct{ name, inject string }{
		{"number", "42"}, {"list_of_numbers", "[1]"}, {"function", "() => ['x']"}, {"null_in_list", "[null]"},
		{"empty_name", "['']"}, {"newline", `['a\nb']`}, {"throwing_getter", "[{ get 0() { throw new Error('x') } }]"},
	} {
		t.Run("refused_"+c.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, small)
			r.MountFails("return { name: 'x', inject: "+c.inject+", apply() {} }", "inject", "Nothing is mounted")
		})
	}
}

// An optional service is read live, and its coming and going restarts nothing.
func TestOptionalServiceIsLive(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	id := r.Mount(withTool("asker", "{ optional: ['maybe'] }", "const s = ctx.get('maybe'); return applied + ':' + (s === undefined ? 'absent' : typeof s === 'object' ? s.who() : s)", "globalThis.applied = (globalThis.applied ?? 0) + 1"))
	now := func(want string) {
		t.Helper()
		r.Works(r.Call("asker", nil), want)
	}
	now("1:absent")
	p := r.Mount(provider("p", "maybe", "here"))
	now("1:here")
	r.Unmount(p)
	now("1:absent")
	p = r.Mount("return { name: 'p', apply(ctx) { ctx.provide('maybe', 'a primitive') } }")
	now("1:a primitive")
	r.Unmount(p)
	p = r.Mount(provider("p", "maybe", "another"))
	now("1:another")
	hasAll(t, stateOf(r, id), "running", "waiting for: none")
	r.Unmount(p)
	now("1:absent")
}

// A service that is provided and taken back while the mount lives.
func TestServiceComesAndGoesWithinAMount(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	r.Mount(withTool("switch", "[]", "if (off) { const o = off; off = null; await o(); return 'off' } off = ctx.provide('flaky', { who: () => 'on' }); return 'on'", "let off = null"))
	id := r.Mount(asks("asker", "flaky"))
	for range 5 {
		hasAll(t, stateOf(r, id), "pending", "waiting for: flaky")
		r.Works(r.Call("switch", nil), "on")
		eventuallyHas(r, "the wake-up", func() string { return stateOf(r, id) }, "running")
		r.Works(r.Call("asker", nil), "on")
		r.Works(r.Call("switch", nil), "off")
		eventuallyHas(r, "the parking", func() string { return stateOf(r, id) }, "pending")
		r.Fails(r.Call("asker", nil), "unknown tool")
	}
}

// A consumer that fails when its service comes back is told of with the mount
// that woke it, and a provider that is refused leaves the first one alone.
func TestComposeFailures(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	weak := r.Mount("return { name: 'weak', inject: ['base'], apply(ctx) { if (ctx.base.who() === 'bad') throw new Error('cannot use a bad base') } }")
	p := r.Mount(provider("p", "base", "good"))
	hasAll(t, stateOf(r, weak), "running")
	r.MountFails(provider("q", "base", "second"), `service "base" has been registered at <p>: it is provided by temporary Plugin `+p, "REPLACE")
	hasAll(t, stateOf(r, weak), "running")
	r.Unmount(p)
	res := r.Call("cordis_mount", map[string]string{"code": provider("p", "base", "bad")})
	r.Works(res, "Failed: weak: cannot use a bad base")
	hasAll(t, stateOf(r, weak), "failed", "cannot use a bad base")
	r.MountFails("return { name: 'x', apply(ctx) { ctx.provide('tools', {}) } }", "tools", "choose another name")
	r.MountFails("return { name: 'x', apply(ctx) { ctx.provide('timer', {}) } }", "timer", "reserved")
	r.MountFails("return { name: 'x', apply(ctx) { ctx.provide('own', ctx) } }", "Context", "never another context")
}

// TestNearServices: a plugin that waits for a service that nobody provides, and has
// nearly the name of another, is told so; one that waits for a known one is not.
func TestNearServices(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, selfmod.Config{})
	root.Mount(`return { name: 'maker', apply(ctx) { ctx.provide('greeter', {}) } }`)
	for _, tt := range []struct{ name, inject, near string }{
		{"of_the_catalog", "promt", `Nothing provides "promt"; did you mean "prompt"?`},
		{"of_a_plugin", "greetr", `Nothing provides "greetr"; did you mean "greeter"?`},
		{"known_but_absent", "prompt", ""},
		{"like_none", "quite_another", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			code := `return { inject: ['tools', '` + tt.inject + `'], apply() {} }`
			text := r.Works(r.Call("cordis_mount", map[string]string{"code": code}), "is pending", "missing services: "+tt.inject+";", tt.near)
			if tt.near == "" && strings.Contains(text, "Nothing provides") {
				t.Error(text)
			}
		})
	}
}

// TestNameForID: who gives a plugin's name where its id is asked for is told the id.
func TestNameForID(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	for _, name := range []string{"house-rules", "other", "other"} {
		r.Mount(`return { name: '` + name + `', apply() {} }`)
	}
	for name, want := range map[string]string{
		"house-rules": "; of that name: dyn-1 (give the id)", "other": "; of that name: dyn-2, dyn-3 (give the id)", "none": `what:"temporary")`,
	} {
		for _, res := range []*tool.Result{
			r.Call("cordis_unmount", map[string]string{"id": name}),
			r.Call("cordis_inspect", map[string]string{"what": "temporary", "name": name}),
		} {
			if text := r.Fails(res, `no temporary Plugin with id "`+name+`"`); !strings.HasSuffix(text, want) {
				t.Error(text)
			}
		}
	}
}
