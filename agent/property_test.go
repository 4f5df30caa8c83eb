package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/tool"
	"pgregory.net/rapid"
)

// dice are decisions that goroutines of a run take in turn: drawn before it, so that
// a program is replayed as far as scheduling allows.
type dice struct {
	mu     sync.Mutex
	rolls  []int
	rolled int
}

func (d *dice) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rolled++
	return d.rolls[d.rolled%len(d.rolls)] % n
}

// improvise is a model that does what the dice say.
func improvise(d *dice) agenttest.Func {
	return func(ctx context.Context, r *llm.Request, out *llm.Emitter) {
		switch d.roll(12) {
		case 0, 1, 2, 3, 4:
			names := []string{"echo", "par", "fail", "panic", "slow", "steer", "conclude", "note", "missing", "par"}
			var calls []agenttest.Called
			for i := range 1 + d.roll(5) {
				calls = append(calls, agenttest.Called{ID: fmt.Sprint("c", i), Name: names[d.roll(len(names))], Arguments: []string{"", "{}", `{"n":1}`, "{"}[d.roll(4)]})
			}
			agenttest.Calls(out, calls...)
		case 5:
			out.Fail(llm.Fail(llm.CodeServer, "sometimes"))
		case 6:
			out.Fail(llm.Fail(llm.CodeAuth, "for good"))
		case 7:
			out.Call(out.Open(llm.CallBlock), "c", "echo", `{"cut`)
			out.Finish(llm.MaxTokens, lossless.Value{})
		case 8:
			out.Finish(llm.Stop, lossless.Value{})
		case 9:
			b := out.Open(llm.TextBlock)
			for range 20 {
				if err := llm.Wait(ctx, 50*time.Microsecond); err != nil {
					out.Fail(llm.AsFailure(err, llm.CodeAborted))
					return
				}
				out.Append(b, "word ")
			}
			out.Finish(llm.Stop, lossless.Value{})
		default:
			agenttest.Say(out, "fine")
		}
	}
}

// improvised are the tools of the programs.
func improvised(k *agenttest.Kit, d *dice) *cordis.Plugin {
	own := func(x *tool.Exec) *agent.Agent { a, _ := k.Agents.Of(x.Scope); return a }
	slow := func(ctx context.Context, _ *tool.Exec) (string, error) {
		return "slow", llm.Wait(ctx, time.Duration(d.roll(500))*time.Microsecond)
	}
	return tools(echo("echo"), define("par", slow, parallel), define("slow", slow),
		define("fail", func(context.Context, *tool.Exec) (string, error) { return "", errors.New("failed") }),
		define("panic", func(context.Context, *tool.Exec) (string, error) { panic("panicked") }, parallel),
		define("steer", func(_ context.Context, x *tool.Exec) (string, error) { return "steered", own(x).Steer("steering") }),
		define("conclude", func(_ context.Context, x *tool.Exec) (string, error) { x.ConcludeTurn(); return "over", nil }),
		define("note", func(_ context.Context, x *tool.Exec) (string, error) {
			x.DeferContext(tool.Message{Content: []tool.Block{tool.TextBlock("note")}})
			return "noted", nil
		}))
}

// TestPrograms: whatever people, models and tools do, and whenever it is cancelled,
// ended or resumed, the log is whole, nobody's message is lost, and every request is
// what the log says.
func TestPrograms(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := &dice{rolls: rapid.SliceOfN(rapid.IntRange(0, 1<<20), 10, 100).Draw(r, "dice")}
		store := memory.New()
		k := agenttest.NewWith(t, agenttest.Options{Store: store, Agents: agent.Config{MaxParallel: 3, Retry: llm.Retry{Max: 1, Base: 1, Limit: 1}}})
		defer k.Close()
		k.Adapter(agenttest.Provider, improvise(d))
		options := agent.Options{Session: k.Session(), MaxSteps: 6, Plugins: []*cordis.Plugin{improvised(k, d)}}
		a := k.Start(options)
		sent := 0
		for range rapid.IntRange(1, 12).Draw(r, "acts") {
			switch act := rapid.SampledFrom([]string{"followup", "followup", "steer", "inject", "idle", "cancel", "keep", "pause", "maintain", "resume"}).Draw(r, "act"); act {
			case "followup", "steer", "inject":
				sent++
				text := fmt.Sprint("message ", sent, ".")
				err := map[string]func(string) error{"followup": a.Followup, "steer": a.Steer, "inject": func(s string) error { return a.Inject("n", s) }}[act](text)
				if err != nil {
					r.Fatal(err)
				}
			case "idle":
				k.Idle(a)
			case "cancel", "keep":
				a.Cancel(agent.Cause{Kind: agent.CauseUser}, act == "keep")
			case "pause":
				time.Sleep(time.Duration(rapid.IntRange(0, 300).Draw(r, "µs")) * time.Microsecond)
			case "maintain":
				if err := a.Maintain(k.Context(), func(context.Context) error { return nil }); err != nil {
					r.Fatal(err)
				}
			case "resume":
				if options.Session.Len() == 0 {
					continue // of which nothing would be left
				}
				if err := errors.Join(a.Close(k.Context()), options.Session.Close(k.Context())); err != nil {
					r.Fatal(err)
				}
				s, err := store.Open(k.Context(), a.ID())
				if err != nil {
					r.Fatal(err)
				}
				k.Own(s)
				options.Session = s
				a = k.Start(options)
			}
		}
		k.Idle(a)
		checkLog(r, options.Session, sent)
	})
}

// checkLog holds what is true of every log between turns.
func checkLog(r *rapid.T, s *session.Session, sent int) {
	if _, err := session.NewLog(s.Meta(), s.Events(0)); err != nil {
		r.Fatalf("the log cannot be read again: %v", err)
	}
	if at := s.Turn(); at.TurnOpen || at.StepOpen {
		r.Fatalf("idle, and the log is at %+v", at)
	}
	calls, results := map[string]int{}, map[string]int{}
	turn, step := 0, 0
	var all strings.Builder
	for _, e := range s.Events(0) {
		p, err := e.Payload()
		if err != nil {
			r.Fatal(err)
		}
		switch p := p.(type) {
		case session.StepStart:
			turn, step = p.Turn, p.Step
		case session.AssistantMessage:
			for _, c := range p.Message.Calls() {
				calls[fmt.Sprint(turn, step, c.ID)]++
			}
		case session.Result:
			results[fmt.Sprint(turn, step, p.Message.Source.CallID)]++
		case session.UserMessage:
			all.WriteString(p.Message.Text())
		}
	}
	for id := range calls {
		if calls[id] != 1 || results[id] != 1 {
			r.Fatalf("call %s: %d times, %d results", id, calls[id], results[id])
		}
	}
	if len(calls) != len(results) {
		r.Fatalf("%d calls, %d results", len(calls), len(results))
	}
	for i := 1; i <= sent; i++ {
		text := fmt.Sprint("message ", i, ".")
		if n := strings.Count(all.String(), text); n > 1 {
			r.Fatalf("%q was said %d times", text, n)
		}
		if !strings.Contains(all.String(), text) && !waits(s, text) && !dropped(r, s) {
			r.Fatalf("%q was neither said, nor does it wait, nor was it dropped by a cancellation", text)
		}
	}
}

func waits(s *session.Session, text string) bool {
	for _, target := range []session.Target{session.NextTurn, session.NextStep} {
		for _, m := range s.Inbox(target) {
			if m.Text() == text {
				return true
			}
		}
	}
	return false
}

// dropped says whether a cancellation ever dropped what waited, or ended a turn that
// had claimed it: one that comes when a turn is over still drops the queue.
func dropped(r *rapid.T, s *session.Session) bool {
	for _, e := range s.Events(0) {
		p, err := e.Payload()
		if err != nil {
			r.Fatal(err)
		}
		switch p := p.(type) {
		case session.InboxSplice:
			if p.Outcome == "canceled" {
				return true
			}
		case session.TurnEnd:
			if p.Reason.Kind == session.EndAborted && p.Reason.Abort.Kind == "user" {
				return true
			}
		}
	}
	return false
}
