package cordis

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

// DefaultDrainLimit bounds how long an unloading fiber waits for a running call
// that has no nearer deadline. See WithDrainLimit.
const DefaultDrainLimit = 30 * time.Second

// Runtime is one world: a tree of fibers with their services and listeners.
// Worlds know nothing of each other. All methods are safe for concurrent use.
type Runtime struct {
	drainLimit time.Duration
	stepper    *Stepper
	root       *Fiber
	log        *hub
	store      sync.Map // key -> *impl
	lists      sync.Map // *event -> *list

	mu       sync.Mutex
	lastID   uint64
	lastImpl uint64
	plugins  map[*Plugin]*record
	subs     map[key]map[*Fiber]struct{} // who injects what
	reserved map[key]*Stage              // what open stages hold
	waits    map[*frame][]node           // what blocked chains wait for
}

// record is a plugin with its living fibers, in the order of mounting.
type record struct{ first, last *Fiber }

// Option configures a runtime.
type Option func(*Runtime)

// WithDrainLimit bounds the draining of calls that have no nearer deadline.
// Values below 1 ns stand for the default.
func WithDrainLimit(d time.Duration) Option {
	return func(r *Runtime) {
		if d > 0 {
			r.drainLimit = d
		}
	}
}

// WithStepper leaves every step of every transition to s, for tests.
func WithStepper(s *Stepper) Option { return func(r *Runtime) { r.stepper = s } }

// New makes a runtime and gives its root context. The root fiber is ACTIVE from
// the start, has id 0 and the name "root"; disposing it undoes all its effects
// and leaves it ACTIVE and usable.
func New(opts ...Option) *Context {
	r := &Runtime{
		drainLimit: DefaultDrainLimit,
		log:        newHub(),
		plugins:    map[*Plugin]*record{},
		subs:       map[key]map[*Fiber]struct{}{},
		reserved:   map[key]*Stage{},
		waits:      map[*frame][]node{},
	}
	for _, o := range opts {
		o(r)
	}
	f := &Fiber{rt: r, name: "root", released: true, ready: true, up: true}
	f.ctx.fiber = f
	f.handle.fiber = f
	f.startRun()
	f.calls.open = true
	f.state.Store(int32(Active))
	r.root = f
	return &f.ctx
}

// Fibers gives every living fiber but the root, parents first, siblings in the
// order of mounting.
func (r *Runtime) Fibers() []*Fiber {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.root.descendants(nil)
}

// descendants appends the fibers below f. Runtime.mu is held.
func (f *Fiber) descendants(out []*Fiber) []*Fiber {
	for h := f.first; h != nil; h = h.next {
		if h.child != nil {
			out = h.child.descendants(append(out, h.child))
		}
	}
	return out
}

// Plugins gives the plugins that have a living fiber, by the id of their first.
func (r *Runtime) Plugins() []*Plugin {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]*Plugin, 0, len(r.plugins))
	for p := range r.plugins {
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b *Plugin) int {
		return cmp.Compare(r.plugins[a].first.id, r.plugins[b].first.id)
	})
	return out
}

// Remove asks all fibers of p to dispose, without waiting, and gives them.
func (r *Runtime) Remove(p *Plugin) []*Fiber {
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.plugins[p]
	if rec == nil {
		return nil
	}
	var out []*Fiber
	for f := rec.first; f != nil; f = f.nextSame {
		out = append(out, f)
	}
	for _, f := range out {
		f.requestDispose()
	}
	return out
}

// register adds f to its plugin's record. Runtime.mu is held.
func (r *Runtime) register(f *Fiber) {
	rec := r.plugins[f.plugin]
	if rec == nil {
		rec = &record{}
		r.plugins[f.plugin] = rec
	}
	if f.prevSame = rec.last; rec.last == nil {
		rec.first = f
	} else {
		rec.last.nextSame = f
	}
	rec.last = f
}

// unregister takes f out of its plugin's record and its subscriptions, and the
// record out of the registry with its last fiber. Runtime.mu is held.
func (r *Runtime) unregister(f *Fiber) {
	rec := r.plugins[f.plugin]
	if f.prevSame == nil {
		rec.first = f.nextSame
	} else {
		f.prevSame.nextSame = f.nextSame
	}
	if f.nextSame == nil {
		rec.last = f.prevSame
	} else {
		f.nextSame.prevSame = f.prevSame
	}
	f.prevSame, f.nextSame = nil, nil
	if rec.first == nil {
		delete(r.plugins, f.plugin)
	}
	for _, d := range f.injected() {
		for _, k := range f.ctx.keys(d.Name) {
			if set := r.subs[k]; set != nil {
				delete(set, f)
				if len(set) == 0 {
					delete(r.subs, k)
				}
			}
		}
	}
}

// ServiceInfo is a provided service.
type ServiceInfo struct {
	Name  string
	Realm *Realm // nil: the root realm
	Owner *Fiber
	Value any
}

// Services gives what is provided, whatever the state of the owners, sorted by
// name and then in the order in which it was provided.
func (r *Runtime) Services() []ServiceInfo {
	r.mu.Lock() // after it no impl is half made
	defer r.mu.Unlock()
	var all []*impl
	r.store.Range(func(_, v any) bool {
		all = append(all, v.(*impl))
		return true
	})
	slices.SortFunc(all, func(a, b *impl) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.seq, b.seq))
	})
	out := make([]ServiceInfo, len(all))
	for i, im := range all {
		out[i] = ServiceInfo{im.name, im.realm, im.owner, *im.value.Load()}
	}
	return out
}

// Digest describes everything that stands in the runtime: fibers, effects,
// services, listeners, calls, waits. When everything has been disposed it
// equals the digest of a new runtime.
func (r *Runtime) Digest() string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, s := range r.Services() {
		add("service %s in %s of #%d", s.Name, s.Realm, s.Owner.id)
	}
	r.lists.Range(func(k, v any) bool {
		if n := len(v.(*list).snapshot()); n > 0 {
			add("listeners %s %d", k.(*event).name, n)
		}
		return true
	})
	r.mu.Lock()
	fibers := r.root.descendants([]*Fiber{r.root})
	for p, rec := range r.plugins {
		add("plugin %s from #%d", p.Name, rec.first.id)
	}
	for k, set := range r.subs {
		add("injected %s in %s by %d", k.name, k.realm, len(set))
	}
	if n := len(r.waits); n > 0 {
		add("waiting %d", n)
	}
	for k := range r.reserved {
		add("staged %s in %s", k.name, k.realm)
	}
	r.mu.Unlock()
	for _, f := range fibers {
		add("fiber #%d %s %s calls %d effects %v", f.id, f.name, f.State(), len(f.calls.running()), f.Effects())
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Missing is one service that a fiber waits for.
type Missing struct {
	Name   string
	Reason string // why it is not available, in words
}

// Waiting explains why a fiber is pending.
type Waiting struct {
	Missing []Missing // in the order of the plugin's Inject
	// Cycle names the plugins of a cycle that the fiber is part of, from itself
	// to itself: each waits for a service of the next. A plugin's services are
	// known from its Provides and from its last run.
	Cycle []string
}

// Waiting tells which required services f lacks, and why. It is empty for a
// fiber that lacks none.
func (f *Fiber) Waiting() Waiting {
	r := f.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	var w Waiting
	if f.disposed {
		return w
	}
	for _, d := range f.lacks() {
		w.Missing = append(w.Missing, Missing{d.Name, f.reason(d.Name)})
	}
	if len(w.Missing) > 0 {
		all := r.root.descendants(nil)
		w.Cycle = f.cycle(f, all, map[*Fiber]bool{})
	}
	return w
}

// lacks gives the required services that are not available to f.
func (f *Fiber) lacks() []Dependency {
	var out []Dependency
	for _, d := range f.injected() {
		im := f.ctx.find(d.Name, true)
		if !d.Optional && (im == nil || im.check != nil && !f.verdicts[im]) {
			out = append(out, d)
		}
	}
	return out
}

// reason tells why f cannot have the service name.
func (f *Fiber) reason(name string) string {
	realm := f.ctx.realm(name)
	im := f.ctx.find(name, true)
	if im == nil {
		im = f.ctx.find(name, false)
	}
	if im != nil && im.owner.State() != Active {
		return fmt.Sprintf("its provider %q (#%d) is %s", im.owner.name, im.owner.id, im.owner.State())
	}
	if im != nil {
		return fmt.Sprintf("its provider %q (#%d) does not offer it here: the availability check is false", im.owner.name, im.owner.id)
	}
	all := f.rt.root.descendants(nil)
	for _, g := range all {
		if g.Hidden() && g.stage.Load() != f.stage.Load() {
			continue
		}
		if g.offers(key{name, realm}) && g != f {
			return fmt.Sprintf("not provided; %q (#%d), which provides it, is %s", g.name, g.id, g.State())
		}
	}
	for _, g := range append(all, f.rt.root) {
		for _, im := range g.impls {
			if im.name == name && !im.removed {
				return fmt.Sprintf("not provided in this realm (%s); %q (#%d) provides it in another (%s)", realm, g.name, g.id, im.realm)
			}
		}
	}
	return "not provided"
}

// offers tells whether f, once it runs, is known to provide k.
func (f *Fiber) offers(k key) bool {
	return slices.Contains(f.provided, k) ||
		f.plugin != nil && slices.Contains(f.plugin.Provides, k.name) && f.ctx.realm(k.name) == k.realm
}

// cycle finds a way from f, over pending fibers that would provide what each
// lacks, back to start.
func (f *Fiber) cycle(start *Fiber, all []*Fiber, seen map[*Fiber]bool) []string {
	seen[f] = true
	for _, d := range f.lacks() {
		k := key{d.Name, f.ctx.realm(d.Name)}
		for _, g := range all {
			if g.disposed || g.ready || !g.offers(k) {
				continue
			}
			if g == start {
				return []string{f.name, g.name}
			}
			if !seen[g] {
				if rest := g.cycle(start, all, seen); rest != nil {
					return append([]string{f.name}, rest...)
				}
			}
		}
	}
	return nil
}

// Stepper decides, from a seed, which fiber takes its next step, so that a test
// replays an interleaving. The runtime's transitions go on only in Step and
// Run; use RequestDispose, Mount and the other calls that do not wait between
// them. Setups of asynchronous effects, and timers, are not its business. A
// Stepper belongs to one runtime.
type Stepper struct {
	mu    sync.Mutex
	rand  *rand.Rand
	queue []*Fiber
}

// NewStepper makes a stepper; equal seeds and equal programs give equal runs.
func NewStepper(seed uint64) *Stepper {
	return &Stepper{rand: rand.New(rand.NewPCG(seed, 0))}
}

func (s *Stepper) push(f *Fiber) {
	s.mu.Lock()
	s.queue = append(s.queue, f)
	s.mu.Unlock()
}

// Step takes one step of one fiber: it decides one transition, or runs one body
// or the disposers of one effect. It is false when no fiber has anything to do.
func (s *Stepper) Step() bool {
	s.mu.Lock()
	if len(s.queue) == 0 {
		s.mu.Unlock()
		return false
	}
	i := s.rand.IntN(len(s.queue))
	f := s.queue[i]
	s.queue = slices.Delete(s.queue, i, i+1)
	s.mu.Unlock()
	f.step()
	return true
}

// Run takes at most limit steps and tells whether nothing was left to do.
func (s *Stepper) Run(limit int) bool {
	for range limit {
		if !s.Step() {
			return true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue) == 0
}

// run is one run of a fiber's body and what it was started with.
type run struct {
	site  site
	entry entry
	frame frame
	held  []*impl // the injected services; immutable

	mu     sync.Mutex
	cancel context.CancelFunc
	over   bool
}

// context gives the run's context, made when it is first asked for.
func (r *run) context() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancel == nil {
		r.entry.ctx, r.cancel = context.WithCancel(context.Background())
		if r.over {
			r.cancel()
		}
	}
	return &r.frame
}

// end cancels the run's context.
func (r *run) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	if r.cancel != nil {
		r.cancel()
	}
}
