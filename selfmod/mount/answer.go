package mount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// Mounted tells what a mount brought.
type Mounted struct {
	Mount     *Mount
	Tools     []*tool.View
	Came      Undone   // what it registered, by kind
	Activated []Other  // other plugins that became active
	Failed    []Failed // other plugins that failed
	// Of one that replaced another: what that took with it, and which other plugins
	// use the new one's services in place of the old one's.
	Replaces  bool // another, which Replaced is nil of where it was unmounted meanwhile
	Replaced  *Receipt
	Restarted []Other
}

// Other is another plugin that a mount or an unmount moved.
type Other struct {
	Name  string
	ID    string   // of a temporary plugin; else empty
	Tools []string // that it has now
}

func (s *Set) other(f *cordis.Fiber) Other {
	o := Other{Name: plain.Name(f.Name())}
	if m := Of(f); m != nil {
		o.ID = plain.Name(m.ID)
		for _, v := range m.Tools() {
			o.Tools = append(o.Tools, v.Name)
		}
	}
	return o
}

// Failed is another plugin that failed.
type Failed struct {
	Name  string `json:"name"`
	Error string `json:"error"`
}

// Receipt tells what an unmount undid.
type Receipt struct {
	ID, Plugin string
	Undone     Undone
	GoneTools  []string
	GoneNames  []string // services
	Parked     []Other  // plugins that wait again
	Drained    bool     // every running call has ended
	Abandoned  int      // calls that still ran when the limit was passed
	Left       int      // effects that could not be undone
	Problem    string   // of a disposer; "": none
	GoesOn     bool     // asked for from inside: the disposal goes on
}

// Undone counts what was undone, by kind.
type Undone struct {
	Tools     int `json:"tools"`
	Services  int `json:"services"`
	Listeners int `json:"listeners"`
	Timers    int `json:"timers"`
	Effects   int `json:"effects"`
}

// settleOthers is how long an answer waits for other plugins that a mount or
// an unmount set in motion.
const settleOthers = 2 * time.Second

// needing are the plugins that require one of the named services, in the order
// in which they were mounted, without those already seen.
func (s *Set) needing(names []string, seen map[*cordis.Fiber]bool) []*cordis.Fiber {
	if len(names) == 0 {
		return nil
	}
	var list []*cordis.Fiber
	for _, f := range s.ctx.Runtime().Fibers() {
		if seen[f] || f.Plugin() == nil {
			continue
		}
		for _, d := range f.Plugin().Inject {
			if !d.Optional && slices.Contains(names, d.Name) {
				seen[f] = true
				list = append(list, f)
				break
			}
		}
	}
	return list
}

// mounted collects the consequences of a successful mount: what waited for its
// services, and in turn for theirs, has come to rest.
func (s *Set) mounted(ctx context.Context, m *Mount) *Mounted {
	out := &Mounted{Mount: m, Tools: m.Tools()}
	out.Came = m.Came()
	provides := m.Fiber().Provides()
	if len(provides) == 0 {
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, settleOthers)
	defer cancel()
	seen := map[*cordis.Fiber]bool{m.Fiber(): true}
	for next := s.needing(provides, seen); len(next) > 0; {
		var names []string
		for _, f := range next {
			if len(f.Waiting().Missing) > 0 {
				continue
			}
			_ = f.Await(ctx) // how it ended is read from its state
			switch f.State() {
			case cordis.Active:
				out.Activated = append(out.Activated, s.other(f))
				names = append(names, f.Provides()...)
			case cordis.Failed:
				out.Failed = append(out.Failed, Failed{plain.Name(f.Name()), plain.Line(errText(untouched(f.Err())), errorLine)})
			}
		}
		next = s.needing(names, seen)
	}
	return out
}

// dependents are the active plugins that an unmount will park: those that
// require what the mount provides, and in turn what they provide.
func (s *Set) dependents(m *Mount) []*cordis.Fiber {
	f := m.Fiber()
	if f == nil {
		return nil
	}
	var all []*cordis.Fiber
	seen := map[*cordis.Fiber]bool{f: true}
	for next := s.needing(f.Provides(), seen); len(next) > 0; {
		var names []string
		for _, d := range next {
			if d.State() == cordis.Active {
				all = append(all, d)
				names = append(names, d.Provides()...)
			}
		}
		next = s.needing(names, seen)
	}
	return all
}

// errorLine is how much of another plugin's error an answer shows.
const errorLine = 300

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Tools are the tools that the mount has registered now, in their order.
func (m *Mount) Tools() []*tool.View {
	f := m.Fiber()
	if f == nil {
		return nil
	}
	c := f.Context()
	if m.code != nil { // its mark is of the run
		m.mu.Lock()
		r := m.run
		m.mu.Unlock()
		if r == nil {
			return nil
		}
		c = r.c
	}
	return m.set.cfg.Registry.ListMount(c)
}

// Effects are the mount's standing effects.
func (m *Mount) Effects() []cordis.EffectInfo {
	if f := m.Fiber(); f != nil {
		return f.Effects()
	}
	return nil
}

// Came counts the mount's standing effects by kind.
func (m *Mount) Came() Undone { return count(m.Effects()) }

// ours are the labels of effects that the harness itself adds to a run.
var ours = map[string]bool{"run": true, `ctx.on("internal/service")`: true}

// count sorts effects by what their labels say.
func count(effects []cordis.EffectInfo) Undone {
	var u Undone
	for _, e := range effects {
		switch label := e.Label; {
		case ours[label]:
		case strings.HasPrefix(label, "tools.register("):
			u.Tools++
		case strings.HasPrefix(label, "ctx.provide("):
			u.Services++
		case strings.HasPrefix(label, "ctx.on("):
			u.Listeners++
		case label == "ctx.timeout()" || label == "ctx.interval()":
			u.Timers++
		default:
			u.Effects++
		}
	}
	return u
}

// OwnEffects are the effects without those that the harness itself adds.
func OwnEffects(effects []cordis.EffectInfo) []cordis.EffectInfo {
	return slices.DeleteFunc(slices.Clone(effects), func(e cordis.EffectInfo) bool { return ours[e.Label] })
}

// parting is what a mount takes with it, noted before it goes.
type parting struct {
	m          *Mount
	by         *Mount // in its place; nil: none
	fate       string // "was unmounted"
	undone     Undone
	dependents []*cordis.Fiber
	tools      []*tool.View
	services   []string
}

func (s *Set) parting(m *Mount, fate string, by *Mount) parting {
	p := parting{m: m, by: by, fate: fate, dependents: s.dependents(m), undone: count(m.Effects()), tools: m.Tools(), services: m.Provides()}
	if len(p.dependents) > 0 { // theirs may go, too
		p.tools = s.cfg.Registry.List(tool.ScopeOf(s.ctx))
	}
	return p
}

// unmount disposes the mount and collects the receipt.
func (s *Set) unmount(ctx context.Context, p parting) *Receipt {
	m := p.m
	out := &Receipt{ID: m.ID, Plugin: m.Name(), Undone: p.undone}
	receipt, err := m.end(context.WithoutCancel(ctx))
	if errors.Is(err, cordis.ErrSelf) {
		out.GoesOn = true
		s.spawn(func() {
			_, _ = m.Fiber().Dispose(context.Background()) // the one that goes on; its receipt nobody waits for
			_, _ = m.end(context.Background())
			s.forget(m, p.fate)
			s.happened(context.Background(), m, Went, "")
		})
		return out
	}
	s.forget(m, p.fate)
	s.happened(ctx, m, Went, "")
	out.Abandoned, out.Left = len(receipt.Abandoned), receipt.Left
	out.Drained = len(receipt.Abandoned) == 0
	if receipt.Err != nil {
		out.Problem = plain.Line(receipt.Err.Error(), errorLine)
	}
	out.Parked = s.parked(context.WithoutCancel(ctx), p.dependents)
	scope := tool.ScopeOf(s.ctx)
	for _, v := range p.tools {
		if v.Owner != m.Fiber() && !slices.Contains(p.dependents, v.Owner) {
			continue // it went for a reason of its own
		}
		if now, ok := s.cfg.Registry.Get(v.Name, scope); !ok || now.Owner != v.Owner && !p.by.owns(now) {
			out.GoneTools = append(out.GoneTools, v.Name)
			s.cfg.Registry.NoteGone(v.Name, v.Scope, p.gone(v))
		}
	}
	for _, name := range p.services {
		if _, ok := s.ctx.Get(name); !ok {
			out.GoneNames = append(out.GoneNames, name)
		}
	}
	return out
}

// owns says whether a tool is the mount's.
func (m *Mount) owns(v *tool.View) bool { return m != nil && v.Owner == m.Fiber() }

// Replace mounts a plugin in the place of another, in one step: the new one is active
// before the old one is drained, and calls that run there end there. On an error, and
// where the new one has to wait for services while the old one does not, the old one
// stays as it was.
func (s *Set) Replace(ctx context.Context, id, source string) (*Mounted, error) {
	old, err := s.named(id)
	switch {
	case err != nil:
		return nil, err
	case old.ending.Load():
		err = &Failure{Text: old.who() + " is being unmounted, so there is nothing to replace: mount without replaces"}
	case old.Fiber() == nil:
		err = &Failure{Text: old.who() + " is still being mounted: replace it when that has ended"}
	case !old.taken.CompareAndSwap(false, true):
		err = &Failure{Text: old.who() + " is being replaced by another call of cordis_mount at this moment"}
	default:
		defer old.taken.Store(false)
		return s.bring(ctx, source, old)
	}
	return nil, err
}

// ready says whether a mount can take the place of another.
func (m *Mount) ready(old *Mount) error {
	if m.Fiber().State() != cordis.Pending || !old.serves() {
		return nil
	}
	return fmt.Errorf("%s would have to wait for %s, which nothing provides now, while %s runs: mount what provides that first, or make it optional", m.who(), strings.Join(m.Waiting(), ", "), old.ID)
}

// serves says whether the mount is active or about to be.
func (m *Mount) serves() bool {
	f := m.Fiber()
	return f != nil && (f.State() == cordis.Active || f.State() == cordis.Loading)
}

// stays says what has become of a mount that could not be replaced: nothing.
func (m *Mount) stays() string {
	switch {
	case m.ending.Load():
		return m.who() + " was being unmounted meanwhile."
	case m.serves():
		return m.who() + " keeps serving, as it was."
	}
	return fmt.Sprintf("%s stays as it was (%s).", m.who(), m.StateText())
}

// abort ends the stage of a mount that does not take another's place.
func (m *Mount) abort(ctx context.Context) {
	if m.stage != nil {
		_ = m.stage.Abort(context.WithoutCancel(ctx)) // what its disposers said is logged
	}
}

// swap puts a mount that has settled in the place of another.
func (s *Set) swap(ctx context.Context, m, old *Mount) (*Mounted, error) {
	p := s.parting(old, "was replaced by "+m.ID, m)
	mine := old.ending.CompareAndSwap(false, true) // else it is being unmounted at this moment
	if err := m.stage.Commit(); err != nil {
		return nil, fmt.Errorf("replace %s: %w", old.ID, err) // only here a stage of a mount is ended
	}
	s.happened(ctx, m, Came, "")
	var receipt *Receipt
	if mine {
		_ = m.stage.Wait(context.WithoutCancel(ctx)) // calls that had found the old one's tools have begun
		receipt = s.unmount(ctx, p)
	}
	out := s.mounted(ctx, m)
	out.Replaces, out.Replaced = true, receipt
	before := map[string]bool{}
	for _, f := range p.dependents {
		before[s.other(f).key()] = true
	}
	out.Activated = slices.DeleteFunc(out.Activated, func(o Other) bool {
		if before[o.key()] {
			out.Restarted = append(out.Restarted, o)
		}
		return before[o.key()]
	})
	return out, nil
}

func (o Other) key() string { return o.ID + " " + o.Name }

// parked waits for plugins that an unmount set in motion, and gives those that wait
// again.
func (s *Set) parked(ctx context.Context, dependents []*cordis.Fiber) (list []Other) {
	if len(dependents) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, settleOthers)
	defer cancel()
	for _, f := range dependents {
		_ = f.Await(ctx) // how it ended is read from its state
		if f.State() == cordis.Pending {
			list = append(list, s.other(f))
		}
	}
	return list
}

// gone says with which mount a tool went.
func (p *parting) gone(v *tool.View) string {
	if v.Mount != nil && v.Mount.Number != p.m.Number {
		return fmt.Sprintf("its plugin, temporary Plugin %s (%s), waits for a service that went with %s (%s)", v.Mount.ID, plain.Name(v.Mount.Plugin), p.m.label(), strings.TrimPrefix(p.fate, "was "))
	}
	return fmt.Sprintf("it went with %s, which %s", p.m.who(), p.fate)
}

// toolError carries name and code of what was thrown, or of the limit that was
// passed, into the result.
func toolError(err error) error {
	var e *sandbox.Error
	if !errors.As(err, &e) {
		return err
	}
	t := &tool.Error{Name: sandboxError, Code: e.Code, Message: plain.Error(e.Error()), Err: err}
	if e.Code == sandbox.CodeThrown && e.Fault != nil {
		t.Name, t.Code = plain.Name(e.Fault.Name), plain.Name(e.Fault.Code)
		if t.Name == sandboxError {
			t.Name, t.Code = "Error", "" // only the sandbox speaks for itself
		}
	}
	return t
}
