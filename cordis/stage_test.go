package cordis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// offering is a plugin that provides name, listens, and counts its ends.
func offering(name string, v any, ends *atomic.Int64) *Plugin {
	return &Plugin{Name: fmt.Sprint(v), Apply: func(c *Context, _ any) error {
		if _, err := c.Provide(name, v); err != nil {
			return err
		}
		_, err := c.Defer("end", func(context.Context) error { ends.Add(1); return nil })
		return err
	}}
}

func settleSoon(t *testing.T, f *Fiber) {
	t.Helper()
	if err := f.Await(deadline(t)); err != nil {
		t.Fatal(f.Name(), err)
	}
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mountIn(t *testing.T, c *Context, p *Plugin) *Fiber {
	t.Helper()
	f, err := c.Mount(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	settleSoon(t, f)
	return f
}

func TestStageSwapsAService(t *testing.T) {
	root := New()
	empty := root.Runtime().Digest()
	var ends, runs atomic.Int64
	old := mountIn(t, root, offering("s", "old", &ends))
	var seen sync.Map
	user := mountIn(t, root, &Plugin{Name: "user", Inject: Require("s"), Apply: func(c *Context, _ any) error {
		v, err := c.Use("s")
		seen.Store(runs.Add(1), v)
		return err
	}})
	s := root.Runtime().NewStage(StageOptions{Replaces: []*Fiber{old}})
	fresh := mountIn(t, s.On(root), offering("s", "new", &ends))
	inside := mountIn(t, s.On(root), &Plugin{Name: "inside", Inject: Require("s"), Apply: func(c *Context, _ any) error {
		v, err := c.Use("s")
		seen.Store("inside", v)
		return err
	}})
	if v, _ := root.Get("s"); v != "old" {
		t.Fatalf("before the commit: %v", v)
	}
	if v, _ := seen.Load("inside"); v != "new" {
		t.Fatalf("inside of the stage: %v", v)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if v, _ := root.Get("s"); v != "new" {
		t.Fatalf("after the commit: %v", v)
	}
	if _, err := old.Dispose(deadline(t)); err != nil {
		t.Fatal(err)
	}
	settleSoon(t, user)
	if v, _ := seen.Load(int64(2)); runs.Load() != 2 || v != "new" || ends.Load() != 1 || inside.State() != Active {
		t.Fatalf("%d runs, then %v; %d ends; %s", runs.Load(), v, ends.Load(), inside.State())
	}
	if StageOf(fresh.Context()) != nil || !errors.Is(s.Commit(), ErrStage) || !errors.Is(s.Abort(deadline(t)), ErrStage) {
		t.Fatal("the stage is not over")
	}
	if err := fresh.Restart(deadline(t)); err != nil {
		t.Fatal(err)
	}
	settleSoon(t, user)
	if runs.Load() != 3 {
		t.Fatalf("%d runs after a restart of the provider", runs.Load())
	}
	if _, err := root.Fiber().Dispose(deadline(t)); err != nil || root.Runtime().Digest() != empty {
		t.Fatal(err, root.Runtime().Digest())
	}
}

func TestStageAbortLeavesNothing(t *testing.T) {
	root := New()
	var ends atomic.Int64
	old := mountIn(t, root, offering("s", "old", &ends))
	before := root.Runtime().Digest()
	s := root.Runtime().NewStage(StageOptions{Replaces: []*Fiber{old}})
	mountIn(t, s.On(root), offering("s", "new", &ends))
	if err := s.Abort(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if after := root.Runtime().Digest(); after != before || ends.Load() != 1 {
		t.Fatalf("before\n%s\nafter\n%s", before, after)
	}
}

var staged = NewEmit[string]("test/staged")

func TestStageListeners(t *testing.T) {
	root := New()
	var mu sync.Mutex
	var heard []string
	listener := func(name string) *Plugin {
		return &Plugin{Name: name, Apply: func(c *Context, _ any) error {
			_, err := staged.On(c, func(_ context.Context, what string) {
				mu.Lock()
				defer mu.Unlock()
				heard = append(heard, name+" "+what)
			})
			return err
		}}
	}
	old := mountIn(t, root, listener("old"))
	s := root.Runtime().NewStage(StageOptions{Replaces: []*Fiber{old}})
	mountIn(t, s.On(root), listener("new"))
	held := make(chan struct{})
	s.Linger(func(context.Context) { <-held })
	staged.Emit(t.Context(), root, "1")
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	staged.Emit(t.Context(), root, "2") // the old one lingers, and hears nothing
	if old.State() != Active {
		t.Fatal(old.State())
	}
	close(held)
	if err := s.Wait(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if _, err := old.Dispose(deadline(t)); err != nil {
		t.Fatal(err)
	}
	staged.Emit(t.Context(), root, "3")
	if got := fmt.Sprint(heard); got != "[old 1 new 2 new 3]" {
		t.Fatal(got)
	}
}

func TestStageTakesOnlyWhatItMay(t *testing.T) {
	root := New()
	var ends atomic.Int64
	other := mountIn(t, root, offering("s", "other", &ends))
	s := root.Runtime().NewStage(StageOptions{})
	f, err := s.On(root).Mount(offering("s", "new", &ends), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(deadline(t)); !errors.Is(err, ErrDuplicate) {
		t.Fatal(err)
	}
	claiming := root.Runtime().NewStage(StageOptions{MayTake: func(f *Fiber) bool { return f == other }})
	mountIn(t, claiming.On(root), offering("s", "newer", &ends))
	if got := claiming.Claimed(); len(got) != 1 || got[0] != other {
		t.Fatal(got)
	}
	third := root.Runtime().NewStage(StageOptions{Replaces: []*Fiber{other}})
	f, err = third.On(root).Mount(offering("s", "third", &ends), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(deadline(t)); !errors.Is(err, ErrDuplicate) {
		t.Fatal(err)
	}
	if err := claiming.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Dispose(deadline(t)); err != nil {
		t.Fatal(err)
	}
	if v, _ := root.Get("s"); v != "newer" {
		t.Fatal(v)
	}
}

// TestStageIsOneStep: who reads all the time never finds the service missing.
func TestStageIsOneStep(t *testing.T) {
	root := New()
	var ends atomic.Int64
	now := mountIn(t, root, offering("s", "0", &ends))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, ok := root.Get("s"); !ok {
					t.Error("it was missing")
					return
				}
			}
		})
	}
	for i := range 100 {
		s := root.Runtime().NewStage(StageOptions{Replaces: []*Fiber{now}})
		fresh := mountIn(t, s.On(root), offering("s", fmt.Sprint(i), &ends))
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		if _, err := now.Dispose(deadline(t)); err != nil {
			t.Fatal(err)
		}
		now = fresh
	}
	close(stop)
	readers.Wait()
}

func TestOverlay(t *testing.T) {
	root := New()
	var ends atomic.Int64
	var runs atomic.Int64
	var last atomic.Value
	place := root.Overlay(NewRealm("project"))
	user := mountIn(t, place, &Plugin{Name: "user", Inject: Require("undeclared"), Apply: func(c *Context, _ any) error {
		v, err := c.Use("undeclared")
		last.Store(fmt.Sprint(v))
		runs.Add(1)
		return err
	}})
	if user.State() != Pending {
		t.Fatal(user.State())
	}
	outer := mountIn(t, root, offering("undeclared", "outer", &ends))
	settleSoon(t, user)
	inner := mountIn(t, place, offering("undeclared", "inner", &ends))
	settleSoon(t, user)
	if runs.Load() != 2 || last.Load() != "inner" {
		t.Fatalf("%d runs, last %v", runs.Load(), last.Load())
	}
	if v, _ := root.Get("undeclared"); v != "outer" {
		t.Fatal(v)
	}
	if _, err := inner.Dispose(deadline(t)); err != nil {
		t.Fatal(err)
	}
	settleSoon(t, user)
	if runs.Load() != 3 || last.Load() != "outer" {
		t.Fatalf("%d runs, last %v", runs.Load(), last.Load())
	}
	if _, err := outer.Dispose(deadline(t)); err != nil {
		t.Fatal(err)
	}
	settleSoon(t, user)
	if user.State() != Pending {
		t.Fatal(user.State())
	}
}
