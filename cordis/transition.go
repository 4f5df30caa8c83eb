package cordis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// phase is what the running transition of a fiber does. Every transition is
// decided here, under Runtime.mu. A fiber with something to do is queued for a
// step; a step goes through phases until it must wait, and whoever ends the wait
// calls wake. So at most one goroutine works on a fiber, and none waits in it.
type phase uint8

const (
	phaseIdle    phase = iota
	phaseLoading       // the body runs
	phaseHolders       // dependents unload
	phaseCalls         // running calls end
	phaseEffects       // disposers run
)

// schedule queues a step of f, unless one is coming or running already.
// Runtime.mu is held here and in all that follows, where not said otherwise.
func (f *Fiber) schedule() {
	if f.queued {
		return
	}
	f.queued = true
	if s := f.rt.stepper; s != nil {
		s.push(f)
		return
	}
	go f.step()
}

// wake schedules f if it waits in phase p.
func (f *Fiber) wake(p phase) {
	if f.phase == p {
		f.schedule()
	}
}

// settled tells whether no transition of f runs or is due.
func (f *Fiber) settled() bool { return f.phase == phaseIdle && !f.queued }

// wants tells whether the body should be running.
func (f *Fiber) wants() bool { return f.released && f.ready && f.err == nil && !f.disposed }

// current tells whether the body that was started last is still the right one.
func (f *Fiber) current() bool { return f.gen == f.ranGen && f.wants() }

// leaving tells whether f unloads, or will as soon as its body returns.
func (f *Fiber) leaving() bool {
	return f.phase > phaseLoading || f.up && !f.current() || f.disposed && f.State() != Disposed
}

// doomsChildren tells whether f is about to dispose its children, which
// therefore do not start.
func (f *Fiber) doomsChildren() bool { return f != nil && f.leaving() }

// setState changes the visible state and notes it for the observers.
func (f *Fiber) setState(s State) {
	old := f.State()
	f.state.Store(int32(s))
	if f.rt.listening(&StatusChanged.event) {
		f.note(func(ctx context.Context) {
			StatusChanged.Emit(ctx, &f.ctx, StatusChange{Fiber: f, Old: old, New: s})
		})
	}
}

// note keeps something to be told outside the lock, in order, by the next step.
func (f *Fiber) note(tell func(ctx context.Context)) { f.notes = append(f.notes, tell) }

// requestDispose begins the disposal of f; that of the root is a restart.
func (f *Fiber) requestDispose() {
	if f.plugin == nil {
		f.again()
		return
	}
	if f.disposed {
		return
	}
	f.disposed = true
	if !f.up {
		f.receipt = Receipt{} // of an earlier unload
	}
	f.rt.unregister(f)
	f.calls.setOpen(false)
	if f.rt.listening(&PluginChanged.event) {
		f.note(func(ctx context.Context) {
			PluginChanged.Emit(ctx, &f.ctx, PluginChange{Fiber: f})
		})
	}
	f.touch()
	f.schedule()
}

// again starts a new generation: whatever runs is for an old one.
func (f *Fiber) again() {
	f.err = nil
	f.gen++
	f.touch()
	f.schedule()
}

// touch follows a change of the goal: a run that is no longer wanted is told
// so, and if it is not in the middle of its body its unload begins at once.
func (f *Fiber) touch() {
	if !f.up || f.current() {
		return
	}
	switch f.phase {
	case phaseLoading:
		f.run.Load().end()
	case phaseIdle:
		f.beginUnload()
	}
}

// step takes f as far as it goes without waiting. Called without the lock.
func (f *Fiber) step() {
	returned := false
	defer func() {
		if !returned {
			go f.exited()
		}
	}()
	r := f.rt
	r.mu.Lock()
	for {
		if len(f.notes) > 0 {
			f.tell()
			continue
		}
		if !f.advance() {
			break
		}
		if r.stepper != nil {
			r.stepper.push(f)
			break
		}
	}
	r.mu.Unlock()
	returned = true
}

// exited goes on with the transition after user code has ended the goroutine of
// its step. Called without the lock.
func (f *Fiber) exited() {
	f.rt.mu.Lock()
	body := f.phase == phaseLoading && f.runner == &f.run.Load().frame
	f.runner = nil
	if body {
		f.endLoad(errExit)
	}
	h := f.undoing
	f.rt.mu.Unlock()
	if h != nil { // unwind goes on by itself; its end wakes f
		f.rt.mu.Lock()
		f.queued = false
		if h.phase == handleDone {
			f.schedule()
		}
		f.rt.mu.Unlock()
		return
	}
	f.step()
}

// tell runs the notes, outside the lock. Observers that wait for f get ErrSelf.
func (f *Fiber) tell() {
	notes := f.notes
	f.notes = nil
	fr := newFrame(context.Background(), f, "observers")
	f.runner = fr
	f.rt.mu.Unlock()
	for _, n := range notes {
		n(fr)
	}
	f.rt.mu.Lock()
	f.runner = nil
}

// advance takes the next part of the transition. It is false if f must wait or
// has settled; f is not queued then. The lock is released while user code runs.
func (f *Fiber) advance() bool {
	switch f.phase {
	case phaseLoading:
		f.load()
		return true
	case phaseHolders:
		if f.held() {
			f.queued = false
			return false
		}
		f.phase = phaseCalls
		return true
	case phaseCalls:
		if f.drainTimer != nil {
			f.drainTimer.Stop()
			f.drainTimer = nil
		}
		if !f.drain() {
			f.queued = false
			return false
		}
		f.phase = phaseEffects
		return true
	case phaseEffects:
		return f.unwind()
	}
	switch goal := f.goal(); {
	case f.up && !f.current():
		f.beginUnload()
	case f.recheck && !f.disposed:
		f.ask()
	case !f.up && f.disposed && f.State() != Disposed && f.first != nil:
		f.phase = phaseEffects // it never ran, but its observers registered something
	case !f.up && f.wants() && !f.parent.doomsChildren():
		f.beginLoad()
	case f.State() != goal:
		f.setState(goal)
	default:
		f.settle()
		return false
	}
	return true
}

// goal is the state that an idle fiber settles in.
func (f *Fiber) goal() State {
	switch {
	case f.disposed:
		return Disposed
	case f.err != nil:
		return Failed
	case f.up:
		return Active
	}
	return Pending
}

// settle ends the transition and wakes who waits for it.
func (f *Fiber) settle() {
	f.queued = false
	if f.disposed && f.handle.phase != handleDone {
		f.handle.finish()
	}
	if f.waiters != nil {
		close(f.waiters)
		f.waiters = nil
	}
}

// startRun makes the run that is to be loaded, with its services held.
func (f *Fiber) startRun() *run {
	r := &f.run0
	if f.used0 {
		r = &run{}
	}
	f.used0 = true
	r.site = site{f, "body"}
	r.frame.at, r.frame.in = &r.site, &r.entry
	r.held = f.deps
	for _, im := range f.deps {
		im.hold(f)
	}
	f.run.Store(r)
	return r
}

func (f *Fiber) beginLoad() {
	f.startRun()
	f.ranGen, f.up, f.phase = f.gen, true, phaseLoading
	f.calls.setOpen(true)
	f.setState(Loading)
}

// load runs the body, unless it is outdated before it began.
func (f *Fiber) load() {
	var err error
	if f.current() && f.plugin != nil {
		f.runner = &f.run.Load().frame
		config := f.config
		f.rt.mu.Unlock()
		err = guard(func() error { return f.plugin.Apply(&f.ctx, config) })
		f.rt.mu.Lock()
		f.runner = nil
	}
	f.endLoad(err)
}

// endLoad commits the result of the body if it is for the current generation.
// The error of an outdated run is logged, but does not fail the fiber: it runs
// again, or waits.
func (f *Fiber) endLoad(err error) {
	f.phase = phaseIdle
	if err != nil {
		err = fmt.Errorf("plugin %q: %w", f.name, err)
		f.note(func(context.Context) { f.report("plugin failed", err) })
		if f.current() || f.disposed {
			f.err = err
		}
	}
	if !f.current() {
		f.beginUnload()
		return
	}
	f.setState(Active)
	f.publish(true)
}

// publish tells the dependents of f's services that these came or went.
func (f *Fiber) publish(present bool) {
	for _, im := range f.impls {
		f.rt.changed(im.key(), im, present)
	}
}

// beginUnload stops admission and makes the dependents unload.
func (f *Fiber) beginUnload() {
	active := f.State() == Active
	f.phase = phaseHolders
	f.run.Load().end()
	f.calls.setOpen(false)
	f.receipt = Receipt{}
	f.provided = f.provided[:0]
	for _, im := range f.impls {
		f.provided = append(f.provided, im.key())
	}
	f.setState(Unloading)
	if active {
		f.publish(false)
	}
	f.schedule()
}

// held tells whether a run of another fiber still has a service of f.
func (f *Fiber) held() bool {
	return slices.ContainsFunc(f.impls, func(im *impl) bool { return len(im.holders) > 0 })
}

// unwind undoes the effects, the last one first, one after the other. It is
// false while one of them ends in other hands.
func (f *Fiber) unwind() bool {
	if f.undoing != nil {
		f.collect(f.undoing)
	}
	h := f.last
	if h == nil {
		f.endUnload()
		return true
	}
	if h.phase == handleLive {
		f.undoing = h
		h.watched++
		if h.begin() {
			f.rt.mu.Unlock()
			h.unwind(context.Background())
			f.rt.mu.Lock()
		}
	} else if h.phase == handleSetup && h.stop != nil {
		h.stop()
	}
	if h.phase != handleDone {
		f.queued = false
		return false
	}
	return true
}

// collect adds the outcome of an effect that was undone to the receipt.
func (f *Fiber) collect(h *Handle) {
	if h.phase != handleDone {
		return
	}
	f.undoing = nil
	h.watched--
	if h.err != nil {
		f.errs = append(f.errs, fmt.Errorf("undo %q: %w", h.label, h.err))
		f.receipt.Left++
	}
	if h.child != nil {
		rec := h.child.receipt
		f.receipt.Drained += rec.Drained
		f.receipt.Abandoned = append(f.receipt.Abandoned, rec.Abandoned...)
		f.receipt.Left += rec.Left
		if rec.Err != nil {
			f.lost = append(f.lost, rec.Err)
		}
	}
}

// endUnload releases what the run held. The next idle step decides what follows.
func (f *Fiber) endUnload() {
	if err := errors.Join(f.errs...); err != nil {
		f.note(func(context.Context) { f.report("effects could not be undone", err) })
	}
	f.receipt.Err = errors.Join(append(f.errs, f.lost...)...)
	f.errs, f.lost = nil, nil
	f.drainBy = time.Time{}
	f.phase = phaseIdle
	r := f.run.Load()
	if r == nil {
		return
	}
	f.run.Store(nil)
	f.up = false
	for _, im := range r.held {
		im.release(f)
	}
}
