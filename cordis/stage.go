package cordis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrStage says that a stage is over: it was committed or aborted.
var ErrStage = errors.New("the stage is over")

// StageOptions say what a stage may replace.
type StageOptions struct {
	// Replaces are the fibers that go when the stage is committed.
	Replaces []*Fiber
	// MayTake tells whether the stage may also replace the owner of a name that a
	// staged fiber registers; nil: no. It is called without a lock held.
	MayTake func(owner *Fiber) bool
}

// Stage starts new fibers beside those that they are to replace. Mount them on a
// context of On. Until Commit, nothing outside of the stage sees the services that
// they provide, and their listeners are not called; they see each other's
// services. A staged fiber may provide a name that a replaced one holds. A name
// that one open stage holds cannot be taken by another fiber.
//
// A stage ends with Commit or Abort, once. All methods are safe for concurrent
// use.
type Stage struct {
	rt      *Runtime
	mayTake func(*Fiber) bool
	live    atomic.Bool // committed: its listeners are called, the replaced ones' are not
	over    atomic.Bool // committed or aborted
	held    sync.Map    // key -> *impl
	done    chan struct{}

	// Runtime.mu guards what follows.
	ending   bool
	roots    []*Fiber // mounted on the stage itself
	replaced []*Fiber
	claimed  []*Fiber
	publish  []func()
	aborts   []func()
	linger   []func(context.Context)
}

type stageKey struct{}

// NewStage opens a stage.
func (r *Runtime) NewStage(o StageOptions) *Stage {
	return &Stage{rt: r, mayTake: o.MayTake, replaced: slices.Clone(o.Replaces), done: make(chan struct{})}
}

// On derives a context: what is mounted on it while the stage is open belongs to
// the stage, and so does what is mounted below.
func (s *Stage) On(c *Context) *Context { return c.WithValue(stageKey{}, s) }

// StageOf gives the open stage that c's fiber belongs to; nil: none, or it is
// over. A registry that finds one holds what c registers back until OnCommit.
func StageOf(c *Context) *Stage { return c.fiber.staged() }

// staged gives the open stage that f belongs to, or nil.
func (f *Fiber) staged() *Stage {
	if s := f.stage; s != nil && !s.over.Load() {
		return s
	}
	return nil
}

// replaced tells whether a committed stage has replaced f.
func (f *Fiber) replaced() bool {
	s := f.goner.Load()
	return s != nil && s.live.Load()
}

// Hidden tells whether what f registers is not to be used now: f belongs to an open
// stage, or a committed one has replaced it. Registries that need no list of their
// own for a stage ask this.
func (f *Fiber) Hidden() bool { return f.stage != nil && !f.stage.live.Load() || f.replaced() }

// enterStage makes a new fiber a part of the open stage that its context carries,
// and lets it go with a parent that goes. Runtime.mu is held.
func (f *Fiber) enterStage() {
	f.goner.Store(f.parent.goner.Load())
	s, _ := f.ctx.Value(stageKey{}).(*Stage)
	if s == nil || s.over.Load() {
		return
	}
	f.stage = s
	if f.parent.stage != s {
		s.roots = append(s.roots, f)
	}
}

// Takes tells whether the stage replaces owner: it, or a fiber around it, is to
// go. Otherwise MayTake is asked, and if it agrees, owner is claimed: it goes too.
func (s *Stage) Takes(owner *Fiber) bool {
	s.rt.mu.Lock()
	takes, ended := s.takes(owner), s.ending
	s.rt.mu.Unlock()
	if takes || ended || s.mayTake == nil || !s.mayTake(owner) {
		return takes
	}
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	if s.ending {
		return s.takes(owner)
	}
	if !s.takes(owner) {
		s.replaced = append(s.replaced, owner)
		s.claimed = append(s.claimed, owner)
	}
	return true
}

// takes is Takes without asking. Runtime.mu is held.
func (s *Stage) takes(owner *Fiber) bool {
	for f := owner; f != nil; f = f.parent {
		if slices.Contains(s.replaced, f) {
			return true
		}
	}
	return false
}

// Claimed gives the fibers that MayTake gave up, in the order of their claims.
func (s *Stage) Claimed() []*Fiber {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	return slices.Clone(s.claimed)
}

// Replace adds fibers that go at Commit.
func (s *Stage) Replace(fibers ...*Fiber) {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.replaced = append(s.replaced, fibers...)
}

// OnCommit has publish called by Commit, in the order of registration, before the
// services and listeners are swapped. No lock is held. It is for the registries of
// other packages.
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
// drain limit. It is for calls that found something of a replaced fiber and have
// not entered it yet.
func (s *Stage) Linger(wait func(ctx context.Context)) {
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.linger = append(s.linger, wait)
}

// Commit puts the staged fibers in the place of the replaced ones. First the
// registries publish. Then, in one step: the staged services are there and the
// replaced fibers' are not, the staged listeners are called and theirs are not.
// Dependents whose service changed run again, once. The replaced fibers are asked
// to dispose, at once or after what lingers; Wait waits until they are asked. The
// error is ErrStage where the stage is over.
func (s *Stage) Commit() error {
	r := s.rt
	r.mu.Lock()
	if s.ending {
		r.mu.Unlock()
		return fmt.Errorf("commit: %w", ErrStage)
	}
	s.ending = true
	for len(s.publish) > 0 {
		publish := s.publish
		s.publish = nil
		r.mu.Unlock()
		for _, fn := range publish {
			fn()
		}
		r.mu.Lock()
	}
	s.swap()
	linger := s.linger
	if len(linger) == 0 {
		s.dismiss()
	}
	r.mu.Unlock()
	if len(linger) > 0 {
		go s.wait(linger)
	}
	return nil
}

// swap is the step itself. Runtime.mu is held.
func (s *Stage) swap() {
	r := s.rt
	changed := map[key]struct{}{}
	var going []*Fiber
	for _, f := range s.replaced {
		going = f.descendants(append(going, f))
	}
	for _, f := range going {
		f.goner.Store(s)
		for _, im := range f.impls {
			if !im.removed && r.lookup(im.key()) == im {
				changed[im.key()] = struct{}{}
			}
		}
	}
	s.held.Range(func(k, im any) bool {
		r.store.Store(k, im)
		s.held.Delete(k)
		delete(r.reserved, k.(key))
		changed[k.(key)] = struct{}{}
		return true
	})
	s.over.Store(true)
	s.live.Store(true)
	for k := range changed {
		im := r.lookup(k)
		r.changed(k, im, im.available())
	}
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

// wait lets what lingers end, and dismisses the replaced fibers.
func (s *Stage) wait(linger []func(context.Context)) {
	ctx, cancel := context.WithTimeout(context.Background(), s.rt.drainLimit)
	defer cancel()
	var all sync.WaitGroup
	for _, fn := range linger {
		all.Go(func() { fn(ctx) })
	}
	all.Wait()
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	s.dismiss()
}

// Wait returns when a committed stage has asked the replaced fibers to dispose, or
// an aborted one is gone, or ctx ends.
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
	if s.ending {
		r.mu.Unlock()
		return fmt.Errorf("abort: %w", ErrStage)
	}
	s.ending = true
	roots := slices.Clone(s.roots)
	r.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(roots) {
		_, err := f.Dispose(ctx)
		errs = append(errs, err)
	}
	r.mu.Lock()
	aborts := s.aborts
	s.over.Store(true)
	s.forget()
	r.mu.Unlock()
	for _, fn := range aborts {
		fn()
	}
	close(s.done)
	return errors.Join(errs...)
}

// at gives what is provided under k, for a fiber of the stage s or of none.
func (r *Runtime) at(s *Stage, k key) *impl {
	if s != nil {
		if v, ok := s.held.Load(k); ok {
			return v.(*impl)
		}
	}
	return r.lookup(k)
}

// place stores a new service, or holds it in the stage of its owner. Runtime.mu is
// held.
func (r *Runtime) place(im *impl, s *Stage) error {
	k := im.key()
	had, by := r.lookup(k), r.reserved[k]
	switch {
	case by != nil && by != s && (s != nil || !by.takes(im.owner)):
		return tagged(ErrDuplicate, "service %q is just being replaced; try again", k.name)
	case s == nil && had == nil:
		r.store.Store(k, im)
		return nil
	case s != nil && by == nil && (had == nil || s.takes(had.owner)):
		s.held.Store(k, im)
		r.reserved[k] = s
		return nil
	}
	if s != nil && by != nil {
		had = r.at(s, k)
	}
	return tagged(ErrDuplicate, "service %q has been registered at <%s>", k.name, had.owner.name)
}

// displace takes a service out of the store, and tells whether it was in there; one
// that a stage holds is taken out of that. Runtime.mu is held.
func (r *Runtime) displace(im *impl) (stood bool) {
	k := im.key()
	if s := im.owner.stage; s != nil && s.held.CompareAndDelete(k, im) {
		delete(r.reserved, k)
		r.refresh(k)
		return false
	}
	return r.store.CompareAndDelete(k, im)
}
