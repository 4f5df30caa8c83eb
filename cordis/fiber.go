package cordis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// State is the state of a fiber; see the package documentation.
type State int32

// The states of a fiber.
const (
	Pending State = iota
	Loading
	Active
	Failed
	Disposed
	Unloading
)

// String gives the name in lower case.
func (s State) String() string {
	names := [...]string{"pending", "loading", "active", "failed", "disposed", "unloading"}
	if s < 0 || int(s) >= len(names) {
		return fmt.Sprintf("state(%d)", int32(s))
	}
	return names[s]
}

// Plugin is what can be mounted. Its identity is its pointer; it may be mounted
// any number of times, and must not be changed after the first. Its life:
// Config validates, once for every mount and update; the services in Inject are
// waited for; Apply runs, as often as they come; what Apply registered on c is
// undone when one of them goes, or the fiber is restarted or disposed.
type Plugin struct {
	// Name is for people; empty: the name of the nearest ancestor that has one.
	Name string
	// Inject lists the services that Apply may read.
	Inject []Dependency
	// Provides names the services that Apply will provide. It is only
	// information: with it, Waiting can name a cycle before Apply has ever run.
	Provides []string
	// Config checks a configuration and gives the one to use. Nil: it passes.
	Config func(raw any) (any, error)
	// Apply is the body. It runs on the fiber's goroutine; an error or a panic
	// fails the fiber, after everything that it registered has been undone.
	Apply func(c *Context, config any) error
}

// Dependency is one service that a plugin injects.
type Dependency struct {
	Name string
	// Optional services are read live; they neither gate nor restart the plugin.
	Optional bool
	// Config, if not nil, is laid on the plugin's context as its nearest
	// interception for the service.
	Config any
}

// Require makes required dependencies of names.
func Require(names ...string) []Dependency {
	out := make([]Dependency, len(names))
	for i, n := range names {
		out[i].Name = n
	}
	return out
}

// Receipt tells what a disposal did, the fiber's descendants included.
type Receipt struct {
	Drained   int      // running calls that were waited for
	Abandoned []string // labels of calls that passed their limit and still run
	Left      int      // effects whose disposers reported errors, or that still stand
	Err       error    // the errors of the disposers, joined
}

// Fiber is one mounted plugin: its configuration, its state, and everything
// that it registered. All methods are safe for concurrent use.
type Fiber struct {
	rt     *Runtime
	id     uint64
	name   string
	plugin *Plugin // nil: the root
	parent *Fiber
	ctx    Context
	handle Handle // the effect of the parent that this fiber is
	state  atomic.Int32
	run    atomic.Pointer[run] // nil: not running
	run0   run                 // storage of the first run
	calls  calls
	inject atomic.Pointer[[]Dependency] // nil: none; without duplicates
	stage  atomic.Pointer[Stage]        // that holds back what it registers; nil: none

	// What transitions are decided from; Runtime.mu guards all that follows.
	config             any
	err                error
	phase              phase
	queued             bool // a step is coming, or running
	released           bool // the observers of its creation have seen it
	disposed           bool // its disposal was asked for
	up                 bool // a body was started and is not undone yet
	used0              bool // run0 is taken
	gen                uint64
	ranGen             uint64 // the generation that the current body was started for
	ready              bool   // every required service is there:
	deps               []*impl
	recheck            bool // availability checks must be asked
	verdicts           map[*impl]bool
	impls              []*impl // services of its own that stand
	provided           []key   // what it provided when it was last unloaded
	runner             *frame  // its body or its observers, while they run
	notes              []func(context.Context)
	undoing            *Handle
	errs               []error // of its disposers in this unload
	lost               []error // the same of its children
	receipt            Receipt
	drainBy            time.Time
	drainTimer         *time.Timer
	waiters            chan struct{}
	first, last        *Handle // its effects, in order of registration
	prevSame, nextSame *Fiber  // of the same plugin
}

// Mount makes a fiber of p below c's fiber. It returns before the body has run;
// use Await. The error is of the mount itself: an unusable plugin (ErrArgument)
// or an inactive parent (ErrInactive). A refused configuration is the fiber's
// error: it is FAILED, its body does not run, and Await returns the reason.
func (c *Context) Mount(p *Plugin, config any) (*Fiber, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	parent := c.fiber
	r := parent.rt
	f := &Fiber{rt: r, plugin: p, parent: parent, name: p.Name, config: config}
	if f.name == "" {
		f.name = parent.name
	}
	f.ctx = *c
	f.ctx.fiber = f
	f.addInject(p.Inject)
	f.handle = Handle{site: site{parent, "ctx.plugin()"}, child: f}
	if p.Config != nil {
		f.config, f.err = p.configure(config)
	}
	if err := f.err; err != nil {
		f.config = config
		f.note(func(context.Context) { f.report("configuration refused", err) })
	}
	observed := r.listening(&PluginChanged.event)
	r.mu.Lock()
	if err := parent.accepts(fmt.Sprintf("mount plugin %q", p.Name)); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	if err := f.enterStage(); err != nil {
		r.mu.Unlock()
		return nil, err
	}
	r.lastID++
	f.id = r.lastID
	parent.list(&f.handle)
	r.register(f)
	if observed {
		r.mu.Unlock()
		PluginChanged.Emit(c.Context(), &f.ctx, PluginChange{Fiber: f, Mounted: true})
		r.mu.Lock()
	}
	f.release()
	r.mu.Unlock()
	return f, nil
}

// check refuses a plugin that cannot be mounted.
func (p *Plugin) check() error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: the plugin is nil; give a *Plugin with an Apply function", ErrArgument)
	case p.Apply == nil:
		return fmt.Errorf("%w: plugin %q has no Apply function", ErrArgument, p.Name)
	}
	return checkNames(p.Inject, p.Name)
}

func checkNames(deps []Dependency, plugin string) error {
	for i, d := range deps {
		if d.Name == "" {
			return fmt.Errorf("%w: plugin %q: dependency %d has no name", ErrArgument, plugin, i)
		}
	}
	return nil
}

// configure runs the plugin's validator.
func (p *Plugin) configure(raw any) (config any, err error) {
	if p.Config == nil {
		return raw, nil
	}
	err = guard(func() (err error) {
		config, err = p.Config(raw)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return config, nil
}

// release lets the fiber start, once the observers of its creation are done.
// Runtime.mu is held.
func (f *Fiber) release() {
	f.released = true
	if f.disposed {
		return
	}
	deps := f.injected()
	for _, d := range deps {
		for _, k := range f.ctx.keys(d.Name) {
			set := f.rt.subs[k]
			if set == nil {
				set = map[*Fiber]struct{}{}
				f.rt.subs[k] = set
			}
			set[f] = struct{}{}
		}
	}
	f.ready = len(deps) == 0
	f.refresh()
	if f.ready || f.err != nil {
		f.schedule()
	}
}

// injected gives what f injects.
func (f *Fiber) injected() []Dependency {
	if p := f.inject.Load(); p != nil {
		return *p
	}
	return nil
}

// addInject adds to what f injects, without duplicates, and lays the
// configurations on its context.
func (f *Fiber) addInject(more []Dependency) {
	if len(more) == 0 {
		return
	}
	deps := slices.Clip(f.injected())
	for _, d := range more {
		if slices.ContainsFunc(deps, func(e Dependency) bool { return e.Name == d.Name }) {
			continue
		}
		deps = append(deps, d)
		if d.Config != nil {
			f.ctx.layers = &layer{d.Name, d.Config, f.ctx.layers}
		}
	}
	f.inject.Store(&deps)
}

// Inject mounts apply as a plugin without a name that injects deps.
func (c *Context) Inject(deps []Dependency, apply func(*Context) error) (*Fiber, error) {
	p := &Plugin{Inject: deps}
	if apply != nil {
		p.Apply = func(c *Context, _ any) error { return apply(c) }
	}
	return c.Mount(p, nil)
}

// ID is unique in the runtime, and stays through restarts; the root's is 0.
func (f *Fiber) ID() uint64 { return f.id }

// Name is the plugin's, or the nearest named ancestor's.
func (f *Fiber) Name() string { return f.name }

// State gives the current state.
func (f *Fiber) State() State { return State(f.state.Load()) }

// Parent gives the fiber that it is mounted on; nil for the root.
func (f *Fiber) Parent() *Fiber { return f.parent }

// Plugin gives what was mounted; nil for the root.
func (f *Fiber) Plugin() *Plugin { return f.plugin }

// Context gives the fiber's own context, the one that its body gets.
func (f *Fiber) Context() *Context { return &f.ctx }

// Err gives the error that failed the fiber, or nil.
func (f *Fiber) Err() error {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	return f.err
}

// Config gives the validated configuration that the next run gets.
func (f *Fiber) Config() any {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	return f.config
}

// Children gives the fibers mounted on f, in order.
func (f *Fiber) Children() []*Fiber {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	var out []*Fiber
	for h := f.first; h != nil; h = h.next {
		if h.child != nil {
			out = append(out, h.child)
		}
	}
	return out
}

// Effects gives the standing effects of f in order of registration.
func (f *Fiber) Effects() []EffectInfo {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	var out []EffectInfo
	for h := f.first; h != nil; h = h.next {
		out = append(out, h.info())
	}
	return out
}

// AddInject adds dependencies. It is for listeners of PluginChanged that see
// the creation of f; later it is refused with ErrArgument.
func (f *Fiber) AddInject(deps ...Dependency) error {
	if err := checkNames(deps, f.name); err != nil {
		return err
	}
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	if f.released {
		return fmt.Errorf("%w: add dependencies to fiber %q (#%d): only observers of its creation may", ErrArgument, f.name, f.id)
	}
	f.addInject(deps)
	return nil
}

// Await returns when no transition of f runs or is due, with the fiber's error.
// A pending fiber is settled: Await does not wait for services. If ctx ends, or
// the wait would be for oneself (ErrSelf), the error says so.
func (f *Fiber) Await(ctx context.Context) error {
	if err := f.await(ctx, "wait for", "what it does"); err != nil {
		return err
	}
	return f.Err()
}

// await waits until f settles; doing and what are for the errors.
func (f *Fiber) await(ctx context.Context, doing, what string) error {
	err := f.rt.await(ctx, node{fiber: f})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrSelf):
		return fmt.Errorf("%s fiber %q (#%d): %w: the caller is a part of what must end first; %s goes on", doing, f.name, f.id, err, what)
	}
	return fmt.Errorf("%s fiber %q (#%d): it is still %s: %w", doing, f.name, f.id, f.State(), err)
}

// Dispose ends f for good and returns when it is quiescent: see the package
// documentation for the order. All callers share one disposal and its receipt.
// Errors of disposers are in the receipt (and logged once); the error returned
// is about the wait: ErrAbandoned if calls passed their limit, ErrSelf if the
// caller is a part of what must end, or that of ctx. In the last two cases the
// disposal goes on.
func (f *Fiber) Dispose(ctx context.Context) (Receipt, error) {
	f.RequestDispose()
	err := f.await(ctx, "dispose", "the disposal")
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	if err != nil {
		left := 0
		for h := f.first; h != nil; h = h.next {
			left++
		}
		return Receipt{Left: left}, err
	}
	rec := f.receipt
	rec.Abandoned = slices.Clone(rec.Abandoned)
	if n := len(rec.Abandoned); n > 0 {
		err = fmt.Errorf("dispose fiber %q (#%d): %w: %d past their limit", f.name, f.id, ErrAbandoned, n)
	}
	return rec, err
}

// RequestDispose begins the disposal without waiting. When it returns, f admits
// no new calls and effects.
func (f *Fiber) RequestDispose() {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	f.requestDispose()
}

// Restart undoes f and runs its body again, with the same configuration and a
// cleared error, and then waits like Await.
func (f *Fiber) Restart(ctx context.Context) error {
	f.rt.mu.Lock()
	if f.disposed || f.retired() {
		f.rt.mu.Unlock()
		return f.inactive("restart")
	}
	f.again()
	f.rt.mu.Unlock()
	if err := f.await(ctx, "restart", "the restart"); err != nil {
		return err
	}
	return f.Err()
}

// Update validates config, lets the listeners of Updating decide, and restarts
// f with it. An invalid configuration (ErrConfig) changes nothing. A listener
// that does not call next keeps the old one; there is no restart then.
func (f *Fiber) Update(ctx context.Context, config any) error {
	if f.plugin == nil {
		return fmt.Errorf("%w: the root fiber has no configuration", ErrArgument)
	}
	f.rt.mu.Lock()
	disposed := f.disposed || f.retired()
	f.rt.mu.Unlock()
	if disposed {
		return f.inactive("update")
	}
	valid, err := f.plugin.configure(config)
	if err != nil {
		return fmt.Errorf("update fiber %q (#%d): %w", f.name, f.id, err)
	}
	own := WithFilter(func(listener *Context) bool { return listener.fiber == f })
	done := false
	_, err = Updating.Run(ctx, &f.ctx, Update{Fiber: f, Config: valid}, func(context.Context, Update) (struct{}, error) {
		f.rt.mu.Lock()
		defer f.rt.mu.Unlock()
		if f.disposed || f.retired() {
			return struct{}{}, f.inactive("update")
		}
		f.config = valid
		f.again()
		done = true
		return struct{}{}, nil
	}, own)
	if err != nil || !done {
		return err
	}
	if err := f.await(ctx, "update", "the update"); err != nil {
		return err
	}
	return f.Err()
}

// inactive makes the refusal of an inactive fiber.
func (f *Fiber) inactive(doing string) error {
	return &InactiveError{Doing: doing, Fiber: f.name, ID: f.id, State: f.State(), Replaced: f.retired()}
}

// report logs an error of the fiber's code on its logger.
func (f *Fiber) report(text string, err error, args ...any) {
	f.ctx.Logger().Error(text, append(args, "error", err)...)
}
