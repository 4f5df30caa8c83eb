package mount

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// start loads the source and mounts the plugin as a fiber.
func (m *Mount) start(ctx context.Context) error {
	vm, loaded, err := m.load(ctx, m.live())
	if err != nil {
		return err
	}
	deps, err := m.dependencies(loaded.Inject)
	if err != nil {
		m.adopt(vm, loaded, nil)
		return err
	}
	m.adopt(vm, loaded, deps)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mount %s: %w", m.ID, err)
	}
	f, err := m.marked(m.above()).Mount(&cordis.Plugin{Name: m.Name(), Inject: deps, Provides: likelyProvides(m.Source), Apply: m.apply}, nil)
	if err != nil {
		return fmt.Errorf("mount %s: %w", m.ID, err)
	}
	m.mu.Lock()
	m.fiber = f
	m.mu.Unlock()
	err = untouched(f.Await(ctx))
	if m.missed(vm) {
		vm.Close(context.WithoutCancel(ctx))
	}
	return err
}

// above is the context that a temporary plugin is mounted on.
func (m *Mount) above() *cordis.Context {
	if m.stage != nil {
		return m.stage.On(m.set.ctx)
	}
	return m.set.ctx
}

// marked is c as the plugin's: what is registered there belongs to it.
func (m *Mount) marked(c *cordis.Context) *cordis.Context {
	mark := tool.Mount{Number: m.Number, ID: m.ID, Plugin: m.Name(), Source: hash(m.Source)}
	if m.code != nil {
		mark.File, mark.Source = true, m.code.Hash
	}
	return service.WithReporter(tool.WithMount(c.WithValue(mountKey{}, m), mark), m.fault)
}

// mountKey finds the Mount that a context belongs to.
type mountKey struct{}

// Of returns the temporary plugin or the plugin file that a fiber is; nil: it is none.
func Of(f *cordis.Fiber) (found *Mount) {
	if m, _ := f.Context().Value(mountKey{}).(*Mount); m != nil && m.Fiber() == f {
		return m
	}
	Census.Emit(context.Background(), f.Context(), func(m *Mount) {
		if m.Fiber() == f {
			found = m
		}
	})
	return found
}

// hash identifies a source.
func hash(source string) string {
	sum := sha256.Sum256([]byte(source))
	return hex.EncodeToString(sum[:])
}

// provideCall finds the names that a source provides by a literal.
var provideCall = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\.provide\(\s*(?:'([^'\\\n]{1,80})'|"([^"\\\n]{1,80})")`)
})

// likelyProvides guesses from the source what a plugin will provide. It only
// explains circles of plugins none of which has run yet.
func likelyProvides(source string) []string {
	if !strings.Contains(source, ".provide(") {
		return nil
	}
	var names []string
	for _, found := range provideCall().FindAllStringSubmatch(source, limits.Services) {
		if name := found[1] + found[2]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// untouched is the error of the sandbox itself, without what the runtime says
// around it: what the author's code threw stays as it is.
func untouched(err error) error {
	if e := new(sandbox.Error); errors.As(err, &e) {
		return e
	}
	return err
}

// spec is what the sandbox loads; with live, apply may begin as the first run.
func (m *Mount) spec(live string) sandbox.Spec {
	if m.code != nil {
		return sandbox.Spec{ID: m.label(), File: m.code.Path, Entry: m.code.Entry, Files: m.code.Files, Run: 1}
	}
	return sandbox.Spec{ID: m.label(), File: "cordis-mount-" + m.ID + ".js", Source: m.Source, Run: 1, Live: live}
}

// load loads the source in a new machine; once more if the worker ended for a
// reason that is not this mount's. With live, apply may begin as the first run.
func (m *Mount) load(ctx context.Context, live string) (*sandbox.VM, wire.Loaded, error) {
	for {
		vm, loaded, err := m.set.cfg.Sandbox.Load(ctx, m.spec(live), m)
		e := new(sandbox.Error)
		if errors.As(err, &e) && (e.Blamed || e.Spent) {
			if skipped := m.broke(e); skipped != nil {
				return nil, loaded, skipped
			}
		}
		if !errors.As(err, &e) || e.Worker == 0 || e.Blamed || !m.set.died(e.Worker, time.Now()) || ctx.Err() != nil {
			return vm, loaded, err
		}
	}
}

// adopt takes a loaded machine as the mount's.
func (m *Mount) adopt(vm *sandbox.VM, loaded wire.Loaded, deps []cordis.Dependency) {
	name := Anonymous
	if loaded.Name != "" {
		name = plain.Name(loaded.Name)
	}
	m.mu.Lock()
	m.vm, m.name, m.inject, m.typescript = vm, name, deps, loaded.TypeScript
	m.mu.Unlock()
	vm.SetName(m.who())
}

// dependencies turns what the plugin declares into what the runtime gates on.
func (m *Mount) dependencies(declared []wire.Inject) ([]cordis.Dependency, error) {
	if len(declared) > limits.Services {
		return nil, fmt.Errorf("%s injects at most %d services, and this one %d", m.sort(), limits.Services, len(declared))
	}
	deps := make([]cordis.Dependency, 0, len(declared))
	for _, d := range declared {
		if !usableName(d.Name) {
			return nil, fmt.Errorf("inject: %q is no name that a service can have: %s", plain.Name(d.Name), nameRule)
		}
		if decl, ok := cordis.LookupService(d.Name); ok && !decl.Injectable() {
			return nil, fmt.Errorf("service %q cannot be injected by %s; what can be is listed by cordis_inspect what:\"services\"", plain.Name(d.Name), m.sort())
		}
		dep := cordis.Dependency{Name: d.Name, Optional: d.Optional}
		if len(d.Config) > 0 {
			dep.Config = d.Config
		}
		deps = append(deps, dep)
	}
	return deps, nil
}

// apply is the body of the mount's fiber: one run.
func (m *Mount) apply(c *cordis.Context, _ any) error {
	guarded := m.guarding.Load() != nil
	vm, err := m.machine(c.Context())
	if err != nil {
		return err
	}
	if st := cordis.StageOf(c); st != nil {
		m.onStage(st)
	}
	r := m.newRun(vm, c)
	// Registered first, so undone last: what the run's disposers use still works.
	if _, err := c.Defer("run", r.retire); err != nil {
		return err
	}
	if err := r.followOptional(); err != nil {
		return err
	}
	m.mu.Lock()
	config := m.config
	m.mu.Unlock()
	if err := vm.Apply(c.Context(), r.id, r.bindings(), config); err != nil {
		return err
	}
	r.catchUp()
	if err := vm.Dead(); !m.wasUp.Swap(true) && m.code != nil && err != nil { // it is not started again for that, see Set.again
		return err
	}
	if guarded {
		m.upSince.Store(uint64(tool.LastToken()))
	}
	r.started()
	return nil
}

// machine is the mount's live VM; one that died is loaded again from source.
func (m *Mount) machine(ctx context.Context) (*sandbox.VM, error) {
	m.mu.Lock()
	vm, failed, stale := m.vm, m.failed, m.stale
	m.ran, m.stale = true, false
	m.mu.Unlock()
	if failed != nil {
		return nil, failed
	}
	if vm.Dead() == nil && !stale {
		return vm, nil
	}
	fresh, loaded, err := m.load(ctx, "")
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	counts := vm.Counters()
	m.earlier.Calls += counts.Calls
	m.earlier.Errors += counts.Errors
	m.earlier.Engine += counts.Engine
	if !stale {
		m.respawns++
	}
	deps := m.inject
	m.mu.Unlock()
	m.adopt(fresh, loaded, deps)
	return fresh, nil
}

// applied says whether apply of the present run has succeeded.
func (m *Mount) applied() bool {
	m.mu.Lock()
	r := m.run
	m.mu.Unlock()
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.up
}

func (m *Mount) newRun(vm *sandbox.VM, c *cordis.Context) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastRun++
	m.run = newRun(m, vm, c, m.lastRun)
	return m.run
}

// current is the present run if it is the one that a request names.
func (m *Mount) current(id uint32) *run {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil && m.run.id == id {
		return m.run
	}
	return nil
}

// Died is told that the machine is gone. The fiber runs again with another, or
// fails with the reason.
func (m *Mount) Died(why *sandbox.Error, guilty bool) {
	now := time.Now()
	if why.Spent { // what follows is decided here
		e := *why
		e.Spent, why = false, &e
	}
	again := true
	switch {
	case m.code != nil && why.Blamed: // whoever is to blame is skipped before long
	case why.Code == sandbox.CodeDied || why.Code == sandbox.CodeStuck || why.Blamed:
		again = m.set.died(why.Worker, now)
	}
	var skipped error
	if guilty {
		skipped = m.broke(why)
	}
	m.mu.Lock()
	switch {
	case skipped != nil:
		m.failed = skipped
	case guilty && m.code != nil:
	case !guilty && !again && m.code != nil:
		m.failed = fmt.Errorf("%w; %s. It is loaded again when its file changes, or at a reload", why, m.set.Down())
	case !guilty && again:
	case !guilty:
		m.failed = fmt.Errorf("%w; %s. cordis_unmount it, then mount it again", why, m.set.Down())
	case respawnable(why):
		m.spent = append(recent(m.spent, now), now)
		if len(m.spent) >= limits.SpentVMs {
			m.failed = fmt.Errorf("%w; that was the %d. time within a minute, so it is not mounted again by itself", why, len(m.spent))
		}
	default:
		m.failed = why
	}
	f := m.fiber
	failed := m.failed
	m.mu.Unlock()
	if m.code != nil {
		m.set.ctx.Logger().Error("a plugin file lost its machine", "file", m.ID, "error", why, "runs again", failed == nil)
	}
	if failed != nil {
		m.faults.add(failed.Error())
	} else {
		m.faults.add(why.Error() + "; it was " + m.reloaded() + ", with empty state")
	}
	if f == nil || m.ending.Load() {
		return
	}
	m.set.spawn(func() { m.set.again(m, f, why) })
}

// reloaded says how a plugin came to another machine.
func (m *Mount) reloaded() string {
	if m.code != nil {
		return "loaded again"
	}
	return "mounted again from its source"
}

// respawnable says whether a guilty mount may have another machine: what used
// up only its own.
func respawnable(why *sandbox.Error) bool {
	if why.Blamed { // the worker's end
		return false
	}
	switch why.Code {
	case wire.CodeMemory, wire.CodePanic, wire.CodeVMTimeout:
		return true
	}
	return false
}

// end disposes the fiber and closes the machine, whatever state they are in.
func (m *Mount) end(ctx context.Context) (cordis.Receipt, error) {
	m.cancel()
	<-m.started // at once: every wait of a start ends with its context
	var receipt cordis.Receipt
	var err error
	if f := m.Fiber(); f != nil {
		receipt, err = f.Dispose(ctx)
	}
	m.mu.Lock()
	vm := m.vm
	m.mu.Unlock()
	if vm != nil && !errors.Is(err, cordis.ErrSelf) {
		for len(receipt.Abandoned) < vm.Open() { // some were abandoned before
			receipt.Abandoned = append(receipt.Abandoned, "an abandoned call")
		}
		vm.Close(ctx)
	}
	return receipt, err
}
