package compact_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/agent/compact"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// TestFarBeyondTheWindow: a conversation of many times the window goes on working.
// What was said first is still known at the end, no request was refused, and the
// person's history is whole. The kit rebuilds every request from the log.
func TestFarBeyondTheWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		size int
	}{{"big-results", 9000}, {"small-results", 2000}} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.New(t)
			m := &small{window: 12_000, answer: works(c.size), summary: keeps}
			a := start(k, m, agent.Options{})
			const turns = 25
			for i := range turns {
				completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
			}
			if m.refused > 0 || len(m.invalid) > 0 {
				t.Errorf("%d requests refused, invalid: %v", m.refused, m.invalid)
			}
			got := outcomes(t, a.Session())
			if got["full done"] < 3 || got["full failed"] > 0 || c.size > 8192 && got["prune done"] < 3 {
				t.Errorf("compactions: %v", got)
			}
			request, err := a.Session().Request()
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, m := range request.Messages {
				text += m.Text()
			}
			for i := range turns {
				if !strings.Contains(text, fmt.Sprintf("KEEP-%d", i)) {
					t.Errorf("prompt %d is forgotten", i)
				}
			}
			prompts := 0
			for _, e := range agenttest.Payloads[session.UserMessage](t, a.Session().Log) {
				if e.Message.Source.Kind == message.SourceUser {
					prompts++
				}
			}
			if prompts != turns {
				t.Errorf("the log has %d prompts of %d", prompts, turns)
			}
		})
	}
}

// TestPrefix: only a compaction changes what came before.
func TestPrefix(t *testing.T) {
	k := agenttest.New(t)
	m := &small{window: 12_000, answer: works(9000), summary: keeps}
	a := start(k, m, agent.Options{})
	for i := range 12 {
		completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
	}
	var before agenttest.Sent
	changed := 0
	for _, sent := range k.Recorder.Sent(a.ID()) {
		if sent.Purpose != "" {
			continue
		}
		body := strings.TrimSuffix(string(before.Body), "]}")
		if !strings.HasPrefix(string(sent.Body), body) {
			changed++
			since := map[session.Type]bool{}
			for _, e := range a.Session().Events(before.Len)[:sent.Len-before.Len] {
				since[e.Type] = true
			}
			if !since[session.TypeCompactEnd] {
				t.Errorf("the request at event %d changed what came before, without a compaction", sent.Len)
			}
		}
		before = sent
	}
	if ends := len(agenttest.Payloads[session.CompactEnd](t, a.Session().Log)); changed == 0 || changed > ends {
		t.Errorf("%d changes, %d compactions", changed, ends)
	}
}

// TestWindowNotKnown: nothing happens before the provider refuses; then the request
// is made again in its step.
func TestWindowNotKnown(t *testing.T) {
	k := agenttest.New(t)
	m := &small{window: 9000, silent: true, answer: works(9000), summary: keeps}
	a := start(k, m, agent.Options{})
	for i := range 12 {
		completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
	}
	starts := agenttest.Payloads[session.CompactStart](t, a.Session().Log)
	retries := agenttest.Payloads[session.Retry](t, a.Session().Log)
	if m.refused == 0 || len(starts) == 0 || len(m.invalid) > 0 {
		t.Fatalf("%d refused, %d compactions, invalid: %v", m.refused, len(starts), m.invalid)
	}
	for _, r := range retries {
		if r.Policy != compact.Name || r.Failure.Code != llm.CodeContextWindow {
			t.Errorf("%+v", r)
		}
	}
	if got := outcomes(t, a.Session()); got["full done"] == 0 || got["prune done"] == 0 || got["full failed"] > 0 {
		t.Errorf("compactions: %v", got)
	}
	first := int64(-1)
	for _, e := range a.Session().Events(0) {
		if e.Type == session.TypeCompactStart && first < 0 {
			first = e.Seq
		}
		if e.Type == session.TypeChunk && strings.Contains(e.Data(), llm.CodeContextWindow) {
			if first >= 0 {
				t.Errorf("compacted at event %d, before the first refusal at %d", first, e.Seq)
			}
			break
		}
	}
}

// TestNoLoop: a summary that is of no use ends the turn with an error that teaches,
// after a bounded number of requests; so does the next turn.
func TestNoLoop(t *testing.T) {
	blah := func(string) string { return strings.Repeat("blah ", 3000) }
	for _, c := range []struct {
		name    string
		summary func(string) string
		silent  bool
		why     string
	}{
		{"as-long-as-before", blah, true, "hardly shorter"},
		{"empty", func(string) string { return "" }, true, "EMPTY"},
		{"known-window", blah, false, "hardly shorter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := agenttest.NewWith(t, agenttest.Options{Agents: agent.Config{Retry: llm.Retry{Max: -1}}})
			m := &small{window: 3000, silent: c.silent, summary: c.summary, answer: func(*llm.Request) (string, []string) { return "Yes. " + strings.Repeat("word ", 300), nil }}
			a := start(k, m, agent.Options{})
			var end session.EndReason
			turns := 0
			for ; end.Kind != session.EndError && turns < 40; turns++ {
				end = k.Run(a, fmt.Sprintf("Say it %d. %s", turns, strings.Repeat("please ", 200)))
			}
			if end.Kind != session.EndError {
				t.Fatalf("ended %+v after %d turns", end, turns)
			}
			for range 2 {
				if end.Kind != session.EndError {
					t.Fatalf("ended %+v", end)
				}
				f := end.Error
				for _, part := range []string{"does not fit into the context window of small/m", "begin a new session", "larger window", "The provider said"} {
					if f.Code != llm.CodeContextWindow || !strings.Contains(f.Message, part) {
						t.Errorf("it lacks %q: %+v", part, f)
					}
				}
				if !strings.Contains(f.Message, c.why) && c.name != "empty" {
					t.Errorf("it lacks %q: %+v", c.why, f)
				}
				before := m.requests
				end = k.Run(a, "Again.")
				if n := m.requests - before; n > 8 {
					t.Errorf("%d requests in one turn", n)
				}
			}
		})
	}
}

// TestOneMessageTooLarge: what can be made smaller is, and then the error says so.
func TestOneMessageTooLarge(t *testing.T) {
	k := agenttest.New(t)
	m := &small{window: 3000, silent: true, answer: works(1000), summary: keeps}
	a := start(k, m, agent.Options{})
	completed(k, a, "KEEP-1 and work.")
	end := k.Run(a, strings.Repeat("too much ", 2000))
	if end.Kind != session.EndError || end.Error.Code != llm.CodeContextWindow || !strings.Contains(end.Error.Message, "a shorter message") {
		t.Fatalf("%+v", end)
	}
	// The message is in the conversation now. The next turn summarises it away.
	completed(k, a, "KEEP-2 and work.")
}

// TestResumeAndFork: a conversation that was compacted goes on in another life, and
// in a fork. The kit rebuilds all requests.
func TestResumeAndFork(t *testing.T) {
	k := agenttest.New(t)
	m := &small{window: 12_000, answer: works(9000), summary: keeps}
	a := start(k, m, agent.Options{})
	for i := range 10 {
		completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
	}
	ctx := k.Context()
	s := a.Session()
	if err := errors.Join(a.Close(ctx), s.Close(ctx)); err != nil {
		t.Fatal(err)
	}
	if outcomes(t, s)["full done"] == 0 {
		t.Fatal("nothing was compacted")
	}
	if _, err := k.Store.Fork(ctx, s.Meta().ID, -1, "fork"); err != nil {
		t.Fatal(err)
	}
	want := surface(s)
	for _, id := range []string{s.Meta().ID, "fork"} {
		s, err := k.Store.Open(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := surface(s); got != want {
			t.Errorf("%s: the model sees\n%s\nwant\n%s", id, got, want)
		}
		if id == "fork" { // the recorder holds a body against one log: that of the resumed one is checked below
			k.Own(s)
		} else {
			k.Recorder.Watch(s)
			defer func() { _ = s.Close(context.Background()) }()
		}
		a := start(k, m, agent.Options{Session: s})
		for i := range 10 {
			completed(k, a, fmt.Sprintf("KEEP-1%d and work.", i))
		}
		if text := surface(s); !strings.Contains(text, "KEEP-0 ") || !strings.Contains(text, "KEEP-19") {
			t.Errorf("%s: forgotten: %s", id, text)
		}
		if err := a.Close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if m.refused > 0 || len(m.invalid) > 0 {
		t.Errorf("%d refused, invalid: %v", m.refused, m.invalid)
	}
}

// surface is what the model sees as text.
func surface(s *session.Session) string {
	var b strings.Builder
	for _, n := range s.Surface() {
		fmt.Fprintf(&b, "%d %s %.40s\n", n.Seq, n.Type, n.Message.Text()+" ")
		if n.Message.Source.Name == compact.Name {
			b.WriteString(n.Message.Text())
		}
	}
	return b.String()
}

// TestRuntimeContextAgain: what the model is told of its surroundings is never lost,
// neither before a step nor within one.
func TestRuntimeContextAgain(t *testing.T) {
	for _, silent := range []bool{false, true} {
		t.Run(fmt.Sprint("silent-", silent), func(t *testing.T) {
			k := agenttest.New(t)
			works, missing := works(9000), 0
			m := &small{window: 12_000, silent: silent, summary: keeps}
			m.answer = func(r *llm.Request) (string, []string) {
				told := 0
				for _, one := range r.Messages {
					if strings.Contains(one.Text(), "The weather is fine.") {
						told++
					}
				}
				if told != 1 {
					missing++
				}
				return works(r)
			}
			a := start(k, m, agent.Options{Plugins: []*cordis.Plugin{{Name: "weather", Apply: func(c *cordis.Context, _ any) error {
				_, err := k.Prompt.Context(c, prompt.Section{Name: "weather", Text: "The weather is fine."})
				return err
			}}}})
			for i := range 12 {
				completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
			}
			if missing > 0 || outcomes(t, a.Session())["full done"] == 0 || len(m.invalid) > 0 {
				t.Errorf("%d requests without the runtime context or with it twice; %v; %v", missing, outcomes(t, a.Session()), m.invalid)
			}
		})
	}
}

// TestNow: compaction when it is asked for.
func TestNow(t *testing.T) {
	k := agenttest.New(t)
	m := &small{window: 100_000, answer: works(9000), summary: keeps}
	a := start(k, m, agent.Options{})
	if _, err := compact.Now(k.Context(), a); !errors.Is(err, compact.ErrNothing) {
		t.Errorf("of an empty conversation: %v", err)
	}
	for i := range 3 {
		completed(k, a, fmt.Sprintf("KEEP-%d and work.", i))
	}
	r, err := compact.Now(k.Context(), a)
	if err != nil || r.Pruned != 6 || r.Replaced < 5 || r.After > r.Before/2 {
		t.Fatalf("%+v %v", r, err)
	}
	if got := outcomes(t, a.Session()); got["asked done"] != 1 || got["prune done"] != 1 {
		t.Error(got)
	}
	completed(k, a, "KEEP-9 and work.")
	if text := surface(a.Session()); !strings.Contains(text, "KEEP-0") {
		t.Error(text)
	}
	m.mu.Lock()
	m.summary = func(string) string { return "" }
	m.mu.Unlock()
	before := surface(a.Session())
	if _, err := compact.Now(k.Context(), a); err == nil || errors.Is(err, compact.ErrNothing) {
		t.Errorf("of a model without an answer: %v", err)
	}
	if !strings.HasSuffix(surface(a.Session()), before[strings.LastIndex(before, "assistant/message"):]) {
		t.Error("the conversation changed")
	}
}

// TestCancelled: who cancels while the summary is made ends the turn; nothing is
// replaced, and the next turn compacts.
func TestCancelled(t *testing.T) {
	k := agenttest.New(t)
	m := &small{window: 12_000, answer: works(2000)}
	a := start(k, m, agent.Options{})
	cancelled := false
	m.summary = func(history string) string {
		if !cancelled {
			cancelled = true
			a.Cancel(agent.Cause{Kind: agent.CauseUser}, false)
		}
		return keeps(history)
	}
	var end session.EndReason
	for i := 0; !cancelled && i < 40; i++ {
		end = k.Run(a, fmt.Sprintf("KEEP-%d and work.", i))
	}
	if end.Kind != session.EndAborted {
		t.Fatalf("%+v", end)
	}
	if got := outcomes(t, a.Session()); got["full canceled"] != 1 || got["full done"] != 0 {
		t.Error(got)
	}
	for i := range 10 {
		completed(k, a, fmt.Sprintf("KEEP-9%d and work.", i))
	}
	if got := outcomes(t, a.Session()); got["full done"] == 0 || m.refused > 0 {
		t.Error(got, m.refused)
	}
}

// TestWhere: it belongs to one agent, and leaves those below it alone.
func TestWhere(t *testing.T) {
	k := agenttest.New(t)
	f, err := k.Root.Mount(compact.Plugin(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(k.Context()); err == nil || !strings.Contains(err.Error(), "mount it on the agent's context") {
		t.Errorf("on the root: %v", err)
	}
	m := &small{window: 3000, silent: true, answer: works(2000), summary: keeps}
	a := start(k, m, agent.Options{})
	child := k.Start(agent.Options{Parent: a.Scope(), Model: llm.Config{Provider: "small", Model: "m"}})
	var end session.EndReason
	for i := 0; end.Kind != session.EndError && i < 40; i++ {
		end = k.Run(child, "Work. "+strings.Repeat("please ", 200))
	}
	if n := len(agenttest.Payloads[session.CompactStart](t, child.Session().Log)); end.Kind != session.EndError || n > 0 {
		t.Errorf("%+v, %d compactions", end, n)
	}
}
