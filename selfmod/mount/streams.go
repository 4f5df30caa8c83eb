package mount

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/bridge"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// stream is an iteration under way.
type stream struct {
	it   *bridge.Iteration
	call *hostCall
	done func()
}

// iterate begins an iteration and answers with its number and the first values.
func (r *run) iterate(ctx context.Context, q request, call *hostCall, end func()) (any, error) {
	h := &r.hosted
	h.mu.Lock()
	full := len(h.streams) >= limits.Iterations
	h.mu.Unlock()
	if full {
		end()
		return nil, &bridge.Error{Name: "RangeError", Code: bridge.CodeTooLarge, Message: fmt.Sprintf("%s may have %d iterations at a time, and this one has that many; end some with break or return()", r.m.sort(), limits.Iterations)}
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
	b, done, err := it.Next(context.WithoutCancel(ctx)) // its own context ends with it
	if done || err != nil {
		r.forget(id)
	}
	if err != nil {
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
	b, done, err := s.it.Next(context.WithoutCancel(ctx))
	if done || err != nil {
		r.forget(id)
	}
	if err != nil {
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
		return 0, fmt.Errorf("%s may have %d objects of services at a time, and this one has that many: let go of some", c.m.sort(), limits.Handles)
	}
	if h.objects == nil {
		h.objects = map[uint32]*bridge.Object{}
	}
	h.last++
	h.objects[h.last] = o
	return h.last, nil
}

// A service that a plugin of another worker provides, a plugin file's for a temporary
// plugin or the other way round, is reached through the host. It looks like a service
// of the harness: methods, and members that are data; what crosses is data.

// bindRelay binds the run to a service of a plugin in another worker.
func (r *run) bindRelay(name string, s *Service) json.RawMessage {
	members := [][3]string{}
	for _, m := range s.members {
		kind, signature := catalog.KindProperty, m.Name
		if m.Kind == "function" {
			kind = catalog.KindSync
			if m.async {
				kind = catalog.KindAsync
			}
			signature += "(" + strings.Join(m.Params, ", ") + ")"
		}
		members = append(members, [3]string{m.Name, string(kind), signature})
	}
	text, err := json.Marshal(struct {
		Kind    string         `json:"kind"`
		Members [][3]string    `json:"members"`
		Types   map[string]any `json:"types"`
	}{"host", members, map[string]any{}})
	if err != nil { // strings only: cannot happen
		return null
	}
	h := &r.hosted
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.services, name)
	if h.relays == nil {
		h.relays = map[string]*Service{}
	}
	h.relays[name] = s
	return text
}

// relayedCall is what a plugin asks of such a service.
type relayedCall struct {
	r      *run
	s      *Service
	name   string // of the service
	member string
	args   lossless.Value
}

// relayed reads a request of such a service; false: it is for another.
func (r *run) relayed(payload json.RawMessage) (a relayedCall, ok bool, err error) {
	h := &r.hosted
	h.mu.Lock()
	none := len(h.relays) == 0
	h.mu.Unlock()
	if none {
		return a, false, nil
	}
	v, err := lossless.Parse(payload)
	if err != nil {
		return a, false, fmt.Errorf("read request: %w", err)
	}
	service, of := v.Get("s")
	if !of || service.Kind() != lossless.String {
		return a, false, nil
	}
	h.mu.Lock()
	s := h.relays[service.Str()]
	h.mu.Unlock()
	if s == nil {
		return a, false, nil
	}
	member, _ := v.Get("m")
	args, _ := v.Get("a")
	if member.Kind() != lossless.String || args.Kind() != lossless.Array {
		return a, false, fmt.Errorf("read request: it has no member or no arguments")
	}
	return relayedCall{r, s, service.Str(), member.Str(), args}, true, nil
}

// ask enters the provider. Its call is none of the worker that asks: it has a chain of
// its own, and only ends with it.
func (a relayedCall) ask(ctx context.Context, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	if fns := functionsIn(a.args); len(fns) > 0 {
		for _, fn := range fns {
			(*hostCaller)(a.r).Release(fn)
		}
		return nil, a.refuse("takes")
	}
	own, cancel := context.WithCancel(tool.WithActor(context.Background(), tool.ActorOf(a.r.acting(ctx))))
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	payload := append([]byte{'*', '['}, lossless.Str(a.member).Encode()...)
	payload = append(a.args.AppendTo(append(payload, ',')), ']')
	text, err := (*hostCaller)(a.s.run).Call(own, a.s.relay, fmt.Sprintf("member %q of service %q", plain.Name(a.member), plain.Name(a.name)), payload)
	if err != nil || !bytes.Contains(text, []byte(`"$`)) {
		return text, err
	}
	v, err := lossless.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	if len(functionsIn(v)) > 0 { // the provider's run keeps it until that ends
		return nil, a.refuse("gives")
	}
	return append([]byte{'*'}, text...), nil
}

// refuse says what does not cross.
func (a relayedCall) refuse(what string) error {
	return &bridge.Error{Name: "TypeError", Message: fmt.Sprintf(
		"%s.%s %s data only, no functions: the service is that of %s, which runs in another worker process", plain.Name(a.name), plain.Name(a.member), what, a.s.Label())}
}

// functionsIn are the numbers of the functions that a value holds.
func functionsIn(v lossless.Value) (fns []uint32) {
	switch v.Kind() {
	case lossless.Array:
		for _, item := range v.Items() {
			fns = append(fns, functionsIn(item)...)
		}
	case lossless.Object:
		if kind, ok := v.Get("$"); ok && kind.Kind() == lossless.String && kind.Str() == "f" {
			h, _ := v.Get("h")
			n, _ := h.Int64()
			return append(fns, uint32(n))
		}
		for _, item := range v.Members() {
			fns = append(fns, functionsIn(item)...)
		}
	}
	return fns
}
