package sandbox

import (
	"context"
	"errors"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// A worker may go on from a Load to its Apply, see [Spec]. The host has the Apply as
// a call from the moment that the Load's Result is read. Until VM.Apply takes it
// over, which brings the run and its context, everything that the run asks for
// waits, and so does its Result: all that follows from either comes after that, as
// if the host had sent the Apply then.

// allow lets the Apply of run follow the Load c, and gives its id.
func (p *process) allow(c *call, run uint32) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.nextID++
	c.apply, c.run = p.nextID, run
	return c.apply
}

// follow makes the call of the Apply that follows the Load.
func (p *process) follow(load *call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	vm := load.vm
	if load.apply == 0 || load.abandoned || p.vms[vm.num] != vm {
		return
	}
	c := &call{
		kind: wire.Apply, id: load.apply, chain: load.apply, vm: vm, entry: "apply", run: load.run,
		result: make(chan outcome, 1), taken: make(chan struct{}),
	}
	p.enlist(context.WithValue(context.Background(), chainKey{}, c.chain), c, p.cfg.CallTimeout)
	vm.ahead = c
}

// enlist makes c a call under way. Its time begins. Called with mu held.
func (p *process) enlist(ctx context.Context, c *call, limit time.Duration) {
	c.ctx = context.WithValue(ctx, callKey{}, c)
	c.due = time.Now().Add(limit)
	c.timer = time.NewTimer(min(limit, p.cfg.VMTimeout+overdueAfter))
	c.vm.inflight++
	p.calls[c.id] = c
	p.chains[c.chain] = append(p.chains[c.chain], c)
}

// takeOver gives the Apply of the run that runs already a context, which must not
// be one of another call; nil: there is none.
func (p *process) takeOver(ctx context.Context, vm *VM, run uint32) *call {
	p.mu.Lock()
	c := vm.ahead
	if c == nil || c.run != run {
		p.mu.Unlock()
		return nil
	}
	vm.ahead = nil
	c.ctx = context.WithValue(context.WithValue(ctx, chainKey{}, c.chain), callKey{}, c)
	early := c.early
	close(c.taken)
	p.mu.Unlock()
	if early != nil {
		if err := p.result(*early); err != nil {
			e := &Error{Code: CodeProtocol}
			_ = errors.As(err, &e)
			p.kill(e, 0)
		}
	}
	return c
}

// tooEarly keeps the Result of an Apply that nobody has taken over yet.
func (p *process) tooEarly(c *call, f wire.Frame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c.vm.ahead != c {
		return false
	}
	kept := f // a copy, so that no other Result is put on the heap
	c.early = &kept
	return true
}

// untaken is closed when the run is taken over; nil: it needs not be.
func (p *process) untaken(vm *VM, run uint32) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if vm.ahead != nil && vm.ahead.run == run {
		return vm.ahead.taken
	}
	return nil
}

// Ahead says whether an Apply runs that nobody has taken over.
func (vm *VM) Ahead() bool {
	vm.p.mu.Lock()
	defer vm.p.mu.Unlock()
	return vm.ahead != nil
}
