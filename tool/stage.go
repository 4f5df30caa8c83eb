package tool

import (
	"context"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// admit registers e, or holds it back in c's stage; seen says which. Owners of names
// that are in the way are asked for, without the lock, until none is left to ask.
func (r *Registry) admit(c *cordis.Context, e *entry) (seen bool, err error) {
	asked := map[*cordis.Fiber]bool{}
	for {
		r.mu.Lock()
		stage := cordis.StageOf(c)
		var owner *cordis.Fiber
		seen, owner, err = r.add(stage, e, asked)
		r.mu.Unlock()
		if owner == nil {
			return seen, err
		}
		asked[owner] = true
		stage.Takes(owner)
	}
}

// add puts e where its stage says, unless its name is taken. With an owner it does
// nothing: that one is to be asked first. The caller holds mu.
func (r *Registry) add(stage *cordis.Stage, e *entry, asked map[*cordis.Fiber]bool) (seen bool, owner *cordis.Fiber, err error) {
	if err := r.full(e); err != nil {
		return false, nil, err
	}
	if stage != nil && stage.Over() { // its fiber is on its way out
		e.superseded.Store(true)
		r.placed(e)
		return false, nil, nil
	}
	if err := r.reserved(stage, e); err != nil {
		return false, nil, err
	}
	for _, other := range r.namesakes(stage, e) {
		switch {
		case stage != nil && stage.Replaces(other.fiber):
		case stage != nil && !asked[other.fiber]:
			return false, other.fiber, nil
		case e.scope.Within(other.scope): // else a temporary plugin below keeps its own
			return false, nil, duplicate(e, other)
		}
	}
	r.placed(e)
	if stage != nil {
		e.stage = stage
		r.staging[stage] = append(slices.Clip(r.staging[stage]), e)
		return false, nil, nil
	}
	r.edit(e.scope, func(l *layer) { l.add(e) })
	r.gone.forget(goneKey{e.scope, e.def.Name})
	return true, nil, nil
}

func duplicate(e, other *entry) error {
	return &DuplicateError{Name: e.def.Name, Scope: other.scope, Owner: other.view.Ownership(), Mount: other.mount}
}

// reserved refuses a name that an open stage holds, but for what that replaces. The
// caller holds mu.
func (r *Registry) reserved(stage *cordis.Stage, e *entry) error {
	for by, held := range r.staging {
		if by.Over() || by != stage && by.Replaces(e.fiber) {
			continue
		}
		for _, other := range held {
			switch {
			case other.def.Name != e.def.Name || other.scope != e.scope && !(e.temporary() && e.scope.Within(other.scope)):
			case by == stage:
				return duplicate(e, other)
			default:
				return fmt.Errorf("tool %q was not registered: %s is just being put in its place by another change; try again when that has ended",
					e.def.Name, other.view.Ownership())
			}
		}
	}
	return nil
}

// namesakes returns what stands under e's name where e has to take it: in its
// scope, for a temporary plugin on its chain, and for what is staged else what
// temporary plugins have in the scopes below. The caller holds mu.
func (r *Registry) namesakes(stage *cordis.Stage, e *entry) []*entry {
	var out []*entry
	for s := e.scope; ; s = s.parent {
		if other := r.layer(s).get(e.def.Name); other != nil {
			out = append(out, other)
		}
		if s == nil || !e.temporary() {
			break
		}
	}
	if e.temporary() || stage == nil {
		return out
	}
	r.layers.Range(func(k, _ any) bool {
		if s, _ := k.(*Scope); s != e.scope && s.Within(e.scope) {
			if other := r.layer(s).get(e.def.Name); other != nil && other.temporary() {
				out = append(out, other)
			}
		}
		return true
	})
	return out
}

// publish shows what a stage held back and takes out what its replaced fibers
// registered, in one section, when the stage is committed.
func (r *Registry) publish(ctx context.Context, stage *cordis.Stage) {
	r.mu.Lock()
	came := r.staging[stage]
	delete(r.staging, stage)
	var old []*entry
	r.layers.Range(func(k, _ any) bool {
		s, _ := k.(*Scope)
		for _, e := range r.layer(s).order {
			if stage.Replaces(e.fiber) {
				old = append(old, e)
			}
		}
		return true
	})
	r.swaps.Add(1)
	for _, e := range came {
		e.stage = nil
		if had := r.layer(e.scope).get(e.def.Name); had != nil {
			r.supersede(had)
			r.layer(e.scope).swap(had, e)
		} else {
			r.edit(e.scope, func(l *layer) { l.add(e) })
		}
		r.gone.forget(goneKey{e.scope, e.def.Name})
	}
	var went []*entry // and no other has the place
	for _, e := range old {
		if !e.superseded.Load() {
			r.supersede(e)
			r.edit(e.scope, func(l *layer) { l.drop(e) })
			r.gone.remember(goneKey{e.scope, e.def.Name}, e)
			went = append(went, e)
		}
	}
	r.swaps.Add(1)
	r.mu.Unlock()
	if old = slices.DeleteFunc(old, (*entry).silent); len(old) > 0 {
		stage.Linger(func(ctx context.Context) { quiet(ctx, old) })
	}
	for _, e := range came {
		r.changed(ctx, ChangeRegistered, e)
	}
	for _, e := range went {
		if _, again := r.Get(e.def.Name, e.scope); !again {
			r.changed(ctx, ChangeDisposed, e)
		}
	}
}

// supersede marks an entry as replaced. The caller holds mu.
func (r *Registry) supersede(e *entry) {
	e.quiet = make(chan struct{})
	e.superseded.Store(true)
	if e.expected.Load() == 0 {
		e.hush()
	}
}

// silent tells whether no call is expected at an entry that is superseded.
func (e *entry) silent() bool {
	select {
	case <-e.quiet:
		return true
	default:
		return false
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
	fiber  *cordis.Fiber
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
	w := &withholding{reason: plain.Line(reason, limits.ErrorText), fiber: c.Fiber()}
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
				if w.covers(e) && !w.fiber.Hidden() {
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
