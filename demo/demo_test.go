package demo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/internal/casetest"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		casetest.Clean()
		os.Exit(status)
	}))
}

// TestReadmeCopy: the demonstration reads the README that everybody reads.
func TestReadmeCopy(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != readme {
		t.Error("demo/readme.txt differs from README.md. Run: cp README.md demo/readme.txt")
	}
}

var excerpt = regexp.MustCompile("(?s)```text\n(.*?)```")

// TestTranscript plays the demonstration with the built program. What the
// README shows of it is in it, in that order; lines with … stand for others.
func TestTranscript(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), casetest.Program(t), "demo")
	cmd.Env = append(os.Environ(), "DSH_HOME="+t.TempDir())
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr.Bytes(), stdout.Bytes())
	}
	if stderr.Len() > 0 {
		t.Errorf("standard error: %s", stderr.Bytes())
	}
	lines := strings.Split(stdout.String(), "\n")
	for i, l := range lines {
		if n := utf8.RuneCountInString(l); n > Columns {
			t.Errorf("line %d has %d columns: %s", i+1, n, l)
		}
	}
	shown := excerpt.FindStringSubmatch(readme)
	if shown == nil {
		t.Fatal("the README shows no transcript")
	}
	at := 0
	for l := range strings.Lines(shown[1]) {
		l = strings.TrimSpace(l)
		if l == "" || strings.HasSuffix(l, "…") {
			continue
		}
		from := at
		for at < len(lines) && strings.TrimSpace(lines[at]) != l {
			at++
		}
		if at == len(lines) {
			t.Fatalf("the README shows a line that does not follow in the transcript: %q; transcript from line %d on:\n%s",
				l, from+1, strings.Join(lines[from:], "\n"))
		}
		at++
	}
}

// TestPlayFails: an answer that is not what the script announces ends the
// demonstration with an error that names the part, and the turn with it.
func TestPlayFails(t *testing.T) {
	k := agenttest.New(t)
	model, err := Model()
	if err != nil {
		t.Fatal(err)
	}
	k.Adapter("demo", model)
	a := k.Start(agent.Options{Model: llm.Config{Provider: "demo", Model: "demo"}})
	var out bytes.Buffer
	err = Play(t.Context(), &out, a)
	if want := `1. What is live: cordis_inspect answered with isError true, announced was false: Error: unknown tool "cordis_inspect"`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q in it", err, want)
	}
	if strings.Contains(out.String(), "each checked") {
		t.Errorf("it claims success:\n%s", out.String())
	}
	if end := k.End(a); end.Kind != session.EndAborted {
		t.Errorf("the turn ended %s", end.Kind)
	}
}

// TestPlayCancelled: the demonstration ends with its context.
func TestPlayCancelled(t *testing.T) {
	k := agenttest.New(t)
	k.Adapter("silent", agenttest.Func(func(ctx context.Context, _ *llm.Request, out *llm.Emitter) {
		<-ctx.Done()
		out.Fail(llm.AsFailure(ctx.Err(), llm.CodeAborted))
	}))
	a := k.Start(agent.Options{Model: llm.Config{Provider: "silent", Model: "x"}})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := Play(ctx, io.Discard, a); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
}

// TestWriteFails: a transcript that nobody can read is an error.
func TestWriteFails(t *testing.T) {
	full := errors.New("no room")
	p := newPrinter(failing{full})
	p.line("a")
	p.line("b")
	if !errors.Is(p.err, full) {
		t.Errorf("error %v, want %v", p.err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestWrap(t *testing.T) {
	tests := []struct {
		name, text string
		width      int
		want       []string
	}{
		{"fits", "one two", 7, []string{"one two"}},
		{"empty", "", 7, []string{""}},
		{"at_space", "one two three", 8, []string{"one two", "three"}},
		{"keeps_indent", "  one two three", 9, []string{"  one two", "  three"}},
		{"long_word", "abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"letters_not_bytes", "ääää ää", 4, []string{"ääää", "ää"}},
		{"deep_indent", "          a b", 8, []string{"    a b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, wrap(tt.text, tt.width)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
