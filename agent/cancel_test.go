package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// TestCancelAtEveryPoint: wherever a turn is, a cancellation ends it, and the log
// is whole.
func TestCancelAtEveryPoint(t *testing.T) {
	points := map[string]func(g *gate) *cordis.Plugin{
		"context": func(g *gate) *cordis.Plugin {
			return plugin("p", func(c *cordis.Context) error {
				p, err := prompt.Service.Use(c)
				if err == nil {
					_, err = p.Context(c, prompt.Section{Name: "p", Func: func(ctx context.Context, _ prompt.View) (string, error) { return "x", g.wait(ctx) }})
				}
				return err
			}, "prompt")
		},
		"system": func(g *gate) *cordis.Plugin {
			return plugin("p", func(c *cordis.Context) error {
				p, err := prompt.Service.Use(c)
				if err == nil {
					_, err = p.Section(c, prompt.Section{Name: "p", Func: func(ctx context.Context, _ prompt.View) (string, error) { return "x", g.wait(ctx) }})
				}
				return err
			}, "prompt")
		},
		"pre-step": func(g *gate) *cordis.Plugin {
			return on(func(c *cordis.Context) (*cordis.Handle, error) {
				return agent.PreStep.On(c, func(ctx context.Context, _ agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
					_ = g.wait(ctx)
					return next(ctx)
				})
			})
		},
		"request": func(g *gate) *cordis.Plugin {
			return on(func(c *cordis.Context) (*cordis.Handle, error) {
				return agent.Requesting.On(c, func(ctx context.Context, _ agent.RequestPlan, next func(context.Context) (llm.Config, error)) (llm.Config, error) {
					_ = g.wait(ctx)
					return next(ctx)
				})
			})
		},
		"request-error": func(g *gate) *cordis.Plugin {
			return on(func(c *cordis.Context) (*cordis.Handle, error) {
				return agent.RequestFailed.On(c, func(ctx context.Context, _ agent.RequestError, next func(context.Context) (agent.Recovery, error)) (agent.Recovery, error) {
					_ = g.wait(ctx)
					return agent.Recovery{Kind: agent.Retry}, nil
				})
			})
		},
		"pre-execute": func(g *gate) *cordis.Plugin {
			return on(func(c *cordis.Context) (*cordis.Handle, error) {
				return tool.PreExecute.On(c, func(ctx context.Context, _ *tool.Exec, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
					_ = g.wait(ctx)
					return next(ctx)
				})
			})
		},
		"post-execute": func(g *gate) *cordis.Plugin {
			return on(func(c *cordis.Context) (*cordis.Handle, error) {
				return tool.PostExecute.On(c, func(ctx context.Context, _ tool.Finished, next func(context.Context) (tool.PostDecision, error)) (tool.PostDecision, error) {
					_ = g.wait(ctx)
					return next(ctx)
				})
			})
		},
		"turn-stopping": func(g *gate) *cordis.Plugin {
			return on(func(c *cordis.Context) (*cordis.Handle, error) {
				return agent.TurnStopping.On(c, func(ctx context.Context, _ agent.Stopping) (bool, bool, error) {
					return false, false, g.wait(ctx)
				})
			})
		},
	}
	points["body"], points["stream"], points["retry"] = nil, nil, nil
	for name, make := range points {
		for _, mode := range []string{"exclusive", "parallel"} {
			t.Run(name+"/"+mode, func(t *testing.T) {
				g := newGate()
				var stops *cordis.Plugin
				if make != nil {
					stops = make(g)
				}
				cancelAt(t, name, mode, g, stops)
			})
		}
	}
}

// stopping is a model that waits at the gate where the point says so, and makes five
// calls of a tool.
func stopping(point string, g *gate) agenttest.Func {
	return func(ctx context.Context, r *llm.Request, out *llm.Emitter) {
		switch point {
		case "stream":
			b := out.Open(llm.TextBlock)
			out.Append(b, "half an ans")
			if err := g.wait(ctx); err != nil {
				out.Fail(llm.AsFailure(err, llm.CodeAborted))
				return
			}
		case "retry":
			wait := int64(9_000)
			g.reached <- struct{}{}
			out.Fail(&llm.Failure{Code: llm.CodeRateLimit, Message: "slow", RetryAfterMs: &wait})
			return
		case "request-error":
			out.Fail(llm.Fail(llm.CodeInvalidRequest, "no"))
			return
		}
		if len(r.Messages) > 1 {
			agenttest.Say(out, "ok")
			return
		}
		calls := []agenttest.Called{}
		for i := range 5 {
			calls = append(calls, agenttest.Called{ID: fmt.Sprint("c", i), Name: "work"})
		}
		agenttest.Calls(out, calls...)
	}
}

// cancelAt cancels a turn that waits at the gate, and holds what is left of it.
func cancelAt(t *testing.T, point, mode string, g *gate, stops *cordis.Plugin) {
	k := agenttest.New(t)
	k.Adapter(agenttest.Provider, stopping(point, g))
	work := define("work", func(ctx context.Context, _ *tool.Exec) (string, error) {
		if point == "body" {
			return "", g.wait(ctx)
		}
		return "ok", nil
	})
	if mode == "parallel" {
		parallel(work)
	}
	plugins := []*cordis.Plugin{tools(work)}
	if stops != nil {
		plugins = append(plugins, stops)
	}
	a := k.Start(agent.Options{Plugins: plugins})
	if err := a.Followup("go"); err != nil {
		t.Fatal(err)
	}
	g.await(t)
	if err := a.Followup("dropped"); err != nil {
		t.Fatal(err)
	}
	a.Cancel(agent.Cause{Kind: agent.CauseUser, Text: "stop it"}, false)
	a.Cancel(agent.Cause{Kind: agent.CauseHook, Text: "too late"}, false)
	k.Idle(a)
	end := k.End(a)
	if end.Kind != session.EndAborted || end.Abort.Kind != "user" || end.Abort.Text != "stop it" {
		t.Errorf("end = %+v", end)
	}
	if n := a.Session().Waiting(session.NextTurn); n != 0 {
		t.Errorf("%d prompts wait", n)
	}
	if a.Session().Turn().TurnOpen {
		t.Error("the turn is open")
	}
	calls, got := 0, results(t, a)
	for _, m := range agenttest.Payloads[session.AssistantMessage](t, a.Session().Log) {
		calls += len(m.Message.Calls())
	}
	if calls != len(got) {
		t.Errorf("%d calls, %d results", calls, len(got))
	}
	g.open()
	if point != "stream" && point != "retry" && point != "request-error" {
		wantEnd(t, k.Run(a, "again"), session.EndCompleted)
	}
}

func TestCancelAnswersEveryCall(t *testing.T) {
	k := agenttest.New(t)
	g := newGate()
	k.Script("steps: [{calls: [{name: work, id: a}, {name: work, id: b}, {name: missing, id: c, arguments: '[]'}]}, {text: ok}]")
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("work", func(ctx context.Context, _ *tool.Exec) (string, error) { return "", g.wait(ctx) }))}})
	_ = a.Followup("go")
	g.await(t)
	a.Cancel(agent.Cause{Kind: agent.CauseParent}, true)
	k.Idle(a)
	wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial [work]", "model: <work><work><missing>",
		"call a work ", "result a: Error: tool call aborted (ABORTED)",
		"call b work ", "result b: Error: tool call aborted before dispatch (ABORTED_BEFORE_DISPATCH)",
		"call c missing []", "result c: Error: tool call aborted before dispatch (ABORTED_BEFORE_DISPATCH)",
		"/step", "/turn aborted parent")
}

func TestCancelAndTheInbox(t *testing.T) {
	start := func(t *testing.T) (*agenttest.Kit, *agent.Agent, *gate) {
		k := agenttest.New(t)
		g := newGate()
		k.Adapter(agenttest.Provider, agenttest.Func(func(ctx context.Context, r *llm.Request, out *llm.Emitter) {
			if err := g.wait(ctx); err != nil {
				out.Fail(llm.AsFailure(err, llm.CodeAborted))
				return
			}
			agenttest.Say(out, "ok")
		}))
		a := k.Start(agent.Options{})
		_ = a.Followup("one")
		g.await(t)
		_ = a.Followup("two")
		_ = a.Inject("n", "note")
		return k, a, g
	}
	user := agent.Cause{Kind: agent.CauseUser}
	t.Run("dropped", func(t *testing.T) {
		k, a, _ := start(t)
		a.Cancel(user, false)
		k.Idle(a)
		if n, m := a.Session().Waiting(session.NextTurn), a.Session().Waiting(session.NextStep); n+m != 0 {
			t.Errorf("%d and %d messages wait", n, m)
		}
		canceled := 0
		for _, p := range agenttest.Payloads[session.InboxSplice](t, a.Session().Log) {
			if p.Outcome == "canceled" {
				canceled++
			}
		}
		if canceled != 2 {
			t.Errorf("%d splices say canceled", canceled)
		}
	})
	t.Run("kept", func(t *testing.T) {
		k, a, _ := start(t)
		a.Cancel(user, true)
		k.Idle(a)
		if n, m := a.Session().Waiting(session.NextTurn), a.Session().Waiting(session.NextStep); n != 1 || m != 1 {
			t.Errorf("%d and %d messages wait", n, m)
		}
	})
	t.Run("disposed", func(t *testing.T) { // the turn is, the agent goes on
		k, a, g := start(t)
		a.Cancel(agent.Cause{Kind: agent.CauseDisposed}, false)
		k.Idle(a)
		if end := k.End(a); end.Kind != session.EndAborted || end.Abort.Kind != string(agent.CauseDisposed) {
			t.Errorf("end = %+v", end)
		}
		g.open()
		wantEnd(t, k.Run(a, "again"), session.EndCompleted)
	})
	t.Run("limit", func(t *testing.T) {
		k, a, _ := start(t)
		a.Cancel(agent.Cause{Kind: agent.CauseLimit, Text: "10 minutes"}, true)
		k.Idle(a)
		if end := k.End(a); end.Kind != session.EndLimit || end.Detail != "10 minutes" {
			t.Errorf("end = %+v", end)
		}
	})
}

func TestCancelMore(t *testing.T) {
	user := agent.Cause{Kind: agent.CauseUser}
	t.Run("wakingWhileItEnds", func(t *testing.T) {
		k := agenttest.New(t)
		g := newGate()
		k.Script("steps: [{calls: [{name: deaf}]}, {text: ok}]")
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("deaf", func(context.Context, *tool.Exec) (string, error) {
			return "", g.wait(context.Background())
		}))}})
		_ = a.Followup("one")
		g.await(t)
		a.Cancel(user, false)
		if err := a.Steer("instead"); err != nil {
			t.Fatal(err)
		}
		if n := a.Session().Waiting(session.NextTurn); n != 1 {
			t.Errorf("steering after a cancellation is a prompt; %d wait", n)
		}
		g.open()
		k.Idle(a)
		wantOutline(t, a, "turn 1", "step 1", "user: one", "header initial [deaf]", "model: <deaf>", "call call_1_1 deaf ", "result call_1_1: Error: tool call aborted (ABORTED)", "/step", "/turn aborted user",
			"turn 2", "step 1", "user: instead", "model: ok", "/step", "/turn completed")
	})
	t.Run("idle", func(t *testing.T) {
		k := agenttest.New(t)
		a := k.Start(agent.Options{})
		_ = a.Inject("n", "note")
		a.Cancel(user, false)
		if n := a.Session().Waiting(session.NextStep); n != 1 {
			t.Error("a cancellation while idle did something")
		}
	})
	t.Run("claimedAndNotSaid", func(t *testing.T) {
		for _, keep := range []bool{true, false} {
			g := newGate()
			k := agenttest.New(t)
			a := k.Start(agent.Options{Plugins: []*cordis.Plugin{on(func(c *cordis.Context) (*cordis.Handle, error) {
				return agent.PreStep.On(c, func(ctx context.Context, _ agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
					return agent.Entry{}, errors.Join(g.wait(ctx))
				})
			})}})
			_ = a.Followup("one")
			g.await(t)
			a.Cancel(user, keep)
			k.Idle(a)
			if n := a.Session().Waiting(session.NextTurn); (n == 1) != keep {
				t.Errorf("keepInbox %v: %d prompts wait", keep, n)
			}
		}
	})
}
