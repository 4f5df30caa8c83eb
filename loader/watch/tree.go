package watch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/dsh-go/dsh/limits"
)

// tree is what is watched, and what has changed of it. A folder may be watched for
// itself, for what is below it, or since a folder that is wanted is to come there.
type tree struct {
	notify  *fsnotify.Watcher
	flat    map[string]bool // folders that are wanted with the files right in them
	deep    map[string]bool // those that are wanted with everything below, and what is below
	tops    []string        // of deep: those that were asked for
	watched map[string]bool

	pending map[string]bool
	all     bool // everything may have changed
	stale   bool // folders came or went: sync has to look
}

func (t *tree) want(folders, deep []string) {
	t.flat, t.tops = map[string]bool{}, deep
	for _, f := range folders {
		t.flat[f] = true
	}
}

// change notes that a path has changed.
func (t *tree) change(path string) {
	if t.pending[path] = true; len(t.pending) > limits.WatchPaths {
		t.all = true
		clear(t.pending)
	}
}

// event takes an event, and says whether anything follows from it.
func (t *tree) event(e fsnotify.Event) bool {
	path := filepath.Clean(e.Name)
	if e.Op == fsnotify.Chmod {
		return false
	}
	moved := e.Has(fsnotify.Create) || e.Has(fsnotify.Remove) || e.Has(fsnotify.Rename)
	parent := filepath.Dir(path)
	matters := t.flat[parent] || t.deep[parent] && !left(filepath.Base(path))
	if moved && (t.watched[path] || t.onTheWay(path)) {
		// Another folder may be there by now, or none: what is watched is not it.
		t.forget(path)
		t.stale = true
		if t.flat[path] || t.deep[path] {
			matters = true
		}
	}
	if matters {
		t.change(path)
		t.stale = t.stale || moved && t.deep[parent]
	}
	return matters || t.stale
}

// left says whether something below a deep folder is left out. Links to folders are
// too: what they point to is watched as a folder of its own or not at all.
func left(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// onTheWay says whether a path is a wanted folder or one above.
func (t *tree) onTheWay(path string) bool {
	for f := range t.flat {
		if within(f, path) {
			return true
		}
	}
	for _, f := range t.tops {
		if within(f, path) {
			return true
		}
	}
	return false
}

// within says whether a path is another one or below it.
func within(path, above string) bool {
	return path == above || strings.HasPrefix(path, strings.TrimSuffix(above, string(filepath.Separator))+string(filepath.Separator))
}

// forget stops watching a folder and what is below it.
func (t *tree) forget(path string) {
	for other := range t.watched {
		if within(other, path) {
			_ = t.notify.Remove(other) // it may be gone, and its watch with it
			delete(t.watched, other)
		}
	}
}

// sync makes what is watched what is to be watched. tell says that folders that were
// not watched before are changes, and what is in them.
func (t *tree) sync(tell bool) error {
	t.stale = false
	s := &walk{tree: t, tell: tell, keep: map[string]bool{}, fresh: map[string]bool{}, deep: map[string]bool{}}
	for f := range t.flat {
		s.follow(f, false)
	}
	for _, f := range t.tops {
		s.follow(f, true)
	}
	t.deep = s.deep
	for path := range t.watched {
		if !s.keep[path] {
			_ = t.notify.Remove(path)
			delete(t.watched, path)
		}
	}
	return s.err
}

// walk is one sync.
type walk struct {
	*tree
	tell  bool
	keep  map[string]bool // what is watched afterwards
	fresh map[string]bool // what of it was not before
	deep  map[string]bool
	err   error // the first one
}

// tries is how often a folder is looked for that comes and goes meanwhile. Whatever
// it does afterwards is an event.
const tries = 20

// follow watches a folder, or what is nearest above it. The folder above is watched
// too: there it is seen when a folder is replaced.
func (s *walk) follow(folder string, deep bool) {
	for range tries {
		there := folder
		for !isDir(there) && filepath.Dir(there) != there {
			there = filepath.Dir(there)
		}
		if there == folder {
			// A folder above that may not be read is no reason to complain.
			before := s.err
			s.add(filepath.Dir(there))
			s.err = before
			if s.visit(folder, deep) {
				return
			}
			continue
		}
		next := folder
		for filepath.Dir(next) != there {
			next = filepath.Dir(next)
		}
		// It may have come before it was watched for.
		s.add(filepath.Dir(there))
		if s.add(there) && !isDir(next) {
			return
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// add watches one folder. It returns false where it is not there.
func (s *walk) add(path string) bool {
	if s.keep[path] || s.watched[path] {
		s.keep[path] = true
		return true
	}
	if len(s.watched) >= limits.WatchFolders {
		s.fail(fmt.Errorf("watch folder %s: at most %d folders are watched", path, limits.WatchFolders))
		return true
	}
	switch err := s.notify.Add(path); {
	case err == nil:
		s.watched[path], s.keep[path], s.fresh[path] = true, true, true
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return false
	default:
		s.fail(fmt.Errorf("watch folder %s: %w", path, err))
	}
	return true
}

func (s *walk) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

// visit watches a folder and, if it is a deep one, what is below. It returns false
// where the folder is not there any more.
func (s *walk) visit(folder string, deep bool) bool {
	if !s.add(folder) {
		return false
	}
	if deep {
		if s.deep[folder] {
			return true
		}
		s.deep[folder] = true
	}
	tell := s.tell && s.fresh[folder]
	if tell {
		s.change(folder)
	}
	if !deep && !tell {
		return true
	}
	// It is read after it is watched, so that nothing comes in between.
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.fail(fmt.Errorf("watch folder: %w", err))
	}
	for _, e := range entries {
		if deep && left(e.Name()) {
			continue
		}
		path := filepath.Join(folder, e.Name())
		if tell {
			s.change(path)
		}
		if deep && e.IsDir() {
			s.visit(path, true)
		}
	}
	return true
}
