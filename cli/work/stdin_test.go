package work

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/providers"
	"github.com/dsh-go/dsh/session"
)

// TestAddPiped: what is in a file or a pipe is added to a task, within limits.
func TestAddPiped(t *testing.T) {
	tests := []struct {
		name, text, provider string
		pipe                 bool
		want, wrong          string
	}{
		{"file", "a\nb\n", "", false, "do\n\n<standard-input bytes=\"3\">\na\nb\n</standard-input>", ""},
		{"pipe", "a", "", true, "do\n\n<standard-input bytes=\"1\">\na\n</standard-input>", ""},
		{"empty", "", "", false, "do", ""},
		{"closedPipe", "", "", true, "do", ""},
		{"manual", "a", providers.Manual, false, "do", ""},
		{"binary", "\xff\x00", "", false, "do", "not UTF-8"},
		{"most", strings.Repeat("x", limits.TaskText-2), "", false, "", ""},
		{"tooMuch", strings.Repeat("x", limits.TaskText-1), "", false, "do", "more than 1048576 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "in")
			if err := os.WriteFile(name, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := os.Open(name)
			if tt.pipe {
				var out *os.File
				if in, out, err = os.Pipe(); err == nil {
					_, err = out.WriteString(tt.text)
					out.Close()
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			defer in.Close()
			o := &runOptions{task: "do", config: llm.Config{Provider: tt.provider}}
			err = o.addPiped(t.Context(), command.Streams{In: in, Err: &buffer{}}, time.Minute)
			if (tt.wrong == "") != (err == nil) || err != nil && (!strings.Contains(err.Error(), tt.wrong) || command.Status(err) != command.Usage) {
				t.Fatalf("error %v, want %q", err, tt.wrong)
			}
			if tt.want != "" && o.task != tt.want || tt.want == "" && !strings.Contains(o.task, tt.text) {
				t.Errorf("%.100q, want %.100q", o.task, tt.want)
			}
		})
	}
}

// TestSilentPipe: a pipe that somebody holds and never writes to is not waited for.
func TestSilentPipe(t *testing.T) {
	in, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer held.Close() // the reader that still waits goes
	var errs buffer
	o := &runOptions{task: "do"}
	if err := o.addPiped(t.Context(), command.Streams{In: in, Err: &errs}, time.Millisecond); err != nil || o.task != "do" || !strings.Contains(errs.String(), "nothing came on standard input for 1ms") {
		t.Errorf("%v, %q: %s", err, o.task, &errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := o.addPiped(ctx, command.Streams{In: in, Err: &errs}, time.Minute); command.Status(err) != exitInterrupted {
		t.Errorf("interrupted: %v", err)
	}
}

// TestNotPiped: what is no file and no pipe is not read.
func TestNotPiped(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, in := range []io.Reader{null, strings.NewReader("x"), nil} {
		if piped(in) {
			t.Errorf("%T is read", in)
		}
	}
}

// TestShowRunning: a session that is in use is shown as it is, and list marks it.
func TestShowRunning(t *testing.T) {
	home(t, "")
	st, err := store()
	if err != nil {
		t.Fatal(err)
	}
	cwd, err := here()
	if err != nil {
		t.Fatal(err)
	}
	s, err := st.Create(t.Context(), session.Meta{ID: "goes-on", Cwd: cwd})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Append(session.TurnStart{Turn: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := func(args ...string) string {
		t.Helper()
		var out, errs buffer
		if err := do(t.Context(), command.Streams{In: io.NopCloser(strings.NewReader("")), Out: &out, Err: &errs}, args...); err != nil {
			t.Fatalf("%v: %s", err, &errs)
		}
		return out.String()
	}
	mark := running(st.Holder("goes-on"))
	for _, args := range [][]string{{"sessions", "show", "latest"}, {"sessions", "list"}} {
		if got := shown(args...); !strings.Contains(got, mark) || strings.Contains(got, "interrupted") {
			t.Errorf("%v: %s", args, got)
		}
	}
	if got := shown("sessions", "list", "--json"); !strings.Contains(got, `"process":`) {
		t.Error(got)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := shown("sessions", "show", "latest"); strings.Contains(got, "running") || !strings.Contains(got, "interrupted") {
		t.Errorf("when it has ended: %s", got)
	}
}
