package qjs

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/dsh-go/dsh/limits"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// EngineVersion is what bytecode is keyed by: bytecode made by one version is
// not to be run by another.
const EngineVersion = "quickjs-" + lib.MCONFIG_VERSION + "-libquickjs-0.14.0"

// Bounds of this package.
const (
	// MinMemory is the smallest memory limit: far below it the engine's parser
	// is known to fault instead of reporting that it ran out of memory.
	MinMemory = 4 << 20
	// DefaultStack is the stack limit where Options gives none, in slots of
	// about one JavaScript call; it lets JSON nest limits.DepthWorks deep.
	DefaultStack = 12_000
	// MinStack and MaxStack are the range of a given stack limit. Beyond
	// MaxStack the goroutine's own stack, whose end kills the process, comes
	// too near.
	MinStack = 100
	MaxStack = 20_000
	// MaxHostArgs is the most arguments of one __host call, op included.
	MaxHostArgs = 16
	// MaxText is the most bytes of each text in an Error or a Rejection.
	MaxText = 64 << 10
	// MaxUnhandled is the most rejections that one Unhandled call returns.
	MaxUnhandled = 100
	// MaxTracked is the most rejected promises of a VM that are watched for a
	// handler at one time; beyond it they are counted, not watched.
	MaxTracked = 10_000
)

// Options are the bounds of one VM.
type Options struct {
	// MemoryLimit bounds the engine's heap in bytes, at least MinMemory;
	// 0 means limits.VMMemoryMB.
	MemoryLimit int64
	// MaxStackSize bounds recursion in stack slots, MinStack to MaxStack;
	// 0 means DefaultStack.
	MaxStackSize int
}

// HostFunc answers __host(op, args...). The script's strings, numbers and
// booleans arrive as text, undefined as "". The script gets result when defined
// is true, else undefined; an error is thrown as an Error with err's text. It
// runs on the goroutine that entered the VM and may enter VMs itself.
type HostFunc func(op string, args []string) (result string, defined bool, err error)

// VM is one JavaScript realm with its own heap. See the package comment for who
// may use it and when.
type VM struct {
	// Usable from any goroutine, at any time.
	deadline  atomic.Int64 // on the clock of sinceBase; 0 for none
	interrupt atomic.Bool

	id      uintptr // how the engine's callbacks name this VM
	tls     *libc.TLS
	rt, ctx uintptr
	cells   cells

	host    HostFunc
	grown   func(size int64)
	growth  int64        // the heap from which on grown is told next
	held    lib.TJSValue // the function given to __hold
	hasHeld bool

	values    map[uint64]lib.TJSValue // what Values stand for
	lastValue uint64
	tracker   tracker

	depth   int    // entries in progress
	fired   bool   // the engine was told to stop, in the innermost entry
	oom     bool   // an allocation failed, in the innermost entry
	sawOOM  bool   // an allocation failed, ever
	hostErr *Panic // of the innermost entry's host function
	closed  bool
	closing bool // Close was called inside an entry
	broken  bool
	cause   *Panic // what broke it
}

// New returns a VM with the language's globals, __host and __hold. It must be
// closed.
func New(o Options) (*VM, error) {
	if o.MemoryLimit == 0 {
		o.MemoryLimit = limits.VMMemoryMB << 20
	}
	if o.MaxStackSize == 0 {
		o.MaxStackSize = DefaultStack
	}
	if o.MemoryLimit < MinMemory {
		return nil, fmt.Errorf("new VM: memory limit of %d bytes is below %d", o.MemoryLimit, int64(MinMemory))
	}
	if o.MaxStackSize < MinStack || o.MaxStackSize > MaxStack {
		return nil, fmt.Errorf("new VM: stack limit of %d slots is outside %d to %d", o.MaxStackSize, MinStack, MaxStack)
	}
	vm := &VM{values: map[uint64]lib.TJSValue{}}
	if err := vm.build(o); err != nil {
		vm.Close()
		return nil, fmt.Errorf("new VM: %w", err)
	}
	return vm, nil
}

// build makes the engine. Where its own allocations find no memory, some of it
// panics; what it has by then leaks.
func (vm *VM) build(o Options) (err error) {
	defer func() {
		if p := recover(); p != nil {
			vm.broken, err = true, fmt.Errorf("no memory for the engine: %w", enginePanic(p))
		}
	}()
	vm.tls = libc.NewTLS()
	vm.tracker.init()
	vm.rt = lib.XJS_NewRuntime(vm.tls)
	if vm.rt == 0 {
		return errors.New("no memory for the engine")
	}
	register(vm)
	lib.XJS_SetMemoryLimit(vm.tls, vm.rt, lib.Tsize_t(o.MemoryLimit))
	lib.XJS_SetMaxStackSize(vm.tls, vm.rt, lib.Tsize_t(o.MaxStackSize))
	vm.ctx = lib.XJS_NewContext(vm.tls, vm.rt)
	if vm.ctx == 0 {
		return errors.New("no memory for the language's globals")
	}
	return vm.guard(vm.defineGlobals)
}

// Close frees the VM and everything it holds. It may be called again, and from
// a host function: then the running entries are interrupted and the last of
// them to return closes the VM.
func (vm *VM) Close() {
	if vm.closed {
		return
	}
	if vm.depth > 0 {
		vm.closing = true
		vm.Interrupt()
		return
	}
	vm.closed = true
	unregister(vm)
	vm.host = nil
	if vm.broken {
		// The engine's own structures may be torn, its stack too, which keeps what it
		// has freed when it finds no memory for more: freeing them could fault, or free
		// what is another VM's by now. What is not in the region leaks.
		vm.cells.close(vm.tls)
		vm.values, vm.tracker = nil, tracker{}
		return
	}
	vm.freeAll()
}

// freeAll frees the engine. A panic on the way is contained: what is left leaks.
func (vm *VM) freeAll() {
	defer func() {
		if recover() != nil {
			vm.broken = true
		}
	}()
	if vm.ctx != 0 {
		for id, v := range vm.values {
			delete(vm.values, id)
			vm.free(v)
		}
		vm.dropPromises()
		if vm.hasHeld {
			vm.hasHeld = false
			vm.free(vm.held)
		}
		lib.XJS_FreeContext(vm.tls, vm.ctx)
	}
	if vm.rt != 0 {
		lib.XJS_FreeRuntime(vm.tls, vm.rt)
	}
	vm.cells.close(vm.tls)
	vm.tls.Close()
}

// Trim gives back the memory of the stack that entries have left behind; the next
// one takes what it needs again. It does nothing during an entry.
func (vm *VM) Trim() {
	if vm.depth > 0 || vm.usable() != nil {
		return
	}
	defer func() { _ = recover() }() // no memory for another: this one stays
	fresh := libc.NewTLS()
	vm.tls.Close()
	vm.tls = fresh
}

// SetHost installs what answers __host; nil makes __host throw.
func (vm *VM) SetHost(fn HostFunc) { vm.host = fn }

// growthStep is the least heap that SetGrown's function is told of.
const growthStep = 16 << 20

// SetGrown installs a function that is told, while an entry runs, that the heap
// has at least doubled since the entry began or since it was told last, and is at
// least 16 MiB. It runs on the goroutine that entered the VM, inside the engine: it
// must not enter it.
func (vm *VM) SetGrown(fn func(size int64)) { vm.grown = fn }

// grew tells of the heap's growth, if it is time to.
func (vm *VM) grew() {
	if vm.grown == nil {
		return
	}
	size, _ := vm.Memory()
	if vm.growth == 0 || size < vm.growth {
		return
	}
	vm.growth = 2 * size
	vm.grown(size)
}

// base is the start of the clock that deadlines are compared on.
var base = time.Now()

func sinceBase(t time.Time) int64 { return int64(t.Sub(base)) }

// SetDeadline sets when running code is stopped, on the monotonic clock; the
// zero time means never. It stands, for nested entries too, until set again.
func (vm *VM) SetDeadline(t time.Time) {
	if t.IsZero() {
		vm.deadline.Store(0)
		return
	}
	vm.deadline.Store(max(1, sinceBase(t)))
}

// Deadline returns what SetDeadline set.
func (vm *VM) Deadline() time.Time {
	d := vm.deadline.Load()
	if d == 0 {
		return time.Time{}
	}
	return base.Add(time.Duration(d))
}

// Interrupt stops what runs now or next, until ClearInterrupt.
func (vm *VM) Interrupt() { vm.interrupt.Store(true) }

// ClearInterrupt takes Interrupt back. A deadline that has passed still stands.
func (vm *VM) ClearInterrupt() { vm.interrupt.Store(false) }

// stop reports whether running code is to stop.
func (vm *VM) stop() bool {
	if vm.interrupt.Load() {
		return true
	}
	d := vm.deadline.Load()
	return d != 0 && sinceBase(time.Now()) >= d
}

// SetMaxStack changes the stack limit, in the range MinStack to MaxStack. A
// caller that lets VMs call each other on one goroutine keeps the sum of their
// limits in bounds with it, since each VM counts its own slots only.
func (vm *VM) SetMaxStack(slots int) error {
	if err := vm.usable(); err != nil {
		return err
	}
	if slots < MinStack || slots > MaxStack {
		return fmt.Errorf("set stack limit: %d slots is outside %d to %d", slots, MinStack, MaxStack)
	}
	lib.XJS_SetMaxStackSize(vm.tls, vm.rt, lib.Tsize_t(slots))
	return nil
}

// StackUsed returns the stack slots that the entries in progress take.
func (vm *VM) StackUsed() int {
	if vm.usable() != nil {
		return 0
	}
	return vm.tls.StackSlots()
}

// Memory returns the bytes that the engine's heap takes, at the granularity of
// its arenas, and how many blocks. It costs nothing; zeros after Close.
func (vm *VM) Memory() (size, count int64) {
	if vm.closed {
		return 0, 0
	}
	state := &(*lib.TJSRuntime)(pointer(vm.rt)).Fmalloc_ctx.Fmalloc_state
	return int64(state.Fmalloc_size), int64(state.Fmalloc_count)
}

// OutOfMemory reports whether an allocation has ever failed in this VM.
func (vm *VM) OutOfMemory() bool { return vm.sawOOM }

// Broken reports whether a panic has broken the VM.
func (vm *VM) Broken() bool { return vm.broken }

// usable returns why the VM cannot be entered.
func (vm *VM) usable() error {
	switch {
	case vm.closed:
		return ErrClosed
	case vm.broken:
		return ErrBroken
	}
	return nil
}

// enter is guard for code that is refused when the VM is to stop.
func (vm *VM) enter(f func() error) error {
	if err := vm.usable(); err != nil {
		return err
	}
	if vm.stop() {
		return vm.interrupted("")
	}
	return vm.guard(f)
}

// guard runs f, which uses the engine, as one entry: panics are contained, an
// interrupt is reported even when the script caught it, and the state of the
// entry around it is restored.
func (vm *VM) guard(f func() error) (err error) {
	if err := vm.usable(); err != nil {
		return err
	}
	fired, oom, hostErr := vm.fired, vm.oom, vm.hostErr
	vm.fired, vm.oom, vm.hostErr = false, false, nil
	if vm.depth == 0 {
		size, _ := vm.Memory()
		vm.growth = max(growthStep, 2*size)
	}
	vm.depth++
	returned := false
	defer func() {
		if !returned {
			vm.broken = true
			if p := recover(); p != nil {
				vm.cause = enginePanic(p)
				err = vm.cause
			}
		} else if vm.hostErr != nil {
			err = vm.hostErr
		} else if k, _ := KindOf(err); vm.fired && (err == nil || k != KindInterrupted) {
			err = vm.interrupted("")
		}
		vm.fired, vm.oom, vm.hostErr = fired, oom, hostErr
		vm.depth--
		if vm.closing && vm.depth == 0 {
			vm.Close()
		}
	}()
	err = f()
	returned = true
	return err
}

// enginePanic wraps what came out of the engine; a panic that was contained in
// a nested entry, and had to go on, is not wrapped twice.
func enginePanic(p any) *Panic {
	if p, ok := p.(*Panic); ok {
		return p
	}
	return &Panic{Value: p, Stack: debug.Stack()}
}
