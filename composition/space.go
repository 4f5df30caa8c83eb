package composition

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/selfmod/files"
	"github.com/dsh-go/dsh/tool"
)

// space is where plugin files are mounted: the person's own in the global scope,
// those of a project in a scope and a realm of their own. Each has a worker of its own.
type space struct {
	c     *Composition
	root  string      // of the project; "" of the person's own
	scope *tool.Scope // nil: the global one
	realm *cordis.Realm
	fiber *cordis.Fiber
	tree  *loader.Tree
	snap  *snapshot // of the project; what counts. The turn guards it.

	notice string // what is wrong with the project; guarded by c.mu

	mu    sync.Mutex // guards what follows
	ctx   *cordis.Context
	files *files.Host
	next  *snapshot // that is about to count
}

// errNoSpace says that plugin files cannot be mounted.
var errNoSpace = errors.New("there is no place for plugin files: the plugin tools is not active")

// open mounts a space, with nothing in it.
func (s *space) open(ctx context.Context) (err error) {
	name, on := "plugin files", s.c.root
	if s.root != "" {
		name = "project " + plain.Name(filepath.Base(s.root))
		if !s.c.o.Global {
			s.scope = tool.NewScope("project "+plain.Visible(s.root), nil)
			s.realm = cordis.NewRealm(name)
			on = tool.WithScope(on, s.scope).Overlay(s.realm)
		}
	}
	s.fiber, err = on.Mount(&cordis.Plugin{Name: name, Inject: cordis.Require(tool.Service.Name()), Apply: s.apply}, nil)
	if err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if err := s.fiber.Await(ctx); err != nil {
		return fmt.Errorf("open %s: %w", name, err)
	}
	if s.context() == nil {
		return fmt.Errorf("open %s: %w", name, errNoSpace)
	}
	if s.tree, err = loader.New(s.context(), loader.Options{Catalog: s.c.o.Catalog, Opener: s, Realms: s.c.realms}); err != nil {
		return err
	}
	s.c.know(s)
	return nil
}

// close takes back what open began, where it failed.
func (s *space) close() {
	if s.fiber != nil {
		s.fiber.RequestDispose()
	}
}

func (s *space) context() *cordis.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx
}

// apply is the body of the space's fiber. The rows are mounted from outside, so that
// none of them can fail it.
func (s *space) apply(ctx *cordis.Context, _ any) error {
	registry, err := tool.Service.Use(ctx)
	if err != nil {
		return err
	}
	host, err := files.New(ctx, files.Options{Sandbox: s.c.o.Sandbox, Registry: registry, Console: s.c.o.Console})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.ctx, s.files = ctx, host
	s.mu.Unlock()
	return nil
}

var _ loader.Opener = (*space)(nil)

// Read reads a plugin file: of a project, from the bytes that count.
func (s *space) Read(name string) (loader.Code, error) {
	s.mu.Lock()
	snap, host := s.next, s.files
	s.mu.Unlock()
	if s.root == "" {
		f, err := files.Read(name)
		return code{host, f}, err
	}
	f, err := snap.plugin(name, shownIn(s.root, name))
	return code{host, f}, err
}

// code is a plugin file as it was read.
type code struct {
	host *files.Host
	file files.File
}

var _ loader.Code = code{}

// Hash implements loader.Code.
func (c code) Hash() string { return c.file.Hash }

// Open implements loader.Code.
func (c code) Open(ctx context.Context) (*cordis.Plugin, error) { return c.host.Open(ctx, c.file) }

// Discard implements loader.Code.
func (c code) Discard(p *cordis.Plugin) { c.host.Discard(p) }

// MayTake implements loader.Code.
func (c code) MayTake(owner *cordis.Fiber) bool { return c.host.MayTake(owner) }

// Retired implements loader.Code.
func (c code) Retired(claimed []*cordis.Fiber) {
	files.Retired(claimed, c.file.Path)
}

// shownIn is a path as people of a project name it.
func shownIn(root, name string) string {
	if rel, err := filepath.Rel(filepath.Join(root, folderName), name); err == nil && filepath.IsLocal(rel) {
		return "./" + filepath.ToSlash(rel)
	}
	return name
}

// prepare gives the opener what the next transaction opens.
func (s *space) prepare(next *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = next
}

// openOwn mounts the person's own plugin files.
func (c *Composition) openOwn(ctx context.Context, rows []document.Row) error {
	s := &space{c: c}
	if err := s.open(ctx); err != nil {
		s.close()
		c.tell(err.Error())
		return nil
	}
	c.own = s
	return c.boot(ctx, s.tree, rows)
}
