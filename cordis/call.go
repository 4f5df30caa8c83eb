package cordis

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// site is where a frame runs: a fiber, and what is being done there.
type site struct {
	fiber *Fiber
	label string
}

// entry is what the frames of one dispatch have in common: the context they
// extend, and the frame of the chain it carries.
type entry struct {
	ctx context.Context
	up  *frame
}

// frame is one link of a chain: a call, a body or a disposer that is running. It
// is a context.Context, so that the chain travels with it. Small on purpose: a
// dispatch makes one for every listener.
type frame struct {
	in     *entry
	at     *site
	linked bool // among the fiber's running calls; guarded by its calls.mu
}

var _ context.Context = (*frame)(nil)

var frameKey any = new(int)

func (fr *frame) Deadline() (time.Time, bool) { return fr.in.ctx.Deadline() }
func (fr *frame) Done() <-chan struct{}       { return fr.in.ctx.Done() }
func (fr *frame) Err() error                  { return fr.in.ctx.Err() }
func (fr *frame) Value(key any) any {
	if key == frameKey {
		return fr
	}
	return fr.in.ctx.Value(key)
}

// frameOf gives the innermost frame that ctx carries, or nil.
func frameOf(ctx context.Context) *frame {
	if fr, ok := ctx.(*frame); ok {
		return fr
	}
	fr, _ := ctx.Value(frameKey).(*frame)
	return fr
}

// newFrame makes a frame that extends ctx.
func newFrame(ctx context.Context, f *Fiber, label string) *frame {
	fr := &struct {
		frame
		entry
		site
	}{}
	fr.entry = entry{ctx, frameOf(ctx)}
	fr.site = site{f, label}
	fr.frame.in, fr.frame.at = &fr.entry, &fr.site
	return &fr.frame
}

// CallersIn gives the fibers on the chain that ctx carries, outermost first: the
// calls, bodies and disposers that the code holding ctx runs in.
func CallersIn(ctx context.Context) []*Fiber {
	var out []*Fiber
	for fr := frameOf(ctx); fr != nil; fr = fr.in.up {
		out = append(out, fr.at.fiber)
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// calls are the running calls of a fiber, oldest first.
type calls struct {
	mu       sync.Mutex
	open     bool // calls are admitted without asking
	draining bool // the fiber wants a step when the last call leaves
	frames   []*frame
	drained  int // calls that ended since the gate was closed
}

func (c *calls) link(fr *frame) {
	fr.linked = true
	c.frames = append(c.frames, fr)
}

// unlink looks from the end: most calls end in reverse order.
func (c *calls) unlink(fr *frame) {
	fr.linked = false
	last := len(c.frames) - 1
	i := last
	for c.frames[i] != fr {
		i--
	}
	copy(c.frames[i:], c.frames[i+1:])
	c.frames[last] = nil
	c.frames = c.frames[:last]
}

// replace ends the call last and begins fr, if the fiber admits calls.
func (c *calls) replace(last, fr *frame) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := len(c.frames) - 1
	if !c.open || !last.linked || c.frames[i] != last {
		return false
	}
	last.linked, fr.linked = false, true
	c.frames[i] = fr
	return true
}

// running gives the running calls, oldest first.
func (c *calls) running() []*frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.frames)
}

func (c *calls) setOpen(open bool) {
	c.mu.Lock()
	if c.open && !open {
		c.drained = 0
	}
	c.open = open
	c.mu.Unlock()
}

// Enter begins a call into f. The returned context extends ctx by the call and
// must be passed on; done ends the call and must be called once (a second time
// is harmless).
//
// A fiber admits calls while LOADING or ACTIVE. While UNLOADING it admits only
// chains that hold a call, body or disposer of one of its dependents or
// descendants, which it serves until they have unwound. Anything else is an
// *InactiveError that names the fiber and its state.
//
// When f unloads it waits for the call, until the deadline of ctx and at most
// for the runtime's drain limit; after that the call is abandoned.
func (f *Fiber) Enter(ctx context.Context, label string) (context.Context, func(), error) {
	fr := newFrame(ctx, f, label)
	if !f.admit(fr) {
		return nil, nil, f.inactive(fmt.Sprintf("enter %q", label))
	}
	return fr, func() { f.leave(fr) }, nil
}

// admit registers fr as a running call, if the fiber takes it.
func (f *Fiber) admit(fr *frame) bool {
	c := &f.calls
	c.mu.Lock()
	if c.open {
		c.link(fr)
		c.mu.Unlock()
		return true
	}
	c.mu.Unlock()
	if s := f.State(); s != Unloading && s != Active { // Active: it is about to unload
		return false
	}
	return f.admitLate(fr, f.serves)
}

// admitLate registers fr with an unloading fiber if allowed says so, under Runtime.mu.
func (f *Fiber) admitLate(fr *frame, allowed func(*frame) bool) bool {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	if f.State() != Unloading || !allowed(fr.in.up) {
		return false
	}
	f.calls.mu.Lock()
	f.calls.link(fr)
	f.calls.mu.Unlock()
	return true
}

// leave ends a call. Abandoned calls have been unlinked and end unseen.
func (f *Fiber) leave(fr *frame) {
	c := &f.calls
	c.mu.Lock()
	if !fr.linked {
		c.mu.Unlock()
		return
	}
	c.unlink(fr)
	if !c.open {
		c.drained++
	}
	last := c.draining && len(c.frames) == 0
	c.mu.Unlock()
	if last {
		f.rt.mu.Lock()
		f.wake(phaseCalls)
		f.rt.mu.Unlock()
	}
}

// serves tells whether the chain holds a frame of a dependent or descendant of
// f. Runtime.mu is held.
func (f *Fiber) serves(chain *frame) bool {
	for fr := chain; fr != nil; fr = fr.in.up {
		for g := fr.at.fiber; g != nil && fr.at.fiber != f; g = g.parent {
			if g == f || g.holds(f) {
				return true
			}
		}
	}
	return false
}

// holds tells whether the current run of f was started with a service of other.
func (f *Fiber) holds(other *Fiber) bool {
	r := f.run.Load()
	if r == nil {
		return false
	}
	for _, im := range r.held {
		if im.owner == other {
			return true
		}
	}
	return false
}

// drain looks at the running calls of an unloading fiber: it abandons those
// that are past their limit and tells whether none is left. Otherwise a timer
// brings the next step. Runtime.mu is held; it is released while the deadlines
// are read, since contexts may be anybody's.
func (f *Fiber) drain() bool {
	r := f.rt
	frames := f.calls.running()
	if len(frames) == 0 {
		f.calls.mu.Lock()
		f.receipt.Drained += f.calls.drained
		f.calls.drained, f.calls.draining = 0, false
		f.calls.mu.Unlock()
		return true
	}
	now := time.Now()
	if f.drainBy.IsZero() {
		f.drainBy = now.Add(cmp.Or(f.ctx.drain, r.drainLimit))
	}
	limits := make([]time.Time, len(frames))
	r.mu.Unlock()
	for i, fr := range frames {
		limits[i] = f.drainBy
		if d, ok := fr.Deadline(); ok && d.Before(f.drainBy) {
			limits[i] = d
		}
	}
	r.mu.Lock()
	var next time.Time
	f.calls.mu.Lock()
	for i, fr := range frames {
		switch {
		case !fr.linked:
		case !limits[i].After(now):
			f.calls.unlink(fr)
			f.receipt.Abandoned = append(f.receipt.Abandoned, fr.at.label)
		case next.IsZero() || limits[i].Before(next):
			next = limits[i]
		}
	}
	left := len(f.calls.frames)
	f.calls.draining = true
	f.calls.mu.Unlock()
	if left == 0 {
		return f.drain()
	}
	if next.IsZero() {
		next = f.drainBy
	}
	f.drainTimer = time.AfterFunc(time.Until(next), func() {
		r.mu.Lock()
		f.wake(phaseCalls)
		r.mu.Unlock()
	})
	return false
}

// node is what can be waited for: a fiber that settles or, if handle is set, an
// effect: its end, or the end of its setup.
type node struct {
	fiber  *Fiber
	handle *Handle
	setup  bool
}

// signal gives a channel that closes when n is reached, or nil if it is
// reached. Runtime.mu is held.
func (n node) signal() <-chan struct{} {
	var ch *chan struct{}
	switch {
	case n.handle == nil && !n.fiber.settled():
		ch = &n.fiber.waiters
	case n.handle == nil:
		return nil
	case n.setup && n.handle.phase == handleSetup:
		ch = &n.handle.ready
	case !n.setup && n.handle.phase != handleDone:
		ch = &n.handle.done
	default:
		return nil
	}
	if *ch == nil {
		*ch = make(chan struct{})
	}
	return *ch
}

// await blocks until n is reached or ctx ends. It refuses with ErrSelf to wait
// for what cannot end before the caller's own chain has ended.
func (r *Runtime) await(ctx context.Context, n node) error {
	r.mu.Lock()
	ch := n.signal()
	if ch == nil {
		r.mu.Unlock()
		return nil
	}
	r.mu.Unlock()
	chain := frameOf(ctx) // ctx may be anybody's: not under the lock
	r.mu.Lock()
	if n.signal() == nil {
		r.mu.Unlock()
		return nil
	}
	if chain != nil {
		w := walk{r: r, own: chain, seen: map[node]bool{}}
		if w.visit(n, false) {
			r.mu.Unlock()
			return ErrSelf
		}
		for fr := chain; fr != nil; fr = fr.in.up {
			r.waits[fr] = append(r.waits[fr], n)
		}
	}
	r.mu.Unlock()
	var err error
	select {
	case <-ch:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if chain != nil {
		r.mu.Lock()
		for fr := chain; fr != nil; fr = fr.in.up {
			r.unwait(fr, n)
		}
		r.mu.Unlock()
	}
	return err
}

func (r *Runtime) unwait(fr *frame, n node) {
	list := r.waits[fr]
	for i := range list {
		if list[i] == n {
			list[i] = list[len(list)-1]
			list = list[:len(list)-1]
			break
		}
	}
	if len(list) == 0 {
		delete(r.waits, fr)
	} else {
		r.waits[fr] = list
	}
}

// walk follows who waits for whom from a node. It finds out whether that would
// lead back to the chain own. Runtime.mu is held.
type walk struct {
	r    *Runtime
	own  *frame
	seen map[node]bool
}

// visit tells whether n can only be reached after own has ended. With leaving
// set, a fiber counts as unloading even if that has not begun.
func (w *walk) visit(n node, leaving bool) bool {
	if n.handle != nil {
		return w.handle(n.handle)
	}
	f := n.fiber
	leaving = leaving || f.leaving()
	key := node{fiber: f, setup: leaving}
	if w.seen[key] {
		return false
	}
	w.seen[key] = true
	if w.frame(f.runner) {
		return true
	}
	if !leaving {
		return false
	}
	for _, fr := range f.calls.running() {
		if w.frame(fr) {
			return true
		}
	}
	for _, im := range f.impls {
		if w.holders(im) {
			return true
		}
	}
	for h := f.first; h != nil; h = h.next {
		if w.handle(h) {
			return true
		}
	}
	return false
}

func (w *walk) holders(im *impl) bool {
	for d := range im.holders {
		if w.visit(node{fiber: d}, true) {
			return true
		}
	}
	return false
}

func (w *walk) handle(h *Handle) bool {
	key := node{handle: h}
	if w.seen[key] || h.phase == handleDone {
		return false
	}
	w.seen[key] = true
	if w.frame(h.runner) || h.child != nil && w.visit(node{fiber: h.child}, true) {
		return true
	}
	if h.impl != nil && w.holders(h.impl) {
		return true
	}
	for _, it := range h.items {
		if it.handle != nil && w.handle(it.handle) {
			return true
		}
	}
	return false
}

// frame tells whether fr is part of own, or waits for something that is.
func (w *walk) frame(fr *frame) bool {
	if fr == nil {
		return false
	}
	for own := w.own; own != nil; own = own.in.up {
		if own == fr {
			return true
		}
	}
	for _, n := range w.r.waits[fr] {
		if w.visit(n, false) {
			return true
		}
	}
	return false
}
