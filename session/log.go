package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// A Log is a session's events in memory, with the rules of the package comment.
// All methods may be called from any goroutine.
type Log struct {
	meta  Meta
	now   func() time.Time
	limit int64 // bytes

	mu        sync.Mutex // guards what follows; a leaf: nothing else is locked or called under it
	events    []Event
	fold      fold
	closed    bool
	changed   chan struct{} // closed by the next append or Close; nil while nobody waits
	observers int
}

// NewLog returns a log of the events, which are checked as if they were appended
// one after the other; the error names the first that breaks a rule. Events that
// are read from a store come through here.
func NewLog(meta Meta, events []Event) (*Log, error) {
	l := newLog(meta)
	l.events = slices.Clone(events)
	for i, e := range events {
		if err := l.admit(e, nil); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", i, e.Type, err)
		}
	}
	return l, nil
}

func newLog(meta Meta) *Log {
	return &Log{meta: meta, now: time.Now, limit: limits.SessionBytes, fold: fold{seedLength: meta.SeedLength}}
}

// admit takes an event into the fold; data is its payload if it is at hand.
func (l *Log) admit(e Event, data *lossless.Value) error {
	if data == nil {
		_, v, err := parseEvent(e.line)
		if err != nil {
			return err
		}
		data = &v
	}
	return l.fold.admit(e, *data, func(seq int64) Event { return l.events[seq] })
}

// Meta returns what was said about the session when it was created.
func (l *Log) Meta() Meta { return l.meta }

// Append checks the payloads and appends one event for each: all of them, or on
// an error none. The error wraps [ErrInvariant] and says which payload broke
// which rule, [ErrFull] too if the log has no room; [ErrClosed] after Close. The events get the current time, and are
// frozen: what the caller does with the payloads afterwards changes nothing.
//
// What was appended is in the views (Request, Inbox, …) when Append returns, and
// is not yet durable; see [Session.Checkpoint].
func (l *Log) Append(payloads ...Payload) ([]Event, error) {
	if len(payloads) > limits.SessionBatch {
		return nil, fmt.Errorf("append events: %w: %d at once, the limit is %d", ErrInvariant, len(payloads), limits.SessionBatch)
	}
	for _, p := range payloads {
		if p != nil && p.EventType() == TypeEndSeed {
			return nil, fmt.Errorf("append events: %w: session/end-seed is written when a session is opened", ErrInvariant)
		}
	}
	return l.append(0, l.limit, payloads)
}

// draft is an event without its place in the log.
type draft struct {
	kind    Type
	data    []byte
	op      Op
	sources []int64
}

func newDraft(p Payload) (draft, error) {
	data, err := encode(p)
	if err != nil {
		return draft{}, err
	}
	d := draft{kind: p.EventType(), data: data}
	if s, ok := p.(surfacer); ok {
		d.op, d.sources = s.surface()
		d.sources = slices.Clone(d.sources)
		if d.op.Kind == "" {
			d.op.Kind = Append
		}
	}
	return d, nil
}

// append is Append for every payload; at is the events' time, 0 for now, and
// limit what the log may grow to.
func (l *Log) append(at, limit int64, payloads []Payload) ([]Event, error) {
	drafts := make([]draft, len(payloads))
	for i, p := range payloads {
		d, err := newDraft(p)
		if err != nil {
			return nil, fmt.Errorf("append events: %w: payload %d: %w", ErrInvariant, i, err)
		}
		drafts[i] = d
	}
	if at == 0 {
		at = max(l.now().UnixMilli(), 0)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, fmt.Errorf("append events: %w", ErrClosed)
	}
	saved, length := l.fold, len(l.events)
	for i, d := range drafts {
		e := newEvent(l.fold.next, d.kind, at, d.data, d.op, d.sources)
		_, data, err := parseEvent(e.line)
		if err == nil {
			err = l.admit(e, &data)
		}
		if err == nil {
			err = l.fold.full(limit)
		}
		if err != nil {
			l.fold, l.events = saved, l.events[:length]
			return nil, fmt.Errorf("append events: %w: payload %d (%s): %w", ErrInvariant, i, d.kind, err)
		}
		l.events = append(l.events, e)
	}
	if l.changed != nil && len(drafts) > 0 {
		close(l.changed)
		l.changed = nil
	}
	return slices.Clip(l.events[length:]), nil
}

// Close ends the log: Append fails, Follow ends after the last event.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Len returns the number of events, which is the seq of the next one.
func (l *Log) Len() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.events))
}

// Events returns the events from a seq on. The caller owns the slice; from beyond
// the end it is empty.
func (l *Log) Events(from int64) []Event { return slices.Clone(l.tail(from)) }

// tail returns the events from a seq on; they share the log's array, which is
// appended to only.
func (l *Log) tail(from int64) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clip(l.events[min(max(from, 0), int64(len(l.events))):])
}

// Follow yields every event from a seq on, in order, each once, and then waits
// for more, until ctx ends, the log is closed, or the caller breaks. It runs on
// the caller's goroutine: a slow reader delays nobody and misses nothing.
func (l *Log) Follow(ctx context.Context, from int64) iter.Seq[Event] {
	return follow(ctx, from, func(from int64) ([]Event, <-chan struct{}) {
		l.mu.Lock()
		defer l.mu.Unlock()
		batch := slices.Clip(l.events[min(from, int64(len(l.events))):])
		if len(batch) > 0 || l.closed {
			return batch, nil
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		return nil, l.changed
	})
}

// follow yields what next has from a seq on, and then waits for more. Where next has
// nothing it gives what is closed when that may have changed, nil if nothing will come.
func follow(ctx context.Context, first int64, next func(from int64) ([]Event, <-chan struct{})) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for from := max(first, 0); ; {
			batch, more := next(from)
			for _, e := range batch {
				if ctx.Err() != nil || !yield(e) {
					return
				}
			}
			from += int64(len(batch))
			if len(batch) > 0 {
				continue
			}
			if more == nil {
				return
			}
			select {
			case <-more:
			case <-ctx.Done():
				return
			}
		}
	}
}

// An Observer receives events on a goroutine of its own; see [Log.Observe].
type Observer struct {
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	err    error
	panics int
}

// Observe calls fn with every event from a seq on, in the order of the log, each
// once, one after the other, on a goroutine that ends with Stop or after the last
// event of a closed log. An event may be observed before it is durable.
//
// fn never delays or fails an append: a slow one lags behind and misses nothing,
// a panic is counted (see [Observer.Err]) and the next event is delivered. fn may
// append to the log, and may stop its observer.
func (l *Log) Observe(from int64, fn func(Event)) (*Observer, error) {
	l.mu.Lock()
	if l.observers >= limits.SessionObservers {
		l.mu.Unlock()
		return nil, fmt.Errorf("observe session: %w: it has %d observers, the most there may be", ErrFull, limits.SessionObservers)
	}
	l.observers++
	l.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	o := &Observer{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(o.done)
		defer cancel()
		defer func() {
			l.mu.Lock()
			l.observers--
			l.mu.Unlock()
		}()
		for e := range l.Follow(ctx, from) {
			o.deliver(fn, e)
		}
	}()
	return o, nil
}

func (o *Observer) deliver(fn func(Event), e Event) {
	finished := false
	defer func() {
		v := recover()
		if v == nil && finished {
			return
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.panics++
		o.err = fmt.Errorf("observe event %d (%s): panic: %v", e.Seq, e.Type, v)
	}()
	fn(e)
	finished = true
}

// Stop ends the delivery. It does not wait; Wait does.
func (o *Observer) Stop() { o.cancel() }

// Wait returns when the observer's goroutine has ended, or with ctx's error.
func (o *Observer) Wait(ctx context.Context) error {
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Err returns the last panic of the observer's function as an error that says how
// many there were, nil if there was none.
func (o *Observer) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.panics > 1 {
		return fmt.Errorf("%w (and %d earlier)", o.err, o.panics-1)
	}
	return o.err
}

// Turn tells where the log stands in turns and steps. Turn and Step are the last
// that were opened, 0 before the first.
type Turn struct {
	Turn, Step         int
	TurnOpen, StepOpen bool
	Answered           bool // the open step has its assistant/message
}

// Turn returns where the log stands.
func (l *Log) Turn() Turn {
	f := l.view()
	return Turn{f.turn, f.step, f.turnOpen, f.stepOpen, f.answered && f.stepOpen}
}

// view returns a copy of the fold, which stays as it is.
func (l *Log) view() fold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fold
}

// Title returns the session's title; "" if it has none.
func (l *Log) Title() string { return l.view().title }

// Preset returns the agent preset that the session runs: the last one selected,
// else the one it was created with.
func (l *Log) Preset() string {
	if p := l.view().preset; p != "" {
		return p
	}
	return l.meta.AgentPreset
}

// PermissionMode returns the last logged mode; "" if none was.
func (l *Log) PermissionMode() string { return l.view().mode }

// Context returns the last request/context.
func (l *Log) Context() RequestContext { return l.view().context }

// Usage returns what the requests of the session took: the sum of what the usage
// chunks and the one-shot requests in its log say, without those that a fork took
// over.
func (l *Log) Usage() message.Usage { return l.view().usage }

// FirstLive returns the seq from which on events were appended by this life of the
// session: the one after the last session/end-seed, 0 without one.
func (l *Log) FirstLive() int64 { return l.view().live }

// Inbox returns copies of the messages that wait in a list. The queue of a forked
// session begins empty.
func (l *Log) Inbox(target Target) []message.Message {
	f := l.view()
	switch target {
	case NextTurn:
		return cloneMessages(f.inbox[0])
	case NextStep:
		return cloneMessages(f.inbox[1])
	}
	return nil
}

// Waiting returns how many messages wait in a list.
func (l *Log) Waiting(target Target) int {
	f := l.view()
	switch target {
	case NextTurn:
		return len(f.inbox[0])
	case NextStep:
		return len(f.inbox[1])
	}
	return 0
}

func cloneMessages(messages []message.Message) []message.Message {
	cloned := make([]message.Message, len(messages))
	for i, m := range messages {
		cloned[i] = m.Clone()
	}
	return cloned
}

// errNoHeader says that a request cannot be rebuilt.
var errNoHeader = errors.New("the log has no request/header yet")
