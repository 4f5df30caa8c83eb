package mount

import (
	"cmp"
	"context"
	"errors"
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
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/tool"
)

// Config is what a Set needs beside its context.
type Config struct {
	Sandbox  *sandbox.Sandbox
	Registry *tool.Registry
	// Audit is told every source before it runs; an error refuses the mount.
	// Nil: nobody is told.
	Audit func(id, source string) error
	// Console takes every printed line, tagged and made safe for a terminal.
	// It must not block. Nil: lines are only kept for inspect.
	Console func(line string)
	// Memory outlives the Set. Nil: one that does not.
	Memory *Memory
	// Broke is told that a plugin file brought down its machine; an error says why it
	// is not loaded again. Nil: it always is.
	Broke func(code *Code, why error) error
}

// Set is plugins that run in one sandbox: the temporary ones of one session, or the
// plugin files of one place.
type Set struct {
	cfg   Config
	past  *past
	ctx   *cordis.Context // of the group's fiber
	lines *rate           // of the console, all mounts together

	guards atomic.Int32 // how many mounts are guarding

	countMu  sync.Mutex
	counting *cordis.Handle // of countCalls

	parameters, outputs compiled // schemas of tools

	mu        sync.Mutex
	deciding  map[chan struct{}]struct{} // closed when what guards are asked about is decided
	watched   map[string]bool            // the events at which it denies what a mounted guard could not hear
	mounts    map[int]*Mount
	files     map[*cordis.Plugin]*Mount // of those mounts that are plugin files
	deaths    []death
	following bool // the fibers of plugin files
	work      sync.WaitGroup
	waited    bool // no new work
}

// Happened tells what becomes of temporary plugins, after it has. It is for the
// program itself; it is dispatched on the context of the Set.
var Happened = cordis.NewEmit[Change]("selfmod/mount")

// A Change is one thing that became of a temporary plugin.
type Change struct {
	Kind       ChangeKind
	ID, Plugin string
	// Scope is where its Set mounts; nil is the global layer.
	Scope *tool.Scope
	// File says that it is a plugin file, and ID its path.
	File bool
	// Reason says why it was reset or failed, in one line.
	Reason string
}

// ChangeKind is what became of a temporary plugin.
type ChangeKind string

// The kinds.
const (
	Came    ChangeKind = "mounted"
	Went    ChangeKind = "unmounted"
	Reset   ChangeKind = "reset"  // its machine was replaced: it runs again, with empty state
	Stopped ChangeKind = "failed" // its machine has gone, and it is not run again by itself
	Ended   ChangeKind = "ended"  // its Set has ended, and it with that
)

func (s *Set) happened(ctx context.Context, m *Mount, kind ChangeKind, reason string) {
	Happened.Emit(ctx, s.ctx, Change{Kind: kind, ID: m.ID, Plugin: m.Name(), Scope: tool.ScopeOf(s.ctx), File: m.code != nil, Reason: plain.Line(reason, limits.SourceLine)})
}

// again runs a mount whose machine has gone with another one, or lets it fail, and
// tells which.
func (s *Set) again(m *Mount, f *cordis.Fiber, why error) {
	<-m.started // a mount that fails to start is not started again
	if m.ending.Load() || m.code != nil && !m.wasUp.Load() {
		return
	}
	if err := f.Restart(context.Background()); err != nil && !errors.Is(err, cordis.ErrInactive) {
		m.faults.add(plain.Line(err.Error(), limits.ErrorText))
	}
	if kind := Reset; !m.ending.Load() {
		if f.State() == cordis.Failed {
			kind = Stopped
		}
		s.happened(context.Background(), m, kind, why.Error())
	}
}

// NewSet returns an empty Set whose mounts are children of c's fiber. It adds
// the guard that denies while a mounted guard is down.
func NewSet(c *cordis.Context, cfg Config) (*Set, error) {
	if cfg.Memory == nil {
		cfg.Memory = NewMemory()
	}
	s := &Set{
		cfg: cfg, past: cfg.Memory.of(tool.ScopeOf(c)), ctx: c, mounts: map[int]*Mount{}, deciding: map[chan struct{}]struct{}{}, files: map[*cordis.Plugin]*Mount{},
		lines: newRate(limits.ConsoleRate*4, limits.ConsoleBurst*4),
	}
	// Registered first, so done when the last of its plugins has gone.
	if _, err := c.Defer("memory", s.end); err != nil {
		return nil, err
	}
	if _, err := cfg.Registry.Guard(c, s.deniesWhileDown); err != nil {
		return nil, fmt.Errorf("guard for mounted guards: %w", err)
	}
	return s, nil
}

// end remembers the temporary plugins that end with the Set.
func (s *Set) end(ctx context.Context) error {
	for _, m := range s.List() {
		// Its machine goes with the sandbox, which is nothing to tell of.
		if m.ending.Swap(true) || m.code != nil { // an unmount under way says itself what became of it
			continue
		}
		m.guard(nil)
		s.past.lose(Gone{ID: m.ID, Plugin: m.Name(), What: "ended with the toolset, when that was reloaded, reconfigured or disabled"})
		s.happened(ctx, m, Ended, "")
	}
	return nil
}

// Wait returns when the goroutines of a Set whose group was disposed have ended.
func (s *Set) Wait() {
	s.mu.Lock()
	s.waited = true
	s.mu.Unlock()
	s.work.Wait()
}

// spawn runs fn on a goroutine that Wait waits for. Once Wait has begun nothing
// new starts, and the answer is false.
func (s *Set) spawn(fn func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waited {
		return false
	}
	s.work.Go(fn)
	return true
}

// deniesWhileDown fails closed: a mount that guarded calls and is not active
// denies them, until it is unmounted or active again. A call that was on its way
// to the guard when it became active again may have missed it, and is denied too.
func (s *Set) deniesWhileDown(e *tool.Exec) string {
	if s.guards.Load() == 0 || e.Tool != nil && e.Tool.Unrouted {
		return ""
	}
	for _, m := range s.List() {
		if !m.guards(tool.PreExecute.Name()) {
			continue
		}
		if state := m.guardDown(e.Token); state != "" {
			return fmt.Sprintf("tool %q was denied: %s listens to tools/pre-execute and is %s, so nothing can be allowed; %s removes its guard", e.Name, m.who(), state, m.remedy())
		}
	}
	return ""
}

// guardDown says in what state the mount's guard may have missed a call; "": it
// has heard it. It reads in the reverse of the order in which a restart writes.
func (m *Mount) guardDown(call tool.Token) string {
	f := m.Fiber()
	state := f.State()
	if first := m.replaced.Load(); first != 0 && (uint64(call) >= first || state != cordis.Active && m.hasHeard(call)) {
		return "" // what has its place was asked, or it was
	}
	switch {
	case state == cordis.Disposed:
		return "" // it is unmounted
	case state == cordis.Loading && m.applied(): // its listeners hear every call already
	case state != cordis.Active:
		return state.String()
	}
	_, done, err := f.Enter(context.Background(), "guard")
	if err != nil {
		return cordis.Unloading.String()
	}
	done()
	if uint64(call) <= m.upSince.Load() {
		return "being restarted"
	}
	return ""
}

// List returns the mounts in the order of their numbers.
func (s *Set) List() []*Mount {
	s.mu.Lock()
	list := make([]*Mount, 0, len(s.mounts))
	for _, m := range s.mounts {
		list = append(list, m)
	}
	s.mu.Unlock()
	slices.SortFunc(list, func(a, b *Mount) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Get returns a mount by its id; false for one that a plugin file has replaced.
func (s *Set) Get(id string) (*Mount, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	number, err := strconv.Atoi(strings.TrimPrefix(id, idPrefix))
	if err != nil {
		return nil, false
	}
	m, ok := s.mounts[number]
	return m, ok && m.ID == id && !m.retired.Load()
}

// Fate says what became of an id that is used up; "" for one that never was.
func (s *Set) Fate(id string) string {
	return s.past.fate(id)
}

// Lost are the temporary plugins that ended with the last Set of this scope that
// ended with any, and its toolset.
func (s *Set) Lost() []Gone { return s.past.lostOnes() }

// drop takes a mount out of the list.
func (s *Set) drop(m *Mount) {
	m.guard(nil)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mounts, m.Number)
}

// forget takes a mount out of the list and remembers what became of it.
func (s *Set) forget(m *Mount, what string) {
	s.drop(m)
	s.past.note(Gone{ID: m.ID, Plugin: m.Name(), What: what})
}

// Down says why dead mounts are not loaded again by themselves; "": they are.
func (s *Set) Down() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.downLocked(time.Now())
}

func (s *Set) downLocked(now time.Time) string {
	s.deaths = slices.DeleteFunc(s.deaths, func(d death) bool { return now.Sub(d.at) > time.Minute })
	if len(s.deaths) < limits.WorkerDeaths {
		return ""
	}
	return fmt.Sprintf("the worker process died %d times within a minute; nothing is mounted again by itself", len(s.deaths))
}

// death is the end of one worker, which each of its mounts is told of.
type death struct {
	worker uint64
	at     time.Time
}

// died counts the death of a worker once for all its mounts, and says whether
// they may be loaded again by themselves.
func (s *Set) died(worker uint64, at time.Time) (again bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.ContainsFunc(s.deaths, func(d death) bool { return d.worker == worker }) {
		s.deaths = append(s.deaths, death{worker, at})
	}
	return s.downLocked(at) == ""
}

func recent(times []time.Time, now time.Time) []time.Time {
	return slices.DeleteFunc(times, func(t time.Time) bool { return now.Sub(t) > time.Minute })
}

// Mount runs the source, mounts the plugin that it returns and waits until it
// has settled. On an error nothing is mounted and the id is used up; a plugin
// that waits for services is a success.
func (s *Set) Mount(ctx context.Context, source string) (*Mounted, error) {
	return s.bring(ctx, source, nil)
}

// bring mounts a plugin, beside what there is or in the place of another.
func (s *Set) bring(ctx context.Context, source string, old *Mount) (*Mounted, error) {
	if len(source) > limits.Source {
		return nil, fmt.Errorf("the code has %d bytes, more than the limit of %d: split the plugin into several that provide and inject services", len(source), limits.Source)
	}
	starting, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := s.reserve(source, cancel, old)
	if err != nil {
		return nil, err
	}
	err = m.start(starting)
	close(m.started)
	if err == nil && old != nil {
		err = m.ready(old)
	}
	switch {
	case err == nil && !m.ending.Load():
		if old != nil {
			return s.swap(ctx, m, old)
		}
		s.happened(ctx, m, Came, "")
		return s.mounted(ctx, m), nil
	case !m.ending.CompareAndSwap(false, true): // whoever unmounts it ends it
		m.abort(ctx)
		return nil, &Failure{Text: m.who() + " was unmounted while it was being mounted; nothing is mounted"}
	}
	m.abort(ctx)
	_, _ = m.end(context.WithoutCancel(ctx)) // why it failed says more than what its disposers did
	s.forget(m, "failed to mount: "+plain.Line(err.Error(), limits.SourceLine))
	return nil, s.teach(m, old, err)
}

// reserve takes the next id. An unmount while the mount starts calls cancel.
func (s *Set) reserve(source string, cancel context.CancelFunc, old *Mount) (*Mount, error) {
	s.mu.Lock()
	if len(s.mounts) >= limits.Mounts && old == nil {
		s.mu.Unlock()
		return nil, fmt.Errorf("%d temporary Plugins are mounted, the most that are allowed; cordis_unmount some first", limits.Mounts)
	}
	m := newMount(s, s.past.number(), source, cancel)
	if old != nil {
		m.stage = s.ctx.Runtime().NewStage(cordis.StageOptions{Replaces: []*cordis.Fiber{old.Fiber()}})
	}
	s.mounts[m.Number] = m
	s.mu.Unlock()
	if s.cfg.Audit != nil {
		if err := s.cfg.Audit(m.ID, source); err != nil {
			close(m.started)
			m.abort(context.Background())
			s.forget(m, "was refused: the audit file could not be written")
			return nil, fmt.Errorf("%s is not mounted: write the audit file: %w", m.ID, err)
		}
	}
	return m, nil
}

// teach says what a failed mount leaves behind, and how to replace.
func (s *Set) teach(m, old *Mount, err error) error {
	text := plain.Error(err.Error())
	if e := new(sandbox.Error); errors.As(err, &e) && e.Code == wire.CodeSyntax && e.Fault != nil {
		text = parseText(e.Fault)
	}
	own, other := m.who(), "temporary Plugin"
	switch {
	case strings.Contains(text, "already registered by "+own), strings.Contains(text, "it is provided by temporary Plugin "+m.ID):
		text += " — this plugin itself did that, earlier in apply: do it once"
	case strings.Contains(text, "already registered by plugin file"), strings.Contains(text, "it is provided by plugin file"):
		text += " — a plugin file is not replaced by a mount: edit that file, or choose another name"
	case strings.Contains(text, "already registered by "+other), strings.Contains(text, "it is provided by "+other):
		text += ` — to REPLACE something an earlier temporary Plugin registered, first cordis_unmount that Plugin's id (find it with cordis_inspect what:"temporary"), then mount the new version. In one step, so that it is never missing: cordis_mount with replaces and that id.`
	}
	text = fmt.Sprintf("%s\n(Nothing is mounted; the id %s is used up.)", text, m.ID)
	if old != nil {
		text += "\n" + old.stays()
	}
	return &Failure{Text: text, Err: err}
}

// parseText teaches what a parser refused: the place, and the hint that fits.
func parseText(f *wire.Fault) string {
	return "temporary Plugin code failed to parse:\n" + f.Excerpt + "\n" + hintOf(f, "`code` runs as the BODY of an async function. Check the balance of brackets and quotes: a `});` closes a call that was never opened; a plain `return { … }` ends with `}`.")
}

// hintOf is what the parser advises, or else what is given.
func hintOf(f *wire.Fault, otherwise string) string {
	if _, hint, found := strings.Cut(f.Message, "\n"); found {
		return hint
	}
	return otherwise
}

// Failure is the error of a failed mount or unmount, as the model reads it.
type Failure struct {
	Text string
	Err  error
}

func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// named is the mount of an id, or what there is to say of that.
func (s *Set) named(id string) (*Mount, error) {
	m, ok := s.Get(id)
	if ok {
		return m, nil
	}
	text := fmt.Sprintf("no temporary Plugin with id %q (list them with cordis_inspect what:\"temporary\")", plain.Line(id, limits.Name))
	if fate := s.Fate(id); fate != "" {
		text += "; " + id + " " + fate
	}
	return nil, &Failure{Text: text}
}

// Unmount disposes a mount and returns when everything that it owned is undone,
// or when the limits are passed, which the receipt then says.
func (s *Set) Unmount(ctx context.Context, id string) (*Receipt, error) {
	m, err := s.named(id)
	if err != nil {
		return nil, err
	}
	if !m.ending.CompareAndSwap(false, true) {
		return nil, &Failure{Text: fmt.Sprintf("%s is already being unmounted; that goes on by itself", m.who())}
	}
	return s.unmount(ctx, s.parting(m, "was unmounted", nil)), nil
}
