package agent_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/llm/openai"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// fill appends turns of 48 events, of which 3 are on the surface, up to n events.
func fill(tb testing.TB, s *session.Session, n int) {
	tb.Helper()
	for turn := 1; s.Len() < int64(n); turn++ {
		payloads := []session.Payload{session.TurnStart{Turn: turn}, session.StepStart{Turn: turn, Step: 1},
			session.UserMessage{Message: message.Message{ID: fmt.Sprint("u", turn), Role: message.User, Source: message.Source{Kind: "user"}, Content: []message.Block{message.Plain("a question of the person")}}}}
		for range 40 {
			payloads = append(payloads, session.Chunk{Turn: turn, Step: 1, Chunk: message.Chunk{Type: message.TextDelta, Text: "some words of a stream "}})
		}
		call := message.Block{Type: message.CallBlock, ID: "c", Name: "echo", Arguments: `{"n":1}`}
		payloads = append(payloads,
			session.AssistantMessage{Turn: turn, Step: 1, Message: message.Message{ID: fmt.Sprint("a", turn), Role: message.Assistant, Source: message.Source{Kind: "model"}, Content: []message.Block{message.Plain("an answer of some words"), call}}},
			session.Call{Turn: turn, Step: 1, CallID: "c", Name: "echo", Arguments: call.Arguments},
			session.Result{Turn: turn, Step: 1, Message: message.Result(fmt.Sprint("r", turn), "c", false, message.Plain("what the tool said"))},
			session.StepEnd{Turn: turn, Step: 1}, session.TurnEnd{Turn: turn, Reason: session.EndReason{Kind: session.EndCompleted}})
		if _, err := s.Append(payloads...); err != nil {
			tb.Fatal(err)
		}
	}
}

// BenchmarkStep is everything of a step but the model and the tool, with 20 tools
// and a store on disk: the boundary, the request, ten chunks, an answer, one call.
func BenchmarkStep(b *testing.B) {
	for _, events := range []int{100, 50_000} {
		for _, durable := range []bool{false, true} {
			b.Run(fmt.Sprintf("events=%d/fsync=%v", events, durable), func(b *testing.B) {
				o := agenttest.Options{}
				if durable {
					store, err := jsonl.New(b.TempDir())
					if err != nil {
						b.Fatal(err)
					}
					o.Store = store
				}
				k := agenttest.NewWith(b, o)
				left := b.N
				_, err := k.Models.Register("bench", agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
					if left--; left <= 0 {
						agenttest.Say(out, "done")
						return
					}
					text := out.Open(llm.TextBlock)
					for range 6 {
						out.Append(text, "some words ")
					}
					agenttest.Calls(out, agenttest.Called{ID: "c", Name: "echo", Arguments: `{"n":1}`})
				}))
				if err != nil {
					b.Fatal(err)
				}
				s := k.Session()
				fill(b, s, events)
				defs := []*tool.Definition{echo("echo")}
				for i := range 19 {
					defs = append(defs, echo(fmt.Sprint("tool", i)))
				}
				a := k.Start(agent.Options{Session: s, Model: llm.Config{Provider: "bench", Model: "m"}, Plugins: []*cordis.Plugin{tools(defs...)}})
				if err := s.Checkpoint(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.ResetTimer()
				if end := k.Run(a, "go"); end.Kind != session.EndCompleted {
					b.Fatalf("%+v", end)
				}
			})
		}
	}
}

// BenchmarkAgents is one turn of each of 200 agents at once, streamed from a
// loopback server: the time of all of them.
func BenchmarkAgents(b *testing.B) {
	const n = 200
	k := agenttest.New(b)
	answer := sse("an answer of quite a few words, which come one by one over the wire as a model says them")
	var served atomic.Int64
	server := llmtest.Serve(b, func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		llmtest.Play("text/event-stream", answer)(w, r)
	})
	adapter, err := openai.New(openai.Options{BaseURL: server.URL})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := k.Models.Register("bench", adapter); err != nil {
		b.Fatal(err)
	}
	agents := make([]*agent.Agent, n)
	for i := range agents {
		agents[i] = k.Start(agent.Options{Model: llm.Config{Provider: "bench", Model: "m"}})
	}
	for b.Loop() {
		for _, a := range agents {
			if err := a.Followup("go"); err != nil {
				b.Fatal(err)
			}
		}
		for _, a := range agents {
			k.Idle(a)
		}
	}
	b.ReportMetric(float64(served.Load())/b.Elapsed().Seconds(), "turns/s")
}
