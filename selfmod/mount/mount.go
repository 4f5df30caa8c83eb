package mount

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// idPrefix begins the id of each temporary plugin.
const idPrefix = "dyn-"

// Anonymous is the name of a plugin that has none.
const Anonymous = "<anonymous>"

// Mount is one temporary plugin.
type Mount struct {
	Number int
	ID     string // "dyn-1"
	Source string

	set      *Set
	cancel   context.CancelFunc              // of the start
	started  chan struct{}                   // closed when the start has ended
	guarding atomic.Pointer[map[string]bool] // the events that it guards, or did until it is active again; nil: none
	upSince  atomic.Uint64                   // newest call when a guard that was down came back
	ending   atomic.Bool                     // cordis_unmount was asked for
	console  console
	faults   faults
	queue    queue

	mu         sync.Mutex
	name       string
	inject     []cordis.Dependency
	typescript bool
	fiber      *cordis.Fiber
	vm         *sandbox.VM
	run        *run // the present one; nil: none
	lastRun    uint32
	ran        bool        // its fiber's body has begun, ever
	stale      bool        // apply has run in its machine, but not for its fiber
	failed     error       // why it may not run again
	respawns   int         // times it was loaded again
	spent      []time.Time // when its machine was spent
	earlier    sandbox.Counters
}

var _ sandbox.Host = (*Mount)(nil)

func newMount(s *Set, number int, source string, cancel context.CancelFunc) *Mount {
	return &Mount{
		Number: number, ID: idPrefix + strconv.Itoa(number), Source: source, set: s, name: Anonymous,
		cancel: cancel, started: make(chan struct{}),
	}
}

// Name is the plugin's name, safe to show.
func (m *Mount) Name() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.name
}

// who names the mount in messages.
func (m *Mount) who() string { return fmt.Sprintf("temporary Plugin %s (%s)", m.ID, m.Name()) }

// Fiber is the mount's fiber; nil while its code has not returned yet.
func (m *Mount) Fiber() *cordis.Fiber {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fiber
}

// StateText is the state in the words of the reports: active is "running".
func (m *Mount) StateText() string {
	f := m.Fiber()
	if f == nil {
		return cordis.Loading.String()
	}
	if st := f.State(); st != cordis.Active {
		return st.String()
	}
	return "running"
}

// Waiting are the names of the services that the mount waits for.
func (m *Mount) Waiting() []string {
	names := []string{}
	f := m.Fiber()
	if f == nil || f.State() != cordis.Pending {
		return names
	}
	for _, missing := range f.Waiting().Missing {
		names = append(names, plain.Name(missing.Name))
	}
	return names
}

// Provides are the names of the services that the mount provides now, sorted.
func (m *Mount) Provides() []string {
	names := []string{}
	if f := m.Fiber(); f != nil {
		for _, name := range f.Provides() {
			names = append(names, plain.Name(name))
		}
	}
	return names
}

// TypeScript says whether types were erased from the source.
func (m *Mount) TypeScript() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.typescript
}

// start loads the source and mounts the plugin as a fiber.
func (m *Mount) start(ctx context.Context) error {
	vm, loaded, err := m.load(ctx, m.live())
	if err != nil {
		return err
	}
	deps, err := dependencies(loaded.Inject)
	if err != nil {
		m.adopt(vm, loaded, nil)
		return err
	}
	m.adopt(vm, loaded, deps)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("mount %s: %w", m.ID, err)
	}
	c := tool.WithMount(m.set.ctx, tool.Mount{Number: m.Number, ID: m.ID, Plugin: m.Name(), Source: hash(m.Source)})
	c = service.WithReporter(c, m.fault)
	f, err := c.Mount(&cordis.Plugin{Name: m.Name(), Inject: deps, Provides: likelyProvides(m.Source), Apply: m.apply}, nil)
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

// load loads the source in a new machine; once more if the worker ended for a
// reason that is not this mount's. With live, apply may begin as the first run.
func (m *Mount) load(ctx context.Context, live string) (*sandbox.VM, wire.Loaded, error) {
	for {
		vm, loaded, err := m.set.cfg.Sandbox.Load(ctx, sandbox.Spec{
			ID: "temporary Plugin " + m.ID, File: "cordis-mount-" + m.ID + ".js", Source: m.Source, Run: 1, Live: live,
		}, m)
		e := new(sandbox.Error)
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
func dependencies(declared []wire.Inject) ([]cordis.Dependency, error) {
	if len(declared) > limits.Services {
		return nil, fmt.Errorf("a temporary Plugin injects at most %d services, and this one %d", limits.Services, len(declared))
	}
	deps := make([]cordis.Dependency, 0, len(declared))
	for _, d := range declared {
		if !usableName(d.Name) {
			return nil, fmt.Errorf("inject: %q is no name that a service can have: %s", plain.Name(d.Name), nameRule)
		}
		if decl, ok := cordis.LookupService(d.Name); ok && !decl.Injectable() {
			return nil, fmt.Errorf("service %q cannot be injected by a temporary Plugin; what can be is listed by cordis_inspect what:\"services\"", plain.Name(d.Name))
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
	r := m.newRun(vm, c)
	// Registered first, so undone last: what the run's disposers use still works.
	if _, err := c.Defer("run", r.retire); err != nil {
		return err
	}
	if err := r.followOptional(); err != nil {
		return err
	}
	if err := vm.Apply(c.Context(), r.id, r.bindings()); err != nil {
		return err
	}
	r.catchUp()
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
	if why.Code == sandbox.CodeDied || why.Code == sandbox.CodeStuck || why.Blamed {
		again = m.set.died(why.Worker, now)
	}
	m.mu.Lock()
	switch {
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
	if failed != nil {
		m.faults.add(failed.Error())
	} else {
		m.faults.add(why.Error() + "; it was mounted again from its source, with empty state")
	}
	if f == nil || m.ending.Load() {
		return
	}
	m.set.spawn(func() { m.set.again(m, f, why) })
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

// Counters are what the mount has done, all its machines together.
func (m *Mount) Counters() sandbox.Counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := m.earlier
	if m.vm != nil {
		now := m.vm.Counters()
		sum.Calls += now.Calls
		sum.Errors += now.Errors
		sum.Engine += now.Engine
		sum.Heap = now.Heap
	}
	return sum
}

// Respawns is how often the mount was loaded again from its source.
func (m *Mount) Respawns() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.respawns
}

// Dropped is how many events the mount's full queue dropped.
func (m *Mount) Dropped() uint64 { return m.queue.dropped.Load() }

// Abandoned is how many of the mount's abandoned calls still run.
func (m *Mount) Abandoned() int {
	m.mu.Lock()
	vm := m.vm
	m.mu.Unlock()
	if vm == nil {
		return 0
	}
	return vm.Abandoned()
}

// Faults are the mount's last errors, oldest first.
func (m *Mount) Faults() []string { return m.faults.list() }

// Lines are the mount's last console lines, oldest first.
func (m *Mount) Lines() []string { return m.console.list() }

// Console takes a line that the mount printed.
func (m *Mount) Console(level, text string) {
	text = plain.Terminal(text)
	m.console.add(level, text)
	m.print(text)
}

// print passes text on to the console, each line with the mount's tag and
// counted, so that none can pass for another mount's.
func (m *Mount) print(text string) {
	if m.set.cfg.Console == nil {
		return
	}
	for line := range strings.SplitSeq(text, "\n") {
		if !m.set.lines.allow(time.Now()) {
			return
		}
		m.set.cfg.Console("[cordis:" + m.ID + "] " + line)
	}
}

// Late takes an error that no call carries.
func (m *Mount) Late(id uint64, f *wire.Fault, withdrawn bool) {
	if withdrawn {
		m.faults.withdraw(id)
		return
	}
	e := &sandbox.Error{Mount: m.ID, Fault: f}
	text := plain.Error(e.Error())
	m.faults.addID(id, text)
	m.print("uncaught: " + text)
}

// fault records an error of a callback that nobody waits for.
func (m *Mount) fault(err error) {
	text := plain.Error(err.Error())
	m.faults.add(text)
	m.print(text)
}

// Injects are the names that the plugin declares.
func (m *Mount) Injects() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := make([]string, 0, len(m.inject))
	for _, d := range m.inject {
		names = append(names, d.Name)
	}
	return slices.Clip(names)
}
