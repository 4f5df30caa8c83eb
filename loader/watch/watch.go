// Package watch tells when files in folders have changed: once for a burst, rather
// too often than too seldom, and never twice at a time.
//
// # What is promised
//
//   - After the last change there is a call that begins later than it: who reads the
//     files in a call, and once after Watch, never stays with an old state. A call is
//     made limits.WatchSettle after a change, or limits.WatchSettleMax after the first
//     of changes without a pause.
//   - A folder that is watched may be missing, come, go, be renamed and be replaced by
//     another one, and so may the folder right above it. Until it is there the nearest
//     folder above that exists is watched.
//   - Where the system lost events, or more than limits.WatchPaths paths changed, the
//     call says that everything may have changed.
//   - Nothing polls. At most limits.WatchFolders folders are watched.
//   - A Watcher may be used from any goroutine. Two goroutines belong to it, and one
//     more during a call; they end with Close. No lock is held during a call.
package watch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/dsh-go/dsh/limits"
)

// Options are what is watched and who is told.
type Options struct {
	// Folders are watched, each with the files right in it. They need not exist: the
	// nearest existing folder above is watched until they do. Paths are absolute.
	Folders []string
	// Deep folders are watched with everything below. What is hidden there (its name
	// begins with a dot) and node_modules are left out.
	Deep []string
	// Changed is called with the paths that changed, sorted, each once; nil means that
	// everything may have changed. A folder that came or went is among them, and of one
	// that came what is in it. Calls never overlap; what changes during one is told by
	// the next. ctx ends with Close, and with the cause ErrNewer where more has changed
	// and the call has taken limits.WatchSettleMax already: what it is about is old. Then
	// the next call follows. Changed may call Watch, but not Close.
	Changed func(ctx context.Context, paths []string)
}

// Watcher watches until it is closed.
type Watcher struct {
	changed func(context.Context, []string)
	cancel  context.CancelFunc
	ask     chan request
	closing <-chan struct{} // Close was called: run takes no more requests
	ended   chan struct{}   // run has returned

	mu     sync.Mutex
	failed error // see Err

	tree // belongs to run
}

// request is a call of Watch.
type request struct {
	folders, deep []string
	answer        chan error
}

// ErrClosed says that a Watcher is closed.
var ErrClosed = errors.New("the watcher is closed")

// ErrNewer ends a call of Changed whose change is no longer the newest.
var ErrNewer = errors.New("something has changed since")

// ErrPath says that a path is not absolute.
var ErrPath = errors.New("the path is not absolute")

// New starts watching. What cannot be watched then is told by Err, and the rest is
// watched: a program that cannot see changes should still run.
func New(o Options) (*Watcher, error) {
	if o.Changed == nil {
		return nil, errors.New("watch folders: nobody is told")
	}
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch folders: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := &Watcher{
		changed: o.Changed, cancel: cancel,
		ask: make(chan request), closing: ctx.Done(), ended: make(chan struct{}),
		tree: tree{notify: notify, watched: map[string]bool{}, pending: map[string]bool{}},
	}
	go w.run(ctx)
	if err := w.Watch(o.Folders, o.Deep); errors.Is(err, ErrPath) {
		return nil, errors.Join(err, w.Close(context.Background()))
	}
	return w, nil
}

// Watch replaces what is watched, as Options.Folders and Options.Deep say it. What
// is watched before and after is watched without a gap. Where something cannot be
// watched the error says what; the rest is.
func (w *Watcher) Watch(folders, deep []string) error {
	r := request{answer: make(chan error, 1)}
	for from, to := range map[*[]string]*[]string{&folders: &r.folders, &deep: &r.deep} {
		for _, path := range *from {
			if !filepath.IsAbs(path) {
				return fmt.Errorf("watch folder %s: %w", path, ErrPath)
			}
			*to = append(*to, filepath.Clean(path))
		}
	}
	select {
	case w.ask <- r:
		return <-r.answer
	case <-w.closing:
		return ErrClosed
	}
}

// Err returns what could not be watched when folders last came or went, nil if
// everything is watched.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed
}

func (w *Watcher) note(err error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed = err
	return err
}

// Close ends the watching, and returns when no call runs any more, or when ctx ends,
// with its cause. A call that still runs then may go on.
func (w *Watcher) Close(ctx context.Context) error {
	w.cancel()
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for who is told of changes: %w", context.Cause(ctx))
	}
}

// run is the one goroutine that knows what is watched and what has changed.
func (w *Watcher) run(ctx context.Context) {
	defer close(w.ended)
	defer w.notify.Close() //nolint:errcheck // nobody can be told, and the end is the same
	called := make(chan struct{}, 1)
	calling, due := false, false
	var began time.Time // the call that runs
	outdate := context.CancelCauseFunc(func(error) {})
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	var first time.Time // of the changes that are not told
	later := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		due = false
		timer.Reset(min(limits.WatchSettle, max(0, first.Add(limits.WatchSettleMax).Sub(now))))
	}
	for {
		select {
		case <-ctx.Done():
			if calling {
				<-called
			}
			return
		case r := <-w.ask:
			w.want(r.folders, r.deep)
			r.answer <- w.note(w.sync(false))
		case e := <-w.notify.Events:
			if w.event(e) {
				later()
			}
		case <-w.notify.Errors: //nolint:errcheck // which one makes no difference
			// Events are lost, or something else happened that hides what did.
			w.all, w.stale = true, true
			later()
		case <-timer.C:
			due = true
		case <-called:
			calling = false
		}
		if due && calling {
			if rest := limits.WatchSettleMax - time.Since(began); rest > 0 {
				timer.Reset(rest) // to look again
			} else {
				outdate(ErrNewer)
			}
		}
		if !due || calling {
			continue
		}
		due, first = false, time.Time{}
		if w.stale {
			_ = w.note(w.sync(true))
		}
		if paths, some := w.take(); some {
			calling, began = true, time.Now()
			call, end := context.WithCancelCause(ctx)
			outdate = end
			go func() {
				defer func() { called <- struct{}{} }()
				defer end(nil)
				w.changed(call, paths)
			}()
		}
	}
}

// take returns what is to be told, and forgets it.
func (t *tree) take() (paths []string, some bool) {
	if !t.all {
		paths = slices.Sorted(maps.Keys(t.pending))
	}
	some = t.all || len(paths) > 0
	t.all = false
	clear(t.pending)
	return paths, some
}
