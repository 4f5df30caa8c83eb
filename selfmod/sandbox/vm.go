package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// Sandbox runs mounts in workers. The zero value is not usable; see [New].
type Sandbox struct {
	cfg Config

	mu       sync.Mutex
	starting chan struct{} // closed when the start under way ended; nil: none
	p        *process
	nextVM   uint32
	closed   bool
}

// New returns a Sandbox; no worker is started yet. A value out of its range is
// refused, naming it and the range.
func New(cfg Config) (*Sandbox, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Sandbox{cfg: cfg}, nil
}

// Config is the configuration with its defaults filled in.
func (s *Sandbox) Config() Config { return s.cfg }

// Lock says what the present worker is locked down with; false: none runs.
func (s *Sandbox) Lock() (wire.Lock, bool) {
	s.mu.Lock()
	p := s.p
	s.mu.Unlock()
	if p == nil {
		return wire.Lock{}, false
	}
	return p.hello.Lock, true
}

// process is the running worker; the first caller starts one, others wait for it.
func (s *Sandbox) process(ctx context.Context) (*process, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, ErrClosed
		}
		if p := s.p; p != nil {
			p.mu.Lock()
			live := p.cause == nil && !p.ended
			p.mu.Unlock()
			if live {
				s.mu.Unlock()
				return p, nil
			}
		}
		if wait := s.starting; wait != nil {
			s.mu.Unlock()
			select {
			case <-wait:
				continue
			case <-ctx.Done():
				return nil, fmt.Errorf("wait for the worker: %w", ctx.Err())
			}
		}
		started := make(chan struct{})
		s.starting = started
		s.mu.Unlock()
		p, err := start(context.WithoutCancel(ctx), s.cfg)
		s.mu.Lock()
		s.starting = nil
		if err == nil && !s.closed {
			s.p = p
		}
		closed := s.closed
		s.mu.Unlock()
		close(started)
		if err != nil {
			return nil, err
		}
		if closed {
			p.quit()
			return nil, ErrClosed
		}
		return p, nil
	}
}

// Close ends the worker, with everything in it, in well under a second.
func (s *Sandbox) Close() {
	s.mu.Lock()
	s.closed = true
	p := s.p
	s.p = nil
	wait := s.starting
	s.mu.Unlock()
	if wait != nil {
		<-wait
	}
	if p != nil {
		p.quit()
	}
}

// VM is one mount's virtual machine in one worker. When it dies, all calls fail
// with the reason and it stays dead: load the source again for another.
type VM struct {
	s    *Sandbox
	p    *process
	num  uint32
	host Host
	who  atomic.Pointer[string] // the mount, for messages
	asks atomic.Int64

	unloaded atomic.Bool // the worker has been told: it takes that once

	inflight, abandoned int   // guarded by p.mu
	ahead               *call // guarded by p.mu: an apply that nobody has taken over yet

	mu     sync.Mutex
	death  *Error
	loaded bool // the host is told of deaths from here on
	told   bool
	counts Counters
}

// Counters are what a VM has done. Calls are the entries into its functions,
// without the body and apply; Errors those that failed or were abandoned.
type Counters struct {
	Calls, Errors uint64
	Engine        time.Duration
	Heap          int64
}

func (vm *VM) enter(ctx context.Context, kind wire.Kind, f wire.Frame, entry string, limit time.Duration) outcome {
	c, err := vm.p.begin(ctx, vm, kind, entry, limit)
	if err != nil {
		return outcome{err: err}
	}
	return vm.p.roundTrip(ctx, c, f, limit)
}

// SetName changes how messages name the mount, when its name is known.
func (vm *VM) SetName(who string) { vm.who.Store(&who) }

func (vm *VM) name() string { return *vm.who.Load() }

// Number is the VM's number: peers are bound to it.
func (vm *VM) Number() uint32 { return vm.num }

// Call is one entry into a function of the mount.
type Call struct {
	Kind  string // what the prelude knows: "tool", "listener", …
	Run   uint32
	Fn    uint32
	Args  json.RawMessage
	Entry string        // for messages: `tool "spin"`
	Limit time.Duration // of the whole; 0: callTimeout; more than maxCallTimeout: that
	// Started is told the call's id before it is sent, and ended again: what a
	// mount asks for on behalf of a call names it.
	Started func(id uint64) (ended func())
}

// Invoke enters a function and waits for what it returns. An empty value is
// undefined. The error is an *[Error].
func (vm *VM) Invoke(ctx context.Context, c Call) (json.RawMessage, error) {
	limit := c.Limit
	if limit <= 0 {
		limit = vm.s.cfg.CallTimeout
	}
	limit = min(limit, vm.s.cfg.MaxCallTimeout)
	cl, err := vm.p.begin(ctx, vm, wire.Invoke, c.Entry, limit)
	if err != nil {
		return nil, err
	}
	if c.Started != nil {
		defer c.Started(cl.id)()
	}
	payload := wire.AppendInvoke(make([]byte, 0, 4+len(c.Args)), c.Fn, c.Args)
	o := vm.p.roundTrip(ctx, cl, wire.Frame{Run: c.Run, Name: c.Kind, Payload: payload}, limit)
	if o.err != nil {
		return nil, o.err
	}
	return o.value, nil
}

// Hold stops the time of a call whose limit has not been passed until resume is
// called: while the call waits for something that is not the mount's and has a
// limit of its own. The time inside the engine is bounded as ever. It does
// nothing to a call that has ended.
func (vm *VM) Hold(id uint64) (resume func()) { return vm.p.hold(vm, id) }

// HoldChain does so to every call on the chain that the context of a request
// belongs to, which all wait for the request.
func (vm *VM) HoldChain(ctx context.Context) (resume func()) {
	chain, ok := ctx.Value(chainKey{}).(uint64)
	if !ok {
		return func() {}
	}
	vm.p.mu.Lock()
	calls := slices.Clone(vm.p.chains[chain])
	vm.p.mu.Unlock()
	resumes := make([]func(), len(calls))
	for i, c := range calls {
		resumes[i] = vm.p.hold(c.vm, c.id)
	}
	return func() {
		for _, resume := range resumes {
			resume()
		}
	}
}

// Bind changes what an optional service is bound to; null: nothing.
func (vm *VM) Bind(run uint32, name string, binding json.RawMessage) {
	vm.tell(wire.Frame{Kind: wire.Bind, Run: run, Name: name, Payload: binding})
}

// Retire ends a run: its façade refuses, what it exported is gone.
func (vm *VM) Retire(run uint32) { vm.tell(wire.Frame{Kind: wire.Retire, Run: run}) }

func (vm *VM) tell(f wire.Frame) {
	f.Mount = vm.num
	_ = vm.p.w.Write(f) // a worker that is gone needs to be told nothing
}

// closeTimeout is how long Close waits for a VM that is busy.
const closeTimeout = time.Second

// Close ends the VM and frees its memory. Calls that still run fail.
// The answer says whether the worker confirmed it in time.
func (vm *VM) Close(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	c, err := vm.p.begin(ctx, vm, wire.Unload, "unload", closeTimeout)
	vm.detach(&Error{Code: CodeClosed, Mount: vm.name()})
	if err != nil {
		return true // nothing is there any more
	}
	if !vm.unloaded.CompareAndSwap(false, true) {
		vm.p.end(c) // it failed at the same moment
		return true
	}
	o := vm.p.roundTrip(ctx, c, wire.Frame{}, closeTimeout)
	return o.err == nil
}

// detach makes the VM dead to new calls and answers those under way.
func (vm *VM) detach(why *Error) (first bool) {
	vm.mu.Lock()
	first = vm.death == nil
	if first {
		vm.death = why
	}
	vm.mu.Unlock()
	p := vm.p
	p.mu.Lock()
	if p.vms[vm.num] == vm {
		delete(p.vms, vm.num)
	}
	var open []*call
	for _, c := range p.calls {
		if c.vm == vm && c.kind != wire.Unload {
			open = append(open, c)
			p.endLocked(c)
		}
	}
	p.mu.Unlock()
	for _, c := range open {
		e := *why
		if e.Entry == "" || e.Code == CodeClosed {
			e.Entry = c.what()
		}
		c.answer(outcome{err: &e})
	}
	return first
}

// fail ends a VM that is of no more use and tells its host.
func (vm *VM) fail(why *Error) {
	vm.detach(why)
	if vm.unloaded.CompareAndSwap(false, true) {
		vm.p.mu.Lock()
		vm.p.nextID++
		id := vm.p.nextID // nobody waits for the answer, but each is a call of its own
		vm.p.mu.Unlock()
		vm.tell(wire.Frame{Kind: wire.Unload, ID: id})
	}
	vm.die(why, true)
}

// die records the death and tells the host, once.
func (vm *VM) die(why *Error, guilty bool) {
	vm.mu.Lock()
	if vm.death == nil {
		vm.death = why
	}
	tell := vm.loaded && !vm.told && vm.death.Code != CodeClosed
	vm.told = true
	vm.mu.Unlock()
	if tell {
		vm.p.telling.Go(func() { vm.host.Died(why, guilty) })
	}
}

// gone is the error of entering a dead VM.
func (vm *VM) gone(entry string) *Error {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	if vm.death == nil {
		return &Error{Code: CodeClosed, Mount: vm.name(), Entry: entry}
	}
	switch vm.death.Code {
	case CodeDied, CodeClosed, CodeProtocol:
		e := *vm.death
		e.Entry = entry
		return &e
	}
	return &Error{Code: wire.CodeNoMount, Mount: vm.name(), Entry: entry, Cause: "it was not called, because before it " + vm.death.Error()}
}

// Dead tells why the VM is dead; nil: it lives.
func (vm *VM) Dead() error {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	if vm.death == nil {
		return nil
	}
	return vm.death
}

// count adds what a call cost. A call that was abandoned has been counted then.
func (vm *VM) count(c *call, s wire.Stats, failed bool) {
	vm.p.mu.Lock()
	counted := c.abandoned
	vm.p.mu.Unlock()
	vm.mu.Lock()
	defer vm.mu.Unlock()
	if c.kind == wire.Invoke && !counted {
		vm.counts.Calls++
		if failed {
			vm.counts.Errors++
		}
	}
	vm.counts.Engine += s.Engine
	vm.counts.Heap = s.Heap
}

// heap notes how large the heap has become during a call.
func (vm *VM) heap(digits []byte) {
	if size, err := strconv.ParseInt(string(digits[:min(len(digits), 20)]), 10, 64); err == nil {
		vm.mu.Lock()
		vm.counts.Heap = size
		vm.mu.Unlock()
	}
}

// lost counts a call that was abandoned.
func (vm *VM) lost() {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	vm.counts.Calls++
	vm.counts.Errors++
}

// Counters are what the VM has done so far.
func (vm *VM) Counters() Counters {
	vm.mu.Lock()
	defer vm.mu.Unlock()
	return vm.counts
}

// Open is how many calls of the VM have not ended, the abandoned ones included.
func (vm *VM) Open() int {
	vm.p.mu.Lock()
	defer vm.p.mu.Unlock()
	return vm.inflight
}

// Abandoned is how many abandoned calls of the VM still run.
func (vm *VM) Abandoned() int {
	vm.p.mu.Lock()
	defer vm.p.mu.Unlock()
	return vm.abandoned
}

// IsCode says whether err is an [Error] of the given code.
func IsCode(err error, code string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == code
}
