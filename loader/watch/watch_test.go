package watch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/limits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// seen is what the calls of a watcher told.
type seen struct {
	t     *testing.T
	dir   string
	calls chan []string
	*Watcher
}

func start(t *testing.T, folders, deep []string) *seen {
	t.Helper()
	// The paths that the system tells have no links.
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &seen{t: t, dir: dir, calls: make(chan []string, 1000)}
	at := func(names []string) []string {
		var out []string
		for _, n := range names {
			out = append(out, filepath.Join(dir, n))
		}
		return out
	}
	s.Watcher, err = New(Options{Folders: at(folders), Deep: at(deep), Changed: func(_ context.Context, paths []string) { s.calls <- paths }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(context.Background()) })
	if err := s.Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *seen) path(name string) string { return filepath.Join(s.dir, name) }

func (s *seen) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *seen) mkdir(names ...string) {
	s.t.Helper()
	for _, n := range names {
		if err := os.MkdirAll(s.path(n), 0o700); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *seen) rename(from, to string) {
	s.t.Helper()
	if err := os.Rename(s.path(from), s.path(to)); err != nil {
		s.t.Fatal(err)
	}
}

// wait waits until every name was told, and returns how many calls that took.
func (s *seen) wait(names ...string) int {
	s.t.Helper()
	missing := map[string]bool{}
	for _, n := range names {
		missing[s.path(n)] = true
	}
	deadline := time.After(patience)
	for n := 1; ; n++ {
		select {
		case paths := <-s.calls:
			if paths != nil && !slices.IsSorted(paths) {
				s.t.Fatalf("not sorted: %v", paths)
			}
			for _, p := range paths {
				delete(missing, p)
			}
			if paths == nil || len(missing) == 0 {
				return n
			}
		case <-deadline:
			s.t.Fatalf("not told: %v", missing)
		}
	}
}

// quiet checks that what was told last was all: a change that is made now is told
// alone.
func (s *seen) quiet(probe string) {
	s.t.Helper()
	s.write(probe, "probe")
	deadline := time.After(patience)
	for {
		select {
		case paths := <-s.calls:
			if slices.Equal(paths, []string{s.path(probe)}) {
				return
			}
			s.t.Fatalf("told besides: %v", paths)
		case <-deadline:
			s.t.Fatal("the probe is not told")
		}
	}
}

func TestFiles(t *testing.T) {
	s := start(t, []string{""}, nil)
	s.write("a.yml", "1")
	s.wait("a.yml")
	s.write("a.yml", "2")
	s.wait("a.yml")
	// Editors write another file and rename it.
	s.write("a.tmp", "3")
	s.rename("a.tmp", "a.yml")
	s.wait("a.yml", "a.tmp")
	if err := os.Remove(s.path("a.yml")); err != nil {
		t.Fatal(err)
	}
	s.wait("a.yml")
	// What is below is not watched, and permissions are no change.
	s.mkdir("sub")
	s.wait("sub")
	s.write("sub/x", "1")
	s.write("b.yml", "1")
	s.wait("b.yml")
	if err := os.Chmod(s.path("b.yml"), 0o644); err != nil {
		t.Fatal(err)
	}
	s.quiet("c.yml")
}

func TestMissing(t *testing.T) {
	s := start(t, []string{".dsh"}, []string{".dsh/plugins", "far/away/below"})
	s.write("other", "1") // beside the way
	s.mkdir(".dsh")
	s.write(".dsh/cordis.yml", "1")
	s.wait(".dsh", ".dsh/cordis.yml")
	s.mkdir(".dsh/plugins/p")
	s.write(".dsh/plugins/p/index.js", "1")
	s.wait(".dsh/plugins/p", ".dsh/plugins/p/index.js")
	s.write(".dsh/plugins/p/index.js", "2")
	s.wait(".dsh/plugins/p/index.js")
	s.mkdir("far/away")
	s.mkdir("far/away/below/it")
	s.write("far/away/below/it/f", "1")
	s.wait("far/away/below/it/f")
	if err := os.RemoveAll(s.path(".dsh")); err != nil {
		t.Fatal(err)
	}
	s.wait(".dsh", ".dsh/cordis.yml")
	s.mkdir(".dsh/plugins")
	s.wait(".dsh/plugins")
	s.write(".dsh/plugins/b.js", "1")
	s.wait(".dsh/plugins/b.js")
}

// TestReplaced: another folder in the place of one is watched, not the one that was
// moved away.
func TestReplaced(t *testing.T) {
	s := start(t, nil, []string{"d"})
	s.mkdir("d/sub", "next/sub")
	s.write("d/sub/f", "1")
	s.wait("d", "d/sub/f")
	s.write("next/sub/f", "2")
	s.write("next/only", "2")
	s.rename("d", "before")
	s.rename("next", "d")
	s.wait("d", "d/sub/f", "d/only")
	s.write("d/sub/f", "3")
	s.wait("d/sub/f")
	s.write("before/sub/f", "4")
	s.quiet("d/probe")
	// The same with a link.
	s.mkdir("one", "two")
	if err := os.Symlink(s.path("one"), s.path("l")); err != nil {
		t.Fatal(err)
	}
	if err := s.Watch([]string{s.path("l")}, nil); err != nil {
		t.Fatal(err)
	}
	s.write("one/f", "1")
	s.wait("l/f")
	if err := os.Symlink(s.path("two"), s.path("l2")); err != nil {
		t.Fatal(err)
	}
	s.rename("l2", "l")
	s.wait("l")
	s.write("two/g", "1")
	s.wait("l/g")
}

func TestLeftOut(t *testing.T) {
	s := start(t, nil, []string{"d"})
	s.mkdir("d/node_modules/x", "d/.git", "d/src")
	s.wait("d/src")
	s.write("d/node_modules/x/f", "1")
	s.write("d/.git/f", "1")
	s.write("d/.swp", "1")
	s.quiet("d/src/f")
}

// TestBurst: hundreds of files at once are one call, thousands are told as
// everything.
func TestBurst(t *testing.T) {
	s := start(t, nil, []string{"d"})
	s.mkdir("d")
	s.wait("d")
	many := func(folder string, n int) (names []string) {
		s.mkdir(folder)
		for i := range n {
			names = append(names, fmt.Sprintf("%s/%d", folder, i))
			s.write(names[i], "1")
		}
		return names
	}
	begin := time.Now()
	names := many("d/a", 400)
	took := time.Since(begin)
	if calls := s.wait(names...); calls > 1+int(took/limits.WatchSettle) {
		t.Errorf("%d calls for what took %v", calls, took)
	}
	many("d/b", limits.WatchPaths+200)
	deadline := time.After(patience)
	for told := 0; told < limits.WatchPaths; {
		select {
		case paths := <-s.calls:
			if told += len(paths); paths == nil {
				told = limits.WatchPaths
			}
		case <-deadline:
			t.Fatal("not everything is told")
		}
	}
}

// TestDuring: a change during a call is told by one more, and calls do not overlap.
func TestDuring(t *testing.T) {
	dir := t.TempDir()
	in, out := make(chan []string), make(chan struct{})
	running := make(chan struct{}, 1)
	w, err := New(Options{Folders: []string{dir}, Changed: func(ctx context.Context, paths []string) {
		select {
		case running <- struct{}{}:
		default:
			t.Error("two calls at a time")
		}
		select {
		case in <- paths:
		case <-ctx.Done():
		}
		select {
		case <-out:
		case <-ctx.Done():
		}
		<-running
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if i > 0 {
			out <- struct{}{} // only now the call before ends
		}
		select {
		case paths := <-in:
			if !slices.Contains(paths, filepath.Join(dir, fmt.Sprint(i))) {
				t.Errorf("call %d: %v", i, paths)
			}
		case <-time.After(patience):
			t.Fatal("no call")
		}
	}
	out <- struct{}{}
	// Close waits for a call.
	if err := os.WriteFile(filepath.Join(dir, "last"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-in
	if err := w.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(running) != 0 {
		t.Error("a call runs after Close")
	}
	if err := w.Watch(nil, nil); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if err := w.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestCloseWhileACallRuns: a call that asks for folders, or hangs, does not keep Close.
func TestCloseWhileACallRuns(t *testing.T) {
	dir, entered, hang := t.TempDir(), make(chan struct{}), make(chan struct{})
	asked := make(chan error, 1)
	var w *Watcher
	w, err := New(Options{Folders: []string{dir}, Changed: func(ctx context.Context, _ []string) {
		close(entered)
		<-ctx.Done()
		asked <- w.Watch([]string{dir}, nil)
		<-hang
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-entered
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := w.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := <-asked; !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	close(hang)
	if err := w.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestNewerEndsALongCall: a call that has taken long is told when more has changed.
func TestNewerEndsALongCall(t *testing.T) {
	dir, causes := t.TempDir(), make(chan error, 10)
	entered := make(chan struct{}, 10)
	w, err := New(Options{Folders: []string{dir}, Changed: func(ctx context.Context, paths []string) {
		entered <- struct{}{}
		if filepath.Base(paths[0]) == "first" {
			<-ctx.Done()
			causes <- context.Cause(ctx)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close(context.Background())
	for _, name := range []string{"first", "second"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		select {
		case <-entered:
		case <-time.After(patience):
			t.Fatalf("no call for %s", name)
		}
	}
	if err := <-causes; !errors.Is(err, ErrNewer) {
		t.Error(err)
	}
}

func TestWatch(t *testing.T) {
	s := start(t, nil, nil)
	s.mkdir("a", "b")
	if err := s.Watch([]string{s.path("a")}, nil); err != nil {
		t.Fatal(err)
	}
	s.write("a/f", "1")
	s.wait("a/f")
	if err := s.Watch([]string{s.path("b")}, nil); err != nil {
		t.Fatal(err)
	}
	s.write("a/f", "2")
	s.quiet("b/f")
	if err := s.Watch([]string{"relative"}, nil); !errors.Is(err, ErrPath) {
		t.Error(err)
	}
	if _, err := New(Options{Folders: []string{"relative"}, Changed: func(context.Context, []string) {}}); !errors.Is(err, ErrPath) {
		t.Error(err)
	}
	if _, err := New(Options{}); err == nil {
		t.Error("a watcher that tells nobody")
	}
	if os.Getuid() != 0 {
		s.mkdir("closed")
		if err := os.Chmod(s.path("closed"), 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Watch([]string{s.path("closed"), s.path("a")}, nil); err == nil || s.Err() == nil || !strings.Contains(err.Error(), "closed") {
			t.Errorf("%v, %v", err, s.Err())
		}
		s.write("a/g", "1")
		s.wait("a/g")
	}
}

// TestLost: when events are lost, everything may have changed, and folders that came
// meanwhile are watched.
func TestLost(t *testing.T) {
	s := start(t, nil, []string{"d"})
	s.mkdir("d")
	s.wait("d")
	s.notify.Errors <- fsnotify.ErrEventOverflow
	select {
	case paths := <-s.calls:
		if paths != nil {
			t.Errorf("told: %v", paths)
		}
	case <-time.After(patience):
		t.Fatal("nothing is told")
	}
}

// TestLast: whatever is done to a file and its folders, the last state is told.
func TestLast(t *testing.T) {
	s := start(t, []string{"p/d"}, []string{"p/d/deep"})
	for i := range 60 {
		switch i % 6 {
		case 0:
			s.mkdir("p/d/deep/x")
		case 1:
			s.mkdir("q/d/deep/x")
			if err := os.RemoveAll(s.path("p")); err != nil {
				t.Fatal(err)
			}
			s.rename("q", "p")
		case 2:
			if err := os.RemoveAll(s.path("p/d")); err != nil {
				t.Fatal(err)
			}
			s.mkdir("p/d/deep/x")
		case 3:
			s.rename("p/d/deep", "p/d/old")
			s.rename("p/d/old", "p/d/deep")
		case 4:
			s.rename("p/d/deep/x", "p/d/deep/y")
			s.mkdir("p/d/deep/x")
		}
		name := []string{"p/d/cordis.yml", "p/d/deep/a.js", "p/d/deep/x/b.js"}[i%3]
		s.write(name, fmt.Sprint(i))
		s.wait(name)
	}
}
