package agent

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// Followup adds a prompt of the person: it begins the next turn.
func (a *Agent) Followup(text string) error {
	return a.Send(llm.UserText(text), session.NextTurn, true)
}

// Steer adds a message of the person to the next step of the turn that runs, or
// begins a turn with it.
func (a *Agent) Steer(text string) error {
	return a.Send(llm.UserText(text), session.NextStep, true)
}

// Inject adds a message of a plugin, which source names, to the next step of this
// or a later turn. It begins none.
func (a *Agent) Inject(source, text string) error {
	if source == "" {
		return fmt.Errorf("inject message into agent %s: the source has no name; give that of the plugin", a.id)
	}
	return a.Send(message.FromPlugin(newID(), source, message.Plain(text)), session.NextStep, false)
}

// Wake begins a turn with what waits, as Send with wake does.
func (a *Agent) Wake() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("wake agent %s: %w", a.id, ErrClosed)
	}
	return a.begin()
}

// newID returns an id for a message. Ids are in the log, so requests stay a
// function of it.
func newID() string { return "msg-" + rand.Text() }

// Send puts a message into a list of the inbox, and begins a turn if wake is set
// and none runs. An empty ID is made up; it must not be that of a message that waits.
// Attachments must be in the session. While a cancelled turn ends, a message that
// wakes becomes the prompt of a turn of its own.
//
// The error is ErrClosed, ErrFull (limits.AgentInbox messages, limits.AgentMessage
// bytes of one), or that of the log. Then nothing was put anywhere.
func (a *Agent) Send(m message.Message, target session.Target, wake bool) error {
	if m.ID == "" {
		m.ID = newID()
	}
	if err := a.send(&m, &target, wake); err != nil {
		return fmt.Errorf("send message to agent %s: %w", a.id, err)
	}
	InboxInserted.Emit(a.c.Context(), a.g.c, a.inboxChange(target, m), a.hearing())
	return nil
}

func (a *Agent) inboxChange(target session.Target, messages ...message.Message) InboxChange {
	c := InboxChange{Agent: a, Session: a.id, Target: target, Messages: messages, IDs: make([]string, len(messages))}
	for i, m := range messages {
		c.IDs[i] = m.ID
	}
	return c
}

func (a *Agent) send(m *message.Message, target *session.Target, wake bool) error {
	if err := a.checkMessage(*m); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	if wake && a.running && a.cancelled {
		*target = session.NextTurn
	}
	list := a.session.Waiting(*target)
	if list >= limits.AgentInbox {
		return fmt.Errorf("%w: %d messages wait in %s, the most there may be", ErrFull, list, *target)
	}
	if _, err := a.session.Append(session.InboxSplice{Target: *target, Start: list, Inserted: []message.Message{*m}}); err != nil {
		return err
	}
	if wake {
		return a.begin()
	}
	return nil
}

// checkMessage says what is wrong with a message for the inbox.
func (a *Agent) checkMessage(m message.Message) error {
	size := 0
	for _, b := range m.Content {
		size += len(b.Text)
		if b.Type == message.ResultBlock {
			return fmt.Errorf("message %q: a tool-result answers a call; it cannot be sent", plain.Name(m.ID))
		}
	}
	switch {
	case m.Role != message.User:
		return fmt.Errorf("message %q: the role is %q; what is sent to an agent is of the user", plain.Name(m.ID), plain.Name(string(m.Role)))
	case len(m.Content) == 0:
		return fmt.Errorf("message %q: it is empty", plain.Name(m.ID))
	case IsSnapshot(m):
		return fmt.Errorf("message %q: the source %q is kept for the runtime context", plain.Name(m.ID), m.Source.Name)
	case size > limits.AgentMessage:
		return fmt.Errorf("message %q: %w: it has %d bytes of text, the limit is %d", plain.Name(m.ID), ErrFull, size, limits.AgentMessage)
	}
	for _, at := range m.Attachments() {
		if _, err := a.session.Attachment(at.Hash); err != nil {
			return err
		}
	}
	return nil
}

// claim takes messages from the inbox for a step: all that wait for a step, and
// with prompt one that waits for a turn.
func (a *Agent) claim(ctx context.Context, prompt bool) ([]message.Message, error) {
	a.mu.Lock()
	steering, prompts := a.session.Inbox(session.NextStep), a.session.Inbox(session.NextTurn)
	prompts = prompts[:min(len(prompts), 1)]
	if !prompt {
		prompts = nil
	}
	var splices []session.Payload
	if len(steering) > 0 {
		splices = append(splices, session.InboxSplice{Target: session.NextStep, RemovedCount: len(steering), Inserted: []message.Message{}})
	}
	if len(prompts) > 0 {
		splices = append(splices, session.InboxSplice{Target: session.NextTurn, RemovedCount: 1, Inserted: []message.Message{}})
	}
	var err error
	if len(splices) > 0 {
		_, err = a.session.Append(splices...)
	}
	a.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if len(steering) > 0 {
		InboxClaimed.Emit(ctx, a.g.c, a.inboxChange(session.NextStep, steering...), a.hearing())
	}
	if len(prompts) > 0 {
		InboxClaimed.Emit(ctx, a.g.c, a.inboxChange(session.NextTurn, prompts...), a.hearing())
	}
	return append(steering, prompts...), nil
}

// Cancel ends the turn or the maintenance that runs; it does nothing while the
// agent is idle. What waits in the inbox is dropped unless keepInbox is set. It
// returns at once: the turn ends when what it called has returned; each call that
// was not started gets a result that says so. The first cause counts.
func (a *Agent) Cancel(c Cause, keepInbox bool) {
	a.mu.Lock()
	if a.cancel == nil {
		a.mu.Unlock()
		return
	}
	var dropped []InboxChange
	if !keepInbox {
		dropped = a.drop()
	}
	a.ending, a.cancelled, a.keep, a.wake = true, true, keepInbox, false
	a.cancel(c)
	a.mu.Unlock()
	for _, d := range dropped {
		InboxDiscarded.Emit(a.c.Context(), a.g.c, d, a.hearing())
	}
}

// drop empties the inbox. The caller has the lock.
func (a *Agent) drop() []InboxChange {
	var dropped []InboxChange
	for _, target := range []session.Target{session.NextTurn, session.NextStep} {
		list := a.session.Inbox(target)
		if len(list) == 0 {
			continue
		}
		if _, err := a.session.Append(session.InboxSplice{Target: target, RemovedCount: len(list), Inserted: []message.Message{}, Outcome: "canceled"}); err != nil {
			continue // the log is closed or full: what waits stays
		}
		dropped = append(dropped, a.inboxChange(target, list...))
	}
	return dropped
}
