package cordis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPlugin72to75(t *testing.T) {
	root, tr := world(t), &trace{}
	p := &Plugin{Name: "p", Apply: func(c *Context, config any) error {
		tr.add("%v %s", config, c)
		_, err := c.Inject(nil, func(c *Context) error { tr.add("%s", c); return nil })
		return err
	}}
	f := mount(t, root, p, 7)
	settle(t, f.Children()[0])
	tr.want(t, "7 Context <p>", "Context <p>")
	wantEqual(t, root.String(), "Context <root>")
	wantEqual(t, mount(t, root, &Plugin{Apply: p.Apply}, nil).Name(), "root")
	for name, bad := range map[string]*Plugin{ // 74
		"nil": nil, "no_apply": {Name: "x"}, "nameless_dependency": plugin("x", nil, ""),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := root.Mount(bad, nil)
			wantErr(t, err, ErrArgument)
		})
	}
	_, err := root.Inject(nil, nil)
	wantErr(t, err, ErrArgument)
}

func TestPlugin76to80Registry(t *testing.T) {
	root := world(t)
	r := root.Runtime()
	inner := plugin("inner", func(c *Context) error {
		_, err := evEffect.On(c, func(context.Context, string) {})
		return err
	})
	middle := plugin("middle", func(c *Context) error {
		must(evEffect.On(c, func(context.Context, string) {}))
		return must(c.Mount(inner, nil)).Await(c.Context())
	})
	outer := plugin("outer", func(c *Context) error {
		must(evEffect.On(c, func(context.Context, string) {}))
		return must(c.Mount(middle, nil)).Await(c.Context())
	})
	must(evEffect.On(root, func(context.Context, string) {}))
	top := mount(t, root, outer, nil) // 77
	wantEqual(t, len(r.listeners(&evEffect.event)), 4)
	if ps := r.Plugins(); len(ps) != 3 || ps[0] != outer || ps[1] != middle || ps[2] != inner {
		t.Fatalf("plugins %v", ps)
	}
	dispose(t, top)
	dispose(t, top)
	wantEqual(t, len(r.listeners(&evEffect.event)), 1)
	wantEqual(t, len(r.Plugins()), 0)

	a, b := mount(t, root, inner, nil), mount(t, root, inner, nil) // 79
	wantEqual(t, len(r.Plugins()), 1)
	dispose(t, a)
	wantEqual(t, len(r.Plugins()), 1)
	c := mount(t, root, inner, nil)
	gone := r.Remove(inner) // 80
	wantEqual(t, len(r.Plugins()), 0)
	if len(gone) != 2 || gone[0] != b || gone[1] != c {
		t.Fatalf("removed %v", gone)
	}
	for _, f := range gone {
		dispose(t, f)
		wantState(t, f, Disposed)
	}
	wantEqual(t, len(r.Remove(inner)), 0)
}

type numbers struct{ n int }

// configured takes numbers from 1 on; nil is 1.
func configured(tr *trace) *Plugin {
	return &Plugin{
		Name: "p",
		Config: func(raw any) (any, error) {
			switch v := raw.(type) {
			case nil:
				return numbers{1}, nil
			case int:
				if v > 0 {
					return numbers{v}, nil
				}
			case string:
				panic(v)
			}
			return nil, fmt.Errorf("n: want a number from 1 on, got %v (at a.n)", raw)
		},
		Apply: func(_ *Context, config any) error { tr.add("run %d", config.(numbers).n); return nil },
	}
}

// 82 with its new outcome: FAILED, and an event of it.
func TestPlugin82InvalidAtMount(t *testing.T) {
	root, tr := world(t), &trace{}
	statuses(root, tr)
	f := must(root.Mount(configured(tr), -1))
	err := f.Await(limit(t))
	wantErr(t, err, ErrConfig)
	if !strings.HasPrefix(err.Error(), "invalid config: n: want") || !strings.Contains(err.Error(), "at a.n") {
		t.Fatal(err)
	}
	wantState(t, f, Failed)
	tr.want(t, "p mounted=true pending", "p pending-failed")
	wantEqual(t, len(errorsLogged(root)), 1)
	settle(t, must(root.Mount(configured(tr), "panics")))
	wantEqual(t, len(errorsLogged(root)), 2)
}

func TestPlugin83to85Update(t *testing.T) {
	root, tr := world(t), &trace{}
	f := mount(t, root, configured(tr), 5)
	err := f.Update(limit(t), -1) // 83
	wantErr(t, err, ErrConfig)
	wantEqual(t, f.Config().(numbers).n, 5)
	wantState(t, f, Active)
	if err := f.Update(limit(t), nil); err != nil { // 84, 90
		t.Fatal(err)
	}
	tr.want(t, "run 5", "run 1")

	pending := configured(tr) // 85
	pending.Inject = Require("later")
	f = mount(t, root, pending, 5)
	if err := f.Update(limit(t), 6); err != nil {
		t.Fatal(err)
	}
	tr.want(t)
	mount(t, root, provider("x", "later"), nil)
	settle(t, f)
	tr.want(t, "run 6")
	f = mount(t, root, configured(tr), -1)
	wantState(t, f, Failed)
	if err := f.Update(limit(t), 7); err != nil {
		t.Fatal(err)
	}
	wantState(t, f, Active)
	tr.want(t, "run 7")
	dispose(t, f)
	wantErr(t, f.Update(limit(t), 8), ErrInactive)
	wantErr(t, f.Restart(limit(t)), ErrInactive)
	wantErr(t, root.Fiber().Update(limit(t), nil), ErrArgument)
}

func TestPlugin86and89UpdateListeners(t *testing.T) {
	root, tr := world(t), &trace{}
	type next = func(context.Context) (struct{}, error)
	veto := false
	listen := func(c *Context, name string, opts ...ListenOption) {
		must(Updating.On(c, func(ctx context.Context, u Update, next next) (struct{}, error) {
			tr.add("%s %v", name, u.Config)
			if veto {
				return struct{}{}, nil
			}
			return next(ctx)
		}, opts...))
	}
	body := func(c *Context) error {
		listen(c, "own")
		listen(c, "first", Prepend())
		return nil
	}
	f := mount(t, root, plugin("f", body), 1)
	listen(root, "global", Global())
	listen(root, "other")
	for i := range 3 { // 89: as many after restarts
		if err := f.Update(limit(t), i); err != nil {
			t.Fatal(err)
		}
		got := tr.take()
		if len(got) != 3 {
			t.Fatalf("update %d: %v", i, got)
		}
	}
	veto = true
	if err := f.Update(limit(t), 9); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, len(tr.take()), 1)
	wantEqual(t, f.Config(), any(2))
}

func TestPlugin87Coalesced(t *testing.T) {
	s := NewStepper(1)
	root := New(WithStepper(s))
	tr := &trace{}
	f := must(root.Mount(configured(tr), 1))
	s.Run(100)
	stopped, cancel := context.WithCancel(context.Background())
	cancel() // do not wait
	for _, n := range []int{2, 3} {
		wantErr(t, f.Update(stopped, n), context.Canceled)
	}
	s.Run(100)
	tr.want(t, "run 1", "run 3")
	wantErr(t, f.Update(stopped, 4), context.Canceled)
	f.RequestDispose()
	s.Run(100)
	tr.want(t)
	wantState(t, f, Disposed)
}

// 88 with its new outcome: an update while loading is not lost.
func TestPlugin88UpdateWhileLoading(t *testing.T) {
	root, tr := world(t), &trace{}
	loading, release := make(chan struct{}, 1), make(chan struct{})
	f := must(root.Mount(&Plugin{Name: "p", Apply: func(c *Context, config any) error {
		tr.add("run %v", config)
		loading <- struct{}{}
		<-release
		return nil
	}}, 1))
	<-loading
	updated := make(chan error)
	go func() { updated <- f.Update(context.Background(), 2) }()
	<-f.Context().Context().Done()
	close(release)
	if err := <-updated; err != nil {
		t.Fatal(err)
	}
	tr.want(t, "run 1", "run 2")
	wantState(t, f, Active)
}

func TestPluginErrors(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("bad", func(*Context) error { panic("boom") }), nil)
	var p *PanicError
	if !errors.As(f.Err(), &p) || p.Value != "boom" || len(p.Stack) == 0 {
		t.Fatalf("error %v", f.Err())
	}
	wantEqual(t, f.Err().Error(), `plugin "bad": panic: boom`)
	f = mount(t, root, plugin("nil", func(*Context) error { var none any; panic(none) }), nil)
	wantState(t, f, Failed)
}

func TestFiberAccessors(t *testing.T) {
	root := world(t)
	p := provider("p", "b", "a")
	f := mount(t, root, p, 3)
	if f.Parent() != root.Fiber() || f.Plugin() != p || f.Config() != 3 || f.Context().Fiber() != f || f.Context().Root() != root {
		t.Fatal("accessors")
	}
	wantEqual(t, root.Fiber().Provides(), []string{"a", "b"})
	wantEqual(t, State(9).String()+Mode(9).String(), "state(9)mode(9)")
	var names []string
	for _, s := range root.Runtime().Services() {
		names = append(names, s.Name+" "+s.Owner.Name()+" "+s.Realm.String())
	}
	wantEqual(t, names, []string{"a p root", "b p root"})
}
