package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// call is one entry under way. answered guards the one answer.
type call struct {
	kind      wire.Kind
	id, chain uint64
	vm        *VM
	ctx       context.Context
	entry     string
	answered  sync.Once
	result    chan outcome // buffered; exactly one
	phase     atomic.Pointer[string]

	apply uint64        // of a Load: the id of the Apply that may follow by itself, and its run
	run   uint32        // of that Apply, and of a Load that allows it
	taken chan struct{} // of an Apply that followed by itself: closed when it is taken over, or has ended

	// Guarded by the process's mu.
	early     *wire.Frame // its Result, which came before it was taken over
	abandoned bool
	life      context.Context // see Life
	cancel    context.CancelFunc
	timer     *time.Timer   // of what comes next: a sign of life, or the limit
	due       time.Time     // when the limit is passed, unless it is held
	holds     int           // how many hold it; see VM.Hold
	left      time.Duration // what is left of it then
}

// what names the entry in messages: the part of the call that it has come to.
func (c *call) what() string {
	if phase := c.phase.Load(); phase != nil {
		return inPhase(*phase, c.entry)
	}
	return c.entry
}

// phases are the parts of a call that have limits of their own.
var phases = map[string]string{"render": "output.render", "presentationMeta": "output.presentationMeta"}

func inPhase(phase, entry string) string {
	if name, ok := phases[phase]; ok {
		return name + " of " + entry
	}
	return entry
}

type outcome struct {
	stats wire.Stats
	value json.RawMessage
	err   *Error
}

func (c *call) answer(o outcome) { c.answered.Do(func() { c.result <- o }) }

type (
	chainKey struct{} // → the chain of a call, uint64
	callKey  struct{} // → *call
	laterKey struct{} // → whether nobody waits in an engine for it, bool
)

// begin registers a call, so that its answer finds it, and gives it the chain
// of the call that its context comes from. Its time begins.
func (p *process) begin(ctx context.Context, vm *VM, kind wire.Kind, entry string, limit time.Duration) (*call, *Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.cause != nil {
		return nil, &Error{Code: CodeDied, Mount: vm.name(), Entry: entry, Cause: "it is being replaced", Worker: p.num}
	}
	if p.vms[vm.num] != vm {
		return nil, vm.gone(entry)
	}
	if kind == wire.Invoke && vm.inflight >= limits.CallsInFlight {
		return nil, &Error{Code: CodeTooMany, Mount: vm.name(), Entry: entry,
			Cause: fmt.Sprintf("%d calls are in flight into this mount, the most that are allowed; wait for some to end", vm.inflight)}
	}
	p.nextID++
	c := &call{kind: kind, id: p.nextID, vm: vm, entry: entry, result: make(chan outcome, 1)}
	if chain, ok := ctx.Value(chainKey{}).(uint64); ok {
		c.chain = chain
	} else {
		c.chain = c.id
		ctx = context.WithValue(ctx, chainKey{}, c.chain)
	}
	p.enlist(ctx, c, limit)
	return c, nil
}

// end forgets a call.
func (p *process) end(c *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked(c)
}

func (p *process) endLocked(c *call) {
	if p.calls[c.id] != c {
		return
	}
	delete(p.calls, c.id)
	c.timer.Stop()
	if c.vm.ahead == c {
		c.vm.ahead = nil
		close(c.taken)
	}
	c.vm.inflight--
	if c.abandoned {
		c.vm.abandoned--
	}
	left := slices.DeleteFunc(p.chains[c.chain], func(x *call) bool { return x == c })
	if len(left) == 0 {
		delete(p.chains, c.chain)
	} else {
		p.chains[c.chain] = left
	}
}

// abandon leaves a call to itself: it is told to stop and counted. The answer
// says whether there are now too many of them; the caller then ends the VM, and
// says so to p.telling.
func (p *process) abandon(c *call) (tooMany bool) {
	p.mu.Lock()
	live := p.calls[c.id] == c && !c.abandoned
	if live {
		c.vm.lost()
		c.abandoned = true
		c.vm.abandoned++
	}
	if tooMany = live && c.vm.abandoned > limits.AbandonedCalls; tooMany {
		p.telling.Add(1)
	}
	cancel := c.cancel
	p.mu.Unlock()
	if live {
		if cancel != nil {
			cancel()
		}
		_ = p.w.Write(wire.Frame{Kind: wire.Cancel, ID: c.id, Chain: c.chain, Mount: c.vm.num}) // a worker that is gone runs nothing
	}
	return tooMany
}

// roundTrip sends the frame of c and waits for the answer, the limit or the
// context, whatever comes first. The call has ended or is abandoned on return.
func (p *process) roundTrip(ctx context.Context, c *call, f wire.Frame, limit time.Duration) outcome {
	f.Kind, f.ID, f.Chain, f.Mount = c.kind, c.id, c.chain, c.vm.num
	if later, _ := c.ctx.Value(laterKey{}).(bool); later {
		f.Flags |= wire.FlagLater
	}
	if err := p.w.Write(f); err != nil {
		c.timer.Stop()
		p.end(c)
		if errors.Is(err, wire.ErrTooLarge) {
			return outcome{err: &Error{Code: wire.CodeTooLarge, Mount: c.vm.name(), Entry: c.what(), Cause: err.Error()}}
		}
		p.kill(&Error{Code: CodeDied, Cause: "its pipe broke"}, 0)
		return outcome{err: &Error{Code: CodeDied, Mount: c.vm.name(), Entry: c.what(), Cause: "its pipe broke", Worker: p.num}}
	}
	return p.await(ctx, c, limit)
}

// await is roundTrip for a frame that was sent.
func (p *process) await(ctx context.Context, c *call, limit time.Duration) outcome {
	defer c.timer.Stop()
	for {
		select {
		case o := <-c.result:
			return o
		case <-ctx.Done():
			return p.leave(c, &Error{Code: wire.CodeCancelled, Mount: c.vm.name(), Entry: c.what(), Cause: "was cancelled"})
		case <-c.timer.C:
			go p.probe()
			if p.overdue(c) {
				return p.leave(c, &Error{Code: CodeCallTimeout, Mount: c.vm.name(), Entry: c.what(), Limit: limit})
			}
		}
	}
}

// overdue says whether a call whose timer fired is past its limit; else the
// timer runs again, or will when nobody holds the limit any more.
func (p *process) overdue(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.holds > 0 {
		return false
	}
	left := time.Until(c.due)
	if left > 0 {
		c.timer.Reset(left)
	}
	return left <= 0
}

// hold stops the time of a call until resume, which may be called again.
func (p *process) hold(vm *VM, id uint64) (resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.calls[id]
	if c == nil || c.vm != vm {
		return func() {}
	}
	if c.holds++; c.holds == 1 {
		c.timer.Stop()
		c.left = time.Until(c.due)
	}
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if c.holds--; c.holds == 0 && p.calls[id] == c {
			c.due = time.Now().Add(c.left)
			c.timer.Reset(c.left)
		}
	})
}

// leave abandons c with err, unless its answer came at the same moment.
func (p *process) leave(c *call, err *Error) outcome {
	select {
	case o := <-c.result:
		return o
	default:
	}
	if p.abandon(c) {
		c.vm.fail(&Error{Code: CodeAbandoned, Mount: c.vm.name(), Entry: c.what(),
			Cause: fmt.Sprintf("more than %d of its calls were abandoned and still run; the mount was stopped", limits.AbandonedCalls)})
		p.telling.Done()
	}
	return outcome{err: err}
}

// contextOf is the context of the call that asks. What a call that has ended left
// behind has only the chain of that call.
func (p *process) contextOf(f wire.Frame) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.calls[f.Call]; c != nil && c.chain == f.Chain {
		return c.ctx
	}
	return context.WithValue(context.Background(), chainKey{}, f.Chain)
}

// Life gives, for the context of a request, a context that ends when the call
// that asks is cancelled or overdue, as its signal in the VM does. It does not end
// when the call has an answer: what was begun meanwhile goes on.
func Life(ctx context.Context) context.Context {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return context.Background()
	}
	p := c.vm.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.life == nil {
		c.life, c.cancel = context.WithCancel(context.Background())
		if c.abandoned {
			c.cancel()
		}
	}
	return c.life
}
