package compact

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// Name is the plugin's name, and that of the source of summaries.
const Name = "compact"

// ErrNothing says that there is nothing to compact, or nothing that is worth it.
var ErrNothing = errors.New("there is nothing to compact")

// Plugin returns the plugin that compacts the conversation of the agent on whose
// context it is mounted. Anywhere else it fails.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{Name: Name, Apply: func(c *cordis.Context, _ any) error {
		p := &plugin{c: c, scope: tool.ScopeOf(c)}
		if p.scope == nil {
			return errors.New("compact belongs to one agent: mount it on the agent's context, with agent.Options.Plugins")
		}
		if _, err := agent.PreStep.On(c, p.before); err != nil {
			return err
		}
		_, err := agent.RequestFailed.On(c, p.failed, cordis.Prepend())
		return err
	}}
}

// plugin compacts one agent's conversation, on that agent's goroutine.
type plugin struct {
	c     *cordis.Context
	scope *tool.Scope
	meter meter
	again int64 // tokens from which on it is tried again before a step

	from       int64 // the messages of the open step are behind this seq
	turn, step int   // of the request that was too large
	stage      int   // what was tried for it
}

// before looks, before a step, whether the window is full.
func (p *plugin) before(ctx context.Context, plan agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
	entry, err := next(ctx)
	if err != nil || entry.Kind != agent.Enter || plan.Agent.Scope() != p.scope {
		return entry, err
	}
	k := newCompactor(plan.Agent)
	defer func() { p.from = k.s.Len() }()
	if k.room.window == 0 || plan.Step == 1 && len(entry.Messages) == 0 { // there will be no request
		return entry, nil
	}
	var adds int64
	for _, m := range entry.Messages {
		adds += tokensOf(m)
	}
	tokens := p.meter.tokens(k.s.Log) + adds
	if tokens < k.room.full || tokens < p.again {
		return entry, nil
	}
	p.meter.calibrate(k.s.Log)
	if err := p.relieve(ctx, k, tokens); err != nil && !errors.Is(err, ErrNothing) {
		if ctx.Err() != nil {
			return entry, ctx.Err()
		}
		p.c.Logger().Warn("the conversation could not be compacted", "session", plan.Session, "error", err)
	}
	p.again = p.meter.tokens(k.s.Log) + adds + k.room.window/20
	return entry, nil
}

// relieve prunes, and if that is not enough summarises.
func (p *plugin) relieve(ctx context.Context, k *compactor, tokens int64) error {
	target := k.room.full * 3 / 4
	_, freed, err := k.prune(tokens - target)
	if err != nil || tokens-freed <= target {
		return err
	}
	nodes := k.s.Surface()
	_, err = k.summarise(ctx, "full", cut(nodes, len(nodes), keep(k.room.full), k.room.full/2), k.room.window/20)
	return err
}

// keep is how many tokens at the end stay as they are, of a request that may have
// so many.
func keep(full int64) int64 { return min(limits.CompactKeep, full/4) }

// failed makes a request smaller that was too large.
func (p *plugin) failed(ctx context.Context, e agent.RequestError, next func(context.Context) (agent.Recovery, error)) (agent.Recovery, error) {
	if e.Failure.Code != llm.CodeContextWindow || e.Agent.Scope() != p.scope {
		return next(ctx)
	}
	if e.Turn != p.turn || e.Step != p.step {
		p.turn, p.step, p.stage = e.Turn, e.Step, 0
	}
	k := newCompactor(e.Agent)
	size := p.meter.tokens(k.s.Log)
	target := size * 2 / 3
	if k.room.window > 0 {
		target = min(target, k.room.full*3/4)
	}
	p.meter.calibrate(k.s.Log)
	var why error
	for p.stage < 3 {
		p.stage++
		smaller, err := p.shrink(ctx, k, size, target)
		if smaller {
			return agent.Recovery{Kind: agent.Retry, Policy: Name}, nil
		}
		if ctx.Err() != nil {
			return agent.Recovery{}, ctx.Err()
		}
		why = errors.Join(why, err)
	}
	return agent.Recovery{}, tooLarge(e, size, why)
}

// shrink does what is next against a request that was too large, and says whether
// that made it smaller by enough to try it again.
func (p *plugin) shrink(ctx context.Context, k *compactor, size, target int64) (bool, error) {
	if p.stage == 1 {
		_, freed, err := k.prune(size - target)
		return freed >= size-target && freed > 0, err
	}
	nodes := k.s.Surface()
	tail, step := keep(target), target/2
	if p.stage == 3 {
		tail, step = 0, 0
	}
	told, knows := k.s.LastNode(isSnapshot)
	replaced, err := k.summarise(ctx, "full", cut(nodes, position(nodes, p.from), tail, step), 0)
	if err == nil && knows {
		err = k.tellAgain(told)
	}
	return replaced > 0, err
}

// isSnapshot says that a node tells the runtime context. The loop tells it again
// before the next step when it has gone, but not within one.
func isSnapshot(n session.Node) bool { return agent.IsSnapshot(n.Message) }

// tellAgain puts the runtime context back if the model cannot see it any more.
func (k *compactor) tellAgain(told session.Node) error {
	if _, there := k.s.LastNode(isSnapshot); there {
		return nil
	}
	told.Message.ID = k.id()
	_, err := k.s.Append(session.UserMessage{Message: told.Message})
	return err
}

// tooLarge is the error of a turn whose request fits in no way.
func tooLarge(e agent.RequestError, size int64, why error) error {
	text := fmt.Sprintf("the request (about %d tokens) does not fit into the context window of %s/%s, and compacting the conversation did not help",
		size, e.Config.Provider, e.Config.Model)
	if why != nil && !errors.Is(why, ErrNothing) {
		text += ": " + llm.AsFailure(why, llm.CodeInternal).Message
	}
	text += ". Ask for less at a time (a shorter message, smaller parts of files), take a model with a larger window, or begin a new session. The provider said: " + e.Failure.Message
	f := llm.Fail(e.Failure.Code, "%s", text)
	f.Status, f.RequestID = e.Failure.Status, e.Failure.RequestID
	return f
}

// newCompactor gives the compactor of an agent's conversation, with the room that
// the model of the last request has.
func newCompactor(a *agent.Agent) *compactor {
	s := a.Session()
	var answer int64
	if h, ok := s.Header(); ok {
		v, _ := h.Config.Get("maxTokens")
		answer, _ = v.Int64()
	}
	return &compactor{s: s, ask: a.Ask, room: roomIn(s.Context().ContextWindow, answer)}
}

// A Report says what a compaction did.
type Report struct {
	Pruned   int // results that were cut
	Replaced int // messages that a summary replaced
	// Before and After are estimates of what a request takes, in tokens.
	Before, After int64
}

// Now compacts the conversation of an agent that is idle, whatever its size: all big
// results are pruned, and all but the end of the conversation is summarised. It
// returns ErrNothing if neither changes anything. While a turn runs it waits, as
// agent.Agent.Maintain does. After another error the report says what was done.
func Now(ctx context.Context, a *agent.Agent) (Report, error) {
	var r Report
	err := a.Maintain(ctx, func(ctx context.Context) (err error) {
		k := newCompactor(a)
		r.Before = estimate(k.s.Log)
		defer func() { r.After = estimate(k.s.Log) }()
		if r.Pruned, _, err = k.prune(math.MaxInt64); err != nil {
			return err
		}
		nodes := k.s.Surface()
		tail := keep(nodesTokens(nodes))
		r.Replaced, err = k.summarise(ctx, "asked", cut(nodes, len(nodes), tail, tail), 0)
		if r.Pruned > 0 && errors.Is(err, ErrNothing) {
			return nil
		}
		return err
	})
	return r, err
}
