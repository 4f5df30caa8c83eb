package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// maxAsks is how many requests of one VM may be open; the worker keeps to the
// same bound, so that passing it means a worker that was taken over.
const maxAsks = 4096

// handle acts on one frame of the worker. An error ends the worker.
func (p *process) handle(f wire.Frame) error {
	switch f.Kind {
	case wire.Result:
		return p.result(f)
	case wire.Pong:
		p.mu.Lock()
		ch := p.pongs[f.ID]
		delete(p.pongs, f.ID)
		p.mu.Unlock()
		if ch != nil {
			close(ch)
		}
		return nil
	case wire.Stuck:
		p.stuck(f)
		return nil
	case wire.HostSync, wire.HostAsync, wire.Send, wire.Console, wire.Late:
		return p.handleOf(f)
	}
	return &Error{Code: CodeProtocol, Cause: fmt.Sprintf("the worker sent a frame of kind %d", f.Kind)}
}

// handleOf acts on one frame of a VM.
func (p *process) handleOf(f wire.Frame) error {
	p.mu.Lock()
	vm := p.vms[f.Mount]
	p.mu.Unlock()
	if vm == nil {
		return nil // of a VM that was closed meanwhile
	}
	if most := largest(f.Kind); len(f.Payload) > most {
		return &Error{Code: CodeProtocol, Cause: fmt.Sprintf("the worker sent %d bytes where %d are allowed", len(f.Payload), most)}
	}
	ask := Ask{Run: f.Run, Verb: f.Name, Payload: f.Payload}
	switch f.Kind {
	case wire.HostSync:
		return p.ask(vm, f, vm.host.Sync, ask, wire.Reply)
	case wire.HostAsync:
		return p.ask(vm, f, vm.host.Async, ask, wire.Settle)
	case wire.Send:
		switch f.Name {
		case wire.VerbPhase:
			p.phase(vm, f)
			return nil
		case wire.VerbHeap:
			vm.heap(f.Payload)
			return nil
		}
		vm.host.Send(p.contextOf(f), ask)
	case wire.Console:
		vm.host.Console(f.Name, string(f.Payload))
	case wire.Late:
		return p.late(vm, f)
	}
	return nil
}

// phase notes how far a call has come.
func (p *process) phase(vm *VM, f wire.Frame) {
	p.mu.Lock()
	c := p.calls[f.ID]
	p.mu.Unlock()
	if c != nil && c.vm == vm {
		name := plain.Name(string(f.Payload[:min(len(f.Payload), 4*limits.Name)]))
		c.phase.Store(&name)
	}
}

// largest is how many bytes a message of a VM may carry.
func largest(k wire.Kind) int {
	switch k {
	case wire.Console:
		return wire.MaxConsole
	case wire.Late:
		return wire.MaxFault
	}
	return wire.MaxAsk
}

// ask lets the host answer on a goroutine of its own.
func (p *process) ask(vm *VM, f wire.Frame, answer func(context.Context, Ask) (json.RawMessage, error), a Ask, kind wire.Kind) error {
	if vm.asks.Add(1) > maxAsks {
		return &Error{Code: CodeProtocol, Cause: fmt.Sprintf("more than %d open requests of one mount", maxAsks)}
	}
	taken := p.untaken(vm, f.Run)
	var ctx context.Context
	if taken == nil {
		ctx = context.WithValue(p.contextOf(f), laterKey{}, kind == wire.Settle)
	}
	go func() {
		defer vm.asks.Add(-1)
		var once sync.Once
		if kind == wire.Reply { // the machine, which waits, may have nobody else to end its wait
			limit := p.cfg.CallTimeout
			timer := time.AfterFunc(limit, func() {
				once.Do(func() {
					p.reply(f, kind, wire.Failed(&wire.Fault{Name: "Error", Code: wire.CodeBusy, Message: "no answer within " + Millis(limit)}))
				})
			})
			defer timer.Stop()
		}
		if taken != nil {
			select {
			case <-taken:
			case <-p.dead:
			}
			ctx = context.WithValue(p.contextOf(f), laterKey{}, kind == wire.Settle)
		}
		text, err := answer(ctx, a)
		payload := wire.Ok(text)
		if err != nil {
			payload = wire.Failed(FaultOf(err))
		}
		once.Do(func() { p.reply(f, kind, payload) })
	}()
	return nil
}

// reply answers a request.
func (p *process) reply(f wire.Frame, kind wire.Kind, payload []byte) {
	reply := wire.Frame{Kind: kind, ID: f.ID, Chain: f.Chain, Mount: f.Mount, Run: f.Run, Payload: payload}
	err := p.w.Write(reply)
	if errors.Is(err, wire.ErrTooLarge) {
		reply.Payload = wire.Failed(&wire.Fault{Name: "RangeError", Message: err.Error(), Code: wire.CodeTooLarge})
		err = p.w.Write(reply)
	}
	if err != nil {
		p.kill(&Error{Code: CodeDied, Cause: "its pipe broke"}, 0)
	}
}

// FaultOf is a Go error as model code sees it: its message and, where it has
// one, its code. What model code threw crosses untouched.
func FaultOf(err error) *wire.Fault {
	var e *Error
	if errors.As(err, &e) && e.Code == CodeThrown && e.Fault != nil {
		return &wire.Fault{Name: e.Fault.Name, Message: e.Fault.Message, Code: e.Fault.Code, Raw: e.Fault.Raw}
	}
	f := &wire.Fault{Name: "Error", Message: err.Error()}
	if named := interface{ ErrorName() string }(nil); errors.As(err, &named) {
		f.Name = named.ErrorName()
	}
	var coded interface{ ErrorCode() string }
	switch {
	case errors.As(err, &coded):
		f.Code = coded.ErrorCode()
	case e != nil:
		f.Code = e.Code
	}
	return f
}

func (p *process) late(vm *VM, f wire.Frame) error {
	fault := new(wire.Fault)
	if len(f.Payload) > 0 {
		if err := json.Unmarshal(f.Payload, fault); err != nil {
			return &Error{Code: CodeProtocol, Cause: "the worker sent an unreadable fault"}
		}
	}
	vm.host.Late(f.ID, fault, f.Flags&wire.FlagHandled != 0)
	if f.Flags&wire.FlagSpent != 0 {
		e := &Error{Code: spentCode(fault.Code), Mount: vm.name(), Entry: "a continuation", Limit: time.Duration(vm.s.cfg.MemoryMB), Fault: fault, Spent: true}
		if e.Code == wire.CodeVMTimeout {
			e.Limit, e.InRow = vm.s.cfg.VMTimeout, limits.Interrupts
		}
		p.spent(vm, e)
	}
	return nil
}

// spent is told that a machine is of no more use. One whose engine failed gives
// back none of its memory: if that is much, it ends with the worker.
func (p *process) spent(vm *VM, why *Error) {
	if held := vm.Counters().Heap; why.Code == wire.CodePanic && held > int64(p.cfg.WorkerMemoryMB)<<20/memoryShare {
		cause := *why
		cause.Spent, cause.Cause = false, fmt.Sprintf("the worker process was ended, since the %d MiB that %s held could not be freed any more", held>>20, vm.name())
		p.kill(&cause, vm.num)
		return
	}
	vm.fail(why)
}

func spentCode(code string) string {
	if code == wire.CodeMemory || code == wire.CodePanic || code == wire.CodeVMTimeout {
		return code
	}
	return wire.CodePanic
}

// stuck ends the worker for the sake of its other mounts, if what it reports
// still runs: a report can be stale when it is read.
func (p *process) stuck(f wire.Frame) {
	p.mu.Lock()
	vm := p.vms[f.Mount]
	c := p.calls[f.ID]
	p.mu.Unlock()
	if vm == nil {
		return
	}
	entry := plain.Name(f.Name)
	if c != nil && c.vm == vm {
		if _, ok := phases[f.Name]; ok {
			c.phase.Store(&f.Name)
		}
		entry = c.what()
	}
	p.kill(&Error{Code: CodeStuck, Mount: vm.name(), Entry: entry, Limit: p.cfg.VMTimeout}, f.Mount)
}

// result delivers an answer.
func (p *process) result(f wire.Frame) error {
	p.mu.Lock()
	c := p.calls[f.ID]
	p.mu.Unlock()
	if c == nil || c.vm.num != f.Mount {
		return nil // of a call that nobody waits for
	}
	if p.tooEarly(c, f) {
		return nil
	}
	// An answer that is none ends the worker, and that answers the call.
	stats, rest, err := wire.CutStats(f.Payload)
	if err != nil {
		return &Error{Code: CodeProtocol, Cause: "the worker sent an answer that is none: " + err.Error()}
	}
	value, fault, err := wire.Value(rest)
	if err != nil {
		return &Error{Code: CodeProtocol, Cause: "the worker sent an answer that is none: " + err.Error()}
	}
	p.end(c)
	if f.Flags&wire.FlagAhead != 0 && fault == nil {
		p.follow(c)
	}
	c.vm.count(c, stats, fault != nil)
	o := outcome{stats: stats, value: value}
	if fault != nil {
		o.err = c.failure(stats, fault)
	}
	if f.Flags&wire.FlagSpent != 0 {
		e := o.err
		if e == nil {
			e = &Error{Code: wire.CodePanic, Mount: c.vm.name(), Entry: c.what()}
			o.err = e
		}
		e.Spent = true
		defer p.spent(c.vm, e)
	}
	c.answer(o)
	return nil
}

// failure tells what the worker saw from what the code threw.
func (c *call) failure(stats wire.Stats, fault *wire.Fault) *Error {
	e := &Error{Mount: c.vm.name(), Entry: c.what(), Fault: fault}
	switch stats.Verdict {
	case wire.VerdictTimeout:
		e.Code, e.Limit, e.InRow = wire.CodeVMTimeout, c.vm.s.cfg.VMTimeout, stats.Interrupts
	case wire.VerdictMemory:
		e.Code, e.Limit = wire.CodeMemory, time.Duration(c.vm.s.cfg.MemoryMB)
	case wire.VerdictPanic:
		e.Code = wire.CodePanic
	case wire.VerdictSyntax:
		e.Code = wire.CodeSyntax
	default:
		switch fault.Code {
		case wire.CodeDeadlock, wire.CodeBusy, wire.CodeCancelled, wire.CodeNoMount, wire.CodeTooLarge:
			e.Code = fault.Code
		}
	}
	return e
}
