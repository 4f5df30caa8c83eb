package tool

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// staged is what the fibers of one open stage have registered, before it is seen.
// Registry.mu guards it.
type staged struct {
	entries   []*entry
	takes     []*entry // what they take the names of
	published bool
}

func (g *staged) forget(e *entry) { g.entries = remove(g.entries, e) }

// admit registers e, or holds it back in the stage; seen says which.
func (r *Registry) admit(stage *cordis.Stage, e *entry) (seen bool, err error) {
	if stage == nil {
		if by := r.claimed(e); by != nil && !by.Takes(e.fiber) {
			return false, fmt.Errorf("tool %q was not registered: it is just being replaced; try again", e.def.Name)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		return true, r.add(e)
	}
	if by := r.claimed(e); by != nil && by != stage {
		return false, fmt.Errorf("tool %q was not registered: it is just being replaced; try again", e.def.Name)
	}
	takes := map[*entry]bool{}
	for _, other := range r.namesakes(e) {
		takes[other] = stage.Takes(other.fiber) // asks, without the lock
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	g := r.staging[stage]
	if g == nil {
		g = &staged{}
		if r.staging == nil {
			r.staging = map[*cordis.Stage]*staged{}
		}
		r.staging[stage] = g
		stage.OnCommit(func() { r.publish(stage, g) })
		stage.OnAbort(func() { r.forget(stage) })
	}
	if g.published {
		return true, r.add(e)
	}
	return false, r.hold(g, e, takes)
}

// hold keeps e until its stage is committed. The caller holds mu.
func (r *Registry) hold(g *staged, e *entry, takes map[*entry]bool) error {
	if err := r.full(e); err != nil {
		return err
	}
	for _, other := range g.entries {
		if other.def.Name == e.def.Name && other.scope == e.scope {
			return &DuplicateError{Name: e.def.Name, Scope: e.scope, Owner: other.view.Ownership(), Mount: other.mount}
		}
	}
	if other, s := r.conflict(e, func(o *entry) bool { return takes[o] }); other != nil {
		return &DuplicateError{Name: e.def.Name, Scope: s, Owner: other.view.Ownership(), Mount: other.mount}
	}
	for other, taken := range takes {
		if taken {
			g.takes = append(g.takes, other)
		}
	}
	e.stage = g
	g.entries = append(g.entries, e)
	r.placed(e)
	return nil
}

// claimed returns the open stage that holds a tool of e's name for e's scope.
func (r *Registry) claimed(e *entry) *cordis.Stage {
	r.mu.Lock()
	defer r.mu.Unlock()
	for stage, g := range r.staging {
		if g.published {
			continue
		}
		for _, other := range g.entries {
			if other.def.Name == e.def.Name && other.scope == e.scope {
				return stage
			}
		}
	}
	return nil
}

// namesakes returns what stands under e's name where e has to take it: in its
// scope, for a temporary plugin on its chain, and else what temporary plugins have
// in the scopes below.
func (r *Registry) namesakes(e *entry) []*entry {
	var out []*entry
	for s := e.scope; ; s = s.parent {
		if other := r.layer(s).get(e.def.Name); other != nil {
			out = append(out, other)
		}
		if s == nil || !e.temporary() {
			break
		}
	}
	if e.temporary() {
		return out
	}
	r.layers.Range(func(k, _ any) bool {
		s, _ := k.(*Scope)
		if s == e.scope || !s.Within(e.scope) {
			return true
		}
		if other := r.layer(s).get(e.def.Name); other != nil && other.temporary() {
			out = append(out, other)
		}
		return true
	})
	return out
}

// publish puts what a stage holds into the places of what it takes, in one section,
// and takes the rest of what the replaced fibers registered out.
func (r *Registry) publish(stage *cordis.Stage, g *staged) {
	var rest []*entry
	r.layers.Range(func(k, _ any) bool {
		s, _ := k.(*Scope)
		for _, e := range r.listed(r.layer(s)) {
			if stage.Takes(e.fiber) {
				rest = append(rest, e)
			}
		}
		return true
	})
	r.mu.Lock()
	delete(r.staging, stage)
	g.published = true
	came := slices.Clone(g.entries)
	for _, e := range came {
		e.stage = nil
		if old := r.layer(e.scope).get(e.def.Name); old != nil {
			r.supersede(old)
			r.layer(e.scope).swap(old, e)
		} else {
			r.edit(e.scope, func(l *layer) { l.add(e) })
		}
		r.gone.forget(goneKey{e.scope, e.def.Name})
	}
	var went, old []*entry
	for _, e := range slices.Concat(g.takes, rest) {
		switch {
		case e.superseded.Load():
			old = append(old, e)
		case !e.gone.Load() && r.layer(e.scope).get(e.def.Name) == e: // in another scope, or not registered again
			r.supersede(e)
			r.edit(e.scope, func(l *layer) { l.drop(e) })
			r.gone.remember(goneKey{e.scope, e.def.Name}, e)
			went, old = append(went, e), append(old, e)
		}
	}
	r.mu.Unlock()
	if len(old) > 0 {
		stage.Linger(func(ctx context.Context) { quiet(ctx, old) })
	}
	for _, e := range came {
		r.changed(context.Background(), ChangeRegistered, e)
	}
	for _, e := range went {
		if _, again := r.Get(e.def.Name, e.scope); !again {
			r.changed(context.Background(), ChangeDisposed, e)
		}
	}
}

// forget drops what an aborted stage held; its entries go with their fibers.
func (r *Registry) forget(stage *cordis.Stage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.staging, stage)
}

// supersede marks an entry as replaced. The caller holds mu.
func (r *Registry) supersede(e *entry) {
	e.quiet = make(chan struct{})
	e.superseded.Store(true)
	if e.expected.Load() == 0 {
		e.hush()
	}
}

func (e *entry) hush() { e.silence.Do(func() { close(e.quiet) }) }

// quiet waits until the calls that found the entries are inside of their owners.
func quiet(ctx context.Context, entries []*entry) {
	for _, e := range entries {
		select {
		case <-e.quiet:
		case <-ctx.Done():
			return
		}
	}
}

// expect is find for a call: what it finds stays until the call is inside of it.
func (r *Registry) expect(name string, s *Scope) *entry {
	for {
		e := r.find(name, s)
		if e == nil {
			return nil
		}
		e.expected.Add(1)
		if !e.superseded.Load() {
			return e
		}
		e.passed() // another is there by now
	}
}

// passed ends an expectation.
func (e *entry) passed() {
	if e.expected.Add(-1) == 0 && e.superseded.Load() {
		e.hush()
	}
}

// arrive ends what is expected of the call, once.
func (e *Exec) arrive() {
	if e.found != nil && !e.arrived.Swap(true) {
		e.found.passed()
	}
}

// withholding keeps tools from a scope and those below it.
type withholding struct {
	names  map[string]bool // nil: all
	reason string
}

func (w *withholding) covers(e *entry) bool {
	if w.names == nil {
		return !e.def.Unrouted
	}
	return w.names[e.def.Name]
}

// Withhold makes tools absent in c's scope and the scopes below it, as an effect of
// c's fiber with the label tools.withhold(): they are not listed, and a call says
// reason. They come back with the effect's end. Nil names are all tools but the
// Unrouted ones, also those that are registered later; a name needs no tool.
func (r *Registry) Withhold(c *cordis.Context, names []string, reason string) (*cordis.Handle, error) {
	s := ScopeOf(c)
	w := &withholding{reason: plain.Line(reason, limits.ErrorText)}
	if names != nil {
		w.names = set(names)
	}
	return c.Effect("tools.withhold()", func(setup *cordis.Setup) error {
		r.turn(setup.Context(), ChangeDisposed, s, w, func() {
			r.change(s, func(l *layer) { replace(&l.withheld, append(slices.Clip(load(&l.withheld)), w)) })
			r.held.Add(1)
		})
		setup.Collect(func(ctx context.Context) error {
			r.turn(ctx, ChangeRegistered, s, w, func() {
				r.held.Add(-1)
				r.change(s, func(l *layer) { replace(&l.withheld, remove(load(&l.withheld), w)) })
			})
			return nil
		})
		return nil
	})
}

// turn makes a change of what is withheld, and tells of each tool that it moved.
func (r *Registry) turn(ctx context.Context, action ChangeAction, s *Scope, w *withholding, change func()) {
	change()
	r.layers.Range(func(k, _ any) bool {
		below, _ := k.(*Scope)
		if below.Within(s) || s.Within(below) {
			for _, e := range r.listed(r.layer(below)) {
				if w.covers(e) {
					r.changed(ctx, action, e)
				}
			}
		}
		return true
	})
}

// withholds returns why e is withheld in a scope, or "".
func (r *Registry) withholds(e *entry, s *Scope) string {
	for ; ; s = s.parent {
		if l := r.layer(s); l != nil {
			for _, w := range load(&l.withheld) {
				if w.covers(e) {
					return w.reason
				}
			}
		}
		if s == nil {
			return ""
		}
	}
}

// offered leaves out what is withheld in a scope.
func (r *Registry) offered(entries []*entry, s *Scope) []*entry {
	if r.held.Load() == 0 {
		return entries
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *entry) bool { return r.withholds(e, s) != "" })
}

// absent says why a tool that is there is withheld in a scope, or "".
func (r *Registry) absent(name string, s *Scope) string {
	if r.held.Load() == 0 {
		return ""
	}
	if e := r.lookup(name, s); e != nil {
		return r.withholds(e, s)
	}
	return ""
}

// A Withheld is a tool that is registered and withheld.
type Withheld struct{ Name, Reason string }

// Withheld returns the tools that a scope does not see for a withholding, by name.
func (r *Registry) Withheld(s *Scope) []Withheld {
	if r.held.Load() == 0 {
		return nil
	}
	var out []Withheld
	seen := map[string]bool{}
	for l := s; ; l = l.parent {
		for _, e := range r.listed(r.layer(l)) {
			if reason := r.withholds(e, s); reason != "" && !seen[e.def.Name] {
				seen[e.def.Name] = true
				out = append(out, Withheld{e.def.Name, reason})
			}
		}
		if l == nil {
			break
		}
	}
	slices.SortFunc(out, func(a, b Withheld) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return out
}
