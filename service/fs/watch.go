package fs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

// Watch implements ForPlugins.
func (p *plugin) Watch(ctx context.Context, target Path, callback func(context.Context, []Change) error, o *WatchOptions) (service.Dispose, error) {
	k := p.call(ctx, "watch", target)
	if callback == nil {
		return nil, k.fail(CodeInvalidArgument, "the callback is missing; give a function that takes the changes")
	}
	at, err := p.found(k, target, true)
	if err != nil {
		return nil, err
	}
	defer at.close()
	if p.watches.Add(1) > limits.FSWatches {
		p.watches.Add(-1)
		return nil, k.fail(CodeTooLarge, "this plugin has %d watches already; end one, or watch a folder with {recursive: true}", limits.FSWatches)
	}
	w := &watch{
		plugin: p, callback: callback, top: at.abs,
		watched: watched{from: p.local, k: k, recursive: o != nil && o.Recursive},
		pending: map[string]pending{},
		stop:    make(chan struct{}), stopped: make(chan struct{}), called: make(chan struct{}, 1),
	}
	label := "fs.watch(" + quoted(p.display(at.abs)) + ")"
	handle, err := p.c.Effect(label, func(setup *cordis.Setup) error { return w.start(at, setup) })
	if err != nil {
		p.watches.Add(-1)
		return nil, k.wrap(err)
	}
	return handle.Dispose, nil
}

// watch is one running watch. What stands below watched belongs to the goroutine
// of run, once it has started.
type watch struct {
	*plugin
	callback      func(context.Context, []Change) error
	top           string // the canonical path of what is watched
	stop, stopped chan struct{}
	called        chan struct{} // a callback has returned

	watched
	pending map[string]pending // by path: what may have changed
	lost    bool               // something that may have changed is not in it
	ready   []Change           // what has changed, to be told
	calling bool
	due     <-chan time.Time // when to look at what is pending; nil: nothing is
}

type pending struct {
	in   *folder
	name string
}

// start begins to watch, or undoes what it began.
func (w *watch) start(at *place, setup *cordis.Setup) error {
	if err := w.open(at); err != nil {
		return errors.Join(err, w.watched.close())
	}
	go w.run()
	setup.Collect(func(context.Context) error {
		close(w.stop)
		<-w.stopped
		w.watches.Add(-1)
		return w.watched.close()
	})
	return nil
}

// run collects what the system tells and calls back, until the watch is undone.
func (w *watch) run() {
	defer close(w.stopped)
	began := w.watched.k
	w.watched.k = &call{ctx: context.Background(), op: began.op, path: began.path, by: began.by} // the call has returned
	for {
		select {
		case <-w.stop:
			return
		case ev, ok := <-w.notify.Events:
			if !ok {
				return
			}
			w.event(ev)
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.lost = true // the system's own queue was full
		case <-w.due:
			w.due = nil
			w.settle()
		case <-w.called:
			w.calling = false
		}
		w.tell()
		if w.due == nil && !w.calling && (w.lost || len(w.pending) > 0) {
			w.due = time.After(limits.FSSettle)
		}
	}
}

// event notes what may have changed. What happens to a folder itself is told by
// the one that it is in.
func (w *watch) event(ev fsnotify.Event) {
	in, name := w.names[filepath.Dir(ev.Name)], filepath.Base(ev.Name)
	if in == nil || ev.Op == fsnotify.Chmod || !in.shows(name) {
		return
	}
	path := filepath.Join(in.abs, name)
	if _, there := w.pending[path]; !there && len(w.pending) >= limits.FSPending {
		w.lost = true
		return
	}
	w.pending[path] = pending{in, name}
}

// settle finds out what became of all that is pending.
func (w *watch) settle() {
	w.watched.denied = w.deniedHere()
	paths := slices.Sorted(maps.Keys(w.pending))
	w.prune(paths)
	for _, path := range paths {
		if one := w.pending[path]; !one.in.gone { // else its folder's going tells it
			path, kind, err := w.look(one.in, one.name, w.created)
			w.report(path, kind, err)
		}
	}
	clear(w.pending)
	if !w.lost {
		return
	}
	w.lost = false
	w.ready = append(w.ready, Change{Path: w.display(w.top), Kind: Overflow})
	w.prune(slices.Collect(maps.Keys(w.folders)))
	for _, in := range slices.Collect(maps.Values(w.names)) {
		if !in.gone {
			w.report("", "", w.again(in, nil))
		}
	}
}

// report takes note of a change, and of what cannot be watched any more.
func (w *watch) report(path string, kind ChangeKind, err error) {
	if kind != "" {
		w.ready = append(w.ready, Change{Path: w.display(path), Kind: kind})
	}
	if err != nil {
		w.c.Logger("fs").Warn("a part of a watched folder is not watched", "path", w.display(w.top), "error", err)
		w.ready = append(w.ready, Change{Path: w.display(w.top), Kind: Overflow})
	}
}

func (w *watch) created(path string) { w.report(path, Created, nil) }

// tell calls back with what is ready, if no callback runs.
func (w *watch) tell() {
	if w.calling || len(w.ready) == 0 {
		return
	}
	n := min(len(w.ready), limits.FSChanges)
	batch := slices.Clone(w.ready[:n])
	w.ready = slices.Delete(w.ready, 0, n)
	w.calling = true
	go w.call(batch)
}

// call runs the callback as a call of the plugin's fiber, which waits for it.
func (w *watch) call(batch []Change) {
	defer func() { w.called <- struct{}{} }()
	ctx, done, err := w.c.Fiber().Enter(w.c.Context(), "fs.watch()")
	if err != nil {
		return // the plugin is ending
	}
	defer done()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		if err != nil {
			w.c.Logger("fs").Warn("a callback of watch failed", "path", w.display(w.top), "error", err)
		}
	}()
	err = w.callback(ctx, batch)
}

// watched is the folders that one watch watches, and the names that it knows.
type watched struct {
	from      *local
	k         *call
	recursive bool
	denied    blocked
	notify    *fsnotify.Watcher
	names     map[string]*folder // by fsnotify's name for them
	folders   map[string]*folder // by path
	known     int                // names in all of them
}

// folder is a folder that is watched. It is held open, so that names in it are
// looked up there and nowhere else.
type folder struct {
	abs   string
	dir   *os.Root
	file  *os.File
	at    string // fsnotify's name for it
	only  string // the one name in it that counts; "" for all
	depth int
	known map[string]bool // the names that are there
	gone  bool
}

// newcomer hears of something that is there and was not known.
type newcomer func(path string)

// open begins to watch the place: through the folder that it is in, which tells
// what becomes of the place itself.
func (w *watched) open(at *place) error {
	w.names, w.folders = map[string]*folder{}, map[string]*folder{}
	w.denied = w.from.deniedHere()
	var err error
	if w.notify, err = fsnotify.NewWatcher(); err != nil {
		w.notify = nil
		return w.k.fail(CodeIO, "the system has no room for one more watch (%s); end others", reason(err))
	}
	if at.name == "." {
		return w.add(at.dir, &folder{abs: at.abs}, nil)
	}
	return w.add(at.dir, &folder{abs: filepath.Dir(at.abs), only: at.name}, nil)
}

// close lets go of everything.
func (w *watched) close() error {
	var err error
	if w.notify != nil {
		err = w.notify.Close()
	}
	for _, f := range w.names {
		w.count(-len(f.known))
		f.close()
	}
	return err
}

func (f *folder) close() {
	f.gone = true
	done(f.dir)
	_ = f.file.Close()
}

// shows tells whether changes of a name in the folder are told.
func (f *folder) shows(name string) bool {
	if f.only != "" {
		return name == f.only
	}
	return !(strings.HasPrefix(name, tempPrefix) && strings.HasSuffix(name, tempSuffix)) // a file that is being written
}

// add watches a folder, and what is below where that was asked for.
func (w *watched) add(dir *os.Root, f *folder, found newcomer) error {
	if len(w.names) >= limits.FSWatchDirs || f.depth > limits.FSDepth {
		return w.k.fail(CodeTooLarge, "it has more than %d folders, or more than %d inside each other; watch a smaller one", limits.FSWatchDirs, limits.FSDepth)
	}
	var err error
	if f.dir, err = dir.OpenRoot("./."); err != nil {
		return err
	}
	if f.file, err = f.dir.Open("."); err != nil {
		_ = f.dir.Close()
		return err
	}
	f.known = map[string]bool{}
	f.at = pinned(f.file, f.abs)
	if err := w.notify.Add(f.at); err != nil {
		f.close()
		if errors.Is(err, syscall.ENOSPC) {
			return w.k.fail(CodeIO, "the system's limit of watched folders is reached; end watches, or watch a smaller folder")
		}
		return fmt.Errorf("watch: %w", err)
	}
	w.names[f.at], w.folders[f.abs] = f, f
	return w.again(f, found)
}

// again learns the names that a folder has now.
func (w *watched) again(f *folder, found newcomer) error {
	var all []string
	if f.only != "" {
		all = []string{f.only}
	} else {
		var more bool
		var err error
		room := min(limits.FSVisited-w.known, limits.FSWatched-int(w.from.watched.Load()))
		if all, more, err = list(w.k, f.dir, max(room, 0)); err != nil {
			return err
		}
		if more {
			return w.k.fail(CodeTooLarge, "there are more than %d files and folders in it, or more than %d in all that plugins watch; watch a smaller folder, or end other watches", limits.FSVisited, limits.FSWatched)
		}
	}
	for name := range f.known {
		if _, err := f.dir.Lstat(name); err != nil {
			w.forget(f, name)
		}
	}
	for _, name := range all {
		if f.known[name] || !f.shows(name) {
			continue
		}
		path, kind, err := w.look(f, name, found)
		if err != nil {
			return err
		}
		if kind != "" && found != nil {
			found(path)
		}
	}
	return nil
}

// look finds out what became of a name; "" for nothing that is to be told. found
// hears of what is new below it.
func (w *watched) look(f *folder, name string, found newcomer) (path string, kind ChangeKind, err error) {
	path = filepath.Join(f.abs, name)
	known := f.known[name]
	info, err := f.dir.Lstat(name)
	if err != nil || w.denied.has(path, info) {
		if !known {
			return path, "", nil // it came and went, or is not there for plugins
		}
		w.forget(f, name)
		return path, Removed, nil
	}
	kind = Modified
	if !known {
		kind = Created
		f.known[name] = true
		w.count(1)
	}
	if !info.IsDir() {
		w.drop(path)
		return path, kind, nil
	}
	if sub := w.folders[path]; sub != nil {
		if now, err := sub.dir.Stat("."); err == nil && os.SameFile(now, info) {
			return path, "", nil // what is in it is told by itself
		}
		w.drop(path)
	}
	if !w.recursive && f.only == "" {
		return path, kind, nil
	}
	err = w.below(f, name, path, info, found)
	return path, kind, err
}

// below watches a folder in a watched one.
func (w *watched) below(f *folder, name, path string, info os.FileInfo, found newcomer) error {
	sub, err := enter(f.dir, name, info)
	if err == nil {
		err = w.add(sub, &folder{abs: path, depth: f.depth + 1}, found)
		done(sub)
	}
	if f.only == "" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errAgain)) {
		return nil // it may not be read, or it went meanwhile, which is told
	}
	return err
}

// prune drops the folders at paths that are others now. It comes before anything
// is added: the system knows a folder that was moved by the watch that it had.
func (w *watched) prune(paths []string) {
	for _, path := range paths {
		f, in := w.folders[path], w.folders[filepath.Dir(path)]
		if f == nil || in == nil {
			continue
		}
		info, err := in.dir.Lstat(filepath.Base(path))
		if now, serr := f.dir.Stat("."); err != nil || serr != nil || !os.SameFile(info, now) {
			w.drop(path)
		}
	}
}

// count keeps the numbers of names that this watch and all watches know.
func (w *watched) count(n int) {
	w.known += n
	w.from.watched.Add(int64(n))
}

func (w *watched) forget(f *folder, name string) {
	delete(f.known, name)
	w.count(-1)
	w.drop(filepath.Join(f.abs, name))
}

// drop ends the watching of a folder that went, and of those in it.
func (w *watched) drop(path string) {
	if w.folders[path] == nil {
		return
	}
	for abs, f := range w.folders {
		if _, in := within(abs, path); !in {
			continue
		}
		_ = w.notify.Remove(f.at) // the system may have forgotten it already
		w.count(-len(f.known))
		delete(w.folders, abs)
		delete(w.names, f.at)
		f.close()
	}
}
