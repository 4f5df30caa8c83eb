package agent

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// CodeInvalidPage is the code of the error for options that make no sense.
const CodeInvalidPage = "SESSIONS_INVALID_OPTIONS"

// SessionForPlugins reads your own session: the one that you were mounted in. There
// is no way to others, and nothing can be changed. Outside of a session everything
// throws AGENTS_NO_AGENT.
type SessionForPlugins interface {
	// Info gives what is known of the session now.
	Info(ctx context.Context) (SessionInfo, error)
	// Messages gives the conversation as the model sees it now: what was compacted is
	// there as its summary. Without options it gives the last limits.SessionPageIf messages.
	// SESSIONS_INVALID_OPTIONS.
	//
	//   - options: which messages.
	Messages(ctx context.Context, options *MessagesOptions) (MessagePage, error)
	// Events gives the log of the session: everything that happened, in its order.
	// Call it again with from: next until done. SESSIONS_INVALID_OPTIONS.
	//
	//   - options: which events; all from the beginning by default, limits.SessionPageIf at a time.
	Events(ctx context.Context, options *EventsOptions) (EventPage, error)
}

// SessionInfo tells of a session.
type SessionInfo struct {
	// ID is the session's id.
	ID string `json:"id"`
	// Title is its title; "" if it has none yet.
	Title string `json:"title"`
	// Cwd is its working directory.
	Cwd string `json:"cwd"`
	// CreatedAt is when it began, in Unix milliseconds.
	CreatedAt int64 `json:"createdAt"`
	// ParentSession is the id of the session that this one was forked from.
	ParentSession string `json:"parentSession,omitempty"`
	// Provider is the provider of the model that is asked.
	Provider string `json:"provider"`
	// Model is the model that is asked.
	Model string `json:"model"`
	// ContextWindow is how many tokens a request may have; absent where not known.
	ContextWindow int64 `json:"contextWindow,omitempty"`
	// Turns is the number of turns so far, the one that runs included.
	Turns int `json:"turns"`
	// Running tells whether a turn runs.
	Running bool `json:"running"`
	// Messages is the number of messages that the model sees.
	Messages int `json:"messages"`
	// Events is the number of events in the log.
	Events int64 `json:"events"`
	// Usage is what all requests took so far, those of plugins too.
	Usage TokenUsage `json:"usage"`
}

// MessagesOptions say which messages.
type MessagesOptions struct {
	// From is the index of the first one, counted from the end if it is negative. The
	// default is the last ones.
	From *int `json:"from,omitempty"`
	// Limit is the most messages, 1 to limits.SessionPage; the default is limits.SessionPageIf.
	Limit int `json:"limit,omitempty"`
}

// MessagePage is a part of the conversation.
type MessagePage struct {
	// Messages are the messages in their order.
	Messages []SessionMessage `json:"messages"`
	// From is the index of the first of them.
	From int `json:"from"`
	// Total is how many messages the conversation has.
	Total int `json:"total"`
}

// SessionMessage is one message of the conversation.
type SessionMessage struct {
	// Seq is the event that it is from.
	Seq int64 `json:"seq"`
	// Role is user or assistant; results of tools are of the user.
	Role string `json:"role"`
	// Source says who made it: user, model, tool or plugin.
	Source string `json:"source"`
	// Plugin is the name of the plugin that made it.
	Plugin string `json:"plugin,omitempty"`
	// Text is what it says, without the model's thinking; of a result what the model
	// read. At most limits.SessionPageText characters.
	Text string `json:"text"`
	// Truncated tells that text was cut.
	Truncated bool `json:"truncated,omitempty"`
	// Calls are the tool calls of an answer.
	Calls []SessionCall `json:"calls,omitempty"`
	// CallID is the id of the call that a result answers.
	CallID string `json:"callId,omitempty"`
	// IsError tells that a result is an error.
	IsError bool `json:"isError,omitempty"`
}

// SessionCall is a tool call of the model.
type SessionCall struct {
	// ID names it; the result has the same.
	ID string `json:"id"`
	// Name is the tool's.
	Name string `json:"name"`
	// Arguments is the JSON text that the model wrote, at most limits.SessionPageText characters.
	Arguments string `json:"arguments"`
}

// EventsOptions say which events.
type EventsOptions struct {
	// From is the seq of the first one, counted from the end if it is negative. The
	// default is 0, the beginning.
	From int64 `json:"from,omitempty"`
	// Limit is the most events, 1 to limits.SessionPage; the default is limits.SessionPageIf. A page may have fewer:
	// it has at most 1 MiB.
	Limit int `json:"limit,omitempty"`
	// Types are those to give, such as tool/call and turn/end. By default it is all
	// but assistant/chunk, the pieces of answers.
	Types []string `json:"types,omitempty"`
}

// EventPage is a part of the log.
type EventPage struct {
	// Events are the events in their order.
	Events []SessionEvent `json:"events"`
	// Next is where to go on, as from.
	Next int64 `json:"next"`
	// Done tells that the log had no more.
	Done bool `json:"done"`
}

// SessionEvent is one event of the log.
type SessionEvent struct {
	// Seq is its place in the log, from 0.
	Seq int64 `json:"seq"`
	// Type says what happened, such as turn/start.
	Type string `json:"type"`
	// Time is when, in Unix milliseconds.
	Time int64 `json:"time"`
	// Data is what it tells, an object. Absent if it is larger than 256 KiB, or has
	// an integer beyond 2^53.
	Data lossless.Text `json:"data,omitempty"`
}

// sessionOf is the interface of one plugin.
type sessionOf struct{ c *cordis.Context }

var _ SessionForPlugins = (*sessionOf)(nil)

// sessionsForPlugins binds nothing of the store: a plugin's own session is that of
// its agent.
func sessionsForPlugins(_ session.Store, c *cordis.Context) SessionForPlugins { return &sessionOf{c} }

// begin gives the agent for one call.
func (p *sessionOf) begin(ctx context.Context) (*Agent, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return ownAgent(nil, p.c, "sessions")
}

// Info implements SessionForPlugins.
func (p *sessionOf) Info(ctx context.Context) (SessionInfo, error) {
	a, err := p.begin(ctx)
	if err != nil {
		return SessionInfo{}, err
	}
	s := a.session
	meta, turn, where := s.Meta(), s.Turn(), s.Context()
	if where.Provider == "" {
		where = session.RequestContext{Provider: a.Model().Provider, Model: a.Model().Model}
	}
	return SessionInfo{
		ID: meta.ID, Title: s.Title(), Cwd: meta.Cwd, CreatedAt: meta.CreatedAt, ParentSession: meta.ParentSession,
		Provider: where.Provider, Model: where.Model, ContextWindow: where.ContextWindow,
		Turns: turn.Turn, Running: turn.TurnOpen, Messages: len(s.Surface()), Events: s.Len(), Usage: tokenUsage(a.Usage()),
	}, nil
}

// limit reads the limit of a page.
func limit(n int) (int, error) {
	if n < 0 || n > limits.SessionPage {
		return 0, &service.Error{Code: CodeInvalidPage, Message: fmt.Sprintf("limit is %d; it is 1 to %d", n, limits.SessionPage)}
	}
	if n == 0 {
		n = limits.SessionPageIf
	}
	return n, nil
}

// Messages implements SessionForPlugins.
func (p *sessionOf) Messages(ctx context.Context, o *MessagesOptions) (MessagePage, error) {
	a, err := p.begin(ctx)
	if err != nil {
		return MessagePage{}, err
	}
	if o == nil {
		o = &MessagesOptions{}
	}
	most, err := limit(o.Limit)
	if err != nil {
		return MessagePage{}, err
	}
	nodes := a.session.Surface()
	from := len(nodes) - most
	if o.From != nil {
		if from = *o.From; from < 0 {
			from += len(nodes)
		}
	}
	from = min(max(from, 0), len(nodes))
	page := MessagePage{Messages: []SessionMessage{}, From: from, Total: len(nodes)}
	size := 0
	for _, n := range nodes[from:min(from+most, len(nodes))] {
		m := sessionMessage(n)
		if size += len(m.Text) + 200; size > limits.SessionPageBytes && len(page.Messages) > 0 {
			break
		}
		for _, c := range m.Calls {
			size += len(c.Arguments)
		}
		page.Messages = append(page.Messages, m)
	}
	return page, nil
}

func sessionMessage(n session.Node) SessionMessage {
	m := n.Message
	out := SessionMessage{Seq: n.Seq, Role: string(m.Role), Source: m.Source.Kind}
	if m.Source.Kind == message.SourcePlugin {
		out.Plugin = m.Source.Name
	}
	blocks := m.Content
	if n.Type == session.TypeResult {
		out.CallID, out.IsError = blocks[0].CallID, blocks[0].IsError
		blocks = blocks[0].Content
	}
	out.Text, out.Truncated = cutText(message.JoinText(blocks))
	for _, b := range m.Calls() {
		args, cut := cutText(string(b.Arguments))
		out.Truncated = out.Truncated || cut
		out.Calls = append(out.Calls, SessionCall{b.ID, b.Name, args})
	}
	return out
}

// cutText bounds a text.
func cutText(s string) (text string, cut bool) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	n := 0
	for at := range s {
		if n == limits.SessionPageText {
			return s[:at], true
		}
		n++
	}
	return s, false
}

// Events implements SessionForPlugins.
func (p *sessionOf) Events(ctx context.Context, o *EventsOptions) (EventPage, error) {
	a, err := p.begin(ctx)
	if err != nil {
		return EventPage{}, err
	}
	if o == nil {
		o = &EventsOptions{}
	}
	most, err := limit(o.Limit)
	if err != nil {
		return EventPage{}, err
	}
	from := o.From
	if from < 0 {
		from += a.session.Len()
	}
	page := EventPage{Events: []SessionEvent{}, Next: max(from, 0), Done: true}
	size := 0
	for _, e := range a.session.Events(page.Next) {
		if wanted(o.Types, string(e.Type)) {
			data := eventData(e)
			if size += len(data) + 100; len(page.Events) == most || size > limits.SessionPageBytes {
				page.Done = false
				break
			}
			page.Events = append(page.Events, SessionEvent{e.Seq, string(e.Type), e.Time, data})
		}
		page.Next = e.Seq + 1
	}
	return page, nil
}

func wanted(types []string, kind string) bool {
	if len(types) == 0 {
		return kind != string(session.TypeChunk)
	}
	return slices.Contains(types, kind)
}

// eventData gives an event's data, nothing if it cannot cross to a plugin.
func eventData(e session.Event) lossless.Text {
	data := e.Data()
	if len(data) > limits.SessionPageEvent {
		return nil
	}
	v, err := lossless.Parse([]byte(data))
	if err != nil || lossless.CheckNumbers("data", v) != nil {
		return nil
	}
	return lossless.Text(data)
}
