package cordis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// replacing opens a stage of root that replaces fibers.
func replacing(root *Context, fibers ...*Fiber) *Stage {
	return root.Runtime().NewStage(StageOptions{Replaces: fibers})
}

func commit(t testing.TB, s *Stage) {
	t.Helper()
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestStageSeesTheWorldToCome: what goes cannot be injected in the stage, and a
// staged fiber starts once, with what is there after the commit.
func TestStageSeesTheWorldToCome(t *testing.T) {
	root, tr := world(t), &trace{}
	old := mount(t, root, provider("old", "s", "gone"), nil)
	s := replacing(root, old)
	user := mount(t, s.On(root), plugin("user", func(c *Context) error {
		tr.add("%v", must(c.Use("s")))
		return nil
	}, "s"), nil)
	lost := mount(t, s.On(root), plugin("lost", nil, "gone"), nil)
	if _, ok := user.Context().Get("gone"); ok || user.State() != Pending {
		t.Fatalf("the stage sees what goes: %s", user.State())
	}
	mount(t, s.On(root), provider("new", "s"), nil)
	settle(t, user)
	tr.want(t, "new")
	commit(t, s)
	settle(t, user)
	tr.want(t)
	wantState(t, user, Active)
	wantState(t, lost, Pending)
	// A fiber that is given up later is lost sight of as well.
	s = replacing(root)
	late := mount(t, s.On(root), plugin("late", nil, "s"), nil)
	wantState(t, late, Active)
	s.Replace(user.Parent().Children()...)
	settle(t, late)
	wantState(t, late, Pending)
	wantErr(t, s.Commit(), ErrArgument) // its own fibers are among them
	if err := s.Abort(limit(t)); err != nil {
		t.Fatal(err)
	}
}

// TestStageRetired: while calls linger, what was replaced goes on as it was, does
// not run again, and what it registers is hidden.
func TestStageRetired(t *testing.T) {
	root, tr := world(t), &trace{}
	a := mount(t, root, provider("a1", "a"), nil)
	b := mount(t, root, plugin("b1", func(c *Context) error {
		tr.add("b1 runs with %v", must(c.Use("a")))
		must(c.Provide("b", "b1"))
		must(c.Mount(plugin("child", nil, "b"), nil))
		return nil
	}, "a"), nil)
	settle(t, b.Children()[0])
	s := replacing(root, a, b)
	mount(t, s.On(root), provider("a2", "a"), nil)
	fresh := mount(t, s.On(root), plugin("b2", func(c *Context) error {
		tr.add("b2 runs with %v", must(c.Use("a")))
		must(c.Provide("b", "b2"))
		return nil
	}, "a"), nil)
	release := make(chan struct{})
	s.Linger(func(context.Context) { <-release })
	commit(t, s)
	settle(t, b)
	tr.want(t, "b1 runs with a1", "b2 runs with a2")
	ctx, done, err := b.Enter(limit(t), "a late call")
	if err != nil {
		t.Fatal(err)
	}
	c := b.Context()
	for name, want := range map[string]any{"a": "a1", "b": "b1"} {
		if v, err := c.Use(name); v != want {
			t.Errorf("the old one sees %s as %v, %v", name, v, err)
		}
		if v, _ := root.Get(name); v != want.(string)[:1]+"2" {
			t.Errorf("outside, %s is %v", name, v)
		}
	}
	must(c.Provide("late", 1))
	must(root.Provide("taken", 1))
	must(c.Provide("taken", 2))
	must(staged.On(c, func(context.Context, string) { tr.add("heard by the old one") }))
	mount(t, c, provider("later", "b3"), nil)
	staged.Emit(ctx, root, "x")
	for _, name := range []string{"late", "b3"} {
		if _, ok := root.Peek(name); ok {
			t.Errorf("%s of a replaced fiber can be seen", name)
		}
	}
	wantErr(t, b.Restart(limit(t)), ErrInactive)
	if err := b.Update(limit(t), 1); !strings.Contains(fmt.Sprint(err), "was replaced") {
		t.Error(err)
	}
	tr.want(t)
	done()
	close(release)
	if err := s.Wait(limit(t)); err != nil {
		t.Fatal(err)
	}
	dispose(t, b)
	dispose(t, a)
	wantState(t, fresh, Active)
}

// TestStageLingerEnds: nothing is waited for when the replaced fibers are disposed by
// somebody else, or when what they inject goes.
func TestStageLingerEnds(t *testing.T) {
	for name, end := range map[string]func(outer, old *Fiber){
		"disposed":   func(_, old *Fiber) { old.RequestDispose() },
		"dependency": func(outer, _ *Fiber) { outer.RequestDispose() },
	} {
		t.Run(name, func(t *testing.T) {
			root := world(t)
			outer := mount(t, root, provider("outer", "o"), nil)
			old := mount(t, root, plugin("old", nil, "o"), nil)
			s := replacing(root, old)
			s.Linger(func(ctx context.Context) { <-ctx.Done() })
			commit(t, s)
			wantState(t, old, Active)
			end(outer, old)
			if err := s.Wait(limit(t)); err != nil {
				t.Fatal(err)
			}
			dispose(t, old)
		})
	}
}

// TestStageRetiredNeverRuns: what was replaced does not run again when what it injects
// comes or comes back, while calls linger.
func TestStageRetiredNeverRuns(t *testing.T) {
	root, tr := world(t), &trace{}
	outer := mount(t, root, provider("outer", "o"), nil)
	old := mount(t, root, plugin("old", func(*Context) error { tr.add("old runs"); return nil }, "o"), nil)
	waiting := mount(t, root, plugin("waiting", func(*Context) error { tr.add("waiting runs"); return nil }, "later"), nil)
	tr.want(t, "old runs")
	s := replacing(root, old, waiting)
	release := make(chan struct{})
	s.Linger(func(context.Context) { <-release })
	commit(t, s)
	must(root.Provide("later", 1))
	if err := outer.Restart(limit(t)); err != nil {
		t.Fatal(err)
	}
	settle(t, old)
	settle(t, waiting)
	tr.want(t)
	wantState(t, old, Disposed)
	wantState(t, waiting, Disposed)
	close(release)
	if err := s.Wait(limit(t)); err != nil {
		t.Fatal(err)
	}
}

// TestStageListenersOfOneDispatch: a dispatch calls the listeners that it found, and
// the next one those of the stage, in the places that they asked for.
func TestStageListenersOfOneDispatch(t *testing.T) {
	root, tr := world(t), &trace{}
	var s *Stage
	listening := func(name string, opts ...ListenOption) *Plugin {
		return plugin(name, func(c *Context) error {
			_, err := staged.On(c, func(_ context.Context, what string) {
				tr.add("%s %s", name, what)
				if what == "commit" && s != nil {
					now := s
					s = nil
					commit(t, now)
				}
			}, opts...)
			return err
		})
	}
	mount(t, root, listening("first"), nil)
	old := mount(t, root, listening("old"), nil)
	s = replacing(root, old)
	s.Linger(func(ctx context.Context) { <-ctx.Done() })
	for _, p := range []*Plugin{listening("back"), listening("front", Prepend()), listening("foremost", Prepend())} {
		mount(t, s.On(root), p, nil)
	}
	staged.Emit(t.Context(), root, "commit")
	tr.want(t, "first commit", "old commit")
	staged.Emit(t.Context(), root, "next")
	tr.want(t, "foremost next", "front next", "first next", "back next")
}

// TestStageRaces holds what is left when things end before the commit.
func TestStageRaces(t *testing.T) {
	t.Run("disposed_before", func(t *testing.T) {
		root := world(t)
		old := mount(t, root, provider("old", "s"), nil)
		s := replacing(root, old)
		fresh := mount(t, s.On(root), provider("new", "s"), nil)
		dispose(t, fresh)
		again := mount(t, s.On(root), provider("newer", "s"), nil)
		commit(t, s)
		dispose(t, old)
		if v, _ := root.Get("s"); v != "newer" || again.State() != Active {
			t.Fatal(v)
		}
	})
	t.Run("parks_and_returns", func(t *testing.T) {
		root := world(t)
		need := must(root.Provide("need", 1))
		old := mount(t, root, provider("old", "s"), nil)
		s := replacing(root, old)
		p := provider("new", "s")
		p.Inject = Require("need")
		fresh := mount(t, s.On(root), p, nil)
		need.Dispose(limit(t))
		settle(t, fresh)
		wantState(t, fresh, Pending)
		commit(t, s)
		if _, ok := root.Get("s"); ok {
			t.Fatal("a replaced service is seen")
		}
		must(root.Provide("need", 2))
		settle(t, fresh)
		if v, _ := root.Get("s"); v != "new" || fresh.Hidden() {
			t.Fatal(v)
		}
		if err := fresh.Restart(limit(t)); err != nil {
			t.Fatal(err)
		}
		if v, _ := root.Get("s"); v != "new" {
			t.Fatal(v)
		}
	})
	t.Run("old_restarts", func(t *testing.T) {
		root := world(t)
		old := mount(t, root, provider("old", "s"), nil)
		s := replacing(root, old)
		mount(t, s.On(root), provider("new", "s"), nil)
		if err := old.Restart(limit(t)); err != nil { // it may take its own name again
			t.Fatal(err)
		}
		other := mount(t, root, provider("other", "s"), nil)
		wantErr(t, other.Err(), ErrDuplicate)
		if err := s.Abort(limit(t)); err != nil {
			t.Fatal(err)
		}
		if v, _ := root.Get("s"); v != "old" {
			t.Fatal(v)
		}
	})
}

// TestStageRefuses holds what cannot be done beside, in or with a stage.
func TestStageRefuses(t *testing.T) {
	t.Run("other_outside", func(t *testing.T) {
		root := world(t)
		s := replacing(root)
		mount(t, s.On(root), provider("new", "s"), nil)
		other := mount(t, root, provider("other", "s"), nil)
		if err := other.Err(); !errors.Is(err, ErrDuplicate) || !strings.Contains(err.Error(), "try again") {
			t.Fatal(err)
		}
		if err := s.Abort(limit(t)); err != nil {
			t.Fatal(err)
		}
		if err := other.Restart(limit(t)); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("aborted", func(t *testing.T) {
		root := world(t)
		s := replacing(root)
		mount(t, s.On(root), provider("new", "s"), nil)
		if err := s.Abort(limit(t)); err != nil {
			t.Fatal(err)
		}
		_, err := s.On(root).Mount(provider("late", "s"), nil)
		wantErr(t, err, ErrStage)
		wantErr(t, s.Abort(limit(t)), ErrStage)
	})
	t.Run("nested", func(t *testing.T) {
		root := world(t)
		s, other := replacing(root), replacing(root)
		f := mount(t, s.On(root), plugin("p", nil), nil)
		_, err := other.On(f.Context()).Mount(plugin("q", nil), nil)
		wantErr(t, err, ErrStage)
		other.Replace(f)
		wantErr(t, other.Commit(), ErrArgument)
		third := replacing(root, root.Fiber())
		wantErr(t, third.Commit(), ErrArgument)
		for _, s := range []*Stage{s, other, third} {
			if err := s.Abort(limit(t)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestStageClaims: what MayTake gives up is recorded, also by way of a fiber above.
func TestStageClaims(t *testing.T) {
	root := world(t)
	outer := mount(t, root, plugin("outer", func(c *Context) error {
		_, err := c.Mount(provider("inner", "s"), nil)
		return err
	}), nil)
	inner := outer.Children()[0]
	settle(t, inner)
	var s *Stage
	s = root.Runtime().NewStage(StageOptions{MayTake: func(f *Fiber) bool {
		s.Replace(f.Parent())
		return f == inner
	}})
	fresh := mount(t, s.On(root), provider("new", "s"), nil)
	wantState(t, fresh, Active)
	if got := s.Claimed(); len(got) != 1 || got[0] != inner || !s.Replaces(outer) {
		t.Fatal(got)
	}
	commit(t, s)
	dispose(t, outer)
	if v, _ := root.Get("s"); v != "new" {
		t.Fatal(v)
	}
}

// TestStageTellsObservers: who follows services hears of a swap once, and nothing of
// what is staged.
func TestStageTellsObservers(t *testing.T) {
	root, tr := world(t), &trace{}
	var mu sync.Mutex
	must(ServiceChanged.On(root, func(_ context.Context, ch ServiceChange) {
		mu.Lock()
		defer mu.Unlock()
		tr.add("%s %v by %s", ch.Name, ch.Present, ch.Owner.Name())
	}))
	old := mount(t, root, provider("old", "s", "gone"), nil)
	tr.take()
	s := replacing(root, old)
	fresh := mount(t, s.On(root), provider("new", "s"), nil)
	tr.want(t)
	commit(t, s)
	dispose(t, old)
	settle(t, fresh)
	got := tr.take()
	slices.Sort(got)
	wantEqual(t, got, []string{"gone false by old", "s true by new"})
}

// TestStagePublishes: registries are told around the swap, with no lock held, and one
// that panics keeps nobody from going on.
func TestStagePublishes(t *testing.T) {
	root, tr := world(t), &trace{}
	old := mount(t, root, provider("old", "s"), nil)
	s := replacing(root, old)
	mount(t, s.On(root), provider("new", "s"), nil)
	see := func(what string) { v, _ := root.Get("s"); tr.add("%s %v", what, v) }
	must(Committing.On(root, func(_ context.Context, of *Stage) {
		if of == s {
			see("registry")
		}
	}))
	s.OnCommit(func() { panic("no") })
	s.OnCommit(func() {
		see("first")
		s.OnCommit(func() { see("second") })
	})
	commit(t, s)
	tr.want(t, "registry old", "first old", "second old", "registry new")
	if logged := errorsLogged(root); len(logged) != 1 {
		t.Fatal(logged)
	}
}

// TestOverlayLayers holds what an overlay covers.
func TestOverlayLayers(t *testing.T) {
	root := world(t)
	realm := NewRealm("project")
	place := root.Overlay(realm)
	must(root.Provide("open", "outer"))
	slow, started := make(chan struct{}), make(chan struct{})
	f := must(place.Mount(plugin("slow", func(c *Context) error {
		must(c.Provide("open", "inner"))
		close(started)
		<-slow
		return nil
	}), nil))
	<-started
	if v, _ := place.Get("open"); v != "outer" {
		t.Errorf("while the nearer provider loads: %v", v)
	}
	if v, _ := place.Peek("open"); v != "inner" {
		t.Errorf("the nearest that stands: %v", v)
	}
	close(slow)
	settle(t, f)
	if v, _ := place.Get("open"); v != "inner" {
		t.Errorf("then: %v", v)
	}
	must(place.Provide("test.declared", 5)) // is the host's, whatever the overlay
	if v, _ := root.Get("test.declared"); v != 5 {
		t.Errorf("a declared service is in the overlay")
	}
	own := NewRealm("own")
	must(root.Isolate("apart", own).Provide("apart", 1))
	if v, ok := place.Isolate("apart", own).Get("apart"); !ok {
		t.Errorf("isolation within an overlay: %v", v)
	}
	if v, ok := root.Isolate("apart", own).Overlay(nil).Get("apart"); !ok {
		t.Errorf("an overlay within an isolation: %v", v)
	}
	if _, ok := place.Get("apart"); ok {
		t.Errorf("the overlay sees what is isolated")
	}
	if _, ok := place.Isolate("open", nil).Get("open"); ok {
		t.Errorf("isolation is no wall")
	}
}

var _ = NewService[int]("test.declared")

// staging is a model of slots, each of which provides s<i> with a version, and of
// users that follow them.
type staging struct {
	t       *rapid.T
	root    *Context
	stepper *Stepper
	slots   [3]*version
	last    int
	stages  []*open
	users   []*Fiber
}

type version struct {
	fiber *Fiber
	n     int
	needs string // a service that it injects; "" for none
}

type open struct {
	stage *Stage
	fresh map[int]*version
}

func (m *staging) make(c *Context, i int) *version {
	m.last++
	v := &version{n: m.last, needs: rapid.SampledFrom([]string{"", "s0", "s1", "r"}).Draw(m.t, "needs")}
	if v.needs == fmt.Sprint("s", i) {
		v.needs = ""
	}
	var inject []string
	if v.needs != "" {
		inject = append(inject, v.needs)
	}
	v.fiber = must(c.Mount(plugin(fmt.Sprintf("slot %d.%d", i, v.n), func(c *Context) error {
		_, err := c.Provide(fmt.Sprint("s", i), v.n)
		return err
	}, inject...), nil))
	return v
}

// visible checks that nobody outside sees what is staged or was replaced.
func (m *staging) visible() {
	for i, v := range m.slots {
		got, ok := m.root.Get(fmt.Sprint("s", i))
		want := v != nil && v.fiber.State() == Active
		if ok != want || ok && got != v.n {
			m.t.Fatalf("slot %d shows %v %v, want %v of %+v", i, got, ok, want, v)
		}
	}
}

func (m *staging) act() {
	t := m.t
	expired, cancel := context.WithCancel(context.Background())
	cancel()
	held := func(i int) bool {
		return slices.ContainsFunc(m.stages, func(o *open) bool { return o.fresh[i] != nil })
	}
	switch op := rapid.SampledFrom([]string{"mount", "stage", "commit", "commit", "abort", "restart", "dispose", "r", "end"}).Draw(t, "op"); op {
	case "mount", "restart", "dispose":
		i := rapid.IntRange(0, 2).Draw(t, "slot")
		v := m.slots[i]
		switch {
		case v == nil && op == "mount" && !held(i):
			m.slots[i] = m.make(m.root, i)
		case v != nil && op == "restart":
			v.fiber.Restart(expired)
		case v != nil && op == "dispose" && !held(i):
			v.fiber.RequestDispose()
			if !m.stepper.Run(10000) {
				t.Fatal("does not settle")
			}
			m.slots[i] = nil
		}
	case "stage":
		o := &open{fresh: map[int]*version{}}
		var goes []*Fiber
		var which []int
		for i := range m.slots {
			if !held(i) && rapid.Bool().Draw(t, "staged") {
				which = append(which, i)
				if m.slots[i] != nil {
					goes = append(goes, m.slots[i].fiber)
				}
			}
		}
		o.stage = replacing(m.root, goes...)
		for _, i := range which {
			o.fresh[i] = m.make(o.stage.On(m.root), i)
		}
		m.stages = append(m.stages, o)
	case "end":
		for _, o := range m.stages {
			for _, v := range o.fresh {
				v.fiber.Restart(expired)
			}
		}
	case "commit", "abort":
		if len(m.stages) == 0 {
			return
		}
		k := rapid.IntRange(0, len(m.stages)-1).Draw(t, "which")
		o := m.stages[k]
		m.stages = slices.Delete(m.stages, k, k+1)
		if op == "abort" {
			o.stage.Abort(expired)
			return
		}
		if err := o.stage.Commit(); err != nil {
			t.Fatal(err)
		}
		for i, v := range o.fresh {
			m.slots[i] = v
		}
	case "r":
		if h, ok := m.root.Get("r"); ok {
			h.(*Handle).Dispose(expired)
			return
		}
		h := must(m.root.Provide("r", nil))
		if err := m.root.Set("r", h); err != nil {
			t.Fatal(err)
		}
	}
}

// settled compares the resting runtime with the model: who should be up is, and the
// users have the newest of what they inject.
func (m *staging) settled() {
	if !m.stepper.Run(100000) {
		m.t.Fatal("does not settle")
	}
	m.visible()
	for i, v := range m.slots {
		if v == nil {
			continue
		}
		up := true
		if v.needs != "" {
			_, up = m.root.Get(v.needs)
		}
		if (v.fiber.State() == Active) != up {
			m.t.Fatalf("slot %d is %s, needs %q (%v): %v", i, v.fiber.State(), v.needs, up, v.fiber.Err())
		}
	}
	for i, u := range m.users {
		name := fmt.Sprint("s", i)
		now, up := m.root.Get(name)
		if (u.State() == Active) != up || up && must(u.Context().Use(name)) != now {
			m.t.Fatalf("user %d is %s, %s is %v %v", i, u.State(), name, now, up)
		}
	}
}

// TestPropertyStages runs random programs of stages under random interleavings.
func TestPropertyStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stepper := NewStepper(rapid.Uint64().Draw(t, "seed"))
		m := &staging{t: t, root: New(WithStepper(stepper)), stepper: stepper}
		empty := m.root.Runtime().Digest()
		for i := range m.slots {
			m.users = append(m.users, must(m.root.Mount(plugin(fmt.Sprint("user", i), nil, fmt.Sprint("s", i)), nil)))
		}
		for range rapid.IntRange(1, 25).Draw(t, "operations") {
			m.act()
			m.visible()
			for range rapid.IntRange(0, 8).Draw(t, "steps") {
				stepper.Step()
				m.visible()
			}
			if rapid.IntRange(0, 3).Draw(t, "settle") == 0 {
				m.settled()
			}
		}
		for _, o := range m.stages {
			o.stage.Abort(func() context.Context { c, cancel := context.WithCancel(t.Context()); cancel(); return c }())
		}
		m.settled()
		m.root.Fiber().RequestDispose()
		if !stepper.Run(100000) {
			t.Fatal("does not settle")
		}
		if diff := cmp.Diff(empty, m.root.Runtime().Digest()); diff != "" {
			t.Fatalf("something is left:\n%s", diff)
		}
	})
}

// TestStageRestartsOnce: dependents of two services that are swapped run again once.
func TestStageRestartsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stepper := NewStepper(rapid.Uint64().Draw(t, "seed"))
		root := New(WithStepper(stepper))
		run := func() {
			if !stepper.Run(100000) {
				t.Fatal("does not settle")
			}
		}
		a, b := must(root.Mount(provider("a1", "a"), nil)), must(root.Mount(provider("b1", "b"), nil))
		var ran []string
		must(root.Mount(plugin("user", func(c *Context) error {
			ran = append(ran, fmt.Sprint(must(c.Use("a")), must(c.Use("b"))))
			return nil
		}, "a", "b"), nil))
		run()
		s := replacing(root, a, b)
		must(s.On(root).Mount(provider("a2", "a"), nil))
		must(s.On(root).Mount(provider("b2", "b"), nil))
		run()
		if err := s.Commit(); err != nil {
			t.Fatal(err)
		}
		run()
		if diff := cmp.Diff([]string{"a1b1", "a2b2"}, ran); diff != "" {
			t.Fatal(diff)
		}
		if a.State() != Disposed || b.State() != Disposed {
			t.Fatal(a.State(), b.State())
		}
		root.Fiber().RequestDispose()
		run()
	})
}

// TestStageConcurrent commits while the fibers concerned restart, update and go.
func TestStageConcurrent(t *testing.T) {
	root := world(t)
	now := mount(t, root, provider("v", "s"), nil)
	user := mount(t, root, plugin("user", func(c *Context) error {
		_, err := c.Use("s")
		return err
	}, "s"), nil)
	r := root.Runtime()
	for i := range 200 {
		s := replacing(root, now)
		fresh := must(s.On(root).Mount(&Plugin{Name: fmt.Sprint("v", i), Config: func(raw any) (any, error) { return raw, nil }, Apply: provider("v", "s").Apply}, nil))
		if i%2 == 0 {
			settle(t, fresh)
		}
		var all sync.WaitGroup
		for _, f := range []*Fiber{now, fresh} {
			all.Go(func() { f.Restart(limit(t)) })
			all.Go(func() { f.Update(limit(t), i) })
		}
		if i%5 == 0 {
			all.Go(func() { now.RequestDispose() })
		}
		if i%7 == 0 {
			all.Go(func() { s.Linger(func(ctx context.Context) { <-ctx.Done() }) })
			all.Go(func() { now.RequestDispose() })
		}
		all.Go(func() { r.Services(); r.Digest(); user.Waiting() })
		over := make(chan error, 2)
		all.Go(func() { over <- s.Commit() })
		if i%3 == 0 {
			all.Go(func() { over <- s.Abort(limit(t)) })
		} else {
			over <- ErrStage
		}
		all.Wait()
		if a, b := <-over, <-over; errors.Is(a, ErrStage) == errors.Is(b, ErrStage) {
			t.Fatal("the stage ended twice, or not at all: ", a, b)
		}
		if err := s.Wait(limit(t)); err != nil {
			t.Fatal(err)
		}
		settle(t, fresh)
		settle(t, now)
		if fresh.State() != Disposed {
			dispose(t, now)
			now = fresh
		}
		if now.State() == Disposed { // both are gone
			now = mount(t, root, provider("v", "s"), nil)
		}
		settle(t, now)
		if now.State() == Failed { // it came back while the other still had the name
			if err := now.Restart(limit(t)); err != nil {
				t.Fatal(err)
			}
		}
		settle(t, user)
		wantState(t, user, Active)
	}
}
