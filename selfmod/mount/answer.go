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
}

// Other is another plugin that a mount or an unmount moved.
type Other struct {
	Name  string
	ID    string   // of a temporary plugin; else empty
	Tools []string // that it has now
}

func (s *Set) other(f *cordis.Fiber) Other {
	o := Other{Name: plain.Name(f.Name())}
	if m, ok := tool.MountOf(f.Context()); ok {
		o.ID = m.ID
		for _, v := range s.cfg.Registry.ListMount(f.Context()) {
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
	return m.set.cfg.Registry.ListMount(f.Context())
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

// unmount disposes the mount and collects the receipt.
func (s *Set) unmount(ctx context.Context, m *Mount) (*Receipt, error) {
	dependents := s.dependents(m)
	out := &Receipt{ID: m.ID, Plugin: m.Name(), Undone: count(m.Effects())}
	scope := tool.ScopeOf(s.ctx)
	tools := m.Tools()
	if len(dependents) > 0 { // theirs may go, too
		tools = s.cfg.Registry.List(scope)
	}
	services := m.Provides()
	receipt, err := m.end(context.WithoutCancel(ctx))
	if errors.Is(err, cordis.ErrSelf) {
		out.GoesOn = true
		s.spawn(func() {
			_, _ = m.Fiber().Dispose(context.Background()) // the one that goes on; its receipt nobody waits for
			_, _ = m.end(context.Background())
			s.forget(m, "was unmounted")
			s.happened(context.Background(), m, Went, "")
		})
		return out, nil
	}
	s.forget(m, "was unmounted")
	s.happened(ctx, m, Went, "")
	out.Abandoned, out.Left = len(receipt.Abandoned), receipt.Left
	out.Drained = len(receipt.Abandoned) == 0
	if receipt.Err != nil {
		out.Problem = plain.Line(receipt.Err.Error(), errorLine)
	}
	out.Parked = s.parked(context.WithoutCancel(ctx), dependents)
	for _, v := range tools {
		if v.Owner != m.Fiber() && !slices.Contains(dependents, v.Owner) {
			continue // it went for a reason of its own
		}
		if now, ok := s.cfg.Registry.Get(v.Name, scope); !ok || now.Owner != v.Owner {
			out.GoneTools = append(out.GoneTools, v.Name)
			s.cfg.Registry.NoteGone(v.Name, v.Scope, gone(v, m))
		}
	}
	for _, name := range services {
		if _, ok := s.ctx.Get(name); !ok {
			out.GoneNames = append(out.GoneNames, name)
		}
	}
	return out, nil
}

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
func gone(v *tool.View, m *Mount) string {
	if v.Mount != nil && v.Mount.Number != m.Number {
		return fmt.Sprintf("its plugin, temporary Plugin %s (%s), waits for a service that went with temporary Plugin %s (unmounted)", v.Mount.ID, plain.Name(v.Mount.Plugin), m.ID)
	}
	return fmt.Sprintf("it went with temporary Plugin %s (%s), which was unmounted", m.ID, m.Name())
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
