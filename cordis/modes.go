package cordis

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Emit is an event whose listeners are all called, in order, on the goroutine
// of the emitter; nothing comes back. A panic of one is reported and does not
// keep the others from being called.
type Emit[A any] struct{ event }

// Parallel is an event whose listeners are all started, in order, each on its own
// goroutine, and awaited. All their errors come back, joined.
type Parallel[A any] struct{ event }

// Serial is an event whose listeners are asked in order until one bails: its
// result is the dispatch's. An error ends the dispatch. Listeners may wait.
type Serial[A, R any] struct{ event }

// Bail is like Serial, for questions that are answered at once.
type Bail[A, R any] struct{ event }

// Waterfall is an event whose listeners are wrapped around each other: the first
// is called, and its next runs the following one, at last the dispatcher's own
// function. A listener that does not call next vetoes the rest; what the first
// listener returns is the result.
type Waterfall[A, R any] struct{ event }

var (
	_ Event = (*Emit[any])(nil)
	_ Event = (*Parallel[any])(nil)
	_ Event = (*Serial[any, any])(nil)
	_ Event = (*Bail[any, any])(nil)
	_ Event = (*Waterfall[any, any])(nil)
)

// NewEmit declares an emit event and reserves its name in the process. Like the
// other declarations it is for package variables: an empty name, or one declared
// before, panics.
func NewEmit[A any](name string, opts ...EventOption) *Emit[A] {
	e := &Emit[A]{}
	declare(&e.event, e, name, ModeEmit, opts)
	return e
}

// NewParallel declares a parallel event.
func NewParallel[A any](name string, opts ...EventOption) *Parallel[A] {
	e := &Parallel[A]{}
	declare(&e.event, e, name, ModeParallel, opts)
	return e
}

// NewSerial declares a serial event.
func NewSerial[A, R any](name string, opts ...EventOption) *Serial[A, R] {
	e := &Serial[A, R]{}
	declare(&e.event, e, name, ModeSerial, opts)
	return e
}

// NewBail declares a bail event.
func NewBail[A, R any](name string, opts ...EventOption) *Bail[A, R] {
	e := &Bail[A, R]{}
	declare(&e.event, e, name, ModeBail, opts)
	return e
}

// NewWaterfall declares a waterfall event.
func NewWaterfall[A, R any](name string, opts ...EventOption) *Waterfall[A, R] {
	e := &Waterfall[A, R]{}
	declare(&e.event, e, name, ModeWaterfall, opts)
	return e
}

// On registers fn as an effect of c's fiber. Each call is a tracked call of it.
func (e *Emit[A]) On(c *Context, fn func(ctx context.Context, a A), opts ...ListenOption) (*Handle, error) {
	return e.listen(c, fn, opts)
}

// Emit calls the listeners with a. Nothing fails: see the type.
func (e *Emit[A]) Emit(ctx context.Context, c *Context, a A, opts ...DispatchOption) {
	if e.observed(c) {
		Dispatching.Emit(ctx, c, Dispatch{e.mode, e.name, a, c})
	}
	d := e.begin(ctx, c, opts)
	for d.i < len(d.all) {
		e.run(&d, a)
	}
}

// run calls the listeners that are left, to the end or to the first panic.
func (e *Emit[A]) run(d *dispatch, a A) {
	defer d.rest()
	for d.i < len(d.all) {
		n := d.all[d.i]
		d.i++
		if d.next(n) {
			n.fn.(func(context.Context, A))(d.cur, a)
		}
	}
}

// Listen implements Event.
func (e *Emit[A]) Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error) {
	return e.On(c, func(ctx context.Context, a A) {
		if _, err := fn(ctx, a, nil); err != nil {
			c.fiber.report("listener failed", err, "listener", e.label)
		}
	}, opts...)
}

// On registers fn as an effect of c's fiber. Each call is a tracked call of it.
func (e *Parallel[A]) On(c *Context, fn func(ctx context.Context, a A) error, opts ...ListenOption) (*Handle, error) {
	return e.listen(c, fn, opts)
}

// Dispatch calls the listeners with a and gives their errors, joined in order.
func (e *Parallel[A]) Dispatch(ctx context.Context, c *Context, a A, opts ...DispatchOption) error {
	if e.observed(c) {
		Dispatching.Emit(ctx, c, Dispatch{ModeEmit, e.name, a, c})
	}
	d := e.begin(ctx, c, opts)
	errs := make([]error, len(d.all))
	var wg sync.WaitGroup
	for i, n := range d.all {
		fr := d.enter(n)
		switch {
		case fr == nil:
		case i == len(d.all)-1:
			errs[i] = e.call(n, fr, a)
		default:
			wg.Go(func() {
				errs[i] = n.wrap(errExit) // if it does not return
				errs[i] = e.call(n, fr, a)
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *Parallel[A]) call(n *listener, fr *frame, a A) (err error) {
	defer n.leave(fr, &err)
	return n.fn.(func(context.Context, A) error)(fr, a)
}

// Listen implements Event.
func (e *Parallel[A]) Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error) {
	return e.On(c, func(ctx context.Context, a A) error {
		_, err := fn(ctx, a, nil)
		return err
	}, opts...)
}

// On registers fn as an effect of c's fiber; its bool says that it bailed. Each
// call is a tracked call of the fiber.
func (e *Serial[A, R]) On(c *Context, fn func(ctx context.Context, a A) (R, bool, error), opts ...ListenOption) (*Handle, error) {
	return e.listen(c, fn, opts)
}

// Dispatch asks the listeners in order. The bool tells whether one bailed.
func (e *Serial[A, R]) Dispatch(ctx context.Context, c *Context, a A, opts ...DispatchOption) (R, bool, error) {
	return ask[A, R](ctx, &e.event, c, a, opts)
}

// Listen implements Event.
func (e *Serial[A, R]) Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error) {
	return e.On(c, answer[A, R](&e.event, fn), opts...)
}

// On registers fn as an effect of c's fiber; its bool says that it bailed. Each
// call is a tracked call of the fiber.
func (e *Bail[A, R]) On(c *Context, fn func(ctx context.Context, a A) (R, bool, error), opts ...ListenOption) (*Handle, error) {
	return e.listen(c, fn, opts)
}

// Dispatch asks the listeners in order. The bool tells whether one bailed.
func (e *Bail[A, R]) Dispatch(ctx context.Context, c *Context, a A, opts ...DispatchOption) (R, bool, error) {
	return ask[A, R](ctx, &e.event, c, a, opts)
}

// Listen implements Event.
func (e *Bail[A, R]) Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error) {
	return e.On(c, answer[A, R](&e.event, fn), opts...)
}

// ask dispatches a serial or bail event.
func ask[A, R any](ctx context.Context, e *event, c *Context, a A, opts []DispatchOption) (r R, bailed bool, err error) {
	if e.observed(c) {
		Dispatching.Emit(ctx, c, Dispatch{e.mode, e.name, a, c})
	}
	d := e.begin(ctx, c, opts)
	for _, n := range d.all {
		fr := d.enter(n)
		if fr == nil {
			continue
		}
		if r, bailed, err = question[A, R](n, fr, a); bailed || err != nil {
			break
		}
	}
	if err != nil || !bailed {
		var none R
		return none, false, err
	}
	return r, true, nil
}

func question[A, R any](n *listener, fr *frame, a A) (r R, bailed bool, err error) {
	defer n.leave(fr, &err)
	return n.fn.(func(context.Context, A) (R, bool, error))(fr, a)
}

// answer adapts a dynamic listener to a serial or bail event.
func answer[A, R any](e *event, fn Dynamic) func(context.Context, A) (R, bool, error) {
	return func(ctx context.Context, a A) (R, bool, error) {
		v, err := fn(ctx, a, nil)
		if err != nil || v == nil || v == false {
			var none R
			return none, false, err
		}
		r, err := result[R](e, v)
		return r, err == nil, err
	}
}

// result checks what a dynamic listener returned.
func result[R any](e *event, v any) (R, error) {
	r, ok := v.(R)
	if !ok && v != nil {
		return r, fmt.Errorf("%w: a listener of %q returned a %T, the event's result is a %T", ErrArgument, e.name, v, r)
	}
	return r, nil
}

// On registers fn as an effect of c's fiber. fn may call next once, while it
// runs (else ErrNext), with a context derived from its own, and is a tracked
// call of the fiber until it returns.
func (e *Waterfall[A, R]) On(c *Context, fn func(ctx context.Context, a A, next func(context.Context) (R, error)) (R, error), opts ...ListenOption) (*Handle, error) {
	return e.listen(c, fn, opts)
}

// Run dispatches a; inner is what the last next runs. An error or a panic goes
// back through the listeners around it.
func (e *Waterfall[A, R]) Run(ctx context.Context, c *Context, a A, inner func(ctx context.Context, a A) (R, error), opts ...DispatchOption) (R, error) {
	if e.observed(c) {
		Dispatching.Emit(ctx, c, Dispatch{e.mode, e.name, a, c})
	}
	d := e.begin(ctx, c, opts)
	return e.from(ctx, &d, 0, a, inner)
}

// from runs the listeners from the i-th on.
func (e *Waterfall[A, R]) from(ctx context.Context, d *dispatch, i int, a A, inner func(context.Context, A) (R, error)) (R, error) {
	for ; i < len(d.all); i++ {
		one := dispatch{entry: &entry{ctx, frameOf(ctx)}, dispatchOptions: d.dispatchOptions, all: d.all[i : i+1]}
		if fr := one.enter(d.all[i]); fr != nil {
			return e.call(fr, d, i, a, inner)
		}
	}
	return inner(ctx, a)
}

func (e *Waterfall[A, R]) call(fr *frame, d *dispatch, i int, a A, inner func(context.Context, A) (R, error)) (r R, err error) {
	var mu sync.Mutex
	spent := false
	spend := func() bool {
		mu.Lock()
		defer mu.Unlock()
		was := spent
		spent = true
		return !was
	}
	var passed error // what came from further in is not this listener's
	next := func(ctx context.Context) (R, error) {
		if !spend() {
			var none R
			return none, fmt.Errorf("listener of %q: %w", e.name, ErrNext)
		}
		r, err := e.from(ctx, d, i+1, a, inner)
		mu.Lock()
		passed = err
		mu.Unlock()
		return r, err
	}
	n := d.all[i]
	defer func() {
		spend()
		mu.Lock()
		defer mu.Unlock()
		if err != nil && errors.Is(err, passed) && errors.Is(passed, err) { // the very error that next gave
			return
		}
		if err != nil {
			err = n.wrap(err)
		}
	}()
	return guarded(n, fr, func() (R, error) {
		return n.fn.(func(context.Context, A, func(context.Context) (R, error)) (R, error))(fr, a, next)
	})
}

// guarded runs one listener of a waterfall as the call fr.
func guarded[R any](n *listener, fr *frame, fn func() (R, error)) (r R, err error) {
	defer n.handle.fiber.leave(fr)
	err = guard(func() (err error) {
		r, err = fn()
		return err
	})
	return r, err
}

// Listen implements Event.
func (e *Waterfall[A, R]) Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error) {
	return e.On(c, func(ctx context.Context, a A, next func(context.Context) (R, error)) (R, error) {
		v, err := fn(ctx, a, func(ctx context.Context) (any, error) { return next(ctx) })
		if err != nil {
			var none R
			return none, err
		}
		return result[R](&e.event, v)
	}, opts...)
}

// Payloads of the internal events.
type (
	// StatusChange is a change of a fiber's visible state.
	StatusChange struct {
		Fiber    *Fiber
		Old, New State
	}
	// PluginChange is the creation of a fiber, or the beginning of its disposal.
	PluginChange struct {
		Fiber   *Fiber
		Mounted bool // false: its disposal begins
	}
	// ServiceChange is a service that came, went, or is to be looked at again.
	ServiceChange struct {
		Name    string
		Realm   *Realm
		Owner   *Fiber
		Present bool
	}
	// Update is a configuration, validated, that a fiber is about to get.
	Update struct {
		Fiber  *Fiber
		Config any
	}
	// Dispatch is a dispatch of an event that is not internal.
	Dispatch struct {
		Mode    Mode // ModeEmit for parallel events
		Name    string
		Arg     any
		Context *Context // the dispatcher's
	}
	// Registration is a listener about to be registered.
	Registration struct {
		Event                 Event
		Context               *Context
		Prepend, Once, Global bool
	}
)

// The internal events. Their listeners are called outside all locks; a failing
// one is reported and changes nothing.
var (
	// StatusChanged tells every change of a fiber's visible state, in order for
	// each fiber, before the transition goes on and before Await and Dispose return.
	StatusChanged = NewEmit[StatusChange]("internal/status")
	// PluginChanged tells of a creation before the body can run, on the goroutine
	// of Mount, and of a disposal before its status changes.
	PluginChanged = NewEmit[PluginChange]("internal/plugin")
	// ServiceChanged tells listeners of the service's realm that it became
	// available, or no longer is, or that Notify was called.
	ServiceChanged = NewEmit[ServiceChange]("internal/service")
	// Updating decides on an update. Listeners are called for their own fiber
	// only, unless they are global. One that does not call next vetoes.
	Updating = NewWaterfall[Update, struct{}]("internal/update")
	// Dispatching tells of every dispatch of a public event, before it.
	Dispatching = NewEmit[Dispatch]("internal/dispatch")
	// ListenerRegistering may replace a registration: a handle that a listener
	// bails with is what On returns.
	ListenerRegistering = NewBail[Registration, *Handle]("internal/listener")
)
