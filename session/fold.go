package session

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session/message"
)

// fold is what the events up to now add up to. It is a value: a copy stays what
// it was when the original admits more events, so slices are never changed in
// place, only appended to or replaced.
type fold struct {
	seedLength int64 // inbox events before it belong to the session that was forked

	next  int64 // the seq of the next event
	time  int64 // of the last event
	bytes int64 // of all lines

	turn, step         int // the last ones that were opened
	turnOpen, stepOpen bool
	answered           bool // the open step has its answer
	calls              []call
	called, resulted   int // how many of them have a tool/call, a tool/result

	surface surface
	header  *Header
	context RequestContext
	preset  string
	title   string
	mode    string
	live    int64 // the seq after the last session/end-seed
	usage   message.Usage
	inbox   [2][]message.Message
	// claimed are the messages that the open turn took from the inbox and that are
	// not on the surface yet; with the first chunk nothing is waited for.
	claimed []message.Message
}

// call is a tool-call block of the open step's answer.
type call struct {
	id, name string
	args     message.Text
	owner    int64
}

// admit checks an event against the rules and takes it in. data is its payload,
// at lookup the events before it. After an error the fold is spoilt; the caller
// goes back to the copy that it has.
func (f *fold) admit(e Event, data lossless.Value, lookup func(int64) Event) error {
	if e.Seq != f.next {
		return fmt.Errorf("its seq is %d; the next event of the log is %d", e.Seq, f.next)
	}
	if why, ok := refused[e.Type]; ok {
		return errors.New(why)
	}
	if err := f.checkSurface(e); err != nil {
		return err
	}
	if err := f.take(e, data, lookup); err != nil {
		return err
	}
	f.next++
	f.time = e.Time
	f.bytes += int64(len(e.line)) + 1
	return nil
}

// full says that the log has outgrown its limit. It binds what is appended, not
// what is read or repaired, so that a full session can still be opened.
func (f *fold) full(limit int64) error {
	if f.bytes <= limit {
		return nil
	}
	return fmt.Errorf("%w: its log has at most %d bytes; go on in a new session", ErrFull, limit)
}

// checkSurface holds the rules of surfaceOp and sourceEventSeqs that do not
// depend on the surface.
func (f *fold) checkSurface(e Event) error {
	if onSurface(e.Type) != (e.op.Kind != "") {
		if e.op.Kind == "" {
			return errors.New("it needs a surfaceOp")
		}
		return errors.New("only user/message, assistant/message and tool/result have a surfaceOp")
	}
	if e.sources == nil {
		return nil
	}
	if !onSurface(e.Type) {
		return errors.New("only user/message, assistant/message and tool/result have sourceEventSeqs")
	}
	if len(e.sources) == 0 && e.Type != TypeAssistant {
		return errors.New("sourceEventSeqs may be empty in an assistant/message only; leave it out")
	}
	sorted := slices.Sorted(slices.Values(e.sources))
	for i, s := range sorted {
		if s < 0 || s >= e.Seq {
			return fmt.Errorf("sourceEventSeqs names event %d, which is not before it", s)
		}
		if i > 0 && sorted[i-1] == s {
			return fmt.Errorf("sourceEventSeqs names event %d twice", s)
		}
	}
	return nil
}

func (f *fold) take(e Event, data lossless.Value, lookup func(int64) Event) error {
	switch e.Type {
	case TypeTurnStart, TypeTurnEnd, TypeStepStart, TypeStepEnd:
		return f.nest(e.Type, data)
	case TypeChunk:
		f.claimed = nil
		chunk, _ := data.Get("chunk")
		f.use(e.Seq, chunk)
		return f.inStep(data)
	case TypeUser:
		return f.user(e, data)
	case TypeAssistant:
		return f.assistant(e, data)
	case TypeCall:
		return f.call(data)
	case TypeResult:
		return f.result(e, data, lookup)
	case TypeRequestHeader:
		return f.requestHeader(e)
	case TypeEndSeed:
		if f.turnOpen {
			return errors.New("a turn is open; a seed ends between turns")
		}
		f.live = e.Seq + 1
		return nil
	case TypeInbox:
		return f.splice(e)
	}
	return f.named(e, data)
}

// named takes in the types of which one member counts.
func (f *fold) named(e Event, data lossless.Value) error {
	switch e.Type {
	case TypeRequestContext:
		var p RequestContext // a new one: what is absent is not that of the event before
		if err := unmarshal(e.Data(), &p); err != nil {
			return err
		}
		f.context = p
	case TypeLLMCall:
		f.use(e.Seq, data)
	case TypeTitle:
		title, _ := data.Get("title")
		if title.Kind() != lossless.String || title.Str() != plain.Line(title.Str(), limits.SessionTitle) {
			return fmt.Errorf("a title is one line of at most %d characters, without control characters", limits.SessionTitle)
		}
		f.title = title.Str()
	case TypePreset:
		preset, _ := data.Get("agentPreset")
		if preset.Str() == "" {
			return errors.New("agentPreset is missing")
		}
		f.preset = preset.Str()
	case TypePermissionMode:
		mode, _ := data.Get("mode")
		if mode.Str() == "" {
			return errors.New("mode is missing")
		}
		f.mode = mode.Str()
	}
	return nil
}

// use counts the usage that a chunk or a one-shot request tells.
func (f *fold) use(seq int64, data lossless.Value) {
	u, ok := data.Get("usage")
	if !ok || seq < f.seedLength {
		return
	}
	count := func(key string) int64 {
		v, _ := u.Get(key)
		n, _ := v.Int64()
		return max(n, 0)
	}
	f.usage = f.usage.Add(message.Usage{
		Input: count("inputTokens"), Output: count("outputTokens"), Reasoning: count("reasoningTokens"),
		CacheRead: count("cacheReadTokens"), CacheWrite: count("cacheWriteTokens"),
	})
}

// count reads a positive member of a payload.
func count(data lossless.Value, key string) (int, error) {
	v, _ := data.Get(key)
	n, ok := v.Int64()
	if !ok || n < 1 || n > 1<<31-1 {
		return 0, fmt.Errorf("%s is %s; it is an integer from 1", key, plain.Preview(v.String()))
	}
	return int(n), nil
}

// nest holds the order of turns and steps.
func (f *fold) nest(kind Type, data lossless.Value) error {
	turn, err := count(data, "turn")
	if err != nil {
		return err
	}
	step := 0
	if kind == TypeStepStart || kind == TypeStepEnd {
		if step, err = count(data, "step"); err != nil {
			return err
		}
	}
	switch {
	case kind == TypeTurnStart && f.turnOpen:
		return fmt.Errorf("turn %d is open; end it first", f.turn)
	case kind == TypeTurnStart && turn != f.turn+1:
		return fmt.Errorf("the next turn is %d, not %d", f.turn+1, turn)
	case kind != TypeTurnStart && !f.turnOpen:
		return errors.New("no turn is open")
	case kind != TypeTurnStart && turn != f.turn:
		return fmt.Errorf("the open turn is %d, not %d", f.turn, turn)
	case (kind == TypeStepStart || kind == TypeTurnEnd) && f.stepOpen:
		return fmt.Errorf("step %d of turn %d is open; end it first", f.step, f.turn)
	case kind == TypeStepStart && step != f.step+1:
		return fmt.Errorf("the next step of turn %d is %d, not %d", f.turn, f.step+1, step)
	case kind == TypeStepEnd && !f.stepOpen:
		return errors.New("no step is open")
	case kind == TypeStepEnd && step != f.step:
		return fmt.Errorf("the open step is %d, not %d", f.step, step)
	case kind == TypeStepEnd && f.resulted < len(f.calls):
		return fmt.Errorf("%d of %d calls have no result, the first is %q; every call needs one, see Session.Unanswered",
			len(f.calls)-f.resulted, len(f.calls), plain.Name(f.calls[f.resulted].id))
	}
	switch kind {
	case TypeTurnStart:
		f.turn, f.step, f.turnOpen = turn, 0, true
	case TypeTurnEnd:
		f.turnOpen, f.claimed = false, nil
	case TypeStepStart:
		f.step, f.stepOpen, f.answered = step, true, false
		f.calls, f.called, f.resulted = nil, 0, 0
	case TypeStepEnd:
		f.stepOpen = false
		f.calls, f.called, f.resulted = nil, 0, 0
	}
	return nil
}

// inStep says whether a payload belongs to the open step.
func (f *fold) inStep(data lossless.Value) error {
	turn, err := count(data, "turn")
	if err != nil {
		return err
	}
	step, err := count(data, "step")
	if err != nil {
		return err
	}
	if !f.stepOpen {
		return errors.New("no step is open")
	}
	if turn != f.turn || step != f.step {
		return fmt.Errorf("it is of step %d of turn %d; the open one is step %d of turn %d", step, turn, f.step, f.turn)
	}
	return nil
}

func (f *fold) requestHeader(e Event) error {
	var p RequestHeader
	if err := unmarshal(e.Data(), &p); err != nil {
		return err
	}
	for _, key := range []string{"provider", "model"} {
		if v, _ := p.Header.Config.Get(key); v.Str() == "" {
			return fmt.Errorf("the header's config has no %s", key)
		}
	}
	switch {
	case p.Reason != HeaderInitial && p.Reason != HeaderResume && p.Reason != HeaderChange:
		return fmt.Errorf("the reason is %q; it is initial, resume or change", plain.Name(string(p.Reason)))
	case p.Reason == HeaderInitial && f.header != nil:
		return errors.New("the log has a header; initial is for the first")
	case p.Reason == HeaderChange && f.header == nil:
		return errors.New("the log has no header yet; the first one has the reason initial")
	case p.Reason == HeaderChange && f.header.Equal(p.Header):
		return errors.New("the header is the one that the log has; log it when it changes")
	}
	f.header = &p.Header
	return nil
}

// splice holds the two lists of the inbox.
func (f *fold) splice(e Event) error {
	if e.Seq < f.seedLength {
		return nil
	}
	var p InboxSplice
	if err := unmarshal(e.Data(), &p); err != nil {
		return err
	}
	i := 0
	switch p.Target {
	case NextTurn:
	case NextStep:
		i = 1
	default:
		return fmt.Errorf("the target is %q; it is next-turn or next-step", plain.Name(string(p.Target)))
	}
	list := f.inbox[i]
	if p.Start < 0 || p.RemovedCount < 0 || p.Start > len(list) || p.RemovedCount > len(list)-p.Start {
		return fmt.Errorf("start %d, removedCount %d: %s has %d messages", p.Start, p.RemovedCount, p.Target, len(list))
	}
	if f.turnOpen && p.Outcome == "" && len(p.Inserted) == 0 {
		f.claimed = slices.Concat(f.claimed, list[p.Start:p.Start+p.RemovedCount])
	}
	f.inbox[i] = slices.Concat(list[:p.Start], p.Inserted, list[p.Start+p.RemovedCount:])
	if len(p.Inserted) == 0 {
		return nil
	}
	seen := map[string]bool{}
	for _, m := range slices.Concat(f.inbox[0], f.inbox[1]) {
		if seen[m.ID] {
			return fmt.Errorf("message %q waits already", plain.Name(m.ID))
		}
		seen[m.ID] = true
	}
	for _, m := range p.Inserted {
		if err := m.Check(); err != nil {
			return err
		}
	}
	return nil
}
