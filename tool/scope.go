package tool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// A Scope is a layer of tools above the global one: a project, a preset, an
// agent. Scopes form chains of any length; a nil *Scope is the global layer,
// where every chain ends. A Scope is immutable and is compared by identity.
type Scope struct {
	name   string
	parent *Scope
}

// NewScope returns a new scope above parent; a nil parent is the global layer.
func NewScope(name string, parent *Scope) *Scope { return &Scope{name: name, parent: parent} }

// Name returns the scope's display name; the global layer's is "global".
func (s *Scope) Name() string {
	if s == nil {
		return "global"
	}
	return s.name
}

// Parent returns the next scope towards the global layer, which is nil.
func (s *Scope) Parent() *Scope {
	if s == nil {
		return nil
	}
	return s.parent
}

// Within reports whether outer is on the chain of s: s itself, one of its
// ancestors, or the global layer.
func (s *Scope) Within(outer *Scope) bool {
	for ; s != outer; s = s.parent {
		if s == nil {
			return false
		}
	}
	return true
}

// A Mount identifies the plugin written in JavaScript that a context belongs to: a
// temporary plugin or a plugin file.
type Mount struct {
	// Number orders mounts; it never changes and is never used again. A plugin file
	// has none.
	Number int
	// ID is what the model calls the mount: dyn-1; of a plugin file its name.
	ID string
	// File says that it is a plugin file: a part of the composition, listed with it
	// by name.
	File bool
	// Plugin is the plugin's name.
	Plugin string
	// Source is the SHA-256 of the plugin's source, in hexadecimal: what was approved
	// of one mount holds for another with the same source.
	Source string
}

// Who names the plugin for people: temporary Plugin dyn-1 (holder), or plugin file
// ./holder.js (holder).
func (m *Mount) Who() string {
	what := "temporary Plugin"
	if m.File {
		what = "plugin file"
	}
	return fmt.Sprintf("%s %s (%s)", what, plain.Name(m.ID), plain.Name(m.Plugin))
}

type (
	scopeKey struct{}
	mountKey struct{}
)

// WithScope returns a context whose registrations, guards, restrictions and
// listeners belong to s. It reaches contexts and plugins below it.
func WithScope(c *cordis.Context, s *Scope) *cordis.Context { return c.WithValue(scopeKey{}, s) }

// ScopeOf returns the scope that c registers into; nil is the global layer.
func ScopeOf(c *cordis.Context) *Scope {
	s, _ := c.Value(scopeKey{}).(*Scope)
	return s
}

// WithMount marks c and everything below it as belonging to a temporary
// plugin. Call it once in the life of a mount, above the mount's fiber: the
// places of the mount's tools in the list live with the returned context.
func WithMount(c *cordis.Context, m Mount) *cordis.Context {
	return c.WithValue(mountKey{}, &mountPlaces{mount: m})
}

// MountOf returns the temporary plugin that c belongs to.
func MountOf(c *cordis.Context) (Mount, bool) {
	p := placesOf(c)
	if p == nil {
		return Mount{}, false
	}
	return p.mount, true
}

// An Actor is who acts when a service or a listener is called. Only the program
// itself says it: the pipeline for what a tool does, and the bridge of mounts for
// what a temporary plugin asks of a service. Nothing that a model or a plugin
// writes is read for it.
type Actor struct {
	// Scope is where the act belongs; nil is the global layer.
	Scope *Scope
	// Mount is the temporary plugin that acts; nil for the composition.
	Mount *Mount
	// Exec is the call within which the act happens; nil for none, such as a timer's.
	Exec *Exec
}

type actorKey struct{}

// WithActor returns a context in which a acts.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns who acts in ctx; the zero Actor is the program itself, outside
// of every call and scope.
func ActorOf(ctx context.Context) Actor {
	a, _ := ctx.Value(actorKey{}).(Actor)
	return a
}

// within returns a context in which the tool e acts: its mount, if it has one, in
// the scope s. The call stays who it was.
func (e *entry) within(ctx context.Context, s *Scope) context.Context {
	return WithActor(ctx, Actor{Scope: s, Mount: e.view.Mount, Exec: ActorOf(ctx).Exec})
}

func placesOf(c *cordis.Context) *mountPlaces {
	p, _ := c.Value(mountKey{}).(*mountPlaces)
	return p
}

// mountPlaces remembers the order in which a mount first registered its tools,
// so that parking and restarts do not move them.
type mountPlaces struct {
	mount Mount

	mu     sync.Mutex
	places map[string]int
	order  []*entry // what stands now, by place; guarded by Registry.mu
}

// rememberedPlaces bounds the names of one mount; a mount that invents more
// names than this over its life gets later ones at the end, in name order.
const rememberedPlaces = 10_000

func (p *mountPlaces) place(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.places[name]
	if ok {
		return n
	}
	n = len(p.places)
	if n >= rememberedPlaces {
		return n
	}
	if p.places == nil {
		p.places = map[string]int{}
	}
	p.places[name] = n
	return n
}

// layer holds what one scope registered. Readers take tools, guards, narrowed and
// withheld as they are and list through Registry.listed; writers hold Registry.mu.
type layer struct {
	tools    sync.Map // name to *entry
	guards   atomic.Pointer[[]*guard]
	narrowed atomic.Pointer[[]*restriction]
	withheld atomic.Pointer[[]*withholding]

	order  []*entry                 // in the order of List; guarded by Registry.mu
	listed atomic.Pointer[[]*entry] // a copy of order; nil after a change
}

func (l *layer) get(name string) *entry {
	if l == nil {
		return nil
	}
	e, _ := l.tools.Load(name)
	found, _ := e.(*entry)
	return found
}

func (l *layer) add(e *entry) {
	l.tools.Store(e.def.Name, e)
	i, _ := slices.BinarySearchFunc(l.order, e, compareListed)
	l.order = slices.Insert(l.order, i, e)
	l.listed.Store(nil)
}

func (l *layer) drop(e *entry) {
	l.tools.Delete(e.def.Name)
	if i, found := slices.BinarySearchFunc(l.order, e, compareListed); found {
		l.order = slices.Delete(l.order, i, i+1)
	}
	l.listed.Store(nil)
}

// swap puts e into the place of old, so that no reader misses the name.
func (l *layer) swap(old, e *entry) {
	l.tools.Store(e.def.Name, e)
	if i, found := slices.BinarySearchFunc(l.order, old, compareListed); found {
		l.order = slices.Delete(l.order, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(l.order, e, compareListed)
	l.order = slices.Insert(l.order, i, e)
	l.listed.Store(nil)
}

func (l *layer) empty() bool {
	return len(l.order) == 0 && len(load(&l.guards)) == 0 && len(load(&l.narrowed)) == 0 && len(load(&l.withheld)) == 0
}

// load returns the slice that p points at; nil is none.
func load[T any](p *atomic.Pointer[[]T]) []T {
	if s := p.Load(); s != nil {
		return *s
	}
	return nil
}

// replace publishes the next slice; the one before is left as it is.
func replace[T any](p *atomic.Pointer[[]T], next []T) { p.Store(&next) }

// compareListed orders the composition by name, then temporary plugins by number
// and by the place of the tool in its plugin.
func compareListed(a, b *entry) int {
	switch ta, tb := a.temporary(), b.temporary(); {
	case !ta && !tb:
		return cmp.Compare(a.def.Name, b.def.Name)
	case !ta:
		return -1
	case !tb:
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.mount.Number, b.mount.Number),
		cmp.Compare(a.place, b.place),
		cmp.Compare(a.def.Name, b.def.Name),
	)
}

// remove returns s without v in an array of its own.
func remove[T comparable](s []T, v T) []T {
	i := slices.Index(s, v)
	if i < 0 {
		return s
	}
	return slices.Concat(s[:i], s[i+1:])
}

// restriction narrows which global tools a chain sees.
type restriction struct {
	allow, deny map[string]bool // allow is nil where everything is admitted
	fiber       *cordis.Fiber
}

func (x *restriction) admits(name string) bool {
	return (x.allow == nil || x.allow[name]) && !x.deny[name]
}

// goneKey names a tool that was.
type goneKey struct {
	scope *Scope
	name  string
}

// goneTools remembers the last limits.RememberedGone tools that went.
type goneTools struct {
	mu    sync.Mutex
	notes map[goneKey]func() string
	order []goneKey // oldest first
}

func (g *goneTools) remember(k goneKey, e *entry) { g.note(k, goneNote(e)) }

func (g *goneTools) note(k goneKey, note func() string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.notes == nil {
		g.notes = map[goneKey]func() string{}
	}
	if _, ok := g.notes[k]; ok {
		g.order = remove(g.order, k)
	}
	g.notes[k] = note
	g.order = append(g.order, k)
	if len(g.order) > limits.RememberedGone {
		delete(g.notes, g.order[0])
		g.order = g.order[1:]
	}
}

func (g *goneTools) forget(k goneKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.notes[k]; ok {
		delete(g.notes, k)
		g.order = remove(g.order, k)
	}
}

// goneNote says with whom a tool went and what has become of its owner by the
// time of asking; it does not keep the owner in memory.
func goneNote(e *entry) func() string {
	owner := fmt.Sprintf("plugin %s of the composition", plain.Name(e.fiber.Name()))
	switch {
	case e.temporary():
		owner = "temporary Plugin " + plain.Name(e.mount.ID)
	case e.mount != nil:
		owner = "plugin file " + plain.Name(e.mount.ID)
	}
	fiber := weak.Make(e.fiber)
	return func() string { return fmt.Sprintf("it went with %s (%s)", owner, fate(fiber.Value())) }
}

func fate(f *cordis.Fiber) string {
	if f == nil {
		return "unmounted"
	}
	switch state := f.State(); state {
	case cordis.Disposed:
		return "unmounted"
	case cordis.Unloading:
		return "which is unloading"
	case cordis.Loading:
		return "which is starting again; call it when that has ended"
	case cordis.Failed:
		return "which failed: " + plain.Line(errorText(f.Err()), limits.Preview)
	case cordis.Pending:
		var names []string
		for _, m := range f.Waiting().Missing {
			names = append(names, plain.Name(m.Name))
		}
		return "parked, waiting for " + cutLine(strings.Join(names, ", "))
	default:
		return "which took it back"
	}
}

// lookup says what became of a name that a scope could once see.
func (g *goneTools) lookup(name string, s *Scope) string {
	g.mu.Lock()
	var note func() string
	for {
		if note = g.notes[goneKey{s, name}]; note != nil || s == nil {
			break
		}
		s = s.parent
	}
	g.mu.Unlock()
	if note == nil {
		return ""
	}
	return note()
}

// NoteGone sets what a call of a tool that has gone is told after unknown tool
// "x" — ; for example: it went with temporary Plugin dyn-1 (unmounted). It
// replaces the registry's own note, which names the owner and the owner's
// state, until the name is registered in that scope again.
func (r *Registry) NoteGone(name string, s *Scope, note string) {
	r.mu.Lock() // so that a registration cannot come in between
	defer r.mu.Unlock()
	if r.layer(s).get(name) != nil {
		return
	}
	note = plain.Line(note, limits.SourceLine)
	r.gone.note(goneKey{s, name}, func() string { return note })
}
