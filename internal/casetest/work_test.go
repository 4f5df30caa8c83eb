package casetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// modelServer speaks the API of OpenAI. Each request is answered with the next
// of its answers, the last one again and again.
type modelServer struct {
	*httptest.Server
	mu      sync.Mutex
	asked   chan struct{} // one for each request
	headers []http.Header
	bodies  []string
}

func serveModel(t testing.TB, answers ...func(w http.ResponseWriter, r *http.Request)) *modelServer {
	m := &modelServer{asked: make(chan struct{}, 1000)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		m.mu.Lock()
		n := len(m.bodies)
		m.bodies, m.headers = append(m.bodies, string(body)), append(m.headers, r.Header.Clone())
		m.mu.Unlock()
		m.asked <- struct{}{}
		w.Header().Set("Content-Type", "text/event-stream")
		answers[min(n, len(answers)-1)](w, r)
	}))
	t.Cleanup(func() { m.CloseClientConnections(); m.Close() })
	return m
}

// wait waits for the next request.
func (m *modelServer) wait(t testing.TB) {
	t.Helper()
	select {
	case <-m.asked:
	case <-time.After(20 * time.Second):
		t.Fatal("no request came")
	}
}

// delta sends one chunk of an answer; finish may be null.
func delta(w io.Writer, content map[string]any, finish any) {
	text, _ := json.Marshal(map[string]any{"id": "c", "object": "chat.completion.chunk", "model": "m",
		"choices": []any{map[string]any{"index": 0, "delta": content, "finish_reason": finish}}})
	fmt.Fprintf(w, "data: %s\n\n", text)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

func says(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		delta(w, map[string]any{"role": "assistant", "content": text}, nil)
		delta(w, map[string]any{}, "stop")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func calls(name, arguments string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		delta(w, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"index": 0, "id": "call_1", "type": "function",
			"function": map[string]any{"name": name, "arguments": arguments}}}}, nil)
		delta(w, map[string]any{}, "tool_calls")
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

// stalls says something, and then nothing until the client has gone.
func stalls(w http.ResponseWriter, r *http.Request) {
	delta(w, map[string]any{"role": "assistant", "content": "I begin"}, nil)
	<-r.Context().Done()
}

// place is a folder to work in, and a home.
type place struct{ dir, home string }

func newPlace(t testing.TB) place {
	t.Helper()
	top := t.TempDir()
	p := place{filepath.Join(top, "project"), filepath.Join(top, "dsh")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return p
}

// command is a run of the program in the place.
func (p place) command(ctx context.Context, t testing.TB, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, Program(t), args...)
	cmd.Dir = p.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir + "/..", "DSH_HOME=" + p.home, "SystemRoot=" + os.Getenv("SystemRoot")}, env...)
	return cmd
}

// status is the exit status of a command that ran.
func status(t testing.TB, err error) int {
	t.Helper()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return 0
}

// TestRunKey: the key goes to the provider and nowhere else: not into a session, not
// into what is printed, not into the environment of a command.
func TestRunKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the model of this test calls for POSIX commands (env, cat), which Windows does not have")
	}
	const secret = "sk-loopback-0123456789abcdef"
	for _, from := range []string{"environment", "file"} {
		t.Run(from, func(t *testing.T) {
			server := serveModel(t, calls("bash", `{"command":"env; cat \"$DSH_HOME/credentials.yml\" ../dsh/credentials.yml"}`), says("All done."))
			p := newPlace(t)
			env := []string{"OPENAI_BASE_URL=" + server.URL, "OPENAI_API_KEY=" + secret}
			if from == "file" {
				set := p.command(t.Context(), t, nil, "auth", "set", "openai", "--base-url", server.URL)
				set.Stdin = strings.NewReader(secret + "\n")
				if out, err := set.CombinedOutput(); err != nil || bytes.Contains(out, []byte(secret)) {
					t.Fatalf("%v: %s", err, out)
				}
				env = nil
			}
			args := []string{"run", "--permission", "full", "show the environment"}
			if from == "environment" {
				args = append([]string{"run", "--model", "openai/m", "--json"}, args[1:]...)
			}
			cmd := p.command(t.Context(), t, env, args...)
			out, err := cmd.CombinedOutput()
			if status(t, err) != 0 || !bytes.Contains(out, []byte("All done.")) {
				t.Fatalf("%v: %s", err, out)
			}
			for i, h := range server.headers {
				if got := h.Get("Authorization"); got != "Bearer "+secret {
					t.Errorf("request %d has the authorization %q", i, got)
				}
			}
			if from == "environment" { // a command may read files that its person may read
				checkAbsent(t, p, secret, out)
				for i, body := range server.bodies {
					if strings.Contains(body, secret) {
						t.Errorf("request %d tells the model the key", i)
					}
				}
			}
		})
	}
}

// checkAbsent looks for a secret in what was printed and in all files.
func checkAbsent(t *testing.T, p place, secret string, printed []byte) {
	t.Helper()
	if bytes.Contains(printed, []byte(secret)) {
		t.Error("the key was printed")
	}
	files := 0
	err := filepath.WalkDir(filepath.Dir(p.dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "credentials.yml" {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("the key is in %s", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Errorf("looked at %d files: %v", files, err)
	}
}

// TestRunInterrupted: the first signal cancels the turn, the log is whole, and the
// session goes on later; the second one ends the program at once.
func TestRunInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals that end a process in order")
	}
	for _, tt := range []struct {
		name  string
		first func(http.ResponseWriter, *http.Request)
	}{
		{"streaming", stalls},
		{"in_a_tool", calls("bash", `{"command":"trap '' INT TERM; echo started > started; sleep 60 & wait; sleep 60"}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := serveModel(t, tt.first, says("Now it is done."))
			p := newPlace(t)
			env := []string{"OPENAI_BASE_URL=" + server.URL}
			args := []string{"run", "--model", "openai/m", "--permission", "full", "--session", "cut"}
			var out bytes.Buffer
			cmd := p.command(t.Context(), t, env, append(args, "work")...)
			cmd.Stderr = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			server.wait(t)
			if tt.name == "in_a_tool" {
				waitFile(t, filepath.Join(p.dir, "started"))
			}
			began := time.Now()
			if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			if got := status(t, cmd.Wait()); got != 4 || !strings.Contains(out.String(), "session cut\n") {
				t.Errorf("status %d: %s", got, &out)
			}
			if took := time.Since(began); took > closeWithin {
				t.Errorf("it took %s to end", took)
			}
			resumed, err := p.command(t.Context(), t, env, append(args, "--resume")...).CombinedOutput()
			if status(t, err) != 0 || !strings.Contains(string(resumed), "Now it is done.") {
				t.Errorf("%v: %s", err, resumed)
			}
		})
	}
}

// TestRunLeavesNothing: however a run ends, in time or at once, nothing that it
// started outlives it, and a person reads in plain words what had to be killed.
func TestRunLeavesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals that end a process in order")
	}
	const (
		deaf   = `trap '' INT TERM HUP; echo $$ > new; mv new pid; while :; do sleep 60; done`
		killed = "is killed: the command \"trap '' INT TERM HUP; "
		after  = "; a resume tells the model\nsession cut\n"
	)
	background := calls("bash", `{"run_in_background":true,"command":"`+deaf+`"}`)
	running := calls("bash", `{"command":"until [ -e pid ]; do sleep 0.01; done"}`)
	for _, tt := range []struct {
		name    string
		answers []func(http.ResponseWriter, *http.Request)
		args    []string
		signals []syscall.Signal
		status  int
		said    string
	}{
		{"completed", []func(http.ResponseWriter, *http.Request){background, running, says("Bye.")}, nil, nil, 0, ""},
		{"interrupted", []func(http.ResponseWriter, *http.Request){calls("bash", `{"command":"`+deaf+`"}`)}, nil, []syscall.Signal{syscall.SIGINT}, 4, killed},
		{"interrupted_beside", []func(http.ResponseWriter, *http.Request){background, running, stalls}, nil, []syscall.Signal{syscall.SIGTERM}, 4, ""},
		{"timeout", []func(http.ResponseWriter, *http.Request){calls("bash", `{"command":"`+deaf+`"}`)}, []string{"--timeout", "2s"}, nil, 1, killed},
		{"twice", []func(http.ResponseWriter, *http.Request){calls("bash", `{"command":"`+deaf+`"}`)}, nil, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}, -1,
			"dsh run: ended at once; what it still ran is killed; dsh run --resume --session cut goes on\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := serveModel(t, tt.answers...)
			p := newPlace(t)
			args := append([]string{"run", "--model", "openai/m", "--permission", "full", "--session", "cut"}, tt.args...)
			cmd := p.command(t.Context(), t, []string{"OPENAI_BASE_URL=" + server.URL}, append(args, "work")...)
			var errs bytes.Buffer
			cmd.Stderr = &errs
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFile(t, filepath.Join(p.dir, "pid"))
			if tt.name == "interrupted_beside" {
				for range tt.answers {
					server.wait(t)
				}
			}
			for _, s := range tt.signals {
				if err := cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			if got := status(t, cmd.Wait()); got != tt.status {
				t.Errorf("status %d, want %d", got, tt.status)
			}
			if got := errs.String(); !strings.Contains(got, tt.said) || !strings.HasSuffix(got, "session cut\n") || tt.said == killed && !strings.HasSuffix(got, after) {
				t.Errorf("said %s", got)
			}
			if tt.status == 0 && errs.String() != "session cut\n" {
				t.Errorf("said %s", &errs)
			}
			text, err := os.ReadFile(filepath.Join(p.dir, "pid"))
			if err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Sscan(string(text), &pid); err != nil {
				t.Fatal(err)
			}
			patience := time.Duration(0)
			if tt.name == "twice" { // its supervisor has seen it go, and ends it
				patience = 10 * time.Second
			}
			if !gone(pid, patience) {
				t.Error("the command outlived the run")
			}
		})
	}
}

// waitFile waits until a file is there.
func waitFile(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return
		}
	}
	t.Fatalf("%s did not come", name)
}

// BenchmarkRunStart is dsh run from its start to its first request, as the server
// of the model sees it.
func BenchmarkRunStart(b *testing.B) {
	for _, self := range []bool{false, true} {
		b.Run(fmt.Sprintf("self=%t", self), func(b *testing.B) {
			server := serveModel(b, says("Done."))
			p := newPlace(b)
			first := 0.0
			for b.Loop() {
				cmd := p.command(b.Context(), b, []string{"OPENAI_BASE_URL=" + server.URL}, "run", "--model", "openai/m", fmt.Sprintf("--self=%t", self), "hello")
				begun := time.Now()
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				server.wait(b)
				first += float64(time.Since(begun).Microseconds()) / 1000
				if err := cmd.Wait(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(first/float64(b.N), "ms-to-request")
		})
	}
}
