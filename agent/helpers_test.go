package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	anything  = schema.Must(schema.Parameters(schema.Object(schema.Prop("n", schema.Integer("")))))
	anyString = schema.Must(schema.Output(schema.String("")))
)

type body func(ctx context.Context, x *tool.Exec) (string, error)

// define returns a tool with a string as its output.
func define(name string, run body, edits ...func(*tool.Definition)) *tool.Definition {
	d := &tool.Definition{
		Name: name, Description: "the tool " + name, Parameters: anything,
		Output: tool.Output{Schema: anyString, Render: func(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
			var s string
			err := json.Unmarshal(value, &s)
			return []tool.Block{tool.TextBlock(s)}, err
		}},
		Execute: func(ctx context.Context, x *tool.Exec) (tool.Outcome, error) {
			s, err := run(ctx, x)
			return tool.Outcome{Value: lossless.Str(s).Encode()}, err
		},
	}
	for _, edit := range edits {
		edit(d)
	}
	return d
}

func parallel(d *tool.Definition) {
	d.ConcurrencySafe = func(context.Context, lossless.Text) bool { return true }
}

// plugin returns a plugin for an agent's context.
func plugin(name string, apply func(c *cordis.Context) error, inject ...string) *cordis.Plugin {
	return &cordis.Plugin{Name: name, Inject: cordis.Require(inject...), Apply: func(c *cordis.Context, _ any) error { return apply(c) }}
}

// tools returns a plugin that registers tools.
func tools(defs ...*tool.Definition) *cordis.Plugin {
	return plugin("tools of the test", func(c *cordis.Context) error {
		r, err := tool.Service.Use(c)
		if err != nil {
			return err
		}
		for _, d := range defs {
			if _, err := r.Register(c, d); err != nil {
				return err
			}
		}
		return nil
	}, "tools")
}

func echo(name string) *tool.Definition {
	return define(name, func(_ context.Context, x *tool.Exec) (string, error) { return name + " " + string(x.Arguments), nil })
}

// on returns a plugin that listens.
func on(listen func(c *cordis.Context) (*cordis.Handle, error)) *cordis.Plugin {
	return plugin("listener", func(c *cordis.Context) error {
		_, err := listen(c)
		return err
	})
}

// outline is the log as a short text: a word for each event but chunks.
func outline(s *session.Session) []string {
	var out []string
	for _, e := range s.Events(0) {
		p, err := e.Payload()
		if err != nil {
			return append(out, err.Error())
		}
		switch p := p.(type) {
		case session.Chunk, session.RequestContext, session.Title, session.InboxSplice, session.EndSeed:
		case session.TurnStart:
			out = append(out, fmt.Sprintf("turn %d", p.Turn))
		case session.StepStart:
			out = append(out, fmt.Sprintf("step %d", p.Step))
		case session.UserMessage:
			out = append(out, p.Message.Source.Kind+": "+p.Message.Text())
		case session.AssistantMessage:
			text := "model: " + p.Message.Text()
			for _, c := range p.Message.Calls() {
				text += "<" + c.Name + ">"
			}
			out = append(out, text)
		case session.Call:
			out = append(out, "call "+p.CallID+" "+p.Name+" "+string(p.Arguments))
		case session.Result:
			b := p.Message.Content[0]
			text := "result " + b.CallID + ": " + message.JoinText(b.Content)
			if p.Error != nil {
				text += " (" + p.Error.Code + ")"
			}
			out = append(out, text)
		case session.RequestHeader:
			names := []string{}
			for _, t := range p.Header.Tools {
				names = append(names, t.Name)
			}
			out = append(out, fmt.Sprintf("header %s %v", p.Reason, names))
		case session.Retry:
			out = append(out, fmt.Sprintf("retry %d %s %dms", p.Attempt, p.Failure.Code, p.DelayMs))
		case session.RetryStarted:
			out = append(out, fmt.Sprintf("again %d", p.Attempt))
		case session.StepEnd:
			out = append(out, "/step")
		case session.TurnEnd:
			text := "/turn " + string(p.Reason.Kind)
			if p.Reason.Abort != nil {
				text += " " + p.Reason.Abort.Kind + " " + p.Reason.Abort.Text
			}
			if p.Reason.Error != nil {
				text += " " + p.Reason.Error.Code
			}
			out = append(out, strings.TrimSpace(text))
		default:
			out = append(out, string(e.Type))
		}
	}
	return out
}

func wantOutline(t *testing.T, a *agent.Agent, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, outline(a.Session())); diff != "" {
		t.Errorf("the log is not as it should be (-want +got):\n%s", diff)
	}
}

func wantEnd(t *testing.T, got session.EndReason, want session.EndKind) {
	t.Helper()
	if got.Kind != want {
		t.Fatalf("the turn ended %s (%+v), want %s; error %v", got.Kind, got, want, got.Error)
	}
}

// gate is a place where something waits until the test opens it.
type gate struct{ reached, opened chan struct{} }

func newGate() *gate { return &gate{make(chan struct{}, 1000), make(chan struct{})} }

// wait says that it is reached, and waits for open or for ctx.
func (g *gate) wait(ctx context.Context) error {
	g.reached <- struct{}{}
	select {
	case <-g.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) open() { close(g.opened) }

// await waits until somebody waits at the gate.
func (g *gate) await(t testing.TB) {
	t.Helper()
	select {
	case <-g.reached:
	case <-time.After(agenttest.Patience):
		t.Fatal("nobody came to the gate")
	}
}

// fallible is a model that fails with the failures in turn, and then answers.
func fallible(failures ...llm.Failure) agenttest.Func {
	i := 0
	return func(_ context.Context, _ *llm.Request, out *llm.Emitter) {
		if i < len(failures) {
			f := failures[i]
			i++
			out.Fail(&f)
			return
		}
		agenttest.Say(out, "done")
	}
}
