package composition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/tool"
)

// Place is a folder that sessions work in.
type Place struct {
	c     *Composition
	space *space // nil: it has no project and can have none
}

// crew is what is mounted for one agent.
type crew struct {
	place   *Place
	tree    *loader.Tree
	scope   *tool.Scope
	catalog loader.Catalog
}

// Place finds the project of a folder, an absolute one, and mounts it if nobody has
// before. A project that cannot be read, or is not trusted, is told and left out, and
// so is what of its rows has faults. Where guards may be among what cannot be read the
// error has document.Faults. A folder that has no project is its own, so that a .dsh that appears in it
// is followed.
func (c *Composition) Place(ctx context.Context, cwd string) (*Place, error) {
	give, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	defer give()
	p := &Place{c: c}
	if c.o.Safe {
		return p, nil
	}
	root, _, err := find(cwd, c.o.Home)
	if err != nil || root == "" {
		return p, err
	}
	if p.space = c.spaces[root]; p.space != nil {
		return p, nil
	}
	if len(c.spaces) >= limits.CompositionProjects {
		c.tell(fmt.Sprintf("project %s is left out: %d projects are mounted, which is the limit; end the sessions of others and start again", plain.Visible(root), limits.CompositionProjects))
		return p, nil
	}
	s := &space{c: c, root: root}
	if err := s.open(ctx); err != nil {
		s.close()
		c.tell(err.Error())
		return p, nil
	}
	c.spaces[root], p.space = s, s
	defer c.follow()
	if err := c.furnish(ctx, s); err != nil {
		delete(c.spaces, root) // who comes next is told the same
		c.forget(s)
		s.close()
		return nil, err
	}
	return p, nil
}

// errGuards says that tools would be offered that somebody wanted guarded.
var errGuards = errors.New("the guards of the project's rows cannot be read")

// furnish mounts a project for the first time.
func (c *Composition) furnish(ctx context.Context, s *space) error {
	snap, err := c.warden.read(ctx, s.root, nil, true)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		c.tell(err.Error() + "; it is left out")
		snap = &snapshot{root: s.root}
	}
	c.note(s, snap.notice)
	if snap.notice != "" {
		c.tell(snap.notice)
	}
	whole, faults := c.composed(c.docs, snap)
	if slices.ContainsFunc(faults, func(f document.Fault) bool { return f.Guards }) {
		return fmt.Errorf("%w:\n%w\nmend it, or start without the project's files: --safe", errGuards, faults)
	}
	if len(faults) > 0 {
		c.tell("left out of " + plain.Visible(s.root) + "/" + documentPath + ":\n" + faults.Error())
	}
	s.snap = snap
	s.prepare(snap)
	return c.boot(ctx, s.tree, divide(whole.Rows, c.o.Catalog).project)
}

// composed is the composition with a project.
func (c *Composition) composed(docs documents, snap *snapshot) (*document.Composition, document.Faults) {
	project, faults := snap.documents()
	whole, wrong := docs.compose(project, c.composing(snap))
	return whole, append(append(faults, wrong...), check(whole.Rows, c.o.Catalog, true)...)
}

// Scope is what an agent of the place has as its parent; nil: the global one.
func (p *Place) Scope() *tool.Scope {
	if p.space == nil {
		return nil
	}
	return p.space.scope
}

// Plugin is what an agent of the place mounts: its rows, with the Go plugins of the
// catalog. Rows that cannot be mounted are told and left out.
func (p *Place) Plugin(catalog loader.Catalog) *cordis.Plugin {
	return &cordis.Plugin{Name: "rows", Apply: func(ctx *cordis.Context, _ any) error {
		give, err := p.c.take(ctx.Context())
		if err != nil {
			return err
		}
		defer give()
		return p.c.crew(ctx, &crew{place: p, scope: tool.ScopeOf(ctx), catalog: catalog})
	}}
}

// crew mounts the rows of an agent.
func (c *Composition) crew(ctx *cordis.Context, a *crew) (err error) {
	on := ctx
	var snap *snapshot
	if s := a.place.space; s != nil {
		snap = s.snap
		if s.realm != nil {
			on = on.Overlay(s.realm)
		}
	}
	if a.tree, err = loader.New(on, loader.Options{Catalog: a.catalog, Realms: c.realms}); err != nil {
		return err
	}
	whole, _ := c.composed(c.docs, snap) // its faults were told with the project
	if err := c.boot(ctx.Context(), a.tree, divide(whole.Rows, a.catalog).agent); err != nil {
		return err
	}
	c.mu.Lock()
	c.agents = append(c.agents, a)
	c.mu.Unlock()
	_, err = ctx.Defer("rows", func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.agents = slices.DeleteFunc(c.agents, func(other *crew) bool { return other == a })
		return nil
	})
	return err
}
