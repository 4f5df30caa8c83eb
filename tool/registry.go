package tool

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/schema"
)

// ForPlugins adds tools, and reads which there are. Tools cannot be called from
// here. ctx.tools is always there, without inject.
type ForPlugins interface {
	// Register adds the tool that harness.defineTool returned, and gives a function
	// that removes it; harness.registerTool(ctx, tool) does the same. It throws
	// where the name is taken, and says by whom.
	//
	//dsh:ts register(tool: DefinedTool): () => Promise<void>
	Register()
	// Schemas gives the tools that can be called.
	//
	//dsh:ts schemas(): ToolView[]
	Schemas()
	// Get gives one tool by its name, undefined where there is none.
	//
	//dsh:ts get(name: string): ToolView | undefined
	Get()
}

// PluginView is what a plugin can know of a tool.
//
//dsh:name ToolView
type PluginView struct {
	// Name is what callers call it.
	Name string `json:"name"`
	// Description tells the model what it does.
	Description string `json:"description"`
	// Parameters is the JSON Schema of its arguments.
	Parameters any `json:"parameters"`
}

// Service is the registry as a service. Plugins written in Go inject it by its
// name; mounted plugins get a façade under the same name instead.
var Service = cordis.NewService[*Registry]("tools", cordis.PluginInterface[*Registry, ForPlugins](nil))

// Plugin returns the plugin that provides a registry.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "tools",
		Apply: func(c *cordis.Context, _ any) error {
			if _, err := Service.Provide(c, NewRegistry(c)); err != nil {
				return fmt.Errorf("provide tools: %w", err)
			}
			return nil
		},
	}
}

// A Registry holds the tools of one runtime and runs them. All methods may be
// called from any goroutine, from within tools and listeners too.
type Registry struct {
	ctx *cordis.Context

	layers   sync.Map                   // *Scope to *layer; the global layer has the nil scope
	mu       sync.Mutex                 // held to change layers and what is in them
	staging  map[*cordis.Stage][]*entry // what open stages hold back; guarded by mu
	swaps    atomic.Uint64              // odd while a commit changes several layers
	held     atomic.Int32               // how many withholdings stand
	policies atomic.Pointer[[]*policy]  // more than one only while a stage replaces one
	gone     goneTools
}

// NewRegistry returns an empty registry whose events are dispatched from c. For the
// life of c's fiber it takes part in the commits of stages.
func NewRegistry(c *cordis.Context) *Registry {
	r := &Registry{ctx: c, staging: map[*cordis.Stage][]*entry{}}
	_, _ = cordis.Committing.On(c, r.publish) // refused by a fiber that ends: nobody registers then
	return r
}

// A View is what can be known of a tool without being able to run it. It is
// immutable.
type View struct {
	Name        string
	Title       string // Name where the definition has none
	Description string
	Kind        Kind
	Parameters  *schema.Schema
	Output      *schema.Schema
	Annotations *Annotations // nil where neither definition nor kind says
	Unrouted    bool
	Sealed      bool
	// Scope is the layer it is registered in; nil is the global one.
	Scope *Scope
	// Owner is the fiber that registered it.
	Owner *cordis.Fiber
	// Mount is the temporary plugin it belongs to; nil for the composition.
	Mount *Mount
}

// Ownership names the owner for people: temporary Plugin dyn-1 (holder), or
// the composition (shell).
func (v *View) Ownership() string { return ownership(v.Mount, v.Owner) }

func ownership(m *Mount, f *cordis.Fiber) string {
	if m != nil {
		return m.Who()
	}
	return fmt.Sprintf("the composition (%s)", plain.Name(f.Name()))
}

// entry is one registered tool.
type entry struct {
	def    Definition
	view   *View
	scope  *Scope
	fiber  *cordis.Fiber
	places *mountPlaces // nil for the composition, and so is mount
	mount  *Mount
	place  int // in its mount
	gone   atomic.Bool
	stage  *cordis.Stage // that holds it back; guarded by Registry.mu; nil: none

	superseded atomic.Bool   // it is not seen any more; its own calls go on
	expected   atomic.Int32  // calls that found it and are not inside yet
	quiet      chan struct{} // made before superseded; closed when expected is 0
	silence    sync.Once     // closes it

	execLabel string // of the tracked call of the body
}

// Register adds a tool to the scope of c, as an effect of c's fiber with the
// label tools.register("name"). The error is a *DuplicateError when the name
// is taken in that scope or, for a temporary plugin, anywhere on its chain: a
// temporary plugin never shadows another tool. It has at most limits.Tools.
//
// What a fiber of an open [cordis.Stage] registers is held back until that is
// committed. It may take names that the stage takes from their owners
// ([cordis.Stage.Takes]), those of temporary plugins in the scopes below it included.
// A name that another stage holds is refused until that is over.
func (r *Registry) Register(c *cordis.Context, d *Definition) (*cordis.Handle, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	e := newEntry(c, *d)
	if e.mount != nil && (d.Unrouted || d.Sealed) {
		return nil, fmt.Errorf("tool %q cannot be unrouted or sealed: only a tool of the composition can", d.Name)
	}
	return c.Effect(fmt.Sprintf("tools.register(%q)", d.Name), func(s *cordis.Setup) error {
		seen, err := r.admit(c, e)
		if err != nil {
			return err
		}
		s.Collect(func(ctx context.Context) error {
			if r.drop(e) {
				r.changed(ctx, ChangeDisposed, e)
			}
			return nil
		})
		if seen {
			r.changed(s.Context(), ChangeRegistered, e)
		}
		return nil
	})
}

func newEntry(c *cordis.Context, d Definition) *entry {
	if d.Kind == "" {
		d.Kind = KindOther
	}
	if d.Title == "" {
		d.Title = d.Name
	}
	if d.Annotations == nil {
		d.Annotations = AnnotationsFor(d.Kind)
	}
	e := &entry{def: d, scope: ScopeOf(c), fiber: c.Fiber()}
	e.execLabel = e.label("execute")
	if p := placesOf(c); p != nil {
		e.places, e.mount, e.place = p, &p.mount, p.place(d.Name)
	}
	e.view = &View{
		Name: d.Name, Title: d.Title, Description: d.Description, Kind: d.Kind,
		Parameters: d.Parameters, Output: d.Output.Schema, Annotations: d.Annotations,
		Unrouted: d.Unrouted, Sealed: d.Sealed, Scope: e.scope, Owner: e.fiber, Mount: e.mount,
	}
	return e
}

func (r *Registry) changed(ctx context.Context, action ChangeAction, e *entry) {
	Changed.Emit(ctx, r.ctx, Change{Action: action, Name: e.def.Name, Scope: e.scope, Mount: e.mount})
}

// full says that e's plugin has as many tools as it may. The caller holds mu.
func (r *Registry) full(e *entry) error {
	if e.places != nil && len(e.places.order) >= limits.Tools {
		return fmt.Errorf("tool %q was not registered: %s has %d tools already, the limit", e.def.Name, e.view.Ownership(), limits.Tools)
	}
	return nil
}

// temporary reports whether the tool belongs to a temporary plugin.
func (e *entry) temporary() bool { return e.mount != nil && !e.mount.File }

// placed puts an entry among those of its plugin. The caller holds mu.
func (r *Registry) placed(e *entry) {
	if p := e.places; p != nil {
		i, _ := slices.BinarySearchFunc(p.order, e, compareListed)
		p.order = slices.Insert(p.order, i, e)
	}
}

// drop takes an entry out, and tells whether it could be seen.
func (r *Registry) drop(e *entry) (seen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.gone.Store(true)
	if p := e.places; p != nil {
		p.order = remove(p.order, e)
	}
	switch {
	case e.stage != nil:
		if r.staging[e.stage] = remove(r.staging[e.stage], e); len(r.staging[e.stage]) == 0 {
			delete(r.staging, e.stage)
		}
		return false
	case e.superseded.Load():
		return false
	}
	r.edit(e.scope, func(l *layer) { l.drop(e) })
	r.gone.remember(goneKey{e.scope, e.def.Name}, e)
	return true
}

// layer returns what s registered, nil for nothing.
func (r *Registry) layer(s *Scope) *layer {
	l, _ := r.layers.Load(s)
	found, _ := l.(*layer)
	return found
}

// edit changes the layer of s, which comes when it is first written to and
// goes when it is empty. The caller holds mu.
func (r *Registry) edit(s *Scope, change func(*layer)) {
	l := r.layer(s)
	if l == nil {
		l = &layer{}
		r.layers.Store(s, l)
	}
	change(l)
	if l.empty() {
		r.layers.Delete(s)
	}
}

// listed returns the tools of a layer in their order, as a snapshot.
func (r *Registry) listed(l *layer) []*entry {
	if l == nil {
		return nil
	}
	if p := l.listed.Load(); p != nil {
		return *p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := slices.Clone(l.order)
	l.listed.Store(&now)
	return now
}

// find returns the tool that name means in scope s: the nearest on the chain,
// or the global one where no restriction on the chain masks it.
func (r *Registry) find(name string, s *Scope) *entry {
	e := r.lookup(name, s)
	if e != nil && r.held.Load() > 0 && r.withholds(e, s) != "" {
		return nil
	}
	return e
}

func (r *Registry) lookup(name string, s *Scope) *entry {
	for {
		swap := r.swaps.Load()
		if e := r.nearestOf(name, s); e != nil || r.settled(swap) {
			return e
		}
	}
}

// settled tells whether no commit came between the reader's look at swaps and now;
// one that is under way is waited for.
func (r *Registry) settled(swap uint64) bool {
	if swap%2 == 0 && r.swaps.Load() == swap {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return false
}

func (r *Registry) nearestOf(name string, s *Scope) *entry {
	for l := s; l != nil; l = l.parent {
		if e := r.layer(l).get(name); e != nil {
			return e
		}
	}
	e := r.layer(nil).get(name)
	if e == nil || !r.admitted(name, s) {
		return nil
	}
	return e
}

// admitted reports whether every restriction on the chain of s admits a
// global tool.
func (r *Registry) admitted(name string, s *Scope) bool {
	for ; s != nil; s = s.parent {
		l := r.layer(s)
		if l == nil {
			continue
		}
		for _, x := range load(&l.narrowed) {
			if !x.admits(name) && !x.fiber.Hidden() {
				return false
			}
		}
	}
	return true
}

// Get returns the tool that name means in a scope.
func (r *Registry) Get(name string, s *Scope) (*View, bool) {
	e := r.find(name, s)
	if e == nil {
		return nil, false
	}
	return e.view, true
}

// List returns the tools that a scope sees: those of the composition by name
// in code unit order, then those of temporary plugins by the number of the
// mount and the order in which it first registered them.
func (r *Registry) List(s *Scope) []*View {
	for {
		swap := r.swaps.Load()
		if out := r.offered(r.list(s), s); r.settled(swap) {
			return views(out)
		}
	}
}

func (r *Registry) list(s *Scope) []*entry {
	global := r.listed(r.layer(nil))
	if s == nil {
		return global
	}
	seen := map[string]bool{}
	var entries []*entry
	for l := s; l != nil; l = l.parent {
		for _, e := range r.listed(r.layer(l)) {
			if !seen[e.def.Name] {
				seen[e.def.Name] = true
				entries = append(entries, e)
			}
		}
	}
	local := len(entries)
	for _, e := range global {
		if !seen[e.def.Name] && r.admitted(e.def.Name, s) {
			entries = append(entries, e)
		}
	}
	if local > 0 {
		slices.SortFunc(entries, compareListed)
	}
	return entries
}

// ListMount returns the tools of the temporary plugin that c belongs to, in
// the order of List, whatever their scope.
func (r *Registry) ListMount(c *cordis.Context) []*View {
	p := placesOf(c)
	if p == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return views(p.order)
}

func views(entries []*entry) []*View {
	out := make([]*View, len(entries))
	for i, e := range entries {
		out[i] = e.view
	}
	return out
}

// contain runs a function of somebody else whose failure must not reach the
// caller; a panic is logged.
func (r *Registry) contain(what string, fn func()) {
	defer func() {
		if v := recover(); v != nil {
			r.ctx.Logger("tools").Error(fmt.Sprintf("%s: %v\n%s", what, &panicError{value: v}, debug.Stack()))
		}
	}()
	fn()
}
