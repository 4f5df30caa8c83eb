package plugintest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// TestFollowup: a plugin begins a turn; the model reads who speaks.
func TestFollowup(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	if got := w.eval(a, "await ctx.agents.followup('Look at the weather.')"); got != "undefined" {
		t.Fatal(got)
	}
	w.Idle(a)
	if end := w.End(a); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	m := agenttest.Payloads[session.UserMessage](t, a.Session().Log)[0].Message
	if want := "Message of temporary Plugin dyn-1 (eval), not of the person:\n\nLook at the weather."; m.Text() != want || m.Source.Kind != message.SourcePlugin || m.Source.Name != "dyn-1" {
		t.Errorf("got %q from %+v", m.Text(), m.Source)
	}
	if a.Session().Title() != "" {
		t.Errorf("a plugin gave the session the title %q", a.Session().Title())
	}
}

// TestInject: no turn begins; the next one reads it.
func TestInject(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	w.eval(a, "await ctx.agents.inject('It rains.')")
	w.Idle(a)
	if turn := a.Session().Turn(); turn.Turn != 0 || len(a.Session().Inbox(session.NextStep)) != 1 {
		t.Fatalf("%+v", turn)
	}
	if end := w.Run(a, "Go out."); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	request, err := a.Session().Request()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(request.Messages); !strings.Contains(got, "It rains.") || !strings.Contains(got, "Go out.") {
		t.Error(got)
	}
}

// TestSteer: a tool of the turn that runs steers it: the turn goes on.
func TestSteer(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	w.mount(a, plugin("steer", "await ctx.agents.steer('Now the other thing.'); return 'ok'"))
	w.model.says(func(_ context.Context, r *llm.Request) (string, []string, error) {
		last := r.Messages[len(r.Messages)-1].Text()
		if last == "Begin." {
			return "", []string{"steer"}, nil
		}
		return "answer to " + last, nil, nil
	})
	if end := w.Run(a, "Begin."); end.Kind != session.EndCompleted {
		t.Fatalf("%+v", end)
	}
	answers := agenttest.Payloads[session.AssistantMessage](t, a.Session().Log)
	if got := answers[len(answers)-1].Message.Text(); !strings.HasSuffix(got, "Now the other thing.") || a.Session().Turn().Turn != 1 {
		t.Errorf("%q, %+v", got, a.Session().Turn())
	}
}

// TestWrongMessages: what is refused, and how it teaches.
func TestWrongMessages(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	for _, c := range []struct{ name, use, want string }{
		{"empty", "ctx.agents.inject(' \\n')", "AGENTS_INVALID_TEXT | a message for the agent has 1 to 32000 characters, this one has 2"},
		{"long", "ctx.agents.followup('x'.repeat(32001))", "AGENTS_INVALID_TEXT | a message for the agent has 1 to 32000 characters, this one has 32001; say it shorter"},
		{"no-text", "ctx.agents.steer({ text: 'x' })", "BAD_ARGUMENTS | ctx.agents.steer: argument 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := w.eval(a, "await failed(() => "+c.use+")"); !strings.HasPrefix(got, "true | "+c.want) {
				t.Error(got)
			}
		})
	}
	if a.Session().Waiting(session.NextStep)+a.Session().Waiting(session.NextTurn) > 0 || a.Session().Turn().Turn > 0 {
		t.Error("something was sent")
	}
}

// TestOutsideOfASession: everything throws the same, and says what to do.
func TestOutsideOfASession(t *testing.T) {
	w := newWorld(t)
	w.Mount(toolset())
	for _, use := range []string{
		"agents.followup('x')", "agents.steer('x')", "agents.inject('x')", "sessions.info()", "sessions.messages()", "sessions.events()", "llm.ask('x')",
	} {
		name, _, _ := strings.Cut(use, ".")
		want := "true | AGENTS_NO_AGENT | ctx." + name + " is for plugins that an agent has mounted in its session, and this plugin belongs to none: mount it with cordis_mount"
		if got := w.eval(nil, "await failed(() => ctx."+use+")"); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", use, got)
		}
	}
}

// TestLimits: so many messages in a turn, of one plugin; another one has its own.
func TestLimits(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	const flood = "let n = 0; try { for (;; n++) await ctx.agents.inject('n ' + n) } catch (e) { return n + ' | ' + e.code + ' | ' + e.message }"
	w.mount(a, plugin("flood", flood))
	w.mount(a, plugin("other", flood))
	want := fmt.Sprintf("%d | AGENTS_TOO_MANY | this plugin has sent its agent %[1]d messages in this turn", limits.AgentAsks)
	for _, name := range []string{"flood", "other"} {
		if got, _ := w.call(a, name, map[string]string{}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got, _ := w.call(a, "flood", map[string]string{}); !strings.HasPrefix(got, "0 | AGENTS_TOO_MANY") {
		t.Error(got)
	}
	w.Run(a, "Go.")
	if got, _ := w.call(a, "flood", map[string]string{}); !strings.HasPrefix(got, want) {
		t.Errorf("after a turn: %s", got)
	}
}

// TestNoLoopForEver: a plugin that follows each turn up with another one is stopped;
// when the person speaks it may begin again.
func TestNoLoopForEver(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	w.mount(a, plugin("loop", "return stops + ' ' + stopped", `let stops = 0, stopped = ''
    ctx.on('agent/status', async (s) => { if (s.status === 'idle') try { await ctx.agents.followup('Go on.') } catch (e) { stops++; stopped = e.message } })`))
	for round := 1; round <= 2; round++ {
		w.Run(a, "Begin.")
		text := ""
		w.eventually(func() (string, bool) { // the plugin hears of the end of a turn on a queue of its own
			text, _ = w.call(a, "loop", map[string]string{})
			return fmt.Sprintf("turn %d: %s", a.Session().Turn().Turn, text), strings.HasPrefix(text, fmt.Sprint(round))
		})
		w.Idle(a)
		if last := a.Session().Turn().Turn; last != round*(limits.AgentAsksAll+1) || !strings.Contains(text, "it is the person's turn now") {
			t.Errorf("round %d ended with turn %d: %s", round, last, text)
		}
	}
}
