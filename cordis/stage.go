package cordis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrStage says that a stage is over: it was committed or aborted.
var ErrStage = errors.New("the stage is over")

// StageOptions say what a stage may replace.
type StageOptions struct {
	// Replaces are the fibers that go when the stage is committed, with all below
	// them.
	Replaces []*Fiber
	// MayTake tells whether the stage may also replace the owner of a name that a
	// staged fiber registers; nil: no. It is called without a lock held, and may
	// call Replace for a fiber above the owner, which then goes with the owner.
	MayTake func(owner *Fiber) bool
}

// Stage starts new fibers beside those that they are to replace. Mount them on a
// context of On. Until Commit, nothing outside of the stage sees the services that
// they provide, and their listeners are not called. They see the world as it will
// be: each other's services, and none of the fibers that go. A staged fiber may
// provide a name that a replaced one holds. A name that one open stage holds cannot
// be taken by another stage, nor by a fiber outside that stays.
//
// A stage ends with Commit or Abort, once. All methods are safe for concurrent
// use.
type Stage struct {
	rt      *Runtime
	mayTake func(*Fiber) bool
	phase   atomic.Int32
	held    sync.Map                            // key -> *impl
	goes    atomic.Pointer[map[*Fiber]struct{}] // the replaced ones; immutable
	done    chan struct{}

	// Runtime.mu guards what follows.
	lists    map[*event]*list // listeners that are not called
	roots    []*Fiber         // mounted on the stage itself
	replaced []*Fiber
	claimed  []*Fiber
	publish  []func()
	aborts   []func()
	linger   []func(context.Context)
}

// The phases of a stage.
const (
	stageOpen       int32 = iota
	stageCommitting       // the registries publish
	stageCommitted
	stageOver // aborted, or made for what a commit replaced: never visible
)

type stageKey struct{}

// Committing tells the registries of other packages that a stage is committed: they
// show what they held back for it, and take out what fibers registered that it
// Replaces. It is told before the runtime's own swap and once more after it, for
// what was registered in between; the dispatch carries no call's context.
var Committing = NewEmit[*Stage]("internal/stage")

// NewStage opens a stage.
func (r *Runtime) NewStage(o StageOptions) *Stage {
	s := &Stage{rt: r, mayTake: o.MayTake, lists: map[*event]*list{}, done: make(chan struct{})}
	s.Replace(o.Replaces...)
	return s
}

// On derives a context: what is mounted on it while the stage is open belongs to
// the stage, and so does what is mounted below. After Commit it is like c; after
// Abort nothing can be mounted on it (ErrStage).
func (s *Stage) On(c *Context) *Context { return c.WithValue(stageKey{}, s) }

// StageOf gives the stage that holds back what c's fiber registers; nil: none. It is
// an open one, or one that is Over. A registry asks under its own lock, and keeps
// what it gets for the stage until Committing.
func StageOf(c *Context) *Stage { return c.fiber.stage.Load() }

// Hidden tells whether what f registers is not to be used now: f belongs to an open
// or aborted stage, or a committed one has replaced it. Registries that need no list
// of their own for a stage ask this. At a commit the new fibers are shown before the
// old ones are hidden.
func (f *Fiber) Hidden() bool { return f.stage.Load() != nil }

// Over tells whether what the stage holds back will never be seen: it was aborted,
// or its fibers are those that a commit has replaced, and that are on their way out.
func (s *Stage) Over() bool { return s.phase.Load() == stageOver }

// retired tells whether a commit has replaced f.
func (f *Fiber) retired() bool {
	s := f.stage.Load()
	return s != nil && s.Over() && s.done == nil
}

// enterStage makes a new fiber a part of its parent's stage, or of the one that its
// context carries. Runtime.mu is held.
func (f *Fiber) enterStage() error {
	s, _ := f.ctx.Value(stageKey{}).(*Stage)
	if s != nil && s.phase.Load() == stageCommitted {
		s = nil
	}
	switch above := f.parent.stage.Load(); {
	case above != nil && s != nil && s != above && !above.Over():
		return tagged(ErrStage, "mount plugin %q: its parent belongs to another stage; stages do not nest", f.name)
	case above != nil:
		f.stage.Store(above)
	case s != nil && s.Over():
		return fmt.Errorf("mount plugin %q: %w: it was aborted", f.name, ErrStage)
	case s != nil:
		f.stage.Store(s)
		s.roots = append(s.roots, f)
	}
	return nil
}

// Replaces tells whether f goes at Commit, or has gone so: it, or a fiber around it.
func (s *Stage) Replaces(f *Fiber) bool {
	goes := s.goes.Load()
	for ; goes != nil && f != nil; f = f.parent {
		if _, ok := (*goes)[f]; ok {
			return true
		}
	}
	return false
}

// Takes tells whether the stage replaces owner. Where it does not, MayTake is asked,
// and if it agrees, owner is claimed: it goes too, whatever becomes of the fiber
// that asked for its name. Call it without a lock.
func (s *Stage) Takes(owner *Fiber) bool {
	if s.Replaces(owner) {
		return true
	}
	if owner == nil || owner.Hidden() || s.mayTake == nil || s.phase.Load() != stageOpen || !s.mayTake(owner) {
		return false
	}
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	if !s.Replaces(owner) {
		if s.phase.Load() != stageOpen {
			return false
		}
		s.add(owner)
	}
	if !slices.Contains(s.claimed, owner) {
		s.claimed = append(s.claimed, owner)
	}
	return true
}

// Claimed gives the fibers that MayTake gave up, in the order of their claims.
func (s *Stage) Claimed() []*Fiber {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	return slices.Clone(s.claimed)
}

// Replace adds fibers that go at Commit, with all below them. The root, and fibers
// around or of the stage itself, cannot go: Commit refuses then.
func (s *Stage) Replace(fibers ...*Fiber) {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	if s.phase.Load() == stageOpen {
		s.add(fibers...)
	}
}

// add is Replace. The staged fibers lose sight of what goes. Runtime.mu is held.
func (s *Stage) add(fibers ...*Fiber) {
	goes := map[*Fiber]struct{}{}
	if had := s.goes.Load(); had != nil {
		maps.Copy(goes, *had)
	}
	var fresh []*Fiber
	for _, f := range fibers {
		if _, dup := goes[f]; f != nil && !dup {
			goes[f] = struct{}{}
			fresh = append(fresh, f)
		}
	}
	s.goes.Store(&goes)
	s.replaced = append(s.replaced, fresh...)
	for _, f := range fresh {
		for _, g := range f.descendants([]*Fiber{f}) {
			for _, im := range g.impls {
				s.rt.refresh(im.key())
			}
		}
	}
}

// OnCommit has publish called by Commit, in the order of registration, before the
// services and listeners are swapped. No lock is held. Registries that outlive the
// stage listen to Committing instead. A panic is logged; the commit goes on.
func (s *Stage) OnCommit(publish func()) {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.publish = append(s.publish, publish)
}

// OnAbort has fn called by Abort, after the staged fibers have gone.
func (s *Stage) OnAbort(fn func()) {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.aborts = append(s.aborts, fn)
}

// Linger has wait called after the swap: the replaced fibers are asked to dispose
// when all such functions have returned. Their context ends with the runtime's
// drain limit, and when somebody else has disposed the fibers. It is for calls that
// found something of a replaced fiber and have not entered it yet.
func (s *Stage) Linger(wait func(ctx context.Context)) {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.linger = append(s.linger, wait)
}

// Commit puts the staged fibers in the place of the replaced ones. First the
// registries publish. Then, in one step: the staged services are there and the
// replaced fibers' are not; dispatches that begin call the staged listeners and not
// theirs, those that have begun go on with what they found. Dependents whose service
// changed run again, once. The replaced fibers see each other as before, what they
// still register is hidden, and none runs again; they are asked to dispose, at once
// or after what lingers; Wait waits until they are asked. The error is ErrStage where
// the stage is over, or ErrArgument where it replaces what it cannot; nothing has
// changed then.
func (s *Stage) Commit() error {
	r := s.rt
	r.mu.Lock()
	if err := s.check(); err != nil {
		r.mu.Unlock()
		return fmt.Errorf("commit: %w", err)
	}
	s.phase.Store(stageCommitting)
	r.mu.Unlock()
	Committing.Emit(context.Background(), &r.root.ctx, s)
	r.mu.Lock()
	for len(s.publish) > 0 {
		publish := s.publish
		s.publish = nil
		r.mu.Unlock()
		for _, fn := range publish {
			s.contain(fn)
		}
		r.mu.Lock()
	}
	s.swap()
	r.mu.Unlock()
	Committing.Emit(context.Background(), &r.root.ctx, s)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(s.linger) == 0 {
		s.dismiss()
		return nil
	}
	go s.wait(s.watch(), s.linger)
	return nil
}

// contain runs a function of a registry.
func (s *Stage) contain(fn func()) {
	err := guard(func() error {
		fn()
		return nil
	})
	if err != nil {
		s.rt.root.report("publishing what a stage holds failed", err)
	}
}

// check says why the stage cannot be committed. Runtime.mu is held.
func (s *Stage) check() error {
	if s.phase.Load() != stageOpen {
		return ErrStage
	}
	for _, f := range s.replaced {
		if f.parent == nil || f.stage.Load() != nil && !f.stage.Load().Over() {
			return fmt.Errorf("%w: fiber %q (#%d) is the root or itself staged, and cannot be replaced", ErrArgument, f.name, f.id)
		}
	}
	for _, f := range s.roots {
		if s.Replaces(f.parent) && !f.disposed {
			return fmt.Errorf("%w: fiber %q (#%d) is staged below one that the stage replaces, and would go with it", ErrArgument, f.name, f.id)
		}
	}
	return nil
}

// swap is the step itself. Runtime.mu is held.
func (s *Stage) swap() {
	r := s.rt
	limbo := &Stage{rt: r, lists: map[*event]*list{}} // of what was replaced
	limbo.phase.Store(stageOver)
	changed := map[key]struct{}{}
	var going, came []*Fiber
	for _, f := range s.replaced {
		if !f.Hidden() { // else another stage had it
			going = f.descendants(append(going, f))
		}
	}
	for _, f := range s.roots {
		came = f.descendants(append(came, f))
	}
	var gone []*impl
	for _, f := range going {
		for _, im := range f.impls {
			if !im.removed && r.lookup(im.key()) == im {
				limbo.held.Store(im.key(), im)
				changed[im.key()] = struct{}{}
				gone = append(gone, im)
			}
		}
	}
	s.held.Range(func(k, im any) bool {
		r.store.Store(k, im)
		delete(r.reserved, k.(key))
		changed[k.(key)] = struct{}{}
		return true
	})
	s.phase.Store(stageCommitted)
	for _, f := range came {
		f.stage.CompareAndSwap(s, nil)
	}
	for _, f := range going {
		f.stage.CompareAndSwap(nil, limbo)
	}
	for _, im := range gone {
		r.store.CompareAndDelete(im.key(), im)
	}
	s.trade(limbo)
	for k := range changed {
		r.refresh(k)
	}
	s.tell(changed, gone)
	for _, f := range s.replaced {
		if !f.up || !f.current() { // it must not run again
			f.requestDispose()
		}
	}
}

// tell has the observers know which services came and went. Runtime.mu is held.
func (s *Stage) tell(changed map[key]struct{}, gone []*impl) {
	r := s.rt
	if !r.listening(&ServiceChanged.event) {
		return
	}
	for k := range changed {
		if im := r.lookup(k); im != nil {
			im.owner.announce(k, im.available())
		}
	}
	for _, im := range gone {
		if r.lookup(im.key()) == nil {
			im.owner.announce(im.key(), false)
		}
	}
}

// trade swaps the listeners, event by event. Runtime.mu is held.
func (s *Stage) trade(limbo *Stage) {
	r := s.rt
	for e := range s.lists {
		r.list(e) // so that it is there
	}
	r.lists.Range(func(k, v any) bool {
		e, l := k.(*event), v.(*list)
		l.trade(s.lists[e], limbo.list(e))
		return true
	})
	s.lists = map[*event]*list{}
}

// list gives the listeners of an event that the stage holds back. Runtime.mu is held.
func (s *Stage) list(e *event) *list {
	l := s.lists[e]
	if l == nil {
		l = &list{}
		s.lists[e] = l
	}
	return l
}

// dismiss asks the replaced fibers to dispose, and forgets what the stage knew.
// Runtime.mu is held.
func (s *Stage) dismiss() {
	for _, f := range s.replaced {
		f.requestDispose()
	}
	s.forget()
	close(s.done)
}

// forget drops what an ended stage need not keep alive. Runtime.mu is held.
func (s *Stage) forget() {
	s.roots, s.replaced, s.publish, s.aborts, s.linger = nil, nil, nil, nil, nil
}

// watch gives a context that ends with the drain limit, or when all replaced fibers
// are told to unload. Runtime.mu is held.
func (s *Stage) watch() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), s.rt.drainLimit)
	var left atomic.Int32
	left.Store(1)
	end := func() {
		if left.Add(-1) == 0 {
			cancel()
		}
	}
	for _, f := range s.replaced {
		if run := f.run.Load(); run != nil && !f.disposed {
			left.Add(1)
			context.AfterFunc(run.context(), end)
		}
	}
	end()
	return ctx
}

// wait lets what lingers end, and dismisses the replaced fibers.
func (s *Stage) wait(ctx context.Context, linger []func(context.Context)) {
	var all sync.WaitGroup
	for _, fn := range linger {
		all.Go(func() { s.contain(func() { fn(ctx) }) })
	}
	all.Wait()
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.dismiss()
}

// Wait returns when a committed stage has asked the replaced fibers to dispose, or
// an aborted one is gone, or ctx ends. To call Fiber.Dispose for a replaced one
// earlier cuts short what lingers.
func (s *Stage) Wait(ctx context.Context) error {
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Abort disposes the staged fibers, the last first, and waits until they are
// quiescent; nothing of them was ever visible. What was to be replaced stays. The
// errors are those of Fiber.Dispose, joined, and ErrStage where the stage is over.
func (s *Stage) Abort(ctx context.Context) error {
	r := s.rt
	r.mu.Lock()
	if s.phase.Load() != stageOpen {
		r.mu.Unlock()
		return fmt.Errorf("abort: %w", ErrStage)
	}
	s.phase.Store(stageOver)
	s.held.Range(func(k, _ any) bool {
		delete(r.reserved, k.(key))
		return true
	})
	roots, aborts := s.roots, s.aborts
	r.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(roots) {
		_, err := f.Dispose(ctx)
		errs = append(errs, err)
	}
	for _, fn := range aborts {
		s.contain(fn)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s.forget()
	s.goes.Store(nil)
	close(s.done)
	return errors.Join(errs...)
}
