package plugintest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
)

// TestAsk: what is asked and answered, and what the log says of it.
func TestAsk(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	got := w.eval(a, "await ctx.llm.ask('two and two?')")
	want := `{"text":"you said two and two?","usage":{"inputTokens":30,"outputTokens":10,"cacheReadTokens":2,"cacheWriteTokens":0,"reasoningTokens":0,"totalTokens":42}}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	got = w.eval(a, "(await ctx.llm.ask({ system: 'Be short.', maxTokens: 7, messages: [{ role: 'user', text: 'a' }, { role: 'assistant', text: 'b' }, { role: 'user', text: 'c' }] })).text")
	if got != "you said c" {
		t.Error(got)
	}
	calls := agenttest.Payloads[session.LLMCall](t, a.Session().Log)
	if len(calls) != 2 {
		t.Fatalf("%d calls are logged", len(calls))
	}
	for i, c := range calls {
		if c.Purpose != "plugin" || c.Owner != fmt.Sprintf("dyn-%d", i+1) || c.Answer == nil || c.Usage == nil || c.Usage.Total() != 42 {
			t.Errorf("%+v", c)
		}
	}
	request, err := agent.OneShotOf(calls[1], a.ID())
	if err != nil {
		t.Fatal(err)
	}
	if request.System != "Be short." || request.MaxTokens != 7 || len(request.Messages) != 3 || request.Messages[1].Role != llm.Assistant || len(request.Tools) > 0 {
		t.Errorf("%+v", request)
	}
	if a.Usage().Total() != 84 {
		t.Errorf("the session used %+v", a.Usage())
	}
	if len(a.Session().Surface()) > 0 {
		t.Error("it is in the conversation")
	}
}

// TestWrongAsks: each says what is wrong.
func TestWrongAsks(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{MaxTokens: 1000})
	for _, c := range []struct{ name, use, want string }{
		{"nothing", "{}", "LLM_INVALID_REQUEST | a question needs a prompt, or messages"},
		{"both", "{ prompt: 'a', messages: [{ role: 'user', text: 'b' }] }", "LLM_INVALID_REQUEST | a question has a prompt or messages, not both"},
		{"last", "{ messages: [{ role: 'assistant', text: 'b' }] }", "LLM_INVALID_REQUEST | the last message is of the role user"},
		{"role", "{ messages: [{ role: 'system', text: 'b' }, { role: 'user', text: 'b' }] }", "LLM_INVALID_REQUEST | message 0: the role is"},
		{"empty", "{ messages: [{ role: 'user', text: '' }, { role: 'user', text: 'b' }] }", "LLM_INVALID_REQUEST | message 0: its text is empty"},
		{"many", "{ messages: Array(101).fill({ role: 'user', text: 'b' }) }", "LLM_INVALID_REQUEST | a question has at most 100 messages, this one has 101"},
		{"large", "'x'.repeat(262145)", "LLM_INVALID_REQUEST | the question has 262145 bytes, and the limit is 262144"},
		{"tokens", "{ prompt: 'a', maxTokens: 32769 }", "LLM_INVALID_REQUEST | maxTokens is 32769; it is 1 to 32768"},
		{"unknown", "{ prompt: 'a', model: 'x' }", "BAD_ARGUMENTS | "},
		{"kind", "5", "BAD_ARGUMENTS | "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := w.eval(a, "await failed(() => ctx.llm.ask("+c.use+"))"); !strings.HasPrefix(got, "true | "+c.want) {
				t.Error(got)
			}
		})
	}
	if n := len(agenttest.Payloads[session.LLMCall](t, a.Session().Log)); n > 0 {
		t.Errorf("%d requests were made", n)
	}
	w.model.says(func(context.Context, *llm.Request) (string, []string, error) {
		return "", nil, llm.Fail(llm.CodeRateLimit, "slow down")
	})
	if got := w.eval(a, "await failed(() => ctx.llm.ask('a'))"); got != "true | RATE_LIMIT | the model did not answer: slow down" {
		t.Error(got)
	}
	w.model.says(nil)
	if got := w.eval(a, "await failed(async () => { for (let i = 0; i < 30; i++) await ctx.llm.ask('a') })"); !strings.HasPrefix(got, "true | LLM_SESSION_LIMIT | the session has used the tokens") {
		t.Error(got)
	}
}

// TestAskRate: a minute's worth, and then no more.
func TestAskRate(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	got := w.eval(a, "await (async () => { for (let n = 0; ; n++) try { await ctx.llm.ask('a') } catch (e) { return n + ' | ' + e.code + ' | ' + e.message } })()")
	n, rest, _ := strings.Cut(got, " | ")
	if !strings.HasPrefix(rest, "LLM_TOO_FAST | a plugin may ask the model 30 times a minute") || n < "30" || len(n) != 2 {
		t.Error(got)
	}
}

// TestAskEndsWithTheMount: requests under way are bounded, and end with the plugin.
func TestAskEndsWithTheMount(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	began := make(chan struct{}, 10)
	w.model.says(func(ctx context.Context, r *llm.Request) (string, []string, error) {
		began <- struct{}{}
		<-ctx.Done()
		return "", nil, ctx.Err()
	})
	id := w.mount(a, plugin("ask", "return await failed(() => ctx.llm.ask('and more?'))", "for (let i = 0; i < 4; i++) ctx.llm.ask('who?').catch(() => {})"))
	for range limits.ModelAsks {
		<-began
	}
	if got, _ := w.call(a, "ask", map[string]string{}); !strings.HasPrefix(got, "true | LLM_BUSY | 4 requests of this plugin to the model are under way") {
		t.Error(got)
	}
	w.unmount(a, id)
	w.eventually(func() (string, bool) {
		calls := agenttest.Payloads[session.LLMCall](t, a.Session().Log)
		return fmt.Sprint(calls), len(calls) == limits.ModelAsks
	})
	for _, c := range agenttest.Payloads[session.LLMCall](t, a.Session().Log) {
		if c.Failure == nil || c.Failure.Code != llm.CodeAborted || c.Owner != id {
			t.Errorf("%+v", c)
		}
	}
	if got := w.eval(a, "await failed(() => { const c = new AbortController(); const p = ctx.llm.ask('x', { signal: c.signal }); c.abort(); return p })"); !strings.HasPrefix(got, "true | ") || strings.Contains(got, "no error") {
		t.Error(got)
	}
}

// TestModels: what there is, and which one is asked.
func TestModels(t *testing.T) {
	w := newWorld(t)
	a := w.start(agent.Options{})
	var got []agent.ModelInfo
	if err := json.Unmarshal([]byte(w.eval(a, "await ctx.llm.models()")), &got); err != nil {
		t.Fatal(err)
	}
	want := []agent.ModelInfo{
		{Provider: "echo", Model: "one", Current: true, ContextWindow: 100_000, MaxTokens: 5000, Images: true},
		{Provider: "echo", Model: "two"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
