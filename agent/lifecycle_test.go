package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

func TestStartRefuses(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{text: ok}]")
	model := llm.Config{Provider: agenttest.Provider, Model: "m"}
	disposed, undone := 0, 0
	mustOn(t)(agent.Disposed.On(k.Root, func(context.Context, agent.Lifecycle) { disposed++ }))
	first := plugin("first", func(c *cordis.Context) error {
		_, err := c.Defer("first", func(context.Context) error { undone++; return nil })
		return err
	})
	digest := k.Root.Runtime().Digest()
	for _, c := range []struct {
		name string
		o    agent.Options
		want []string
	}{
		{"noSession", agent.Options{Model: model}, []string{"no session"}},
		{"noProvider", agent.Options{Session: k.Session()}, []string{"no provider"}},
		{"negative", agent.Options{Session: k.Session(), Model: model, MaxSteps: -1}, []string{"MaxSteps"}},
		{"nilPlugin", agent.Options{Session: k.Session(), Model: model, Plugins: []*cordis.Plugin{nil}}, []string{"plugin is nil"}},
		{"failing", agent.Options{Session: k.Session(), Model: model, Plugins: []*cordis.Plugin{first, plugin("second", func(*cordis.Context) error { return errors.New("no disk") })}}, []string{"second", "no disk"}},
		{"panicking", agent.Options{Session: k.Session(), Model: model, Plugins: []*cordis.Plugin{first, plugin("second", func(*cordis.Context) error { panic("no disk") })}}, []string{"second", "no disk"}},
		{"pending", agent.Options{Session: k.Session(), Model: model, Plugins: []*cordis.Plugin{first, plugin("second", func(*cordis.Context) error { return nil }, "coffee")}}, []string{"second", "pending", "waits for the service coffee"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			undone = 0
			_, err := k.Agents.Start(k.Context(), c.o)
			if err == nil {
				t.Fatal("it started")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if got := k.Root.Runtime().Digest(); got != digest {
				t.Errorf("something is left:\n%s\nwas\n%s", got, digest)
			}
			if len(c.o.Plugins) > 1 && undone != 1 {
				t.Error("the first plugin was not undone")
			}
		})
	}
	if disposed != 0 || len(k.Agents.List()) != 0 {
		t.Errorf("%d disposed events, agents %v", disposed, k.Agents.List())
	}
}

func mustOn(t *testing.T) func(*cordis.Handle, error) {
	return func(_ *cordis.Handle, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestRegistry(t *testing.T) {
	k := agenttest.New(t)
	parent := tool.NewScope("project", nil)
	var early *agent.Agent
	a := k.Start(agent.Options{Parent: parent, Plugins: []*cordis.Plugin{
		plugin("late", func(c *cordis.Context) error { return nil }, "of-the-second"),
		plugin("early", func(c *cordis.Context) error {
			early, _ = k.Agents.Of(tool.ScopeOf(c))
			if _, ok := k.Agents.Get(early.ID()); ok {
				return errors.New("an agent that starts is public")
			}
			_, err := c.Provide("of-the-second", 1)
			return errors.Join(err, early.Followup("from the setup"))
		}),
	}})
	k.Idle(a)
	if early != a {
		t.Error("a plugin does not find its agent")
	}
	if a.Session().Turn().Turn != 1 {
		t.Error("what woke during the setup was lost")
	}
	if _, err := k.Agents.Start(k.Context(), agent.Options{Session: a.Session(), Model: a.Model()}); !errors.Is(err, agent.ErrStarted) {
		t.Errorf("a second agent of the session: %v", err)
	}
	inner := tool.NewScope("inner", a.Scope())
	for name, find := range map[string]func() (*agent.Agent, bool){
		"Get": func() (*agent.Agent, bool) { return k.Agents.Get(a.ID()) },
		"Of":  func() (*agent.Agent, bool) { return k.Agents.Of(inner) },
		"For": func() (*agent.Agent, bool) {
			return k.Agents.For(tool.WithActor(t.Context(), tool.Actor{Scope: inner}))
		},
	} {
		if got, ok := find(); !ok || got != a {
			t.Errorf("%s does not find the agent", name)
		}
	}
	if _, ok := k.Agents.Of(parent); ok {
		t.Error("the scope above an agent is not its")
	}
	if tool.ScopeOf(a.Context()) != a.Scope() || a.Scope().Parent() != parent {
		t.Error("the scopes are wrong")
	}
	if err := a.Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	if _, ok := k.Agents.Get(a.ID()); ok || len(k.Agents.List()) != 0 {
		t.Error("a closed agent is found")
	}
	if err := a.Followup("x"); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("Followup after Close = %v", err)
	}
	if err := a.Wake(); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("Wake after Close = %v", err)
	}
	if err := a.WhenIdle(k.Context()); err != nil {
		t.Errorf("WhenIdle after Close = %v", err)
	}
	if err := a.Maintain(k.Context(), func(context.Context) error { return nil }); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("Maintain after Close = %v", err)
	}
	k.Start(agent.Options{Session: a.Session()}) // the session may have another one
}

// TestUnloadCancels: whatever ends the agent's fiber ends its turn at once, with the
// log whole.
func TestUnloadCancels(t *testing.T) {
	ends := map[string]func(k *agenttest.Kit, a *agent.Agent) error{
		"Close": func(k *agenttest.Kit, a *agent.Agent) error { return a.Close(k.Context()) },
		"fiber": func(k *agenttest.Kit, a *agent.Agent) error {
			_, err := a.Context().Fiber().Dispose(k.Context())
			return err
		},
		"runtime": func(k *agenttest.Kit, a *agent.Agent) error {
			_, err := k.Root.Fiber().Dispose(k.Context())
			return err
		},
		"service": func(k *agenttest.Kit, a *agent.Agent) error {
			for _, f := range k.Root.Runtime().Fibers() {
				if f.Name() == "llm" {
					_, err := f.Dispose(k.Context())
					return err
				}
			}
			return errors.New("no fiber of llm")
		},
	}
	for name, end := range ends {
		for _, where := range []string{"stream", "body"} {
			t.Run(name+"/"+where, func(t *testing.T) {
				k := agenttest.New(t)
				g := newGate()
				k.Adapter(agenttest.Provider, agenttest.Func(func(ctx context.Context, r *llm.Request, out *llm.Emitter) {
					if where == "stream" {
						out.Fail(llm.AsFailure(g.wait(ctx), llm.CodeAborted))
						return
					}
					agenttest.Calls(out, agenttest.Called{ID: "a", Name: "work"}, agenttest.Called{ID: "b", Name: "work"})
				}))
				a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("work", func(ctx context.Context, _ *tool.Exec) (string, error) { return "", g.wait(ctx) }))}})
				_ = a.Followup("go")
				_ = a.Followup("waits")
				g.await(t)
				begin := time.Now()
				if err := end(k, a); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > limits.Shutdown {
					t.Errorf("it took %s", took)
				}
				last := k.End(a)
				if last.Kind != session.EndAborted || last.Abort.Kind != "disposed" {
					t.Errorf("end = %+v", last)
				}
				if n := a.Session().Waiting(session.NextTurn); n != 1 {
					t.Errorf("%d prompts wait for the next life", n)
				}
			})
		}
	}
}

// TestDeafBody: a body that does not listen to its cancellation keeps Close from
// being quiescent, which the error says, and nothing else.
func TestDeafBody(t *testing.T) {
	k := agenttest.New(t)
	g := newGate()
	k.Adapter(agenttest.Provider, once(agenttest.Called{ID: "a", Name: "deaf"}, agenttest.Called{ID: "b", Name: "deaf"}))
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(define("deaf", func(context.Context, *tool.Exec) (string, error) {
		return "", g.wait(context.Background())
	}, parallel))}})
	_ = a.Followup("go")
	g.await(t)
	short, cancel := context.WithTimeout(k.Context(), 10*time.Millisecond)
	defer cancel()
	if err := a.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close = %v", err)
	}
	if err := a.Followup("more"); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("Followup = %v", err)
	}
	g.open()
	if err := a.Close(k.Context()); err != nil {
		t.Error(err)
	}
	wantEnd(t, k.End(a), session.EndAborted)
}

// TestAgentsAreApart: what is mounted on an agent is seen and heard by it alone.
func TestAgentsAreApart(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{calls: [{name: mine}]}, {text: ok}]")
	heard := map[string]int{}
	start := func(name string) *agent.Agent {
		return k.Start(agent.Options{Plugins: []*cordis.Plugin{
			tools(define("mine", func(context.Context, *tool.Exec) (string, error) { return "of " + name, nil }), echo("only-"+name)),
			on(func(c *cordis.Context) (*cordis.Handle, error) {
				return agent.StatusChanged.On(c, func(_ context.Context, e agent.StatusChange) {
					heard[name+" "+e.Session]++
				})
			})}})
	}
	for _, a := range []*agent.Agent{start("one"), start("two")} {
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	}
	for i, a := range k.Agents.List() {
		name := []string{"one", "two"}[i]
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial [mine only-"+name+"]", "model: <mine>", "call call_1_1 mine ",
			"result call_1_1: of "+name, "/step", "step 2", "model: ok", "/step", "/turn completed")
		if heard[name+" "+a.ID()] != 2 {
			t.Errorf("%s heard %v", name, heard)
		}
	}
	if len(heard) != 2 {
		t.Errorf("one agent heard the other: %v", heard)
	}
}

func TestMaintain(t *testing.T) {
	k := agenttest.New(t)
	k.Script("steps: [{text: ok}, {text: ok}]")
	var within error
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{on(func(c *cordis.Context) (*cordis.Handle, error) {
		return agent.TurnStopping.On(c, func(ctx context.Context, s agent.Stopping) (bool, bool, error) {
			within = errors.Join(s.Agent.WhenIdle(ctx), s.Agent.Maintain(ctx, func(context.Context) error { return nil }))
			return false, false, nil
		})
	})}})
	t.Run("latchesWakes", func(t *testing.T) {
		err := a.Maintain(k.Context(), func(ctx context.Context) error {
			if err := a.Followup("go"); err != nil {
				return err
			}
			if a.Status() != agent.Idle || a.Session().Turn().Turn != 0 {
				return errors.New("a turn began")
			}
			return ctx.Err()
		})
		if err != nil {
			t.Fatal(err)
		}
		k.Idle(a)
		wantEnd(t, k.End(a), session.EndCompleted)
	})
	t.Run("withinATurn", func(t *testing.T) {
		if !errors.Is(within, agent.ErrBusy) {
			t.Errorf("%v, want ErrBusy", within)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		begun := make(chan struct{})
		done := make(chan error)
		go func() {
			done <- a.Maintain(k.Context(), func(ctx context.Context) error {
				close(begun)
				<-ctx.Done()
				return context.Cause(ctx)
			})
		}()
		<-begun
		a.Cancel(agent.Cause{Kind: agent.CauseUser, Text: "enough"}, true)
		var cause agent.Cause
		if err := <-done; !errors.As(err, &cause) || cause.Text != "enough" {
			t.Errorf("Maintain = %v", err)
		}
	})
	t.Run("panic", func(t *testing.T) {
		if err := a.Maintain(k.Context(), func(context.Context) error { panic("oh") }); err == nil || !strings.Contains(err.Error(), "oh") {
			t.Errorf("Maintain = %v", err)
		}
		wantEnd(t, k.Run(a, "again"), session.EndCompleted)
	})
}

func TestSendRefuses(t *testing.T) {
	k := agenttest.New(t)
	a := k.Start(agent.Options{})
	hash := strings.Repeat("0", 64)
	for name, m := range map[string]message.Message{
		"role":       {Role: message.Assistant, Source: message.Source{Kind: "user"}, Content: []message.Block{message.Plain("x")}},
		"empty":      {Role: message.User, Source: message.Source{Kind: "user"}},
		"noSource":   {Role: message.User, Content: []message.Block{message.Plain("x")}},
		"result":     message.Result("", "c", false, message.Plain("x")),
		"snapshot":   {Role: message.User, Source: message.Source{Kind: "plugin", Name: "prompt"}, Content: []message.Block{message.Plain("x")}},
		"large":      {Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{message.Plain(strings.Repeat("x", limits.AgentMessage+1))}},
		"attachment": {Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{{Type: message.ImageBlock, Attachment: &message.Attachment{Hash: hash, MediaType: "image/png", Size: 1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			n := a.Session().Len()
			if err := a.Send(m, session.NextTurn, true); err == nil {
				t.Error("it was taken")
			}
			if a.Session().Len() != n || a.Status() != agent.Idle {
				t.Error("it left something")
			}
		})
	}
	t.Run("sameID", func(t *testing.T) {
		m := message.Message{ID: "x", Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{message.Plain("x")}}
		if err := a.Send(m, session.NextStep, false); err != nil {
			t.Fatal(err)
		}
		if err := a.Send(m, session.NextTurn, false); err == nil {
			t.Error("two messages of one id wait")
		}
	})
	t.Run("target", func(t *testing.T) {
		if err := a.Send(message.Message{Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{message.Plain("x")}}, "tomorrow", false); err == nil {
			t.Error("it was taken")
		}
	})
	t.Run("full", func(t *testing.T) {
		var err error
		for range limits.AgentInbox + 1 {
			if err = a.Inject("n", "x"); err != nil {
				break
			}
		}
		if !errors.Is(err, agent.ErrFull) {
			t.Errorf("%v, want ErrFull", err)
		}
	})
}

// TestFailuresAreTold: agent/error tells what ended a turn, also when the log could
// not be written any more.
func TestFailuresAreTold(t *testing.T) {
	k := agenttest.New(t)
	told := make(chan agent.Failure, 10)
	mustOn(t)(agent.Errored.On(k.Root, func(_ context.Context, f agent.Failure) { told <- f }))
	k.Adapter(agenttest.Provider, fallible(llm.Failure{Code: llm.CodeAuth, Message: "who are you"}))
	a := k.Start(agent.Options{})
	wantEnd(t, k.Run(a, "go"), session.EndError)
	if f := <-told; f.Code != llm.CodeAuth || f.Turn != 1 || f.Step != 1 || f.Session != a.ID() {
		t.Errorf("%+v", f)
	}
	if err := a.Session().Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Wake(); err != nil {
		t.Fatal(err)
	}
	k.Idle(a)
	if f := <-told; !errors.Is(f.Err, session.ErrClosed) {
		t.Errorf("%+v", f)
	}
}
