package mount

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// of says what becomes of what a listener of an event answers. Where that is a
// decision, whether a tool may be called or a service may act, it is a guard: it can
// only tighten, and it fails closed.
func (l *listener) of(ev cordis.Event) {
	if l.mode != cordis.ModeWaterfall {
		return
	}
	run, _ := reflect.TypeOf(ev).MethodByName("Run") // every waterfall has it
	switch answer := run.Type.Out(0); {
	case answer == reflect.TypeFor[tool.Decision]():
		l.guards = true
	case l.event != tool.AroundExecute.Name() && l.event != tool.PostExecute.Name():
		l.answer = answer
	}
}

// addGuard notes that an effect guards an event. A guard of the first apply counts
// once that has succeeded: half a mount denies nothing by being down.
func (r *run) addGuard(id uint32, event string) {
	r.mu.Lock()
	r.guards[id] = event
	r.mu.Unlock()
	r.noteGuards()
}

func (r *run) noteGuards() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.up {
		return
	}
	events := make(map[string]bool, len(r.guards))
	for _, event := range r.guards {
		events[event] = true
	}
	r.m.guard(events)
}

// guard notes what events the mount guards: while it is not active it denies them.
func (m *Mount) guard(events map[string]bool) {
	to := &events
	if len(events) == 0 {
		to = nil
	}
	had := m.guarding.Swap(to)
	switch {
	case had == nil && to != nil:
		m.set.guards.Add(1)
		m.set.countCalls()
	case had != nil && to == nil:
		m.set.guards.Add(-1)
		m.set.countCalls()
	}
}

// countCalls knows which calls of tools guards are being asked about, as long as there
// are guards.
func (s *Set) countCalls() {
	s.countMu.Lock()
	h, want := s.counting, s.guards.Load() > 0
	if want == (h != nil) {
		s.countMu.Unlock()
		return
	}
	s.counting = nil
	if want {
		// Where it is refused the toolset goes, and its mounts with it.
		s.counting, _ = tool.PreExecute.On(s.ctx, func(ctx context.Context, _ *tool.Exec, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			defer s.decides()()
			return next(ctx)
		}, cordis.Prepend())
	}
	s.countMu.Unlock()
	if h != nil {
		_ = h.Dispose(context.Background()) // it has no disposer that could fail
	}
}

// guards says whether the mount guards an event.
func (m *Mount) guards(event string) bool {
	events := m.guarding.Load()
	return events != nil && (*events)[event]
}

// watch has an event denied while a mounted guard of it is down, and knows which
// dispatches of it are under way. The calls of tools are looked after by the registry's
// guard, and by countCalls.
func (s *Set) watch(event string) {
	if event == tool.PreExecute.Name() {
		return
	}
	s.mu.Lock()
	had := s.watched[event]
	if s.watched == nil {
		s.watched = map[string]bool{}
	}
	s.watched[event] = true
	s.mu.Unlock()
	ev, ok := cordis.LookupEvent(event)
	if had || !ok {
		return
	}
	_, err := ev.Listen(s.ctx, func(ctx context.Context, _ any, next func(context.Context) (any, error)) (any, error) {
		defer s.decides()()
		heard := &hearers{}
		ctx = context.WithValue(ctx, hearersKey{}, heard)
		before, denied := s.hearing(event)
		if denied != nil {
			return *denied, nil
		}
		v, err := next(ctx)
		if err != nil {
			return v, err
		}
		// One that went down meanwhile, or came back, may not have heard it.
		after, denied := s.hearing(event)
		if denied != nil {
			return *denied, nil
		}
		for m, run := range before {
			now, guards := after[m]
			if guards && now != run || m.replaced.Load() != 0 && m.Fiber().State() != cordis.Active && !heard.has(m) {
				return tool.Deny(denial(event, m, "being restarted")), nil
			}
		}
		return v, nil
	}, cordis.Prepend())
	if err != nil { // the toolset goes, and its mounts with it
		s.mu.Lock()
		delete(s.watched, event)
		s.mu.Unlock()
	}
}

// hearing gives the mounts that guard an event, with their runs, or the denial if
// one of them is down.
func (s *Set) hearing(event string) (map[*Mount]*run, *tool.Decision) {
	if s.guards.Load() == 0 {
		return nil, nil
	}
	var up map[*Mount]*run
	for _, m := range s.List() {
		if !m.guards(event) {
			continue
		}
		if state := m.guardDown(^tool.Token(0)); state != "" {
			d := tool.Deny(denial(event, m, state))
			return nil, &d
		}
		if up == nil {
			up = map[*Mount]*run{}
		}
		m.mu.Lock()
		up[m] = m.run
		m.mu.Unlock()
	}
	return up, nil
}

// keptCalls is how many of the last calls are known that a guard has decided about.
const keptCalls = 1024

// heard notes that the mount's guard has decided, so that what it decided about is not
// denied when another has its place before the call comes by here again.
func (m *Mount) heard(ctx context.Context, arg any) {
	if e, ok := arg.(*tool.Exec); ok {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.calls == nil {
			m.calls = new([keptCalls]tool.Token)
		}
		m.calls[m.lastCall%keptCalls] = e.Token
		m.lastCall++
		return
	}
	if h, ok := ctx.Value(hearersKey{}).(*hearers); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, m)
	}
}

// hasHeard says whether the guard has decided about a call.
func (m *Mount) hasHeard(call tool.Token) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls != nil && slices.Contains(m.calls[:], call)
}

// hearers are the mounts that have decided about one event.
type hearers struct {
	mu  sync.Mutex
	all []*Mount
}

type hearersKey struct{}

func (h *hearers) has(m *Mount) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Contains(h.all, m)
}

// onStage has what a stage replaces go without a gap, if the mount is on it: calls
// that begin after the swap ask the guards of what is new, and those under way the
// ones that they found.
func (m *Mount) onStage(st *cordis.Stage) {
	m.mu.Lock()
	told := m.staging == st
	m.staging = st
	m.mu.Unlock()
	if told {
		return
	}
	var gone []*Mount
	st.OnCommit(func() {
		for _, other := range m.set.List() {
			if f := other.Fiber(); other != m && f != nil && st.Takes(f) {
				gone = append(gone, other)
			}
		}
		for _, f := range st.Claimed() {
			if other := Of(f); other != nil {
				gone = append(gone, other)
				m.tookOver(other, st)
			}
		}
	})
	st.Linger(func(ctx context.Context) { // the swap is done
		for _, other := range gone {
			other.replaced.Store(uint64(tool.LastToken()) + 1)
		}
		for _, other := range gone {
			if other.guarding.Load() != nil {
				other.set.decided(ctx)
			}
		}
	})
}

// decides notes that guards are about to be asked, until the function is called.
func (s *Set) decides() (done func()) {
	over := make(chan struct{})
	s.mu.Lock()
	s.deciding[over] = struct{}{}
	s.mu.Unlock()
	return func() {
		close(over)
		s.mu.Lock()
		delete(s.deciding, over)
		s.mu.Unlock()
	}
}

// decided waits until everything that guards are being asked about now is decided.
func (s *Set) decided(ctx context.Context) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.deciding))
	s.mu.Unlock()
	for _, over := range all {
		select {
		case <-over:
		case <-ctx.Done():
			return
		}
	}
}

// tookOver does the bookkeeping of a temporary plugin that a stage has claimed, if it
// was for names of this plugin file.
func (m *Mount) tookOver(other *Mount, st *cordis.Stage) {
	if m.code == nil {
		return
	}
	mine := append(m.toolNames(), m.Provides()...)
	for _, name := range append(other.toolNames(), other.Provides()...) {
		if slices.Contains(mine, name) {
			other.Retire(m.ID, func() { _ = st.Wait(context.Background()) }) // it ends with what lingers
			return
		}
	}
}

func denial(event string, m *Mount, state string) string {
	return fmt.Sprintf("%s was denied: %s listens to it and is %s, so nothing can be allowed; %s removes its guard",
		event, m.who(), state, m.remedy())
}

// answered is what a listener made of an event that goes on without it: where it
// fails, is too late or answers what the event cannot take, it is passed over, and
// its mount told once. The very result of next() counts as untouched.
func (l *listener) answered(ctx context.Context, arg any, raw json.RawMessage, err error, rest *rest) (any, error) {
	if rest.asked() && err == nil {
		if value, theirs, err := rest.outcome(ctx); err == nil && bytes.Equal(theirs, raw) {
			l.failing.Store(false)
			return value, nil
		}
	}
	var answer any
	if err == nil {
		answer, err = l.read(arg, raw)
	}
	if err == nil {
		l.failing.Store(false)
		return answer, nil
	}
	value, _, failed := rest.outcome(ctx)
	if failed == nil && !sandbox.IsCode(err, sandbox.CodeClosed) && l.failing.CompareAndSwap(false, true) {
		l.r.m.fault(fmt.Errorf("%s was passed over: %w", l.entry(), err))
	}
	return value, failed
}

// read makes what a listener returned the answer of the event. A payload says with
// Accepts, and an answer with Validate, what more is asked of it.
func (l *listener) read(arg any, raw json.RawMessage) (any, error) {
	if absent(raw) {
		return nil, errors.New("it returned nothing; return next(), or an answer of your own")
	}
	out := reflect.New(l.answer)
	if err := json.Unmarshal(raw, out.Interface()); err != nil {
		return nil, fmt.Errorf("it returned %s, which is no answer: %w", plain.Preview(string(raw)), err)
	}
	answer := out.Elem().Interface()
	if a, ok := answer.(interface{ Validate() error }); ok {
		if err := a.Validate(); err != nil {
			return nil, err
		}
	}
	if a, ok := arg.(interface{ Accepts(answer any) error }); ok {
		if err := a.Accepts(answer); err != nil {
			return nil, err
		}
	}
	return answer, nil
}
