// Package repeat is a brake that only advises: it reminds a model that calls the
// same tool with the same arguments again and again.
//
// [Plugin] is for the plane of an agent. Before each step it reads from the log
// which tools were called in the turn. When the last calls are 3, 5 or 8 identical
// ones in a row, by name and by the raw text of the arguments, the step gets a
// message that says so, from the source {kind: plugin, name: [Name]}. Each of these
// counts is told of once in a row of calls; where several are passed in one step,
// one message tells the last. Calls of tools by other tools are not counted, and
// calls that did not succeed are.
//
// Everything is said on the agent's goroutine. Nothing is stopped or refused.
package repeat

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// Name is the plugin's name, and that of the source of its messages.
const Name = "repeat"

// counts are the lengths of a row of identical calls at which the model is reminded.
var counts = []int{3, 5, 8}

//go:embed repeat.md
var text string

// Plugin returns the plugin for the agent on whose context it is mounted. Anywhere
// else it fails.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{Name: Name, Apply: func(c *cordis.Context, _ any) error {
		w := &watch{scope: tool.ScopeOf(c)}
		if w.scope == nil {
			return errors.New("repeat belongs to one agent: mount it on the agent's context, with agent.Options.Plugins")
		}
		_, err := agent.PreStep.On(c, w.before)
		return err
	}}
}

// watch looks at one agent's calls, on that agent's goroutine.
type watch struct {
	scope *tool.Scope
	begun bool
	next  int64 // seq of the first event that was not looked at

	name string // of the last call
	args [sha256.Size]byte
	row  int // how many like it were in a row, up to it
	told int // at what count the model was reminded of this row
}

// before adds the reminder to a step.
func (w *watch) before(ctx context.Context, plan agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
	entry, err := next(ctx)
	if err != nil || entry.Kind != agent.Enter || plan.Agent.Scope() != w.scope {
		return entry, err
	}
	if err := w.look(plan.Agent.Session().Log); err != nil {
		return entry, err
	}
	count := 0
	for _, n := range counts {
		if w.told < n && n <= w.row {
			count = n
		}
	}
	if count == 0 {
		return entry, nil
	}
	w.told = count
	entry.Messages = append(slices.Clip(entry.Messages), reminder(w.name, w.row))
	return entry, nil
}

// look counts what was logged since it last did.
func (w *watch) look(log *session.Log) error {
	if !w.begun {
		w.begun, w.next = true, log.FirstLive()
	}
	events := log.Events(w.next)
	w.next += int64(len(events))
	for _, e := range events {
		switch e.Type {
		case session.TypeTurnStart:
			w.name, w.row, w.told = "", 0, 0
		case session.TypeCall:
			p, err := e.Payload()
			if err != nil {
				return err
			}
			w.count(p.(session.Call))
		}
	}
	return nil
}

func (w *watch) count(c session.Call) {
	args := sha256.Sum256([]byte(c.Arguments))
	if w.row == 0 || c.Name != w.name || args != w.args {
		w.name, w.args, w.row, w.told = c.Name, args, 0, 0
	}
	w.row++
}

func reminder(name string, count int) message.Message {
	said := strings.NewReplacer("{{tool}}", plain.Name(name), "{{count}}", strconv.Itoa(count)).Replace(strings.TrimSpace(text))
	return message.FromPlugin("repeat-"+rand.Text(), Name, message.Plain(said))
}
