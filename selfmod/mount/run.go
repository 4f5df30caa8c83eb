package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
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

// kind sorts the effects of a run for limits and receipts.
type kind int

const (
	kindTool kind = iota
	kindService
	kindListener
	kindTimer
	kindEffect
	kinds
)

// limitOf is how many effects of a kind a mount may have, and what they are called.
var limitOf = [kinds]struct {
	max  int64
	what string
}{
	{limits.Tools, "tools"}, {limits.Services, "services"}, {limits.Listeners, "listeners"},
	{limits.Timers, "timers"}, {limits.Handles, "effects"},
}

// run is one execution of apply and everything that it registered.
type run struct {
	m  *Mount
	id uint32
	vm *sandbox.VM
	c  *cordis.Context

	over   chan struct{} // closed when the run is retired
	counts [kinds]atomic.Int64

	bindMu  sync.Mutex // orders what the machine is told of optional services
	applied bool
	rebound []string // optional services that changed while apply ran

	mu            sync.Mutex
	lastEffect    uint32
	effects       map[uint32]*effect
	lateCallbacks atomic.Int32

	tools  []string          // names of tools that it has registered, the last ones
	guards map[uint32]string // effects that guard, and what event
	up     bool              // apply has succeeded
	nexts  map[uint64]func(context.Context) (json.RawMessage, error)
	execs  map[uint64]*tool.Exec

	hosted hosted
}

// effect is one registration; release takes it out of the counts, once.
type effect struct {
	handle  *cordis.Handle
	release func()
}

func newRun(m *Mount, vm *sandbox.VM, c *cordis.Context, id uint32) *run {
	return &run{
		m: m, id: id, vm: vm, c: c, over: make(chan struct{}), effects: map[uint32]*effect{}, guards: map[uint32]string{},
		nexts: map[uint64]func(context.Context) (json.RawMessage, error){}, execs: map[uint64]*tool.Exec{},
	}
}

// retire ends the run: its façade refuses and its waits end.
func (r *run) retire(ctx context.Context) error {
	close(r.over)
	r.m.mu.Lock()
	if r.m.run == r {
		r.m.run = nil
	}
	r.m.mu.Unlock()
	err := r.endHosted(ctx)
	if !r.m.ending.Load() { // else the machine is closed at once, with all that is in it
		r.vm.Retire(r.id)
	}
	return err
}

// ended says whether the run is over.
func (r *run) ended() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// errOver is what a façade of a run that is over is told.
var errOver = errors.New("this part of the plugin has been unmounted: its ctx can no longer be used")

// The verbs of the façade, by how they are answered.
var (
	syncVerbs = map[string]func(*run, context.Context, json.RawMessage) (any, error){
		"tool": (*run).registerTool, "on": (*run).listen, "provide": (*run).provide, "timer": (*run).timer,
		"effect": (*run).effect, "schemas": (*run).schemas, "get": (*run).schema, "live": (*run).live,
		"service": (*run).callSync,
	}
	asyncVerbs = map[string]func(*run, context.Context, json.RawMessage) (any, error){
		"sleep": (*run).sleep, "next": (*run).next, "dispose": (*run).dispose,
		"service": (*run).callAsync, "pull": (*run).pull, "stop": (*run).stop,
	}
	sendVerbs = map[string]func(*run, json.RawMessage){
		"progress": (*run).progress, "defer": (*run).deferContext, "conclude": (*run).conclude,
		"fired": (*run).settled, "gone": (*run).settled, "cancel": (*run).cancelCall, "drop": (*run).drop,
	}
)

// Sync answers a façade that waits.
func (m *Mount) Sync(ctx context.Context, a sandbox.Ask) (json.RawMessage, error) {
	return m.answer(ctx, a, syncVerbs)
}

// Async answers a façade that goes on.
func (m *Mount) Async(ctx context.Context, a sandbox.Ask) (json.RawMessage, error) {
	return m.answer(ctx, a, asyncVerbs)
}

func (m *Mount) answer(ctx context.Context, a sandbox.Ask, verbs map[string]func(*run, context.Context, json.RawMessage) (any, error)) (json.RawMessage, error) {
	verb, ok := verbs[a.Verb]
	if !ok {
		return nil, fmt.Errorf("unknown request %q", plain.Line(a.Verb, limits.Name))
	}
	r := m.current(a.Run)
	if r == nil {
		return nil, errOver
	}
	v, err := verb(r, ctx, a.Payload)
	if err != nil || v == nil {
		return nil, err
	}
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}
	return json.Marshal(v)
}

// Send takes a one-way message.
func (m *Mount) Send(_ context.Context, a sandbox.Ask) {
	if verb, ok := sendVerbs[a.Verb]; ok {
		if r := m.current(a.Run); r != nil {
			verb(r, a.Payload)
		}
	}
}

// register makes an effect of the run, and answers with its number. The limit is checked before, and the
// place in the count is given back when the effect is undone.
func (r *run) register(k kind, do func(id uint32, release func()) (*cordis.Handle, error)) (any, error) {
	if r.counts[k].Add(1) > limitOf[k].max {
		r.counts[k].Add(-1)
		return nil, fmt.Errorf("%s may have %d %s at a time, and this one has that many", r.m.sort(), limitOf[k].max, limitOf[k].what)
	}
	r.mu.Lock()
	r.lastEffect++
	id := r.lastEffect
	e := &effect{}
	r.effects[id] = e
	r.mu.Unlock()
	var once sync.Once
	e.release = func() {
		once.Do(func() {
			r.counts[k].Add(-1)
			r.mu.Lock()
			delete(r.effects, id)
			_, guarded := r.guards[id]
			delete(r.guards, id)
			r.mu.Unlock()
			if guarded {
				r.noteGuards()
			}
		})
	}
	h, err := do(id, e.release)
	if err != nil {
		e.release()
		return nil, err
	}
	r.mu.Lock()
	e.handle = h
	r.mu.Unlock()
	return json.RawMessage(append(strconv.AppendUint([]byte(`{"effect":`), uint64(id), 10), '}')), nil
}

// started notes that apply has succeeded.
func (r *run) started() {
	r.mu.Lock()
	r.up = true
	r.mu.Unlock()
	r.noteGuards()
}

// effectNamed is the standing effect that a message names; nil: it is gone.
func (r *run) effectNamed(payload json.RawMessage) (*effect, error) {
	var p struct {
		Effect uint32 `json:"effect"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read effect: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.effects[p.Effect], nil
}

// dispose undoes one effect on the author's request.
func (r *run) dispose(ctx context.Context, payload json.RawMessage) (any, error) {
	e, err := r.effectNamed(payload)
	if err != nil || e == nil {
		return nil, err
	}
	r.mu.Lock()
	h := e.handle
	r.mu.Unlock()
	if h == nil {
		return nil, nil
	}
	defer e.release()
	return nil, h.Dispose(ctx)
}

// settled takes an effect out of the counts that undid itself.
func (r *run) settled(payload json.RawMessage) {
	if e, err := r.effectNamed(payload); err == nil && e != nil {
		e.release()
	}
}

// effect registers a disposer of the author's.
func (r *run) effect(_ context.Context, payload json.RawMessage) (any, error) {
	var p struct {
		Label string `json:"label"`
		Fn    uint32 `json:"fn"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read effect: %w", err)
	}
	label := plain.Name(p.Label)
	if label == "" {
		label = "ctx.effect()"
	}
	return r.register(kindEffect, func(_ uint32, release func()) (*cordis.Handle, error) {
		return r.c.Defer(label, func(ctx context.Context) error {
			defer release()
			if r.vm.Dead() != nil {
				return nil // the state that it would undo is gone with the machine
			}
			_, err := r.vm.Invoke(ctx, sandbox.Call{Kind: "dispose", Run: r.id, Fn: p.Fn, Args: empty, Entry: "the disposer of " + label})
			switch {
			case err == nil, sandbox.IsCode(err, sandbox.CodeDied), sandbox.IsCode(err, sandbox.CodeClosed), sandbox.IsCode(err, wire.CodeNoMount):
				return nil // undone, or gone with the machine
			case r.vm.Dead() == nil: // else it is known already
				r.m.fault(err)
			}
			return err
		})
	})
}

var empty = json.RawMessage(`{}`)

// timer registers a timer of the timer service.
func (r *run) timer(_ context.Context, payload json.RawMessage) (any, error) {
	var p struct {
		Kind  string  `json:"kind"`
		Ms    float64 `json:"ms"`
		Fn    uint32  `json:"fn"`
		Label string  `json:"label"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read timer: %w", err)
	}
	if !r.injects(timerName) {
		return nil, errors.New("the timer verbs need the timer service. Declare it: inject: ['timer', …] on your plugin")
	}
	d := duration(p.Ms)
	label := plain.Name(p.Label)
	if p.Kind == "interval" {
		d = max(d, time.Millisecond)
		var busy atomic.Bool
		return r.register(kindTimer, func(uint32, func()) (*cordis.Handle, error) {
			return r.c.Interval(d, func(ctx context.Context) {
				if busy.CompareAndSwap(false, true) { // a tick that finds the last one running is skipped
					defer busy.Store(false)
					r.call(ctx, p.Fn, label)
				}
			})
		})
	}
	return r.register(kindTimer, func(_ uint32, release func()) (*cordis.Handle, error) {
		return r.c.Timeout(d, func(ctx context.Context) {
			release()
			r.call(ctx, p.Fn, label)
		})
	})
}

// call enters a timer's function; what it throws is the mount's. The fiber
// cancels its timers' contexts when it begins to drain; the calls that it waits
// for may need their timers still.
func (r *run) call(ctx context.Context, fn uint32, label string) {
	if r.ended() || ctx.Err() != nil && !r.serving() && r.lateCallbacks.Add(1) > maxLateCallbacks {
		return
	}
	if _, err := r.vm.Invoke(context.WithoutCancel(ctx), sandbox.Call{Kind: "callback", Run: r.id, Fn: fn, Args: empty, Entry: "the callback of " + label}); err != nil && r.vm.Dead() == nil {
		r.m.fault(err)
	}
}

// maxLateCallbacks is how many timers of a run fire while it is drained and none
// of its own calls is under way: what another plugin's call waits for does, and
// timers that start timers without end do not hold up an unmount.
const maxLateCallbacks = 200

// serving says whether a tool or a waterfall listener of the run is being called.
func (r *run) serving() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.execs)+len(r.nexts) > 0
}

// sleep settles a promise of ctx.timeout(ms). Calls that run while the mount
// is drained may go on sleeping; the end of the run ends them.
func (r *run) sleep(ctx context.Context, payload json.RawMessage) (any, error) {
	var p struct {
		Ms float64 `json:"ms"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read timer: %w", err)
	}
	if !r.injects(timerName) {
		return nil, errors.New("ctx.timeout needs the timer service. Declare it: inject: ['timer', …] on your plugin")
	}
	if r.counts[kindTimer].Add(1) > limits.Timers {
		r.counts[kindTimer].Add(-1)
		return nil, fmt.Errorf("%s may have %d timers at a time, and this one has that many", r.m.sort(), limits.Timers)
	}
	defer r.counts[kindTimer].Add(-1)
	t := time.NewTimer(duration(p.Ms))
	defer t.Stop()
	select {
	case <-t.C:
		return nil, nil
	case <-r.over:
		return nil, cordis.ErrDisposed
	}
}

// maxDelay bounds what a timer can be asked for: the largest that cannot overflow.
const maxDelay = 24 * 24 * time.Hour

func duration(ms float64) time.Duration {
	if math.IsNaN(ms) || ms < 0 {
		return 0
	}
	if ms > float64(maxDelay.Milliseconds()) {
		return maxDelay
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// next runs the rest of a waterfall for a listener that asks for it.
func (r *run) next(ctx context.Context, payload json.RawMessage) (any, error) {
	id, err := callOf(payload)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	next := r.nexts[id]
	r.mu.Unlock()
	if next == nil {
		return nil, errors.New("next() was called after its event was over")
	}
	raw, err := next(ctx)
	if err != nil || raw == nil {
		return nil, err
	}
	return raw, nil
}

// callOf reads which call a message belongs to: a number, or its decimal text.
func callOf(payload json.RawMessage) (uint64, error) {
	var p struct {
		Call json.Number `json:"call"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return 0, fmt.Errorf("read call: %w", err)
	}
	var id uint64
	if _, err := fmt.Sscan(p.Call.String(), &id); err != nil {
		return 0, fmt.Errorf("read call: %w", err)
	}
	return id, nil
}
