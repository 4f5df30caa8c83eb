package session

import (
	"fmt"
	"math"
	"slices"

	"github.com/dsh-go/dsh/session/message"
)

// Codes of the results that the repair writes.
const (
	// CodeUnknown answers a call that was dispatched and whose outcome is not known.
	CodeUnknown = "TOOL_OUTCOME_UNKNOWN"
	// CodeNotStarted answers a call that was never dispatched.
	CodeNotStarted = "TOOL_NOT_STARTED"
)

// What the model reads in such a result.
const (
	textUnknown = "Error: the session was interrupted while this call ran, and its outcome is unknown: it may have happened, " +
		"in part or not at all. Call it again only if it is read-only or idempotent; else find out first what it did, or ask the person."
	textNotStarted = "Error: the session was interrupted before this call was started. It has done nothing; it is safe to call it again."
)

// Repair appends what an interrupted log lacks: one result for each unanswered
// call of the open step, step/end, and turn/end with the reason interrupted, all
// with the time of the last event. Messages that the turn had taken from the inbox
// and that reached neither the surface nor a request go back to the front of
// next-turn; a message keeps its id on that way. It returns the appended events, none if no
// turn is open. Stores call it when they open a session; a loop that must give up
// in the middle of a step may call it too.
func (l *Log) Repair() ([]Event, error) {
	f := l.view()
	if !f.turnOpen {
		return nil, nil
	}
	var payloads []Payload
	for i := f.resulted; i < len(f.calls); i++ {
		c := f.calls[i]
		text, code := textUnknown, CodeUnknown
		if i >= f.called {
			text, code = textNotStarted, CodeNotStarted
		}
		id := fmt.Sprintf("interrupted-tool-result-%s-%d", c.id, f.next+int64(len(payloads)))
		payloads = append(payloads, Result{
			Turn: f.turn, Step: f.step, Message: message.Result(id, c.id, true, message.Plain(text)),
			Error: &ResultError{Name: "Error", Code: code},
		})
	}
	if f.stepOpen {
		payloads = append(payloads, StepEnd{f.turn, f.step})
	}
	if again := f.unsaid(); len(again) > 0 {
		payloads = append(payloads, InboxSplice{Target: NextTurn, Inserted: again})
	}
	payloads = append(payloads, TurnEnd{Turn: f.turn, Reason: EndReason{Kind: EndInterrupted}})
	events, err := l.append(max(f.time, 1), math.MaxInt64, payloads)
	if err != nil {
		return nil, fmt.Errorf("repair session %s: %w", l.meta.ID, err)
	}
	return events, nil
}

// unsaid returns the claimed messages that can wait again.
func (f *fold) unsaid() []message.Message {
	return unclaimed(f.claimed, func(id string) bool {
		return slices.ContainsFunc(slices.Concat(f.inbox[0], f.inbox[1]), func(m message.Message) bool { return m.ID == id })
	})
}

// ends names the ends of turns that are next to an event.
func ends(events []Event, at int64) string {
	before, after := int64(-1), int64(-1)
	for _, e := range events {
		if e.Type != TypeTurnEnd {
			continue
		}
		if e.Seq > at {
			after = e.Seq
			break
		}
		before = e.Seq
	}
	switch {
	case before < 0 && after < 0:
		return "there is none yet"
	case before < 0:
		return fmt.Sprintf("the first is event %d", after)
	case after < 0:
		return fmt.Sprintf("the last is event %d", before)
	}
	return fmt.Sprintf("the nearest are events %d and %d", before, after)
}

// Fork returns what a fork of the log is made of: its Meta and the events up to
// and including the seq at, or all for -1. ErrBoundary, ErrOpenTurn, ErrID. It is
// for stores; see [Store].
func (l *Log) Fork(at int64, newID string) (Meta, []Event, error) {
	events := l.tail(0)
	n := int64(len(events))
	if at < -1 || at >= n {
		return Meta{}, nil, fmt.Errorf("fork session %s at event %d: %w; its events are 0 to %d", l.meta.ID, at, ErrBoundary, n-1)
	}
	if err := CheckID(newID); err != nil {
		return Meta{}, nil, fmt.Errorf("fork session %s: %w", l.meta.ID, err)
	}
	f := l.view()
	if at >= 0 && at < n-1 {
		events = events[:at+1]
		prefix, err := NewLog(l.meta, events)
		if err != nil {
			return Meta{}, nil, fmt.Errorf("fork session %s: %w", l.meta.ID, err)
		}
		f = prefix.fold
	}
	if f.turnOpen {
		return Meta{}, nil, fmt.Errorf("fork session %s at event %d: %w %d; fork at a turn/end: %s", l.meta.ID, at, ErrOpenTurn, f.turn, ends(l.tail(0), at))
	}
	meta := Meta{
		ID: newID, CreatedAt: max(l.now().UnixMilli(), 0), Cwd: l.meta.Cwd, ParentSession: l.meta.ID,
		SeedLength: int64(len(events)), DelegationDepth: l.meta.DelegationDepth, AgentPreset: l.meta.AgentPreset,
	}
	return meta, events, nil
}
