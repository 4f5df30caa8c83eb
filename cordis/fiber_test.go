package cordis

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// statuses traces the status events of a world.
func statuses(root *Context, tr *trace) {
	must(StatusChanged.On(root, func(_ context.Context, ch StatusChange) {
		tr.add("%s %s-%s", ch.Fiber.Name(), ch.Old, ch.New)
	}))
	must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) {
		tr.add("%s mounted=%v %s", ch.Fiber.Name(), ch.Mounted, ch.Fiber.State())
	}))
}

// 31, and 32 with its new outcome: the dependent runs again.
func TestFiber31and32Inertia(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := world(t)
		runs := 0
		dep := must(root.Provide("dep", 1))
		f := must(root.Mount(plugin("p", func(c *Context) error {
			runs++
			must(c.Defer("e", func(context.Context) error { time.Sleep(time.Second); return nil }))
			time.Sleep(time.Second)
			return nil
		}, "dep"), nil))
		at := func(ms int, want State) {
			t.Helper()
			time.Sleep(time.Until(start(t).Add(time.Duration(ms) * time.Millisecond)))
			synctest.Wait()
			wantState(t, f, want)
		}
		begin(t)
		at(400, Loading)
		go dep.Dispose(context.Background())
		at(800, Loading)
		at(1200, Unloading)
		dep = must(root.Provide("dep", 1))
		at(2200, Loading)
		at(3200, Active)
		wantEqual(t, runs, 2)

		begin(t)
		if err := f.Restart(limit(t)); err != nil { // 1 s down, 1 s up
			t.Fatal(err)
		}
		at(2000, Active)
		go f.Restart(context.Background())
		at(3400, Loading)
		go dep.Dispose(context.Background())
		synctest.Wait()
		must(root.Provide("dep", 1))
		at(3800, Loading)
		at(4200, Unloading)
		at(5200, Loading)
		at(6200, Active)
		wantEqual(t, runs, 5)
	})
}

var starts = map[string]time.Time{}

func begin(t *testing.T)           { starts[t.Name()] = time.Now() }
func start(t *testing.T) time.Time { return starts[t.Name()] }

func TestFiber33ProviderDisposed(t *testing.T) {
	root, tr := world(t), &trace{}
	p := mount(t, root, provider("provider", "s"), nil)
	d := mount(t, root, plugin("dependent", func(c *Context) error {
		_, err := c.Defer("e", func(context.Context) error {
			v, err := c.Use("s") // it can still be read while unwinding
			tr.add("%v %v", v, err)
			return nil
		})
		return err
	}, "s"), nil)
	wantState(t, d, Active)
	dispose(t, p)
	wantState(t, d, Pending)
	tr.want(t, "provider <nil>")
}

func TestFiber34OneOfTwoFails(t *testing.T) {
	root, tr := world(t), &trace{}
	p := &Plugin{Name: "p", Apply: func(c *Context, config any) error {
		must(evEffect.On(c, func(context.Context, string) { tr.add("%v", config) }))
		if config == "bad" {
			return errTest
		}
		return nil
	}}
	bad, good := mount(t, root, p, "bad"), mount(t, root, p, "good")
	wantState(t, bad, Failed)
	wantErr(t, bad.Err(), errTest)
	wantState(t, good, Active)
	evEffect.Emit(limit(t), root, "")
	tr.want(t, "good")
	wantEqual(t, len(errorsLogged(root)), 1)
}

func TestFiber35DependentsWaitForBody(t *testing.T) {
	root := world(t)
	release := make(chan struct{})
	p := must(root.Mount(plugin("p", func(c *Context) error {
		must(c.Provide("s", 1))
		<-release
		return nil
	}), nil))
	d := mount(t, root, plugin("d", nil, "s"), nil)
	wantState(t, d, Pending)
	close(release)
	settle(t, p)
	settle(t, d)
	wantState(t, d, Active)
}

func TestFiber36WrongOrder(t *testing.T) {
	root, tr := world(t), &trace{}
	link := func(name, provides string, inject ...string) *Plugin {
		return plugin(name, func(c *Context) error {
			tr.add("%s", name)
			_, err := c.Provide(provides, name)
			return err
		}, inject...)
	}
	c := must(root.Mount(link("c", "sc", "sa", "sb"), nil))
	b := must(root.Mount(link("b", "sb", "sa"), nil))
	a := must(root.Mount(link("a", "sa"), nil))
	for _, f := range []*Fiber{a, b, c} {
		settle(t, f)
		wantState(t, f, Active)
	}
	tr.want(t, "a", "b", "c")
}

func TestFiber37and78RemountLeavesNothing(t *testing.T) {
	root := world(t)
	before := root.Runtime().Digest()
	p := plugin("p", func(c *Context) error {
		must(evEffect.On(c, func(context.Context, string) {}))
		must(c.Inject(Require("own"), func(*Context) error { return nil }))
		_, err := c.Provide("own", 1)
		return err
	})
	counts := map[int]bool{}
	for range 3 {
		f := mount(t, root, p, nil)
		settle(t, f.Children()[0])
		wantState(t, f.Children()[0], Active)
		counts[len(f.Effects())] = true
		for _, g := range root.Runtime().Remove(p) {
			dispose(t, g)
		}
		wantEqual(t, root.Runtime().Digest(), before)
	}
	wantEqual(t, counts, map[int]bool{3: true})
}

func TestFiber38UseAfterDispose(t *testing.T) {
	root := world(t)
	mount(t, root, provider("p", "s"), nil)
	f := mount(t, root, plugin("d", nil, "s"), nil)
	wantEqual(t, must(f.Context().Use("s")), any("p"))
	dispose(t, f)
	_, err := f.Context().Use("s")
	wantErr(t, err, ErrInactive)
	if !strings.HasPrefix(err.Error(), `cannot get required service "s" in inactive context`) {
		t.Fatal(err)
	}
}

func TestFiber39RootDispose(t *testing.T) {
	root, tr := world(t), &trace{}
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.Defer("e", tr.undo("undone"))
		return err
	}), nil)
	for range 2 {
		dispose(t, root.Fiber())
		wantState(t, root.Fiber(), Active)
		wantState(t, f, Disposed)
		wantEqual(t, len(root.Fiber().Effects()), 0)
	}
	tr.want(t, "undone")
	wantEqual(t, root.Fiber().ID(), uint64(0))
	wantState(t, mount(t, root, plugin("again", nil), nil), Active)
}

// 43; and 44 with its new outcome: a failing observer changes nothing.
func TestFiber43and44CreationObservers(t *testing.T) {
	root, tr := world(t), &trace{}
	must(PluginChanged.On(root, func(context.Context, PluginChange) { panic(errTest) }))
	must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) {
		if ch.Mounted && ch.Fiber.Name() == "p" {
			if err := ch.Fiber.AddInject(Require("extra")...); err != nil {
				t.Error(err)
			}
		}
	}))
	f := mount(t, root, plugin("p", func(c *Context) error { tr.add("%v", must(c.Use("extra"))); return nil }), nil)
	wantState(t, f, Pending)
	wantErr(t, f.AddInject(Require("late")...), ErrArgument)
	mount(t, root, provider("x", "extra"), nil)
	settle(t, f)
	wantState(t, f, Active)
	tr.want(t, "x")
	wantEqual(t, len(errorsLogged(root)), 2)
}

func TestFiber45DisposalObserverFails(t *testing.T) {
	root, tr := world(t), &trace{}
	must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) {
		if !ch.Mounted {
			panic(errTest)
		}
	}))
	must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) { tr.add("mounted=%v", ch.Mounted) }))
	dispose(t, mount(t, root, plugin("p", nil), nil))
	tr.want(t, "mounted=true", "mounted=false")
	wantEqual(t, len(errorsLogged(root)), 1)
}

func TestFiber46ParentDisposedInCreation(t *testing.T) {
	for _, wait := range []bool{false, true} {
		root, tr := world(t), &trace{}
		parent := mount(t, root, plugin("parent", nil), nil)
		must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) {
			if !ch.Mounted {
				return
			}
			must(ch.Fiber.Context().Defer("e", tr.undo("undone")))
			if wait {
				dispose(t, parent)
				return
			}
			parent.RequestDispose()
		}))
		child := must(parent.Context().Mount(plugin("child", func(*Context) error { tr.add("ran"); return nil }), nil))
		dispose(t, parent)
		wantState(t, child, Disposed)
		tr.want(t, "undone")
		dispose(t, root.Fiber())
	}
}

func TestFiber47to52ProviderAndConsumer(t *testing.T) {
	root, tr := world(t), &trace{}
	p := provider("provider", "s")
	c := plugin("consumer", func(c *Context) error {
		_, err := evEffect.On(c, func(_ context.Context, s string) { tr.add("%s", s) })
		return err
	}, "s")
	consumer := mount(t, root, c, nil) // 48: first
	wantState(t, consumer, Pending)
	wantEqual(t, consumer.Waiting(), Waiting{Missing: []Missing{{"s", "not provided"}}})
	owner := mount(t, root, p, nil)
	settle(t, consumer)
	wantState(t, consumer, Active)
	wantEqual(t, consumer.Waiting(), Waiting{})
	second := mount(t, root, c, nil) // 47: after
	wantState(t, second, Active)
	dispose(t, second) // 52
	wantState(t, owner, Active)
	dispose(t, owner) // 49
	wantState(t, consumer, Pending)
	evEffect.Emit(limit(t), root, "gone")
	mount(t, root, p, nil) // 50
	settle(t, consumer)
	evEffect.Emit(limit(t), root, "back")
	tr.want(t, "back")
	dup := mount(t, root, provider("other", "s"), nil) // 51
	wantState(t, dup, Failed)
	wantErr(t, dup.Err(), ErrDuplicate)
	if !strings.Contains(dup.Err().Error(), `service "s" has been registered at <provider>`) {
		t.Fatal(dup.Err())
	}
}

func TestFiber53and54Subtree(t *testing.T) {
	root := world(t)
	host := mount(t, root, plugin("host", func(c *Context) error {
		for range 3 {
			must(c.Mount(plugin("dynamic", func(c *Context) error {
				must(evEffect.On(c, func(context.Context, string) { t.Error("called") }))
				_, err := c.Mount(plugin("inner", nil), nil)
				return err
			}), nil))
		}
		return nil
	}), nil)
	for _, f := range root.Runtime().Fibers() {
		settle(t, f)
	}
	wantEqual(t, len(root.Runtime().Fibers()), 7)
	dispose(t, host)
	evEffect.Emit(limit(t), root, "")
	wantEqual(t, len(root.Runtime().Fibers()), 0)
	if _, err := host.Dispose(limit(t)); err != nil { // again: the same receipt
		t.Fatal(err)
	}
}

func TestFiber55to57StatusTrace(t *testing.T) {
	root, tr := world(t), &trace{}
	statuses(root, tr)
	f := mount(t, root, plugin("ok", nil), nil)
	dispose(t, f)
	tr.want(t, "ok mounted=true pending", "ok pending-loading", "ok loading-active",
		"ok mounted=false unloading", "ok active-unloading", "ok unloading-disposed")
	f = mount(t, root, plugin("bad", func(c *Context) error {
		must(c.Defer("e", tr.undo("undone")))
		return errTest
	}), nil)
	tr.want(t, "bad mounted=true pending", "bad pending-loading", "bad loading-unloading", "undone", "bad unloading-failed")
	dispose(t, f)
	tr.want(t, "bad mounted=false failed", "bad failed-disposed")
	dispose(t, mount(t, root, plugin("waits", nil, "never"), nil))
	tr.want(t, "waits mounted=true pending", "waits mounted=false pending", "waits pending-disposed")
}

func TestFiber58DisposeBeforeBody(t *testing.T) {
	s := NewStepper(1)
	root := New(WithStepper(s))
	ran := false
	f := must(root.Mount(plugin("p", func(*Context) error { ran = true; return nil }), nil))
	s.Step() // decides to load
	wantState(t, f, Loading)
	f.RequestDispose()
	if !s.Run(100) || ran {
		t.Fatal("the body ran, or the fiber did not settle")
	}
	wantState(t, f, Disposed)
}

func TestFiber59DisposeWhileLoading(t *testing.T) {
	root, tr := world(t), &trace{}
	f := mount(t, root, plugin("p", func(c *Context) error {
		must(c.Defer("a", tr.undo("a")))
		c.Fiber().RequestDispose()
		if c.Context().Err() == nil {
			t.Error("the context was not cancelled")
		}
		_, err := c.Defer("b", tr.undo("b"))
		wantErr(t, err, ErrInactive)
		_, _, err = c.Fiber().Enter(context.Background(), "call")
		wantErr(t, err, ErrInactive)
		tr.add("end")
		return nil
	}), nil)
	dispose(t, f)
	tr.want(t, "end", "a")
	wantState(t, f, Disposed)
}

func TestFiber60LostWhileLoading(t *testing.T) {
	root, tr := world(t), &trace{}
	dep := must(root.Provide("dep", 1))
	loading, lost := make(chan struct{}), make(chan struct{})
	f := must(root.Mount(plugin("p", func(c *Context) error {
		close(loading)
		<-lost
		_, err := c.Defer("e", tr.undo("undone"))
		return err
	}, "dep"), nil))
	<-loading
	done := make(chan error)
	go func() { done <- dep.Dispose(context.Background()) }()
	<-f.Context().Context().Done()
	close(lost)
	if err := <-done; err != nil { // 66: it waits for the dependent
		t.Fatal(err)
	}
	tr.want(t, "undone")
	settle(t, f)
	wantState(t, f, Pending)
	wantEqual(t, len(f.Effects()), 0)
}

func TestFiber61AwaitPending(t *testing.T) {
	root := world(t)
	f := must(root.Mount(plugin("p", nil, "never"), nil))
	if err := f.Await(limit(t)); err != nil {
		t.Fatal(err)
	}
	wantState(t, f, Pending)
}

func TestFiber62FailingChild(t *testing.T) {
	for _, wait := range []bool{false, true} {
		root := world(t)
		parent := mount(t, root, plugin("parent", func(c *Context) error {
			child := must(c.Mount(plugin("child", func(*Context) error { return errTest }), nil))
			if wait {
				return child.Await(c.Context())
			}
			return nil
		}), nil)
		if wait {
			wantState(t, parent, Failed)
			wantErr(t, parent.Err(), errTest)
			continue
		}
		wantState(t, parent, Active)
		settle(t, parent.Children()[0])
		wantState(t, parent.Children()[0], Failed)
	}
}

func TestFiber63and64Diamond(t *testing.T) {
	root, tr := world(t), &trace{}
	part := func(name string, inject ...string) *Fiber {
		return mount(t, root, plugin(name, func(c *Context) error {
			tr.add("%s", name)
			_, err := c.Provide(name, 1)
			return err
		}, inject...), nil)
	}
	base := part("base")
	l, r := part("left", "base"), part("right", "base")
	top := part("top", "left", "right")
	tr.want(t, "base", "left", "right", "top")
	for _, again := range []int{1, 2} { // 64: two restarts at once are one
		root.Runtime().mu.Lock()
		for range again {
			base.again()
		}
		root.Runtime().mu.Unlock()
		for _, f := range []*Fiber{base, l, r, top} {
			settle(t, f)
			wantState(t, f, Active)
		}
		got := tr.take()
		if len(got) != 4 || got[0] != "base" || got[3] != "top" {
			t.Fatalf("runs %v", got)
		}
	}
}

func TestFiber65ChildrenOfDependent(t *testing.T) {
	root := world(t)
	p := mount(t, root, provider("p", "s"), nil)
	d := mount(t, root, plugin("d", func(c *Context) error {
		_, err := c.Mount(plugin("child", nil), nil)
		return err
	}, "s"), nil)
	child := d.Children()[0]
	dispose(t, p)
	wantState(t, child, Disposed)
	wantState(t, d, Pending)
	wantEqual(t, len(d.Children()), 0)
}

func TestFiber67Cycles(t *testing.T) {
	root := world(t)
	a := mount(t, root, &Plugin{Name: "a", Inject: Require("sb"), Provides: []string{"sa"}, Apply: func(*Context, any) error { return nil }}, nil)
	b := mount(t, root, &Plugin{Name: "b", Inject: Require("sa"), Provides: []string{"sb"}, Apply: func(*Context, any) error { return nil }}, nil)
	self := mount(t, root, &Plugin{Name: "self", Inject: Require("own"), Provides: []string{"own"}, Apply: func(*Context, any) error { return nil }}, nil)
	outside := mount(t, root, plugin("outside", nil, "sa"), nil)
	for _, f := range []*Fiber{a, b, self, outside} {
		wantState(t, f, Pending)
	}
	wantEqual(t, a.Waiting(), Waiting{
		Missing: []Missing{{"sb", `not provided; "b" (#2), which provides it, is pending`}},
		Cycle:   []string{"a", "b", "a"},
	})
	wantEqual(t, self.Waiting(), Waiting{Missing: []Missing{{"own", "not provided"}}, Cycle: []string{"self", "self"}})
	wantEqual(t, len(outside.Waiting().Cycle), 0)
}

// 68 and 69 as decided: only a restart or a new configuration retries.
func TestFiber68and69Failed(t *testing.T) {
	root := world(t)
	fail, runs := true, 0
	p := mount(t, root, provider("p", "s"), nil)
	f := mount(t, root, plugin("f", func(*Context) error {
		if runs++; fail {
			return errTest
		}
		return nil
	}, "s"), nil)
	wantState(t, f, Failed)
	if err := p.Restart(limit(t)); err != nil {
		t.Fatal(err)
	}
	settle(t, f)
	wantState(t, f, Failed)
	wantEqual(t, runs, 1)
	_, err := f.Context().Defer("e", func(context.Context) error { return nil })
	wantErr(t, err, ErrInactive)
	fail = false
	if err := f.Restart(limit(t)); err != nil {
		t.Fatal(err)
	}
	wantState(t, f, Active)
	wantEqual(t, f.Err(), nil)
}

func TestFiber70ServiceOfFailedBody(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("bad", func(c *Context) error {
		must(c.Provide("s", 1))
		panic("no")
	}), nil)
	wantState(t, f, Failed)
	wantState(t, mount(t, root, provider("good", "s"), nil), Active)
}

func TestFiberProviderRestartRestartsDependents(t *testing.T) {
	root, tr := world(t), &trace{}
	p := mount(t, root, provider("p", "s"), nil)
	d := mount(t, root, plugin("d", func(*Context) error { tr.add("run"); return nil }, "s"), nil)
	if err := p.Restart(limit(t)); err != nil {
		t.Fatal(err)
	}
	settle(t, d)
	tr.want(t, "run", "run")
}

func TestFiberOptionalDependency(t *testing.T) {
	root, tr := world(t), &trace{}
	f := mount(t, root, &Plugin{Name: "p", Inject: []Dependency{{Name: "opt", Optional: true}}, Apply: func(*Context, any) error {
		tr.add("run")
		return nil
	}}, nil)
	wantState(t, f, Active)
	_, err := f.Context().Use("opt")
	wantErr(t, err, ErrMissing)
	p := mount(t, root, provider("x", "opt"), nil)
	wantEqual(t, must(f.Context().Use("opt")), any("x"))
	dispose(t, p)
	wantState(t, f, Active)
	tr.want(t, "run")
}

// An error of a run that is outdated does not fail the fiber.
func TestFiberOutdatedErrorIsNotKept(t *testing.T) {
	root := world(t)
	dep := must(root.Provide("dep", 1))
	loading := make(chan struct{})
	f := must(root.Mount(plugin("p", func(c *Context) error {
		close(loading)
		<-c.Context().Done()
		loading = make(chan struct{})
		return errTest
	}, "dep"), nil))
	<-loading
	if err := dep.Dispose(limit(t)); err != nil {
		t.Fatal(err)
	}
	settle(t, f)
	wantState(t, f, Pending)
	wantEqual(t, f.Err(), nil)
	wantEqual(t, len(errorsLogged(root)), 1)
}
