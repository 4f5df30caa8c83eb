// Package mount makes a model-written plugin an ordinary fiber: it answers what
// the plugin's façade asks for with effects of that fiber, and enters the
// plugin's functions when the runtime calls them.
//
// A [Set] holds the temporary plugins of one session, or the plugin files of one place
// (package files). Each is a [Mount]: a plugin file has its path for an id, and is
// mounted by whoever opened it; a temporary plugin has an
// id, dyn-1, dyn-2, …, that is never used again, a virtual machine in package
// sandbox, and a fiber under the group's context. One execution of the plugin's
// apply is a run; everything that the façade registers belongs to the run in
// which it was registered and ends with it, strictly in reverse.
//
// # What survives what
//
// A mount that waits for a service keeps its machine and its state outside of
// apply; when the service comes, apply runs again with a fresh façade. A mount
// whose machine died, with its worker or because it was spent, is loaded again
// from its source with empty state, unless it was to blame or deaths come too
// often; then its fiber fails with the reason.
//
// # Services of the host
//
// A service that has an interface for plugins (package service) is bound once for
// each run, with the run's context, so that what it starts for the plugin are
// effects of the mount. Every request is checked: the plugin declares the service,
// the member is one of its interface, an object is one that this run was given.
// Objects, iterations and functions that were given belong to the run and end with
// it; so do calls under way, which are cancelled and waited for, a second at most.
// A call is cancelled, too, by its signal, and with the call that it is made for,
// but not when that has its answer.
//
// A service of a plugin in another worker, a plugin file's for a temporary plugin or
// the other way round, is bound as one of the host: methods stay synchronous where
// they are, and data crosses, but no functions and no live objects. Between two
// plugins that call each other in turn nobody sees that they wait for each other; the
// time of a call ends that.
//
// # Policy
//
// A mounted listener of an event whose answer is a decision (tools/pre-execute,
// fs/write-intent, …) is a guard. It can only tighten, and it fails closed: while it
// throws, hangs, answers nonsense, or its mount is down, it denies by name. It is
// not asked about what it does itself, nor about what others do for it: that counts
// as next(). Listeners of emit and parallel events run from the mount's own queue,
// in order, and never delay or fail the emitter; they do not hear what they cause.
// A listener of any other waterfall, such as prompt/assemble, is passed over where
// it fails, takes longer than limits.ListenerAnswer, or answers what the event does
// not take; its mount is told once. What wraps a tool's call may fail that call.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Set owns the goroutines that drain
// event queues and that load mounts again; they end with their mounts.
package mount

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/tool"
)

// idPrefix begins the id of each temporary plugin.
const idPrefix = "dyn-"

// Anonymous is the name of a plugin that has none.
const Anonymous = "<anonymous>"

// Mount is one plugin that runs in the sandbox: a temporary one, or a plugin file.
type Mount struct {
	Number int
	ID     string // "dyn-1"; of a plugin file its path, as it is shown
	Source string // of a plugin file that of its entry

	set      *Set
	plugin   *cordis.Plugin                  // of a plugin file
	schema   *schema.Schema                  // of its configuration; nil: it takes none
	stage    *cordis.Stage                   // on which it takes another's place; nil: none
	replaced atomic.Uint64                   // the first call that does not ask its guard any more, since another has its place; 0: all do
	code     *Code                           // of a plugin file; nil: it is temporary
	cancel   context.CancelFunc              // of the start
	started  chan struct{}                   // closed when the start has ended
	guarding atomic.Pointer[map[string]bool] // the events that it guards, or did until it is active again; nil: none
	upSince  atomic.Uint64                   // newest call when a guard that was down came back
	ending   atomic.Bool                     // cordis_unmount was asked for
	taken    atomic.Bool                     // another is on its way into its place
	retired  atomic.Bool                     // a plugin file took its names over
	wasUp    atomic.Bool                     // apply of its fiber has succeeded, ever
	console  console
	faults   faults
	queue    queue

	mu         sync.Mutex
	name       string
	inject     []cordis.Dependency
	typescript bool
	fiber      *cordis.Fiber
	vm         *sandbox.VM
	run        *run                   // the present one; nil: none
	staging    *cordis.Stage          // that was told of it
	config     json.RawMessage        // of a plugin file
	calls      *[keptCalls]tool.Token // that its guard has decided about, the last ones
	lastCall   int
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

// label, who and sort name the plugin in messages: by its id, by its name too, and
// by what it is; and remedy says what removes its guard.
func (m *Mount) label() string {
	if m.code != nil {
		return "plugin file " + m.ID
	}
	return "temporary Plugin " + m.ID
}

func (m *Mount) who() string { return fmt.Sprintf("%s (%s)", m.label(), m.Name()) }

func (m *Mount) sort() string {
	if m.code != nil {
		return "a plugin file"
	}
	return "a temporary Plugin"
}

func (m *Mount) remedy() string {
	if m.code != nil {
		return "to mend or to disable that file"
	}
	return "cordis_unmount " + m.ID
}

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

// console keeps the last lines that a mount printed.
type console struct {
	mu    sync.Mutex
	lines []string
}

func (c *console) add(level, text string) {
	if level != "log" {
		text = level + ": " + text
	}
	text = plain.Cut(text, limits.ConsoleLine)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = keepLast(append(c.lines, text), limits.ConsoleLines)
}

func (c *console) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// keptFaults is how many errors of a mount inspect can show.
const keptFaults = 20

// faults keeps the last errors of a mount.
type faults struct {
	mu  sync.Mutex
	all []fault
}

type fault struct {
	id   uint64 // of a late one; 0: cannot be withdrawn
	text string
}

func (f *faults) add(text string) { f.addID(0, text) }

func (f *faults) addID(id uint64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = keepLast(append(f.all, fault{id, text}), keptFaults)
}

func (f *faults) withdraw(id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(x fault) bool { return x.id == id && id != 0 })
}

func (f *faults) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts := make([]string, len(f.all))
	for i, x := range f.all {
		texts[i] = x.text
	}
	return texts
}

func keepLast[T any](s []T, n int) []T {
	if len(s) > n {
		s = slices.Delete(s, 0, len(s)-n)
	}
	return s
}

// rate is a token bucket.
type rate struct {
	mu        sync.Mutex
	perSecond float64
	burst     float64
	tokens    float64
	last      time.Time
}

func newRate(perSecond, burst float64) *rate {
	return &rate{perSecond: perSecond, burst: burst, tokens: burst}
}

func (r *rate) allow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() {
		r.tokens = min(r.burst, r.tokens+now.Sub(r.last).Seconds()*r.perSecond)
	}
	r.last = now
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}

// Memory is what is known of temporary plugins longer than their Set lives: ids are
// never used again, and what became of one can be told after the toolset was
// reloaded. It is kept for each scope, of the last limits.RememberedScopes.
type Memory struct {
	mu     sync.Mutex
	scopes map[*tool.Scope]*past
	order  []*tool.Scope
}

// NewMemory returns an empty Memory. The program has one.
func NewMemory() *Memory { return &Memory{scopes: map[*tool.Scope]*past{}} }

// of is what is remembered of a scope. A Set keeps it, whatever is forgotten here.
func (m *Memory) of(scope *tool.Scope) *past {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.scopes[scope]
	if p == nil {
		p = &past{}
		m.scopes[scope] = p
		m.order = append(m.order, scope)
		if len(m.order) > limits.RememberedScopes {
			delete(m.scopes, m.order[0])
			m.order = slices.Delete(m.order, 0, 1)
		}
	}
	return p
}

// Gone is what became of an id that is used up.
type Gone struct {
	ID, Plugin string
	What       string // "was unmounted", "failed to mount: …"
}

// past is what is remembered of one scope.
type past struct {
	mu   sync.Mutex
	last int // number that was given
	gone []Gone
	lost []Gone // with the last toolset that ended with any
	open bool   // lost grows: that toolset has not been followed by a mount
}

// number gives the next one.
func (p *past) number() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.open = false
	return p.last
}

func (p *past) note(g Gone) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gone = keepLast(append(p.gone, g), limits.RememberedGone)
}

// lose notes one that ended with its toolset.
func (p *past) lose(g Gone) {
	p.note(g)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.open {
		p.lost, p.open = nil, true
	}
	p.lost = keepLast(append(p.lost, g), limits.RememberedGone)
}

func (p *past) lostOnes() []Gone {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.lost)
}

// fate says what became of an id; "": nothing is known.
func (p *past) fate(id string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.gone {
		if g.ID == id {
			return g.What
		}
	}
	return ""
}
