//go:build unix

package jsonl

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// TestPipes: a pipe in the place of a file is refused at once, breaks no other
// session, and can be removed.
func TestPipes(t *testing.T) {
	for _, name := range []string{logName, lockName} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			stored(t, s, "good", 1)
			path := filepath.Join(filepath.Dir(stored(t, s, "bad", 1)), name)
			must(t, os.Remove(path))
			must(t, syscall.Mkfifo(path, 0o600))
			if _, err := s.Open(t.Context(), "bad"); !errors.Is(err, session.ErrCorrupt) || !strings.Contains(err.Error(), "no regular file") {
				t.Errorf("open: %v", err)
			}
			list, err := s.List(t.Context(), session.Filter{})
			if err != nil || len(list) != 2 {
				t.Fatalf("%+v, %v", list, err)
			}
			for _, sum := range list {
				if bad := sum.Meta.ID == "bad" && name == logName; bad != errors.Is(sum.Err, session.ErrCorrupt) {
					t.Errorf("%s: %v", sum.Meta.ID, sum.Err)
				}
			}
			must(t, s.Delete(t.Context(), "bad"))
			if _, err := s.Read(t.Context(), "bad"); !errors.Is(err, session.ErrNotFound) {
				t.Errorf("after delete: %v", err)
			}
		})
	}
}

func TestPipeAttachment(t *testing.T) {
	s := newStore(t)
	dir := filepath.Dir(stored(t, s, "one", 1))
	hash := strings.Repeat("a", 64)
	must(t, os.Mkdir(filepath.Join(dir, attName), 0o700))
	must(t, syscall.Mkfifo(filepath.Join(dir, attName, hash), 0o600))
	if _, err := s.Attachment(t.Context(), "one", hash); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("attachment: %v", err)
	}
	if err := s.Export(t.Context(), "one", &strings.Builder{}); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("export: %v", err)
	}
	if _, err := s.Fork(t.Context(), "one", -1, "two"); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("fork: %v", err)
	}
	must(t, s.Delete(t.Context(), "one"))
}

// TestDamagedFolders: whatever has the name of a session is listed, with why it is
// none, and can be removed.
func TestDamagedFolders(t *testing.T) {
	tests := []struct {
		name   string
		damage func(dir string) error
		want   string
	}{
		{"noLog", func(dir string) error { return os.Remove(filepath.Join(dir, logName)) }, "it has no log.jsonl"},
		{"copied", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, logName), []byte(session.Meta{ID: "k2", CreatedAt: 1}.Line()+"\n"), 0o600)
		}, "it is the log of session k2"},
		{"lastLine", func(dir string) error {
			f, err := os.OpenFile(filepath.Join(dir, logName), os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			_, err = f.WriteString("{\"type\":\n")
			return errors.Join(err, f.Close())
		}, "the last line"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStore(t)
			must(t, tt.damage(filepath.Dir(stored(t, s, "k3", 1))))
			list, err := s.List(t.Context(), session.Filter{})
			if err != nil || len(list) != 1 || list[0].Meta.ID != "k3" || !errors.Is(list[0].Err, session.ErrCorrupt) || !strings.Contains(list[0].Err.Error(), tt.want) {
				t.Fatalf("%+v, %v", list, err)
			}
			if _, err := s.Create(t.Context(), session.Meta{ID: "k3"}); !errors.Is(err, session.ErrExists) {
				t.Errorf("create: %v", err)
			}
			for _, err := range []error{second(s.Open(t.Context(), "k3")), second(s.Read(t.Context(), "k3"))} {
				if !errors.Is(err, session.ErrCorrupt) {
					t.Errorf("open, read: %v", err)
				}
			}
			must(t, s.Delete(t.Context(), "k3"))
			if list, err := s.List(t.Context(), session.Filter{}); err != nil || len(list) != 0 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// TestForkBeforeDamage: what is whole of a damaged log can be had.
func TestForkBeforeDamage(t *testing.T) {
	s := newStore(t)
	path := stored(t, s, "one", 2)
	l, err := s.Read(t.Context(), "one")
	must(t, err)
	if got := s.Sound(t.Context(), "one"); got != -1 {
		t.Errorf("of a log that is whole: %d", got)
	}
	lines := strings.SplitAfter(content(t, path), "\n")
	lines[len(lines)-3] = "garbage\n" // in the second turn
	must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	end := l.Len() / 2 // the first turn has one more
	if got := s.Sound(t.Context(), "one"); got != end {
		t.Errorf("sound to %d, want %d", got, end)
	}
	if _, err := s.Fork(t.Context(), "one", -1, "two"); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("of all: %v", err)
	}
	if _, err := s.Fork(t.Context(), "one", l.Len()-1, "two"); !errors.Is(err, session.ErrCorrupt) {
		t.Errorf("behind the damage: %v", err)
	}
	_, err = s.Fork(t.Context(), "one", end, "two")
	must(t, err)
	forked, err := s.Read(t.Context(), "two")
	must(t, err)
	if forked.Len() != end+1 {
		t.Errorf("%d events", forked.Len())
	}
}

// TestHolder: a lock file that names a process which is not the writer, such as one
// that was killed, does not make a session one that is in use.
func TestHolder(t *testing.T) {
	s := newStore(t)
	path := filepath.Join(filepath.Dir(stored(t, s, "one", 1)), lockName)
	if got := content(t, path); got != "" {
		t.Errorf("after the end the lock names %q", got)
	}
	must(t, os.WriteFile(path, []byte(`{"pid":1,"since":1}`+"\n"), 0o600))
	if h := s.Holder("one"); h != nil {
		t.Errorf("held by %v", h)
	}
	w, err := s.Open(t.Context(), "one")
	must(t, err)
	if h := s.Holder("one"); h == nil || h.PID != os.Getpid() || h.Since.IsZero() {
		t.Errorf("held by %v", h)
	}
	_, err = w.Append(sessiontest.Turn(2)...)
	must(t, err)
	must(t, w.Close(t.Context()))
	if h := s.Holder("one"); h != nil {
		t.Errorf("held by %v", h)
	}
}
