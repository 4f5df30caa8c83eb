package mount

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/bridge"
	"github.com/dsh-go/dsh/selfmod/sandbox"
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
