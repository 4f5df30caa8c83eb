// Package cordis is the plugin runtime: contexts, fibers, services, effects and events.
package cordis

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"reflect"
	"time"
)

var errSkeleton = errors.New("cordis: not yet implemented")

// Sentinel errors.
var (
	// ErrInactive (code INACTIVE_EFFECT): the fiber takes no effects or calls now.
	ErrInactive = errors.New("cannot create effect on inactive context")
	// ErrSelf: the wait would be for oneself; what was asked goes on without waiting.
	ErrSelf = errors.New("cannot wait for oneself")
	// ErrDisposed ends sleeps and ticks whose fiber is unloaded.
	ErrDisposed = errors.New("Context has been disposed")
	// ErrAbandoned: a disposal passed its drain limit.
	ErrAbandoned = errors.New("running calls were abandoned")
	// ErrConfig marks a configuration that a plugin refused.
	ErrConfig = errors.New("invalid config")
	// ErrMissing: a service is not available.
	ErrMissing = errors.New("service is not available")
	// ErrDuplicate: the service is already provided in this realm.
	ErrDuplicate = errors.New("duplicate service")
	// ErrNextTwice: a waterfall listener called next more than once.
	ErrNextTwice = errors.New("next was called twice")
)

type (
	// Context is a view on the runtime: which fiber owns it, realms, interceptions, values.
	Context struct{}
	// Runtime is one world of fibers, services and listeners.
	Runtime struct{}
	// Fiber is one mounted plugin.
	Fiber struct{}
	// Realm separates services of one name. See Context.Isolate.
	Realm struct{ label string }
	// Option configures a runtime.
	Option func(*Runtime)
	// Handle is one effect.
	Handle struct{}
	// Setup collects the inverses of an effect.
	Setup struct{}
	// Disposer undoes one thing.
	Disposer func(ctx context.Context) error
	// State is the state of a fiber.
	State int32
	// Logger writes messages.
	Logger struct{}
	// Mode is how an event is dispatched.
	Mode int
)

// States of a fiber.
const (
	Pending State = iota
	Loading
	Active
	Failed
	Disposed
	Unloading
)

func (s State) String() string { return "" }

// Modes of events.
const (
	ModeEmit Mode = iota
	ModeParallel
	ModeSerial
	ModeBail
	ModeWaterfall
)

func (m Mode) String() string { return "" }

// NewRealm makes a realm that several Isolate calls may share.
func NewRealm(label string) *Realm { return &Realm{label} }

// New makes an independent world and gives its root context.
func New(opts ...Option) *Context { return &Context{} }

// WithDrainLimit bounds the draining of calls that have no nearer deadline (default 30 s).
func WithDrainLimit(d time.Duration) Option { return func(*Runtime) {} }

func (c *Context) Fiber() *Fiber                               { return nil }
func (c *Context) Root() *Context                              { return nil }
func (c *Context) Runtime() *Runtime                           { return nil }
func (c *Context) Context() context.Context                    { return nil }
func (c *Context) WithValue(key, value any) *Context           { return nil }
func (c *Context) Value(key any) any                           { return nil }
func (c *Context) Isolate(name string, realm *Realm) *Context  { return nil }
func (c *Context) Intercept(name string, config any) *Context  { return nil }
func (c *Context) Interceptions(name string) []any             { return nil }
func (c *Context) String() string                              { return "" }
func (c *Context) Mount(p *Plugin, config any) (*Fiber, error) { return nil, errSkeleton }
func (c *Context) Inject(deps []Dependency, apply func(*Context) error) (*Fiber, error) {
	return nil, errSkeleton
}

// Plugin is what can be mounted; its identity is its pointer.
type Plugin struct {
	Name     string
	Inject   []Dependency
	Provides []string // informational: lets Waiting name cycles before the body has run
	Config   func(raw any) (any, error)
	Apply    func(c *Context, config any) error
}

// Dependency is one service that a plugin injects.
type Dependency struct {
	Name     string
	Optional bool
	Config   any
}

// Require lists required dependencies.
func Require(names ...string) []Dependency { return nil }

// Receipt tells what a disposal did.
type Receipt struct {
	Drained   int
	Abandoned []string
	Left      int
	Err       error
}

// Missing is one service that a fiber waits for.
type Missing struct{ Name, Reason string }

// Waiting explains why a fiber is pending.
type Waiting struct {
	Missing []Missing
	Cycle   []string
}

// EffectInfo describes a standing effect.
type EffectInfo struct {
	Label    string
	Children []EffectInfo
}

func (f *Fiber) ID() uint64                                   { return 0 }
func (f *Fiber) Name() string                                 { return "" }
func (f *Fiber) State() State                                 { return 0 }
func (f *Fiber) Err() error                                   { return nil }
func (f *Fiber) Parent() *Fiber                               { return nil }
func (f *Fiber) Children() []*Fiber                           { return nil }
func (f *Fiber) Plugin() *Plugin                              { return nil }
func (f *Fiber) Config() any                                  { return nil }
func (f *Fiber) Context() *Context                            { return nil }
func (f *Fiber) Await(ctx context.Context) error              { return errSkeleton }
func (f *Fiber) Dispose(ctx context.Context) (Receipt, error) { return Receipt{}, errSkeleton }
func (f *Fiber) RequestDispose()                              {}
func (f *Fiber) Restart(ctx context.Context) error            { return errSkeleton }
func (f *Fiber) Update(ctx context.Context, config any) error { return errSkeleton }
func (f *Fiber) AddInject(deps ...Dependency) error           { return errSkeleton }
func (f *Fiber) Waiting() Waiting                             { return Waiting{} }
func (f *Fiber) Effects() []EffectInfo                        { return nil }
func (f *Fiber) Provides() []string                           { return nil }
func (f *Fiber) Enter(ctx context.Context, label string) (context.Context, func(), error) {
	return nil, nil, errSkeleton
}

// CallersIn gives the fibers on the chain of ctx, outermost first.
func CallersIn(ctx context.Context) []*Fiber { return nil }

func (c *Context) Effect(label string, setup func(s *Setup) error) (*Handle, error) {
	return nil, errSkeleton
}
func (c *Context) EffectAsync(label string, setup func(ctx context.Context, s *Setup) error) (*Handle, error) {
	return nil, errSkeleton
}
func (c *Context) Defer(label string, d Disposer) (*Handle, error) { return nil, errSkeleton }
func (s *Setup) Collect(d Disposer)                                {}
func (s *Setup) Adopt(h *Handle)                                   {}
func (s *Setup) Stopped() bool                                     { return false }
func (s *Setup) Context() context.Context                          { return nil }
func (h *Handle) Dispose(ctx context.Context) error                { return errSkeleton }
func (h *Handle) Wait(ctx context.Context) error                   { return errSkeleton }
func (h *Handle) Label() string                                    { return "" }

// ServiceDecl is a declared service.
type ServiceDecl struct {
	Name       string
	Injectable bool // mounted plugins may inject it
	Type       reflect.Type
}

type (
	// ServiceOption configures a declaration.
	ServiceOption func(*ServiceDecl)
	// ProvideOption configures a provide.
	ProvideOption func(*provideOptions)
	// Service is the typed key of a service.
	Service[T any] struct{ name string }
)

type provideOptions struct{}

// Injectable lets mounted plugins inject the service.
func Injectable() ServiceOption { return func(*ServiceDecl) {} }

// WithCheck makes the service available only to dependents for which check says so.
func WithCheck(check func(dependent *Context) bool) ProvideOption {
	return func(*provideOptions) {}
}

// NewService declares and reserves a name, process-wide; a duplicate panics.
func NewService[T any](name string, opts ...ServiceOption) Service[T] { return Service[T]{name} }
func (s Service[T]) Name() string                                     { return s.name }
func (s Service[T]) Provide(c *Context, v T, opts ...ProvideOption) (*Handle, error) {
	return nil, errSkeleton
}
func (s Service[T]) Get(c *Context) (v T, ok bool)   { return v, false }
func (s Service[T]) Use(c *Context) (v T, err error) { return v, errSkeleton }
func (s Service[T]) Set(c *Context, v T) error       { return errSkeleton }
func (c *Context) Provide(name string, v any, opts ...ProvideOption) (*Handle, error) {
	return nil, errSkeleton
}
func (c *Context) Get(name string) (any, bool)      { return nil, false }
func (c *Context) Peek(name string) (any, bool)     { return nil, false } // Get in any state of the provider
func (c *Context) Use(name string) (any, error)     { return nil, errSkeleton }
func (c *Context) Set(name string, v any) error     { return errSkeleton }
func (c *Context) Notify(names ...string) []*Fiber  { return nil }
func LookupService(name string) (ServiceDecl, bool) { return ServiceDecl{}, false }
func Services() []ServiceDecl                       { return nil }

type (
	// EventOption configures the declaration of an event.
	EventOption func(*listenable)
	// ListenOption configures a registration.
	ListenOption func(*listenOptions)
	// DispatchOption configures one dispatch.
	DispatchOption  func(*dispatchOptions)
	listenable      bool
	listenOptions   struct{}
	dispatchOptions struct{}
)

func ForPlugins() EventOption                                  { return func(*listenable) {} }
func Prepend() ListenOption                                    { return func(*listenOptions) {} }
func Once() ListenOption                                       { return func(*listenOptions) {} }
func Global() ListenOption                                     { return func(*listenOptions) {} }
func WithFilter(f func(listener *Context) bool) DispatchOption { return func(*dispatchOptions) {} }

// Dynamic is a listener of any event by name; a nil result of serial and bail did not bail.
type Dynamic func(ctx context.Context, arg any, next func(context.Context) (any, error)) (result any, err error)

// Event is a declared event.
type Event interface {
	Name() string
	Mode() Mode
	Listenable() bool // mounted plugins may listen
	Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error)
}

func LookupEvent(name string) (Event, bool) { return nil, false }
func Events() []Event                       { return nil }

type decl struct{}

func (decl) Name() string     { return "" }
func (decl) Mode() Mode       { return 0 }
func (decl) Listenable() bool { return false }
func (decl) Listen(c *Context, fn Dynamic, opts ...ListenOption) (*Handle, error) {
	return nil, errSkeleton
}

type (
	Emit[A any]         struct{ decl }
	Parallel[A any]     struct{ decl }
	Serial[A, R any]    struct{ decl }
	Bail[A, R any]      struct{ decl }
	Waterfall[A, R any] struct{ decl }
)

func NewEmit[A any](name string, opts ...EventOption) *Emit[A]           { return &Emit[A]{} }
func NewParallel[A any](name string, opts ...EventOption) *Parallel[A]   { return &Parallel[A]{} }
func NewSerial[A, R any](name string, opts ...EventOption) *Serial[A, R] { return &Serial[A, R]{} }
func NewBail[A, R any](name string, opts ...EventOption) *Bail[A, R]     { return &Bail[A, R]{} }
func NewWaterfall[A, R any](name string, opts ...EventOption) *Waterfall[A, R] {
	return &Waterfall[A, R]{}
}

func (e *Emit[A]) On(c *Context, fn func(ctx context.Context, a A), opts ...ListenOption) (*Handle, error) {
	return nil, errSkeleton
}
func (e *Emit[A]) Emit(ctx context.Context, c *Context, a A, opts ...DispatchOption) {}
func (e *Parallel[A]) On(c *Context, fn func(ctx context.Context, a A) error, opts ...ListenOption) (*Handle, error) {
	return nil, errSkeleton
}
func (e *Parallel[A]) Dispatch(ctx context.Context, c *Context, a A, opts ...DispatchOption) error {
	return errSkeleton
}
func (e *Serial[A, R]) On(c *Context, fn func(ctx context.Context, a A) (R, bool, error), opts ...ListenOption) (*Handle, error) {
	return nil, errSkeleton
}
func (e *Serial[A, R]) Dispatch(ctx context.Context, c *Context, a A, opts ...DispatchOption) (r R, bailed bool, err error) {
	return r, false, errSkeleton
}
func (e *Bail[A, R]) On(c *Context, fn func(ctx context.Context, a A) (R, bool, error), opts ...ListenOption) (*Handle, error) {
	return nil, errSkeleton
}
func (e *Bail[A, R]) Dispatch(ctx context.Context, c *Context, a A, opts ...DispatchOption) (r R, bailed bool, err error) {
	return r, false, errSkeleton
}
func (e *Waterfall[A, R]) On(c *Context, fn func(ctx context.Context, a A, next func(context.Context) (R, error)) (R, error), opts ...ListenOption) (*Handle, error) {
	return nil, errSkeleton
}
func (e *Waterfall[A, R]) Run(ctx context.Context, c *Context, a A, inner func(ctx context.Context, a A) (R, error), opts ...DispatchOption) (r R, err error) {
	return r, errSkeleton
}

// Payloads of the internal events.
type (
	StatusChange struct {
		Fiber    *Fiber
		Old, New State
	}
	PluginChange struct {
		Fiber   *Fiber
		Mounted bool // false: its disposal starts
	}
	ServiceChange struct {
		Name    string
		Realm   *Realm
		Owner   *Fiber
		Present bool
	}
	Update struct {
		Fiber  *Fiber
		Config any
	}
	Dispatch struct {
		Mode    Mode
		Name    string
		Arg     any
		Context *Context
	}
	Registration struct {
		Event                 Event
		Context               *Context
		Prepend, Once, Global bool
	}
)

// Internal events.
var (
	StatusChanged       = NewEmit[StatusChange]("internal/status")
	PluginChanged       = NewEmit[PluginChange]("internal/plugin")
	ServiceChanged      = NewEmit[ServiceChange]("internal/service")
	Updating            = NewWaterfall[Update, struct{}]("internal/update")
	Dispatching         = NewEmit[Dispatch]("internal/dispatch")
	ListenerRegistering = NewBail[Registration, *Handle]("internal/listener")
)

func (c *Context) Timeout(d time.Duration, fn func(context.Context)) (*Handle, error) {
	return nil, errSkeleton
}
func (c *Context) Interval(d time.Duration, fn func(context.Context)) (*Handle, error) {
	return nil, errSkeleton
}
func (c *Context) Sleep(ctx context.Context, d time.Duration) error { return errSkeleton }
func (c *Context) Ticks(ctx context.Context, d time.Duration) iter.Seq2[time.Time, error] {
	return func(func(time.Time, error) bool) {}
}
func (c *Context) Throttle(d time.Duration, trailing bool, fn func(context.Context)) (call func(), h *Handle, err error) {
	return nil, nil, errSkeleton
}
func (c *Context) Debounce(d time.Duration, fn func(context.Context)) (call func(), h *Handle, err error) {
	return nil, nil, errSkeleton
}

// Message is one log entry.
type Message struct {
	SN    uint64
	Time  time.Time
	Level slog.Level
	Name  string
	Text  string
	Attrs []slog.Attr
	Fiber *Fiber
}

func (c *Context) Logger(name ...string) *Logger { return &Logger{} }
func (c *Context) Export(level slog.Level, export func(Message)) (*Handle, error) {
	return nil, errSkeleton
}
func NewConsole(w io.Writer) func(Message)       { return func(Message) {} }
func (l *Logger) Error(text string, args ...any) {} // args as in slog
func (l *Logger) Warn(text string, args ...any)  {}
func (l *Logger) Info(text string, args ...any)  {}
func (l *Logger) Debug(text string, args ...any) {}
func (r *Runtime) Messages() []Message           { return nil } // the last 1000

// ServiceInfo is a provided service.
type ServiceInfo struct {
	Name  string
	Realm *Realm
	Owner *Fiber
	Value any
}

func (r *Runtime) Services() []ServiceInfo   { return nil }
func (r *Runtime) Fibers() []*Fiber          { return nil }
func (r *Runtime) Plugins() []*Plugin        { return nil }
func (r *Runtime) Remove(p *Plugin) []*Fiber { return nil }
func (r *Runtime) Digest() string            { return "" }
