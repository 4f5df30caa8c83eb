package fs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/limits"
)

// place is what a path led to: a name in an open folder.
type place struct {
	call    *call
	abs     string   // canonical; the links of what is missing cannot be known
	root    *root    // the innermost root that it is in
	dir     *os.Root // holds name; "." is the folder itself, for a root
	name    string
	info    os.FileInfo // as Lstat gives it; nil: nothing is there
	missing []string    // the folders between dir and name, which are not there
}

func (p *place) close() { _ = p.dir.Close() } // a folder that was only read

// folder tells whether a folder is there.
func (p *place) folder() bool { return p.info != nil && p.info.IsDir() }

// walker walks one path.
type walker struct {
	*local
	k       *call
	denied  blocked
	follow  bool // a link at the end
	steps   int
	links   int
	through bool // a link was followed
}

// errAgain says that a name changed while it was looked at.
var errAgain = errors.New("the path changes all the time")

// walk finds the place of a path; cwd is where a relative one starts, or "".
// The caller closes the place.
func (l *local) walk(k *call, path, cwd Path, follow bool) (*place, error) {
	if len(l.roots) == 0 {
		return nil, k.fail(CodeSandboxDenied, "%s", noRoots)
	}
	if err := k.check(string(path)); err != nil {
		return nil, err
	}
	full := string(path)
	if !filepath.IsAbs(full) {
		base := l.roots[0].path
		if cwd != "" {
			if err := k.check(string(cwd)); err != nil {
				return nil, err
			}
			if base = string(cwd); !filepath.IsAbs(base) {
				base = l.roots[0].path + "/" + base
			}
		}
		full = base + "/" + full
	}
	w := &walker{local: l, k: k, denied: l.deniedHere(), follow: follow}
	parts := names(full)
	for {
		p, next, err := w.pass(parts)
		if errors.Is(err, errAgain) && w.steps < limits.FSSteps {
			continue
		}
		if err != nil {
			return nil, k.wrap(err)
		}
		if p != nil {
			return p, nil
		}
		parts = next
	}
}

// check refuses what is no path.
func (k *call) check(path string) error {
	switch {
	case path == "":
		return k.fail(CodeInvalidArgument, `the path is empty; "." is the first root`)
	case len(path) > limits.FSPath:
		return k.fail(CodeInvalidArgument, "the path has %d bytes; at most %d are allowed", len(path), limits.FSPath)
	case strings.ContainsRune(path, 0):
		return k.fail(CodeInvalidArgument, "the path contains a NUL character")
	}
	return nil
}

// names takes a path apart; . and // mean nothing.
func names(path string) []string {
	return slices.DeleteFunc(strings.Split(path, "/"), func(s string) bool { return s == "" || s == "." })
}

// pick finds the innermost root that an absolute path is in, and the rest.
func (l *local) pick(parts []string) (*root, []string) {
	var best *root
	var rest []string
	for _, r := range l.roots {
		for _, at := range []string{r.path, r.named} {
			prefix := names(at)
			if len(parts) < len(prefix) || !slices.Equal(parts[:len(prefix)], prefix) {
				continue
			}
			if best == nil || len(parts)-len(prefix) < len(rest) {
				best, rest = r, parts[len(prefix):]
			}
		}
	}
	return best, rest
}

// pass walks from a root towards the end of an absolute path. Where a link or a
// .. has to be followed it gives the path that results, to be walked next.
func (w *walker) pass(parts []string) (_ *place, next []string, err error) {
	r, rest := w.pick(parts)
	if r == nil {
		return nil, nil, w.outside()
	}
	dir, err := r.dir.OpenRoot("./.")
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if dir != nil {
			_ = dir.Close()
		}
	}()
	p := &place{call: w.k, root: r, abs: r.path, name: ".", info: r.info}
	for i, part := range rest {
		if w.steps++; w.steps > limits.FSSteps {
			return nil, nil, errAgain
		}
		if err := w.k.ctx.Err(); err != nil {
			return nil, nil, err
		}
		if part == ".." {
			return nil, slices.Concat(names(filepath.Dir(p.abs)), rest[i+1:]), nil
		}
		last := i == len(rest)-1
		p.abs, p.name = filepath.Join(p.abs, part), part
		if w.denied.has(p.abs, nil) {
			return nil, nil, w.refuse()
		}
		p.info, err = dir.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return w.absent(p, &dir, rest[i:])
		case err != nil:
			return nil, nil, err
		case w.denied.has("", p.info):
			return nil, nil, w.refuse()
		case p.info.Mode()&fs.ModeSymlink != 0 && (!last || w.follow):
			next, err := w.link(dir, part, filepath.Dir(p.abs))
			return nil, slices.Concat(next, rest[i+1:]), err
		case last: // whatever it is
		case !p.info.IsDir():
			return nil, nil, w.k.fail(CodeNotDirectory, "%s is not a folder", quoted(w.display(p.abs)))
		default:
			sub, err := enter(dir, part, p.info)
			if err != nil {
				return nil, nil, err
			}
			_ = dir.Close()
			dir = sub
		}
		w.adopt(p)
	}
	p.dir, dir = dir, nil
	return p, nil, nil
}

// adopt makes a root that the walk arrived at the one that governs.
func (w *walker) adopt(p *place) {
	for _, r := range w.roots {
		if os.SameFile(r.info, p.info) {
			p.root = r
		}
	}
}

// enter opens a folder that was looked at, and no other. The "/." keeps the
// system from following a link and from waiting at a pipe.
func enter(dir *os.Root, name string, info os.FileInfo) (*os.Root, error) {
	sub, err := dir.OpenRoot(name + "/.")
	if err != nil {
		if now, err := dir.Lstat(name); err != nil || !os.SameFile(now, info) {
			return nil, errAgain
		}
		return nil, err
	}
	now, err := sub.Stat(".")
	if err == nil && !os.SameFile(now, info) {
		err = errAgain
	}
	if err != nil {
		_ = sub.Close()
		return nil, err
	}
	return sub, nil
}

// absent is the place of something that is not there; rest begins with the first
// name that is not.
func (w *walker) absent(p *place, dir **os.Root, rest []string) (*place, []string, error) {
	if slices.Contains(rest, "..") {
		return nil, nil, w.k.fail(CodeNotFound, "there is no folder %s", quoted(w.display(p.abs)))
	}
	if filepath.Dir(p.abs) == p.root.path {
		if info, err := os.Stat(p.root.path); err != nil || !os.SameFile(info, p.root.info) {
			return nil, nil, w.k.fail(CodeIO, "the root %s was moved, removed or replaced since this program started; start it again", p.root.path)
		}
	}
	p.abs = filepath.Join(append([]string{p.abs}, rest[1:]...)...)
	if w.denied.has(p.abs, nil) {
		return nil, nil, w.refuse()
	}
	p.missing, p.name = rest[:len(rest)-1], rest[len(rest)-1]
	p.info = nil
	p.dir, *dir = *dir, nil
	return p, nil, nil
}

// link gives the absolute path that a link in the folder at means.
func (w *walker) link(dir *os.Root, name, at string) ([]string, error) {
	if w.links++; w.links > limits.FSLinks {
		return nil, w.k.fail(CodeIO, "more than %d symbolic links are on the way; do they lead in a circle?", limits.FSLinks)
	}
	target, err := dir.Readlink(name)
	if err != nil {
		return nil, errAgain
	}
	w.through = true
	if filepath.IsAbs(target) {
		return names(target), nil
	}
	return append(names(at), names(target)...), nil
}

func (w *walker) outside() error {
	how := "it is outside of the folders that plugins may use"
	if w.through {
		how = "a symbolic link on the way leads out of the folders that plugins may use"
	}
	return w.k.fail(CodeSandboxDenied, "%s (%s); start dsh with `--root DIR` to add one", how, w.names())
}

func (w *walker) refuse() error {
	return w.k.fail(CodeSandboxDenied, "plugins never reach this, whatever the roots are: it belongs to dsh itself or was denied at its start")
}

// writable refuses places in read-only roots.
func (l *local) writable(p *place) error {
	if !p.root.readOnly {
		return nil
	}
	var others []string
	for _, r := range l.roots {
		if !r.readOnly {
			others = append(others, r.path)
		}
	}
	if len(others) == 0 {
		return p.call.fail(CodeReadOnly, "it is in %s, which plugins may only read; start dsh with `--root DIR` for a folder to write to", p.root.path)
	}
	return p.call.fail(CodeReadOnly, "it is in %s, which plugins may only read; these can be written: %s", p.root.path, strings.Join(others, ", "))
}
