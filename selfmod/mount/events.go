package mount

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/tool"
)

// listenable are the events that plugins may listen to, with their modes.
var listenable = sync.OnceValue(func() map[string]string {
	events := map[string]string{}
	for _, e := range cordis.Events() {
		if e.Listenable() {
			events[e.Name()] = e.Mode().String()
		}
	}
	return events
})

// listenerSpec is a listener as the prelude describes it.
type listenerSpec struct {
	Event   string `json:"event"`
	Fn      uint32 `json:"fn"`
	Once    bool   `json:"once"`
	Prepend bool   `json:"prepend"`
}

func (p *listenerSpec) member(key string) any {
	switch key {
	case "event":
		return &p.Event
	case "fn":
		return &p.Fn
	case "once":
		return &p.Once
	case "prepend":
		return &p.Prepend
	}
	return nil
}

// listen registers a listener.
func (r *run) listen(_ context.Context, payload json.RawMessage) (any, error) {
	var p listenerSpec
	if err := wire.Read(payload, &p, (*listenerSpec).member); err != nil {
		return nil, fmt.Errorf("read listener: %w", err)
	}
	ev, ok := cordis.LookupEvent(p.Event)
	if !ok || !ev.Listenable() {
		names := make([]string, 0, len(listenable()))
		for name := range listenable() {
			names = append(names, name)
		}
		slices.Sort(names)
		return nil, fmt.Errorf("there is no event %q that %s may listen to; there are: %s", plain.Name(p.Event), r.m.sort(), strings.Join(names, ", "))
	}
	var opts []cordis.ListenOption
	if p.Prepend {
		opts = append(opts, cordis.Prepend())
	}
	if p.Once {
		opts = append(opts, cordis.Once())
	}
	return r.register(kindListener, func(id uint32, release func()) (*cordis.Handle, error) {
		l := &listener{r: r, event: p.Event, fn: p.Fn, mode: ev.Mode()}
		l.of(ev)
		if p.Once {
			l.consumed = release
		}
		if l.guards {
			r.m.set.watch(p.Event) // before it is asked
		}
		h, err := ev.Listen(r.c, l.hear, opts...)
		if err == nil && l.guards {
			r.addGuard(id, p.Event)
		}
		return h, err
	})
}

// listener enters one listening function of a run.
type listener struct {
	r        *run
	event    string
	fn       uint32
	mode     cordis.Mode
	guards   bool         // what it answers is a decision
	answer   reflect.Type // of what it answers, where it is passed over if it fails
	failing  atomic.Bool  // it was passed over, and that was told
	consumed func()       // of a once-listener
}

// inside marks the context of everything that a listener does.
type inside struct{ l *listener }

func (l *listener) entry() string { return "the listener of " + l.event }

// hear is the listener as the runtime calls it.
func (l *listener) hear(ctx context.Context, arg any, next func(context.Context) (any, error)) (any, error) {
	if ctx.Value(inside{l}) != nil {
		// It is not asked about what it does itself: it would ask for ever.
		if next != nil {
			return next(ctx)
		}
		return nil, nil
	}
	if l.consumed != nil {
		l.consumed()
	}
	args, err := l.args(arg)
	if err != nil {
		return nil, err
	}
	switch l.mode {
	case cordis.ModeEmit, cordis.ModeParallel:
		l.r.m.enqueue(l, args)
		return nil, nil
	case cordis.ModeWaterfall:
		return l.around(ctx, arg, args, next)
	}
	raw, err := l.enter(ctx, args, nil)
	if err != nil || absent(raw) {
		return nil, err
	}
	return raw, nil
}

// args are the arguments that the listening function gets.
func (l *listener) args(arg any) (json.RawMessage, error) {
	list := []any{arg}
	if f, ok := arg.(tool.Finished); ok {
		list = []any{f.Exec, f.Result}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("write arguments of %s: %w", l.event, err)
	}
	return text, nil
}

// enter calls the listening function. With next it gets a trailing next().
func (l *listener) enter(ctx context.Context, args json.RawMessage, next func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
	payload := make([]byte, 0, len(args)+32)
	payload = append(append(payload, `{"args":`...), args...)
	if next != nil {
		payload = append(payload, `,"next":true`...)
	}
	payload = append(payload, '}')
	var limit time.Duration // that of every call
	if l.answer != nil {
		limit = limits.ListenerAnswer
	}
	return l.r.vm.Invoke(context.WithValue(ctx, inside{l}, true), sandbox.Call{
		Kind: "listener", Run: l.r.id, Fn: l.fn, Args: payload, Entry: l.entry(), Limit: limit,
		Started: func(id uint64) func() {
			if next == nil {
				return func() {}
			}
			l.r.mu.Lock()
			l.r.nexts[id] = func(ctx context.Context) (json.RawMessage, error) {
				// What comes next has limits of its own.
				defer l.r.vm.Hold(id)()
				return next(ctx)
			}
			l.r.mu.Unlock()
			return func() {
				l.r.mu.Lock()
				delete(l.r.nexts, id)
				l.r.mu.Unlock()
			}
		},
	})
}

// around runs a waterfall listener. What the rest of the chain returned is
// kept, so that the answer can be held against it.
func (l *listener) around(ctx context.Context, arg any, args json.RawMessage, next func(context.Context) (any, error)) (any, error) {
	rest := &rest{next: next}
	raw, err := l.enter(ctx, args, rest.ask)
	if !l.guards && rest.asked() && sandbox.IsCode(err, sandbox.CodeClosed) {
		// It was unmounted, and the rest goes on without it. A guard's call is denied.
		value, _, err := rest.outcome(ctx)
		return value, err
	}
	switch {
	case l.guards:
		return l.decision(ctx, arg, raw, err, rest)
	case l.event == tool.AroundExecute.Name():
		return l.result(raw, err, rest)
	case l.event == tool.PostExecute.Name():
		return l.postDecision(raw, err)
	}
	return l.answered(ctx, arg, raw, err, rest)
}

// rest is the rest of a waterfall behind one listener; it runs at most once.
type rest struct {
	next func(context.Context) (any, error)

	mu    sync.Mutex
	done  chan struct{} // closed when it has returned; nil: nobody has asked for it
	value any
	raw   json.RawMessage
	err   error
}

func (n *rest) ask(ctx context.Context) (json.RawMessage, error) {
	n.mu.Lock()
	if n.done != nil {
		n.mu.Unlock()
		return nil, cordis.ErrNext
	}
	n.done = make(chan struct{})
	n.mu.Unlock()
	value, err := n.next(ctx)
	var raw json.RawMessage
	if err == nil {
		raw, err = json.Marshal(value)
	}
	n.mu.Lock()
	n.value, n.raw, n.err = value, raw, err
	n.mu.Unlock()
	close(n.done)
	return raw, err
}

// outcome waits for the rest, running it if nobody did.
func (n *rest) outcome(ctx context.Context) (any, json.RawMessage, error) {
	if !n.asked() {
		_, _ = n.ask(ctx) // its error is read below
	}
	select {
	case <-n.done:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.value, n.raw, n.err
}

// asked says whether the listener called next.
func (n *rest) asked() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.done != nil
}

// decision turns a guard's answer into a decision that can only be as strict
// as, or stricter than, the rest of the chain. Whatever goes wrong denies.
func (l *listener) decision(ctx context.Context, arg any, raw json.RawMessage, err error, rest *rest) (any, error) {
	var own tool.Decision
	if err == nil {
		err = readDecision(raw, &own)
	}
	if err != nil {
		text := plain.Line(err.Error(), limits.SourceLine*2)
		l.r.m.faults.add(text)
		return tool.Deny(fmt.Sprintf("%s was denied because the guard of %s failed: %s. %s removes the guard",
			l.subject(arg), l.r.m.who(), text, l.r.m.remedy())), nil
	}
	l.r.m.heard(ctx, arg)
	if own.Kind == tool.DecisionDeny {
		own.Reason = l.signed(own.Reason)
	}
	if own.Kind == tool.DecisionDeny && !rest.asked() {
		return own, nil
	}
	value, _, err := rest.outcome(ctx)
	if err != nil {
		return nil, err
	}
	theirs, ok := value.(tool.Decision)
	if !ok {
		return nil, fmt.Errorf("%s: the rest of the chain gave no decision", l.event)
	}
	return tool.Stricter(theirs, own), nil
}

// subject is what a guard decides about, in messages.
func (l *listener) subject(arg any) string {
	if e, ok := arg.(*tool.Exec); ok {
		return fmt.Sprintf("tool %q", e.Name)
	}
	return l.event
}

// signed adds to a refusal who refused, so that a caller who did not write the
// guard knows what to unmount. The reason leaves room for that in an error's text.
func (l *listener) signed(reason string) string {
	const room = 300
	reason = plain.Cut(plain.Error(reason), limits.ErrorText-room)
	if strings.TrimSpace(reason) == "" {
		reason = "refused without a reason"
	}
	return reason + " (refused by " + l.r.m.who() + ")"
}

func readDecision(raw json.RawMessage, d *tool.Decision) error {
	if absent(raw) {
		return errors.New("it returned nothing; return next(), or { kind: 'deny', reason: '…' }")
	}
	if err := json.Unmarshal(raw, d); err != nil {
		return fmt.Errorf("it returned %s; return next(), or { kind: 'deny', reason: '…' }", plain.Preview(string(raw)))
	}
	return d.Validate()
}

// result is what a wrapper of the body returned; the very result of next()
// counts as untouched.
func (l *listener) result(raw json.RawMessage, err error, rest *rest) (any, error) {
	if err != nil {
		return nil, toolError(err)
	}
	if absent(raw) {
		return nil, fmt.Errorf("the listener of tools/execute of %s returned nothing; return await next(), or a result { isError, value | error, content }", l.r.m.who())
	}
	if rest.asked() {
		rest.mu.Lock()
		value, theirs := rest.value, rest.raw
		rest.mu.Unlock()
		if value != nil && bytes.Equal(theirs, raw) {
			return value, nil
		}
	}
	res := new(tool.Result)
	if err := json.Unmarshal(raw, res); err != nil {
		return nil, fmt.Errorf("the listener of tools/execute of %s returned no result: %w", l.r.m.who(), err)
	}
	return res, nil
}

func (l *listener) postDecision(raw json.RawMessage, err error) (any, error) {
	if err != nil {
		return nil, toolError(err)
	}
	var d tool.PostDecision
	if absent(raw) {
		return nil, fmt.Errorf("the listener of tools/post-execute of %s returned nothing; return next(), or { kind: 'accept', content? | value? }, or { kind: 'block', feedback }", l.r.m.who())
	}
	if err := json.Unmarshal(raw, &d); err != nil {
		return nil, fmt.Errorf("the listener of tools/post-execute of %s returned no decision: %w", l.r.m.who(), err)
	}
	return d, nil
}

// queue holds the events that a mount has yet to hear. It has a goroutine only
// while there are any.
type queue struct {
	dropped atomic.Uint64

	mu      sync.Mutex
	items   []queued
	running bool
}

// queued is one event on its way to one listener. It is a running call of the
// mount's fiber, so that an unmount waits for it.
type queued struct {
	l    *listener
	args json.RawMessage
	ctx  context.Context
	done func()
}

// enqueue hands an event to a listener without waiting for it.
func (m *Mount) enqueue(l *listener, args json.RawMessage) {
	q := &m.queue
	q.mu.Lock()
	full := len(q.items) >= limits.EventQueue
	q.mu.Unlock()
	if full {
		q.dropped.Add(1)
		return
	}
	// Not of the emitter's chain: nobody waits for it there.
	ctx, done, err := l.r.c.Fiber().Enter(context.Background(), l.entry())
	if err != nil {
		return // the mount is going: it hears nothing new
	}
	q.mu.Lock()
	q.items = append(q.items, queued{l, args, ctx, done})
	start := !q.running
	q.running = true
	q.mu.Unlock()
	if start && !m.set.spawn(m.deliver) {
		m.deliver() // nothing is left that could wait for it
	}
}

// deliver empties the queue in order. A listener that fails is recorded and
// hears the next event.
func (m *Mount) deliver() {
	q := &m.queue
	for {
		q.mu.Lock()
		if len(q.items) == 0 {
			q.running, q.items = false, nil
			q.mu.Unlock()
			return
		}
		item := q.items[0]
		q.items = q.items[1:]
		q.mu.Unlock()
		if !item.l.r.ended() {
			if _, err := item.l.enter(item.ctx, item.args, nil); err != nil && item.l.r.vm.Dead() == nil {
				m.fault(err)
			}
		}
		item.done()
	}
}
