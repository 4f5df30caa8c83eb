package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/service"
)

// Codes of the errors of this package.
const (
	CodeArguments = "BAD_ARGUMENTS" // the arguments are not what the method takes
	CodeNoMember  = "NO_MEMBER"     // there is no such member
	CodeAborted   = "ABORT_ERR"     // the call was cancelled
	CodePanic     = "HOST_PANIC"    // the method panicked
	CodeTooLarge  = "TOO_LARGE"     // what does not cross, or is too much
)

// Error is what went wrong between a caller and a method.
type Error struct {
	Name    string // "TypeError", "AbortError", "Error"
	Code    string
	Message string
	Err     error  // the cause; nil: none
	Stack   []byte // of a panic
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode gives the code.
func (e *Error) ErrorCode() string { return e.Code }

// ErrorName gives the name of the error's class.
func (e *Error) ErrorName() string { return e.Name }

// Caller is the side that calls: it has functions, and keeps objects.
type Caller interface {
	// Call calls a function of the caller's, by its number, with its arguments, a
	// JSON array in the form of results, and gives what it returned in the form of
	// an argument. what says for whom: "a callback of ctx.fs.watch".
	Call(ctx context.Context, fn uint32, what string, args []byte) (json.RawMessage, error)
	// Release is told, once for each time that a function was given, that nothing
	// here can call it any more. It must not wait.
	Release(fn uint32)
	// Lost takes the error of a function that was called by what expects none.
	Lost(err error)
	// Keep keeps an object under a number of its own.
	Keep(o *Object) (uint32, error)
}

// Object is a value whose members can be called.
type Object struct {
	Interface *Interface
	value     reflect.Value

	mu       sync.Mutex
	promises map[*Member]*promise
}

// promise is a property that is a promise: it is asked for once.
type promise struct {
	done   chan struct{}
	result []byte
	err    error
}

// NewObject gives a value, which implements the Go interface, its members.
func NewObject(i *Interface, value any) *Object {
	v := reflect.New(i.t).Elem() // of the interface's type: methods are found by their index
	v.Set(reflect.ValueOf(value))
	return &Object{Interface: i, value: v}
}

type disposing interface {
	Dispose(ctx context.Context) error
}

// disposer is the object that a service.Dispose becomes.
type disposer struct{ f service.Dispose }

func (d disposer) Dispose(ctx context.Context) error { return d.f(ctx) }

var disposeInterface = func() *Interface {
	i := &Interface{Name: "Dispose", label: "dispose"}
	if err := i.fill(reflect.TypeFor[disposing](), nil, false, nil); err != nil {
		panic(err)
	}
	return i
}()

// Find gives a member; the error for one that is not there lists those that are.
func (o *Object) Find(name string) (*Member, error) {
	if m, ok := o.Interface.Member(name); ok {
		return m, nil
	}
	names := o.Interface.names()
	return nil, &Error{Name: "TypeError", Code: CodeNoMember, Message: fmt.Sprintf("%s has no member %q%s Available: %s",
		o.Interface.label, plain.Name(name), orDot(suggest(name, names)), strings.Join(names, ", "))}
}

// Call calls a member, or reads it, and gives the result. It waits for the method,
// whatever happens to ctx; that is what the method gets.
func (o *Object) Call(ctx context.Context, m *Member, args lossless.Value, c Caller) ([]byte, error) {
	switch m.Kind {
	case catalog.KindIterator:
		return nil, fmt.Errorf("%s: it is an iterator, and was called as a function", m.who())
	case catalog.KindPromise:
		return o.await(ctx, m, c)
	}
	in, err := m.arguments(ctx, args, c)
	if err != nil {
		return nil, err
	}
	out, err := m.invoke(ctx, o.value, in)
	if err != nil {
		return nil, err
	}
	return m.write(c, out)
}

// who names the member in messages.
func (m *Member) who() string { return m.in.label + "." + m.Name }

// write gives the result of what the method returned.
func (m *Member) write(c Caller, out []reflect.Value) ([]byte, error) {
	if m.result == nil {
		return nil, nil
	}
	w := writer{caller: c, objects: m.Objects}
	b, err := w.result(out[0])
	if err != nil && !errors.As(err, new(*service.Error)) {
		return nil, fmt.Errorf("%s: %w", m.who(), err)
	}
	return b, err
}

// await gives the value of a property that is a promise.
func (o *Object) await(ctx context.Context, m *Member, c Caller) ([]byte, error) {
	o.mu.Lock()
	p := o.promises[m]
	first := p == nil
	if first {
		p = &promise{done: make(chan struct{})}
		if o.promises == nil {
			o.promises = map[*Member]*promise{}
		}
		o.promises[m] = p
	}
	o.mu.Unlock()
	if first {
		defer close(p.done)
		p.result, p.err = o.settle(ctx, m, c)
		return p.result, p.err
	}
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
		return nil, m.failure(ctx, ctx.Err())
	}
}

func (o *Object) settle(ctx context.Context, m *Member, c Caller) ([]byte, error) {
	out, err := m.invoke(ctx, o.value, nil)
	if err != nil {
		return nil, err
	}
	if out[0].IsNil() {
		return nil, nil
	}
	values, err := m.guard(ctx, func() []reflect.Value { return out[0].Call([]reflect.Value{reflect.ValueOf(&ctx).Elem()}) }, true)
	if err != nil {
		return nil, err
	}
	return m.write(c, values)
}

// arguments reads what the method is to be called with.
func (m *Member) arguments(ctx context.Context, args lossless.Value, c Caller) ([]reflect.Value, error) {
	n := args.Len()
	if n > len(m.params) {
		most := "no arguments"
		switch len(m.params) {
		case 0:
		case 1:
			most = "at most 1 argument"
		default:
			most = fmt.Sprintf("at most %d arguments", len(m.params))
		}
		return nil, m.refuse(fmt.Sprintf("%s takes %s, got %d", m.who(), most, n))
	}
	in := make([]reflect.Value, 0, len(m.params)+1)
	if m.ctx {
		in = append(in, reflect.ValueOf(&ctx).Elem()) // of the type that it must have
	}
	r := reader{ctx: ctx, caller: c, what: m.who()}
	for at, p := range m.params {
		path := &place{root: fmt.Sprintf("argument %d (%s)", at+1, p.name)}
		if at >= n || special(args.At(at)) == "u" {
			if !p.optional {
				return nil, m.refuse(fmt.Sprintf("%s: %s is missing", m.who(), path))
			}
			in = append(in, reflect.Zero(p.t))
			continue
		}
		v, err := r.read(path, p.ts, args.At(at), p.t)
		if err != nil {
			return nil, m.refuse(m.who() + ": " + err.Error())
		}
		in = append(in, v)
	}
	return in, nil
}

func (m *Member) refuse(text string) error {
	if !strings.HasSuffix(text, "?") && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return &Error{Name: "TypeError", Code: CodeArguments, Message: text + " Signature: " + m.Signature}
}

// invoke calls the method and gives its results without the error.
func (m *Member) invoke(ctx context.Context, value reflect.Value, in []reflect.Value) ([]reflect.Value, error) {
	return m.guard(ctx, func() []reflect.Value { return value.Method(m.method).Call(in) }, m.fails)
}

// guard calls what may panic. What ends the goroutine is an error too.
func (m *Member) guard(ctx context.Context, call func() []reflect.Value, fails bool) (out []reflect.Value, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &Error{Name: "Error", Code: CodePanic, Stack: debug.Stack(), Message: fmt.Sprintf("%s failed in the host: %s",
				m.who(), plain.Line(fmt.Sprint(v), limits.SourceLine))}
		}
	}()
	out = call()
	if !fails {
		return out, nil
	}
	last := len(out) - 1
	if e, ok := out[last].Interface().(error); ok && e != nil {
		return nil, m.failure(ctx, e)
	}
	return out[:last], nil
}

// failure is an error of the method: that of a call that was cancelled says so.
func (m *Member) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) && !errors.As(err, new(*service.Error)) {
		return &Error{Name: "AbortError", Code: CodeAborted, Err: err, Message: m.who() + ": " + aborted(ctx)}
	}
	return err
}

// aborted says why a call was cancelled.
func aborted(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return plain.Error(cause.Error())
	}
	return "the call was cancelled"
}

// function makes a Go function of a caller's one.
func (r *reader) function(path *place, ts string, v lossless.Value, out reflect.Value) error {
	number, _ := v.Get("h")
	id, ok := number.Int64()
	if special(v) != "f" || !ok || id < 0 || id > 1<<32-1 {
		return must(path, ts, v)
	}
	f := &function{caller: r.caller, id: uint32(id), ctx: context.WithoutCancel(r.ctx), what: r.what, t: out.Type()}
	runtime.AddCleanup(f, r.caller.Release, f.id)
	out.Set(reflect.MakeFunc(f.t, f.call))
	return nil
}

// function is one function of a caller's.
type function struct {
	caller Caller
	id     uint32
	ctx    context.Context // for a type that has none
	what   string
	t      reflect.Type
}

// call is what the Go function does.
func (f *function) call(in []reflect.Value) []reflect.Value {
	ctx := f.ctx
	if len(in) > 0 && f.t.In(0) == contextType {
		if !in[0].IsNil() {
			ctx = in[0].Interface().(context.Context)
		}
		in = in[1:]
	}
	out := make([]reflect.Value, f.t.NumOut())
	for n := range out {
		out[n] = reflect.Zero(f.t.Out(n))
	}
	err := f.enter(ctx, in, out)
	switch last := len(out) - 1; {
	case err == nil:
	case last >= 0 && f.t.Out(last) == errorType:
		out[last] = reflect.ValueOf(&err).Elem()
	default:
		f.caller.Lost(err)
	}
	return out
}

func (f *function) enter(ctx context.Context, in, out []reflect.Value) error {
	w := writer{caller: f.caller}
	args := []byte{'*', '['}
	for n, v := range in {
		if n > 0 {
			args = append(args, ',')
		}
		var err error
		if args, err = w.value(args, v); err != nil {
			return fmt.Errorf("argument %d of the callback of %s: %w", n+1, f.what, err)
		}
	}
	args = append(args, ']')
	if !w.special {
		args = args[1:]
	}
	text, err := f.caller.Call(ctx, f.id, "a callback of "+f.what, args)
	if err != nil || len(out) == 0 || f.t.Out(0) == errorType {
		return err
	}
	result := "the result of the callback of " + f.what
	v := lossless.Value{}
	if len(text) > 0 {
		if v, err = lossless.Parse(text); err != nil {
			return fmt.Errorf("%s: %w", result, err)
		}
	} else if out[0].Kind() != reflect.Pointer {
		return fmt.Errorf("%s must be %s, got undefined", result, tsName(f.t.Out(0)))
	}
	r := reader{ctx: ctx, caller: f.caller, what: f.what}
	value, err := r.read(&place{root: result}, tsName(f.t.Out(0)), v, f.t.Out(0))
	if err != nil {
		return err
	}
	out[0] = value
	return nil
}
