package agent

import (
	"context"
	_ "embed" // the text around a message of a plugin
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// The codes of errors that plugins see.
const (
	CodeNoAgent     = "AGENTS_NO_AGENT"      // the plugin belongs to no agent
	CodeInvalidText = "AGENTS_INVALID_TEXT"  // an empty, or a too long one
	CodeTooMany     = "AGENTS_TOO_MANY"      // messages
	CodeInboxFull   = "AGENTS_INBOX_FULL"    // too much waits
	CodeAgentClosed = "AGENTS_CLOSED"        // the agent has gone
	codeAgentFailed = "AGENTS_NOT_DELIVERED" // the log did not take the message
)

// ForPlugins talks to your own agent: the one whose session you were mounted in.
// The model reads what you say as a message that begins with your name. You may say
// limits.AgentAsks things in one turn and as many between two turns, and all plugins
// of the agent together limits.AgentAsksAll until the person speaks again; beyond that
// AGENTS_TOO_MANY is thrown, so that a plugin cannot keep an agent working for ever. Outside of a session
// everything throws AGENTS_NO_AGENT.
type ForPlugins interface {
	// Followup adds a prompt: when the agent is idle it begins a turn with it, else
	// the prompt waits until the turn that runs has ended. It returns when the prompt
	// waits, not when the turn has ended. AGENTS_INVALID_TEXT, AGENTS_INBOX_FULL,
	// AGENTS_TOO_MANY.
	//
	//   - text: what to do, at most limits.AgentAskText characters.
	Followup(ctx context.Context, text string) error
	// Steer adds a message to the next step of the turn that runs, which goes on for
	// it; when the agent is idle it begins a turn. Codes as with followup.
	//
	//   - text: what to change or to consider, at most limits.AgentAskText characters.
	Steer(ctx context.Context, text string) error
	// Inject adds a message to the next step, of this turn or of a later one, and
	// begins no turn: for what the model should know and need not act on. Codes as
	// with followup.
	//
	//   - text: what to know, at most limits.AgentAskText characters.
	Inject(ctx context.Context, text string) error
}

//go:embed pluginmessage.md
var pluginMessage string

// forPlugins is the interface of one plugin.
type forPlugins struct {
	g *Agents
	c *cordis.Context
}

var _ ForPlugins = (*forPlugins)(nil)

func agentsForPlugins(g *Agents, c *cordis.Context) ForPlugins { return &forPlugins{g, c} }

// Followup implements ForPlugins.
func (p *forPlugins) Followup(ctx context.Context, text string) error {
	return p.say(ctx, text, session.NextTurn, true)
}

// Steer implements ForPlugins.
func (p *forPlugins) Steer(ctx context.Context, text string) error {
	return p.say(ctx, text, session.NextStep, true)
}

// Inject implements ForPlugins.
func (p *forPlugins) Inject(ctx context.Context, text string) error {
	return p.say(ctx, text, session.NextStep, false)
}

func (p *forPlugins) say(ctx context.Context, text string, target session.Target, wake bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	a, err := ownAgent(p.g, p.c, "agents")
	if err != nil {
		return err
	}
	if n := utf8.RuneCountInString(text); strings.TrimSpace(text) == "" || n > limits.AgentAskText {
		return &service.Error{Code: CodeInvalidText, Message: fmt.Sprintf(
			"a message for the agent has 1 to %d characters, this one has %d; say it shorter, or write it to a file and name that", limits.AgentAskText, n)}
	}
	who := ownerOf(p.c)
	back, err := a.asks.message(a.session, who)
	if err != nil {
		return err
	}
	said := strings.NewReplacer("{{who}}", who.title, "{{text}}", text).Replace(strings.TrimSpace(pluginMessage))
	if err := a.Send(message.FromPlugin(newID(), who.name, message.Plain(said)), target, wake); err != nil {
		back()
		return sendError(err)
	}
	return nil
}

func sendError(err error) error {
	e := &service.Error{Code: codeAgentFailed, Message: plain.Cut("the message was not delivered: "+err.Error(), limits.ErrorText), Err: err}
	switch {
	case errors.Is(err, ErrFull):
		e.Code, e.Message = CodeInboxFull, "too many messages wait for the agent; send it no more until it has read them"
	case errors.Is(err, ErrClosed), errors.Is(err, session.ErrClosed):
		e.Code, e.Message = CodeAgentClosed, "the agent has ended; nobody reads messages any more"
	}
	return e
}

// ownAgent returns the agent that a plugin belongs to, by the scope of the context
// that it was mounted on.
func ownAgent(g *Agents, c *cordis.Context, name string) (*Agent, error) {
	if g == nil {
		g, _ = Service.Get(c)
	}
	if g != nil {
		if a, ok := g.Of(tool.ScopeOf(c)); ok {
			return a, nil
		}
	}
	return nil, &service.Error{Code: CodeNoAgent, Message: "ctx." + name + " is for plugins that an agent has mounted in its session, and this plugin belongs to none: " +
		"mount it with cordis_mount from within a session (dsh run --self), or do without ctx." + name}
}

// An owner is a plugin as logs and messages name it.
type owner struct {
	name  string // dyn-1, or the plugin's name
	title string // temporary Plugin dyn-1 (watcher)
}

func ownerOf(c *cordis.Context) owner {
	if m, ok := tool.MountOf(c); ok {
		return owner{m.ID, m.Who()}
	}
	name := plain.Name(c.Fiber().Name())
	return owner{name, "plugin " + name}
}

// asks counts what plugins ask of one agent. The zero value is ready.
type asks struct {
	mu     sync.Mutex // guards what follows; a leaf but for the log's
	seen   int64      // the seq of the first event that was not looked at; 0: none was
	when   session.Turn
	inTurn map[string]int // messages of each plugin since when
	all    int            // of all since the person last spoke

	models map[string]*modelAsks
}

// message counts a message, or refuses it. The function takes it back.
func (k *asks) message(s *session.Session, who owner) (back func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := s.Turn()
	now = session.Turn{Turn: now.Turn, TurnOpen: now.TurnOpen}
	if k.inTurn == nil || now != k.when {
		k.when, k.inTurn = now, map[string]int{}
	}
	k.listen(s)
	if k.inTurn[who.name] >= limits.AgentAsks {
		return nil, &service.Error{Code: CodeTooMany, Message: fmt.Sprintf(
			"this plugin has sent its agent %d messages in this turn, which is the limit; wait until the turn has ended, and say more in one message", limits.AgentAsks)}
	}
	if k.all >= limits.AgentAsksAll {
		return nil, &service.Error{Code: CodeTooMany, Message: fmt.Sprintf(
			"the plugins of this agent have sent it %d messages since the person last spoke, which is the limit; it is the person's turn now", limits.AgentAsksAll)}
	}
	k.inTurn[who.name]++
	k.all++
	counted := k.inTurn
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		counted[who.name]--
		k.all = max(k.all-1, 0)
	}, nil
}

// listen looks for what the person said since the last call.
func (k *asks) listen(s *session.Session) {
	if k.seen == 0 {
		k.seen = s.Len()
		return
	}
	for _, e := range s.Events(k.seen) {
		k.seen = e.Seq + 1
		if e.Type != session.TypeInbox {
			continue
		}
		p, _ := e.Payload()
		splice, _ := p.(session.InboxSplice)
		for _, m := range splice.Inserted {
			if m.Source.Kind != message.SourcePlugin {
				k.all = 0
			}
		}
	}
}

// modelAsks bounds what one plugin asks of the model.
type modelAsks struct {
	running int
	tokens  float64 // of the rate: one for each request
	last    time.Time
}

// model admits a one-shot request. The function ends it.
func (k *asks) model(who owner, now time.Time) (done func(), err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.models[who.name]
	if m == nil {
		if k.models == nil {
			k.models = map[string]*modelAsks{}
		}
		for name, other := range k.models { // plugins come and go
			if other.running == 0 && now.Sub(other.last) > time.Minute {
				delete(k.models, name)
			}
		}
		m = &modelAsks{tokens: limits.ModelAskRate, last: now}
		k.models[who.name] = m
	}
	m.tokens = min(limits.ModelAskRate, m.tokens+now.Sub(m.last).Minutes()*limits.ModelAskRate)
	m.last = now
	switch {
	case m.running >= limits.ModelAsks:
		return nil, &service.Error{Code: CodeBusy, Message: fmt.Sprintf("%d requests of this plugin to the model are under way, which is the limit; await one of them first", m.running)}
	case m.tokens < 1:
		return nil, &service.Error{Code: CodeTooFast, Message: fmt.Sprintf("a plugin may ask the model %d times a minute; wait some seconds, or ask for more at once", limits.ModelAskRate)}
	}
	m.tokens--
	m.running++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		m.running--
	}, nil
}
