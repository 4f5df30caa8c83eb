package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

// patience is how long a test waits for what has to come.
const patience = 20 * time.Second

// seen collects what a watch tells.
type seen struct {
	t       testing.TB
	mu      sync.Mutex
	changes []Change
	news    chan struct{}
}

func newSeen(t testing.TB) *seen { return &seen{t: t, news: make(chan struct{}, 1)} }

func (s *seen) callback(_ context.Context, changes []Change) error {
	s.mu.Lock()
	s.changes = append(s.changes, changes...)
	s.mu.Unlock()
	select {
	case s.news <- struct{}{}:
	default:
	}
	return nil
}

// take waits until n changes came and gives them as "kind path", sorted.
func (s *seen) take(n int) []string {
	s.t.Helper()
	limit := time.After(patience)
	for {
		s.mu.Lock()
		if len(s.changes) >= n {
			var out []string
			for _, c := range s.changes {
				out = append(out, string(c.Kind)+" "+c.Path)
			}
			s.changes = nil
			s.mu.Unlock()
			slices.Sort(out)
			return out
		}
		got := slices.Clone(s.changes)
		s.mu.Unlock()
		select {
		case <-s.news:
		case <-limit:
			s.t.Fatalf("waited for %d changes, got %v", n, got)
		}
	}
}

func (s *seen) want(changes ...string) {
	s.t.Helper()
	if diff := cmp.Diff(changes, s.take(len(changes))); diff != "" {
		s.t.Error(diff)
	}
}

func watching(t testing.TB, w *world, path Path, o *WatchOptions) (*seen, service.Dispose) {
	t.Helper()
	s := newSeen(t)
	end, err := w.fs.Watch(t.Context(), path, s.callback, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, end
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestWatchFolder(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/old"), "x")
	put(t, filepath.Join(w.dir, "d/sub/x"), "x")
	s, end := watching(t, w, "d", nil)
	put(t, filepath.Join(w.dir, "d/new"), "x")
	s.want("created d/new")
	put(t, filepath.Join(w.dir, "d/old"), "y")
	s.want("modified d/old")
	_, err := w.fs.WriteText(t.Context(), "d/old", "z", nil)
	do(t, err)
	s.want("modified d/old")
	do(t, os.Rename(filepath.Join(w.dir, "d/old"), filepath.Join(w.dir, "d/moved")))
	s.want("created d/moved", "removed d/old")
	put(t, filepath.Join(w.dir, "d/sub/y"), "not told")
	put(t, filepath.Join(w.dir, "other"), "not told")
	do(t, os.Chmod(filepath.Join(w.dir, "d/moved"), 0o600), os.Remove(filepath.Join(w.dir, "d/new")))
	s.want("removed d/new")
	do(t, end(t.Context()), end(t.Context()))
}

func TestWatchFile(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/file"), "x")
	link(t, "d/file", filepath.Join(w.dir, "link"))
	s, _ := watching(t, w, "link", nil)
	put(t, filepath.Join(w.dir, "d/other"), "not told")
	put(t, filepath.Join(w.dir, "d/file"), "y")
	s.want("modified d/file")
	put(t, filepath.Join(w.dir, "d/temp"), "z")
	do(t, os.Rename(filepath.Join(w.dir, "d/temp"), filepath.Join(w.dir, "d/file")))
	s.want("modified d/file")
	do(t, os.Remove(filepath.Join(w.dir, "d/file")))
	s.want("removed d/file")
	put(t, filepath.Join(w.dir, "d/file"), "back")
	s.want("created d/file")
	_, err := w.fs.Watch(t.Context(), "none", s.callback, nil)
	wantCode(t, err, CodeNotFound, "")
	_, err = w.fs.Watch(t.Context(), "d", nil, nil)
	wantCode(t, err, CodeInvalidArgument, "callback")
}

func TestWatchRecursive(t *testing.T) {
	w := newWorld(t, Config{})
	home := filepath.Join(w.dir, "d/home")
	t.Setenv("DSH_HOME", home)
	w = newWorld(t, Config{Roots: []string{w.dir}})
	put(t, filepath.Join(home, "secret"), "x")
	put(t, filepath.Join(w.dir, "d/a/b/file"), "x")
	link(t, "a", filepath.Join(w.dir, "d/link"))
	s, end := watching(t, w, ".", &WatchOptions{Recursive: true})
	put(t, filepath.Join(home, "secret"), "not told")
	put(t, filepath.Join(w.dir, "d/a/b/file"), "y")
	s.want("modified d/a/b/file")
	put(t, filepath.Join(w.dir, "d/n/e/w"), "x")
	s.want("created d/n", "created d/n/e", "created d/n/e/w")
	put(t, filepath.Join(w.dir, "d/n/e/w2"), "x")
	s.want("created d/n/e/w2")
	do(t, os.Rename(filepath.Join(w.dir, "d/n"), filepath.Join(w.dir, "d/m")))
	s.want("created d/m", "created d/m/e", "created d/m/e/w", "created d/m/e/w2", "removed d/n")
	put(t, filepath.Join(w.dir, "d/m/e/w"), "y")
	s.want("modified d/m/e/w")
	do(t, os.RemoveAll(filepath.Join(w.dir, "d/m")))
	if got := s.take(1); got[0] != "removed d/m" && !strings.HasPrefix(got[0], "removed d/m/") {
		t.Errorf("got %v", got)
	}
	do(t, end(t.Context()))
}

// TestWatchReturns: a folder that goes and comes back is watched again.
func TestWatchReturns(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/file"), "x")
	s, _ := watching(t, w, "d", nil)
	do(t, os.Rename(filepath.Join(w.dir, "d"), filepath.Join(w.dir, "away")))
	s.want("removed d")
	put(t, filepath.Join(w.dir, "d/new"), "x")
	s.want("created d", "created d/new")
	put(t, filepath.Join(w.dir, "away/file"), "not told")
	put(t, filepath.Join(w.dir, "d/more"), "x")
	s.want("created d/more")
}

// TestWatchEndsWithPlugin: it is an effect of the plugin that asked for it.
func TestWatchEndsWithPlugin(t *testing.T) {
	w := newWorld(t, Config{})
	s := newSeen(t)
	f, err := w.root.Mount(&cordis.Plugin{
		Name: "watcher", Inject: cordis.Require("fs"),
		Apply: func(c *cordis.Context, _ any) error {
			v, err := Service.Use(c)
			if err != nil {
				return err
			}
			_, err = v.For(c).Watch(c.Context(), ".", s.callback, nil)
			return err
		},
	}, nil)
	do(t, err, f.Await(t.Context()), f.Err())
	if effects := f.Effects(); len(effects) != 1 || effects[0].Label != `fs.watch(".")` {
		t.Errorf("its effects are %+v", effects)
	}
	put(t, filepath.Join(w.dir, "a"), "x")
	s.want("created a")
	_, err = f.Dispose(t.Context())
	do(t, err)
	put(t, filepath.Join(w.dir, "b"), "x")
	other, _ := watching(t, w, ".", nil)
	put(t, filepath.Join(w.dir, "c"), "x")
	other.want("created c")
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.changes) > 0 {
		t.Errorf("after its end it told %v", s.changes)
	}
}

// TestWatchSlowCallback: changes wait for it, come together, and none is lost.
func TestWatchSlowCallback(t *testing.T) {
	w := newWorld(t, Config{})
	s, running, release := newSeen(t), make(chan struct{}), make(chan struct{})
	calls := 0
	_, err := w.fs.Watch(t.Context(), ".", func(ctx context.Context, changes []Change) error {
		if calls++; calls == 1 {
			close(running)
			<-release
		}
		return s.callback(ctx, changes)
	}, nil)
	do(t, err)
	put(t, filepath.Join(w.dir, "first"), "x")
	<-running
	want := []string{"created first"}
	for i := range 50 {
		put(t, filepath.Join(w.dir, fmt.Sprint("f", i)), "x")
		want = append(want, fmt.Sprint("created f", i))
	}
	close(release)
	slices.Sort(want)
	s.want(want...)
	if calls > 10 {
		t.Errorf("%d calls", calls)
	}
}

// TestWatchCallbackFails: errors and panics are logged, and the watch goes on.
func TestWatchCallbackFails(t *testing.T) {
	w := newWorld(t, Config{})
	logged := make(chan string, 10)
	_, err := w.root.Export(cordis.Exporter{Export: func(m cordis.Message) { logged <- m.String() }})
	do(t, err)
	calls := 0
	end, err := w.fs.Watch(t.Context(), ".", func(context.Context, []Change) error {
		if calls++; calls == 1 {
			panic("first")
		}
		return errors.New("second")
	}, nil)
	do(t, err)
	for i, text := range []string{"first", "second"} {
		put(t, filepath.Join(w.dir, fmt.Sprint(i)), "x")
		select {
		case m := <-logged:
			if !strings.Contains(m, text) {
				t.Errorf("logged %s", m)
			}
		case <-time.After(patience):
			t.Fatal("nothing is logged")
		}
	}
	do(t, end(t.Context()))
}

// TestWatchEndsItself: a callback may end its own watch.
func TestWatchEndsItself(t *testing.T) {
	w := newWorld(t, Config{})
	ended := make(chan error, 1)
	var end service.Dispose
	begun := make(chan struct{})
	end, err := w.fs.Watch(t.Context(), ".", func(ctx context.Context, _ []Change) error {
		<-begun
		ended <- end(ctx)
		return nil
	}, nil)
	do(t, err)
	close(begun)
	put(t, filepath.Join(w.dir, "a"), "x")
	select {
	case err := <-ended:
		do(t, err)
	case <-time.After(patience):
		t.Fatal("it waits for itself")
	}
}

func TestWatchesAreBounded(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/x"), "")
	var last service.Dispose
	for range limits.FSWatches {
		_, last = watching(t, w, "d", nil)
	}
	_, err := w.fs.Watch(t.Context(), "d", newSeen(t).callback, nil)
	wantCode(t, err, CodeTooLarge, "50 watches already")
	do(t, last(t.Context()))
	watching(t, w, "d", nil)
}

// TestNamesOfWatchesAreBounded: what the watches of all plugins know together.
func TestNamesOfWatchesAreBounded(t *testing.T) {
	w := newWorld(t, Config{})
	for _, name := range []string{"d/a", "d/b", "e/sub/c"} {
		put(t, filepath.Join(w.dir, name), "")
	}
	l, ok := w.svc.(*local)
	if !ok {
		t.Fatalf("%T", w.svc)
	}
	_, end := watching(t, w, "e", &WatchOptions{Recursive: true})
	if got := l.watched.Load(); got != 3 { // e, sub, c
		t.Errorf("%d names are known, want 3", got)
	}
	l.watched.Add(limits.FSWatched - 4)
	_, err := w.fs.Watch(t.Context(), "d", newSeen(t).callback, nil)
	wantCode(t, err, CodeTooLarge, "in all that plugins watch")
	do(t, end(t.Context()))
	_, end = watching(t, w, "d", nil)
	do(t, end(t.Context()))
	if got := l.watched.Load(); got != limits.FSWatched-4 {
		t.Errorf("%d names are known after the watches, want none", got-limits.FSWatched+4)
	}
}

func TestWatchTooManyFolders(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range limits.FSWatchDirs + 1 {
		do(t, os.MkdirAll(filepath.Join(w.dir, "d", fmt.Sprint(i)), 0o755))
	}
	_, err := w.fs.Watch(t.Context(), "d", newSeen(t).callback, &WatchOptions{Recursive: true})
	wantCode(t, err, CodeTooLarge, "watch a smaller one")
	watching(t, w, "d", nil)
}

// TestWatchOverflow: what cannot be kept is told as that, and the names are
// learned again.
func TestWatchOverflow(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "gone"), "x")
	s := newSeen(t)
	p := w.fs.(*plugin)
	k := p.call(t.Context(), "watch", ".")
	at, err := p.walk(k, ".", "", true)
	do(t, err)
	defer at.close()
	v := &watch{plugin: p, callback: s.callback, top: at.abs, watched: watched{from: p.local, k: k, recursive: true},
		pending: map[string]pending{}, called: make(chan struct{}, 1)}
	do(t, v.open(at))
	defer func() { do(t, v.watched.close()) }()
	put(t, filepath.Join(w.dir, "d/new"), "x")
	do(t, os.Remove(filepath.Join(w.dir, "gone")))
	v.lost = true
	v.settle()
	v.tell()
	<-v.called
	v.calling = false
	s.want("overflow .")
	if v.folders[filepath.Join(w.dir, "d")] == nil || v.folders[w.dir].known["gone"] {
		t.Error("the names were not learned again")
	}
}
