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
// A root that is moved or replaced is not followed; errors say so.
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
// target keeps its permissions and, where that is permitted, its owner, but no
// access lists or extended attributes; other hard links keep the old content.
// Where a write fails, the target is as it was; folders that were created on the
// way stay. On file systems without links a conditional creation is not atomic for
// readers.
//
// # Policy
//
// Before the service acts it asks the waterfall events of this package, with the
// place found and its folder held open; after a read or a write it emits [Observed].
//
// # Concurrency and ownership
//
// Everything is safe for concurrent use. No lock is held while listeners or
// callbacks run. A scan of Go code visits files on goroutines of its own, which end
// before it returns. A watch is an effect of the context it was started for and has
// two goroutines until it is undone; a callback runs as a call of that context's
// fiber. Calls end when their context ends, between two steps of at most 256 KB.
//
// Errors are [service.Error] values with one of the codes of this package; their
// messages name the path as the caller did.
package fs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

// FS is the service for Go code.
type FS interface {
	// For gives the file system for the plugin of c: what its methods start is an
	// effect of c, and policy is asked in the name of c's mount.
	For(c *cordis.Context) ForPlugins
	// Scan looks through a folder and what is below it, and calls visit for each file:
	// in no order, on several goroutines, which have ended when it returns. It leaves
	// out what .gitignore files say and folders such as .git and node_modules, unless
	// it starts inside; links to folders are not entered. Policy is asked about the
	// start in the name of c's mount; see [Found.MayRead]. [Observed] is not told.
	// The first error of visit ends it; so does ctx.
	Scan(ctx context.Context, c *cordis.Context, o Scan, visit func(*Found) error) (Scanned, error)
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

// Policy, asked before the service acts; a denial is FS_PERMISSION_DENIED. Paths
// are absolute, with links resolved.
var (
	// ReadIntent asks whether something may be read, listed, found or watched. It
	// is not asked for each file that a listing or a search shows.
	ReadIntent = cordis.NewWaterfall[Read, tool.Decision]("fs/read-intent", cordis.ForPlugins())
	// WriteIntent asks whether a whole file may be written, by a tool of the model
	// or by a plugin.
	WriteIntent = cordis.NewWaterfall[Write, tool.Decision]("fs/write-intent", cordis.ForPlugins())
	// EditIntent asks whether a part of a file may be replaced, by a tool of the
	// model or by a plugin.
	EditIntent = cordis.NewWaterfall[EditRequest, tool.Decision]("fs/edit-intent", cordis.ForPlugins())
	// RemoveIntent asks whether something may be removed.
	RemoveIntent = cordis.NewWaterfall[Removal, tool.Decision]("fs/remove-intent", cordis.ForPlugins())
	// MkdirIntent asks whether a folder may be made.
	MkdirIntent = cordis.NewWaterfall[NewFolder, tool.Decision]("fs/mkdir-intent", cordis.ForPlugins())
	// Observed tells that a file's content was read or written.
	Observed = cordis.NewEmit[Observation]("fs/observed", cordis.ForPlugins())
)

// ReadOperation is the method that wants to read.
type ReadOperation string

// The methods that count as reading.
const (
	OpResolve    ReadOperation = "resolve"
	OpStat       ReadOperation = "stat"
	OpLstat      ReadOperation = "lstat"
	OpReadText   ReadOperation = "readText"
	OpStreamText ReadOperation = "streamText"
	OpReadBytes  ReadOperation = "readBytes"
	OpListDir    ReadOperation = "listDir"
	OpGlob       ReadOperation = "glob"
	OpWatch      ReadOperation = "watch"
)

// Read is what someone wants to read.
type Read struct {
	// Path is the file or folder; of a glob, the folder where the search starts.
	Path string `json:"path"`
	// Operation is the method.
	Operation ReadOperation `json:"operation"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// Write is what someone wants to write.
type Write struct {
	// Path is the file.
	Path string `json:"path"`
	// Exists tells whether the file is there now.
	Exists bool `json:"exists"`
	// Kind is what the write expects; absent: nothing.
	Kind WriteKind `json:"kind,omitempty"`
	// Version is the version that is expected with replaceIfVersion.
	Version string `json:"version,omitempty"`
	// Bytes is the size of the new text.
	Bytes int `json:"bytes"`
	// Content is the new text, for the program itself.
	Content string `json:"-"`
	// Done tells the program itself what became of it.
	Done *Done `json:"-"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// EditRequest is what someone wants to edit.
type EditRequest struct {
	// Path is the file.
	Path string `json:"path"`
	// OldString is the text to replace, cut to 2,000 characters.
	OldString string `json:"oldString"`
	// NewString is the text that replaces it, cut to 2,000 characters.
	NewString string `json:"newString"`
	// ReplaceAll tells whether every occurrence is replaced.
	ReplaceAll bool `json:"replaceAll"`
	// Version is the version that is expected; absent: any.
	Version string `json:"version,omitempty"`
	// Whole is the edit with its texts in full, for the program itself.
	Whole Edit `json:"-"`
	// Done tells the program itself what became of it.
	Done *Done `json:"-"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// Removal is what someone wants to remove.
type Removal struct {
	// Path is the file, folder or link.
	Path string `json:"path"`
	// Recursive tells whether a folder goes with everything in it.
	Recursive bool `json:"recursive"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// NewFolder is a folder that someone wants to make.
type NewFolder struct {
	// Path is the folder.
	Path string `json:"path"`
	// Recursive tells whether missing parents are made too.
	Recursive bool `json:"recursive"`
	// By is the mount that asks, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// ObservedOperation is how content became known.
type ObservedOperation string

// How content became known.
const (
	ObservedRead  ObservedOperation = "read"
	ObservedWrite ObservedOperation = "write"
	ObservedEdit  ObservedOperation = "edit"
)

// Observation tells whose content became known to whom.
type Observation struct {
	// Path is the file, absolute and with links resolved.
	Path string `json:"path"`
	// Version is the file's version at that time.
	Version string `json:"version"`
	// Operation is how.
	Operation ObservedOperation `json:"operation"`
	// By is the mount that read or wrote, such as dyn-3; empty for the program itself.
	By string `json:"by"`
}

// Config says which folders the service reaches. Without any root every call
// fails with an error that says how to name one.
type Config struct {
	// Roots are folders that may be read and written. Relative paths of plugins
	// start at the first.
	Roots []string
	// ReadOnly are folders that may be read. One inside a root is read-only there,
	// and a root inside one can be written.
	ReadOnly []string
	// Denied are files and folders that are never reached; they need not be there.
	// Home() is always among them.
	Denied []string
}

// DefaultRoots are the roots of a program that was started in cwd without naming
// any: cwd, unless it is / or the user's home folder. An empty home is unknown.
func DefaultRoots(cwd, home string) []string {
	cwd = filepath.Clean(cwd)
	if !filepath.IsAbs(cwd) || cwd == filepath.Dir(cwd) {
		return nil
	}
	if filepath.IsAbs(home) && Canonical(home) == Canonical(cwd) {
		return nil
	}
	return []string{cwd}
}

// Home is dsh's own folder: $DSH_HOME, or ~/.dsh; "" where there is neither.
func Home() string {
	if dir := os.Getenv("DSH_HOME"); dir != "" {
		return dir
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".dsh")
	}
	return ""
}

// root is an open root.
type root struct {
	path     string // canonical
	named    string // as configured, absolute
	readOnly bool
	dir      *os.Root
	info     os.FileInfo
}

// local is the provider of the local file system.
type local struct {
	c      *cordis.Context
	roots  []*root
	denied []string // canonical
	locks  [64]chan struct{}

	watched atomic.Int64 // names that all watches know
}

var _ FS = (*local)(nil)

// Plugin returns the plugin that provides the local file system. It fails to
// start where a root is not a folder or is denied.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "fs",
		Apply: func(c *cordis.Context, _ any) error {
			l, err := open(c, cfg)
			if err != nil {
				return err
			}
			if _, err := c.Defer("close roots", func(context.Context) error { return l.close() }); err != nil {
				return errors.Join(err, l.close())
			}
			if _, err := Service.Provide(c, l); err != nil {
				return fmt.Errorf("provide fs: %w", err)
			}
			return nil
		},
	}
}

func open(c *cordis.Context, cfg Config) (*local, error) {
	l := &local{c: c}
	for i := range l.locks {
		l.locks[i] = make(chan struct{}, 1)
	}
	for _, d := range append(slices.Clone(cfg.Denied), Home()) {
		if d == "" {
			continue
		}
		abs, err := filepath.Abs(d)
		if err != nil {
			return nil, fmt.Errorf("deny folder %q: %w", d, err)
		}
		// Where it is a link, that is denied too: with another, dsh's folder is another.
		link := filepath.Join(Canonical(filepath.Dir(abs)), filepath.Base(abs))
		l.denied = append(l.denied, Canonical(abs), link)
	}
	for i, dir := range slices.Concat(cfg.Roots, cfg.ReadOnly) {
		if err := l.open(dir, i >= len(cfg.Roots)); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

// open adds a root. Of one folder named twice the first counts.
func (l *local) open(named string, readOnly bool) error {
	if named == "" {
		return errors.New("open root: the name of the folder is empty")
	}
	abs, err := filepath.Abs(named)
	if err != nil {
		return fmt.Errorf("open root %q: %w", named, err)
	}
	path, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return fmt.Errorf("open root %q: %w", named, err)
	}
	r := &root{path: path, named: abs, readOnly: readOnly}
	if r.dir, err = os.OpenRoot(path); err != nil {
		return fmt.Errorf("open root %q: %w", named, err)
	}
	if r.info, err = r.dir.Stat("."); err != nil {
		return errors.Join(fmt.Errorf("open root %q: %w", named, err), r.dir.Close())
	}
	if l.deniedHere().has(path, r.info) {
		return errors.Join(fmt.Errorf("open root %q: plugins never reach this folder; name another one", named), r.dir.Close())
	}
	if slices.ContainsFunc(l.roots, func(o *root) bool { return o.path == path }) {
		return r.dir.Close()
	}
	l.roots = append(l.roots, r)
	return nil
}

func (l *local) close() error {
	var errs []error
	for _, r := range l.roots {
		errs = append(errs, r.dir.Close())
	}
	return errors.Join(errs...)
}

// For implements FS.
func (l *local) For(c *cordis.Context) ForPlugins {
	p := &plugin{local: l, c: c}
	if m, ok := tool.MountOf(c); ok {
		p.by = m.ID
	}
	return p
}

// Roots implements FS.
func (l *local) Roots() []Root {
	var out []Root
	for _, r := range l.roots {
		out = append(out, Root{Path: r.path, ReadOnly: r.readOnly})
	}
	return out
}

// noRoots is what to do where no root was named.
const noRoots = "this program was started without a folder that plugins may use; start it with `--root DIR`"

// Describe implements FS.
func (l *local) Describe() string {
	if len(l.roots) == 0 {
		return noRoots
	}
	return "plugins reach " + l.names() + "; relative paths start at the first; `--root DIR` at the start adds one"
}

// names lists the roots.
func (l *local) names() string {
	var out []string
	for _, r := range l.roots {
		if r.readOnly {
			out = append(out, r.path+" (read-only)")
		} else {
			out = append(out, r.path)
		}
	}
	return strings.Join(out, ", ")
}

// display shortens a canonical path: relative to the first root where it is
// inside it.
func (l *local) display(abs string) string {
	if rel, ok := within(abs, l.roots[0].path); ok {
		if rel == "" {
			return "."
		}
		return rel
	}
	return abs
}

// blocked recognizes what is denied.
type blocked struct {
	paths []string
	infos []os.FileInfo // of those that are there
}

// deniedHere looks at what is denied now.
func (l *local) deniedHere() blocked {
	b := blocked{paths: l.denied}
	for _, d := range l.denied {
		if info, err := os.Stat(d); err == nil {
			b.infos = append(b.infos, info)
		}
	}
	return b
}

// has tells whether a path, or what is there, is denied. info may be nil.
func (b blocked) has(path string, info os.FileInfo) bool {
	for _, d := range b.paths {
		if _, in := within(path, d); in {
			return true
		}
	}
	return info != nil && slices.ContainsFunc(b.infos, func(d os.FileInfo) bool { return os.SameFile(d, info) })
}

// within gives the rest of path below dir; "" for dir itself. Both are clean.
func within(path, dir string) (rel string, ok bool) {
	if path == dir {
		return "", true
	}
	if !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	return strings.CutPrefix(path, dir)
}

// Canonical resolves the links of an absolute path as the system does: one after
// another, .. behind a link from where it leads, and also those that lead to what is
// not there yet. A path of more links than the system follows is only cleaned.
func Canonical(path string) string {
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	volume := filepath.VolumeName(path)
	root := volume + string(filepath.Separator)
	split := func(s string) []string { return strings.Split(s, string(filepath.Separator)) }
	at, links := root, 0
	for todo := split(strings.TrimPrefix(path, volume)); len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if links++; links > 255 {
			return filepath.Clean(path)
		}
		if filepath.IsAbs(to) {
			at = root
		}
		todo = append(split(to), todo...)
	}
	return at
}
