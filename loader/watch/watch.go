// Package watch tells when files below folders have changed: once for a burst,
// late rather than never, and never twice at a time.
package watch

import "context"

// Options are what is watched and who is told.
type Options struct {
	// Folders are watched, each with the files right in it. They need not exist: the
	// nearest existing folder above is watched until they do.
	Folders []string
	// Deep folders are watched with everything below, hidden folders and node_modules
	// left out.
	Deep []string
	// Changed is called with the paths that changed, sorted, each once; nil means that
	// everything may have changed. ctx ends with Close. Calls never overlap; what changes
	// during one is told by the next.
	Changed func(ctx context.Context, paths []string)
}

// Watcher watches until it is closed.
type Watcher struct{}

// New starts watching.
func New(o Options) (*Watcher, error) { return &Watcher{}, nil }

// Watch replaces what is watched, as Options.Folders and Options.Deep say it. What
// is watched before and after is watched without a gap.
func (w *Watcher) Watch(folders, deep []string) error { return nil }

// Close ends the watching, and returns when no call runs any more. A call may use it
// through ctx alone: it must not call Close itself.
func (w *Watcher) Close() error { return nil }
