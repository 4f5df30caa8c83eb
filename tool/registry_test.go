package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/google/go-cmp/cmp"
)

func TestRegisterRefuses(t *testing.T) {
	w := newWorld(t)
	tests := []struct {
		name string
		def  *Definition
		want string
	}{
		{"nil", nil, "the definition is nil"},
		{"empty-name", def(""), limits.ToolName},
		{"long-name", def(strings.Repeat("x", 65)), limits.ToolName},
		{"huge-name", def(strings.Repeat("x", 1<<20)), limits.ToolName},
		{"dotted-name", def("a.b"), `tool name "a.b" is not allowed`},
		{"newline-name", def("a\nb"), `"a\nb"`},
		{"trailing-newline", def("a\n"), limits.ToolName},
		{"reserved", def("run_code"), "reserved"},
		{"kind", def("x", func(d *Definition) { d.Kind = "dance" }), "allowed: read, edit"},
		{"no-parameters", def("x", func(d *Definition) { d.Parameters = nil }), `tool "x" must declare parameters`},
		{"no-schema", def("x", func(d *Definition) { d.Output.Schema = nil }), `tool "x" must declare output { schema, render, presentationMeta? }`},
		{"no-render", def("x", func(d *Definition) { d.Output.Render = nil }), `tool "x" must declare output { schema, render, presentationMeta? }`},
		{"no-execute", def("x", func(d *Definition) { d.Execute = nil }), `tool "x" must declare execute`},
		{"timeout", def("x", func(d *Definition) { d.Timeout = -1 }), `tool "x" timeoutMs must be a positive finite number`},
		{"scalar-parameters", def("x", func(d *Definition) { d.Parameters = stringOutput }), "must have an object at the root"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.r.Register(w.root, tt.def)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want it to contain %q", err, tt.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			if got := w.names(nil); len(got) != 0 {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestRegisterDuplicate(t *testing.T) {
	w := newWorld(t)
	agent := NewScope("agent", nil)
	m1 := WithMount(w.root, Mount{Number: 1, ID: "dyn-1", Plugin: "holder"})
	m2 := WithMount(w.root, Mount{Number: 2, ID: "dyn-2", Plugin: "other"})
	w.owner(w.root, "shell", def("bash"))
	w.owner(m1, "holder", def("held"))
	w.owner(WithScope(w.root, agent), "preset", def("scoped"))

	tests := []struct {
		name, tool, want string
		from             *cordis.Context
		mount            bool
	}{
		{"global-of-composition", "bash", `tool "bash" is already registered by the composition (shell): choose another name`, w.root, false},
		{"mount-of-composition", "bash", `tool "bash" is already registered by the composition (shell): choose another name`, m1, false},
		{"mount-of-mount", "held", `tool "held" is already registered by temporary Plugin dyn-1 (holder)`, m2, true},
		{"composition-of-mount", "held", `tool "held" is already registered by temporary Plugin dyn-1 (holder)`, w.root, true},
		{"scope", "scoped", `tool "scoped" is already registered in this scope by the composition (preset): choose another name`, WithScope(w.root, agent), false},
		{"mount-shadows-global", "bash", `tool "bash" is already registered by the composition (shell): choose another name`, WithScope(m2, agent), false},
		{"mount-shadows-outer-scope", "scoped", `already registered in this scope`, WithScope(m2, NewScope("child", agent)), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.r.Register(tt.from, def(tt.tool))
			dup, ok := errors.AsType[*DuplicateError](err)
			if !ok || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %s", err, tt.want)
			}
			if (dup.Mount != nil) != tt.mount || dup.Name != tt.tool {
				t.Errorf("got %+v", dup)
			}
		})
	}
	t.Run("composition-shadows", func(t *testing.T) {
		w.owner(WithScope(w.root, agent), "variant", def("bash", func(d *Definition) { d.Title = "nearer" }))
		if v, _ := w.r.Get("bash", agent); v.Title != "nearer" {
			t.Errorf("got %q", v.Title)
		}
		if v, _ := w.r.Get("bash", nil); v.Title != "bash" {
			t.Errorf("global: got %q", v.Title)
		}
	})
}

func TestRegisterIsAnEffect(t *testing.T) {
	w := newWorld(t)
	var changes []string
	_, err := Changed.On(w.root, func(_ context.Context, c Change) {
		_, found := w.r.Get(c.Name, c.Scope)
		changes = append(changes, fmt.Sprintf("%s %s visible=%v", c.Name, c.Action, found))
	})
	w.must(err)
	d := def("one")
	f := w.owner(w.root, "owner", d)
	d.Name, d.Execute = "changed", nil
	if got := w.call("one", `{}`); got.IsError {
		t.Errorf("the definition was not copied: %v", got.Error)
	}
	labels := []string{}
	for _, e := range f.Effects() {
		labels = append(labels, e.Label)
	}
	if diff := cmp.Diff([]string{`tools.register("one")`}, labels); diff != "" {
		t.Error(diff)
	}
	w.dispose(f)
	want := []string{"one registered visible=true", "one disposed visible=false"}
	if diff := cmp.Diff(want, changes); diff != "" {
		t.Error(diff)
	}
	w.owner(w.root, "again", def("one"))
}

func TestHandleTakesOneToolBack(t *testing.T) {
	w := newWorld(t)
	var hs handles
	f := w.plugin(w.root, "owner", func(c *cordis.Context) error {
		hs.add(w.r.Register(c, def("a")))
		hs.add(w.r.Register(c, def("b")))
		return nil
	})
	w.must(hs[0].Dispose(w.ctx()))
	if diff := cmp.Diff([]string{"b"}, w.names(nil)); diff != "" {
		t.Error(diff)
	}
	if got, want := text(w.call("a", "")), `Error: unknown tool "a" — it went with plugin owner of the composition (which took it back)`; got != want {
		t.Errorf("got %s", got)
	}
	w.dispose(f)
}

func TestFailedApplyLeavesNothing(t *testing.T) {
	w := newWorld(t)
	f, err := w.root.Mount(&cordis.Plugin{Name: "half", Apply: func(c *cordis.Context, _ any) error {
		for _, n := range []string{"a", "b"} {
			if _, err := w.r.Register(c, def(n)); err != nil {
				return err
			}
		}
		return errBoom
	}}, nil)
	w.must(err)
	if err := f.Await(w.ctx()); !errors.Is(err, errBoom) {
		t.Fatalf("got %v", err)
	}
	if got := w.names(nil); len(got) != 0 {
		t.Errorf("left behind: %v", got)
	}
	if got := text(w.call("a", "")); !strings.Contains(got, "(which failed: ") {
		t.Errorf("got %s", got)
	}
}

func TestListOrder(t *testing.T) {
	w := newWorld(t)
	m := func(n int) *cordis.Context {
		return WithMount(w.root, Mount{Number: n, ID: fmt.Sprintf("dyn-%d", n), Plugin: "p"})
	}
	ten, two := m(10), m(2)
	w.owner(ten, "ten", def("aa_ten"))
	second := &cordis.Plugin{Name: "two"}
	tools := []string{"zz_two", "bb_two"}
	second.Apply = func(c *cordis.Context, _ any) error {
		for _, n := range tools {
			if _, err := w.r.Register(c, def(n)); err != nil {
				return err
			}
		}
		return nil
	}
	f, err := two.Mount(second, nil)
	w.must(err)
	w.must(f.Await(w.ctx()))
	w.owner(w.root, "composition", def("shell"), def("Zed"), def("fetch"))
	want := []string{"Zed", "fetch", "shell", "zz_two", "bb_two", "aa_ten"}
	if diff := cmp.Diff(want, w.names(nil)); diff != "" {
		t.Fatal(diff)
	}
	t.Run("restart-keeps-places", func(t *testing.T) {
		tools = []string{"bb_two", "zz_two", "new_two"}
		w.must(f.Restart(w.ctx()))
		w.must(f.Await(w.ctx()))
		want := []string{"Zed", "fetch", "shell", "zz_two", "bb_two", "new_two", "aa_ten"}
		if diff := cmp.Diff(want, w.names(nil)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("scoped-tools-keep-the-order", func(t *testing.T) {
		s := NewScope("s", nil)
		w.owner(WithScope(w.root, s), "scoped", def("ping"), def("shell"))
		want := []string{"Zed", "fetch", "ping", "shell", "zz_two", "bb_two", "new_two", "aa_ten"}
		if diff := cmp.Diff(want, w.names(s)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestView(t *testing.T) {
	w := newWorld(t)
	no := false
	w.owner(w.root, "o", def("plain"), def("ls", func(d *Definition) { d.Kind = KindRead; d.Title = "List" }),
		def("own", func(d *Definition) { d.Kind = KindRead; d.Annotations = &Annotations{Idempotent: &no} }))
	v, _ := w.r.Get("ls", nil)
	if v.Title != "List" || v.Kind != KindRead || !*v.Annotations.ReadOnly || *v.Annotations.OpenWorld || v.Owner.Name() != "o" {
		t.Errorf("got %+v", v)
	}
	if v, _ = w.r.Get("plain", nil); v.Title != "plain" || v.Kind != KindOther || v.Annotations != nil {
		t.Errorf("got %+v", v)
	}
	if v, _ = w.r.Get("own", nil); v.Annotations.ReadOnly != nil || v.Annotations.Idempotent == nil {
		t.Errorf("got %+v", v.Annotations)
	}
	if _, ok := w.r.Get("nothing", nil); ok {
		t.Error("found nothing")
	}
}

func TestGone(t *testing.T) {
	w := newWorld(t)
	s, other := NewScope("s", nil), NewScope("other", nil)
	mount := WithMount(w.root, Mount{Number: 1, ID: "dyn-1", Plugin: "holder"})
	ask := func(name string, s *Scope) string {
		r := w.r.Execute(w.ctx(), Call{Name: name, Scope: s})
		if code(r) != CodeUnknownTool {
			t.Errorf("code %q", code(r))
		}
		return text(r)
	}
	w.dispose(w.owner(mount, "holder", def("was")))
	w.dispose(w.owner(WithScope(mount, s), "holder", def("scoped")))
	tests := []struct{ name, got, want string }{
		{"never", ask("x", nil), `Error: unknown tool "x"`},
		{"hostile-name", ask("x\n# y", nil), `Error: unknown tool "x\n# y"`},
		{"mount", ask("was", nil), `Error: unknown tool "was" — it went with temporary Plugin dyn-1 (unmounted)`},
		{"seen-from-a-scope", ask("was", s), `Error: unknown tool "was" — it went with temporary Plugin dyn-1 (unmounted)`},
		{"its-scope", ask("scoped", s), `Error: unknown tool "scoped" — it went with temporary Plugin dyn-1 (unmounted)`},
		{"not-other-scopes", ask("scoped", other), `Error: unknown tool "scoped"`},
		{"nor-the-global-layer", ask("scoped", nil), `Error: unknown tool "scoped"`},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	w.r.NoteGone("was", nil, "it went to the moon")
	if got := ask("was", nil); got != `Error: unknown tool "was" — it went to the moon` {
		t.Errorf("got %s", got)
	}
	again := w.owner(w.root, "again", def("was"))
	w.r.NoteGone("was", nil, "a lie about a tool that is there")
	w.dispose(again)
	if got := ask("was", nil); got != `Error: unknown tool "was" — it went with plugin again of the composition (unmounted)` {
		t.Errorf("got %s", got)
	}
	for i := range limits.RememberedGone {
		w.r.NoteGone(fmt.Sprintf("t%d", i), nil, "gone")
	}
	if got := ask("was", nil); got != `Error: unknown tool "was"` {
		t.Errorf("remembered beyond the limit: %s", got)
	}
	if got := ask("t0", nil); got != `Error: unknown tool "t0" — gone` {
		t.Errorf("forgot too soon: %s", got)
	}
}

func TestGoneParked(t *testing.T) {
	w := newWorld(t)
	provider := w.plugin(w.root, "provider", func(c *cordis.Context) error {
		_, err := c.Provide("greeter", 1)
		return err
	})
	mount := WithMount(w.root, Mount{Number: 2, ID: "dyn-2", Plugin: "consumer"})
	f, err := mount.Mount(&cordis.Plugin{Name: "consumer", Inject: cordis.Require("greeter"),
		Apply: func(c *cordis.Context, _ any) error { _, err := w.r.Register(c, def("greet")); return err }}, nil)
	w.must(err)
	w.must(f.Await(w.ctx()))
	if got := w.call("greet", ""); got.IsError {
		t.Fatal(got.Error)
	}
	w.dispose(provider)
	_ = f.Await(w.ctx())
	if got, want := text(w.call("greet", "")), `Error: unknown tool "greet" — it went with temporary Plugin dyn-2 (parked, waiting for greeter)`; got != want {
		t.Errorf("got %s", got)
	}
}

func TestContextsCarryScopeAndMount(t *testing.T) {
	w := newWorld(t)
	s := NewScope("s", nil)
	c := WithMount(WithScope(w.root, s), Mount{Number: 3, ID: "dyn-3", Plugin: "p"})
	f := w.plugin(c, "p", func(*cordis.Context) error { return nil })
	if m, ok := MountOf(f.Context()); !ok || m != (Mount{Number: 3, ID: "dyn-3", Plugin: "p"}) || ScopeOf(f.Context()) != s {
		t.Errorf("got %+v, %v, %s", m, ok, ScopeOf(f.Context()).Name())
	}
	if _, ok := MountOf(w.root); ok || ScopeOf(w.root) != nil {
		t.Error("the root belongs to a mount or a scope")
	}
}

func TestAnnotationsFor(t *testing.T) {
	tests := []struct {
		kind                  Kind
		read, destroys, opens string
	}{
		{KindRead, "true", "unsaid", "false"}, {KindSearch, "true", "unsaid", "false"}, {KindFetch, "true", "unsaid", "true"},
		{KindEdit, "false", "true", "false"}, {KindMove, "false", "true", "false"}, {KindDelete, "false", "true", "false"},
		{KindExecute, "false", "true", "true"},
	}
	say := func(b *bool) string {
		if b == nil {
			return "unsaid"
		}
		return fmt.Sprint(*b)
	}
	for _, tt := range tests {
		a := AnnotationsFor(tt.kind)
		if say(a.ReadOnly) != tt.read || say(a.Destructive) != tt.destroys || say(a.OpenWorld) != tt.opens {
			t.Errorf("%s: got %s %s %s", tt.kind, say(a.ReadOnly), say(a.Destructive), say(a.OpenWorld))
		}
	}
	if AnnotationsFor(KindOther) != nil {
		t.Error("other says something")
	}
}

func TestMountLimits(t *testing.T) {
	w := newWorld(t)
	c := WithMount(w.root, Mount{Number: 1, ID: "dyn-1", Plugin: "p"})
	if _, err := w.r.Register(c, def("x", func(d *Definition) { d.Unrouted = true })); err == nil || !strings.Contains(err.Error(), "cannot be unrouted") {
		t.Errorf("got %v", err)
	}
	var hs handles
	for i := range limits.Tools {
		hs.add(w.r.Register(c, def(fmt.Sprintf("t%d", i))))
	}
	want := fmt.Sprintf(`tool "more" was not registered: temporary Plugin dyn-1 (p) has %d tools already, the limit`, limits.Tools)
	if _, err := w.r.Register(c, def("more")); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	w.must(hs[0].Dispose(w.ctx()))
	hs.add(w.r.Register(c, def("more")))
}
