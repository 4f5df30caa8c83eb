package script

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/lossless"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t testing.TB, text string) *Script {
	t.Helper()
	s, err := Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ask(t testing.TB, a *Adapter, r *llm.Request) llm.Answer {
	t.Helper()
	_, ans, err := llmtest.Collect(a.Stream(context.Background(), r))
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

const conversation = `
steps:
  - expect: {lastUser: files, system: brief, tools: [bash], noTools: [rm], messages: 1}
    reasoning: hm
    text: "Let me löök."
    chunk: 3
    calls:
      - name: bash
        arguments: {z: 1, command: "ls ü", a: [1.5, null, true]}
      - {name: bash, id: mine, arguments: '{"broken": '}
    usage: {input: 10, output: 5, cacheRead: 2}
    failures:
      - {code: RATE_LIMIT, retryAfterMs: 5, status: 429, text: "Le"}
  - expect:
      toolResults:
        - {contains: a.txt, isError: false}
        - {isError: true}
    text: done
    finish: max-tokens
purposes:
  compact:
    - text: short
`

func TestPlay(t *testing.T) {
	a := New(parse(t, conversation))
	r := &llm.Request{Config: llm.Config{Provider: "script", Model: "x"}, System: "be brief", Session: "s",
		Tools: []llm.Tool{{Name: "bash"}}, Messages: []llm.Message{llm.UserText("list the files")}}
	if f := ask(t, a, r).Failure; f == nil || f.Code != llm.CodeRateLimit || *f.RetryAfterMs != 5 || f.Status != 429 {
		t.Fatalf("failure %+v", f)
	}
	got := ask(t, a, r)
	want := llm.Answer{Reason: llm.ToolCalls, Usage: &llm.Usage{Input: 10, Output: 5, CacheRead: 2}, Content: []llm.Block{
		{Type: llm.ReasoningBlock, Text: "hm"}, llm.Plain("Let me löök."),
		{Type: llm.CallBlock, ID: "call_1_1", Name: "bash", Arguments: `{"z":1,"command":"ls ü","a":[1.5,null,true]}`},
		{Type: llm.CallBlock, ID: "mine", Name: "bash", Arguments: `{"broken": `}}}
	if d := cmp.Diff(want, got, cmp.Comparer(lossless.Equal)); d != "" {
		t.Fatalf("-want +got\n%s", d)
	}
	r.Purpose = llm.PurposeCompact
	if got := ask(t, a, r); llm.JoinText(got.Content) != "short" {
		t.Errorf("compaction %+v", got)
	}
	r.Purpose = ""
	r.Messages = append(r.Messages, got.Message("m", r.Config), llm.Result("", "call_1_1", false, llm.Plain("a.txt b.txt")), llm.Result("", "mine", true, llm.Plain("bad")))
	// A new process finds its place by the history.
	for name, ad := range map[string]*Adapter{"same": a, "resumed": New(parse(t, conversation))} {
		if got := ask(t, ad, r); got.Reason != llm.MaxTokens || llm.JoinText(got.Content) != "done" {
			t.Errorf("%s: %+v %v", name, got, got.Failure)
		}
		if f := ask(t, ad, r).Failure; f == nil || f.Code != llm.CodeScript || !strings.Contains(f.Message, "over") {
			t.Errorf("%s: after the end: %v", name, f)
		}
	}
}

func TestExpect(t *testing.T) {
	for _, c := range []struct{ name, expect, want string }{
		{"lastUser", "{lastUser: nope}", `"hello"`},
		{"system", "{system: nope}", "system text"},
		{"tools", "{tools: [write]}", "offered are: bash"},
		{"noTools", "{noTools: [bash]}", "is offered"},
		{"messages", "{messages: 7}", "2 messages, not 7"},
		{"count", "{toolResults: [{}, {}]}", "1 results"},
		{"contains", "{toolResults: [{contains: nope}]}", `"yes"`},
		{"isError", "{toolResults: [{isError: true}]}", "isError false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := New(parse(t, "steps: [{text: x, expect: "+c.expect+"}]"))
			r := &llm.Request{Tools: []llm.Tool{{Name: "bash"}}, Messages: []llm.Message{llm.UserText("hello"), llm.Result("", "1", false, llm.Plain("yes"))}}
			if f := ask(t, a, r).Failure; f == nil || f.Code != llm.CodeScript || f.Retryable() || !strings.Contains(f.Message, c.want) {
				t.Errorf("failure %v, want %q in it", f, c.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "needs 1 to"},
		{"unknown", "steps:\n  - txt: a\n", "line 2"},
		{"syntax", "steps: [", "line 1"},
		{"finish", "steps: [{finish: done}]", `steps[0].finish is "done"`},
		{"nameless", "steps: [{calls: [{id: a}]}]", "has no name"},
		{"codeless", "purposes: {title: [{failures: [{}]}]}", "purposes.title[0].failures[0] has no code"},
		{"bomb", "a: &a [x,x]\nb: &b [*a,*a]\nsteps: []", "anchors"},
		{"deep", "steps: " + strings.Repeat("[", 5000), "nested"},
		{"negative", "steps: [{chunk: -1}]", "negative"},
		{"long", strings.Repeat("#", 5<<20), "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := Parse([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
		})
	}
}

// TestArguments: what a call is given is what YAML says, with its escapes.
func TestArguments(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"escape", `{command: "echo a\x1b[8m"}`, `{"command":"echo a\u001b[8m"}`},
		{"quotes", `{command: "say \"a\\b\"\n\ttab \u00e9"}`, `{"command":"say \"a\\b\"\n\ttab é"}`},
		{"plainQuotes", `{command: 'a "b" \x1b'}`, `{"command":"a \"b\" \\x1b"}`},
		{"block", "\n          command: |\n            a: \"b\"\n            c\n", `{"command":"a: \"b\"\nc\n"}`},
		{"scalars", `{z: 1, a: -2, f: 1.0, g: 0.5, e: 1.5e3, big: 18446744073709551615, t: true, n: null, "y": "1"}`,
			`{"z":1,"a":-2,"f":1.0,"g":0.5,"e":1500.0,"big":18446744073709551615,"t":true,"n":null,"y":"1"}`},
		{"nested", `{a: [{b: []}, {}], "1": x}`, `{"a":[{"b":[]},{}],"1":"x"}`},
		{"list", `[a, "\e"]`, `["a","\u001b"]`},
		{"string", `'{"broken": '`, `{"broken": `},
		{"stringEscape", `"a\x1b"`, "a\x1b"},
		{"number", `3`, `3`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, "steps:\n  - calls:\n      - name: bash\n        arguments: "+c.in+"\n")
			if got := string(s.Steps[0].Calls[0].Arguments); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	for name, in := range map[string]string{"notANumber": "{a: .nan}", "twice": "{a: 1, a: 2}", "twiceAsJSON": `{1: x, "1": y}`} {
		if _, err := Parse([]byte("steps:\n  - calls:\n      - name: bash\n        arguments: " + in + "\n")); err == nil || !strings.Contains(err.Error(), "line 4") {
			t.Errorf("%s: %v, want one with line 4", name, err)
		}
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yml"), []byte("steps: [{text: hi}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	var g llm.Registry
	if _, err := g.Register("script", Files(dir)); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Prepare(llm.Config{Provider: "script", Model: "none.yml"}); err == nil || !strings.Contains(err.Error(), llm.CodeUnknownModel) {
		t.Errorf("a missing file: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Prepare(llm.Config{Provider: "script", Model: "folder"}); err == nil || !strings.Contains(err.Error(), "is no regular file") {
		t.Errorf("what is no file: %v", err)
	}
	c, err := g.Prepare(llm.Config{Provider: "script", Model: "a.yml"})
	if err != nil {
		t.Fatal(err)
	}
	if _, ans, err := llmtest.Collect(c.Stream(context.Background(), &llm.Request{Config: c.Config})); err != nil || llm.JoinText(ans.Content) != "hi" {
		t.Errorf("%+v, %v", ans, err)
	}
}

func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ask(t, New(parse(t, "steps: [{text: abc, chunk: 1, delayMs: 1000}]")), &llm.Request{})
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

func TestConformance(t *testing.T) {
	llmtest.Run(t, func(_ *testing.T, turns ...llmtest.Turn) llm.Adapter {
		s := &Script{}
		for _, turn := range turns {
			step := Step{Text: turn.Text, Reasoning: turn.Reasoning}
			for _, c := range turn.Calls {
				step.Calls = append(step.Calls, Call{Name: c.Name, ID: c.ID, Arguments: Arguments(c.Arguments)})
			}
			if turn.Fail {
				step.Failures = []Failure{{Code: llm.CodeServer}}
			}
			if turn.Hang {
				step.Chunk, step.DelayMs = max(1, len(turn.Text)-1), 100
			}
			s.Steps = append(s.Steps, step)
		}
		return New(s)
	})
}

func FuzzParse(f *testing.F) {
	f.Add(conversation)
	f.Fuzz(func(_ *testing.T, text string) {
		if len(text) < 4096 {
			_, _ = Parse([]byte(text))
		}
	})
}
