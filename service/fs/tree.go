package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-go/dsh/limits"
)

// ListDir implements ForPlugins.
func (p *plugin) ListDir(ctx context.Context, target Path, _ *CallOptions) ([]DirEntry, error) {
	k := p.call(ctx, "listDir", target)
	at, err := p.found(k, target, true)
	if err != nil {
		return nil, err
	}
	defer at.close()
	dir, err := at.open()
	if err != nil {
		return nil, k.wrap(err)
	}
	defer done(dir)
	found, more, err := list(k, dir, limits.FSEntries)
	if err != nil {
		return nil, k.wrap(err)
	}
	if more {
		return nil, k.fail(CodeTooLarge, "the folder has more than %d entries; glob with a narrower pattern, or with a limit, reads such a folder", limits.FSEntries)
	}
	out := make([]DirEntry, 0, len(found))
	denied := p.deniedHere()
	for _, name := range found {
		if err := ctx.Err(); err != nil {
			return nil, k.wrap(err)
		}
		info, err := dir.Lstat(name)
		abs := filepath.Join(at.abs, name)
		if err != nil || denied.has(abs, info) {
			continue // it went meanwhile, or is not there for plugins
		}
		e := DirEntry{Name: name, Type: typeOf(info), Target: p.target(abs), Size: sizeOf(info)}
		if !racy(info) {
			e.Version = version(info)
		}
		out = append(out, e)
	}
	return out, nil
}

// open opens the folder at the place.
func (p *place) open() (*os.Root, error) {
	if !p.folder() {
		return nil, p.call.fail(CodeNotDirectory, "it is not a folder")
	}
	return enter(p.dir, p.name, p.info)
}

// list gives the names in a folder in their order. Of more than max names the
// rest is not looked at.
func list(k *call, dir *os.Root, max int) (out []string, more bool, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, false, err
	}
	defer done(f)
	for {
		if err := k.ctx.Err(); err != nil {
			return nil, false, err
		}
		some, err := f.Readdirnames(1000)
		out = append(out, some...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		if len(out) > max {
			out, more = out[:max], true
			break
		}
	}
	slices.Sort(out)
	return out, more, nil
}

// Mkdir implements ForPlugins.
func (p *plugin) Mkdir(ctx context.Context, target Path, o *MkdirOptions) error {
	k := p.call(ctx, "mkdir", target)
	recursive := o != nil && o.Recursive
	at, err := p.walk(k, target, "", true)
	if err != nil {
		return err
	}
	defer at.close()
	switch {
	case at.folder() && recursive:
		return p.mayMkdir(at, true)
	case at.info != nil:
		return k.fail(CodeExists, "something is there already; {recursive: true} takes a folder that is there")
	case len(at.missing) > 0 && !recursive:
		return k.fail(CodeNotFound, "its parent folder is not there; {recursive: true} makes it too")
	}
	if err := p.writable(at); err != nil {
		return err
	}
	if err := p.mayMkdir(at, recursive); err != nil {
		return err
	}
	if err := at.make(); err != nil {
		return k.wrap(err)
	}
	err = at.dir.Mkdir(at.name, 0o777)
	if info, serr := at.dir.Lstat(at.name); recursive && errors.Is(err, fs.ErrExist) && serr == nil && info.IsDir() {
		return nil
	}
	if err == nil {
		err = syncFolder(at.dir)
	}
	return k.wrap(err)
}

func (p *plugin) mayMkdir(at *place, recursive bool) error {
	return ask(at.call, p.provider(), MkdirIntent, NewFolder{Path: at.abs, Recursive: recursive, By: p.by})
}

// Remove implements ForPlugins.
func (p *plugin) Remove(ctx context.Context, target Path, o *RemoveOptions) error {
	k := p.call(ctx, "remove", target)
	recursive := o != nil && o.Recursive
	at, err := p.walk(k, target, "", false)
	if err != nil {
		return err
	}
	defer at.close()
	if at.info == nil {
		return k.wrap(fs.ErrNotExist)
	}
	if err := p.removable(at); err != nil {
		return err
	}
	if err := ask(k, p.provider(), RemoveIntent, Removal{Path: at.abs, Recursive: recursive, By: p.by}); err != nil {
		return err
	}
	unlock, err := p.lock(k, at.abs)
	if err != nil {
		return err
	}
	defer unlock()
	if at.folder() && recursive {
		r := &remover{local: p.local, k: k, denied: p.deniedHere()}
		err = r.empty(at.dir, at.name, at.abs, at.info, 0)
	}
	if err == nil {
		err = at.dir.Remove(at.name)
	}
	if err == nil {
		err = syncFolder(at.dir)
	}
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return k.fail(CodeNotEmpty, "the folder is not empty; {recursive: true} removes it with everything in it")
	}
	return k.wrap(err)
}

// removable refuses places whose removal would take a root or something denied
// with it.
func (p *plugin) removable(at *place) error {
	if err := p.writable(at); err != nil {
		return err
	}
	for _, r := range p.roots {
		if _, in := within(r.path, at.abs); in {
			return at.call.fail(CodeSandboxDenied, "the root %s would be removed with it; roots stay. Remove what is in it", r.path)
		}
	}
	for _, d := range p.denied {
		if _, in := within(d, at.abs); in {
			return at.call.fail(CodeSandboxDenied, "something that plugins never reach is in it; remove the other things one by one")
		}
	}
	return nil
}

// remover empties folders. It opens each without following links and leaves
// what is denied.
type remover struct {
	*local
	k      *call
	denied blocked
}

func (r *remover) empty(dir *os.Root, name, abs string, info os.FileInfo, depth int) error {
	if depth > limits.FSDepth {
		return r.k.fail(CodeTooLarge, "its folders are more than %d deep; remove the deepest first", limits.FSDepth)
	}
	if r.denied.has(abs, info) || slices.ContainsFunc(r.roots, func(o *root) bool { return os.SameFile(o.info, info) }) {
		return r.k.fail(CodeSandboxDenied, "%s stays: it is a root, or nothing that plugins reach", quoted(r.display(abs)))
	}
	sub, err := enter(dir, name, info)
	if err != nil {
		return err
	}
	defer done(sub)
	for {
		found, more, err := list(r.k, sub, limits.FSEntries)
		if err != nil {
			return err
		}
		for _, name := range found {
			if err := r.drop(sub, name, filepath.Join(abs, name), depth); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

func (r *remover) drop(dir *os.Root, name, abs string, depth int) error {
	if err := r.k.ctx.Err(); err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err == nil && info.IsDir() {
		err = r.empty(dir, name, abs, info, depth+1)
	}
	if err == nil {
		err = dir.Remove(name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // someone else was faster
	}
	return err
}

// Glob implements ForPlugins.
func (p *plugin) Glob(ctx context.Context, pattern string, o *GlobOptions) ([]string, error) {
	k := p.call(ctx, "glob", Path(pattern))
	if o == nil {
		o = &GlobOptions{}
	}
	s := &searcher{plugin: p, k: k, denied: p.deniedHere(), exclude: o.Exclude, limit: o.Limit}
	if err := s.check(pattern); err != nil {
		return nil, err
	}
	base, rest := doublestar.SplitPattern(pattern)
	s.prepare(rest)
	at, err := p.walk(k, Path(base), o.Cwd, true)
	if err != nil {
		return nil, err
	}
	defer at.close()
	if err := p.mayRead(at); err != nil {
		return nil, err
	}
	if at.folder() {
		dir, err := at.open()
		if err != nil {
			return nil, k.wrap(err)
		}
		defer done(dir)
		if err := s.search(dir, at.abs, path.Clean(base), "", 0); err != nil && !errors.Is(err, errEnough) {
			return nil, k.wrap(err)
		}
	}
	if s.unseen != "" {
		return nil, k.fail(CodeTooLarge, "%s; narrow the pattern, exclude folders, or pass a limit to get the first ones that are found", s.unseen)
	}
	slices.Sort(s.out)
	return append([]string{}, s.out...), nil
}

// errEnough ends a search that found, or looked at, as much as it may.
var errEnough = errors.New("enough")

// searcher is one search.
type searcher struct {
	*plugin
	k       *call
	denied  blocked
	pattern string // from the folder where it begins to have wildcards
	exclude []string
	limit   int      // 0: none, so that more than can be given is an error
	prefix  []string // of the pattern: names of the first folders
	depth   int      // folders below which nothing can match; -1: none
	visited int
	unseen  string // why not everything was looked at, if that matters
	out     []string
}

func (s *searcher) check(pattern string) error {
	if err := s.k.check(pattern); err != nil {
		return err
	}
	if len(s.exclude) > limits.FSPatterns {
		return s.k.fail(CodeInvalidArgument, "exclude has %d patterns; at most %d are taken", len(s.exclude), limits.FSPatterns)
	}
	for _, one := range append([]string{pattern}, s.exclude...) {
		if len(one) > limits.FSPattern {
			return s.k.fail(CodeInvalidArgument, "a pattern has %d bytes; at most %d are taken", len(one), limits.FSPattern)
		}
		if !doublestar.ValidatePattern(one) {
			return s.k.fail(CodeInvalidArgument, "%s is not a pattern: a [ or { is not closed, or a \\ stands at its end; \\[ is the character itself", quoted(one))
		}
	}
	if s.limit < 0 || s.limit > limits.FSEntries {
		return s.k.fail(CodeInvalidArgument, "limit is %d; it goes from 1 to %d", s.limit, limits.FSEntries)
	}
	return nil
}

// prepare finds what keeps the search out of folders that cannot match.
func (s *searcher) prepare(pattern string) {
	s.pattern, s.depth = pattern, -1
	parts := strings.Split(pattern, "/")
	if !strings.Contains(pattern, "**") && !strings.ContainsAny(pattern, `{\`) {
		s.depth = len(parts) - 1
	}
	for _, part := range parts[:len(parts)-1] {
		if strings.Contains(part, "**") || strings.ContainsAny(part, `{}\`) {
			break
		}
		s.prefix = append(s.prefix, part)
	}
}

// search looks through one folder: abs is its place, shown its path as the
// pattern begins, rel that from where the pattern has wildcards.
func (s *searcher) search(dir *os.Root, abs, shown, rel string, depth int) error {
	found, more, err := list(s.k, dir, limits.FSVisited-s.visited)
	if err != nil {
		return err
	}
	s.visited += len(found)
	for _, name := range found {
		if err := s.entry(dir, name, filepath.Join(abs, name), path.Join(shown, name), path.Join(rel, name), depth); err != nil {
			return err
		}
	}
	if more || s.visited >= limits.FSVisited {
		return s.enough("there are more than %d files and folders to look at", limits.FSVisited)
	}
	return nil
}

func (s *searcher) entry(dir *os.Root, name, abs, shown, rel string, depth int) error {
	if err := s.k.ctx.Err(); err != nil {
		return err
	}
	if slices.ContainsFunc(s.exclude, func(x string) bool { return doublestar.MatchUnvalidated(x, shown) }) {
		return nil
	}
	info, err := dir.Lstat(name)
	if err != nil || s.denied.has(abs, info) {
		return nil //nolint:nilerr // it went meanwhile, or is not there for plugins
	}
	switch typeOf(info) {
	case TypeDirectory:
		return s.folder(dir, name, abs, shown, rel, info, depth)
	case TypeOther:
		return nil
	}
	if !doublestar.MatchUnvalidated(s.pattern, rel) {
		return nil
	}
	if typeOf(info) == TypeSymlink && !s.leadsToFile(abs) {
		return nil
	}
	s.out = append(s.out, s.display(abs))
	switch {
	case len(s.out) == s.limit:
		return errEnough
	case len(s.out) > limits.FSEntries:
		return s.enough("more than %d files match", limits.FSEntries)
	}
	return nil
}

// enough ends the search early. A search with a limit gives what it has found.
func (s *searcher) enough(why string, n int) error {
	if s.limit == 0 {
		s.unseen = fmt.Sprintf(why, n)
	}
	return errEnough
}

// folder searches a folder, if something in it can match.
func (s *searcher) folder(dir *os.Root, name, abs, shown, rel string, info os.FileInfo, depth int) error {
	if s.depth >= 0 && depth >= s.depth || depth < len(s.prefix) && !doublestar.MatchUnvalidated(s.prefix[depth], name) {
		return nil
	}
	if depth >= limits.FSDepth {
		return s.enough("folders are more than %d deep", limits.FSDepth)
	}
	sub, err := enter(dir, name, info)
	if err == nil {
		err = s.search(sub, abs, shown, rel, depth+1)
		done(sub)
	}
	if err == nil || errors.Is(err, errEnough) || s.k.ctx.Err() != nil {
		return err
	}
	return nil // a folder that may not be read, or went meanwhile
}

func (s *searcher) leadsToFile(abs string) bool {
	at, err := s.walk(s.k, Path(abs), "", true)
	if err != nil {
		return false
	}
	defer at.close()
	return at.info != nil && at.info.Mode().IsRegular()
}
