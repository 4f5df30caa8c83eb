package cordis

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var evEffect = NewEmit[string]("test/effect")

func TestEffect01LabelAndDispose(t *testing.T) {
	root, tr := world(t), &trace{}
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.Defer("test", tr.undo("undone"))
		return err
	}), nil)
	wantEqual(t, f.Effects(), []EffectInfo{{Label: "test"}})
	dispose(t, f)
	dispose(t, f)
	tr.want(t, "undone")
}

func TestEffect02HandleTwiceAndAnonymous(t *testing.T) {
	root, tr := world(t), &trace{}
	h := must(root.Defer("", tr.undo("undone")))
	wantEqual(t, h.Label(), "anonymous")
	for range 2 {
		if err := h.Dispose(limit(t)); err != nil {
			t.Fatal(err)
		}
	}
	tr.want(t, "undone")
}

// nested builds the effect of 3 and 4.
func nested(t *testing.T, root *Context, tr *trace) *Handle {
	on := func(name string) *Handle {
		return must(evEffect.On(root, func(context.Context, string) { tr.add("%s", name) }))
	}
	return must(root.Effect("outer", func(s *Setup) error {
		s.Collect(tr.undo("1"))
		s.Collect(tr.undo("2"))
		s.Adopt(on("heard"))
		in, err := root.Effect("inner", func(s *Setup) error {
			s.Adopt(on("heard too"))
			s.Collect(tr.undo("3"))
			return nil
		})
		s.Adopt(in)
		return err
	}))
}

func TestEffect03CompositeOrder(t *testing.T) {
	root, tr := world(t), &trace{}
	h := nested(t, root, tr)
	evEffect.Emit(limit(t), root, "")
	tr.want(t, "heard", "heard too")
	for range 2 {
		if err := h.Dispose(limit(t)); err != nil {
			t.Fatal(err)
		}
	}
	evEffect.Emit(limit(t), root, "")
	tr.want(t, "3", "2", "1")
}

func TestEffect04Tree(t *testing.T) {
	root, tr := world(t), &trace{}
	nested(t, root, tr)
	must(evEffect.On(root, func(context.Context, string) {}))
	on := EffectInfo{Label: `ctx.on("test/effect")`}
	wantEqual(t, root.Fiber().Effects(), []EffectInfo{
		{Label: "outer", Children: []EffectInfo{on, {Label: "inner", Children: []EffectInfo{on}}}}, on,
	})
}

// steps is an asynchronous effect of three steps of 100 ms.
func steps(tr *trace) func(context.Context, *Setup) error {
	return func(_ context.Context, s *Setup) error {
		for _, n := range [][2]string{{"1", "2"}, {"3", "4"}, {"5", "6"}} {
			if s.Stopped() {
				return nil
			}
			time.Sleep(100 * time.Millisecond)
			tr.add("%s", n[0])
			s.Collect(tr.undo(n[1]))
		}
		return nil
	}
}

func TestEffect05to10Async(t *testing.T) {
	for _, tt := range []struct {
		name  string
		after time.Duration // when it is disposed
		want  []string
	}{
		{"05_06_disposed_before_first_step_ends", 0, []string{"1", "2"}},
		{"07_10_disposed_after_setup", 400 * time.Millisecond, []string{"1", "3", "5", "6", "4", "2"}},
		{"08_disposed_in_first_step", 50 * time.Millisecond, []string{"1", "2"}},
		{"09_disposed_in_second_step", 150 * time.Millisecond, []string{"1", "3", "4", "2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				root, tr := world(t), &trace{}
				h := must(root.EffectAsync("steps", steps(tr)))
				tr.want(t)
				time.Sleep(tt.after)
				synctest.Wait()
				if err := h.Dispose(limit(t)); err != nil {
					t.Fatal(err)
				}
				tr.want(t, tt.want...)
			})
		})
	}
}

func TestEffect10WaitForSetup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, tr := world(t), &trace{}
		h := must(root.EffectAsync("steps", steps(tr)))
		if err := h.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
		tr.want(t, "1", "3", "5")
		h.Dispose(limit(t))
		tr.want(t, "6", "4", "2")
	})
}

var errTest = errors.New("test error")

func TestEffect11to14Failures(t *testing.T) {
	tr := &trace{}
	setups := map[string]struct {
		setup func(*Setup) error
		want  []string
	}{
		"11_13_at_once": {func(*Setup) error { return errTest }, nil},
		"12_14_17_after_one": {func(s *Setup) error {
			s.Collect(tr.undo("1"))
			return errTest
		}, []string{"1"}},
		"panic": {func(s *Setup) error {
			s.Collect(tr.undo("1"))
			panic(errTest)
		}, []string{"1"}},
	}
	for name, tt := range setups {
		t.Run(name, func(t *testing.T) {
			root := world(t)
			_, err := root.Effect("e", tt.setup)
			wantErr(t, err, errTest)
			tr.want(t, tt.want...)
			wantEqual(t, len(root.Fiber().Effects()), 0)
		})
		t.Run(name+"_async", func(t *testing.T) {
			root := world(t)
			start := make(chan struct{})
			h := must(root.EffectAsync("e", func(_ context.Context, s *Setup) error {
				<-start
				return tt.setup(s)
			}))
			time.AfterFunc(0, func() { close(start) })
			wantErr(t, h.Wait(limit(t)), errTest)
			h.Dispose(limit(t))
			tr.want(t, tt.want...)
			wantEqual(t, len(root.Fiber().Effects()), 0)
		})
	}
}

func TestEffect15DisposerFails(t *testing.T) {
	for name, fail := range map[string]Disposer{
		"error": func(context.Context) error { return errTest },
		"panic": func(context.Context) error { panic(errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			root := world(t)
			n := 0
			f := mount(t, root, plugin("p", func(c *Context) error {
				_, err := c.Defer("bad", func(ctx context.Context) error { n++; return fail(ctx) })
				return err
			}), nil)
			rec := dispose(t, f)
			wantErr(t, rec.Err, errTest)
			wantEqual(t, rec.Left, 1)
			wantState(t, f, Disposed)
			wantEqual(t, n, 1)
			if logged := errorsLogged(root); len(logged) != 1 {
				t.Fatalf("logged %q, want one error", logged)
			}
		})
	}
}

func TestEffect16and18RestartFromSetup(t *testing.T) {
	for name, fail := range map[string]error{"16_ok": nil, "18_fails": errTest} {
		t.Run(name, func(t *testing.T) {
			root, tr := world(t), &trace{}
			f := mount(t, root, plugin("p", nil), nil)
			restarted := make(chan error, 1)
			_, err := f.Context().Effect("e", func(s *Setup) error {
				wantErr(t, f.Restart(s.Context()), ErrSelf)
				s.Collect(func(context.Context) error {
					tr.add("undone")
					return nil
				})
				go func() { restarted <- f.Restart(context.Background()) }()
				tr.add("set up")
				return fail
			})
			if !errors.Is(err, fail) {
				t.Fatal(err)
			}
			if err := <-restarted; err != nil {
				t.Fatal(err)
			}
			tr.want(t, "set up", "undone")
			wantEqual(t, len(f.Effects()), 0)
			wantState(t, f, Active)
		})
	}
}

func TestEffect19SecondDisposeDoesNothing(t *testing.T) {
	root, tr := world(t), &trace{}
	h := must(root.Defer("e", tr.undo("undone")))
	h.Dispose(context.Background())
	tr.want(t, "undone") // when Dispose returns, not later
	h.Dispose(context.Background())
	tr.want(t)
}

func TestEffect20and40NoEffectsWhileUnloading(t *testing.T) {
	root, tr := world(t), &trace{}
	late := plugin("late", func(*Context) error { tr.add("ran"); return nil })
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.Defer("e", func(context.Context) error {
			_, err1 := c.Defer("x", tr.undo("x"))
			_, err2 := evEffect.On(c, func(context.Context, string) {})
			_, err3 := c.Mount(late, nil)
			_, err4 := c.Provide("late", 1)
			_, err5 := c.Timeout(0, func(context.Context) {})
			for _, err := range []error{err1, err2, err3, err4, err5} {
				var in *InactiveError
				if !errors.As(err, &in) || in.Code() != "INACTIVE_EFFECT" {
					t.Errorf("error %v, want INACTIVE_EFFECT", err)
				}
			}
			if !strings.HasPrefix(err1.Error(), "cannot create effect on inactive context") {
				t.Errorf("message %q", err1)
			}
			return nil
		})
		return err
	}), nil)
	if err := f.Restart(limit(t)); err != nil {
		t.Fatal(err)
	}
	wantState(t, f, Active)
	wantEqual(t, labels(f), []string{"e"})
	dispose(t, f)
	tr.want(t)
	wantEqual(t, len(root.Runtime().Plugins()), 0)
}

func TestEffect21PendingAndLoading(t *testing.T) {
	root, tr := world(t), &trace{}
	must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) {
		if ch.Mounted {
			must(ch.Fiber.Context().Defer("pending", tr.undo("pending")))
		}
	}))
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.Defer("loading", tr.undo("loading"))
		return err
	}), nil)
	dispose(t, f)
	tr.want(t, "loading", "pending")
}

func TestEffect22ParentJoinsChild(t *testing.T) {
	root, tr := world(t), &trace{}
	release, began := make(chan struct{}), make(chan struct{})
	var child *Fiber
	parent := mount(t, root, plugin("parent", func(c *Context) (err error) {
		child, err = c.Mount(plugin("child", func(c *Context) error {
			_, err := c.Defer("slow", func(context.Context) error {
				close(began)
				<-release
				tr.add("child")
				return nil
			})
			return err
		}), nil)
		return err
	}), nil)
	settle(t, child)
	child.RequestDispose()
	<-began
	parent.RequestDispose()
	time.AfterFunc(0, func() { close(release) })
	dispose(t, parent)
	tr.want(t, "child")
	wantState(t, child, Disposed)
}

// 23 is overridden: across the effects of a fiber too, one after the other.
func TestEffect23and24StrictlyReverse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, tr := world(t), &trace{}
		slow := func(name string) Disposer {
			return func(context.Context) error {
				tr.add("%s-start", name)
				time.Sleep(time.Second)
				tr.add("%s-end", name)
				return nil
			}
		}
		f := mount(t, root, plugin("p", func(c *Context) error {
			must(c.Defer("a", slow("a")))
			must(c.Mount(plugin("child", func(c *Context) error {
				_, err := c.Defer("k", slow("k"))
				return err
			}), nil))
			must(c.Effect("b", func(s *Setup) error {
				s.Collect(slow("b1"))
				s.Collect(slow("b2"))
				return nil
			}))
			_, err := c.Defer("c", tr.undo("c"))
			return err
		}), nil)
		synctest.Wait()
		dispose(t, f)
		tr.want(t, "c", "b2-start", "b2-end", "b1-start", "b1-end", "k-start", "k-end", "a-start", "a-end")
	})
}

// 25 is overridden: all disposers of an effect are attempted.
func TestEffect25AttemptAll(t *testing.T) {
	root, tr := world(t), &trace{}
	other := errors.New("other")
	h := must(root.Effect("e", func(s *Setup) error {
		s.Collect(func(context.Context) error { tr.add("1"); return other })
		s.Collect(func(context.Context) error { tr.add("2"); panic(errTest) })
		s.Collect(tr.undo("3"))
		return nil
	}))
	err := h.Dispose(limit(t))
	wantErr(t, err, errTest)
	wantErr(t, err, other)
	tr.want(t, "3", "2", "1")
	if logged := errorsLogged(root); len(logged) != 0 {
		t.Fatalf("the caller has the error, and it was logged: %q", logged)
	}
}

func TestEffect27and28InnerEffects(t *testing.T) {
	root, tr := world(t), &trace{}
	var loose, adopted *Handle
	outer := must(root.Effect("outer", func(s *Setup) error {
		loose = must(root.Defer("loose", tr.undo("loose")))
		adopted = must(root.Defer("adopted", tr.undo("adopted")))
		s.Adopt(adopted)
		s.Adopt(nil)
		return nil
	}))
	adopted.Dispose(limit(t))
	outer.Dispose(limit(t))
	tr.want(t, "adopted")
	loose.Dispose(limit(t))
	tr.want(t, "loose")
}

func TestEffect29AsyncNotAwaited(t *testing.T) {
	root, tr := world(t), &trace{}
	release := make(chan struct{})
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.EffectAsync("e", func(_ context.Context, s *Setup) error {
			<-release
			s.Collect(tr.undo("undone"))
			tr.add("set up")
			return nil
		})
		return err
	}), nil)
	wantState(t, f, Active)
	tr.want(t)
	f.RequestDispose()
	close(release)
	dispose(t, f)
	tr.want(t, "set up", "undone")
}

func TestEffect29AsyncToldToStop(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := c.EffectAsync("e", func(ctx context.Context, s *Setup) error {
			<-ctx.Done()
			if !s.Stopped() {
				t.Error("not stopped")
			}
			return nil
		})
		return err
	}), nil)
	dispose(t, f)
	h := must(root.EffectAsync("e", func(ctx context.Context, _ *Setup) error { <-ctx.Done(); return nil }))
	if err := h.Dispose(limit(t)); err != nil {
		t.Fatal(err)
	}
}

// 30 is overridden: such an error is logged.
func TestEffect30AsyncFailureIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := world(t)
		must(root.EffectAsync("e", func(context.Context, *Setup) error { return errTest }))
		synctest.Wait()
		if logged := errorsLogged(root); len(logged) != 1 || !strings.Contains(logged[0], "test error") {
			t.Fatalf("logged %q", logged)
		}
	})
}

func TestEffectLateCollect(t *testing.T) {
	root, tr := world(t), &trace{}
	var s *Setup
	h := must(root.Effect("e", func(in *Setup) error { s = in; return nil }))
	s.Collect(tr.undo("late"))
	tr.want(t)
	h.Dispose(limit(t))
	tr.want(t, "late")
	s.Collect(tr.undo("too late"))
	tr.want(t, "too late")
	if err := s.Context().Err(); err != nil {
		t.Fatal(err)
	}
}

// What is adopted already, or would be its own part, stays where it is.
func TestEffectAdoptOnce(t *testing.T) {
	root, tr := world(t), &trace{}
	var sa, sb *Setup
	a := must(root.Effect("a", func(s *Setup) error { sa = s; s.Collect(tr.undo("a")); return nil }))
	b := must(root.Effect("b", func(s *Setup) error { sb = s; s.Collect(tr.undo("b")); return nil }))
	sa.Adopt(b)
	sa.Adopt(b)
	sb.Adopt(a)
	sa.Adopt(a)
	wantEqual(t, root.Fiber().Effects(), []EffectInfo{{Label: "a", Children: []EffectInfo{{Label: "b"}}}})
	if err := a.Dispose(limit(t)); err != nil {
		t.Fatal(err)
	}
	sb.Adopt(must(root.Defer("late", tr.undo("late"))))
	tr.want(t, "b", "a", "late")
}

func TestEffectDisposeHonoursContext(t *testing.T) {
	root := world(t)
	release := make(chan struct{})
	h := must(root.Defer("slow", func(context.Context) error { <-release; return errTest }))
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	err := h.Dispose(ctx)
	wantErr(t, err, context.DeadlineExceeded)
	if !strings.Contains(err.Error(), `"slow"`) {
		t.Fatal(err)
	}
	close(release)
	wantErr(t, h.Dispose(limit(t)), errTest)
}

func TestEffectGoexit(t *testing.T) {
	root, tr := world(t), &trace{}
	exit := func() { runtime.Goexit() }
	f := mount(t, root, plugin("body", func(c *Context) error {
		must(c.Defer("first", tr.undo("first")))
		exit()
		return nil
	}), nil)
	wantState(t, f, Failed)
	tr.want(t, "first")
	g := mount(t, root, plugin("disposer", func(c *Context) error {
		must(c.Defer("first", tr.undo("first")))
		_, err := c.Effect("second", func(s *Setup) error {
			s.Collect(tr.undo("inner"))
			s.Collect(func(context.Context) error { exit(); return nil })
			return nil
		})
		return err
	}), nil)
	rec := dispose(t, g)
	tr.want(t, "inner", "first")
	if rec.Left != 1 || rec.Err == nil {
		t.Fatalf("receipt %+v", rec)
	}
	must(root.EffectAsync("async", func(_ context.Context, s *Setup) error {
		s.Collect(tr.undo("async"))
		exit()
		return nil
	})).Wait(limit(t))
	dispose(t, root.Fiber())
	if !slices.Contains(tr.take(), "async") {
		t.Fatal("the effect was not undone")
	}
}
