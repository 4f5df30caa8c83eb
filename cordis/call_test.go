package cordis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestEnterRefused(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("p", nil, "never"), nil)
	_, _, err := f.Enter(limit(t), "call")
	wantErr(t, err, ErrInactive)
	if want := `cannot enter "call" on inactive context: fiber "p" (#1) is pending`; err.Error() != want {
		t.Fatalf("got %q", err)
	}
}

func TestEnterChainAndDoneTwice(t *testing.T) {
	root := world(t)
	a, b := mount(t, root, plugin("a", nil), nil), mount(t, root, plugin("b", nil), nil)
	ctx, doneA, err := a.Enter(context.Background(), "one")
	if err != nil {
		t.Fatal(err)
	}
	ctx, doneB, err := b.Enter(context.WithValue(ctx, evEffect, 1), "two")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range CallersIn(ctx) {
		names = append(names, f.Name())
	}
	wantEqual(t, names, []string{"a", "b"})
	if ctx.Value(evEffect) != 1 {
		t.Error("values do not travel")
	}
	wantEqual(t, len(CallersIn(context.Background())), 0)
	for _, done := range []func(){doneB, doneA, doneA, doneB} {
		done()
	}
	wantEqual(t, len(a.calls.running()), 0)
}

// Disposal waits for running calls, and the disposers for those.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, tr := world(t), &trace{}
		f := mount(t, root, plugin("p", func(c *Context) error {
			_, err := c.Defer("e", tr.undo("undone"))
			return err
		}), nil)
		ctx, done, err := f.Enter(context.Background(), "slow")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			// what a running call registers is undone after it
			if err := f.Context().Sleep(ctx, time.Second); err != nil {
				t.Error(err)
			}
			must(f.Context().Defer("late", tr.undo("late")))
			tr.add("call ends")
			done()
		}()
		began := time.Now()
		rec := dispose(t, f)
		wantEqual(t, time.Since(began), 2*time.Second)
		wantEqual(t, rec, Receipt{Drained: 1})
		tr.want(t, "call ends", "late", "undone")
	})
}

func TestDrainAbandons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, tr := world(t, WithDrainLimit(5*time.Second)), &trace{}
		f := mount(t, root, plugin("p", func(c *Context) error {
			_, err := c.Defer("e", tr.undo("undone"))
			return err
		}), nil)
		short, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_, done1, _ := f.Enter(short, "short")
		_, done2, _ := f.Enter(context.Background(), "endless")
		_, done3, _ := f.Enter(context.Background(), "fine")
		time.AfterFunc(4*time.Second, done3)
		began := time.Now()
		rec, err := f.Dispose(limit(t))
		wantErr(t, err, ErrAbandoned)
		wantEqual(t, rec, Receipt{Drained: 1, Abandoned: []string{"short", "endless"}})
		wantEqual(t, time.Since(began), 5*time.Second)
		tr.want(t, "undone")
		done1()
		done2()
	})
}

// What is mounted on a context of Drain has that limit, and so has what is below.
func TestDrainOfAContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := world(t, WithDrainLimit(time.Second))
		for name, c := range map[string]struct {
			on   *Context
			want time.Duration
		}{"runtime": {root, time.Second}, "longer": {root.Drain(time.Minute), time.Minute}, "back": {root.Drain(time.Minute).Drain(0), time.Second}} {
			var child *Fiber
			parent := mount(t, c.on, plugin(name, func(c *Context) error {
				child = must(c.Mount(plugin("child", nil), nil))
				return child.Await(c.Context())
			}), nil)
			_, done, _ := child.Enter(context.Background(), "endless")
			began := time.Now()
			_, err := parent.Dispose(context.Background())
			wantErr(t, err, ErrAbandoned)
			wantEqual(t, time.Since(began), c.want)
			done()
		}
	})
}

func TestReceiptCountsDescendants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := world(t, WithDrainLimit(time.Second))
		var child *Fiber
		parent := mount(t, root, plugin("parent", func(c *Context) error {
			child = must(c.Mount(plugin("child", func(c *Context) error {
				_, err := c.Defer("bad", func(context.Context) error { return errTest })
				return err
			}), nil))
			return child.Await(c.Context())
		}), nil)
		_, done1, _ := child.Enter(context.Background(), "endless")
		_, done2, _ := child.Enter(context.Background(), "short")
		done2()
		_, done3, _ := parent.Enter(context.Background(), "parent's")
		time.AfterFunc(time.Millisecond, done3)
		rec, err := parent.Dispose(limit(t))
		wantErr(t, err, ErrAbandoned)
		wantErr(t, rec.Err, errTest)
		rec.Err = nil
		wantEqual(t, rec, Receipt{Drained: 1, Abandoned: []string{"endless"}, Left: 1})
		wantEqual(t, len(errorsLogged(root)), 1) // once, though the parent's receipt has it too
		done1()
	})
}

// While a provider drains it serves its dependents, to the end of their disposers.
func TestDrainServesDependents(t *testing.T) {
	root, tr := world(t), &trace{}
	p := mount(t, root, provider("p", "s"), nil)
	enter := func(ctx context.Context, who string) {
		_, done, err := p.Enter(ctx, "call of "+who)
		if err != nil {
			tr.add("%s refused: %v", who, errors.Is(err, ErrInactive))
			return
		}
		tr.add("%s served while %s", who, p.State())
		done()
	}
	mount(t, root, plugin("d", func(c *Context) error {
		must(c.Mount(plugin("child", func(c *Context) error {
			_, err := c.Defer("e", func(ctx context.Context) error { enter(ctx, "child"); return nil })
			return err
		}), nil))
		_, err := c.Defer("e", func(ctx context.Context) error {
			enter(ctx, "dependent")
			enter(context.Background(), "stranger")
			return nil
		})
		return err
	}, "s"), nil)
	for _, f := range root.Runtime().Fibers() {
		settle(t, f)
	}
	dispose(t, p)
	tr.want(t, "dependent served while unloading", "stranger refused: true", "child served while unloading")
	enter(context.Background(), "late")
	tr.want(t, "late refused: true")
}

func TestDependentsUnwindBeforeProvidersDisposers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, tr := world(t), &trace{}
		link := func(name string, inject ...string) *Fiber {
			return mount(t, root, plugin(name, func(c *Context) error {
				must(c.Provide(name, 1))
				_, err := c.Defer("e", func(context.Context) error {
					tr.add("%s-start", name)
					time.Sleep(time.Second)
					tr.add("%s-end", name)
					return nil
				})
				return err
			}, inject...), nil)
		}
		a := link("a")
		link("b", "a")
		link("c", "b")
		dispose(t, a)
		tr.want(t, "c-start", "c-end", "b-start", "b-end", "a-start", "a-end")
	})
}

// ring is a fiber that injects a provider's service, with a parent and a child.
type ring struct {
	f, provider, parent *Fiber
	root                *Context
	wait                func(context.Context, *ring) error
	result              chan error
	ran                 bool
}

// try waits, and keeps the first result.
func (r *ring) try(ctx context.Context) {
	select {
	case r.result <- r.wait(ctx, r):
	default:
	}
}

// body waits from the place that from names, in its first run.
func (r *ring) body(from string) func(c *Context) error {
	listen := func(c *Context, who string) error {
		_, err := evEffect.On(c, func(ctx context.Context, to string) {
			if to == who {
				r.try(ctx)
			}
		})
		return err
	}
	return func(c *Context) error {
		if r.ran {
			return nil
		}
		r.ran, r.f = true, c.Fiber()
		must(c.Mount(plugin("child", func(c *Context) error { return listen(c, "child_listener") }), nil))
		switch from {
		case "status_observer":
			must(StatusChanged.On(c, func(ctx context.Context, ch StatusChange) {
				if ch.Fiber == r.f && ch.New == Active {
					r.try(ctx)
				}
			}))
		case "disposer":
			must(c.Defer("e", func(ctx context.Context) error { r.try(ctx); return nil }))
		case "body":
			r.try(c.Context())
		}
		return listen(c, "listener")
	}
}

// start mounts the ring and has it wait.
func (r *ring) start(t *testing.T, from string) {
	r.provider = mount(t, r.root, provider("provider", "s"), nil)
	r.parent = mount(t, r.root, plugin("parent", nil), nil)
	f := must(r.parent.Context().Mount(plugin("f", r.body(from), "s"), nil))
	settle(t, f)
	for _, g := range f.Children() {
		settle(t, g)
	}
	switch from {
	case "disposer":
		f.RequestDispose()
	case "listener", "child_listener":
		evEffect.Emit(context.Background(), r.root, from)
	case "call":
		ctx, done, err := f.Enter(context.Background(), "call")
		if err != nil {
			t.Fatal(err)
		}
		r.try(ctx)
		done()
	}
}

// 71: who waits for whom, from where. Every wait that could not end is refused
// at once, and what was asked for happens.
func TestSelf71(t *testing.T) {
	waits := map[string]func(ctx context.Context, r *ring) error{
		"await_self":       func(ctx context.Context, r *ring) error { return r.f.Await(ctx) },
		"restart_self":     func(ctx context.Context, r *ring) error { return r.f.Restart(ctx) },
		"update_self":      func(ctx context.Context, r *ring) error { return r.f.Update(ctx, nil) },
		"dispose_self":     func(ctx context.Context, r *ring) error { _, err := r.f.Dispose(ctx); return err },
		"dispose_parent":   func(ctx context.Context, r *ring) error { _, err := r.parent.Dispose(ctx); return err },
		"dispose_provider": func(ctx context.Context, r *ring) error { _, err := r.provider.Dispose(ctx); return err },
	}
	for _, from := range []string{"body", "disposer", "listener", "call", "child_listener", "status_observer"} {
		for name, wait := range waits {
			if name == "await_self" && from != "body" && from != "disposer" && from != "status_observer" {
				continue // settled: there is nothing to wait for
			}
			if from == "disposer" && (name == "restart_self" || name == "update_self") {
				continue // the fiber is disposed then
			}
			t.Run(from+"/"+name, func(t *testing.T) {
				r := &ring{root: world(t), wait: wait, result: make(chan error, 1)}
				r.start(t, from)
				select {
				case err := <-r.result:
					wantErr(t, err, ErrSelf)
					if !strings.Contains(err.Error(), "goes on") {
						t.Errorf("message %q", err)
					}
				case <-limit(t).Done():
					t.Fatal("deadlock")
				}
				gone := map[string]*Fiber{"dispose_self": r.f, "dispose_parent": r.parent, "dispose_provider": r.provider}[name]
				if gone == nil {
					gone = r.parent
					gone.RequestDispose()
				}
				settle(t, gone)
				wantState(t, gone, Disposed)
			})
		}
	}
}

// 24f, with disposers and with calls.
func TestSelf24fRings(t *testing.T) {
	t.Run("disposers", func(t *testing.T) {
		root := world(t)
		var a, b *Fiber
		body := func(other **Fiber) func(*Context) error {
			return func(c *Context) error {
				_, err := c.Defer("e", func(ctx context.Context) error {
					_, err := (*other).Dispose(ctx)
					return err
				})
				return err
			}
		}
		a = mount(t, root, plugin("a", body(&b)), nil)
		b = mount(t, root, plugin("b", body(&a)), nil)
		a.RequestDispose()
		b.RequestDispose()
		ra, rb := dispose(t, a), dispose(t, b)
		if !errors.Is(ra.Err, ErrSelf) && !errors.Is(rb.Err, ErrSelf) {
			t.Fatalf("neither was refused: %v, %v", ra.Err, rb.Err)
		}
	})
	t.Run("calls", func(t *testing.T) {
		root := world(t)
		a, b := mount(t, root, plugin("a", nil), nil), mount(t, root, plugin("b", nil), nil)
		errs := make(chan error, 2)
		ctxA, doneA, _ := a.Enter(context.Background(), "call a")
		ctxB, doneB, _ := b.Enter(context.Background(), "call b")
		go func() { _, err := b.Dispose(ctxA); doneA(); errs <- err }()
		go func() { _, err := a.Dispose(ctxB); doneB(); errs <- err }()
		e1, e2 := <-errs, <-errs
		if errors.Is(e1, ErrSelf) == errors.Is(e2, ErrSelf) {
			t.Fatalf("want one refusal, got %v and %v", e1, e2)
		}
		dispose(t, a)
		dispose(t, b)
	})
	t.Run("handles", func(t *testing.T) {
		root := world(t)
		var a, b *Handle
		a = must(root.Defer("a", func(ctx context.Context) error { return b.Dispose(ctx) }))
		b = must(root.Defer("b", func(ctx context.Context) error { return a.Dispose(ctx) }))
		wantErr(t, a.Dispose(limit(t)), ErrSelf)
		dispose(t, root.Fiber())
	})
}

// 24g: a body that does not return.
func TestDispose24gBodyHangs(t *testing.T) {
	root := world(t)
	release := make(chan struct{})
	running := make(chan struct{})
	f := must(root.Mount(plugin("hangs", func(*Context) error { close(running); <-release; return nil }), nil))
	<-running
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err := f.Dispose(ctx)
	wantErr(t, err, context.DeadlineExceeded)
	if want := `dispose fiber "hangs" (#1): it is still loading`; !strings.HasPrefix(err.Error(), want) {
		t.Fatal(err)
	}
	close(release)
	dispose(t, f)
}

// A wait of a child for its parent, which waits for nothing of the child, is no
// circle.
func TestSelfNoFalseAlarm(t *testing.T) {
	root := world(t)
	var got = make(chan error, 2)
	release := make(chan struct{})
	parent := must(root.Mount(plugin("parent", func(c *Context) error {
		must(c.Mount(plugin("child", func(child *Context) error {
			got <- c.Fiber().Await(child.Context())
			return nil
		}), nil))
		must(c.EffectAsync("e", func(ctx context.Context, _ *Setup) error {
			got <- c.Fiber().Await(ctx)
			return nil
		}))
		<-release
		return nil
	}), nil))
	close(release)
	for range 2 {
		if err := <-got; err != nil {
			t.Error(err)
		}
	}
	settle(t, parent)
	wantState(t, parent, Active)
}

func TestContextCancelledAtUnload(t *testing.T) {
	root := world(t)
	var first, second context.Context
	f := mount(t, root, plugin("p", func(c *Context) error {
		first, second = second, c.Context()
		return nil
	}), nil)
	if second.Err() != nil {
		t.Fatal("cancelled while active")
	}
	if err := f.Restart(limit(t)); err != nil {
		t.Fatal(err)
	}
	if first.Err() == nil || second.Err() != nil {
		t.Fatal("the first run's context must be cancelled, the second's not")
	}
	dispose(t, f)
	if second.Err() == nil || f.Context().Context().Err() == nil {
		t.Fatal("not cancelled after disposal")
	}
}
