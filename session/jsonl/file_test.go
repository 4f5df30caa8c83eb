package jsonl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/sessiontest"
)

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := New(filepath.Join(t.TempDir(), "home", "sessions"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stored makes a session of whole turns and returns the path of its log.
func stored(t testing.TB, s *Store, id string, turns int) string {
	t.Helper()
	w, err := s.Create(context.Background(), session.Meta{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	for turn := 1; turn <= turns; turn++ {
		if _, err := w.Append(sessiontest.Turn(turn)...); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(s.Root(), id, logName)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// snapshot returns the names, modes and contents of everything in a folder.
func snapshot(t *testing.T, root string) map[string]string {
	t.Helper()
	all := map[string]string{}
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := ""
		if !d.IsDir() {
			text = content(t, path)
		}
		all[strings.TrimPrefix(path, root)] = info.Mode().String() + " " + text
		return nil
	}))
	return all
}

func TestLayout(t *testing.T) {
	s := newStore(t)
	w, err := s.Create(t.Context(), session.Meta{ID: "one"})
	must(t, err)
	_, err = w.Append(sessiontest.Turn(1)...)
	must(t, err)
	a, err := w.Attach("image/png", "", []byte("bytes"))
	must(t, err)
	must(t, w.Close(t.Context()))
	got := map[string]string{}
	for name, text := range snapshot(t, filepath.Dir(s.Root())) {
		got[name], _, _ = strings.Cut(text, " ")
	}
	want := map[string]string{
		"/sessions": "drwx------", "/sessions/one": "drwx------", "/sessions/one/attachments": "drwx------",
		"/sessions/one/log.jsonl": "-rw-------", "/sessions/one/lock": "-rw-------", "/sessions/one/attachments/" + a.Hash: "-rw-------",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestTornTail: a log that is cut anywhere opens with every whole event, and with
// nothing else but the repair.
func TestTornTail(t *testing.T) {
	s := newStore(t)
	path := stored(t, s, "one", 2)
	whole := content(t, path)
	first := strings.IndexByte(whole, '\n') + 1
	one := first + strings.IndexByte(whole[first:], '\n') + 1 // without an event, Close removes the session
	for cut := one; cut < len(whole); cut += 17 {
		must(t, os.WriteFile(path, []byte(whole[:cut]), 0o600))
		kept := whole[first : strings.LastIndexByte(whole[:cut], '\n')+1]
		l, err := s.Read(t.Context(), "one")
		must(t, err)
		if content(t, path) != whole[:cut] {
			t.Fatal("Read changed the file")
		}
		w, err := s.Open(t.Context(), "one")
		must(t, err)
		lines := sessiontest.Lines(w.Events(0))
		if d := cmp.Diff(sessiontest.Lines(l.Events(0)), lines[:l.Len()]); d != "" {
			t.Fatal(d)
		}
		if text := strings.Join(append(lines, ""), "\n"); !strings.HasPrefix(text, kept) {
			t.Fatalf("cut at %d: lost what was whole", cut)
		}
		if turn := w.Turn(); turn.TurnOpen {
			t.Fatalf("cut at %d: %+v", cut, turn)
		}
		must(t, w.Close(t.Context()))
		if text := content(t, path); !strings.HasPrefix(text, whole[:first]+kept) || !strings.HasSuffix(text, "\n") {
			t.Fatalf("cut at %d: %q", cut, text)
		}
	}
}

// TestDamage: what cannot be read is named, and nothing is written.
func TestDamage(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(lines []string) string
		is     error
		want   string
	}{
		{"garbage-in-the-middle", func(l []string) string { l[4] = "garbage"; return strings.Join(l, "\n") }, session.ErrCorrupt, "line 5"},
		{"empty-line", func(l []string) string { l[4] = ""; return strings.Join(l, "\n") }, session.ErrCorrupt, "line 5"},
		{"line-missing", func(l []string) string { return strings.Join(append(l[:3:3], l[4:]...), "\n") }, session.ErrCorrupt, "line 4"},
		{"line-twice", func(l []string) string { l[4] = l[3]; return strings.Join(l, "\n") }, session.ErrCorrupt, "line 5"},
		{"half-a-line", func(l []string) string { l[5] = l[5][:20]; return strings.Join(l, "\n") }, session.ErrCorrupt, "line 6"},
		{"a-rule-broken", func(l []string) string {
			l[8] = strings.Replace(l[8], "c1", "c9", 1)
			return strings.Join(l, "\n")
		}, session.ErrCorrupt, "line 9"},
		{"newer", func(l []string) string {
			return strings.Replace(strings.Join(l, "\n"), `"version":1`, `"version":2,"shape":[]`, 1)
		}, session.ErrNewer, "its format is 2"},
		{"no-header", func(l []string) string { return strings.Join(l[1:], "\n") }, session.ErrCorrupt, "line 1"},
		{"torn-header", func(l []string) string { return l[0][:30] }, session.ErrCorrupt, "line 1"},
		{"empty-file", func([]string) string { return "" }, session.ErrCorrupt, "line 1"},
		{"another-session", func(l []string) string {
			l[0] = strings.Replace(l[0], `"id":"one"`, `"id":"two"`, 1)
			return strings.Join(l, "\n")
		}, session.ErrCorrupt, "session two"},
		{"nul-bytes", func(l []string) string { l[6] = strings.Repeat("\x00", 100); return strings.Join(l, "\n") }, session.ErrCorrupt, "line 7"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			path := stored(t, s, "one", 1)
			must(t, os.WriteFile(path, []byte(c.damage(strings.Split(content(t, path), "\n"))), 0o600))
			must(t, os.WriteFile(filepath.Join(s.Root(), "one", lockName), nil, 0o600))
			damaged := content(t, path)
			_, openErr := s.Open(t.Context(), "one")
			_, readErr := s.Read(t.Context(), "one")
			_, forkErr := s.Fork(t.Context(), "one", -1, "two")
			for _, err := range []error{openErr, readErr, forkErr} {
				if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "nothing was changed") {
					t.Errorf("got %v, want %q", err, c.want)
				}
			}
			if content(t, path) != damaged {
				t.Error("the log was changed")
			}
			if c.is == session.ErrNewer && content(t, filepath.Join(s.Root(), "one", lockName)) != "" {
				t.Error("the lock was changed")
			}
			list, err := s.List(t.Context(), session.Filter{})
			if err != nil || len(list) != 1 || list[0].Meta.ID == "" {
				t.Errorf("list: %+v %v", list, err)
			}
			must(t, s.Delete(t.Context(), "one")) // it can still be thrown away
		})
	}
}

// badFile is a log on a disk that fails.
type badFile struct {
	file
	room  int64 // bytes until the disk is full
	sync  error
	syncs int
}

func (b *badFile) WriteAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > b.room {
		n, _ := b.file.WriteAt(p[:max(b.room-off, 0)], off)
		return n, &fs.PathError{Op: "write", Path: logName, Err: syscall.ENOSPC}
	}
	return b.file.WriteAt(p, off)
}

func (b *badFile) Sync() error {
	b.syncs++
	return errors.Join(b.sync, b.file.Sync())
}

// opened returns a session whose file is bad, and its writer.
func opened(t *testing.T, s *Store, id string) (*session.Session, *writer, *badFile) {
	t.Helper()
	w, err := s.build(session.Meta{ID: id}, nil, "")
	must(t, err)
	l, err := session.NewLog(session.Meta{ID: id}, nil)
	must(t, err)
	bad := &badFile{file: w.file, room: 1 << 30}
	w.file = bad
	return session.NewSession(l, w, 0), w, bad
}

func TestFullDisk(t *testing.T) {
	s := newStore(t)
	w, _, bad := opened(t, s, "one")
	_, err := w.Append(sessiontest.Turn(1)...)
	must(t, err)
	must(t, w.Checkpoint(t.Context()))
	path := filepath.Join(s.Root(), "one", logName)
	durable := content(t, path)
	bad.room = int64(len(durable)) + 200
	_, err = w.Append(sessiontest.Turn(2)...)
	must(t, err)
	for range 2 {
		err = w.Checkpoint(t.Context())
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free some space") {
			t.Fatal(err)
		}
		if content(t, path) != durable {
			t.Fatal("part of a batch is there")
		}
	}
	bad.room = 1 << 30 // some space is freed
	must(t, w.Close(t.Context()))
	l, err := s.Read(t.Context(), "one")
	must(t, err)
	if d := cmp.Diff(sessiontest.Lines(w.Events(0)), sessiontest.Lines(l.Events(0))); d != "" {
		t.Error(d)
	}
}

func TestFailedSync(t *testing.T) {
	s := newStore(t)
	w, _, bad := opened(t, s, "one")
	_, err := w.Append(sessiontest.Turn(1)...)
	must(t, err)
	bad.sync = syscall.EIO
	for range 2 {
		if err := w.Checkpoint(t.Context()); !errors.Is(err, syscall.EIO) || !errors.Is(err, session.ErrClosed) {
			t.Fatal(err)
		}
		bad.sync = nil // it stays broken: what the file holds is not known
	}
	if err := w.Close(t.Context()); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
}

// TestOneSyncPerBatch: a checkpoint of many appends is one sync, one with nothing
// new is none.
func TestOneSyncPerBatch(t *testing.T) {
	w, _, bad := opened(t, newStore(t), "one")
	for turn := 1; turn <= 20; turn++ {
		_, err := w.Append(sessiontest.Turn(turn)...)
		must(t, err)
	}
	for range 3 {
		must(t, w.Checkpoint(t.Context()))
	}
	if bad.syncs > 2 { // one may be of the batch that wrote itself
		t.Errorf("%d syncs", bad.syncs)
	}
	must(t, w.Close(t.Context()))
}

// TestUnwritableHome: a home that cannot be written to is named, and why.
func TestUnwritableHome(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, want string
		prepare    func(home string) error
	}{
		{"a-file", "not a directory", func(home string) error { return os.WriteFile(home, nil, 0o600) }},
		{"read-only", "DSH_HOME", func(home string) error { return os.Mkdir(home, 0o500) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name == "read-only" && os.Getuid() == 0 {
				t.Skip("root may write anywhere")
			}
			home := filepath.Join(dir, c.name)
			must(t, c.prepare(home))
			s, err := New(filepath.Join(home, "sessions"))
			if err == nil {
				_, err = s.Create(t.Context(), session.Meta{ID: "one"})
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), home) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := explain(&fs.PathError{Op: "open", Path: "x", Err: syscall.EROFS}); !strings.Contains(err.Error(), "DSH_HOME") {
		t.Error(err)
	}
}

// TestSweep: what a crash left is removed, what somebody is making is not.
func TestSweep(t *testing.T) {
	s := newStore(t)
	stored(t, s, "one", 1)
	for _, name := range []string{".new-dead-1", ".new-alive-1", ".deleted-x-1"} {
		must(t, os.Mkdir(filepath.Join(s.Root(), name), 0o700))
		must(t, os.WriteFile(filepath.Join(s.Root(), name, lockName), nil, 0o600))
	}
	alive, err := acquire(filepath.Join(s.Root(), ".new-alive-1"), "alive", true)
	must(t, err)
	defer alive.release()
	_, err = New(s.Root())
	must(t, err)
	entries, err := os.ReadDir(s.Root())
	must(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{".new-alive-1", "one"}, names); d != "" {
		t.Error(d)
	}
}

func TestDamagedAttachment(t *testing.T) {
	s := newStore(t)
	w, err := s.Create(t.Context(), session.Meta{ID: "one"})
	must(t, err)
	_, err = w.Append(sessiontest.Turn(1)...)
	must(t, err)
	a, err := w.Attach("image/png", "", []byte("bytes"))
	must(t, err)
	must(t, w.Close(t.Context()))
	must(t, os.WriteFile(filepath.Join(s.Root(), "one", attName, a.Hash), []byte("other"), 0o600))
	if _, err := s.Attachment(t.Context(), "one", a.Hash); !errors.Is(err, session.ErrCorrupt) {
		t.Error(err)
	}
	if err := s.Export(t.Context(), "one", &strings.Builder{}); !errors.Is(err, session.ErrCorrupt) {
		t.Error(err)
	}
}

// TestTitleFarBack: the title is found however much was written after it, and
// across the border of two blocks.
func TestTitleFarBack(t *testing.T) {
	s := newStore(t)
	path := stored(t, s, "one", 1)
	text := content(t, path)
	line := `{"type":"session/title","seq":%d,"time":1,"data":{"title":"%s"}}` + "\n"
	seq := strings.Count(text, "\n") - 1
	text += fmt.Sprintf(line, seq, "old") + fmt.Sprintf(line, seq+1, "new")
	at := len(text) - len(fmt.Sprintf(line, seq+1, "new"))
	for _, shift := range []int{-40, -20, -1, 0, 1, 100, 3 * block} {
		pad := block + shift - (len(text) - at)
		must(t, os.WriteFile(path, []byte(text+strings.Repeat("x", pad-1)+"\n"), 0o600))
		if got, err := title(path); err != nil || got != "new" {
			t.Errorf("%d: %q %v", shift, got, err)
		}
	}
	must(t, os.WriteFile(path, []byte(text[:len(text)-3]), 0o600))
	if got, err := title(path); err != nil || got != "old" {
		t.Errorf("torn: %q %v", got, err)
	}
}
