package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
	"github.com/google/go-cmp/cmp"
)

func TestTurn(t *testing.T) {
	k := agenttest.New(t)
	k.Script(`steps:
- text: let me look
  calls: [{name: echo, arguments: '{"n":  1}'}, {name: echo, arguments: ''}]
  usage: {input: 10, output: 5}
- text: done
  usage: {input: 20, output: 7, cacheRead: 3}
`)
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(echo("echo"))}})
	wantEnd(t, k.Run(a, "  fix it\nplease"), session.EndCompleted)
	wantOutline(t, a,
		"turn 1", "step 1", "user:   fix it\nplease", "header initial [echo]",
		"model: let me look<echo><echo>",
		`call call_1_1 echo {"n":  1}`, `result call_1_1: echo {"n":1}`, `call call_1_2 echo `, `result call_1_2: echo {}`,
		"/step", "step 2", "model: done", "/step", "/turn completed")
	if got, want := a.Usage(), (message.Usage{Input: 30, Output: 12, CacheRead: 3}); got != want {
		t.Errorf("Usage = %+v, want %+v", got, want)
	}
	if got := a.Session().Title(); got != "fix it" {
		t.Errorf("Title = %q", got)
	}
	if a.Status() != agent.Idle {
		t.Errorf("Status = %s", a.Status())
	}
}

func TestEveryEventInOrder(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{text: one}]")
	var mu sync.Mutex
	var seen []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, s)
	}
	k.Mount(plugin("observer", func(c *cordis.Context) error {
		_, e1 := agent.Created.On(c, func(_ context.Context, e agent.Lifecycle) { note("created " + e.Session) })
		_, e2 := agent.SessionStarted.On(c, func(_ context.Context, e agent.SessionStart) { note("session-start " + string(e.Kind)) })
		_, e3 := agent.StatusChanged.On(c, func(_ context.Context, e agent.StatusChange) { note(string(e.Status)) })
		_, e4 := agent.InboxInserted.On(c, func(_ context.Context, e agent.InboxChange) {
			note(fmt.Sprint("inserted ", e.Target, len(e.IDs), e.Messages[0].Text()))
		})
		_, e5 := agent.InboxClaimed.On(c, func(_ context.Context, e agent.InboxChange) { note(fmt.Sprint("claimed ", e.Target, len(e.IDs))) })
		_, e6 := agent.PreStep.On(c, func(ctx context.Context, p agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
			note(fmt.Sprint("pre-step ", p.Turn, p.Step, len(p.Messages)))
			return next(ctx)
		})
		_, e7 := agent.Requesting.On(c, func(ctx context.Context, p agent.RequestPlan, next func(context.Context) (llm.Config, error)) (llm.Config, error) {
			note("request " + p.Config.Provider)
			return next(ctx)
		})
		_, e8 := agent.TurnStopping.On(c, func(_ context.Context, s agent.Stopping) (bool, bool, error) {
			note("stopping " + s.Answer.Text())
			return false, false, nil
		})
		_, e9 := agent.Disposed.On(c, func(_ context.Context, e agent.Lifecycle) { note("disposed") })
		return errors.Join(e1, e2, e3, e4, e5, e6, e7, e8, e9)
	}))
	a := k.Start(agent.Options{})
	if err := a.Inject("notes", "context"); err != nil {
		t.Fatal(err)
	}
	k.Run(a, "go")
	if err := a.Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{
		"created session-1", "session-start startup", "inserted next-step1context", "inserted next-turn1go", "running",
		"claimed next-step1", "claimed next-turn1", "pre-step 1 1 2", "request script", "stopping one", "idle", "disposed",
	}
	got := seen
	for i, s := range got { // these two are told by two goroutines
		if s == "running" && i == 3 {
			got[3], got[4] = got[4], got[3]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPromptsHaveATurnEach(t *testing.T) {
	k := agenttest.New(t)
	g := newGate()
	k.Adapter(agenttest.Provider, agenttest.Func(func(ctx context.Context, r *llm.Request, out *llm.Emitter) {
		_ = g.wait(ctx)
		agenttest.Say(out, "ok")
	}))
	a := k.Start(agent.Options{})
	for _, p := range []string{"one", "two"} {
		if err := a.Followup(p); err != nil {
			t.Fatal(err)
		}
	}
	g.await(t)
	if err := a.Followup("three"); err != nil {
		t.Fatal(err)
	}
	g.open()
	k.Idle(a)
	wantOutline(t, a,
		"turn 1", "step 1", "user: one", "header initial []", "model: ok", "/step", "/turn completed",
		"turn 2", "step 1", "user: two", "model: ok", "/step", "/turn completed",
		"turn 3", "step 1", "user: three", "model: ok", "/step", "/turn completed")
}

func TestSteering(t *testing.T) {
	t.Run("duringATool", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{calls: [{name: slow}]}, {text: seen}]")
		g := newGate()
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("slow", func(ctx context.Context, _ *tool.Exec) (string, error) { return "ok", g.wait(ctx) }))}})
		_ = a.Followup("go")
		g.await(t)
		_ = a.Steer("left")
		_ = a.Inject("notes", "and a note")
		g.open()
		k.Idle(a)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial [slow]", "model: <slow>", "call call_1_1 slow ", "result call_1_1: ok", "/step",
			"step 2", "user: left", "plugin: and a note", "model: seen", "/step", "/turn completed")
	})
	t.Run("duringTheLastAnswer", func(t *testing.T) {
		k := agenttest.New(t)
		g := newGate()
		k.Adapter(agenttest.Provider, agenttest.Func(func(ctx context.Context, r *llm.Request, out *llm.Emitter) {
			if len(r.Messages) == 1 {
				_ = g.wait(ctx)
			}
			agenttest.Say(out, "ok")
		}))
		a := k.Start(agent.Options{})
		_ = a.Followup("go")
		g.await(t)
		_ = a.Steer("more")
		g.open()
		k.Idle(a)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial []", "model: ok", "/step", "step 2", "user: more", "model: ok", "/step", "/turn completed")
	})
	t.Run("beginsATurn", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{text: ok}]")
		a := k.Start(agent.Options{})
		_ = a.Inject("notes", "first")
		if a.Status() != agent.Idle || a.Session().Turn().Turn != 0 {
			t.Fatal("an injected message began a turn")
		}
		_ = a.Steer("go")
		k.Idle(a)
		wantOutline(t, a, "turn 1", "step 1", "plugin: first", "user: go", "header initial []", "model: ok", "/step", "/turn completed")
	})
	t.Run("wakeWithoutAMessage", func(t *testing.T) {
		k := agenttest.New(t)
		a := k.Start(agent.Options{})
		if err := a.Wake(); err != nil {
			t.Fatal(err)
		}
		k.Idle(a)
		wantOutline(t, a, "turn 1", "/turn completed")
	})
}

func TestPreStep(t *testing.T) {
	listen := func(fn func(p agent.StepPlan, next func() (agent.Entry, error)) (agent.Entry, error)) *cordis.Plugin {
		return on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.PreStep.On(c, func(ctx context.Context, p agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
				return fn(p, func() (agent.Entry, error) { return next(ctx) })
			})
		})
	}
	start := func(t *testing.T, p *cordis.Plugin) (*agenttest.Kit, *agent.Agent) {
		k := agenttest.New(t)
		k.Script("steps: [{text: ok}]")
		return k, k.Start(agent.Options{Plugins: []*cordis.Plugin{p}})
	}
	t.Run("reject", func(t *testing.T) {
		k, a := start(t, listen(func(agent.StepPlan, func() (agent.Entry, error)) (agent.Entry, error) {
			return agent.Entry{Kind: agent.Reject, Reason: "not today"}, nil
		}))
		end := k.Run(a, "go")
		if end.Kind != session.EndBlocked || end.Detail != "not today" {
			t.Errorf("end = %+v", end)
		}
		wantOutline(t, a, "turn 1", "/turn blocked")
		if n := a.Session().Waiting(session.NextTurn); n != 0 {
			t.Errorf("%d prompts wait; a rejected one is lost", n)
		}
	})
	t.Run("otherMessages", func(t *testing.T) {
		k, a := start(t, listen(func(p agent.StepPlan, next func() (agent.Entry, error)) (agent.Entry, error) {
			e, err := next()
			e.Messages = append(e.Messages, message.Message{ID: "added", Role: message.User, Source: message.Source{Kind: "plugin", Name: "x"}, Content: []message.Block{message.Plain("added")}})
			return e, err
		}))
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "plugin: added", "header initial []", "model: ok", "/step", "/turn completed")
	})
	t.Run("noMessages", func(t *testing.T) {
		k, a := start(t, listen(func(agent.StepPlan, func() (agent.Entry, error)) (agent.Entry, error) {
			return agent.Entry{Kind: agent.Enter}, nil
		}))
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		wantOutline(t, a, "turn 1", "/turn completed")
	})
	failing := map[string]func(agent.StepPlan, func() (agent.Entry, error)) (agent.Entry, error){
		"error": func(agent.StepPlan, func() (agent.Entry, error)) (agent.Entry, error) {
			return agent.Entry{}, errors.New("broken")
		},
		"panic": func(agent.StepPlan, func() (agent.Entry, error)) (agent.Entry, error) { panic("broken") },
		"nonsense": func(agent.StepPlan, func() (agent.Entry, error)) (agent.Entry, error) {
			return agent.Entry{Kind: "broken"}, nil
		},
		"badMessage": func(p agent.StepPlan, next func() (agent.Entry, error)) (agent.Entry, error) {
			return agent.Entry{Kind: agent.Enter, Messages: []message.Message{{ID: "broken", Role: "system"}}}, nil
		},
	}
	for name, fn := range failing {
		t.Run(name, func(t *testing.T) {
			k, a := start(t, listen(fn))
			end := k.Run(a, "go")
			if end.Kind != session.EndError || !strings.Contains(end.Error.Message, "broken") {
				t.Errorf("end = %+v", end)
			}
			if w := a.Session().Inbox(session.NextTurn); len(w) != 1 || w[0].Text() != "go" {
				t.Errorf("the prompt that was not said does not wait again: %v", w)
			}
			if a.Status() != agent.Idle {
				t.Error("what waits after an error is parked")
			}
		})
	}
}

func TestTurnStopping(t *testing.T) {
	t.Run("objection", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{text: one}, {text: two}]")
		asked := 0
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.TurnStopping.On(c, func(_ context.Context, s agent.Stopping) (bool, bool, error) {
				if asked++; asked == 1 {
					return false, false, s.Agent.Steer("not yet")
				}
				return false, false, nil
			})
		})}})
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial []", "model: one", "/step", "step 2", "user: not yet", "model: two", "/step", "/turn completed")
	})
	t.Run("panic", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{text: one}]")
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.TurnStopping.On(c, func(context.Context, agent.Stopping) (bool, bool, error) { panic("no") })
		})}})
		wantEnd(t, k.Run(a, "go"), session.EndError)
	})
}

func TestLimits(t *testing.T) {
	t.Run("steps", func(t *testing.T) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
			agenttest.Calls(out, agenttest.Called{ID: "c", Name: "echo"})
		}))
		a := k.Start(agent.Options{MaxSteps: 7, Plugins: []*cordis.Plugin{tools(echo("echo"))}})
		end := k.Run(a, "loop for ever")
		wantEnd(t, end, session.EndLimit)
		if !strings.Contains(end.Detail, "7 steps") || a.Session().Turn().Step != 7 {
			t.Errorf("%+v after step %d", end, a.Session().Turn().Step)
		}
	})
	t.Run("ofTheSettings", func(t *testing.T) {
		k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Settings{MaxParallel: 1, MaxSteps: 3, MaxTokens: 1000}.Config()})
		k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
			agenttest.Calls(out, agenttest.Called{ID: "c", Name: "echo"})
		}))
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(echo("echo"))}})
		if end := k.Run(a, "loop for ever"); !strings.Contains(end.Detail, "3 steps") {
			t.Errorf("without a limit of its own: %+v", end)
		}
		b := k.Start(agent.Options{MaxSteps: 2, Plugins: []*cordis.Plugin{tools(echo("echo"))}})
		if end := k.Run(b, "loop for ever"); !strings.Contains(end.Detail, "2 steps") {
			t.Errorf("with one: %+v", end)
		}
	})
	t.Run("tokens", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script(`{steps: [{text: a, usage: {input: 60, output: 1}}, {text: b, usage: {input: 60, output: 1}}, {text: c}],
			purposes: {title: [{text: t, usage: {input: 1, output: 1}}]}}`)
		a := k.Start(agent.Options{MaxTokens: 100})
		wantEnd(t, k.Run(a, "one"), session.EndCompleted)
		if _, err := a.Ask(k.Context(), agent.OneShot{Purpose: "title", Messages: []llm.Message{llm.UserText("x")}}); err != nil {
			t.Fatal(err)
		}
		wantEnd(t, k.Run(a, "two"), session.EndCompleted)
		wantEnd(t, k.Run(a, "three"), session.EndLimit)
		if w := a.Session().Inbox(session.NextTurn); len(w) != 1 || w[0].Text() != "three" {
			t.Errorf("the prompt beyond the limit does not wait: %v", w)
		}
		if _, err := a.Ask(k.Context(), agent.OneShot{Purpose: "title", Messages: []llm.Message{llm.UserText("x")}}); !errors.Is(err, agent.ErrLimit) {
			t.Errorf("Ask = %v, want ErrLimit", err)
		}
	})
	t.Run("maxTokensOfAnAnswer", func(t *testing.T) {
		k := agenttest.New(t)
		k.Script("steps: [{text: part, calls: [{name: echo, arguments: '{'}], finish: max-tokens}, {text: ok}]")
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(echo("echo"))}})
		wantEnd(t, k.Run(a, "go"), session.EndMaxTokens)
		wantEnd(t, k.Run(a, "on"), session.EndCompleted)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial [echo]", "model: part", "/step", "/turn max-tokens",
			"turn 2", "step 1", "user: on", "model: ok", "/step", "/turn completed")
	})
}

func TestDenied(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps string
		want  session.EndKind
	}{
		{"inTheLastStepWithTools", "[{calls: [{name: deny}]}, {text: ok}]", session.EndDenied},
		{"butAnotherStepWorked", "[{calls: [{name: deny}]}, {calls: [{name: echo}]}, {text: ok}]", session.EndCompleted},
		{"andStopped", "[{calls: [{name: stop}, {name: echo, id: later}]}]", session.EndDenied},
		{"beforeInAnotherTurn", "[{calls: [{name: deny}]}, {text: ok}, {text: fine}]", session.EndCompleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.New(t)
			k.Script("steps: " + c.steps)
			var a *agent.Agent
			a = k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(echo("echo"), define("deny", func(context.Context, *tool.Exec) (string, error) {
				_, err := a.Session().Append(session.ApprovalAsked{ID: "1", Summary: "s"}, session.ApprovalDecided{ID: "1", Decision: "deny", Reason: "no"})
				return "", errors.Join(err, errors.New("denied"))
			}), define("stop", func(context.Context, *tool.Exec) (string, error) {
				_, err := a.Session().Append(session.ApprovalAsked{ID: "2", Summary: "s"}, session.ApprovalDecided{ID: "2", Decision: "deny", Scope: "stop", Source: "user"})
				return "", errors.Join(err, errors.New("denied"))
			}))}})
			end := k.Run(a, "go")
			if c.name == "beforeInAnotherTurn" {
				end = k.Run(a, "again")
			}
			wantEnd(t, end, c.want)
			if r, ok := results(t, a)["later"]; ok && r.Error == nil {
				t.Error("a call ran after the person had stopped")
			}
		})
	}
}

func TestRuntimeContext(t *testing.T) {
	now := "sunny"
	k := agenttest.New(t)
	k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) { agenttest.Say(out, "ok") }))
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{plugin("weather", func(c *cordis.Context) error {
		p, err := prompt.Service.Use(c)
		if err == nil {
			_, err = p.Context(c, prompt.Section{Name: "weather", Func: func(_ context.Context, v prompt.View) (string, error) {
				if now == "" {
					return "", nil
				}
				return "The weather is " + now + " in " + v.Values["cwd"], nil
			}})
		}
		return err
	}, "prompt")}})
	told := func(prompt string) (texts []string) {
		t.Helper()
		n := a.Session().Len()
		wantEnd(t, k.Run(a, prompt), session.EndCompleted)
		for _, e := range a.Session().Events(n) {
			if p, _ := e.Payload(); e.Type == session.TypeUser {
				texts = append(texts, p.(session.UserMessage).Message.Text())
			}
		}
		return texts
	}
	check := func(name string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	sunny, rain := prompt.Snapshot("The weather is sunny in /project"), prompt.Snapshot("The weather is rain in /project")
	check("first", told("1"), sunny, "1")
	check("unchanged", told("2"), "2")
	now = "rain"
	check("changed", told("3"), rain, "3")
	now = ""
	check("cleared", told("4"), prompt.Snapshot(""), "4")
	check("stillCleared", told("5"), "5")
	now = "rain"
	check("back", told("6"), rain, "6")
	nodes := a.Session().Surface()
	sources := make([]int64, len(nodes))
	for i, n := range nodes {
		sources[i] = n.Seq
	}
	if _, err := a.Session().Append(session.UserMessage{
		Message: message.Message{ID: "summary", Role: message.User, Source: message.Source{Kind: "plugin", Name: "compact"}, Content: []message.Block{message.Plain("what was")}},
		Op:      session.Op{Kind: session.Replace, Start: nodes[0].Seq, End: nodes[len(nodes)-1].Seq}, Sources: sources,
	}); err != nil {
		t.Fatal(err)
	}
	check("compactedAway", told("7"), rain, "7")
}

// TestCompactionAtPreStep: what a listener takes off the surface is told again in the
// very step.
func TestContextAfterCompactionAtTheBoundary(t *testing.T) {
	k := agenttest.New(t)
	k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) { agenttest.Say(out, "ok") }))
	var compacting atomic.Bool
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{
		plugin("fact", func(c *cordis.Context) error {
			p, err := prompt.Service.Use(c)
			if err == nil {
				_, err = p.Context(c, prompt.Section{Name: "fact", Text: "a fact"})
			}
			return err
		}, "prompt"),
		on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.PreStep.On(c, func(ctx context.Context, p agent.StepPlan, next func(context.Context) (agent.Entry, error)) (agent.Entry, error) {
				if compacting.Load() {
					n := p.Agent.Session().Surface()[0]
					_, err := p.Agent.Session().Append(session.UserMessage{Message: message.Message{ID: "gone", Role: message.User, Source: message.Source{Kind: "plugin", Name: "compact"}},
						Op: session.Op{Kind: session.Replace, Start: n.Seq, End: n.Seq}, Sources: []int64{n.Seq}})
					if err != nil {
						return agent.Entry{}, err
					}
				}
				return next(ctx)
			})
		}),
	}})
	wantEnd(t, k.Run(a, "1"), session.EndCompleted)
	compacting.Store(true)
	wantEnd(t, k.Run(a, "2"), session.EndCompleted)
	last := a.Session().Surface()
	texts := []string{}
	for _, n := range last {
		texts = append(texts, n.Message.Text())
	}
	if diff := cmp.Diff([]string{"1", "ok", prompt.Snapshot("a fact"), "2", "ok"}, texts); diff != "" {
		t.Error(diff)
	}
}

func TestPromptFailure(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{text: ok}]")
	broken := true
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{plugin("part", func(c *cordis.Context) error {
		p, err := prompt.Service.Use(c)
		if err == nil {
			_, err = p.Section(c, prompt.Section{Name: "part", Func: func(context.Context, prompt.View) (string, error) {
				if broken {
					panic("a part fell off")
				}
				return "part for {{model}}", nil
			}})
		}
		return err
	}, "prompt")}})
	end := k.Run(a, "go")
	if end.Kind != session.EndError || !strings.Contains(end.Error.Message, "a part fell off") {
		t.Fatalf("end = %+v", end)
	}
	broken = false
	wantEnd(t, k.Run(a, "again"), session.EndCompleted)
}

// TestToolsAreAssembledEveryStep: a tool that a tool registers is there in the next
// step, and an unmount gives the header its earlier bytes.
func TestToolsAreAssembledEveryStep(t *testing.T) {
	k := agenttest.New(t)
	k.Script(`steps:
- {expect: {noTools: [late]}, calls: [{name: mount}]}
- {expect: {tools: [late]}, calls: [{name: late}]}
- {expect: {toolResults: [{contains: "late {}"}]}, calls: [{name: unmount}]}
- {expect: {noTools: [late]}, text: done}
`)
	var a *agent.Agent
	var f *cordis.Fiber
	a = k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(
		define("mount", func(ctx context.Context, _ *tool.Exec) (string, error) {
			c := tool.WithMount(a.Context(), tool.Mount{Number: 1, ID: "dyn-1", Plugin: "late"})
			var err error
			if f, err = c.Mount(tools(echo("late")), nil); err == nil {
				err = f.Await(ctx)
			}
			return "mounted", err
		}),
		define("unmount", func(ctx context.Context, _ *tool.Exec) (string, error) {
			_, err := f.Dispose(ctx)
			return "unmounted", err
		}))}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	headers := agenttest.Payloads[session.RequestHeader](t, a.Session().Log)
	if len(headers) != 3 || !headers[0].Header.Equal(headers[2].Header) || headers[1].Header.Tools[2].Name != "late" {
		t.Errorf("headers: %+v", headers)
	}
	if headers[1].Reason != session.HeaderChange {
		t.Errorf("reason = %s", headers[1].Reason)
	}
}

// TestDefaultModel: the prompt names the model that is asked, whoever chose it.
func TestDefaultModel(t *testing.T) {
	k := agenttest.New(t)
	k.Adapter("p", known{agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
		agenttest.Say(out, r.System+" / "+r.Messages[0].Text())
	})})
	a := k.Start(agent.Options{Model: llm.Config{Provider: "p"}, Plugins: []*cordis.Plugin{plugin("part", func(c *cordis.Context) error {
		p, err := prompt.Service.Use(c)
		if err != nil {
			return err
		}
		_, err1 := p.Section(c, prompt.Section{Name: "s", Text: "I am {{model}}"})
		_, err2 := p.Context(c, prompt.Section{Name: "c", Text: "told by {{provider}}/{{model}}"})
		return errors.Join(err1, err2)
	}, "prompt")}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	answer := agenttest.Payloads[session.AssistantMessage](t, a.Session().Log)[0].Message.Text()
	if !strings.Contains(answer, "I am best") || !strings.Contains(answer, "told by p/best") {
		t.Error(answer)
	}
	if h := agenttest.Payloads[session.RequestHeader](t, a.Session().Log)[0].Header.AdapterDefaults.String(); h != `{"model":true}` {
		t.Errorf("adapterDefaults = %s", h)
	}
}

// known is a model that has a default.
type known struct{ agenttest.Func }

func (known) Models() []llm.Model { return []llm.Model{{Name: "best"}} }
