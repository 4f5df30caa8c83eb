package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/bridge"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/sandbox"
)

// hosted is what one run uses of the host's services. All of it ends with the run.
type hosted struct {
	mu       sync.Mutex
	services map[string]*boundService
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

// stream is an iteration under way.
type stream struct {
	it   *bridge.Iteration
	call *hostCall
	done func()
}

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
	q, err := r.read(payload)
	if err != nil {
		return nil, err
	}
	if q.member.Kind != catalog.KindSync && q.member.Kind != catalog.KindProperty {
		return nil, fmt.Errorf("%q is not synchronous", q.member.Name)
	}
	return r.answered(q.object.Call(ctx, q.member, q.args, (*hostCaller)(r)))
}

// callAsync answers a call of a method that returns a promise, reads a property
// that is one, or begins an iteration.
func (r *run) callAsync(ctx context.Context, payload json.RawMessage) (any, error) {
	q, err := r.read(payload)
	if err != nil {
		return nil, err
	}
	ctx, call, end, err := r.begin(ctx, q.token, q.member.Kind != catalog.KindPromise)
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

// iterate begins an iteration and answers with its number and the first values.
func (r *run) iterate(ctx context.Context, q request, call *hostCall, end func()) (any, error) {
	h := &r.hosted
	h.mu.Lock()
	full := len(h.streams) >= limits.Iterations
	h.mu.Unlock()
	if full {
		end()
		return nil, fmt.Errorf("a temporary Plugin may have %d iterations at a time, and this one has that many; end some with break or return()", limits.Iterations)
	}
	it, err := q.object.Iterate(ctx, q.member, q.args, (*hostCaller)(r))
	if err != nil {
		end()
		return nil, err
	}
	s := &stream{it: it, call: call, done: end}
	h.mu.Lock()
	h.last++
	id := h.last
	if h.streams == nil {
		h.streams = map[uint32]*stream{}
	}
	h.streams[id] = s
	h.mu.Unlock()
	go func() { // ends with the iteration, which ends with its context
		<-it.Ended()
		end()
	}()
	b, err := it.Next(ctx)
	if err != nil {
		r.forget(id)
		r.noteFailure(err)
		return nil, err
	}
	head := append(strconv.AppendUint([]byte{'#'}, uint64(id), 10), '\n')
	return json.RawMessage(append(head, b...)), nil
}

// stream is an iteration of this run.
func (r *run) stream(payload json.RawMessage) (uint32, *stream, error) {
	var p struct {
		Stream uint32 `json:"h"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return 0, nil, fmt.Errorf("read iteration: %w", err)
	}
	r.hosted.mu.Lock()
	defer r.hosted.mu.Unlock()
	return p.Stream, r.hosted.streams[p.Stream], nil
}

// pull answers with the next values of an iteration.
func (r *run) pull(ctx context.Context, payload json.RawMessage) (any, error) {
	id, s, err := r.stream(payload)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return json.RawMessage(`{"v":[],"d":true}`), nil
	}
	b, err := s.it.Next(context.WithoutCancel(ctx))
	if err != nil {
		r.forget(id)
		r.noteFailure(err)
		return nil, err
	}
	return json.RawMessage(b), nil
}

// stop breaks an iteration off.
func (r *run) stop(ctx context.Context, payload json.RawMessage) (any, error) {
	id, s, err := r.stream(payload)
	if err != nil || s == nil {
		return nil, err
	}
	r.forget(id)
	ctx, cancel := context.WithTimeout(ctx, stopTime)
	defer cancel()
	_ = s.it.Stop(ctx, errBroken) // one that does not return is cancelled, and counted at the end of the run
	return nil, nil
}

// forget takes an iteration out of the run's.
func (r *run) forget(id uint32) {
	r.hosted.mu.Lock()
	defer r.hosted.mu.Unlock()
	delete(r.hosted.streams, id)
}

// drop takes back objects and iterations that the plugin has lost.
func (r *run) drop(payload json.RawMessage) {
	var p struct {
		Handles []uint32 `json:"h"`
	}
	if json.Unmarshal(payload, &p) != nil {
		return
	}
	var broken []*stream
	h := &r.hosted
	h.mu.Lock()
	for _, id := range p.Handles {
		delete(h.objects, id)
		if s := h.streams[id]; s != nil {
			broken = append(broken, s)
			delete(h.streams, id)
		}
	}
	h.mu.Unlock()
	for _, s := range broken {
		s.call.cancel(errBroken)
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
	h.services, h.objects, h.streams, h.early = nil, nil, nil, nil
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

// hostCaller is a run as what calls services.
type hostCaller run

var _ bridge.Caller = (*hostCaller)(nil)

// Call enters a function that the plugin gave.
func (c *hostCaller) Call(ctx context.Context, fn uint32, what string, args []byte) (json.RawMessage, error) {
	r := (*run)(c)
	if r.ended() {
		return nil, &bridge.Error{Name: "Error", Code: "CONTEXT_ENDED", Message: fmt.Sprintf("%s of %s was not called: its part of the plugin has been unmounted", what, r.m.who())}
	}
	inside, done, err := r.c.Fiber().Enter(ctx, what)
	switch {
	case err == nil:
		ctx = inside
		defer done()
	case !slices.Contains(cordis.CallersIn(ctx), r.c.Fiber()): // its own calls go on
		return nil, err
	}
	payload := make([]byte, 0, len(args)+32)
	if args[0] == '*' {
		payload, args = append(payload, `{"s":true,"args":`...), args[1:]
	} else {
		payload = append(payload, `{"args":`...)
	}
	payload = append(append(payload, args...), '}')
	return r.vm.Invoke(ctx, sandbox.Call{Kind: "function", Run: r.id, Fn: fn, Args: payload, Entry: what})
}

// Release notes a function that nothing here can call any more.
func (c *hostCaller) Release(fn uint32) {
	h := &c.hosted
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	if len(h.released) > 0 {
		h.released = append(h.released, ',')
	}
	h.released = strconv.AppendUint(h.released, uint64(fn), 10)
}

// Lost takes the error of a function that nobody waits for.
func (c *hostCaller) Lost(err error) {
	if r := (*run)(c); r.vm.Dead() == nil {
		r.m.fault(err)
	}
}

// Keep gives an object a number in this run.
func (c *hostCaller) Keep(o *bridge.Object) (uint32, error) {
	h := &c.hosted
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
		return 0, errOver
	case len(h.objects) >= limits.Handles:
		return 0, fmt.Errorf("a temporary Plugin may have %d objects of services at a time, and this one has that many: let go of some", limits.Handles)
	}
	if h.objects == nil {
		h.objects = map[uint32]*bridge.Object{}
	}
	h.last++
	h.objects[h.last] = o
	return h.last, nil
}
