package loader

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/tool"
)

// guard keeps tools away while a row's plugin is not active. It outlives the fibers
// of the row.
type guard struct {
	t     *Tree
	id    string
	names []string // nil: all

	mu          sync.Mutex // guards what follows
	busy, again bool       // see look
	closed      bool
	fiber       *cordis.Fiber // that counts
	held        *cordis.Handle
	registry    *tool.Registry // that held is of
}

func guarded(g document.Guards) bool { return g.All || len(g.Names) > 0 }

// guardOf gives the guard of a row, the one that it had if that guards the same.
func (t *Tree) guardOf(w wanted, before *entry) *guard {
	if !guarded(w.Guards) {
		return nil
	}
	names := w.Guards.Names
	if w.Guards.All {
		names = nil
	}
	if before == nil {
		return &guard{t: t, id: w.ID, names: names}
	}
	if had := before.guard; had != nil && (had.names == nil) == (names == nil) && slices.Equal(had.names, names) {
		return had
	}
	return &guard{t: t, id: w.ID, names: names}
}

// watch has f count from now on.
func (g *guard) watch(ctx context.Context, f *cordis.Fiber) {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.fiber = f
	g.mu.Unlock()
	g.look(ctx)
}

// look withholds or gives back, as the state of the fiber is now. One caller does it
// at a time; what others see meanwhile is looked at again by that one.
func (g *guard) look(ctx context.Context) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.again = true; g.busy {
		return
	}
	g.busy = true
	for g.again {
		g.again = false
		give := g.closed || g.fiber != nil && g.fiber.State() == cordis.Active
		held, had := g.held, g.registry
		g.mu.Unlock()
		now, _ := tool.Service.Get(g.t.c)
		if held != nil && (give || now != had) {
			_ = held.Dispose(ctx) // it is only a change of a list
			held = nil
		}
		if held == nil && !give {
			held = g.withhold(now)
		}
		g.mu.Lock()
		g.held, g.registry = held, now
	}
	g.busy = false
}

// withhold keeps the tools away; nil where there is no registry, nor any tool.
func (g *guard) withhold(registry *tool.Registry) *cordis.Handle {
	if registry == nil {
		return nil
	}
	h, err := registry.Withhold(g.t.c, g.names, fmt.Sprintf(
		"it is withheld while the row %s, which guards it, is not active; cordis_inspect what:\"plugins\" says why", g.id))
	if err != nil {
		return nil // the tree ends, and its tools with it
	}
	return h
}

// close gives back what is withheld; the guard is over.
func (g *guard) close(ctx context.Context) {
	if g == nil {
		return
	}
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.look(ctx)
}

// withholding says whether tools are absent because of it.
func (g *guard) withholding() bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held != nil
}

// statusChanged follows the rows that guard, before the transition goes on.
func (t *Tree) statusChanged(ctx context.Context, ch cordis.StatusChange) {
	t.mu.Lock()
	guarding, e := t.guarding, t.fibers[ch.Fiber]
	t.mu.Unlock()
	switch {
	case !guarding:
	case e != nil && e.guard != nil:
		e.guard.look(ctx)
	case ch.New == cordis.Active && slices.Contains(ch.Fiber.Provides(), tool.Service.Name()):
		t.lookAgain(ctx) // there is a registry to withhold from
	}
}

// lookAgain has all guards look.
func (t *Tree) lookAgain(ctx context.Context) {
	t.mu.Lock()
	var all []*guard
	for _, e := range t.entries {
		if e.guard != nil {
			all = append(all, e.guard)
		}
	}
	t.mu.Unlock()
	for _, g := range all {
		g.look(ctx)
	}
}
