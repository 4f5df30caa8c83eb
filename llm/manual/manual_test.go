package manual

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/lossless"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func request() *llm.Request {
	return &llm.Request{System: "be\x1b[2J brief", Messages: []llm.Message{llm.UserText("hello")},
		Tools: []llm.Tool{{Name: "read", Parameters: lossless.Obj(lossless.M("type", lossless.Str("object")))}}}
}

func ask(t testing.TB, a *Adapter, r *llm.Request) llm.Answer {
	t.Helper()
	_, ans, err := llmtest.Collect(a.Stream(context.Background(), r))
	if err != nil {
		t.Fatal(err)
	}
	return ans
}

func TestAnswer(t *testing.T) {
	var out bytes.Buffer
	a := New(strings.NewReader("/think hm\none\n//two\n/nonsense\n/call read {\"path\": \"ü\"}\n/call read\n/call\n/tools\n.\nnext\n.\n/max\n/fail RATE_LIMIT slow down\nhalf"), &out)
	defer func() { _ = a.Close() }()
	r := request()
	want := llm.Answer{Reason: llm.ToolCalls, Content: []llm.Block{{Type: llm.ReasoningBlock, Text: "hm"}, llm.Plain("one\n/two"),
		{Type: llm.CallBlock, ID: "call_1_1", Name: "read", Arguments: `{"path": "ü"}`},
		{Type: llm.CallBlock, ID: "call_1_2", Name: "read"}}}
	got := ask(t, a, r)
	if d := cmp.Diff(want, got, cmp.Comparer(lossless.Equal)); d != "" {
		t.Fatalf("-want +got\n%s", d)
	}
	for _, w := range []string{"── system\nbe brief\n", "── user\nhello\n", "tools: read;", "Name the tool", `read {"type":"object"}`, "/fail CODE"} {
		if !strings.Contains(out.String(), w) {
			t.Errorf("no %q in\n%s", w, out.String())
		}
	}
	out.Reset()
	r.Messages = append(r.Messages, got.Message("", r.Config), llm.Result("", "call_1_1", false, llm.Plain("text")))
	if got := ask(t, a, r); llm.JoinText(got.Content) != "next" {
		t.Errorf("answer %+v", got)
	}
	if s := out.String(); strings.Contains(s, "hello") || !strings.Contains(s, "── result of call_1_1\ntext\n") {
		t.Errorf("the second request is shown as\n%s", s)
	}
	if got := ask(t, a, r); got.Reason != llm.MaxTokens {
		t.Errorf("answer %+v", got)
	}
	if got := ask(t, a, r); got.Failure == nil || got.Failure.Error() != "RATE_LIMIT: slow down" {
		t.Errorf("failure %v", got.Failure)
	}
	for range 2 { // the input has ended
		if got := ask(t, a, r); got.Reason != llm.Aborted {
			t.Errorf("answer %+v", got)
		}
	}
}

// TestToolWhole: /tools cuts what is long, /tools NAME does not.
func TestToolWhole(t *testing.T) {
	r := request()
	r.Tools[0].Description = strings.Repeat("long ", 200) + "end"
	for _, tt := range []struct {
		typed string
		has   string
		whole bool
	}{
		{"/tools", "read {\"type\":\"object\"}\n", false},
		{"/tools read", "long end\n{\"type\":\"object\"}\n", true},
		{"/tools rea", "There is no tool \"rea\" in this request: read\n", false},
	} {
		t.Run(strings.ReplaceAll(tt.typed[1:], " ", "_"), func(t *testing.T) {
			var out bytes.Buffer
			a := New(strings.NewReader(tt.typed+"\n.\n"), &out)
			defer func() { _ = a.Close() }()
			ask(t, a, r)
			if s := out.String(); !strings.Contains(s, tt.has) || strings.Contains(s, "long end") != tt.whole {
				t.Errorf("shown is\n%s", s)
			}
		})
	}
}

// TestSystemChanges: a system prompt is shown again when it is another one.
func TestSystemChanges(t *testing.T) {
	var out bytes.Buffer
	a := New(strings.NewReader(".\n.\n.\n"), &out)
	defer func() { _ = a.Close() }()
	r := request()
	for _, tt := range []struct {
		system, want string
	}{
		{"be brief", "── system\nbe brief\n"},
		{"be brief", ""},
		{"be long", "── system, which has changed\nbe long\n"},
	} {
		out.Reset()
		r.System = tt.system
		ask(t, a, r)
		got, _, _ := strings.Cut(out.String(), "── you are")
		if got, _, _ = strings.Cut(got, "── user"); got != tt.want {
			t.Errorf("shown is %q, want %q", got, tt.want)
		}
	}
}

func TestClose(t *testing.T) {
	in, typed := io.Pipe()
	a := New(in, io.Discard)
	go func() {
		_, _ = io.WriteString(typed, "half\n") // the request is under way
		_ = a.Close()
	}()
	for range 2 {
		if got := ask(t, a, request()); got.Reason != llm.Aborted {
			t.Errorf("answer %+v", got)
		}
	}
	_ = typed.Close()
}

func TestConformance(t *testing.T) {
	llmtest.Run(t, func(t *testing.T, turns ...llmtest.Turn) llm.Adapter {
		in, typed := io.Pipe()
		a := New(in, io.Discard)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, turn := range turns {
				if _, err := io.WriteString(typed, keystrokes(turn)); err != nil {
					return
				}
			}
		}()
		t.Cleanup(func() {
			_ = a.Close()
			_ = in.Close()
			<-done
		})
		return a
	})
}

func keystrokes(turn llmtest.Turn) string {
	var s strings.Builder
	if turn.Fail {
		return "/fail SERVER broke\n"
	}
	if turn.Reasoning != "" {
		s.WriteString("/think " + turn.Reasoning + "\n")
	}
	if turn.Text != "" {
		s.WriteString(turn.Text + "\n")
	}
	for _, c := range turn.Calls {
		s.WriteString("/call " + c.Name + " " + string(c.Arguments) + "\n")
	}
	if !turn.Hang {
		s.WriteString(".\n")
	}
	return s.String()
}
