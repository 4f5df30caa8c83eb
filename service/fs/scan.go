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
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/fs/ignore"
)

// Scan says what [FS.Scan] looks through.
type Scan struct {
	// Start is the folder, or the one file, to look at.
	Start Path
	// Pattern, if given, is one that Glob takes, without .. in it: it fits paths from
	// Start on.
	Pattern string
	// Links gives links that lead to files too.
	Links bool
}

// Scanned tells how far a scan came.
type Scanned struct {
	// File tells that the start is a file.
	File bool
	// Visited counts the files and folders that were looked at.
	Visited int
	// Unread counts folders that could not be read.
	Unread int
	// Unseen says why not everything was looked at; "" if it was.
	Unseen string
}

// Found is a file that a scan came to. It can be used during the visit only.
type Found struct {
	Path string // absolute, the links before the last name resolved
	Rel  string // from the folder where the scan started; of a start that is a file, its name
	Link bool   // it is a link that leads to a file

	s    *scan
	dir  *os.Root
	name string
}

// Info tells what is there; of a link, about the link.
func (f *Found) Info() (os.FileInfo, error) {
	info, err := f.dir.Lstat(f.name)
	return info, f.s.k.wrap(err)
}

// Open opens the file, not a link. One that is denied is not there.
func (f *Found) Open() (*os.File, error) {
	info, err := f.dir.Lstat(f.name)
	if err != nil {
		return nil, f.s.k.wrap(err)
	}
	at := &place{call: f.s.k, abs: f.Path, dir: f.dir, name: f.name, info: info}
	if err := regular(at); err != nil {
		return nil, err
	}
	if f.s.denied.has("", info) {
		return nil, f.s.k.wrap(fs.ErrNotExist)
	}
	file, err := openRegular(at)
	return file, f.s.k.wrap(err)
}

// MayRead asks policy whether the content may be shown: whoever shows some of it
// asks before, and takes a file that may not be read for one that is not there.
func (f *Found) MayRead() bool {
	return ask(f.s.k, f.s.provider(), ReadIntent, Read{Path: f.Path, Operation: OpReadText, By: f.s.by}) == nil
}

// visitError is an error of a visit.
type visitError struct{ error }

// scan is one scan.
type scan struct {
	*plugin
	k       *call
	denied  blocked
	glob    *searcher // nil: every file
	links   bool
	visit   func(*Found) error
	base    string // where Rel starts
	single  bool   // the start is a file
	stop    context.CancelCauseFunc
	slots   chan struct{}
	wg      sync.WaitGroup
	visited atomic.Int64
	unread  atomic.Int64
	unseen  atomic.Pointer[string]
}

// Scan implements FS.
func (l *local) Scan(ctx context.Context, c *cordis.Context, o Scan, visit func(*Found) error) (Scanned, error) {
	p, _ := l.For(c).(*plugin)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s := &scan{
		plugin: p, k: p.call(ctx, "search", o.Start), denied: p.deniedHere(), links: o.Links, visit: visit, stop: stop,
		slots: make(chan struct{}, min(runtime.GOMAXPROCS(0), limits.ScanWorkers)-1),
	}
	if o.Pattern != "" {
		s.glob = &searcher{k: s.k}
		if err := s.glob.check(o.Pattern); err != nil {
			return Scanned{}, err
		}
		s.glob.prepare(o.Pattern)
	}
	err := s.start(o.Start)
	s.wg.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if own := new(visitError); errors.As(err, &own) {
		return Scanned{}, own.error
	}
	out := Scanned{File: s.single, Visited: int(s.visited.Load()), Unread: int(s.unread.Load())}
	if why := s.unseen.Load(); why != nil {
		out.Unseen = *why
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	return out, s.k.wrap(err)
}

// start finds where the scan begins.
func (s *scan) start(target Path) error {
	at, err := s.walk(s.k, target, "", true)
	if err != nil {
		return err
	}
	defer at.close()
	if at.info == nil {
		return fs.ErrNotExist
	}
	op := OpGlob
	if at.info.Mode().IsRegular() {
		op = OpReadText
	}
	if err := ask(s.k, s.provider(), ReadIntent, Read{Path: at.abs, Operation: op, By: s.by}); err != nil {
		return err
	}
	if at.info.Mode().IsRegular() {
		s.visited.Add(1)
		s.base, s.single = filepath.Dir(at.abs), true
		if err := s.file(at.dir, at.name, at.abs, false); err != nil {
			return &visitError{err}
		}
		return nil
	}
	dir, err := at.open()
	if err != nil {
		return err
	}
	s.base = at.abs
	s.folder(newShared(dir), at.abs, s.above(at), 0)
	return nil
}

// shared is an open folder that several goroutines look into; the last closes it.
type shared struct {
	dir   *os.Root
	users atomic.Int32
}

func newShared(dir *os.Root) *shared {
	s := &shared{dir: dir}
	s.users.Store(1)
	return s
}

func (d *shared) use() *shared {
	d.users.Add(1)
	return d
}

func (d *shared) done() {
	if d.users.Add(-1) == 0 {
		done(d.dir)
	}
}

// spread runs fn, on a goroutine of its own if one is free.
func (s *scan) spread(fn func()) {
	select {
	case s.slots <- struct{}{}:
		s.wg.Go(func() {
			defer func() { <-s.slots }()
			fn()
		})
	default:
		fn()
	}
}

// scanBatch is how many names of a folder are looked at by one goroutine at least.
const scanBatch = 64

// folder looks through an open folder, which it lets go of.
func (s *scan) folder(in *shared, abs string, rules *rules, depth int) {
	defer in.done()
	f, err := in.dir.Open(".")
	if err != nil {
		s.unread.Add(1)
		return
	}
	defer done(f)
	var all []os.DirEntry
	for s.k.ctx.Err() == nil && len(all) <= limits.ScanVisited {
		some, err := f.ReadDir(1000)
		all = append(all, some...)
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.unread.Add(1)
			}
			break
		}
	}
	if s.visited.Add(int64(len(all))) > limits.ScanVisited {
		s.enough("there are more than %d files and folders to look at", limits.ScanVisited)
		return
	}
	rules = s.below(rules, in.dir, abs, all)
	var folders []os.DirEntry
	for some := range slices.Chunk(all, scanBatch) {
		some = slices.DeleteFunc(some, func(e os.DirEntry) bool {
			if e.IsDir() {
				folders = append(folders, e)
			}
			return e.IsDir()
		})
		in.use()
		s.spread(func() {
			defer in.done()
			s.files(in.dir, abs, rules, some)
		})
	}
	for _, e := range folders {
		s.enter(in, e.Name(), abs, rules, depth)
	}
}

// enter looks into a folder of an open one.
func (s *scan) enter(in *shared, name, parent string, rules *rules, depth int) {
	abs := filepath.Join(parent, name)
	if s.k.ctx.Err() != nil || rules.leaveOut(abs, name, true) || s.glob != nil && !s.glob.mayHold(name, depth) {
		return
	}
	if depth >= limits.FSDepth {
		s.enough("folders are more than %d deep", limits.FSDepth)
		return
	}
	info, err := in.dir.Lstat(name)
	if err != nil || !info.IsDir() || s.denied.has(abs, info) {
		return
	}
	sub, err := enter(in.dir, name, info)
	if err != nil {
		s.unread.Add(1)
		return
	}
	opened := newShared(sub)
	s.spread(func() { s.folder(opened, abs, rules, depth+1) })
}

// files visits what are no folders.
func (s *scan) files(dir *os.Root, parent string, rules *rules, some []os.DirEntry) {
	for _, e := range some {
		if s.k.ctx.Err() != nil {
			return
		}
		abs := filepath.Join(parent, e.Name())
		link := e.Type()&fs.ModeSymlink != 0
		if !e.Type().IsRegular() && (!link || !s.links) || rules.leaveOut(abs, e.Name(), false) {
			continue
		}
		if err := s.file(dir, e.Name(), abs, link); err != nil {
			s.stop(&visitError{err})
			return
		}
	}
}

// file visits one file.
func (s *scan) file(dir *os.Root, name, abs string, link bool) error {
	rel, _ := within(abs, s.base)
	if s.glob != nil && !doublestar.MatchUnvalidated(s.glob.pattern, rel) {
		return nil
	}
	if s.denied.has(abs, nil) || link && !s.leadsToFile(abs) {
		return nil
	}
	return s.visit(&Found{Path: abs, Rel: rel, Link: link, s: s, dir: dir, name: name})
}

// leadsToFile tells whether a link leads to a file within the roots.
func (s *scan) leadsToFile(abs string) bool {
	return (&searcher{plugin: s.plugin, k: s.k}).leadsToFile(abs)
}

// enough ends the scan; what was found stays.
func (s *scan) enough(why string, n int) {
	text := fmt.Sprintf(why, n)
	s.unseen.Store(&text)
	s.stop(errEnough)
}

// mayHold tells whether a folder, so deep below the start, can have matches.
func (s *searcher) mayHold(name string, depth int) bool {
	return (s.depth < 0 || depth < s.depth) && (depth >= len(s.prefix) || doublestar.MatchUnvalidated(s.prefix[depth], name))
}

// rules are those of the .gitignore files from a folder upwards.
type rules struct {
	up   *rules
	here *ignore.Rules
	at   string // the folder that they count from
}

// leftOut are folders that a scan never enters: what version control keeps, and
// what package managers put there. It looks at them when it starts inside.
var leftOut = []string{".git", ".hg", ".svn", ".jj", "node_modules"}

// leaveOut tells whether something is left out.
func (r *rules) leaveOut(abs, name string, dir bool) bool {
	return (dir || name == ".git") && slices.Contains(leftOut, name) || r.ignored(abs, dir)
}

func (r *rules) ignored(abs string, dir bool) bool {
	for ; r != nil; r = r.up {
		rel, _ := within(abs, r.at)
		if d := r.here.Match(rel, dir); d != ignore.Undecided {
			return d == ignore.Ignored
		}
	}
	return false
}

// below adds the rules of a folder. What has a .git is a tree of its own.
func (s *scan) below(up *rules, dir *os.Root, abs string, all []os.DirEntry) *rules {
	if abs == s.base {
		return up // they are in it already
	}
	has := func(name string) bool {
		return slices.ContainsFunc(all, func(e os.DirEntry) bool { return e.Name() == name })
	}
	if has(".git") {
		up = s.add(nil, dir, ".git/info/exclude", abs)
	}
	if has(".gitignore") {
		up = s.add(up, dir, ".gitignore", abs)
	}
	return up
}

// above gives the rules that hold in the folder where the scan starts: its own, and
// those of the folders above up to the top of the tree, unless they leave it out.
func (s *scan) above(at *place) *rules {
	var up *rules
	folder := at.root.path
	rest, _ := within(at.abs, folder)
	for {
		name := strings.TrimPrefix(folder, at.root.path)
		name = path.Join(".", name)
		if _, err := at.root.dir.Lstat(path.Join(name, ".git")); err == nil {
			up = s.add(nil, at.root.dir, path.Join(name, ".git/info/exclude"), folder)
		}
		up = s.add(up, at.root.dir, path.Join(name, ".gitignore"), folder)
		if rest == "" {
			return up
		}
		next, more, _ := strings.Cut(rest, "/")
		folder, rest = filepath.Join(folder, next), more
		if up.leaveOut(folder, next, true) {
			up = nil
		}
	}
}

// add reads one file of rules; one that cannot be read has none.
func (s *scan) add(up *rules, dir *os.Root, name, at string) *rules {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || s.denied.has(filepath.Join(at, path.Base(name)), info) {
		return up
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return up
	}
	defer done(f)
	text, err := io.ReadAll(io.LimitReader(f, limits.IgnoreFile+1))
	if err != nil {
		return up
	}
	here := ignore.Parse(string(text))
	if here.Empty() {
		return up
	}
	return &rules{up: up, here: here, at: at}
}
