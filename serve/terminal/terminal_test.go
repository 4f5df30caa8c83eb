package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/toolbox/ask"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// table are cards by the name of the tool.
type table map[string]struct{ call, result *tool.Card }

func (t table) Call(name string, _ message.Text) *tool.Card { return t[name].call }

func (t table) Result(name string, _ message.Text, _ session.Result) *tool.Card {
	return t[name].result
}

func ptr[T any](v T) *T { return &v }

// seen shows the events of payloads.
func seen(t *testing.T, o Options, payloads ...session.Payload) string {
	t.Helper()
	l, err := session.NewLog(session.Meta{ID: "s", CreatedAt: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o.Out = &out
	v := New(o)
	for _, p := range payloads {
		events, err := l.Append(p)
		if err != nil {
			t.Fatalf("%T: %v", p, err)
		}
		for _, e := range events {
			v.Event(e)
		}
	}
	return out.String()
}

// talk is a turn with a call, some of it hostile.
func talk() []session.Payload {
	call := message.Block{Type: message.CallBlock, ID: "c1", Name: "sh\x1b[2Jell", Arguments: `{}`}
	return []session.Payload{
		session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1},
		session.UserMessage{Message: message.Message{ID: "m1", Role: message.User, Content: []message.Block{message.Plain("do it")}, Source: message.Source{Kind: message.SourceUser}}},
		session.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{ID: "m2", Role: message.Assistant, Content: []message.Block{message.Plain("I try\x1b]0;owned\x07."), call},
			Source: message.Source{Kind: message.SourceModel}}},
		session.Call{Turn: 1, Step: 1, CallID: "c1", Name: call.Name, Arguments: call.Arguments},
		session.ApprovalAsked{ID: "a1", Summary: "run \u202erm"},
		session.ApprovalDecided{ID: "a1", Decision: "deny", Source: "user", Reason: "not now"},
		session.Result{Turn: 1, Step: 1, Message: message.Result("m3", "c1", true, message.Plain("Error: denied\r\x1b[1Aforged"))},
		session.StepEnd{Turn: 1, Step: 1}, session.StepStart{Turn: 1, Step: 2},
		session.AssistantMessage{Turn: 1, Step: 2, Message: message.Message{ID: "m4", Role: message.Assistant, Content: []message.Block{message.Plain("I may not.")},
			Source: message.Source{Kind: message.SourceModel}}},
		session.StepEnd{Turn: 1, Step: 2},
		session.TurnEnd{Turn: 1, Reason: session.EndReason{Kind: session.EndDenied}},
	}
}

func TestTranscript(t *testing.T) {
	got := seen(t, Options{Answers: true}, talk()...)
	want := `── turn 1
you:
do it
I try.
● shell
denied (user): run <U+202E>rm — not now
    Error: denied
    forged
I may not.
turn 1: denied
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestLive: the last answer is left for standard output, and nothing but our own
// sequences reaches the terminal.
func TestLive(t *testing.T) {
	got := seen(t, Options{Live: true, Color: true}, talk()...)
	for _, own := range []string{"\r\x1b[K", bold, dim, red, green, yellow, cyan, reset} {
		got = strings.ReplaceAll(got, own, "")
	}
	if strings.ContainsAny(got, "\x1b\r\x07\u202e") {
		t.Errorf("a foreign sequence: %q", got)
	}
	if strings.Contains(got, "I may not.") || strings.Contains(got, "do it") || !strings.Contains(got, "I try.") {
		t.Errorf("%q", got)
	}
}

// TestEnding: a turn that was cancelled waits for the model no more, and a question
// that it took back was denied by nobody.
func TestEnding(t *testing.T) {
	l, err := session.NewLog(session.Meta{ID: "s", CreatedAt: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	v := New(Options{Out: &out, Live: true})
	show := func(payloads ...session.Payload) string {
		out.Reset()
		events, err := l.Append(payloads...)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			v.Event(e)
		}
		return out.String()
	}
	if got := show(talk()[:6]...); !strings.Contains(got, "waiting for the model") {
		t.Errorf("%q", got)
	}
	out.Reset()
	v.Ending()
	if got := out.String(); !strings.Contains(got, "ending the turn") {
		t.Errorf("%q", got)
	}
	got := show(session.ApprovalDecided{ID: "a1", Decision: "deny", Source: "cancelled", Reason: "cancelled before an answer came"},
		session.Result{Turn: 1, Step: 1, Message: message.Result("m3", "c1", true, message.Plain("Error: cancelled"))})
	if !strings.Contains(got, "cancelled: run <U+202E>rm\n") || strings.Contains(got, "denied") || strings.Contains(got, "waiting") || !strings.Contains(got, "ending the turn") {
		t.Errorf("%q", got)
	}
	end := session.EndReason{Kind: session.EndAborted, Abort: &session.AbortReason{Kind: "user"}}
	got = show(session.StepEnd{Turn: 1, Step: 1}, session.TurnEnd{Turn: 1, Reason: end}, session.TurnStart{Turn: 2})
	if !strings.Contains(got, "waiting for the model") {
		t.Errorf("the next turn: %q", got)
	}
}

func TestNoColor(t *testing.T) {
	if got := seen(t, Options{Answers: true}, talk()...); strings.Contains(got, "\x1b") {
		t.Errorf("%q", got)
	}
	t.Setenv("NO_COLOR", "1")
	if Color(nil) || Is(&bytes.Buffer{}) || Width(nil) != defaultWidth {
		t.Error("a buffer is no terminal")
	}
}

func TestCards(t *testing.T) {
	long := strings.Repeat("row\n", 100)
	tests := []struct {
		name         string
		call, result *tool.Card
		want         []string
		not          string
	}{
		{"terminal", &tool.Card{Terminal: &tool.TerminalCard{Title: "make\ntest"}}, &tool.Card{Terminal: &tool.TerminalCard{Output: &long, ExitCode: ptr(2)}},
			[]string{"● $ make ⏎ test", "    … 89 lines …", "    exit status 2"}, ""},
		{"diff", &tool.Card{Diff: &tool.DiffCard{Title: "Edit a.go", Diffs: []tool.FileDiff{{Path: "a.go", OldText: ptr("one\ntwo\nthree\n"), NewText: "one\n2\nthree\n"}}}}, nil,
			[]string{"● Edit a.go", "    a.go:2 (-1 +1 lines)", "    - two", "    + 2"}, "three"},
		{"new", &tool.Card{Diff: &tool.DiffCard{Diffs: []tool.FileDiff{{Path: "b.go", NewText: long}}}}, nil,
			[]string{"● Edit b.go", "    b.go (new, 100 lines)", "+ … 77 more lines"}, ""},
		{"search", nil, &tool.Card{Search: &tool.SearchCard{Shape: tool.ShapePaths, Total: 30, Paths: []string{"x", "y"}}}, []string{"● search", "    x", "    … and 28 more"}, ""},
		{"nothing", nil, &tool.Card{Search: &tool.SearchCard{Shape: tool.ShapePaths}}, []string{"nothing found"}, "more"},
		{"read", nil, &tool.Card{Read: &tool.ReadCard{Path: "c.go", TotalLines: 7}}, []string{"    c.go: 0 of 7 lines"}, ""},
		{"image", nil, &tool.Card{Read: &tool.ReadCard{Path: "i.png"}}, []string{"    i.png\n"}, "lines"},
		{"oneLine", &tool.Card{Diff: &tool.DiffCard{Diffs: []tool.FileDiff{{Path: "b.go", NewText: "x\n"}}}}, nil, []string{"b.go (new, 1 line)"}, ""},
		{"hidden", &tool.Card{Diff: &tool.DiffCard{Diffs: []tool.FileDiff{{Path: "b\u202e.go", OldText: ptr("a\n"), NewText: "a\r\u200b\x1b[8m\n"}}}}, nil,
			[]string{"b<U+202E>.go:1", `+ a\r<U+200B>\x1b[8m`}, ""},
		{"fetch", nil, &tool.Card{Web: &tool.WebCard{Kind: tool.WebFetch, Status: 404, Title: "gone"}}, []string{"    404 gone"}, ""},
		{"web", nil, &tool.Card{Web: &tool.WebCard{Kind: tool.WebSearch, Results: []tool.WebResult{{Title: "T", URL: "u"}}}}, []string{"    T — u"}, ""},
		{"generic", &tool.Card{Generic: &tool.GenericCard{Title: "Mount", Kind: tool.KindExecute, RawInput: []byte(`{"code":"x"}`)}},
			&tool.Card{Generic: &tool.GenericCard{Content: []tool.Block{tool.TextBlock("done"), {Type: "image"}}}}, []string{"● Mount", `{"code":"x"}`, "    done", "    (image)"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call := message.Block{Type: message.CallBlock, ID: "c", Name: tt.name, Arguments: `{}`}
			got := seen(t, Options{Cards: table{tt.name: {tt.call, tt.result}}},
				session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1},
				session.AssistantMessage{Turn: 1, Step: 1, Message: message.Message{ID: "m", Role: message.Assistant, Content: []message.Block{call}, Source: message.Source{Kind: message.SourceModel}}},
				session.Call{Turn: 1, Step: 1, CallID: "c", Name: tt.name, Arguments: `{}`},
				session.Result{Turn: 1, Step: 1, Message: message.Result("r", "c", false, message.Plain("text"))})
			for _, w := range tt.want {
				if !strings.Contains(got, w+"\n") && !strings.Contains(got, w) {
					t.Errorf("no %q in:\n%s", w, got)
				}
			}
			if tt.not != "" && strings.Contains(got, tt.not) {
				t.Errorf("%q in:\n%s", tt.not, got)
			}
		})
	}
}

// person is somebody who types.
func person(t *testing.T, typed string) (*Person, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	in := NewInput(strings.NewReader(typed))
	t.Cleanup(func() { _ = in.Close() })
	return NewPerson(New(Options{Out: &out}), in), &out
}

func TestApprove(t *testing.T) {
	q := permission.Question{ID: "1", Kind: permission.KindMount, Summary: "mount \x1b[2Jcounter", Mount: "dyn-1 (counter)",
		Detail: strings.Repeat("line\n", shownCode+5) + "last secret line", Remember: "mount"}
	tests := []struct {
		name, typed string
		want        permission.Answer
		shows       string
	}{
		{"yes", "y\n", permission.Answer{Allow: true}, "temporary plugin dyn-1 (counter) wants to: mount \\x1b[2Jcounter"},
		{"session", "maybe\ns\n", permission.Answer{Allow: true, Remember: true}, "for this session: mount"},
		{"no", "n use the other\n", permission.Answer{Reason: "use the other"}, ""},
		{"stop", "q\n", permission.Answer{Stop: true}, ""},
		{"view", "v\ny\n", permission.Answer{Allow: true}, "last secret line\n"},
		{"nobody", "", permission.Answer{Stop: true, Reason: "nobody answers at the terminal"}, ""},
		{"empty", "\n", permission.Answer{Stop: true, Reason: "nobody answers at the terminal"}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, out := person(t, tt.typed)
			got, err := p.Approve(t.Context(), q)
			if err != nil || got != tt.want || !strings.Contains(out.String(), tt.shows) || strings.Contains(out.String(), "\x1b") {
				t.Errorf("%+v, %v:\n%s", got, err, out)
			}
		})
	}
}

// TestApproveShowsHidden: what a screen does not show is said in words, in the
// question, in the whole, and in the rule that is offered.
func TestApproveShowsHidden(t *testing.T) {
	p, out := person(t, "v\nn\n")
	long := "say \u2066" + strings.Repeat("x", 200) + "\x1b[8m&& evil"
	q := permission.Question{Summary: "run \u202eecho", Detail: "echo \x1b[8mhi\x07\u00a0rm", Remember: "bash(a\u200bb)",
		Card: &tool.Card{Diff: &tool.DiffCard{Diffs: []tool.FileDiff{{Path: "a.sh", NewText: long}}}}}
	if _, err := p.Approve(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"run <U+202E>echo", `echo \x1b[8mhi\x07<U+00A0>rm`, "bash(a<U+200B>b)", "say <U+2066>", `\x1b[8m&& evil`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
}

// TestApproveShowsAll: a line that is wider than the terminal can be seen whole.
func TestApproveShowsAll(t *testing.T) {
	p, out := person(t, "v\nn\n")
	if _, err := p.Approve(t.Context(), permission.Question{Summary: "run", Detail: "echo " + strings.Repeat("x", 300) + " && evil"}); err != nil {
		t.Fatal(err)
	}
	if first, all, _ := strings.Cut(out.String(), "[v]iew all"); strings.Contains(first, "evil") || !strings.Contains(all, "&& evil") {
		t.Errorf("%s", out)
	}
}

func TestApproveCancelled(t *testing.T) {
	r, w := io.Pipe()
	in := NewInput(r)
	defer w.Close()
	defer in.Close()
	p := NewPerson(New(Options{Out: io.Discard}), in)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { _, err := p.Approve(ctx, permission.Question{}); done <- err }()
	go func() { _, err := p.Approve(ctx, permission.Question{}); done <- err }() // waits for its turn
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}

func TestAsk(t *testing.T) {
	p, out := person(t, "2\n1, 3\nsomething else\n\n")
	options := []ask.Option{{Label: "A"}, {Label: "B", Description: "the \x1b[31msecond"}, {Label: "C"}}
	got, err := p.Ask(t.Context(), []ask.Question{
		{Question: "Which?", Header: "One", Options: options}, {Question: "Which ones?", Options: options, MultiSelect: true},
		{Question: "And?", Options: options}, {Question: "Open?"}})
	want := []ask.Answer{{Selected: []string{"B"}}, {Selected: []string{"A", "C"}}, {Text: "something else"}, {}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if !strings.Contains(out.String(), "  2  B — the second") {
		t.Errorf("%s", out)
	}
	if _, err := p.Ask(t.Context(), []ask.Question{{Question: "More?"}}); !errors.Is(err, ask.ErrDeclined) {
		t.Error(err)
	}
}

// TestInput: a question goes before whoever plays the model, and takes one line.
func TestInput(t *testing.T) {
	r, w := io.Pipe()
	in := NewInput(r)
	read := make(chan string)
	go func() {
		text, _ := io.ReadAll(in.Typed())
		read <- string(text)
	}()
	lines := make(chan string, 1)
	asking := make(chan struct{})
	go func() {
		close(asking)
		text, err := in.Line(t.Context())
		if err != nil {
			text = err.Error()
		}
		lines <- text
	}()
	<-asking
	for {
		in.mu.Lock()
		waits := in.asking != nil
		in.mu.Unlock()
		if waits {
			break
		}
	}
	_, _ = io.WriteString(w, "answer\nfor the model\n")
	_ = w.Close()
	if got := <-lines; got != "answer" {
		t.Errorf("answer %q", got)
	}
	if got := <-read; got != "for the model\n" {
		t.Errorf("typed %q", got)
	}
	if _, err := in.Line(t.Context()); !errors.Is(err, ErrEnded) {
		t.Error(err)
	}
}

// TestConfirm: only yes is yes, and what is shown steers no terminal.
func TestConfirm(t *testing.T) {
	for _, tt := range []struct {
		typed string
		want  bool
	}{{"y\n", true}, {" Yes \n", true}, {"n\n", false}, {"\n", false}, {"yes please\n", false}, {"", false}} {
		t.Run(strings.TrimSpace(tt.typed), func(t *testing.T) {
			p, out := person(t, tt.typed)
			got, err := p.Confirm(t.Context(), "new: x.js\n+ a\x1b[2Jb\n", "Trust it?")
			if err != nil || got != tt.want {
				t.Errorf("%t, %v", got, err)
			}
			if text := out.String(); !strings.Contains(text, "new: x.js") || !strings.Contains(text, "Trust it? [y]es, [n]o") || strings.Contains(text, "\x1b[2J") {
				t.Errorf("shown: %q", text)
			}
		})
	}
}
