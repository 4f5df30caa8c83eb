// Package notice tells the model what happened to its temporary plugins without its
// doing: a plugin for the plane of an agent that has the toolset of package selfmod.
//
// # What is told
//
//   - In a session that goes on: which plugins were mounted before and not
//     unmounted. They ended with the agent of that time, which may have been in
//     another process.
//   - Which plugins ended because the toolset was reloaded, reconfigured or disabled
//     while the agent goes on.
//   - Which plugins run again with empty state, because their machine, or the worker
//     process of all of them, was replaced; and which have stopped for good.
//
// A notice is a message of the next step that has any others, or that is not the
// first of its turn; so it begins no turn. It stands before the prompt and is never
// a part of the prefix. Its source is {kind: plugin, name: [Name]}. What is not in the
// log after the step began is told again.
//
// # What is logged
//
// Each mount and unmount is an event of the session, selfmod/mounted and
// selfmod/unmounted, with the id and the plugin's name. What is gone is what these
// leave over, up to the last message that told it; so it is told once, also where the
// process ended before anything else happened.
//
// # Concurrency
//
// Listeners run where the events come from; nothing is started, and no lock is held
// while something is logged.
package notice

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// Name is the plugin's name, and that of the source of its messages.
const Name = "selfmod-notice"

// The types of what is logged.
const (
	TypeMounted   session.Type = "selfmod/mounted"
	TypeUnmounted session.Type = "selfmod/unmounted"
)

// kind is what a notice tells, and how the ids of its messages begin.
type kind string

const (
	gone    kind = "gone"
	ended   kind = "ended"
	reset   kind = "reset"
	stopped kind = "stopped"
)

// What models read.
var (
	//go:embed gone.md
	goneText string
	//go:embed ended.md
	endedText string
	//go:embed reset.md
	resetText string
	//go:embed stopped.md
	stoppedText string

	texts = []struct {
		kind kind
		text string
	}{{gone, goneText}, {ended, endedText}, {reset, resetText}, {stopped, stoppedText}}
)

// named is how many plugins a notice names.
const named = 20

// Plugin returns the plugin for the agent on whose context it is mounted, beside
// the toolset. Anywhere else it fails.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{Name: Name, Apply: func(c *cordis.Context, _ any) error {
		n := &notices{c: c, scope: tool.ScopeOf(c), waiting: map[kind][]plugin{}}
		if n.scope == nil {
			return errors.New("selfmod-notice belongs to one agent: mount it on the agent's context, with agent.Options.Plugins")
		}
		_, err := agent.SessionStarted.On(c, n.started)
		if err == nil {
			_, err = mount.Happened.On(c, n.happened)
		}
		if err == nil {
			_, err = agent.PreStep.On(c, n.before)
		}
		return err
	}}
}

// plugin is a temporary plugin.
type plugin struct{ id, name string }

// sent is a message that was given to a step.
type sent struct {
	id      string
	kind    kind
	plugins []plugin
}

// notices are those of one agent.
type notices struct {
	c     *cordis.Context
	scope *tool.Scope

	mu      sync.Mutex
	session *session.Session // nil: it has not begun
	waiting map[kind][]plugin
	sent    []sent // not seen in the log yet
}

// started looks for what is gone.
func (n *notices) started(_ context.Context, e agent.SessionStart) {
	if e.Agent.Scope() != n.scope {
		return
	}
	lost, err := leftOver(e.Agent.Session().Events(0))
	if err != nil {
		n.c.Logger().Warn("what was mounted before could not be read from the session", "session", e.Session, "error", err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.session = e.Agent.Session()
	n.waiting[gone] = lost
}

// leftOver gives what was mounted, not unmounted, and not told to be gone.
func leftOver(events []session.Event) ([]plugin, error) {
	var left []plugin
	for _, e := range events {
		if e.Type != TypeMounted && e.Type != TypeUnmounted && e.Type != session.TypeUser {
			continue
		}
		payload, err := e.Payload()
		if err != nil {
			return left, err
		}
		switch p := payload.(type) {
		case session.UserMessage:
			if ours(p.Message) && strings.HasPrefix(p.Message.ID, string(gone)+"-") {
				left = nil
			}
		case session.Raw:
			at := read(p.Data)
			left = slices.DeleteFunc(left, func(x plugin) bool { return x.id == at.id && e.Type == TypeUnmounted })
			if e.Type == TypeMounted {
				left = append(left, at)
			}
		}
	}
	return left, nil
}

func ours(m message.Message) bool {
	return m.Source.Kind == message.SourcePlugin && m.Source.Name == Name
}

// read and data are the payload of what is logged.
func read(v lossless.Value) plugin {
	text := func(key string) string {
		member, _ := v.Get(key)
		if member.Kind() != lossless.String {
			return ""
		}
		return member.Str()
	}
	return plugin{text("id"), text("plugin")}
}

func (p plugin) data() lossless.Value {
	return lossless.Obj(lossless.M("id", lossless.Str(p.id)), lossless.M("plugin", lossless.Str(p.name)))
}

// happened logs what comes and goes, and keeps what is to be told.
func (n *notices) happened(_ context.Context, c mount.Change) {
	if c.Scope != n.scope || c.File || c.Kind == mount.Ended && n.ending() {
		return
	}
	p := plugin{c.ID, c.Plugin}
	n.mu.Lock()
	to := n.session
	for k, all := range n.waiting { // of one plugin the last counts
		if k != gone {
			n.waiting[k] = slices.DeleteFunc(all, func(x plugin) bool { return x.id == p.id })
		}
	}
	switch c.Kind {
	case mount.Reset:
		n.waiting[reset] = append(n.waiting[reset], p)
	case mount.Stopped:
		n.waiting[stopped] = append(n.waiting[stopped], p)
	case mount.Ended:
		n.waiting[ended] = append(n.waiting[ended], p)
	}
	n.mu.Unlock()
	types := map[mount.ChangeKind]session.Type{mount.Came: TypeMounted, mount.Went: TypeUnmounted, mount.Ended: TypeUnmounted}
	if as, ok := types[c.Kind]; ok && to != nil {
		if _, err := to.Append(session.Raw{Type: as, Data: p.data()}); err != nil && !errors.Is(err, session.ErrClosed) {
			n.c.Logger().Warn("a change of temporary plugins could not be logged", "plugin", p.id, "error", err)
		}
	}
}

// ending says whether the agent itself ends: what ends with it is told when its
// session goes on.
func (n *notices) ending() bool {
	for f := n.c.Fiber(); f != nil; f = f.Parent() {
		if f.State() != cordis.Active {
			return true
		}
	}
	return false
}

// before adds the notices to a step.
func (n *notices) before(ctx context.Context, plan agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
	entry, err := next(ctx)
	if err != nil || entry.Kind != agent.Enter || plan.Agent.Scope() != n.scope || plan.Step == 1 && len(entry.Messages) == 0 {
		return entry, err
	}
	entry.Messages = slices.Concat(n.take(plan.Agent.Session()), entry.Messages)
	return entry, nil
}

// take makes messages of what is to be told, and of what was not logged although it
// was given to a step.
func (n *notices) take(s *session.Session) []message.Message {
	n.mu.Lock()
	before := n.sent
	n.mu.Unlock()
	before = slices.DeleteFunc(slices.Clone(before), func(x sent) bool {
		_, logged := s.LastNode(func(node session.Node) bool { return node.Message.ID == x.id })
		return logged
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent = nil
	var out []message.Message
	for _, t := range texts {
		var all []plugin
		for _, x := range before {
			if x.kind == t.kind {
				all = append(all, x.plugins...)
			}
		}
		all = append(all, n.waiting[t.kind]...)
		delete(n.waiting, t.kind)
		if len(all) == 0 {
			continue
		}
		m := message.Message{
			ID: string(t.kind) + "-" + rand.Text(), Role: message.User,
			Source:  message.Source{Kind: message.SourcePlugin, Name: Name},
			Content: []message.Block{message.Plain(strings.ReplaceAll(strings.TrimSpace(t.text), "{{plugins}}", list(all)))},
		}
		n.sent = append(n.sent, sent{m.ID, t.kind, all})
		out = append(out, m)
	}
	return out
}

// list names plugins, each once.
func list(all []plugin) string {
	var names []string
	for _, p := range all {
		if name := fmt.Sprintf("%s (%s)", plain.Name(p.id), plain.Name(p.name)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if more := len(names) - named; more > 0 {
		names = append(names[:named], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
