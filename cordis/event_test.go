package cordis

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	evEmit      = NewEmit[int]("test/emit", ForPlugins())
	evParallel  = NewParallel[int]("test/parallel")
	evSerial    = NewSerial[int, string]("test/serial")
	evBail      = NewBail[int, any]("test/bail")
	evWaterfall = NewWaterfall[int, int]("test/waterfall")
)

type nextInt = func(context.Context) (int, error)

func TestEventDeclarations(t *testing.T) {
	e, ok := LookupEvent("test/emit")
	if !ok || e != Event(evEmit) || e.Mode() != ModeEmit || !e.Listenable() || e.Name() != "test/emit" {
		t.Fatal("lookup")
	}
	if e, _ := LookupEvent("test/bail"); e.Listenable() || e.Mode().String() != "bail" {
		t.Fatal("default must be not listenable")
	}
	all := Events()
	if !slices.IsSortedFunc(all, func(a, b Event) int { return strings.Compare(a.Name(), b.Name()) }) || len(all) < 11 {
		t.Fatal("not sorted, or the internal ones are missing")
	}
	defer func() {
		if recover() == nil {
			t.Error("a second declaration did not panic")
		}
	}()
	NewEmit[int]("test/emit")
}

func TestEvent114and115OnOffOnce(t *testing.T) {
	root, tr := world(t), &trace{}
	h := must(evEmit.On(root, func(_ context.Context, n int) { tr.add("on %d", n) }))
	once := must(evEmit.On(root, func(_ context.Context, n int) { tr.add("once %d", n) }, Once()))
	evEmit.Emit(limit(t), root, 1)
	evEmit.Emit(limit(t), root, 2)
	h.Dispose(limit(t))
	once.Dispose(limit(t))
	evEmit.Emit(limit(t), root, 3)
	tr.want(t, "on 1", "once 1", "on 2")
}

// modes dispatches every mode and gives the errors.
func modes(ctx context.Context, c *Context, opts ...DispatchOption) map[string]error {
	out := map[string]error{}
	evEmit.Emit(ctx, c, 1, opts...)
	out["parallel"] = evParallel.Dispatch(ctx, c, 1, opts...)
	_, _, out["serial"] = evSerial.Dispatch(ctx, c, 1, opts...)
	_, _, out["bail"] = evBail.Dispatch(ctx, c, 1, opts...)
	_, out["waterfall"] = evWaterfall.Run(ctx, c, 1, func(context.Context, int) (int, error) { return 0, nil }, opts...)
	return out
}

// listenAll registers a listener of every mode that runs fn.
func listenAll(c *Context, fn func(mode string) error, opts ...ListenOption) {
	must(evEmit.On(c, func(context.Context, int) {
		if err := fn("emit"); err != nil {
			panic(err)
		}
	}, opts...))
	must(evParallel.On(c, func(context.Context, int) error { return fn("parallel") }, opts...))
	must(evSerial.On(c, func(context.Context, int) (string, bool, error) { return "", false, fn("serial") }, opts...))
	must(evBail.On(c, func(context.Context, int) (any, bool, error) { return nil, false, fn("bail") }, opts...))
	must(evWaterfall.On(c, func(ctx context.Context, _ int, next nextInt) (int, error) {
		if err := fn("waterfall"); err != nil {
			return 0, err
		}
		return next(ctx)
	}, opts...))
}

func TestEvent116to119and129Filters(t *testing.T) {
	root, tr := world(t), &trace{}
	for mode, err := range modes(limit(t), root) {
		if err != nil {
			t.Errorf("%s without listeners: %v", mode, err)
		}
	}
	type key struct{}
	in, out := root.WithValue(key{}, true), root
	listenAll(in, func(mode string) error { tr.add("in %s", mode); return nil })
	listenAll(out, func(mode string) error { tr.add("out %s", mode); return nil })
	listenAll(out, func(mode string) error { tr.add("global %s", mode); return nil }, Global())
	modes(limit(t), root, WithFilter(func(c *Context) bool { return c.Value(key{}) != nil }))
	var want []string
	for _, m := range []string{"emit", "parallel", "serial", "bail", "waterfall"} {
		want = append(want, "in "+m, "global "+m)
	}
	got := tr.take()
	slices.Sort(got)
	slices.Sort(want)
	wantEqual(t, got, want)
}

// 116-119, 123: emit contains the failures of listeners and calls them all; the
// other modes give them to the dispatcher, attributed.
func TestEvent116to119and123Failures(t *testing.T) {
	for name, fail := range map[string]func() error{
		"error": func() error { return errTest }, "panic": func() error { panic(errTest) },
	} {
		t.Run(name, func(t *testing.T) {
			root, tr := world(t), &trace{}
			f := mount(t, root, plugin("bad", func(c *Context) error {
				listenAll(c, func(string) error { return fail() })
				return nil
			}), nil)
			listenAll(root, func(mode string) error { tr.add("%s", mode); return nil })
			for mode, err := range modes(limit(t), root) {
				if !errors.Is(err, errTest) || !strings.Contains(err.Error(), `fiber "bad" (#1)`) {
					t.Errorf("%s gave %v", mode, err)
				}
			}
			tr.want(t, "emit", "parallel")
			logged := root.Runtime().Messages()
			if len(logged) != 1 || logged[0].FiberID != f.ID() {
				t.Fatalf("logged %v", logged)
			}
			wantState(t, f, Active)
		})
	}
}

func TestEvent120Waterfall(t *testing.T) {
	root := world(t)
	add := func(ctx context.Context, _ int, next nextInt) (int, error) {
		n, err := next(ctx)
		return n + 1, err
	}
	two := func(_ context.Context, n int) (int, error) { return n, nil }
	must(evWaterfall.On(root, add))
	must(evWaterfall.On(root, add))
	n, err := evWaterfall.Run(limit(t), root, 2, two)
	if n != 4 || err != nil {
		t.Fatal(n, err)
	}
	must(evWaterfall.On(root, func(context.Context, int, nextInt) (int, error) { return 1, nil }))
	must(evWaterfall.On(root, func(context.Context, int, nextInt) (int, error) { t.Error("called"); return 0, nil }))
	n, err = evWaterfall.Run(limit(t), root, 2, two)
	if n != 3 || err != nil {
		t.Fatal(n, err)
	}
}

func TestEvent121Order(t *testing.T) {
	root, tr := world(t), &trace{}
	for i, opts := range [][]ListenOption{nil, nil, {Prepend()}, {Prepend()}} {
		must(evEmit.On(root, func(context.Context, int) { tr.add("%d", i+1) }, opts...))
	}
	evEmit.Emit(limit(t), root, 0)
	tr.want(t, "4", "3", "1", "2")
}

// 122 as decided: what was removed during the dispatch is not called.
func TestEvent122ChangesDuringDispatch(t *testing.T) {
	root, tr := world(t), &trace{}
	var second *Handle
	must(evEmit.On(root, func(context.Context, int) {
		tr.add("first")
		second.Dispose(limit(t))
		must(evEmit.On(root, func(context.Context, int) { tr.add("added") }))
	}, Once()))
	second = must(evEmit.On(root, func(context.Context, int) { tr.add("removed") }))
	evEmit.Emit(limit(t), root, 0)
	tr.want(t, "first")
	evEmit.Emit(limit(t), root, 0)
	tr.want(t, "added")
}

func TestEvent124Parallel(t *testing.T) {
	root := world(t)
	other := errors.New("other")
	meet := make(chan struct{})
	must(evParallel.On(root, func(context.Context, int) error { meet <- struct{}{}; return errTest }))
	must(evParallel.On(root, func(context.Context, int) error { panic(other) }))
	must(evParallel.On(root, func(context.Context, int) error { <-meet; return nil }))
	err := evParallel.Dispatch(limit(t), root, 1)
	wantErr(t, err, errTest)
	wantErr(t, err, other)
}

func TestEvent125Bailing(t *testing.T) {
	for name, tt := range map[string]struct {
		result any
		bails  bool
	}{"zero": {0, true}, "empty": {"", true}, "true": {true, true}, "false": {false, false}, "nil": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			root := world(t)
			must(evBail.Listen(root, func(context.Context, any, func(context.Context) (any, error)) (any, error) {
				return tt.result, nil
			}))
			must(evBail.On(root, func(context.Context, int) (any, bool, error) { return "second", true, nil }))
			got, bailed, err := evBail.Dispatch(limit(t), root, 1)
			want := tt.result
			if !tt.bails {
				want = "second"
			}
			if got != want || !bailed || err != nil {
				t.Fatal(got, bailed, err)
			}
		})
	}
}

func TestEvent126Once(t *testing.T) {
	root, tr := world(t), &trace{}
	must(evEmit.On(root, func(ctx context.Context, _ int) {
		tr.add("called")
		evEmit.Emit(ctx, root, 2)
		panic("consumed all the same")
	}, Once()))
	evEmit.Emit(limit(t), root, 1)
	evEmit.Emit(limit(t), root, 1)
	tr.want(t, "called")
	wantEqual(t, len(root.Fiber().Effects()), 0)
}

func TestEvent127SameFunctionTwice(t *testing.T) {
	root, tr := world(t), &trace{}
	fn := func(context.Context, int) { tr.add("called") }
	h := must(evEmit.On(root, fn))
	must(evEmit.On(root, fn))
	h.Dispose(limit(t))
	evEmit.Emit(limit(t), root, 1)
	tr.want(t, "called")
}

// 128 with its new outcome: a fiber that is told to end is called no more.
func TestEvent128Unloading(t *testing.T) {
	root, tr := world(t), &trace{}
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := evEmit.On(c, func(context.Context, int) { tr.add("called") })
		return err
	}), nil)
	f.RequestDispose()
	evEmit.Emit(limit(t), f.Context(), 1) // a disposed context can emit
	dispose(t, f)
	evEmit.Emit(limit(t), f.Context(), 1)
	tr.want(t)
}

func TestEventLoadingFiberListens(t *testing.T) {
	root, tr := world(t), &trace{}
	mount(t, root, plugin("p", func(c *Context) error {
		must(evEmit.On(c, func(context.Context, int) { tr.add("called") }))
		evEmit.Emit(c.Context(), c, 1)
		return nil
	}), nil)
	tr.want(t, "called")
}

func TestEvent130Observers(t *testing.T) {
	root, tr := world(t), &trace{}
	must(Dispatching.On(root, func(_ context.Context, d Dispatch) { tr.add("%s %s %v", d.Mode, d.Name, d.Arg) }))
	modes(limit(t), root)
	tr.want(t, "emit test/emit 1", "emit test/parallel 1", "serial test/serial 1", "bail test/bail 1", "waterfall test/waterfall 1")
}

// 131 as decided: an error.
func TestEvent131NextTwice(t *testing.T) {
	root := world(t)
	late := make(chan nextInt, 1)
	must(evWaterfall.On(root, func(ctx context.Context, _ int, next nextInt) (int, error) {
		if _, err := next(ctx); err != nil {
			return 0, err
		}
		return next(ctx)
	}, Once()))
	inner := func(context.Context, int) (int, error) { return 1, nil }
	_, err := evWaterfall.Run(limit(t), root, 1, inner)
	wantErr(t, err, ErrNext)
	must(evWaterfall.On(root, func(_ context.Context, _ int, next nextInt) (int, error) {
		late <- next
		return 7, nil
	}))
	n, err := evWaterfall.Run(limit(t), root, 1, inner)
	wantEqual(t, n, 7)
	if err != nil {
		t.Fatal(err)
	}
	_, err = (<-late)(limit(t))
	wantErr(t, err, ErrNext)
}

func TestEventWaterfallErrorsPassThrough(t *testing.T) {
	root := world(t)
	must(evWaterfall.On(root, func(ctx context.Context, _ int, next nextInt) (int, error) {
		n, err := next(ctx)
		if errors.Is(err, errTest) {
			return n, err
		}
		return 0, errors.New("did not see it")
	}))
	_, err := evWaterfall.Run(limit(t), root, 1, func(context.Context, int) (int, error) { return 0, errTest })
	if err != errTest { // not attributed to a listener that only passed it on
		t.Fatal(err)
	}
}

// 132: from a listener; awaited is in TestSelf71.
func TestEvent132SelfDispose(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("p", func(c *Context) error {
		_, err := evEmit.On(c, func(context.Context, int) {
			c.Fiber().RequestDispose()
			if s := c.Fiber().State(); s != Unloading {
				t.Errorf("state %s", s)
			}
		})
		return err
	}), nil)
	evEmit.Emit(limit(t), root, 1)
	dispose(t, f)
	wantState(t, f, Disposed)
}

func TestEventDynamic(t *testing.T) {
	root, tr := world(t), &trace{}
	dynamic := func(result any, err error) Dynamic {
		return func(ctx context.Context, arg any, next func(context.Context) (any, error)) (any, error) {
			tr.add("%v", arg)
			if next != nil && err == nil && result == nil {
				return next(ctx)
			}
			return result, err
		}
	}
	f := mount(t, root, plugin("p", func(c *Context) error {
		for _, e := range []Event{evEmit, evParallel, evSerial, evBail, evWaterfall} {
			must(e.Listen(c, dynamic(nil, nil)))
		}
		return nil
	}), nil)
	for mode, err := range modes(limit(t), root) {
		if err != nil {
			t.Errorf("%s: %v", mode, err)
		}
	}
	tr.want(t, "1", "1", "1", "1", "1")
	for _, e := range []Event{evEmit, evParallel, evSerial, evBail, evWaterfall} {
		must(e.Listen(f.Context(), dynamic(nil, errTest)))
	}
	for mode, err := range modes(limit(t), root) {
		if !errors.Is(err, errTest) {
			t.Errorf("%s: %v", mode, err)
		}
	}
	wantEqual(t, len(errorsLogged(root)), 1) // emit
	dispose(t, f)
	must(evSerial.Listen(root, dynamic(7, nil)))
	must(evWaterfall.Listen(root, dynamic("seven", nil)))
	errs := modes(limit(t), root)
	wantErr(t, errs["serial"], ErrArgument)
	wantErr(t, errs["waterfall"], ErrArgument)
}

func TestEventListenerRegistering(t *testing.T) {
	root, tr := world(t), &trace{}
	instead := must(root.Defer("instead", tr.undo("undone")))
	must(ListenerRegistering.On(root, func(_ context.Context, r Registration) (*Handle, bool, error) {
		tr.add("%s once=%v", r.Event.Name(), r.Once)
		switch r.Event.Mode() {
		case ModeEmit:
			return instead, true, nil
		case ModeBail:
			return nil, false, errTest
		}
		return nil, false, nil
	}))
	h := must(evEmit.On(root, func(context.Context, int) { t.Error("called") }, Once()))
	if h != instead {
		t.Fatal("not replaced")
	}
	must(evSerial.On(root, func(context.Context, int) (string, bool, error) { return "yes", true, nil }))
	evEmit.Emit(limit(t), root, 1)
	if s, ok, err := evSerial.Dispatch(limit(t), root, 1); s != "yes" || !ok || err != nil {
		t.Fatal(s, ok, err)
	}
	_, err := evBail.On(root, func(context.Context, int) (any, bool, error) { return nil, false, nil })
	wantErr(t, err, errTest)
	tr.want(t, "test/emit once=true", "test/serial once=false", "test/bail once=false")
}

// A listener's run is a call of its fiber, so the fiber's disposal waits for it,
// and its context tells where it runs.
func TestEventListenerIsACall(t *testing.T) {
	root, tr := world(t), &trace{}
	entered, release := make(chan struct{}), make(chan struct{})
	f := mount(t, root, plugin("p", func(c *Context) error {
		must(c.Defer("e", tr.undo("undone")))
		_, err := evEmit.On(c, func(ctx context.Context, _ int) {
			if in := CallersIn(ctx); len(in) != 1 || in[0] != c.Fiber() {
				t.Errorf("callers %v", in)
			}
			close(entered)
			<-release
			tr.add("listener ends")
		})
		return err
	}), nil)
	go evEmit.Emit(context.Background(), root, 1)
	<-entered
	f.RequestDispose()
	time.AfterFunc(0, func() { close(release) })
	rec := dispose(t, f)
	wantEqual(t, rec.Drained, 1)
	tr.want(t, "listener ends", "undone")
}
