package compact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/internal/golden"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// show writes the surface down, one line a node.
func show(s *session.Session) []string {
	var lines []string
	for _, n := range s.Surface() {
		text := n.Message.Text()
		if n.Type == session.TypeResult {
			text = message.JoinText(n.Message.Content[0].Content)
		}
		lines = append(lines, fmt.Sprintf("%s %.20s (%d)", n.Type, text, utf8.RuneCountInString(text)))
	}
	return lines
}

// TestPrune: the oldest big results first, only as many as asked, none of the
// latest step, none that is not big, each once.
func TestPrune(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	big := strings.Repeat("é", limits.CompactResult+1)
	add(t, s, session.TurnStart{Turn: 1})
	step(t, s, 1, 1, "Go.", "one", "read:"+big, "bash:"+big[2:], "grep:"+big)
	step(t, s, 1, 2, "", "two", "read:"+big)
	step(t, s, 1, 3, "", "three", "read:"+big)
	k := &compactor{s: s}
	if n, freed, err := k.prune(1); n != 1 || freed < 3000 || freed > 3100 || err != nil {
		t.Fatal(n, freed, err)
	}
	nodes := s.Surface()
	first := nodes[2].Message.Content[0]
	text := message.JoinText(first.Content)
	want := "[" + fmt.Sprint(limits.CompactResult+1-limits.CompactHead-limits.CompactTail) + " of the 8193 characters of this result are left out here to save room. " +
		"To read them, call read again for the part that you need; if calling it again would change something, find another way to read it.]"
	if text != strings.Repeat("é", limits.CompactHead)+"\n\n"+want+"\n\n"+strings.Repeat("é", limits.CompactTail) {
		t.Errorf("got %.60q … %q", text, strings.Trim(text, "é"))
	}
	if n, _, err := k.prune(1 << 40); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	if n, _, err := k.prune(1 << 40); n != 0 || err != nil {
		t.Fatal("pruned again", n, err)
	}
	lengths := ""
	for _, n := range s.Surface() {
		if n.Type == session.TypeResult {
			lengths += fmt.Sprint(utf8.RuneCountInString(message.JoinText(n.Message.Content[0].Content)) > limits.CompactResult, " ")
		}
	}
	if lengths != "false false false false true " {
		t.Error(lengths)
	}
	if err := Valid(seen(s)); err != nil {
		t.Error(err)
	}
}

// TestPruneKeeps: images, an error, cards and the order of the log.
func TestPruneKeeps(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	image, err := s.Attach("image/png", "x", []byte("png"))
	if err != nil {
		t.Fatal(err)
	}
	add(t, s, session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1}, sessiontest.User("u", "Go."), sessiontest.Answer(1, 1, "a", "", sessiontest.CallBlock("c", "read", "{}")),
		sessiontest.Call(1, 1, sessiontest.CallBlock("c", "read", "{}")))
	r := sessiontest.Result(1, 1, "c", strings.Repeat("x", limits.CompactResult))
	r.Message.Content[0].IsError = true
	r.Message.Content[0].Content = append(r.Message.Content[0].Content, message.Block{Type: message.ImageBlock, Attachment: &image}, message.Plain("y"))
	r.Error = &session.ResultError{Name: "Error", Code: "X"}
	add(t, s, r, session.StepEnd{Turn: 1, Step: 1})
	step(t, s, 1, 2, "", "two")
	k := &compactor{s: s}
	if n, _, err := k.prune(1); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	b := s.Surface()[2].Message.Content[0]
	if len(b.Content) != 2 || b.Content[1].Attachment.Hash != image.Hash || !b.IsError || !strings.HasSuffix(string(b.Content[0].Text), "xy") {
		t.Errorf("%+v", b)
	}
	var kinds []string
	for _, e := range s.Events(s.Len() - 3) {
		kinds = append(kinds, string(e.Type))
	}
	if d := cmp.Diff([]string{"compact/start", "tool/result", "compact/end"}, kinds); d != "" {
		t.Error(d)
	}
}

// TestCut: where the conversation is cut.
func TestCut(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	word := strings.Repeat("word", 92) // 92 tokens, 100 with what is around it
	add(t, s, session.TurnStart{Turn: 1})
	step(t, s, 1, 1, word, word, "echo:"+word, "echo:"+word) // 0 user 1 answer 2 result 3 result
	step(t, s, 1, 2, "", word, "echo:"+word)                 // 4 answer 5 result
	step(t, s, 1, 3, word, word, "echo:"+word)               // 6 user 7 answer 8 result
	nodes := s.Surface()
	for _, c := range []struct {
		name       string
		end        int
		keep, step int64
		want       int
	}{
		{"all-fit", 9, 10_000, 10_000, 0},
		{"latest-step-only", 9, 0, 10_000, 7},
		{"latest-step-and-its-prompt", 9, 320, 10_000, 6},
		{"not-between-answer-and-results", 9, 420, 10_000, 6},
		{"one-step-more", 9, 530, 10_000, 4},
		{"results-stay-with-their-answer", 9, 750, 10_000, 4},
		{"step-too-large", 9, 0, 150, 9},
		{"nothing-stays", 9, 0, 0, 9},
		{"step-in-the-middle-of-the-log", 6, 0, 10_000, 4},
		{"empty", 0, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := cut(nodes, c.end, c.keep, c.step); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// TestTexts: what models read.
func TestTexts(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	add(t, s, session.TurnStart{Turn: 1})
	step(t, s, 1, 1, "Fix the tests. "+strings.Repeat("Please. ", 1000), "Looking.", "read:"+strings.Repeat("x", limits.CompactResult+1))
	step(t, s, 1, 2, "", "Done.")
	var asked []agent.OneShot
	k := &compactor{s: s, ask: answers(&asked, "## Task\nFix the tests.")}
	if _, _, err := k.prune(1); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "result.golden", message.JoinText(s.Surface()[2].Message.Content[0].Content)+"\n")
	if _, err := k.summarise(t.Context(), "full", 4, 0); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "system.golden", asked[0].System)
	golden.Compare(t, "history.golden", asked[0].Messages[0].Text()+"\n")
	golden.Compare(t, "summary.golden", s.Surface()[0].Message.Text()+"\n")
}

// TestSummarise: what is asked, what stands in the place of the messages, and what
// the log says.
func TestSummarise(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	add(t, s, session.TurnStart{Turn: 1})
	step(t, s, 1, 1, "Fix the tests. "+strings.Repeat("Please. ", 1000), "Looking.", "read:package x", "bash:ok")
	step(t, s, 1, 2, "", "Done.")
	endTurn(t, s, 1)
	before := s.Len()
	var asked []agent.OneShot
	k := &compactor{s: s, ask: answers(&asked, "## Task\nFix the tests.", "## Task\nBoth.")}
	n, err := k.summarise(t.Context(), "full", 4, 0)
	if n != 4 || err != nil {
		t.Fatal(n, err)
	}
	if d := cmp.Diff([]string{"user/message", "assistant/message"}, types(s)); d != "" {
		t.Fatal(d)
	}
	text := s.Surface()[0].Message.Text()
	for _, part := range []string{"the 4 messages that it replaces", "<summary>\n## Task\nFix the tests.\n</summary>", "word for word", "<message>\nFix the tests. Please."} {
		if !strings.Contains(text, part) {
			t.Errorf("the summary lacks %q:\n%s", part, text)
		}
	}
	o := asked[0]
	if o.Purpose != llm.PurposeCompact || o.Owner != Name || o.MaxTokens != limits.CompactSummary || !strings.Contains(o.System, "## Temporary Plugins") || strings.Contains(o.System, "{{") {
		t.Errorf("%+v", o)
	}
	for _, part := range []string{"<history>\n[the person]\nFix", "[the agent]\nLooking.\n[calls read with {}]\n[calls bash with {}]", "[result of read]\npackage x", "[result of bash]\nok\n</history>"} {
		if !strings.Contains(o.Messages[0].Text(), part) {
			t.Errorf("the history lacks %q:\n%s", part, o.Messages[0].Text())
		}
	}
	var kinds []string
	for _, e := range s.Events(before) {
		kinds = append(kinds, string(e.Type))
	}
	if d := cmp.Diff([]string{"compact/start", "user/message", "compact/end"}, kinds); d != "" {
		t.Error(d)
	}

	// The next one carries the first over.
	add(t, s, session.TurnStart{Turn: 2})
	step(t, s, 2, 1, "And now? "+strings.Repeat("Please. ", 1000), "Done too.")
	if _, err := k.summarise(t.Context(), "full", 3, 0); err != nil {
		t.Fatal(err)
	}
	if history := asked[1].Messages[0].Text(); !strings.Contains(history, "[summary of what came before]\n") || !strings.Contains(history, "## Task\nFix the tests.") {
		t.Error(history)
	}
	if text := s.Surface()[0].Message.Text(); !strings.Contains(text, "Both.") || strings.Count(text, "<summary>") != 1 {
		t.Error(text)
	}
}

func types(s *session.Session) []string {
	var kinds []string
	for _, n := range s.Surface() {
		kinds = append(kinds, string(n.Type))
	}
	return kinds
}

// TestSummaryRefused: what is of no use changes nothing, and the log says so.
func TestSummaryRefused(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name, answer string
		ctx          context.Context
		outcome      string
		code         string
		requests     int
	}{
		{"empty", " \n", t.Context(), "failed", codeUseless, 1},
		{"longer", strings.Repeat("blah ", 5000), t.Context(), "failed", codeUseless, 1},
		{"fails", "!" + llm.CodeServer, t.Context(), "failed", llm.CodeServer, 1},
		{"never-fits", "!" + llm.CodeContextWindow, t.Context(), "failed", llm.CodeContextWindow, limits.CompactTries},
		{"cancelled", "fine", cancelled, "canceled", llm.CodeAborted, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSession(t)
			defer func() { _ = s.Close(t.Context()) }()
			add(t, s, session.TurnStart{Turn: 1})
			step(t, s, 1, 1, strings.Repeat("Do it. ", 1000), "Yes.")
			before := show(s)
			var asked []agent.OneShot
			k := &compactor{s: s, ask: answers(&asked, c.answer)}
			n, err := k.summarise(c.ctx, "full", 2, 0)
			if n != 0 || llm.AsFailure(err, "").Code != c.code || len(asked) != c.requests {
				t.Fatal(n, err, len(asked))
			}
			if d := cmp.Diff(before, show(s)); d != "" {
				t.Error(d)
			}
			p, _ := s.Events(s.Len() - 1)[0].Payload()
			if end, ok := p.(session.CompactEnd); !ok || end.Outcome != c.outcome || end.Failure.Code != c.code {
				t.Errorf("%+v", p)
			}
			for i := 1; i < len(asked); i++ {
				if a, b := len(asked[i-1].Messages[0].Text()), len(asked[i].Messages[0].Text()); b > a*2/3 {
					t.Errorf("request %d has %d bytes after %d", i+1, b, a)
				}
			}
		})
	}
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	add(t, s, session.TurnStart{Turn: 1})
	step(t, s, 1, 1, "Hi.", "Hi.")
	k := &compactor{s: s}
	if _, err := k.summarise(t.Context(), "full", 2, 1000); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
	if _, err := k.summarise(t.Context(), "full", 0, 0); !errors.Is(err, ErrNothing) {
		t.Error(err)
	}
}

// TestTranscript: it keeps to its size, the beginning and the end.
func TestTranscript(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	add(t, s, session.TurnStart{Turn: 1})
	for i := range 100 {
		step(t, s, 1, i+1, "", fmt.Sprintf("Step %d.", i), "read:"+strings.Repeat("日本語 text ", 800))
	}
	for _, tokens := range []int64{100, 1000, 10_000, 100_000, 1_000_000} {
		got := transcript(s.Surface(), tokens)
		if n := textTokens(got); n > tokens+50 || n < tokens/3 && tokens > 100 && tokens < 1_000_000 {
			t.Errorf("%d tokens instead of %d", n, tokens)
		}
		if tokens > 1000 && (!strings.Contains(got, "Step 0.") || !strings.Contains(got, "Step 99.")) {
			t.Errorf("%d tokens: the beginning or the end is missing", tokens)
		}
	}
}

// TestMeter: the provider's count, what came after it, and a replace.
func TestMeter(t *testing.T) {
	s := newSession(t)
	defer func() { _ = s.Close(t.Context()) }()
	var m meter
	add(t, s, session.TurnStart{Turn: 1})
	step(t, s, 1, 1, strings.Repeat("word", 4000), "ok")
	if got := m.tokens(s.Log); got < 4000 || got > 4200 {
		t.Errorf("an estimate of %d", got)
	}
	counted := func(n int, usage message.Usage) {
		add(t, s, session.StepStart{Turn: 1, Step: n})
		a := sessiontest.Answer(1, n, fmt.Sprint("x", n), "ok")
		a.Usage = &usage
		add(t, s, a, session.StepEnd{Turn: 1, Step: n})
	}
	counted(2, message.Usage{Input: 14_000, CacheRead: 900, Output: 100})
	if got := m.tokens(s.Log); got != 15_000 {
		t.Errorf("counted %d", got)
	}
	step(t, s, 1, 3, strings.Repeat("word", 100), "ok")
	if got := m.tokens(s.Log); got < 15_100 || got > 15_150 {
		t.Errorf("counted and estimated %d", got)
	}
	counted(4, message.Usage{Output: 7}) // a provider that does not count the prompt
	if got := m.tokens(s.Log); got < 15_100 || got > 15_170 {
		t.Errorf("a count of nothing: %d", got)
	}
	before := m.tokens(s.Log)
	m.calibrate(s.Log)
	k := &compactor{s: s, ask: answers(new([]agent.OneShot), "short")}
	if _, err := k.summarise(t.Context(), "full", 3, 0); err != nil {
		t.Fatal(err)
	}
	if got := m.tokens(s.Log); got >= before || got < estimate(s.Log)*3 {
		t.Errorf("%d after %d, estimated %d", got, before, estimate(s.Log))
	}
	var again meter
	counted(5, message.Usage{Input: 50, Output: 5})
	if a, b := m.tokens(s.Log), again.tokens(s.Log); a != 55 || b != 55 {
		t.Error(a, b)
	}
}

// TestRoom: what is left for a request.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ window, answer, full int64 }{
		{0, 0, 0}, {0, 5000, 0}, {1000, 0, 900}, {1000, 200, 800}, {1000, 5000, 500}, {1_000_000, 256_000, 744_000},
	} {
		if got := roomIn(c.window, c.answer); got.full != c.full || got.window != c.window {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}
