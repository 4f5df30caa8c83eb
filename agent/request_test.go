package agent_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/message"
	"github.com/google/go-cmp/cmp"
)

func ms(n int64) *int64 { return &n }

// still is the default policy without its random part.
func still() llm.Retry {
	r := llm.DefaultRetry()
	r.Jitter = 0
	return r
}

func TestRetries(t *testing.T) {
	server := llm.Failure{Code: llm.CodeServer, Message: "oops", Status: 500}
	for _, c := range []struct {
		name     string
		failures []llm.Failure
		want     []string // between the header and the end of the step
		end      session.EndKind
		took     time.Duration
	}{
		{"twice", []llm.Failure{server, server}, []string{"retry 1 SERVER 500ms", "again 1", "retry 2 SERVER 1000ms", "again 2", "model: done"}, session.EndCompleted, 1500 * time.Millisecond},
		{"tooOften", []llm.Failure{server, server, server}, []string{"retry 1 SERVER 500ms", "again 1", "retry 2 SERVER 1000ms", "again 2"}, session.EndError, 1500 * time.Millisecond},
		{"retryAfter", []llm.Failure{{Code: llm.CodeRateLimit, Message: "slow", RetryAfterMs: ms(7000)}}, []string{"retry 1 RATE_LIMIT 7000ms", "again 1", "model: done"}, session.EndCompleted, 7 * time.Second},
		{"retryAfterBeyondTheLimit", []llm.Failure{{Code: llm.CodeRateLimit, Message: "slow", RetryAfterMs: ms(60_000)}}, nil, session.EndError, 0},
		{"forGood", []llm.Failure{{Code: llm.CodeAuth, Message: "no"}}, nil, session.EndError, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: still()}})
				k.Adapter(agenttest.Provider, fallible(c.failures...))
				a := k.Start(agent.Options{})
				begin := time.Now()
				wantEnd(t, k.Run(a, "go"), c.end)
				if took := time.Since(begin); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				got := outline(a.Session())
				if diff := cmp.Diff(c.want, got[4:len(got)-2], cmp.Transformer("", func(s []string) string { return strings.Join(s, "\n") })); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
	t.Run("empty", func(t *testing.T) {
		k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: llm.Retry{Max: 1, Base: 1, Limit: 1}}})
		n := 0
		k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, _ *llm.Request, out *llm.Emitter) {
			if n++; n > 1 {
				agenttest.Say(out, "done")
				return
			}
			out.Finish(llm.Stop, lossless.Value{})
		}))
		a := k.Start(agent.Options{})
		wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial []", "retry 1 EMPTY_RESPONSE 0ms", "again 1", "model: done", "/step", "/turn completed")
	})
	t.Run("never", func(t *testing.T) {
		k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: llm.Retry{Max: -1}}})
		k.Adapter(agenttest.Provider, fallible(server))
		wantEnd(t, k.Run(k.Start(agent.Options{}), "go"), session.EndError)
	})
	t.Run("eachStepHasItsOwn", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: still()}})
			k.Script(`steps:
- {calls: [{name: echo}], failures: [{code: SERVER}, {code: SERVER}]}
- {text: ok, failures: [{code: SERVER, text: "half "}, {code: SERVER}]}
`)
			a := k.Start(agent.Options{Plugins: []*cordis.Plugin{tools(echo("echo"))}})
			wantEnd(t, k.Run(a, "go"), session.EndCompleted)
		})
	})
}

func TestRequestErrorListener(t *testing.T) {
	recovering := func(fn func(agent.RequestError) agent.Recovery) *cordis.Plugin {
		return on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.RequestFailed.On(c, func(ctx context.Context, e agent.RequestError, next func(context.Context) (agent.Recovery, error)) (agent.Recovery, error) {
				if r := fn(e); r.Kind != "" {
					return r, nil
				}
				return next(ctx)
			})
		})
	}
	t.Run("makesItSmaller", func(t *testing.T) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
			if len(r.Messages[0].Text()) > 100 {
				out.Fail(llm.Fail(llm.CodeContextWindow, "too long"))
				return
			}
			agenttest.Say(out, "ok")
		}))
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{recovering(func(e agent.RequestError) agent.Recovery {
			if e.Failure.Code != llm.CodeContextWindow {
				return agent.Recovery{}
			}
			s := e.Agent.Session()
			n := s.Surface()[0]
			_, err := s.Append(session.UserMessage{Message: message.Message{ID: "short", Role: message.User, Source: message.Source{Kind: "plugin", Name: "compact"}, Content: []message.Block{message.Plain("short")}},
				Op: session.Op{Kind: session.Replace, Start: n.Seq, End: n.Seq}, Sources: []int64{n.Seq}})
			if err != nil {
				t.Error(err)
			}
			return agent.Recovery{Kind: agent.Retry, Policy: "compact"}
		})}})
		wantEnd(t, k.Run(a, strings.Repeat("long ", 100)), session.EndCompleted)
	})
	t.Run("forEver", func(t *testing.T) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, _ *llm.Request, out *llm.Emitter) { out.Fail(llm.Fail(llm.CodeAuth, "no")) }))
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{recovering(func(agent.RequestError) agent.Recovery { return agent.Recovery{Kind: agent.Retry} })}})
		wantEnd(t, k.Run(a, "go"), session.EndError)
		if n := len(agenttest.Payloads[session.Retry](t, a.Session().Log)); n != limits.AgentRecoveries {
			t.Errorf("%d retries", n)
		}
	})
	t.Run("givesUp", func(t *testing.T) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, fallible(llm.Failure{Code: llm.CodeServer, Message: "x"}))
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{recovering(func(agent.RequestError) agent.Recovery { return agent.Recovery{Kind: agent.GiveUp} })}})
		wantEnd(t, k.Run(a, "go"), session.EndError)
	})
	t.Run("nonsense", func(t *testing.T) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, fallible(llm.Failure{Code: llm.CodeServer, Message: "x"}))
		a := k.Start(agent.Options{Plugins: []*cordis.Plugin{recovering(func(agent.RequestError) agent.Recovery { return agent.Recovery{Kind: "maybe"} })}})
		end := k.Run(a, "go")
		wantEnd(t, end, session.EndError)
		if !strings.Contains(end.Error.Message, "maybe") {
			t.Error(end.Error)
		}
	})
}

// TestRequestListener: a listener may send a request elsewhere; the header says so.
func TestRequestListener(t *testing.T) {
	k := agenttest.New(t)
	ok := agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
		agenttest.Say(out, "from "+r.Provider+" "+r.System)
	})
	k.Adapter("first", fallible(llm.Failure{Code: llm.CodeQuota, Message: "empty"}))
	k.Adapter("second", ok)
	failed := false
	a := k.Start(agent.Options{Model: llm.Config{Provider: "first", Model: "m"}, Plugins: []*cordis.Plugin{
		on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.RequestFailed.On(c, func(context.Context, agent.RequestError, func(context.Context) (agent.Recovery, error)) (agent.Recovery, error) {
				failed = true
				return agent.Recovery{Kind: agent.Retry, Policy: "fallback"}, nil
			})
		}),
		on(func(c *cordis.Context) (*cordis.Handle, error) {
			return agent.Requesting.On(c, func(ctx context.Context, p agent.RequestPlan, next func(context.Context) (llm.Config, error)) (llm.Config, error) {
				config, err := next(ctx)
				if failed {
					config.Provider, config.Temperature = "second", new(float64)
				}
				return config, err
			})
		})}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	headers := agenttest.Payloads[session.RequestHeader](t, a.Session().Log)
	if len(headers) != 2 || headers[1].Header.Config.String() != `{"provider":"second","model":"m","temperature":0}` {
		t.Errorf("%+v", headers)
	}
	where := agenttest.Payloads[session.RequestContext](t, a.Session().Log)
	if len(where) != 2 || where[1].Provider != "second" || where[1].ContextWindow != 100_000 {
		t.Errorf("%+v", where)
	}
}

func TestBadConfig(t *testing.T) {
	for name, c := range map[string]llm.Config{"provider": {Provider: "nobody", Model: "m"}, "model": {Provider: agenttest.Provider}, "tokens": {Provider: agenttest.Provider, Model: "m", MaxTokens: -1}} {
		t.Run(name, func(t *testing.T) {
			k := agenttest.New(t)
			k.Adapter(agenttest.Provider, fallible())
			wantEnd(t, k.Run(k.Start(agent.Options{Model: c}), "go"), session.EndError)
		})
	}
}

// rogue is an adapter that does not use the Emitter.
type rogue struct {
	agenttest.Func
	chunks []llm.Chunk
}

func (r rogue) Stream(context.Context, *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		for _, c := range r.chunks {
			if c.Type == "panic" {
				panic("the adapter broke")
			}
			if !yield(c) {
				return
			}
		}
	}
}

func TestRogueAdapters(t *testing.T) {
	called := func(id string) llm.Chunk {
		return llm.Chunk{Type: llm.CallDelta, Index: len(id), ID: id, Name: "echo"}
	}
	for _, c := range []struct {
		name   string
		chunks []llm.Chunk
		code   string
	}{
		{"panic", []llm.Chunk{{Type: "panic"}}, llm.CodeInternal},
		{"nothing", nil, llm.CodeEmpty},
		{"sameID", []llm.Chunk{called("a"), {Type: llm.CallDelta, Index: 7, ID: "a", Name: "echo"}}, llm.CodeMalformed},
		{"noID", []llm.Chunk{called("")}, llm.CodeMalformed},
		{"failureWithoutReason", []llm.Chunk{{Type: llm.Finish, Reason: llm.Failed}}, llm.CodeInternal},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: llm.Retry{Max: -1}}})
			k.Adapter(agenttest.Provider, rogue{chunks: c.chunks})
			end := k.Run(k.Start(agent.Options{}), "go")
			if end.Kind != session.EndError || end.Error.Code != c.code {
				t.Errorf("end = %+v, want %s", end, c.code)
			}
		})
	}
	t.Run("cutArgumentsOfMaxTokens", func(t *testing.T) {
		k := agenttest.New(t)
		k.Adapter(agenttest.Provider, rogue{chunks: []llm.Chunk{called("a"), {Type: llm.Finish, Reason: llm.MaxTokens}}})
		a := k.Start(agent.Options{})
		wantEnd(t, k.Run(a, "go"), session.EndMaxTokens)
		wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial []", "model: ", "/step", "/turn max-tokens")
	})
}

func TestAsk(t *testing.T) {
	k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: llm.Retry{Max: 1, Base: 1, Limit: 1}}})
	k.Script(`steps: [{text: ok, usage: {input: 1, output: 1}}]
purposes:
  compact: [{text: "a summary", usage: {input: 100, output: 10}, failures: [{code: SERVER}]}]
  plugin: [{text: x, failures: [{code: AUTH}]}]
`)
	a := k.Start(agent.Options{})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	before := len(a.Session().Surface())
	answer, err := a.Ask(k.Context(), agent.OneShot{Purpose: "compact", Owner: "compact", System: "be short", MaxTokens: 50, Messages: []llm.Message{{Role: llm.User, Content: []llm.Block{llm.Plain("sum up")}}}})
	if err != nil || llm.JoinText(answer.Content) != "a summary" {
		t.Fatalf("Ask = %+v, %v", answer, err)
	}
	calls := agenttest.Payloads[session.LLMCall](t, a.Session().Log)
	if len(calls) != 2 || calls[0].Failure == nil || calls[1].Answer == nil || calls[1].Owner != "compact" {
		t.Fatalf("llm/call: %+v", calls)
	}
	r, err := agent.OneShotOf(calls[1], a.ID())
	if err != nil || r.System != "be short" || r.MaxTokens != 50 || r.Messages[0].Text() != "sum up" || r.Purpose != "compact" {
		t.Errorf("OneShotOf = %+v, %v", r, err)
	}
	if a.Usage().Total() != 112 {
		t.Errorf("Usage = %+v", a.Usage())
	}
	if len(a.Session().Surface()) != before {
		t.Error("a one-shot request is on the surface")
	}
	var f *llm.Failure
	if _, err := a.Ask(k.Context(), agent.OneShot{Messages: []llm.Message{llm.UserText("x")}}); !errors.As(err, &f) || f.Code != llm.CodeAuth {
		t.Errorf("Ask = %v, want AUTH", err)
	}
	if _, err := a.Ask(k.Context(), agent.OneShot{Messages: []llm.Message{{Role: "system"}}}); err == nil {
		t.Error("a bad message was taken")
	}
	cancelled, cancel := context.WithCancel(k.Context())
	cancel()
	if _, err := a.Ask(cancelled, agent.OneShot{Purpose: "compact", Messages: []llm.Message{llm.UserText("x")}}); err == nil {
		t.Error("a cancelled request was made")
	}
	if err := a.Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Ask(k.Context(), agent.OneShot{Messages: []llm.Message{llm.UserText("x")}}); !errors.Is(err, agent.ErrClosed) {
		t.Errorf("Ask after Close = %v", err)
	}
}

// TestResume: the next life begins with a whole header, the effort that was in
// force, and its prompts; what is sent is what the log says.
func TestResume(t *testing.T) {
	store := memory.New()
	script := "steps: [{text: one}, {text: two}, {text: three}]"
	k := agenttest.NewWith(t, agenttest.Options{Store: store})
	k.Script(script)
	s := k.Session()
	a := k.Start(agent.Options{Session: s, Model: llm.Config{Provider: agenttest.Provider, Model: "m", Effort: "high"}})
	wantEnd(t, k.Run(a, "go"), session.EndCompleted)
	if err := a.Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(k.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s, err := store.Open(k.Context(), s.Meta().ID)
		if err != nil {
			t.Fatal(err)
		}
		k.Own(s)
		var kind agent.StartKind
		h, err := agent.SessionStarted.On(k.Root, func(_ context.Context, e agent.SessionStart) { kind = e.Kind })
		if err != nil {
			t.Fatal(err)
		}
		a = k.Start(agent.Options{Session: s, Model: llm.Config{Provider: agenttest.Provider, Model: "m"}})
		if kind != agent.Resume {
			t.Errorf("kind = %s", kind)
		}
		if a.Model().Effort != "high" {
			t.Errorf("the effort is %q", a.Model().Effort)
		}
		wantEnd(t, k.Run(a, "on"), session.EndCompleted)
		_ = h.Dispose(k.Context())
		if err := errors.Join(a.Close(k.Context()), s.Close(k.Context())); err != nil {
			t.Fatal(err)
		}
	}
	wantOutline(t, a, "turn 1", "step 1", "user: go", "header initial []", "model: one", "/step", "/turn completed",
		"turn 2", "step 1", "user: on", "header resume []", "model: two", "/step", "/turn completed",
		"turn 3", "step 1", "user: on", "header resume []", "model: three", "/step", "/turn completed")
}
