package cordis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Mode is how an event is dispatched; the type of its variable says it too.
type Mode int

// The modes of events.
const (
	ModeEmit      Mode = iota // every listener, nothing comes back
	ModeParallel              // every listener, at the same time, errors come back
	ModeSerial                // in turn, until one answers; the listeners may wait
	ModeBail                  // in turn, until one answers; for quick questions
	ModeWaterfall             // each around the next, the dispatcher's function innermost
)

// String gives the name in lower case.
func (m Mode) String() string {
	names := [...]string{"emit", "parallel", "serial", "bail", "waterfall"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("mode(%d)", int(m))
	}
	return names[m]
}

// Event is a declared event of any mode, for callers that know it by name.
type Event interface {
	Name() string
	Mode() Mode
	// Listenable tells whether mounted plugins may listen.
	Listenable() bool
	// Listen registers fn, as the typed On does.
	Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error)
}

// Dynamic is a listener of an event of any mode. next is nil but for
// waterfalls. For serial and bail a result that is nil or false did not bail;
// for these and waterfalls another result must be of the event's result type.
// An error where the mode carries none (emit) is reported on the logger of the
// listener's fiber.
type Dynamic func(ctx context.Context, arg any, next func(context.Context) (any, error)) (result any, err error)

// event is what declarations of all modes have in common.
type event struct {
	name       string
	mode       Mode
	label      string // of its effects
	listenable bool
	internal   bool // its dispatches are not observed
	self       Event
}

// Name gives the declared name.
func (e *event) Name() string { return e.name }

// Mode gives the mode.
func (e *event) Mode() Mode { return e.mode }

// Listenable tells whether mounted plugins may listen.
func (e *event) Listenable() bool { return e.listenable }

// EventOption configures the declaration of an event.
type EventOption func(*event)

// ForPlugins lets mounted plugins listen; the default is not.
func ForPlugins() EventOption { return func(e *event) { e.listenable = true } }

// declare fills in e and reserves its name.
func declare(e *event, self Event, name string, mode Mode, opts []EventOption) {
	*e = event{name: name, mode: mode, label: `ctx.on("` + name + `")`, self: self}
	e.internal = strings.HasPrefix(name, "internal/")
	for _, o := range opts {
		o(e)
	}
	declared.Lock()
	defer declared.Unlock()
	if _, dup := declared.events[name]; dup || name == "" {
		panic(fmt.Sprintf("cordis: declare event %q: the name is empty or was declared before", name))
	}
	declared.events[name] = self
}

// LookupEvent gives the event of a name.
func LookupEvent(name string) (Event, bool) {
	declared.RLock()
	defer declared.RUnlock()
	e, ok := declared.events[name]
	return e, ok
}

// Events gives all declared events, sorted by name.
func Events() []Event {
	declared.RLock()
	defer declared.RUnlock()
	return slices.SortedFunc(maps.Values(declared.events), func(a, b Event) int {
		return cmp.Compare(a.Name(), b.Name())
	})
}

// listener is one registration. It is an effect of its fiber.
type listener struct {
	handle     Handle
	ctx        *Context
	fn         any   // of the event's type
	list       *list // guarded by Runtime.mu
	global     bool
	once       bool
	prepended  bool
	off        atomic.Bool
	prev, next *listener
}

// list holds the listeners of an event in one runtime. The snapshot is made by
// the first dispatch after a change.
type list struct {
	mu          sync.Mutex
	first, last *listener
	snap        atomic.Pointer[[]*listener]
}

func (l *list) snapshot() []*listener {
	if s := l.snap.Load(); s != nil {
		return *s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := []*listener{}
	for n := l.first; n != nil; n = n.next {
		s = append(s, n)
	}
	l.snap.Store(&s)
	return s
}

func (l *list) add(n *listener) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.link(n)
}

func (l *list) link(n *listener) {
	switch {
	case l.first == nil:
		l.first, l.last = n, n
	case n.prepended:
		n.next, l.first.prev = l.first, n
		l.first = n
	default:
		n.prev, l.last.next = l.last, n
		l.last = n
	}
	l.snap.Store(nil)
}

// trade moves what replaced fibers have in l into gone, and takes over what a stage
// has in came, as if it were registered now, in one step for who dispatches. Only
// the caller, who holds Runtime.mu, uses the other two.
func (l *list) trade(came, gone *list) {
	l.mu.Lock()
	defer l.mu.Unlock()
	move := func(n *listener, to *list) {
		n.list.unlink(n)
		n.list = to
		to.link(n)
	}
	for n := l.first; n != nil; {
		next := n.next
		if n.handle.fiber.retired() {
			move(n, gone)
		}
		n = next
	}
	if came == nil {
		return
	}
	for n := came.last; n != nil; { // the first that was put before others is behind them
		prev := n.prev
		if n.prepended {
			move(n, l)
		}
		n = prev
	}
	for came.first != nil {
		move(came.first, l)
	}
}

// undo takes n out of its list.
func (n *listener) undo() {
	n.off.Store(true)
	l := n.list
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unlink(n)
}

func (l *list) unlink(n *listener) {
	if n.prev == nil {
		l.first = n.next
	} else {
		n.prev.next = n.next
	}
	if n.next == nil {
		l.last = n.prev
	} else {
		n.next.prev = n.prev
	}
	n.prev, n.next = nil, nil
	l.snap.Store(nil)
}

var _ inverse = (*listener)(nil)

func (r *Runtime) list(e *event) *list {
	if v, ok := r.lists.Load(e); ok {
		return v.(*list)
	}
	v, _ := r.lists.LoadOrStore(e, &list{})
	return v.(*list)
}

// listeners gives the snapshot of e's listeners.
func (r *Runtime) listeners(e *event) []*listener {
	v, ok := r.lists.Load(e)
	if !ok {
		return nil
	}
	return v.(*list).snapshot()
}

// listening tells whether anybody listens to e.
func (r *Runtime) listening(e *event) bool { return len(r.listeners(e)) > 0 }

type listenOptions struct{ prepend, once, global bool }

// ListenOption configures a registration.
type ListenOption func(*listenOptions)

// Prepend puts the listener before those that are there; the default is behind.
func Prepend() ListenOption { return func(o *listenOptions) { o.prepend = true } }

// Once removes the listener before its first call.
func Once() ListenOption { return func(o *listenOptions) { o.once = true } }

// Global has the listener called whatever the filter of a dispatch says.
func Global() ListenOption { return func(o *listenOptions) { o.global = true } }

// listen registers fn with e as an effect of c's fiber.
func (e *event) listen(c *Context, fn any, opts []ListenOption) (*Handle, error) {
	var o listenOptions
	for _, opt := range opts {
		opt(&o)
	}
	r := c.fiber.rt
	if e != &ListenerRegistering.event && r.listening(&ListenerRegistering.event) {
		reg := Registration{Event: e.self, Context: c, Prepend: o.prepend, Once: o.once, Global: o.global}
		h, bailed, err := ListenerRegistering.Dispatch(c.Context(), c, reg)
		if err != nil {
			return nil, fmt.Errorf("listen to %q: %w", e.name, err)
		}
		if bailed {
			return h, nil
		}
	}
	n := &listener{ctx: c, fn: fn, global: o.global, once: o.once, prepended: o.prepend}
	n.handle = Handle{site: site{c.fiber, e.label}, inverse: n}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := c.fiber.accepts("create effect"); err != nil {
		return nil, err
	}
	if s := c.fiber.stage.Load(); s != nil {
		n.list = s.list(e)
	} else {
		n.list = r.list(e)
	}
	c.fiber.list(&n.handle)
	n.list.add(n)
	return &n.handle, nil
}

// consume removes a once-listener; it is true for one caller only.
func (n *listener) consume() bool {
	if !n.off.CompareAndSwap(false, true) {
		return false
	}
	r := n.handle.fiber.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.handle.phase == handleLive {
		n.handle.begin()
	}
	return true
}

type dispatchOptions struct{ filter func(*Context) bool }

// DispatchOption configures one dispatch.
type DispatchOption func(*dispatchOptions)

// WithFilter has only those listeners called for whose registration context
// filter is true, and the global ones.
func WithFilter(filter func(listener *Context) bool) DispatchOption {
	return func(o *dispatchOptions) { o.filter = filter }
}

// dispatch is one dispatch under way: the frames of its listeners, and who is
// to be called.
type dispatch struct {
	*entry
	dispatchOptions
	all    []*listener
	frames []frame
	i      int    // of the listener that is next
	cur    *frame // the call that runs; see next
}

// frameChunk is how many frames a dispatch makes at once.
const frameChunk = 128

// begin opens a dispatch of e and tells the observers. Listeners that come
// later are not called; those that go meanwhile are not either.
func (e *event) begin(ctx context.Context, c *Context, opts []DispatchOption) (d dispatch) {
	d.all = c.fiber.rt.listeners(e)
	if len(d.all) == 0 {
		return d
	}
	d.entry = &entry{ctx, frameOf(ctx)}
	for _, o := range opts {
		o(&d.dispatchOptions)
	}
	return d
}

// observed tells whether dispatches of e must be told to observers.
func (e *event) observed(c *Context) bool {
	return !e.internal && c.fiber.rt.listening(&Dispatching.event)
}

// enter makes the tracked call of n, or gives nil if n is not to be called.
func (d *dispatch) enter(n *listener) *frame {
	if n.off.Load() || d.filter != nil && !n.global && !d.filter(n.ctx) {
		return nil
	}
	if len(d.frames) == 0 {
		d.frames = make([]frame, min(len(d.all), frameChunk))
	}
	fr := &d.frames[0]
	d.frames = d.frames[1:]
	fr.in, fr.at = d.entry, &n.handle.site
	if !n.handle.fiber.admit(fr) {
		return nil
	}
	if n.once && !n.consume() {
		n.handle.fiber.leave(fr)
		return nil
	}
	return fr
}

// next ends the call that runs and begins that of n, if n is to be called. It is
// enter for a plain loop, which needs one lock for both if the fiber is the same.
func (d *dispatch) next(n *listener) bool {
	last := d.cur
	d.cur = nil
	if last != nil && d.filter == nil && !n.once && !n.off.Load() && len(d.frames) > 0 && last.at.fiber == n.handle.fiber {
		fr := &d.frames[0]
		fr.in, fr.at = d.entry, &n.handle.site
		if n.handle.fiber.calls.replace(last, fr) {
			d.frames = d.frames[1:]
			d.cur = fr
			return true
		}
	}
	if last != nil {
		last.at.fiber.leave(last)
	}
	d.cur = d.enter(n)
	return d.cur != nil
}

// rest ends the last call of a plain loop, or the one that panicked; that is
// reported. It must be deferred directly.
func (d *dispatch) rest() {
	v := recover()
	fr := d.cur
	if d.cur = nil; fr == nil {
		return
	}
	if v != nil {
		d.all[d.i-1].report(&PanicError{v, debug.Stack()})
	}
	fr.at.fiber.leave(fr)
}

// leave ends the call of n; a panic becomes *err, and errors are attributed. It
// must be deferred directly.
func (n *listener) leave(fr *frame, err *error) {
	v := recover()
	n.handle.fiber.leave(fr)
	if v != nil {
		*err = &PanicError{v, debug.Stack()}
	}
	if *err != nil {
		*err = n.wrap(*err)
	}
}

// report logs an error that the dispatcher does not get.
func (n *listener) report(err error) {
	n.handle.fiber.report("listener failed", err, "listener", n.handle.label)
}

// wrap attributes an error to the listener.
func (n *listener) wrap(err error) error {
	return fmt.Errorf("%s of fiber %q (#%d): %w", n.handle.label, n.handle.fiber.name, n.handle.fiber.id, err)
}
