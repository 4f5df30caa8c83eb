// Package fs is the file system as plugins use it: the folders that the program
// was started with, and nothing else.
//
// # Roots
//
// Every access goes through an [os.Root] that was opened at the start, so that no
// path, no link and no race leads out of the roots. Paths are walked one name at
// a time: links are read and followed here, absolute ones too where they stay
// inside; each folder is opened without following links and compared with what
// was looked at, so whoever swaps a name meanwhile changes what is found, never
// where it is found. A denied folder, above all dsh's own, is recognized by its
// identity as well as its path, whatever leads to it. Of roots inside each other
// the innermost says whether writing is allowed.
//
// Hard links are outside of this: a file that has a name inside a root is inside.
// Between the last check of a version and the renaming of the new file is a moment
// in which another program's write is lost; writes through this service exclude
// each other.
//
// # Versions
//
// A version names inode, size, and times of modification and status change in
// nanoseconds. Times of the system's clock can be as coarse as 10 ms, so stat waits
// up to 20 ms until a change that is younger could be told from the next one, and
// what this service writes gets a time of its own.
//
// # Writing
//
// A write goes to a temporary file beside its target (.dsh-*.tmp), which is
// synced and then renamed over it, or, if nothing may be replaced, linked. The
// target keeps its permissions and, where that is permitted, its owner; other hard
// links keep the old content. Where a write fails, the target is as it was; folders
// that were created on the way stay. On file systems without links a conditional
// creation is not atomic for readers.
//
// # Policy
//
// Before the service acts it asks the waterfall events of this package, with the
// place found and its folder held open; after a read or a write it emits [Observed].
//
// # Concurrency and ownership
//
// Everything is safe for concurrent use. No lock is held while listeners or
// callbacks run. A watch is an effect of the context it was started for and has
// two goroutines until it is undone; a callback runs as a call of that context's
// fiber. Calls end when their context ends, between two steps of at most 256 KB.
//
// Errors are [service.Error] values with one of the codes of this package; their
// messages name the path as the caller did.
package fs

import (
	"github.com/dsh-go/dsh/cordis"
)

// FS is the service for Go code.
type FS interface {
	// For gives the file system for the plugin of c: what its methods start is an
	// effect of c, and policy is asked in the name of c's mount.
	For(c *cordis.Context) ForPlugins
	// Roots gives the folders that can be reached, the first one, which relative
	// paths start at, first.
	Roots() []Root
	// Describe says in one line which folders can be reached, or how to name some.
	Describe() string
}

// Root is one folder that can be reached.
type Root struct {
	Path     string // absolute, links resolved
	ReadOnly bool
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[FS]("fs", cordis.PluginInterface(func(v FS, c *cordis.Context) ForPlugins { return v.For(c) }))
