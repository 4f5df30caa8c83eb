package cordis

import (
	"context"
	"errors"
	"fmt"
)

// Disposer undoes one thing. Its context carries the chain of the disposal and
// is not cancelled when the caller of Dispose stops waiting.
type Disposer func(ctx context.Context) error

// EffectInfo describes a standing effect.
type EffectInfo struct {
	Label    string
	Children []EffectInfo // what it adopted
}

type handlePhase uint8

const (
	handleLive  handlePhase = iota
	handleSetup             // its setup runs
	handleUndoing
	handleDone
)

// inverse is the undoing of an effect of the runtime's own. It runs under
// Runtime.mu and calls no foreign code.
type inverse interface{ undo() }

// Handle is one effect of a fiber: something that was set up and can be undone,
// once. The fiber undoes it when it unloads.
type Handle struct {
	site
	// All fields below are guarded by Runtime.mu.
	phase      handlePhase
	listed     bool // in the fiber's list
	wanted     bool // to be undone as soon as its setup ends
	watched    int  // callers that wait for it
	prev, next *Handle
	outer      *Handle // what adopted it
	items      []item  // what the setup collected, in order
	inverse    inverse // what the runtime registered
	impl       *impl   // a provided service
	child      *Fiber  // a mounted plugin
	runner     *frame  // its setup or its disposers, while they run
	stop       context.CancelFunc
	err        error // of the setup, then of the undoing
	ready      chan struct{}
	done       chan struct{}
}

// item is one thing that a setup collected: a disposer, or an adopted effect.
type item struct {
	disposer Disposer
	handle   *Handle
}

// Setup collects the inverses of an effect while it is set up.
type Setup struct{ h *Handle }

// Collect adds a disposer; they run in reverse order of collection. One that is
// collected when the effect has been undone already runs at once.
func (s *Setup) Collect(d Disposer) {
	if d != nil {
		s.add(item{disposer: d})
	}
}

// Adopt makes h a part of this effect: it is undone with it, in its place among
// what was collected, and leaves its fiber's own list. Effects of other fibers
// stay in their list as well. What is a part of an effect already, or has this
// one as a part, is left as it is.
func (s *Setup) Adopt(h *Handle) {
	if h != nil && h != s.h {
		s.add(item{handle: h})
	}
}

func (s *Setup) add(it item) {
	h := s.h
	r := h.fiber.rt
	r.mu.Lock()
	if it.handle != nil && !h.mayAdopt(it.handle) {
		r.mu.Unlock()
		return
	}
	if h.phase != handleDone {
		if it.handle != nil {
			it.handle.outer = h
			if it.handle.fiber == h.fiber {
				it.handle.unlist()
			}
		}
		h.items = append(h.items, it)
		r.mu.Unlock()
		return
	}
	r.mu.Unlock()
	if err := it.undo(newFrame(context.Background(), h.fiber, h.label)); err != nil {
		h.fiber.report("late effect could not be undone", err, "effect", h.label)
	}
}

// mayAdopt tells whether in can become a part of h. Runtime.mu is held.
func (h *Handle) mayAdopt(in *Handle) bool {
	for o := h; o != nil; o = o.outer {
		if o == in {
			return false
		}
	}
	return in.outer == nil && in.phase != handleDone && in.fiber.rt == h.fiber.rt
}

// Stopped tells whether the effect is to be undone already: a setup of several
// steps asks between them and stops early.
func (s *Setup) Stopped() bool {
	f := s.h.fiber
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	return s.h.wanted || s.h.phase == handleDone || f.leaving()
}

// Context carries the chain of the setup: waiting with it for the own fiber or
// effect is refused with ErrSelf. It is cancelled as [Context.Context] is.
func (s *Setup) Context() context.Context {
	f := s.h.fiber
	ctx := f.ctx.Context()
	up := frameOf(ctx)
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	fr := s.h.runner
	if fr == nil || s.h.phase != handleSetup { // set up already
		return ctx
	}
	if fr.in == nil {
		fr.in = &entry{ctx, up}
	}
	return fr
}

// Effect runs setup, now and here, and keeps what it collects as one effect of
// the fiber. The effect belongs to the fiber before setup runs: an unload that
// begins meanwhile waits for setup and then undoes it. If setup fails (or
// panics), what it collected is undone and its error returned, joined with
// those of the undoing. An empty label is "anonymous".
func (c *Context) Effect(label string, setup func(s *Setup) error) (*Handle, error) {
	h := &Handle{site: site{c.fiber, label}, phase: handleSetup}
	if err := c.fiber.adopt(h, &frame{at: &h.site}); err != nil {
		return nil, err
	}
	returned := false
	defer func() {
		if !returned {
			go func() { _ = h.endSetup(errExit) }() // who waits for the handle is told
		}
	}()
	err := guard(func() error { return setup(&Setup{h}) })
	returned = true
	if err = h.endSetup(err); err != nil {
		return nil, err
	}
	return h, nil
}

// EffectAsync is Effect with setup on a goroutine of its own. Its context is
// cancelled when the effect is to be undone. The fiber becomes ACTIVE without
// waiting for it, and its unload waits. An error of setup goes to those who
// wait for the handle at that time, or else to the fiber's logger.
func (c *Context) EffectAsync(label string, setup func(ctx context.Context, s *Setup) error) (*Handle, error) {
	h := &Handle{site: site{c.fiber, label}, phase: handleSetup}
	ctx, stop := context.WithCancel(c.Context())
	h.stop = stop
	fr := newFrame(ctx, c.fiber, label)
	fr.in.up = nil // nobody's call: the body does not wait for it
	if err := c.fiber.adopt(h, fr); err != nil {
		stop()
		return nil, err
	}
	go func() {
		returned := false
		defer func() {
			stop()
			if !returned {
				go func() { _ = h.endSetup(errExit) }() // who waits for the handle is told
			}
		}()
		err := guard(func() error { return setup(fr, &Setup{h}) })
		returned = true
		_ = h.endSetup(err) // who waits for the handle is told
	}()
	return h, nil
}

// Defer registers d as an effect.
func (c *Context) Defer(label string, d Disposer) (*Handle, error) {
	if d == nil {
		return nil, fmt.Errorf("%w: defer %q: the disposer is nil", ErrArgument, label)
	}
	h := &Handle{site: site{c.fiber, label}, items: []item{{disposer: d}}}
	if err := c.fiber.adopt(h, nil); err != nil {
		return nil, err
	}
	return h, nil
}

// adopt lists h as an effect of f, if f takes effects now.
func (f *Fiber) adopt(h *Handle, runner *frame) error {
	if h.label == "" {
		h.label = "anonymous"
	}
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	if err := f.accepts("create effect"); err != nil {
		return err
	}
	h.runner = runner
	f.list(h)
	return nil
}

// accepts tells whether f takes effects now. Runtime.mu is held.
func (f *Fiber) accepts(doing string) error {
	draining := (f.phase == phaseHolders || f.phase == phaseCalls) && len(f.calls.running()) > 0
	switch {
	case draining: // running calls go on; what they register is undone after them
		return nil
	case f.disposed, f.phase > phaseLoading, f.State() == Failed:
		return f.inactive(doing)
	}
	return nil
}

func (f *Fiber) list(h *Handle) {
	h.listed = true
	h.prev = f.last
	if f.last == nil {
		f.first = h
	} else {
		f.last.next = h
	}
	f.last = h
}

// unlist takes h out of its fiber's list. Runtime.mu is held.
func (h *Handle) unlist() {
	if !h.listed {
		return
	}
	f := h.fiber
	h.listed = false
	if h.prev == nil {
		f.first = h.next
	} else {
		h.prev.next = h.next
	}
	if h.next == nil {
		f.last = h.prev
	} else {
		h.next.prev = h.prev
	}
	h.prev, h.next = nil, nil
}

// endSetup records the end of the setup. A failed one is rolled back; one that
// was asked to end meanwhile is undone.
func (h *Handle) endSetup(err error) error {
	f := h.fiber
	r := f.rt
	r.mu.Lock()
	h.err = err
	wanted := h.wanted || err != nil
	if wanted {
		h.phase = handleUndoing
	} else {
		h.phase, h.runner = handleLive, nil
	}
	if h.ready != nil {
		close(h.ready)
	}
	f.wake(phaseEffects)
	failed, silent := err != nil, h.watched == 0 && h.stop != nil
	if failed {
		h.watched++ // told below
	}
	r.mu.Unlock()
	if !wanted {
		return nil
	}
	h.unwind(context.Background())
	r.mu.Lock()
	if failed {
		h.watched--
	}
	err = h.err
	r.mu.Unlock()
	if failed && silent {
		f.report("asynchronous effect failed", err, "effect", h.label)
	}
	if !failed {
		return nil // set up, and undone since: told to whoever asked for that
	}
	return err
}

// unwind runs the disposers of h, which is in handleUndoing, in reverse. All
// are attempted.
func (h *Handle) unwind(ctx context.Context) {
	r := h.fiber.rt
	fr := newFrame(ctx, h.fiber, h.label)
	returned := false
	defer func() {
		if !returned { // the disposer ended the goroutine: go on without it
			r.mu.Lock()
			h.err = errors.Join(h.err, errExit)
			r.mu.Unlock()
			go h.unwind(ctx)
		}
	}()
	r.mu.Lock()
	h.runner = fr
	for len(h.items) > 0 {
		it := h.items[len(h.items)-1]
		h.items = h.items[:len(h.items)-1]
		if it.handle != nil && it.handle.phase == handleDone {
			continue
		}
		r.mu.Unlock()
		err := it.undo(fr)
		r.mu.Lock()
		if err != nil {
			h.err = errors.Join(h.err, err)
		}
	}
	returned = true
	h.finish()
	err, silent := h.err, h.watched == 0
	r.mu.Unlock()
	if err != nil && silent {
		h.fiber.report("effect could not be undone", err, "effect", h.label)
	}
}

func (it item) undo(fr *frame) error {
	if it.handle != nil {
		return it.handle.Dispose(fr)
	}
	return guard(func() error { return it.disposer(fr) })
}

// finish marks h as undone and wakes who waits for it. Runtime.mu is held.
func (h *Handle) finish() {
	h.phase, h.runner, h.items = handleDone, nil, nil
	h.unlist()
	if h.done != nil {
		close(h.done)
	}
	h.fiber.wake(phaseEffects)
}

// begin starts the undoing of a live effect. It tells whether the caller must
// unwind it; everything else ends by itself. Runtime.mu is held.
func (h *Handle) begin() (unwind bool) {
	switch {
	case h.child != nil:
		h.phase = handleUndoing
		h.child.requestDispose()
	case h.impl != nil:
		h.phase = handleUndoing
		h.impl.retract()
	case h.inverse != nil:
		h.inverse.undo()
		h.finish()
	default:
		h.phase = handleUndoing
		return true
	}
	return false
}

// Dispose undoes the effect and returns when that is complete, with the joined
// errors of its disposers. It happens once: later and concurrent callers join
// the same completion. If setup still runs, it is waited for first. When ctx
// ends, or the wait would be for oneself (ErrSelf), Dispose returns and the
// undoing goes on; an error that nobody waits for is logged.
func (h *Handle) Dispose(ctx context.Context) error {
	r := h.fiber.rt
	r.mu.Lock()
	switch h.phase {
	case handleSetup:
		h.wanted = true
		if h.stop != nil {
			h.stop()
		}
	case handleLive:
		if h.begin() {
			h.watched++
			r.mu.Unlock()
			undoing := context.WithoutCancel(ctx)
			if ctx.Done() == nil {
				h.unwind(undoing)
			} else {
				go h.unwind(undoing)
			}
			r.mu.Lock()
			h.watched--
		}
	}
	if h.phase == handleDone {
		defer r.mu.Unlock()
		return h.err
	}
	h.watched++
	r.mu.Unlock()
	err := r.await(ctx, node{handle: h})
	r.mu.Lock()
	defer r.mu.Unlock()
	h.watched--
	if err != nil {
		return fmt.Errorf("dispose effect %q of fiber %q (#%d): %w; the disposal goes on", h.label, h.fiber.name, h.fiber.id, err)
	}
	return h.err
}

// Wait returns when the setup has ended, with its error.
func (h *Handle) Wait(ctx context.Context) error {
	r := h.fiber.rt
	r.mu.Lock()
	h.watched++
	r.mu.Unlock()
	err := r.await(ctx, node{handle: h, setup: true})
	r.mu.Lock()
	defer r.mu.Unlock()
	h.watched--
	if err != nil {
		return fmt.Errorf("wait for effect %q of fiber %q (#%d): %w", h.label, h.fiber.name, h.fiber.id, err)
	}
	return h.err
}

// Label gives what the effect was called.
func (h *Handle) Label() string { return h.label }

func (h *Handle) info() EffectInfo {
	in := EffectInfo{Label: h.label}
	for _, it := range h.items {
		if it.handle != nil && it.handle.phase != handleDone {
			in.Children = append(in.Children, it.handle.info())
		}
	}
	return in
}
