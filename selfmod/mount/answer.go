package mount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/tool"
)

// Mounted tells what a mount brought.
type Mounted struct {
	Mount     *Mount
	Tools     []*tool.View
	Listeners int
	Activated []string // other plugins that became active
	Failed    []Failed // other plugins that failed
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
	Parked     []string // plugins that wait again
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

// watch collects what happens to other plugins while a mount comes or goes.
type watch struct {
	of      *Mount
	handle  *cordis.Handle
	pending []*cordis.Fiber // that waited for services at the start

	mu      sync.Mutex
	changed map[*cordis.Fiber]bool
}

func (s *Set) watch(m *Mount) *watch {
	w := &watch{of: m, changed: map[*cordis.Fiber]bool{}}
	h, err := cordis.StatusChanged.On(s.ctx, func(_ context.Context, ch cordis.StatusChange) {
		if ch.Fiber == m.Fiber() {
			return
		}
		w.mu.Lock()
		w.changed[ch.Fiber] = true
		w.mu.Unlock()
	})
	if err == nil { // else the group is going, and there is nothing to tell
		w.handle = h
	}
	for _, f := range s.ctx.Runtime().Fibers() {
		if f.State() == cordis.Pending {
			w.pending = append(w.pending, f)
		}
	}
	return w
}

// woken notes the plugins that waited and need wait no longer: that they start
// may not have been told yet.
func (w *watch) woken() {
	if len(w.of.Provides()) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.pending {
		if f.State() != cordis.Disposed && len(f.Waiting().Missing) == 0 {
			w.changed[f] = true
		}
	}
}

func (w *watch) stop() {
	if w.handle != nil {
		_ = w.handle.Dispose(context.Background()) // a listener's removal cannot fail
	}
}

// settled waits until the plugins that were set in motion have come to rest.
func (w *watch) settled(ctx context.Context) []*cordis.Fiber {
	ctx, cancel := context.WithTimeout(ctx, settleOthers)
	defer cancel()
	seen := map[*cordis.Fiber]bool{}
	for {
		var f *cordis.Fiber
		w.woken()
		w.mu.Lock()
		for c := range w.changed {
			if !seen[c] {
				f = c
			}
		}
		w.mu.Unlock()
		if f == nil || ctx.Err() != nil {
			break
		}
		seen[f] = true
		_ = f.Await(ctx) // how it ended is read from its state
	}
	list := make([]*cordis.Fiber, 0, len(seen))
	for f := range seen {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b *cordis.Fiber) int { return int(a.ID()) - int(b.ID()) })
	return list
}

// mounted collects the consequences of a successful mount.
func (s *Set) mounted(ctx context.Context, m *Mount, w *watch) *Mounted {
	out := &Mounted{Mount: m, Tools: m.Tools()}
	out.Listeners = count(m.Fiber().Effects()).Listeners
	for _, f := range w.settled(ctx) {
		if f == m.Fiber() {
			continue
		}
		switch f.State() {
		case cordis.Active:
			out.Activated = append(out.Activated, plain.Name(f.Name()))
		case cordis.Failed:
			out.Failed = append(out.Failed, Failed{plain.Name(f.Name()), plain.Line(errText(f.Err()), errorLine)})
		}
	}
	return out
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
	w := s.watch(m)
	defer w.stop()
	out := &Receipt{ID: m.ID, Plugin: m.Name(), Undone: count(m.Effects())}
	scope := tool.ScopeOf(s.ctx)
	tools := s.cfg.Registry.List(scope)
	services := m.Provides()
	receipt, err := m.end(context.WithoutCancel(ctx))
	if errors.Is(err, cordis.ErrSelf) {
		out.GoesOn = true
		s.work.Go(func() {
			_, _ = m.Fiber().Dispose(context.Background()) // the one that goes on; its receipt nobody waits for
			_, _ = m.end(context.Background())
			s.forget(m, "was unmounted")
		})
		return out, nil
	}
	s.forget(m, "was unmounted")
	out.Abandoned, out.Left = len(receipt.Abandoned)+m.Abandoned(), receipt.Left
	out.Drained = len(receipt.Abandoned) == 0
	if receipt.Err != nil {
		out.Problem = plain.Line(receipt.Err.Error(), errorLine)
	}
	for _, f := range w.settled(ctx) {
		if f != m.Fiber() && f.State() == cordis.Pending {
			out.Parked = append(out.Parked, plain.Name(f.Name()))
		}
	}
	for _, v := range tools {
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

// gone says with which mount a tool went.
func gone(v *tool.View, m *Mount) string {
	if v.Mount != nil && v.Mount.Number != m.Number {
		return fmt.Sprintf("its plugin, temporary Plugin %s (%s), waits for a service that went with temporary Plugin %s (unmounted)", v.Mount.ID, plain.Name(v.Mount.Plugin), m.ID)
	}
	return fmt.Sprintf("it went with temporary Plugin %s (%s), which was unmounted", m.ID, m.Name())
}
