package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// Columns is how wide the transcript is at most.
const Columns = 100

// timeLimit is for the whole, on a machine that is busy. It takes about a second.
const timeLimit = 30 * time.Second

// readmeName is the file that the plugins of the demonstration read.
const readmeName = "README.md"

// Furnish writes what the demonstration works on into a folder, which is to be
// the root of fs.
func Furnish(dir string) error {
	if err := os.WriteFile(filepath.Join(dir, readmeName), []byte(readme), 0o600); err != nil {
		return fmt.Errorf("furnish the demonstration: %w", err)
	}
	return nil
}

// Play gives the agent its task and writes the transcript of what it does to out,
// until its turn has ended. The agent has [Model] as its model, no tools but the
// toolset with [VMTimeout], and the service fs over a folder that was furnished.
// The error is the first answer that was not what the script announces; the turn
// is cancelled then.
func Play(ctx context.Context, out io.Writer, a *agent.Agent) error {
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	p := &player{out: newPrinter(out), acts: announced()}
	started, from := time.Now(), a.Session().Len()
	if err := a.Followup(task); err != nil {
		return fmt.Errorf("ask agent: %w", err)
	}
	err := p.follow(ctx, a, from)
	if err != nil {
		a.Cancel(agent.Cause{Kind: agent.CauseHook, Text: "the demonstration failed"}, false)
	}
	end, stop := context.WithTimeout(context.WithoutCancel(ctx), limits.Shutdown)
	defer stop()
	if idle := a.WhenIdle(end); err == nil {
		err = idle
	}
	if err != nil {
		return err
	}
	p.out.line("")
	p.out.text("", fmt.Sprintf("%d answers, each checked, in %.1f s.", p.answers, time.Since(started).Seconds()))
	return p.out.err
}

// scene is an act in its place.
type scene struct {
	act
	title string // of the part that begins with it; "": none
	part  string
}

func announced() []scene {
	var all []scene
	for i, p := range parts {
		name := fmt.Sprintf("%d. %s", i+1, p.title)
		for j, a := range p.acts {
			s := scene{act: a, part: name}
			if j == 0 {
				s.title = name
			}
			all = append(all, s)
		}
	}
	return append(all, scene{act: act{say: farewell}, part: "the end"})
}

// player follows one turn.
type player struct {
	out     *printer
	acts    []scene  // those that are still to come; the first is the running one
	due     []call   // of the running act, whose results are still to come
	offers  []string // what the next request has to offer; nil: anything
	tools   []string
	answers int
}

// follow shows the events of the log until the turn ends.
func (p *player) follow(ctx context.Context, a *agent.Agent, from int64) error {
	for e := range a.Session().Follow(ctx, from) {
		payload, err := e.Payload()
		if err != nil {
			return err
		}
		done, err := p.show(payload)
		if done || err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for the agent: %w", err)
	}
	return errors.New("the agent ended before its turn did")
}

func (p *player) show(payload session.Payload) (done bool, err error) {
	switch e := payload.(type) {
	case session.UserMessage:
		if e.Message.Source.Kind == message.SourceUser {
			p.out.text("", e.Message.Text())
		}
	case session.RequestHeader:
		return false, p.offer(e.Header.Tools)
	case session.AssistantMessage:
		return false, p.say(e.Message)
	case session.Result:
		return false, p.answer(e)
	case session.TurnEnd:
		return true, p.end(e.Reason)
	}
	return false, nil
}

// offer shows how the tools of the next request differ from those before.
func (p *player) offer(tools []message.Tool) error {
	names := make([]string, len(tools))
	var changes []string
	for i, t := range tools {
		names[i] = t.Name
		if p.tools != nil && !slices.Contains(p.tools, t.Name) {
			changes = append(changes, "+"+t.Name)
		}
	}
	for _, n := range p.tools {
		if !slices.Contains(names, n) {
			changes = append(changes, "-"+n)
		}
	}
	p.tools = names
	if len(changes) > 0 {
		p.out.text("   ", "(the next request offers: "+strings.Join(changes, " ")+")")
	}
	return nil
}

// say shows what the model says and calls.
func (p *player) say(m message.Message) error {
	if len(p.acts) == 0 {
		return errors.New("the model goes on after the end of the script")
	}
	s := p.acts[0]
	if p.offers != nil && !slices.Equal(p.tools, p.offers) {
		return fmt.Errorf("%s: the request offered %s, announced were %s", s.part, strings.Join(p.tools, ", "), strings.Join(p.offers, ", "))
	}
	p.offers = s.act.offers
	if s.title != "" {
		p.out.line("")
		p.out.line(s.title)
	}
	p.out.line("")
	if text := m.Text(); text != "" {
		p.out.text("   ", text)
		if len(s.calls) > 0 {
			p.out.line("")
		}
	}
	for _, c := range s.calls {
		p.out.ask(c)
	}
	p.due = s.calls
	if len(p.due) == 0 {
		p.acts = p.acts[1:]
	}
	return nil
}

// answer shows a result and checks it.
func (p *player) answer(r session.Result) error {
	if len(p.due) == 0 {
		return fmt.Errorf("there is a result that no call of the script is for")
	}
	c, s := p.due[0], p.acts[0]
	if p.due = p.due[1:]; len(p.due) == 0 {
		p.acts = p.acts[1:]
	}
	p.answers++
	block := r.Message.Content[0]
	text := message.JoinText(block.Content)
	p.out.answer(text)
	if block.IsError != c.fails {
		return fmt.Errorf("%s: %s answered with isError %t, announced was %t: %s", s.part, c.tool, block.IsError, c.fails, text)
	}
	for _, want := range c.has {
		if !strings.Contains(text, want) {
			return fmt.Errorf("%s: %s answered without %q: %s", s.part, c.tool, want, text)
		}
	}
	return nil
}

// end says whether the turn ended as it should.
func (p *player) end(r session.EndReason) error {
	switch {
	case r.Error != nil:
		return fmt.Errorf("the turn failed: %w", r.Error)
	case r.Kind != session.EndCompleted || len(p.acts) > 0:
		return fmt.Errorf("the turn ended (%s) with %d acts of the script to come", r.Kind, len(p.acts))
	case !slices.Equal(p.tools, toolset):
		return fmt.Errorf("the last request offered %s, not the three tools alone", strings.Join(p.tools, ", "))
	}
	return nil
}
