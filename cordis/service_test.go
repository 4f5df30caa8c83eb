package cordis

import (
	"context"
	"errors"
	"strings"
	"testing"
)

type clock interface{ now() int }

type fixed int

func (f fixed) now() int { return int(f) }

// ticker is how plugins see a clock.
type ticker interface{ Tick() int }

type bound struct {
	clock
	fiber *Fiber
}

func (b bound) Tick() int { return b.now() }

var (
	svcClock = NewService[clock]("test-clock", PluginInterface(func(v clock, c *Context) ticker { return bound{v, c.Fiber()} }))
	svcPlain = NewService[int]("test-plain")
)

func TestServiceDeclarations(t *testing.T) {
	root := world(t)
	d, ok := LookupService("test-clock")
	if !ok || !d.Injectable() || svcClock.Name() != "test-clock" {
		t.Fatalf("declaration %+v", d)
	}
	if b, ok := d.Bind(fixed(7), root).(bound); !ok || b.Tick() != 7 || b.fiber != root.Fiber() {
		t.Fatal("bound to something else")
	}
	if d, _ := LookupService("test-plain"); d.Injectable() {
		t.Fatal("injectable by default")
	}
	if _, ok := LookupService("nobody"); ok || len(Services()) < 2 {
		t.Fatal("lookup")
	}
	for _, name := range []string{"test-plain", ""} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("declaring %q did not panic", name)
				}
			}()
			NewService[int](name)
		}()
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a plugin interface for other values did not panic")
			}
		}()
		NewService[int]("test-other", PluginInterface[string, ticker](nil))
	}()
	_, err := root.Provide("test-plain", "text")
	wantErr(t, err, ErrArgument)
	_, err = root.Provide("", 1)
	wantErr(t, err, ErrArgument)
	must(svcPlain.Provide(root, 1))
	wantErr(t, root.Set("test-plain", "text"), ErrArgument)
	must(svcClock.Provide(root, fixed(3)))
	v := must(svcClock.Use(root))
	wantEqual(t, v.now(), 3)
	if err := svcClock.Set(root, fixed(4)); err != nil {
		t.Fatal(err)
	}
	v, ok = svcClock.Get(root)
	if !ok || v.now() != 4 {
		t.Fatal("get")
	}
}

func TestService92and93Access(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.Use("unknown")
		wantErr(t, err, ErrUndeclared)
		if !strings.HasPrefix(err.Error(), `cannot get property "unknown" without inject`) {
			t.Error(err)
		}
		err = c.Set("unknown", 1)
		wantErr(t, err, ErrMissing)
		if !strings.HasPrefix(err.Error(), `cannot set property "unknown" without provide`) {
			t.Error(err)
		}
		must(c.Provide("foo", 1))
		return c.Set("foo", 2)
	}), nil)
	wantState(t, f, Active)
	_, err := root.Provide("foo", 3)
	wantErr(t, err, ErrDuplicate)
	must(root.Provide("bar", 1))
	_, err = root.Provide("bar", 2)
	wantEqual(t, err.Error(), `service "bar" has been registered at <root>`)
	_, err = root.Use("none")
	wantErr(t, err, ErrMissing)
}

func TestService94Values(t *testing.T) {
	root := world(t)
	type key struct{}
	c := root.WithValue(key{}, "outer")
	f := mount(t, c, plugin("p", func(c *Context) error {
		wantEqual(t, c.Value(key{}), any("outer"))
		wantEqual(t, c.WithValue(key{}, "inner").Value(key{}), any("inner"))
		if _, ok := c.Get("outer"); ok {
			t.Error("a value is not a service")
		}
		return nil
	}), nil)
	wantEqual(t, f.Context().Value(key{}), any("outer"))
	wantEqual(t, root.Value(key{}), nil)
}

func TestService95and96Isolate(t *testing.T) {
	root := world(t)
	shared := NewRealm("shared")
	contexts := []*Context{root, root.Isolate("foo", nil), root.Isolate("foo", shared), root.Isolate("foo", shared).Isolate("other", nil)}
	p := plugin("p", nil, "foo")
	var fibers []*Fiber
	for _, c := range contexts {
		fibers = append(fibers, mount(t, c, p, nil))
	}
	check := func(step string, want ...State) {
		t.Helper()
		for i, f := range fibers {
			settle(t, f)
			if f.State() != want[i] {
				t.Fatalf("%s: fiber %d is %s, want %s", step, i, f.State(), want[i])
			}
		}
	}
	check("nothing", Pending, Pending, Pending, Pending)
	h0 := must(contexts[0].Provide("foo", 0))
	check("root", Active, Pending, Pending, Pending)
	h1 := must(contexts[1].Provide("foo", 1))
	h2 := must(contexts[2].Provide("foo", 2))
	check("all", Active, Active, Active, Active)
	for i, want := range []int{0, 1, 2, 2} {
		v, _ := contexts[i].Get("foo")
		wantEqual(t, v, any(want))
		wantEqual(t, must(fibers[i].Context().Use("foo")), any(want))
	}
	h2.Dispose(limit(t))
	check("shared gone", Active, Active, Pending, Pending)
	wantEqual(t, fibers[2].Waiting().Missing[0].Reason, `not provided in this realm (shared); "root" (#0) provides it in another (root)`)
	h1.Dispose(limit(t))
	h0.Dispose(limit(t))
	check("none", Pending, Pending, Pending, Pending)
	if _, ok := contexts[1].Get("foo"); ok {
		t.Fatal("still there")
	}
}

// 104, 105: effects belong to the context that is passed, so a service method
// that takes the caller's context registers for the caller.
func TestService104and105EffectsOfTheCaller(t *testing.T) {
	root := world(t)
	n := 0
	increase := func(c *Context) {
		n++
		must(c.Defer("increase", func(context.Context) error { n--; return nil }))
	}
	must(root.Provide("counter", increase))
	f := mount(t, root, plugin("p", func(c *Context) error {
		must(c.Use("counter")).(func(*Context))(c)
		return nil
	}, "counter"), nil)
	increase(root)
	wantEqual(t, n, 2)
	dispose(t, f)
	wantEqual(t, n, 1)
	increase(root)
	wantEqual(t, n, 2)
}

func TestService106and107Guarded(t *testing.T) {
	root := world(t)
	mount(t, root, provider("sibling", "side"), nil)
	parent := mount(t, root, plugin("parent", func(c *Context) error {
		must(c.Provide("mine", 1))
		must(c.Mount(plugin("child", nil), nil))
		must(c.Isolate("mine", nil).Mount(plugin("walled", nil), nil))
		return nil
	}), nil)
	child, walled := parent.Children()[0].Context(), parent.Children()[1].Context()
	_, err := child.Use("side") // 106
	wantErr(t, err, ErrUndeclared)
	if v, ok := child.Get("side"); !ok || v != "sibling" {
		t.Fatal("get must see it")
	}
	wantEqual(t, must(child.Use("mine")), any(1)) // 107
	_, err = walled.Use("mine")
	wantErr(t, err, ErrUndeclared)
	_, err = child.Isolate("mine", nil).Use("mine")
	wantErr(t, err, ErrUndeclared)
}

func TestService108StrictGet(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("p", func(c *Context) error {
		must(c.Provide("s", 1))
		if _, ok := c.Get("s"); ok {
			t.Error("available while its owner loads")
		}
		if _, ok := root.Peek("s"); !ok {
			t.Error("peek must see it")
		}
		_, err := c.Use("s")
		return err
	}), nil)
	wantState(t, f, Active)
	if _, ok := root.Get("s"); !ok {
		t.Fatal("not available")
	}
	if _, ok := root.Peek("none"); ok {
		t.Fatal("peek")
	}
}

func TestService109Set(t *testing.T) {
	root, tr := world(t), &trace{}
	must(root.Provide("s", 1))
	f := mount(t, root, plugin("p", func(c *Context) error { tr.add("run"); return nil }, "s"), nil)
	if err := root.Set("s", 2); err != nil {
		t.Fatal(err)
	}
	settle(t, f)
	tr.want(t, "run")
	wantEqual(t, must(f.Context().Use("s")), any(2))
	err := f.Context().Set("s", 3)
	if err == nil || !strings.Contains(err.Error(), "in multiple fibers") {
		t.Fatal(err)
	}
}

func TestService110Check(t *testing.T) {
	root, tr := world(t), &trace{}
	answer := "no"
	p := mount(t, root, plugin("provider", func(c *Context) error {
		_, err := c.Provide("s", 1, WithCheck(func(d *Context) bool {
			tr.add("asked for %v", d.Interceptions("s"))
			if answer == "panic" {
				panic("check")
			}
			return answer == "yes"
		}))
		return err
	}), nil)
	f := mount(t, root, &Plugin{Name: "d", Inject: []Dependency{{Name: "s", Config: "cfg"}}, Apply: func(*Context, any) error { return nil }}, nil)
	steps := []struct {
		answer string
		want   State
	}{{"no", Pending}, {"yes", Active}, {"yes", Active}, {"panic", Pending}, {"yes", Active}}
	for i, s := range steps {
		answer = s.answer
		if i > 0 {
			if got := root.Notify("s", "other"); len(got) != 1 || got[0] != f {
				t.Fatalf("notified %v", got)
			}
			settle(t, f)
		}
		wantState(t, f, s.want)
		tr.want(t, "asked for [cfg]")
	}
	answer = "no"
	root.Notify("s")
	settle(t, f)
	if w := f.Waiting().Missing; len(w) != 1 || !strings.Contains(w[0].Reason, "check is false") {
		t.Fatalf("waiting %+v", w)
	}
	logged := root.Runtime().Messages()
	if len(logged) != 1 || logged[0].Name != "provider" || logged[0].FiberID != p.ID() {
		t.Fatalf("logged %v", logged)
	}
}

func TestService111NilValue(t *testing.T) {
	root := world(t)
	must(svcClock.Provide(root, nil))
	f := mount(t, root, plugin("p", nil, "test-clock"), nil)
	wantState(t, f, Active)
	if v, err := svcClock.Use(f.Context()); v != nil || err != nil {
		t.Fatal(v, err)
	}
}

func TestService112Intercept(t *testing.T) {
	root := world(t)
	c := root.Intercept("s", "far").Intercept("s", "near").Intercept("other", 1)
	must(root.Provide("s", 1))
	f := mount(t, c, &Plugin{Inject: []Dependency{{Name: "s", Config: "own"}, {Name: "s"}}, Apply: func(*Context, any) error { return nil }}, nil)
	wantEqual(t, f.Context().Interceptions("s"), []any{"far", "near", "own"})
	wantEqual(t, len(root.Interceptions("s")), 0)
}

func TestService113RootDoesNotResolve(t *testing.T) {
	root := world(t)
	must(root.Isolate("s", nil).Provide("s", 1))
	if _, ok := root.Get("s"); ok {
		t.Fatal("seen through the wall")
	}
}

func TestServiceChangedEvents(t *testing.T) {
	root, tr := world(t), &trace{}
	must(ServiceChanged.On(root, func(_ context.Context, ch ServiceChange) {
		tr.add("%s of %s %v", ch.Name, ch.Owner.Name(), ch.Present)
	}))
	must(ServiceChanged.On(root.Isolate("s", nil), func(context.Context, ServiceChange) { tr.add("other realm") }))
	f := mount(t, root, provider("p", "s"), nil)
	dispose(t, f)
	h := must(root.Provide("t", 1))
	h.Dispose(limit(t))
	settle(t, root.Fiber())
	tr.want(t, "s of p true", "s of p false", "t of root true", "other realm", "t of root false", "other realm")
}

func TestServiceProvideDisposeFromDependent(t *testing.T) {
	root := world(t)
	h := must(root.Provide("s", 1))
	f := mount(t, root, plugin("d", func(c *Context) error {
		_, err := evEffect.On(c, func(ctx context.Context, _ string) {
			if err := h.Dispose(ctx); !errors.Is(err, ErrSelf) {
				t.Errorf("error %v, want ErrSelf", err)
			}
		})
		return err
	}, "s"), nil)
	evEffect.Emit(limit(t), root, "")
	if err := h.Dispose(limit(t)); err != nil {
		t.Fatal(err)
	}
	settle(t, f)
	wantState(t, f, Pending)
}
