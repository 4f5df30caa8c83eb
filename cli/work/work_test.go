package work

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/providers"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
)

// TestMain: where DSH_TEST_WORKER names a program, that is the worker of mounted
// code and the supervisor of commands.
func TestMain(m *testing.M) {
	command.Program = os.Getenv("DSH_TEST_WORKER")
	goleak.VerifyTestMain(m)
}

type buffer struct{ bytes.Buffer }

func (*buffer) Close() error { return nil }

// home is a folder to work in, with a script of a model in it.
func home(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DSH_HOME", filepath.Join(dir, "dsh"))
	for _, name := range append(keys.Variables(providers.WithKey()...), "DSH_MODEL") {
		t.Setenv(name, "")
	}
	project := filepath.Join(dir, "project")
	if err := os.Mkdir(project, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.yml"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(project)
}

// do runs a command line of this package.
func do(ctx context.Context, s command.Streams, args ...string) error {
	for _, c := range Commands(s) {
		if c.Name() != args[0] {
			continue
		}
		c.SetArgs(args[1:])
		c.SilenceErrors, c.SilenceUsage = true, true
		return c.ExecuteContext(ctx)
	}
	return nil
}

const twoSteps = `
steps:
  - calls: [{name: write, arguments: {file_path: a.txt, content: "a"}}]
  - {expect: {toolResults: [{isError: false}]}, text: "Done."}
`

// TestRunInProcess runs a task in this process, so that the race detector and the
// search for leaks see it.
func TestRunInProcess(t *testing.T) {
	home(t, twoSteps)
	for _, asJSON := range []bool{false, true} {
		var out, errs buffer
		args := []string{"run", "--permission", "auto-edit", "--self", "--model", "script/../model.yml", "write"}
		if asJSON {
			args = append(args, "--json")
		}
		_ = os.Remove("a.txt")
		err := do(t.Context(), command.Streams{In: io.NopCloser(strings.NewReader("")), Out: &out, Err: &errs}, args...)
		if err != nil || !strings.HasPrefix(errs.String(), "session ") {
			t.Fatalf("%v: %s", err, &errs)
		}
		if got, want := out.String(), "Done.\n"; !asJSON && got != want {
			t.Errorf("printed %q", got)
		}
		if n := strings.Count(out.String(), "\n"); asJSON && (n < 20 || !strings.Contains(out.String(), `"type":"tool/result"`)) {
			t.Errorf("%d events", n)
		}
	}
}

// broken is a standard output that nobody reads.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func (broken) Close() error { return nil }

// TestAnswerIsLost: a run whose answer could not be printed did not succeed.
func TestAnswerIsLost(t *testing.T) {
	home(t, "steps:\n  - text: \"Done.\"\n")
	for _, more := range [][]string{nil, {"--json"}} {
		var errs buffer
		err := do(t.Context(), command.Streams{In: io.NopCloser(strings.NewReader("")), Out: broken{}, Err: &errs},
			append([]string{"run", "--model", "script/../model.yml", "x"}, more...)...)
		if command.Status(err) != command.Failure {
			t.Errorf("%v: status %d: %v, %s", more, command.Status(err), err, &errs)
		}
	}
}

// TestRunReaderHangs: whoever asked for the events and reads none does not keep an
// interrupted run.
func TestRunReaderHangs(t *testing.T) {
	home(t, "steps:\n  - {text: \"a story\", chunk: 1, delayMs: 50}\n")
	ctx, cancel := context.WithCancel(t.Context())
	events, out := io.Pipe()
	defer events.Close() // the writer that still waits goes
	done := make(chan error, 1)
	var errs buffer
	go func() {
		done <- do(ctx, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: out, Err: &errs}, "run", "--json", "--model", "script/../model.yml", "x")
	}()
	for s := bufio.NewScanner(events); s.Scan() && !strings.Contains(s.Text(), `"text-delta"`); {
	}
	began := time.Now()
	cancel()
	err := <-done
	if command.Status(err) != exitInterrupted || time.Since(began) > limits.Shutdown {
		t.Errorf("%v after %s: %s", err, time.Since(began), &errs)
	}
}

// TestRunReaderStops: where a run is interrupted when its turn has ended, and not all
// of its events or of its answer was printed, it ends, and its status says so.
func TestRunReaderStops(t *testing.T) {
	for name, tt := range map[string]struct {
		args []string
		read string // what is read of the last line
	}{
		"events": {[]string{"--json"}, `"turn/end"`},
		"answer": {nil, "D"},
	} {
		t.Run(name, func(t *testing.T) {
			home(t, "steps:\n  - text: \"Done.\"\n")
			ctx, cancel := context.WithCancel(t.Context())
			events, out := io.Pipe()
			defer events.Close() // the writer that still waits goes
			done := make(chan error, 1)
			var errs buffer
			go func() {
				done <- do(ctx, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: out, Err: &errs},
					append([]string{"run", "--model", "script/../model.yml", "x"}, tt.args...)...)
			}()
			var read []byte
			for b := make([]byte, 1); !bytes.HasSuffix(read, []byte(tt.read)); {
				if _, err := events.Read(b); err != nil {
					t.Fatal(err)
				}
				read = append(read, b...)
			}
			began := time.Now()
			cancel()
			if err := <-done; command.Status(err) != exitInterrupted || time.Since(began) > limits.Shutdown {
				t.Errorf("%v after %s: %s", err, time.Since(began), &errs)
			}
		})
	}
}

// TestResumeKeepsModel: what DSH_MODEL says is nothing to a session that has a model.
func TestResumeKeepsModel(t *testing.T) {
	home(t, "steps:\n  - text: \"One.\"\n  - text: \"Two.\"\n")
	for i, args := range [][]string{{"--model", "script/../model.yml", "x"}, {"--resume", "y"}} {
		var out, errs buffer
		err := do(t.Context(), command.Streams{In: io.NopCloser(strings.NewReader("")), Out: &out, Err: &errs}, append([]string{"run"}, args...)...)
		if want := []string{"One.\n", "Two.\n"}[i]; err != nil || out.String() != want {
			t.Fatalf("%q: %v, printed %q: %s", args, err, &out, &errs)
		}
		t.Setenv("DSH_MODEL", "nonsense")
	}
}

func TestStatus(t *testing.T) {
	tests := []struct {
		reason session.EndReason
		want   int
	}{
		{session.EndReason{Kind: session.EndCompleted}, 0},
		{session.EndReason{Kind: session.EndDenied}, 3},
		{session.EndReason{Kind: session.EndLimit}, 1},
		{session.EndReason{Kind: session.EndMaxTokens}, 1},
		{session.EndReason{Kind: session.EndBlocked}, 1},
		{session.EndReason{Kind: session.EndError}, 1},
		{session.EndReason{Kind: session.EndAborted, Abort: &session.AbortReason{Kind: "user"}}, 4},
		{session.EndReason{Kind: session.EndAborted, Abort: &session.AbortReason{Kind: "hook"}}, 1},
		{session.EndReason{Kind: session.EndInterrupted}, 4},
	}
	for _, tt := range tests {
		if got := statusOf(tt.reason); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.reason, got, tt.want)
		}
	}
}

func TestChooseModel(t *testing.T) {
	store := func(name string) keys.Store {
		return keys.Store{Env: func(n string) (string, bool) { return map[string]string{name: "sk-x"}[n], n == name }}
	}
	tests := []struct {
		name, text, env, key string
		want                 llm.Config
		wrong                string
	}{
		{"flag", "openai/a/b", "manual", "", llm.Config{Provider: "openai", Model: "a/b"}, ""},
		{"variable", "", "anthropic", "", llm.Config{Provider: "anthropic"}, ""},
		{"key", "", "", "ANTHROPIC_API_KEY", llm.Config{Provider: "anthropic"}, ""},
		{"none", "", "", "", llm.Config{}, "--model manual"},
		{"unknown", "", "gpt", "", llm.Config{}, `DSH_MODEL "gpt": there is no provider "gpt"`},
		{"script", "script", "", "", llm.Config{}, "needs a file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := chooseModel(tt.text, tt.env, store(tt.key))
			if got != tt.want || (tt.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%+v, %v", got, err)
			}
			if err != nil && command.Status(err) != command.Usage {
				t.Errorf("status %d", command.Status(err))
			}
		})
	}
}

func TestFind(t *testing.T) {
	store := memory.New()
	for _, id := range []string{"abc", "abd", "ab", "x1"} {
		s, err := store.Create(t.Context(), session.Meta{ID: id, Cwd: "/c"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Append(session.Title{Title: id}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ name, cwd, want, wrong string }{
		{"x", "/c", "x1", ""}, {"ab", "/c", "ab", ""}, {"abc", "/c", "abc", ""}, {"a", "/c", "", "the beginning of 3 sessions: ab, abc, abd"},
		{"y", "/c", "", `there is no session "y"`}, {"", "/c", "", "the id is empty"}, {latest, "/d", "", "no session of the folder /d"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := find(t.Context(), store, tt.name, tt.cwd)
			if got != tt.want || (tt.wrong == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if got, err := find(t.Context(), store, latest, "/c"); err != nil || got == "" {
		t.Errorf("latest: %q, %v", got, err)
	}
}

// TestDenyEverywhere: what is denied is denied to what belongs to no session, too.
func TestDenyEverywhere(t *testing.T) {
	rule, err := permission.ParseRule("read(secrets/**)")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DSH_HOME", t.TempDir())
	w := &work{o: &runOptions{cwd: t.TempDir()}, desk: &desk{}, s: command.Streams{Err: new(logBuffer)}}
	w.o.rules.deny = []permission.Rule{rule}
	if err := w.compose(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer w.running.Stop()
	policy, err := permission.Service.Use(w.root)
	if err != nil {
		t.Fatal(err)
	}
	if got := policy.Describe(nil); !strings.Contains(got, "read-only") || !strings.Contains(got, "read(secrets/**)") {
		t.Errorf("got %s", got)
	}
}
