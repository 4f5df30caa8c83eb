package providertest

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/agent/repeat"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const retries = 2

// stage is an agent whose model is a server that plays answers, one for each request,
// and then says ok.
type stage struct {
	*agenttest.Kit
	agent    *agent.Agent
	requests atomic.Int64
}

func newStage(t *testing.T, w wire, o agent.Options, answers ...http.HandlerFunc) *stage {
	t.Helper()
	s := &stage{Kit: agenttest.NewWith(t, agenttest.Options{
		Agents: agent.Config{Retry: llm.Retry{Max: retries, Base: time.Millisecond, Limit: 5 * time.Second}},
	})}
	server := llmtest.Serve(t, func(out http.ResponseWriter, r *http.Request) {
		if i := int(s.requests.Add(1)) - 1; i < len(answers) {
			answers[i](out, r)
			return
		}
		play(w.says("ok"))(out, r)
	})
	a, err := w.adapter(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.Adapter("http", a)
	o.Model = llm.Config{Provider: "http", Model: "m"}
	s.agent = s.Start(o)
	return s
}

func play(pieces ...[]byte) http.HandlerFunc { return llmtest.Play("text/event-stream", pieces...) }

// slowly plays pieces with a pause before each.
func slowly(pause time.Duration, pieces ...[]byte) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range pieces {
			time.Sleep(pause)
			if _, err := w.Write(p); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func refuse(status int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		http.Error(w, `{"error":{"message":"no"}}`, status)
	}
}

func times(n int, h http.HandlerFunc) (list []http.HandlerFunc) {
	for range n {
		list = append(list, h)
	}
	return list
}

// want is what a turn comes to.
type want struct {
	text     string // of the last answer; "" where the turn fails
	code     string // of the failure
	requests int64
	failures string // codes of the requests that were made again
}

func TestFaults(t *testing.T) {
	t.Parallel()
	const word = "zwölf Kühe 🐄"
	for name, c := range map[string]struct {
		answers func(w wire) []http.HandlerFunc
		want    want
	}{
		"slow": {func(w wire) []http.HandlerFunc {
			whole := w.says(word) // takes longer than a stall
			return []http.HandlerFunc{slowly(idle/10, slices.Collect(slices.Chunk(whole, len(whole)/12))...)}
		}, want{text: word, requests: 1}},
		"half_a_rune": {func(w wire) []http.HandlerFunc {
			whole := w.says(word)
			at := bytes.Index(whole, []byte("🐄"))
			return []http.HandlerFunc{slowly(idle/10, whole[:at+1], whole[at+1:at+3], whole[at+3:])}
		}, want{text: word, requests: 1}},
		"cut_in_a_rune": {func(w wire) []http.HandlerFunc {
			whole := w.says(word)
			return []http.HandlerFunc{play(whole[:bytes.Index(whole, []byte("🐄"))+2], []byte{})}
		}, want{text: "ok", requests: 2, failures: llm.CodeStreamClosed}},
		"cut": {func(w wire) []http.HandlerFunc {
			return []http.HandlerFunc{play(w.text(0, "half"), []byte{}), play(w.text(0, "half"))}
		}, want{text: "ok", requests: 3, failures: llm.CodeStreamClosed + " " + llm.CodeStreamClosed}},
		"stall": {func(w wire) []http.HandlerFunc {
			return []http.HandlerFunc{play(w.text(0, "half"), nil)}
		}, want{text: "ok", requests: 2, failures: llm.CodeTimeout}},
		"stall_for_ever": {func(w wire) []http.HandlerFunc {
			return times(retries+1, play(w.text(0, "half"), nil))
		}, want{code: llm.CodeTimeout, requests: 3, failures: llm.CodeTimeout + " " + llm.CodeTimeout}},
		"error_within": {func(w wire) []http.HandlerFunc {
			return []http.HandlerFunc{play(append(w.text(0, "half"), w.fault(w.passes)...))}
		}, want{text: "ok", requests: 2, failures: "*"}},
		"error_that_stays_within": {func(w wire) []http.HandlerFunc {
			return []http.HandlerFunc{play(append(w.text(0, "half"), w.fault(w.stays)...))}
		}, want{code: llm.CodeInvalidRequest, requests: 1}},
		"429": {func(wire) []http.HandlerFunc { return []http.HandlerFunc{refuse(429)} },
			want{text: "ok", requests: 2, failures: llm.CodeRateLimit}},
		"429_wait": {func(wire) []http.HandlerFunc { return []http.HandlerFunc{refuse(429, "Retry-After-Ms", "30")} },
			want{text: "ok", requests: 2, failures: llm.CodeRateLimit}},
		"429_wait_too_long": {func(wire) []http.HandlerFunc { return []http.HandlerFunc{refuse(429, "Retry-After", "3600")} },
			want{code: llm.CodeRateLimit, requests: 1}},
		"529": {func(wire) []http.HandlerFunc { return times(retries+1, refuse(529)) },
			want{code: llm.CodeServer, requests: 3, failures: llm.CodeServer + " " + llm.CodeServer}},
		"529_wait": {func(wire) []http.HandlerFunc { return []http.HandlerFunc{refuse(529, "Retry-After-Ms", "30")} },
			want{text: "ok", requests: 2, failures: llm.CodeServer}},
		"empty": {func(w wire) []http.HandlerFunc { return times(retries+1, play(w.end(false))) },
			want{code: llm.CodeEmpty, requests: 3, failures: llm.CodeEmpty + " " + llm.CodeEmpty}},
		"no_answer": {func(wire) []http.HandlerFunc { return times(retries+1, play()) },
			want{code: "*", requests: 3, failures: "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			forEachWire(t, func(t *testing.T, w wire) {
				s := newStage(t, w, agent.Options{}, c.answers(w)...)
				s.expect(s.Run(s.agent, "go"), c.want)
				s.goesOn()
			})
		})
	}
}

// expect compares a turn.
func (s *stage) expect(end session.EndReason, w want) {
	s.T.Helper()
	answer, code := "", ""
	if end.Error != nil {
		code = end.Error.Code
	}
	if said := agenttest.Payloads[session.AssistantMessage](s.T, s.agent.Session().Log); len(said) > 0 {
		answer = said[len(said)-1].Message.Text()
	}
	var failures []string
	for _, r := range agenttest.Payloads[session.Retry](s.T, s.agent.Session().Log) {
		failures = append(failures, r.Failure.Code)
	}
	kind := session.EndCompleted
	if w.code != "" {
		kind = session.EndError
	}
	if end.Kind != kind || w.code != "*" && code != w.code || answer != w.text || s.requests.Load() != w.requests ||
		w.failures != "*" && strings.Join(failures, " ") != w.failures {
		s.T.Errorf("the turn ended %+v %v; answer %q, %d requests, made again after %v; want %+v", end, end.Error, answer, s.requests.Load(), failures, w)
	}
}

// goesOn does a turn more, which nothing disturbs.
func (s *stage) goesOn() {
	s.T.Helper()
	before := s.requests.Load()
	if end := s.Run(s.agent, "and on"); end.Kind != session.EndCompleted || s.requests.Load() != before+1 {
		s.T.Errorf("the next turn ended %+v %v after %d requests", end, end.Error, s.requests.Load()-before)
	}
}

var (
	number   = schema.Must(schema.Parameters(schema.Object(schema.Prop("n", schema.Integer(""), schema.Required))))
	anything = schema.Must(schema.Output(schema.Object()))
)

// echo is a tool.
func echo(ran *atomic.Int64) *cordis.Plugin {
	return &cordis.Plugin{Name: "echo", Inject: cordis.Require(tool.Service.Name()), Apply: func(c *cordis.Context, _ any) error {
		tools, err := tool.Service.Use(c)
		if err != nil {
			return err
		}
		_, err = tools.Register(c, &tool.Definition{
			Name: "echo", Description: "Echoes.", Parameters: number,
			Output: tool.Output{Schema: anything, Render: func(_ context.Context, _, v lossless.Text) ([]tool.Block, error) {
				return []tool.Block{tool.TextBlock(string(v))}, nil
			}},
			ConcurrencySafe: func(context.Context, lossless.Text) bool { return true },
			Execute: func(_ context.Context, x *tool.Exec) (tool.Outcome, error) {
				ran.Add(1)
				return tool.Outcome{Value: x.Arguments}, nil
			},
		})
		return err
	}}
}

// results are the tool results of the session, in their order.
func (s *stage) results() (list []message.Block) {
	for _, r := range agenttest.Payloads[session.Result](s.T, s.agent.Session().Log) {
		for _, b := range r.Message.Content {
			if b.Type == message.ResultBlock {
				list = append(list, b)
			}
		}
	}
	return list
}

// TestCalls: every call has one result, in the order of the answer, also one that
// cannot be made.
func TestCalls(t *testing.T) {
	t.Parallel()
	many := make([]agenttest.Called, 200)
	for i := range many {
		many[i] = agenttest.Called{ID: fmt.Sprintf("c%d", i), Name: "echo", Arguments: fmt.Sprintf(`{"n":%d}`, i)}
	}
	for name, c := range map[string]struct {
		calls []agenttest.Called
		wrong int
	}{
		"no_json":    {[]agenttest.Called{{ID: "1", Name: "echo", Arguments: `{"n":`}}, 1},
		"wrong_type": {[]agenttest.Called{{ID: "1", Name: "echo", Arguments: `{"n":"x"}`}, {ID: "2", Name: "echo", Arguments: `{"n":1}`}}, 1},
		"no_object":  {[]agenttest.Called{{ID: "1", Name: "echo", Arguments: `[1]`}}, 1},
		"unknown":    {[]agenttest.Called{{ID: "1", Name: "ecko", Arguments: `{}`}, {ID: "2", Name: "echo", Arguments: `{"n":1}`}}, 1},
		"many":       {many, 0},
	} {
		t.Run(name, func(t *testing.T) {
			forEachWire(t, func(t *testing.T, w wire) {
				var ran atomic.Int64
				s := newStage(t, w, agent.Options{Plugins: []*cordis.Plugin{echo(&ran)}}, play(w.calls(c.calls...)))
				s.expect(s.Run(s.agent, "go"), want{text: "ok", requests: 2})
				results := s.results()
				if len(results) != len(c.calls) || int(ran.Load()) != len(c.calls)-c.wrong {
					t.Fatalf("%d calls, %d ran, %d results", len(c.calls), ran.Load(), len(results))
				}
				for i, r := range results {
					if r.CallID != c.calls[i].ID {
						t.Errorf("result %d is of %s, want %s", i, r.CallID, c.calls[i].ID)
					}
					if wrong := i < c.wrong; r.IsError != wrong {
						t.Errorf("result %d: %+v", i, r)
					}
				}
				s.goesOn()
			})
		})
	}
}

// TestForEver: a model that calls a tool for ever is reminded, and ended by the limit
// of steps.
func TestForEver(t *testing.T) {
	t.Parallel()
	const steps = 12
	forEachWire(t, func(t *testing.T, w wire) {
		var ran atomic.Int64
		answers := make([]http.HandlerFunc, 0, 2*steps)
		for i := range 2 * steps {
			answers = append(answers, play(w.calls(agenttest.Called{ID: fmt.Sprintf("c%d", i), Name: "echo", Arguments: `{"n":1}`})))
		}
		s := newStage(t, w, agent.Options{MaxSteps: steps, Plugins: []*cordis.Plugin{echo(&ran), repeat.Plugin()}}, answers...)
		end := s.Run(s.agent, "go")
		if end.Kind != session.EndLimit || s.requests.Load() != steps || ran.Load() != steps {
			t.Errorf("the turn ended %+v after %d requests, %d calls", end, s.requests.Load(), ran.Load())
		}
		reminded := 0
		for _, m := range agenttest.Payloads[session.UserMessage](t, s.agent.Session().Log) {
			if m.Message.Source.Name == repeat.Name {
				reminded++
			}
		}
		if reminded == 0 {
			t.Error("nobody reminded it")
		}
	})
}
