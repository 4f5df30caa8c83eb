// Package cordis is the plugin runtime: everything is a plugin, and everything
// that a plugin does to the runtime can be taken back.
//
// A [Plugin] is mounted on a [Context] and becomes a [Fiber]. What its body
// registers (listeners, services, timers, child plugins, any [Context.Effect])
// belongs to the fiber and is undone, strictly in reverse, when the fiber is
// unloaded. A plugin that injects services runs only while all of them are
// there; it waits, runs, unwinds and runs again as they come and go.
//
//	var Clock = cordis.NewService[*Wall]("clock")
//
//	root := cordis.New()
//	f, err := root.Mount(&cordis.Plugin{
//		Name:   "greeter",
//		Inject: cordis.Require("clock"),
//		Apply: func(c *cordis.Context, config any) error {
//			clock, err := Clock.Use(c)
//			...
//		},
//	}, nil)
//	err = f.Await(ctx)               // until no transition runs
//	receipt, err := f.Dispose(ctx)   // until it is quiescent
//
// # States
//
// PENDING waits for services, LOADING runs the body, ACTIVE is up, UNLOADING
// takes everything back, FAILED had an error (everything is undone before that
// is visible; only Restart or Update runs it again), DISPOSED is final. While a
// transition runs, changes of its goal are only recorded, by a generation
// counter, so that none is lost: a load that ends for an old generation is
// unloaded and run again.
//
// # Unloading
//
// The order is: no new calls are admitted and [Context.Context] is cancelled;
// the dependents unload to quiescence; running calls ([Fiber.Enter], listeners,
// timer callbacks) finish, each within its own deadline and the drain limit;
// the effects, children among them, are undone in reverse order of
// registration, one after the other, every one attempted, errors joined and
// logged once. Dependents and descendants are served until they have unwound.
// A call that passed its limit is abandoned, and the [Receipt] names it.
//
// # Staging
//
// A [Stage] starts new fibers beside the ones that they are to replace. Until its
// Commit nothing outside of it sees what they provide or register; then their
// services and listeners take the place of the old ones in one step, and the old
// fibers are disposed. Dependents run again once. From then on a staged fiber is
// like any other; if the stage is aborted, nothing of it is left. Registries of other
// packages take part through [StageOf] and [Committing], or by [Fiber.Hidden] and
// [Context.Clashes] where what they hold need not change in one step.
//
// Calls that have found something of an old fiber and not entered it yet linger
// ([Stage.Linger]): the old fiber stays as it was until they are inside. It goes on
// to see the services that went with it, what it registers is seen by nobody, and it
// never runs again.
//
// # Waiting on oneself
//
// Every call, body and disposer runs with a context that carries its chain. A
// wait that could only end after the waiting code itself has ended returns at
// once with [ErrSelf], through any number of fibers; what was asked goes on.
// Code that waits with a context of another origin is bound by that context.
//
// # Concurrency
//
// All methods may be called from any goroutine. One lock per runtime (Runtime.mu)
// guards the whole tree, and every transition is decided under it in
// transition.go. No lock is held while bodies, disposers, listeners, checks,
// validators or exporters run. Get, Use and dispatch read immutable snapshots
// and wait for nobody.
//
// Owners of goroutines: a fiber has at most one, which lives while a transition
// has something to do; [Context.EffectAsync] has one until its setup ends;
// [Parallel] one for each listener but the last until the dispatch returns; a
// timer callback one until it returns; [Handle.Dispose] one if its context can
// end. All are waited for by the unload of the fiber that they belong to. A stage
// has one after its commit, until nothing lingers: at most for the drain limit, and
// not when the replaced fibers have gone.
//
// Lock order: Runtime.mu, then one of the leaves: a fiber's calls.mu, an event's
// list.mu, a run's mu, the log's mu.
//
// # Errors
//
// A panic in a plugin is that plugin's error ([PanicError]): a body's fails its
// fiber, a disposer's is joined into the receipt, a listener's is reported on
// the logger of its fiber, or given to the dispatcher where the mode carries errors.
package cordis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// Sentinel errors; compare with errors.Is.
var (
	// ErrInactive says that a fiber takes no effects or calls in its state.
	// The error is an *InactiveError.
	ErrInactive = errors.New("inactive context")
	// ErrSelf says that a wait was refused because it could only end after the
	// code that asked for it. What was asked (a disposal, an update) goes on.
	ErrSelf = errors.New("cannot wait for oneself")
	// ErrDisposed ends sleeps and ticks whose fiber is unloaded.
	ErrDisposed = errors.New("Context has been disposed")
	// ErrAbandoned says that a disposal ended, but calls that passed their limit
	// are still running. The receipt names them.
	ErrAbandoned = errors.New("running calls were abandoned")
	// ErrConfig marks a configuration that a plugin's Config refused.
	ErrConfig = errors.New("invalid config")
	// ErrMissing says that a service is declared by the reader but not there now.
	ErrMissing = errors.New("service is not available")
	// ErrUndeclared says that a service was read without injecting it.
	ErrUndeclared = errors.New("service is not injected")
	// ErrDuplicate says that a name is provided already in the same realm.
	ErrDuplicate = errors.New("duplicate service")
	// ErrNext says that a waterfall listener called next a second time, or late.
	ErrNext = errors.New("next may be called once, while the listener runs")
	// ErrArgument says that an argument is not usable; the message says why.
	ErrArgument = errors.New("invalid argument")
	// errExit is the error of user code that ended its goroutine.
	errExit = errors.New("ended its goroutine (runtime.Goexit) instead of returning")
)

// InactiveError is a refusal by a fiber that is not (or no longer) running.
type InactiveError struct {
	Doing string // what was refused
	Fiber string // the fiber's name
	ID    uint64
	State State
	// Replaced says that a stage's commit has replaced the fiber.
	Replaced bool
}

// Code is the stable code of the error.
func (e *InactiveError) Code() string { return "INACTIVE_EFFECT" }

// Error tells what was refused, by which fiber, and in which state it is.
func (e *InactiveError) Error() string {
	text := fmt.Sprintf("cannot %s on inactive context: fiber %q (#%d) is %s", e.Doing, e.Fiber, e.ID, e.State)
	if e.Replaced {
		text += ", and was replaced"
	}
	return text
}

// Is makes errors.Is(err, ErrInactive) true.
func (e *InactiveError) Is(target error) bool { return target == ErrInactive }

// Context is a view of the runtime: the fiber that owns what is registered
// through it, and the realms, interceptions and plain values that were laid on
// it. Contexts are immutable and cheap; deriving one makes no fiber, and there
// is nothing to dispose on it. All methods are safe for concurrent use.
type Context struct {
	fiber      *Fiber
	isolations *isolation
	layers     *layer
	values     *value
	drain      time.Duration // 0: the runtime's
}

// isolation, layer and value are chains, nearest first. An isolation without a
// name is an overlay.
type isolation struct {
	name  string
	realm *Realm
	up    *isolation
}

type layer struct {
	name   string
	config any
	up     *layer
}

type value struct {
	key, value any
	up         *value
}

// Realm separates services of one name: each realm can hold one. The root
// context and everything that is not isolated use the nil realm.
type Realm struct{ label string }

// NewRealm makes a realm. The label is for people; two realms of one label are
// different.
func NewRealm(label string) *Realm { return &Realm{label} }

// String gives the label; the nil realm is "root", an unnamed one "private".
func (r *Realm) String() string {
	switch {
	case r == nil:
		return "root"
	case r.label == "":
		return "private"
	}
	return r.label
}

// Fiber gives the fiber that owns c.
func (c *Context) Fiber() *Fiber { return c.fiber }

// Root gives the root context of c's runtime.
func (c *Context) Root() *Context { return &c.fiber.rt.root.ctx }

// Runtime gives the world that c belongs to.
func (c *Context) Runtime() *Runtime { return c.fiber.rt }

// String is "Context <name of the fiber>".
func (c *Context) String() string { return fmt.Sprintf("Context <%s>", c.fiber.name) }

// Context gives a context that is cancelled when the fiber's current run starts
// to unload, or is told to: its configuration changed, a service that it injects
// went, it is disposed. It carries the run as its chain: waiting with it, in the
// body, for what waits for the body is refused with ErrSelf. A fiber that does
// not run gives a cancelled context.
func (c *Context) Context() context.Context {
	if r := c.fiber.run.Load(); r != nil {
		return r.context()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return newFrame(ctx, c.fiber, "body")
}

// WithValue derives a context on which key has the value. What is mounted on it
// inherits it. Keys are compared with ==, as in the context package.
func (c *Context) WithValue(key, val any) *Context {
	d := *c
	d.values = &value{key, val, c.values}
	return &d
}

// Drain derives a context: fibers that are mounted on it, and below, have running
// calls without a nearer deadline end within d when they unload, whatever the limit of
// the runtime is. Values below 1 ns stand for that.
func (c *Context) Drain(d time.Duration) *Context {
	next := *c
	next.drain = max(0, d)
	return &next
}

// Value gives the nearest value of key, or nil.
func (c *Context) Value(key any) any {
	for v := c.values; v != nil; v = v.up {
		if v.key == key {
			return v.value
		}
	}
	return nil
}

// Isolate derives a context on which the service name is looked up and provided
// in realm; nil stands for a fresh private one. Other names, and c, are not
// affected. It is no scope of a lifetime: the fiber stays the same.
func (c *Context) Isolate(name string, realm *Realm) *Context {
	if realm == nil {
		realm = &Realm{}
	}
	d := *c
	d.isolations = &isolation{name, realm, c.isolations}
	return &d
}

// Overlay derives a context on which every service name that no Go package
// declares is provided in realm, and looked up there first and then further
// outward: of several that are provided the nearest is seen. Dependents follow
// when a nearer one comes or goes. Provided means that the owner is ACTIVE. A name
// that Isolate names nearer, or further out, is seen in that realm and not beyond;
// nil stands for a fresh private realm.
func (c *Context) Overlay(realm *Realm) *Context {
	if realm == nil {
		realm = &Realm{}
	}
	d := *c
	d.isolations = &isolation{"", realm, c.isolations}
	return &d
}

// covers tells whether the name belongs into the isolation's realm.
func (i *isolation) covers(name string) bool {
	if i.name != "" {
		return i.name == name
	}
	_, declared := LookupService(name)
	return !declared
}

// realm gives the realm in which c provides the service name, and looks first.
func (c *Context) realm(name string) *Realm {
	for i := c.isolations; i != nil; i = i.up {
		if i.covers(name) {
			return i.realm
		}
	}
	return nil
}

// keys gives the places where c looks for the service name, in this order.
func (c *Context) keys(name string) []key {
	var out []key
	for i := c.isolations; i != nil; i = i.up {
		if !i.covers(name) {
			continue
		}
		out = append(out, key{name, i.realm})
		if i.name != "" {
			return out
		}
	}
	return append(out, key{name, nil})
}

// find gives the service that c sees under name, or nil: the nearest that stands,
// or with active set the nearest whose owner is ACTIVE.
func (c *Context) find(name string, active bool) *impl {
	s := c.fiber.stage.Load()
	for i := c.isolations; i != nil; i = i.up {
		if !i.covers(name) {
			continue
		}
		im := c.fiber.rt.at(s, key{name, i.realm})
		switch {
		case im != nil && (!active || im.available()):
			return im
		case i.name != "":
			return nil
		}
	}
	im := c.fiber.rt.at(s, key{name, nil})
	if active && !im.available() {
		return nil
	}
	return im
}

// plain tells whether c sees just what the root realm holds: the usual case.
func (c *Context) plain() bool { return c.isolations == nil && c.fiber.stage.Load() == nil }

// Intercept derives a context that carries config for the service name. The
// service decides what it means, see Interceptions.
func (c *Context) Intercept(name string, config any) *Context {
	d := *c
	d.layers = &layer{name, config, c.layers}
	return &d
}

// Interceptions gives the configurations that are laid on c for the service
// name, root-most first. The nearest is what the plugin's own Inject says.
func (c *Context) Interceptions(name string) []any {
	var out []any
	for l := c.layers; l != nil; l = l.up {
		if l.name == name {
			out = append(out, l.config)
		}
	}
	for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// ServiceDecl is a declared service. Its name is reserved: see [LookupService].
type ServiceDecl struct {
	Name string
	Type reflect.Type // of the values
	// Plugin is the interface through which mounted plugins use the service;
	// nil: they may not inject it.
	Plugin reflect.Type
	// Bind gives what implements Plugin for the plugin of a context; nil where
	// the plugins' side of the service is built elsewhere.
	Bind func(value any, c *Context) any
}

// Injectable tells whether mounted plugins may inject the service.
func (d ServiceDecl) Injectable() bool { return d.Plugin != nil }

// ServiceOption configures a declaration.
type ServiceOption func(*ServiceDecl)

// PluginInterface lets mounted plugins inject a service of values S and use it
// as a P, an interface type; the default is not. bind gives the P of one plugin:
// what its methods start or register is to be an effect of c's fiber. A nil bind
// says that the plugins' side is built elsewhere, and P only describes it.
func PluginInterface[S, P any](bind func(v S, c *Context) P) ServiceOption {
	return func(d *ServiceDecl) {
		if d.Type != reflect.TypeFor[S]() || reflect.TypeFor[P]().Kind() != reflect.Interface {
			panic(fmt.Sprintf("cordis: declare service %q: its plugin interface is for values %v and an interface, not for %v and %v",
				d.Name, d.Type, reflect.TypeFor[S](), reflect.TypeFor[P]()))
		}
		d.Plugin = reflect.TypeFor[P]()
		if bind != nil {
			d.Bind = func(value any, c *Context) any { return bind(value.(S), c) }
		}
	}
}

var declared = struct {
	sync.RWMutex
	services map[string]ServiceDecl
	events   map[string]Event
}{services: map[string]ServiceDecl{}, events: map[string]Event{}}

// Service is the typed key of a service. Make one with NewService.
type Service[T any] struct{ name string }

// NewService declares a service and reserves its name in the process. It is for
// package variables: an empty name, or one declared before, panics.
func NewService[T any](name string, opts ...ServiceOption) Service[T] {
	d := ServiceDecl{Name: name, Type: reflect.TypeFor[T]()}
	for _, o := range opts {
		o(&d)
	}
	declared.Lock()
	defer declared.Unlock()
	if _, dup := declared.services[name]; dup || name == "" {
		panic(fmt.Sprintf("cordis: declare service %q: the name is empty or was declared before", name))
	}
	declared.services[name] = d
	return Service[T]{name}
}

// LookupService gives the declaration of a name. A name that is declared is
// reserved for the host, whether or not it is provided now.
func LookupService(name string) (ServiceDecl, bool) {
	declared.RLock()
	defer declared.RUnlock()
	d, ok := declared.services[name]
	return d, ok
}

// Services gives all declarations, sorted by name.
func Services() []ServiceDecl {
	declared.RLock()
	defer declared.RUnlock()
	return slices.SortedFunc(maps.Values(declared.services), func(a, b ServiceDecl) int {
		return cmp.Compare(a.Name, b.Name)
	})
}

// Name gives the declared name.
func (s Service[T]) Name() string { return s.name }

// Provide is Context.Provide with a typed value.
func (s Service[T]) Provide(c *Context, v T, opts ...ProvideOption) (*Handle, error) {
	return c.Provide(s.name, v, opts...)
}

// Get is Context.Get with a typed value.
func (s Service[T]) Get(c *Context) (T, bool) {
	v, ok := c.Get(s.name)
	t, _ := v.(T)
	return t, ok
}

// Use is Context.Use with a typed value.
func (s Service[T]) Use(c *Context) (T, error) {
	v, err := c.Use(s.name)
	t, _ := v.(T)
	return t, err
}

// Set is Context.Set with a typed value.
func (s Service[T]) Set(c *Context, v T) error { return c.Set(s.name, v) }
