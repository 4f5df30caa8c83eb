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
	if home != "" && canonical(home) == canonical(cwd) {
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
		l.denied = append(l.denied, canonical(abs))
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

// canonical resolves the links of a path as far as it exists.
func canonical(path string) string {
	path = filepath.Clean(path)
	if resolved, err := filepath.EvalSymlinks(path); err == nil {
		return resolved
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(canonical(parent), filepath.Base(path))
}
