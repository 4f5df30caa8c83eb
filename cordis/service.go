package cordis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
)

// key is where a service is stored: its name, in a realm.
type key struct {
	name  string
	realm *Realm
}

// impl is one provided service. holders is guarded by Runtime.mu: the fibers
// whose current run was started with it.
type impl struct {
	name    string
	realm   *Realm
	owner   *Fiber
	seq     uint64 // orders what is provided
	value   atomic.Pointer[any]
	check   func(dependent *Context) bool
	handle  Handle
	holders map[*Fiber]struct{}
	removed bool
}

func (im *impl) key() key { return key{im.name, im.realm} }

// ProvideOption configures a provided service.
type ProvideOption func(*impl)

// WithCheck makes the service available only to dependents for which check is
// true. It is asked, without a lock held, when a dependent's services are
// resolved and after Notify. A panic counts as false and is logged with the provider.
func WithCheck(check func(dependent *Context) bool) ProvideOption {
	return func(im *impl) { im.check = check }
}

// Provide offers v under name, in c's realm, as an effect of the fiber. It is
// available to dependents while the fiber is ACTIVE; a nil v is a value too.
// A name that is provided already in the realm is ErrDuplicate, a value that is
// not of the declared type ErrArgument. Undoing the effect makes the dependents
// unload and waits for them; they can use the value until they have unwound.
func (c *Context) Provide(name string, v any, opts ...ProvideOption) (*Handle, error) {
	if err := checkValue(name, v); err != nil {
		return nil, fmt.Errorf("provide service %q: %w", name, err)
	}
	f := c.fiber
	r := f.rt
	im := &impl{name: name, realm: c.realm(name), owner: f}
	im.value.Store(&v)
	im.handle = Handle{site: site{f, `ctx.provide("` + name + `")`}, impl: im}
	for _, o := range opts {
		o(im)
	}
	if s := f.stage.Load(); s != nil {
		if had := r.lookup(im.key()); had != nil {
			s.Takes(had.owner) // asks, without the lock
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := f.accepts("create effect"); err != nil {
		return nil, err
	}
	if err := r.place(im); err != nil {
		return nil, err
	}
	r.lastImpl++
	im.seq = r.lastImpl
	f.list(&im.handle)
	f.impls = append(f.impls, im)
	if f.State() == Active {
		r.changed(im.key(), im, true)
	}
	return &im.handle, nil
}

func checkValue(name string, v any) error {
	if name == "" {
		return fmt.Errorf("%w: a service needs a name", ErrArgument)
	}
	if d, ok := LookupService(name); ok && v != nil && !reflect.TypeOf(v).AssignableTo(d.Type) {
		return fmt.Errorf("%w: the value is a %T, declared is %s", ErrArgument, v, d.Type)
	}
	return nil
}

// retract takes the service back; its handle is done when nobody holds it.
// Runtime.mu is held.
func (im *impl) retract() {
	r := im.owner.rt
	im.removed = true
	switch stood := r.displace(im); {
	case stood && im.owner.State() == Active: // otherwise that was told already
		r.changed(im.key(), im, false)
	case stood && im.realm != nil: // what it covered in an overlay can be seen now
		r.refresh(im.key())
	}
	im.settle()
}

func (im *impl) hold(f *Fiber) {
	if im.holders == nil {
		im.holders = map[*Fiber]struct{}{}
	}
	im.holders[f] = struct{}{}
}

func (im *impl) release(f *Fiber) {
	delete(im.holders, f)
	im.settle()
}

// settle goes on with what waits for the last holder.
func (im *impl) settle() {
	if len(im.holders) > 0 {
		return
	}
	f := im.owner
	if im.removed && im.handle.phase != handleDone {
		f.impls = slices.DeleteFunc(f.impls, func(o *impl) bool { return o == im })
		im.handle.finish()
	}
	f.wake(phaseHolders)
}

// dependents gives the fibers that inject k, by id. Runtime.mu is held.
func (r *Runtime) dependents(k key) []*Fiber {
	set := r.subs[k]
	if len(set) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Keys(set), func(a, b *Fiber) int { return cmp.Compare(a.id, b.id) })
}

// changed tells the dependents, and the observers, that the service under k
// came, went or is to be looked at again. Runtime.mu is held.
func (r *Runtime) changed(k key, im *impl, present bool) {
	r.refresh(k)
	if r.listening(&ServiceChanged.event) && !im.owner.Hidden() {
		im.owner.announce(k, present)
	}
}

// refresh has the dependents of k look at it again. Runtime.mu is held.
func (r *Runtime) refresh(k key) {
	for _, d := range r.dependents(k) {
		d.refresh()
	}
}

func (f *Fiber) announce(k key, present bool) {
	ch := ServiceChange{Name: k.name, Realm: k.realm, Owner: f, Present: present}
	same := WithFilter(func(listener *Context) bool { return slices.Contains(listener.keys(k.name), k) })
	f.note(func(ctx context.Context) { ServiceChanged.Emit(ctx, &f.ctx, ch, same) })
	f.schedule()
}

// refresh resolves what f injects and starts a new generation if that changed.
// Optional services are not looked at. Runtime.mu is held.
func (f *Fiber) refresh() {
	if f.disposed {
		return
	}
	ready := true
	var deps []*impl
	for _, d := range f.injected() {
		if d.Optional {
			continue
		}
		im := f.resolve(d.Name)
		if im == nil {
			ready, deps = false, nil
			break
		}
		deps = append(deps, im)
	}
	if ready == f.ready && slices.Equal(deps, f.deps) {
		return
	}
	if f.up && f.retired() { // it does not run again
		f.requestDispose()
		return
	}
	f.ready, f.deps = ready, deps
	f.gen++
	f.touch()
	if f.released {
		f.schedule()
	}
}

// resolve gives the service that f would be started with, or nil. One whose
// check has not been asked yet counts as missing, and will be asked.
func (f *Fiber) resolve(name string) *impl {
	im := f.ctx.find(name, true)
	if im == nil {
		return nil
	}
	if im.check != nil {
		ok, known := f.verdicts[im]
		if !known {
			f.recheck = true
			f.schedule()
		}
		if !ok {
			return nil
		}
	}
	return im
}

// ask asks the checks of the services that f injects, outside the lock.
func (f *Fiber) ask() {
	f.recheck = false
	var asked []*impl
	for _, d := range f.injected() {
		im := f.ctx.find(d.Name, true)
		if im != nil && im.check != nil && !d.Optional {
			asked = append(asked, im)
		}
	}
	verdicts := map[*impl]bool{} // false until the check has returned
	returned := false
	f.rt.mu.Unlock()
	defer func() {
		f.rt.mu.Lock()
		f.verdicts = verdicts
		f.refresh()
		if !returned { // a check ended the goroutine; exited goes on
			f.rt.mu.Unlock()
		}
	}()
	for _, im := range asked {
		verdicts[im] = false
		err := guard(func() error {
			verdicts[im] = im.check(&f.ctx)
			return nil
		})
		if err != nil {
			im.owner.report("availability check failed", err, "service", im.name)
		}
	}
	returned = true
}

func (r *Runtime) lookup(k key) *impl {
	v, ok := r.store.Load(k)
	if !ok {
		return nil
	}
	return v.(*impl)
}

// available tells whether dependents can be started with the service.
func (im *impl) available() bool {
	return im != nil && im.owner.State() == Active
}

// at gives what is provided under k, as the fibers of the stage s see it, or those
// of none.
func (r *Runtime) at(s *Stage, k key) *impl {
	if s == nil {
		return r.lookup(k)
	}
	if v, ok := s.held.Load(k); ok {
		return v.(*impl)
	}
	if im := r.lookup(k); im != nil && !s.Replaces(im.owner) {
		return im
	}
	return nil
}

// place stores a new service, or holds it in the stage of its owner. Runtime.mu is
// held.
func (r *Runtime) place(im *impl) error {
	k, s := im.key(), im.owner.stage.Load()
	by, had := r.reserved[k], r.lookup(k)
	if s != nil {
		if v, dup := s.held.Load(k); dup {
			by, had = nil, v.(*impl)
		} else if s.Over() || had != nil && s.Replaces(had.owner) {
			had = nil
		}
	}
	switch {
	case by != nil && (s == nil && !by.Replaces(im.owner) || s != nil && !s.Over()):
		return tagged(ErrDuplicate, "service %q is just being replaced by another change; try again when that has ended", k.name)
	case had != nil:
		return tagged(ErrDuplicate, "service %q has been registered at <%s>", k.name, had.owner.name)
	case s == nil:
		r.store.Store(k, im)
		return nil
	}
	s.held.Store(k, im)
	if !s.Over() {
		r.reserved[k] = s
	}
	return nil
}

// Clashes tells whether what c's fiber registers cannot stand beside what other has
// under the same name, for registries in which names are unique. They stand beside
// each other where one is to replace the other, or where one is hidden for good; at
// most one is not Hidden. Ask [Stage.Takes] for other before, without a lock.
func (c *Context) Clashes(other *Fiber) bool {
	mine, theirs := c.fiber.stage.Load(), other.stage.Load()
	switch {
	case mine != nil && mine.Over(), theirs != nil && theirs.Over():
		return false
	case theirs != nil && theirs != mine:
		return !theirs.Replaces(c.fiber)
	case mine != nil && theirs == nil:
		return !mine.Replaces(other)
	}
	return true
}

// displace takes a service out of the store, and tells whether it was in there; one
// that a stage holds is taken out of that. Runtime.mu is held.
func (r *Runtime) displace(im *impl) (stood bool) {
	k := im.key()
	if s := im.owner.stage.Load(); s != nil && s.held.CompareAndDelete(k, im) {
		if r.reserved[k] == s {
			delete(r.reserved, k)
		}
		r.refresh(k)
		return false
	}
	return r.store.CompareAndDelete(k, im)
}

// Notify has the named services looked at again, in c's realms: checks are
// asked and dependents follow. It gives the fibers that inject them, by id, and
// does not wait for them.
func (c *Context) Notify(names ...string) []*Fiber {
	r := c.fiber.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[*Fiber]bool{}
	var out []*Fiber
	for _, n := range names {
		for _, k := range c.keys(n) {
			for _, d := range r.dependents(k) {
				if !seen[d] {
					seen[d] = true
					out = append(out, d)
				}
				d.recheck = true
				d.schedule()
			}
			if r.listening(&ServiceChanged.event) && !c.fiber.Hidden() {
				c.fiber.announce(k, r.lookup(k).available())
			}
		}
	}
	slices.SortFunc(out, func(a, b *Fiber) int { return cmp.Compare(a.id, b.id) })
	return out
}

// Get gives the service name of c's realm if it is available: its owner is
// ACTIVE. It needs no injection, and never fails; nothing tells the caller when
// the service goes.
func (c *Context) Get(name string) (any, bool) {
	if c.plain() {
		if im := c.fiber.rt.lookup(key{name, nil}); im != nil && im.owner.State() == Active {
			return *im.value.Load(), true
		}
	}
	for {
		if im := c.find(name, true); im != nil {
			return *im.value.Load(), true
		}
		if !c.find(name, false).available() { // else it was replaced in between
			return nil, false
		}
	}
}

// Peek is Get in whatever state the owner is.
func (c *Context) Peek(name string) (any, bool) {
	im := c.find(name, false)
	if im == nil {
		return nil, false
	}
	return *im.value.Load(), true
}

// Use gives a service that the fiber, or one of its ancestors, injects or
// provides. While a fiber runs it reads what it was started with, to the end of
// its unwinding. The root fiber may read everything.
//
// Errors: ErrUndeclared if nobody on the way injects it, or a realm lies
// between; ErrInactive if it is injected by a fiber that does not run;
// ErrMissing if it is optional, or read by the root, and not there.
func (c *Context) Use(name string) (any, error) {
	realm := c.realm(name)
	var im *impl
	if c.plain() {
		im = c.fiber.rt.lookup(key{name, nil})
	} else {
		im = c.find(name, false)
	}
	if c.fiber.parent == nil {
		if im == nil {
			return nil, fmt.Errorf("use service %q: %w", name, ErrMissing)
		}
		return *im.value.Load(), nil
	}
	for f := c.fiber; f != nil; f = f.parent {
		at := f.ctx.realm(name)
		if at != realm && f != c.fiber {
			break // isolation is a wall
		}
		if r := f.run.Load(); r != nil && at == realm {
			for _, held := range r.held {
				if held.name == name {
					return *held.value.Load(), nil
				}
			}
		}
		if im != nil && im.owner == f {
			return *im.value.Load(), nil
		}
		if i := slices.IndexFunc(f.injected(), func(d Dependency) bool { return d.Name == name }); i >= 0 && at == realm {
			return c.useDeclared(name, f, f.injected()[i].Optional)
		}
	}
	return nil, tagged(ErrUndeclared, "cannot get property %q without inject: fiber %q (#%d) must list it in Inject", name, c.fiber.name, c.fiber.id)
}

// useDeclared reads a service that f injects, but does not hold.
func (c *Context) useDeclared(name string, f *Fiber, optional bool) (any, error) {
	if optional {
		if v, ok := c.Get(name); ok {
			return v, nil
		}
		return nil, fmt.Errorf("use optional service %q: %w now", name, ErrMissing)
	}
	return nil, tagged(ErrInactive, "cannot get required service %q in inactive context: fiber %q (#%d) is %s", name, f.name, f.id, f.State())
}

// Set replaces the value of a service that this very fiber provides in c's
// realm. Dependents are neither told nor restarted.
func (c *Context) Set(name string, v any) error {
	if err := checkValue(name, v); err != nil {
		return fmt.Errorf("set service %q: %w", name, err)
	}
	im := c.find(name, false)
	switch {
	case im == nil:
		return tagged(ErrMissing, "cannot set property %q without provide", name)
	case im.owner != c.fiber:
		return tagged(ErrDuplicate, "cannot set property %q in multiple fibers: only <%s>, which provides it, may", name, im.owner.name)
	}
	im.value.Store(&v)
	return nil
}

// Provides gives the names of the services that f and its descendants provide,
// sorted, without duplicates.
func (f *Fiber) Provides() []string {
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	var out []string
	for _, g := range f.descendants([]*Fiber{f}) {
		for _, im := range g.impls {
			if !im.removed {
				out = append(out, im.name)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
