package composition

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
)

// ErrRefused says that a reload changed nothing, because of what it says.
var ErrRefused = errors.New("not reloaded, what was there goes on")

// Reload reads the documents and the plugin files anew, and takes over what changed:
// all of it, or nothing. It tells what came of it in any case.
func (c *Composition) Reload(ctx context.Context) error { return c.reload(ctx, true) }

// changed follows an edit.
func (c *Composition) changed(ctx context.Context, paths []string) {
	if paths == nil || slices.ContainsFunc(paths, c.matters) {
		_ = c.reload(ctx, false) // it was told
	}
}

// matters says whether a path may be of the composition: there is more in dsh's own
// folder.
func (c *Composition) matters(path string) bool {
	return filepath.Dir(path) != filepath.Clean(c.o.Home) || filepath.Base(path) == documentName || filepath.Base(path) == pluginsName
}

// reload is Reload; asked says that a person wants to hear of it even if nothing changed.
func (c *Composition) reload(ctx context.Context, asked bool) error {
	give, err := c.take(ctx)
	if err != nil {
		return err
	}
	defer give()
	defer c.follow()
	done, err := c.transact(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		c.refuse(err)
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	c.settled()
	switch {
	case len(done) > 0:
		c.tell("reloaded: " + strings.Join(done, ", "))
	case asked:
		c.tell("reloaded: nothing has changed")
	}
	return nil
}

// plan is what a transaction is about to mount.
type plan struct {
	docs    documents
	parts   []part
	snaps   map[*space]*snapshot
	notices []string
}

// part is what one tree is about to have.
type part struct {
	tree *loader.Tree
	rows []document.Row
}

// plan reads everything. It changes nothing that is mounted.
func (c *Composition) plan(ctx context.Context) (*plan, error) {
	p := &plan{snaps: map[*space]*snapshot{}}
	var err error
	if p.docs, err = c.o.Sources.read(); err != nil {
		return nil, err
	}
	whole, faults := p.docs.compose(nil, c.composing(nil))
	faults = append(append(p.docs.faults, faults...), check(whole.Rows, c.o.Catalog, false)...)
	if len(faults) > 0 {
		return nil, faults
	}
	p.docs.noteFiles(whole)
	alone := divide(whole.Rows, c.o.Catalog)
	p.parts = append(p.parts, part{c.host, alone.host})
	if c.own == nil && len(alone.own) > 0 {
		if err := c.openOwn(ctx, nil); err != nil {
			return nil, err
		}
	}
	if c.own != nil {
		p.parts = append(p.parts, part{c.own.tree, alone.own})
	}
	wholes := map[*space]*document.Composition{nil: whole}
	for _, s := range c.spaces {
		snap, err := c.warden.read(ctx, s.root, s.snap, false)
		if err != nil {
			return nil, err
		}
		if snap.notice != "" && (s.snap == nil || snap.notice != s.snap.notice) {
			p.notices = append(p.notices, snap.notice)
		}
		together, faults := c.composed(p.docs, snap)
		if len(faults) > 0 {
			return nil, faults
		}
		p.snaps[s], wholes[s] = snap, together
		p.parts = append(p.parts, part{s.tree, divide(together.Rows, c.o.Catalog).project})
	}
	c.mu.Lock()
	agents := slices.Clone(c.agents)
	c.mu.Unlock()
	for _, a := range agents {
		if own := a.place.space; wholes[own] != nil {
			p.parts = append(p.parts, part{a.tree, divide(wholes[own].Rows, a.catalog).agent})
		}
	}
	return p, nil
}

// transact makes one transaction over all trees, and says what changed.
func (c *Composition) transact(ctx context.Context) (done []string, err error) {
	p, err := c.plan(ctx)
	if err != nil {
		return nil, err
	}
	for _, text := range p.notices {
		c.tell(text)
	}
	for s, snap := range p.snaps {
		s.prepare(snap)
	}
	var prepared []*loader.Change
	defer func() {
		if err == nil {
			return
		}
		for _, change := range slices.Backward(prepared) {
			change.Abort(context.WithoutCancel(ctx))
		}
		for s := range p.snaps {
			s.prepare(s.snap)
		}
	}()
	for _, part := range p.parts {
		var change *loader.Change
		if len(prepared) == 0 {
			change, err = part.tree.Prepare(ctx, part.rows)
		} else {
			change, err = prepared[0].Join(ctx, part.tree, part.rows)
		}
		switch {
		case errors.Is(err, loader.ErrEnded) && len(prepared) > 0: // an agent that has ended meanwhile
		case err != nil:
			return nil, err
		default:
			prepared = append(prepared, change)
		}
	}
	for _, change := range prepared {
		report, err := change.Commit(context.WithoutCancel(ctx))
		if err != nil && !errors.Is(err, loader.ErrEnded) {
			return nil, err
		}
		done = append(done, changes(report)...)
	}
	c.count(p.docs)
	for s, snap := range p.snaps {
		s.snap = snap
		c.note(s, snap.notice)
	}
	return done, nil
}

// refuse tells of a reload that changed nothing.
func (c *Composition) refuse(err error) {
	text := ErrRefused.Error() + ": " + err.Error()
	c.mu.Lock()
	c.notices = []string{text}
	c.mu.Unlock()
	c.tell(text)
}

// settled forgets what was refused before.
func (c *Composition) settled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notices = nil
}

// follow watches what counts now. The caller has the turn, or nobody else has it.
func (c *Composition) follow() {
	if c.watcher == nil {
		return
	}
	folders := slices.Clone(c.docs.folders)
	deep := slices.Clone(c.docs.deep)
	for root := range c.spaces {
		deep = append(deep, filepath.Join(root, folderName))
	}
	if c.warden.store != nil && len(c.spaces) > 0 {
		folders = append(folders, filepath.Join(c.o.Home, "trust", "projects"))
	}
	if err := c.watcher.Watch(folders, deep); err != nil {
		c.tell(fmt.Sprintf("not all edits are followed, kill -HUP is: %v", err))
	}
}

// changes are what a report says in one line.
func changes(r loader.Report) (all []string) {
	for _, part := range []struct {
		ids  []string
		what string
	}{{r.Mounted, "+"}, {r.Remounted, ""}, {r.Removed, "-"}} {
		for _, id := range part.ids {
			all = append(all, part.what+plain.Name(id))
		}
	}
	for _, id := range r.Later {
		all = append(all, plain.Name(id)+" (counts from the next start)")
	}
	return all
}

// Wrote trusts what an agent wrote and a person allowed, and takes it over before the
// one who wrote goes on. It is a permission.Config.Trusted.
func (c *Composition) Wrote(ctx context.Context, path string, before *string, content string) {
	store := c.warden.store
	if store == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limits.WroteReload)
	defer stop()
	trusted, err := store.Wrote(ctx, path, before, content)
	if err != nil {
		c.tell(fmt.Sprintf("what was written to %s is not trusted: %v", plain.Visible(path), err))
	}
	if trusted {
		_ = c.reload(ctx, false) // it was told
	}
}
