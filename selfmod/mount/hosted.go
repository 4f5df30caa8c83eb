package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/bridge"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// hosted is what one run uses of the host's services. All of it ends with the run.
type hosted struct {
	mu       sync.Mutex
	services map[string]*boundService
	relays   map[string]*Service // of plugins in another worker
	objects  map[uint32]*bridge.Object
	streams  map[uint32]*stream
	last     uint32 // number of objects and streams
	calls    map[*hostCall]struct{}
	tokens   map[uint64]*hostCall // the plugin's own numbers of calls that it may cancel
	early    []uint64             // cancelled before they were heard of
	released []byte               // functions that nothing here can call any more: "1,7"
	over     bool
	idle     chan struct{} // closed when the last call has ended, once it is over
}

// boundService is a service as it was bound for the run.
type boundService struct {
	value   any // of the service
	object  *bridge.Object
	binding json.RawMessage
}

// hostCall is a call of a service under way.
type hostCall struct{ cancel context.CancelCauseFunc }

// Reasons for which a call of a service ends.
var (
	errCallOver = errors.New("the call that it was made for was cancelled")
	errSignal   = errors.New("its signal was aborted")
	errRunOver  = errors.New("this part of the plugin has been unmounted, and what it had begun was cancelled")
	errBroken   = errors.New("the iteration was broken off")
)

// maxEarly is how many cancellations are kept that came before their calls.
const maxEarly = 256

// bind gives what a service with an interface for plugins is bound to in this run.
func (r *run) bind(d cordis.ServiceDecl, value any) (json.RawMessage, error) {
	h := &r.hosted
	h.mu.Lock()
	had := h.services[d.Name]
	h.mu.Unlock()
	if had != nil && same(had.value, value) {
		return had.binding, nil
	}
	i, err := bridge.Of(d)
	if err != nil {
		return nil, err
	}
	b := &boundService{value: value, object: bridge.NewObject(i, d.Bind(value, r.c)), binding: describe(i)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.services == nil {
		h.services = map[string]*boundService{}
	}
	h.services[d.Name] = b
	return b.binding, nil
}

// unbind forgets a service that is gone.
func (r *run) unbind(name string) {
	r.hosted.mu.Lock()
	defer r.hosted.mu.Unlock()
	delete(r.hosted.services, name)
	delete(r.hosted.relays, name)
}

// same tells whether a service has the value that it had.
func same(a, b any) bool {
	t := reflect.TypeOf(a)
	return t == reflect.TypeOf(b) && (t == nil || t.Comparable() && a == b)
}

var described sync.Map // *bridge.Interface → json.RawMessage

// describe is the binding of a service: what members it and its objects have.
func describe(i *bridge.Interface) json.RawMessage {
	if text, ok := described.Load(i); ok {
		return text.(json.RawMessage)
	}
	types := map[string][][3]string{}
	for _, t := range i.Types() {
		types[t.Name] = rows(t)
	}
	text, err := json.Marshal(struct {
		Kind    string                 `json:"kind"`
		Members [][3]string            `json:"members"`
		Types   map[string][][3]string `json:"types"`
	}{"host", rows(i), types})
	if err != nil { // strings only: cannot happen
		return null
	}
	described.Store(i, json.RawMessage(text))
	return text
}

func rows(i *bridge.Interface) [][3]string {
	list := make([][3]string, len(i.Members))
	for n, m := range i.Members {
		list[n] = [3]string{m.Name, string(m.Kind), m.Signature}
	}
	return list
}

// request is what a plugin asks of a service or of an object.
type request struct {
	object *bridge.Object
	member *bridge.Member
	args   lossless.Value
	token  uint64 // 0: it cannot be cancelled by itself
}

// read checks a request: the service is declared and there, the object is one of
// this run, the member is one of its members.
func (r *run) read(payload json.RawMessage) (q request, err error) {
	v, err := lossless.Parse(payload)
	if err != nil {
		return q, fmt.Errorf("read request: %w", err)
	}
	service, of := v.Get("s")
	handle, _ := v.Get("h")
	name, _ := v.Get("m")
	q.args, _ = v.Get("a")
	token, _ := v.Get("t")
	number, _ := token.Int64()
	q.token = uint64(number)
	if q.args.Kind() != lossless.Array {
		return q, errors.New("read request: it has no arguments")
	}
	if of {
		q.object, err = r.service(service.Str())
	} else {
		q.object, err = r.object(handle)
	}
	if err == nil {
		q.member, err = q.object.Find(name.Str())
	}
	return q, err
}

// service is a service that the plugin declares and that is there.
func (r *run) service(name string) (*bridge.Object, error) {
	r.hosted.mu.Lock()
	b := r.hosted.services[name]
	r.hosted.mu.Unlock()
	if b != nil {
		return b.object, nil
	}
	shown := plain.Name(name)
	if !r.injects(name) {
		return nil, fmt.Errorf("service %q is not injected. Declare it: inject: ['%s', …] on your plugin", shown, shown)
	}
	return nil, &bridge.Error{Name: "Error", Code: "SERVICE_ABSENT", Message: fmt.Sprintf("service %q is not available now: its provider is not running", shown)}
}

// object is an object that this run was given.
func (r *run) object(handle lossless.Value) (*bridge.Object, error) {
	id, ok := handle.Int64()
	r.hosted.mu.Lock()
	defer r.hosted.mu.Unlock()
	if o := r.hosted.objects[uint32(id)]; ok && id > 0 && id < 1<<32 && o != nil {
		return o, nil
	}
	return nil, &bridge.Error{Name: "Error", Code: "OBJECT_GONE", Message: "this object of a service is gone: it belonged to a run of the plugin that has ended, or was given back"}
}

// begin makes the context of a call: it ends when the call that asks is cancelled,
// if it is that one's alone, when the plugin cancels it, and with the run. end must
// be called.
func (r *run) begin(ctx context.Context, token uint64, alone bool) (context.Context, *hostCall, func(), error) {
	h := &r.hosted
	life := sandbox.Life(ctx)
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	call := &hostCall{cancel}
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		cancel(errRunOver)
		return nil, nil, nil, errOver
	}
	if h.calls == nil {
		h.calls, h.tokens = map[*hostCall]struct{}{}, map[uint64]*hostCall{}
	}
	h.calls[call] = struct{}{}
	if token != 0 {
		h.tokens[token] = call
		if at := slices.Index(h.early, token); at >= 0 {
			h.early = slices.Delete(h.early, at, at+1)
			cancel(errSignal)
		}
	}
	h.mu.Unlock()
	stop := func() bool { return true }
	if alone {
		stop = context.AfterFunc(life, func() { cancel(errCallOver) })
	}
	return ctx, call, sync.OnceFunc(func() {
		stop()
		cancel(nil)
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.calls, call)
		if h.tokens[token] == call {
			delete(h.tokens, token)
		}
		if h.idle != nil && len(h.calls) == 0 {
			close(h.idle)
			h.idle = nil
		}
	}), nil
}

// cancelCall ends a call of a service on the plugin's request.
func (r *run) cancelCall(payload json.RawMessage) {
	var p struct {
		Token uint64 `json:"t"`
	}
	if json.Unmarshal(payload, &p) != nil || p.Token == 0 {
		return
	}
	h := &r.hosted
	h.mu.Lock()
	call := h.tokens[p.Token]
	if call == nil { // it is not here yet, or no more
		if h.early = append(h.early, p.Token); len(h.early) > maxEarly {
			h.early = h.early[1:]
		}
	}
	h.mu.Unlock()
	if call != nil {
		call.cancel(errSignal)
	}
}

// callSync answers a call of a method that is synchronous, or reads a property.
func (r *run) callSync(ctx context.Context, payload json.RawMessage) (any, error) {
	if a, ok, err := r.relayed(payload); ok || err != nil {
		return r.answered(a.ask(ctx, err))
	}
	q, err := r.read(payload)
	if err != nil {
		return nil, err
	}
	if q.member.Kind != catalog.KindSync && q.member.Kind != catalog.KindProperty {
		return nil, fmt.Errorf("%q is not synchronous", q.member.Name)
	}
	return r.answered(q.object.Call(r.acting(ctx), q.member, q.args, (*hostCaller)(r)))
}

// acting makes the mount the actor of what a service does for it, in the scope of
// its own context, whatever call it happens to come from. While a person is asked
// about that, the calls that wait for it have time.
func (r *run) acting(ctx context.Context) context.Context {
	a := tool.Actor{Scope: tool.ScopeOf(r.c), Exec: tool.ActorOf(ctx).Exec}
	if m, ok := tool.MountOf(r.c); ok {
		a.Mount = &m
	}
	return tool.WithPause(tool.WithActor(ctx, a), func() func() { return r.vm.HoldChain(ctx) })
}

// callAsync answers a call of a method that returns a promise, reads a property
// that is one, or begins an iteration.
func (r *run) callAsync(ctx context.Context, payload json.RawMessage) (any, error) {
	if a, ok, err := r.relayed(payload); ok || err != nil {
		return r.answered(a.ask(ctx, err))
	}
	q, err := r.read(payload)
	if err != nil {
		return nil, err
	}
	ctx, call, end, err := r.begin(r.acting(ctx), q.token, q.member.Kind != catalog.KindPromise)
	if err != nil {
		return nil, err
	}
	if q.member.Kind == catalog.KindIterator {
		return r.iterate(ctx, q, call, end)
	}
	defer end()
	return r.answered(q.object.Call(ctx, q.member, q.args, (*hostCaller)(r)))
}

// answered is the answer of a call with what was released meanwhile.
func (r *run) answered(b []byte, err error) (any, error) {
	if err != nil {
		r.noteFailure(err)
		return nil, err
	}
	h := &r.hosted
	h.mu.Lock()
	released := h.released
	h.released = nil
	h.mu.Unlock()
	if len(released) > 0 {
		b = slices.Concat([]byte{'+'}, released, []byte{'\n'}, b)
	}
	if b == nil {
		return nil, nil
	}
	return json.RawMessage(b), nil
}

// noteFailure logs what a panic of a service left.
func (r *run) noteFailure(err error) {
	if e := new(bridge.Error); errors.As(err, &e) && e.Stack != nil {
		r.c.Logger().Error(e.Message, "mount", r.m.ID, "stack", string(e.Stack))
	}
}

// stopTime is how long the end of a run waits for calls of services that it has
// cancelled.
const stopTime = time.Second

// endHosted ends what the run uses of the host's services.
func (r *run) endHosted(ctx context.Context) error {
	h := &r.hosted
	h.mu.Lock()
	h.over = true
	calls := make([]*hostCall, 0, len(h.calls))
	for c := range h.calls {
		calls = append(calls, c)
	}
	var idle chan struct{}
	if len(calls) > 0 {
		idle = make(chan struct{})
		h.idle = idle
	}
	h.services, h.relays, h.objects, h.streams, h.early = nil, nil, nil, nil, nil
	h.mu.Unlock()
	for _, c := range calls {
		c.cancel(errRunOver)
	}
	if idle == nil {
		return nil
	}
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	case <-timer.C:
	}
	h.mu.Lock()
	left := len(h.calls)
	h.mu.Unlock()
	if left == 0 {
		return nil
	}
	return fmt.Errorf("%d calls of services did not end when they were cancelled", left)
}
