package qjs

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// The engine calls Go through addresses of plain functions, registered once for
// the process; each finds its VM by the number that the engine carries for it.
var (
	live   sync.Map // uintptr -> *VM
	lastID atomic.Uintptr
)

func vmOf(id uintptr) *VM {
	vm, ok := live.Load(id)
	if !ok {
		return nil
	}
	return vm.(*VM)
}

// register makes the callbacks of vm's runtime find vm, and replaces the
// runtime's allocator by one that has cells and records failures and big blocks.
func register(vm *VM) {
	vm.id = lastID.Add(1)
	live.Store(vm.id, vm)
	rt := (*lib.TJSRuntime)(pointer(vm.rt))
	captureAllocator.Do(func() {
		engineMalloc = *(*mallocFunc)(unsafe.Pointer(&struct{ uintptr }{rt.Fmalloc_ctx.Fmf.Fjs_malloc}))
		engineRealloc = *(*reallocFunc)(unsafe.Pointer(&struct{ uintptr }{rt.Fmalloc_ctx.Fmf.Fjs_realloc}))
		engineFree = *(*freeFunc)(unsafe.Pointer(&struct{ uintptr }{rt.Fmalloc_ctx.Fmf.Fjs_free}))
		engineUsable = *(*usableFunc)(unsafe.Pointer(&struct{ uintptr }{rt.Fmalloc_ctx.Fmf.Fjs_malloc_usable_size}))
	})
	vm.cells.init(vm.tls)
	rt.Fmalloc_ctx.Fmf.Fjs_malloc = address(onMalloc)
	rt.Fmalloc_ctx.Fmf.Fjs_realloc = address(onRealloc)
	rt.Fmalloc_ctx.Fmf.Fjs_free = address(onFree)
	rt.Fmalloc_ctx.Fmf.Fjs_malloc_usable_size = address(onUsableSize)
	rt.Fmalloc_ctx.Fmalloc_state.Fopaque = vm.id
	lib.XJS_SetInterruptHandler(vm.tls, vm.rt, address(onPoll), vm.id)
	lib.XJS_SetHostPromiseRejectionTracker(vm.tls, vm.rt, address(onRejection), vm.id)
}

func unregister(vm *VM) { live.Delete(vm.id) }

// address returns how the engine stores a Go function: the word that a func
// value consists of. f must be a top-level function, which never moves.
func address(f any) uintptr {
	return (*[2]uintptr)(unsafe.Pointer(&f))[1]
}

// pointer turns an address in the engine's memory, which Go does not manage,
// into a pointer.
func pointer(p uintptr) unsafe.Pointer { return unsafe.Add(nil, p) }

type (
	mallocFunc  = func(tls *libc.TLS, state uintptr, size lib.Tsize_t) uintptr
	reallocFunc = func(tls *libc.TLS, state, block uintptr, size lib.Tsize_t) uintptr
	freeFunc    = func(tls *libc.TLS, state, block uintptr)
	usableFunc  = func(tls *libc.TLS, block uintptr) lib.Tsize_t
)

var (
	captureAllocator sync.Once
	engineMalloc     mallocFunc
	engineRealloc    reallocFunc
	engineFree       freeFunc
	engineUsable     usableFunc
)

// The engine counts calls and jumps, 10,000 to a poll, as if each cost the same.
// They do not: a script that overflows the stack again and again builds a trace
// of it each time, and would run on for a minute.
const (
	// pollEvery is how many steps there are to a poll here; polling costs about
	// one in a hundred of them.
	pollEvery = 500
	// bigBlock is the size of an allocation from which on the next step polls.
	bigBlock = 4 << 10
)

func onMalloc(tls *libc.TLS, state uintptr, size lib.Tsize_t) uintptr {
	if size >= cellMin && size <= cellSize {
		if p := takeCell((*lib.TJSMallocState)(pointer(state)), size); p != 0 {
			return p
		}
	}
	p := engineMalloc(tls, state, size)
	if p == 0 || size >= bigBlock {
		allocated(state, p, size)
	}
	return p
}

func onRealloc(tls *libc.TLS, state, block uintptr, size lib.Tsize_t) uintptr {
	var p uintptr
	switch {
	case !isCell(block):
		p = engineRealloc(tls, state, block, size)
	case size == 0:
		onFree(tls, state, block)
	case size <= cellSize:
		return block
	default:
		p = growCell(tls, state, block, size)
	}
	if p == 0 && size != 0 || size >= bigBlock {
		allocated(state, p, size)
	}
	return p
}

// shortage is called when the process has no memory for a VM that is within its
// limit.
var shortage atomic.Pointer[func()]

// OnShortage installs a function that is told when the process has no memory for a
// VM that is within its limit, which from then on gets no more. It is one for the
// whole process, runs inside the engine, and must not enter a VM.
func OnShortage(f func()) { shortage.Store(&f) }

// allocated notes an allocation that failed (p is 0) or is big.
func allocated(state, p uintptr, size lib.Tsize_t) {
	s := (*lib.TJSMallocState)(pointer(state))
	vm := vmOf(s.Fopaque)
	switch {
	case vm == nil:
	case p == 0:
		vm.oom, vm.sawOOM = true, true
		if s.Fmalloc_size+size > s.Fmalloc_limit {
			return
		}
		s.Fmalloc_limit = s.Fmalloc_size // what is left is not for what tries again
		if f := shortage.Load(); f != nil {
			(*f)()
		}
	case vm.ctx != 0:
		vm.pollAfter(0)
	}
}

// pollAfter makes the engine call onPoll after n more steps.
func (vm *VM) pollAfter(n int32) {
	(*lib.TJSContext)(pointer(vm.ctx)).Finterrupt_counter = n
}

// Poke makes the engine look at the deadline and the interrupt flag at its next
// step, where each step takes long. Any goroutine may, unless the VM is being
// closed. The engine may overwrite it without having looked: poke again.
//
//go:norace
func (vm *VM) Poke() {
	(*lib.TJSContext)(pointer(vm.ctx)).Finterrupt_counter = 0
}

// onPoll is asked by the engine now and then whether to go on.
func onPoll(_ *libc.TLS, _, id uintptr) int32 {
	vm := vmOf(id)
	if vm == nil {
		return 0
	}
	vm.pollAfter(pollEvery)
	vm.grew()
	if !vm.stop() {
		return 0
	}
	vm.fired = true
	return 1
}

// defineGlobals makes __host, __hold, __text, __data and __value.
func (vm *VM) defineGlobals() error {
	lib.XJS_SetContextOpaque(vm.tls, vm.ctx, vm.id)
	global := lib.XJS_GetGlobalObject(vm.tls, vm.ctx)
	for _, g := range []struct {
		name     *byte
		function uintptr
	}{
		{&nameHost[0], address(onHost)},
		{&nameHold[0], address(onHold)},
		{&nameText[0], address(onText)},
		{&nameData[0], address(onData)},
		{&nameValue[0], address(onValue)},
	} {
		name := uintptr(unsafe.Pointer(g.name))
		fn := lib.XJS_NewCFunction2(vm.tls, vm.ctx, g.function, name, 1, lib.EJS_CFUNC_generic, 0)
		if isException(fn) {
			return vm.exception()
		}
		// The property takes fn over, also when it fails.
		if lib.XJS_DefinePropertyValueStr(vm.tls, vm.ctx, global, name, fn,
			lib.MJS_PROP_WRITABLE|lib.MJS_PROP_CONFIGURABLE|lib.MJS_PROP_THROW) < 0 {
			return vm.exception()
		}
	}
	vm.free(global)
	return nil
}

// onHold keeps the function of __hold(fn), once.
func onHold(tls *libc.TLS, ctx uintptr, _ lib.TJSValue, argc int32, argv uintptr) lib.TJSValue {
	vm := vmOf(lib.XJS_GetContextOpaque(tls, ctx))
	switch {
	case vm == nil:
		return undefined
	case vm.hasHeld:
		return vm.throw("__hold: a function is held already")
	case argc != 1 || lib.XJS_IsFunction(tls, ctx, argument(argv, 0)) == 0:
		return vm.throw("__hold: want one function")
	}
	vm.held, vm.hasHeld = lib.XDupValue(tls, ctx, argument(argv, 0)), true
	return undefined
}

// onHost answers __host(op, ...). A panic of the host function must not unwind
// the engine: it becomes an exception that no script catches, and the entry
// around it returns it.
func onHost(tls *libc.TLS, ctx uintptr, _ lib.TJSValue, argc int32, argv uintptr) (r lib.TJSValue) {
	vm := vmOf(lib.XJS_GetContextOpaque(tls, ctx))
	if vm == nil {
		return undefined
	}
	args, err := vm.hostArgs(argc, argv)
	switch {
	case errors.Is(err, errPending):
		return exception
	case err != nil:
		return vm.throw(err.Error())
	case vm.host == nil:
		return vm.throw("__host: nothing answers: no host function is set")
	}
	text, defined, err := vm.callHost(args)
	switch {
	case vm.broken:
		// The engine below must run no more: go on up to the entry.
		panic(vm.cause)
	case vm.hostErr != nil:
		return vm.throwUncatchable("host function panicked")
	case vm.stop():
		// The engine may poll only much later, and always inside a nested
		// entry: a loop of host calls has to end here.
		vm.fired = true
		return vm.throwUncatchable("interrupted")
	case err != nil:
		return vm.throw(err.Error())
	case !defined:
		return undefined
	}
	return vm.newStringRaw(text)
}

// callHost calls the host function and contains its panic. runtime.Goexit is
// not stopped; it unwinds the engine, which breaks the VM.
func (vm *VM) callHost(args []string) (text string, defined bool, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			vm.hostErr = &Panic{Value: p, Stack: debug.Stack(), Host: true}
			return
		}
		vm.broken = true
	}()
	text, defined, err = vm.host(args[0], args[1:])
	returned = true
	return text, defined, err
}

// errPending stands for the exception that the engine has pending.
var errPending = errors.New("exception pending")

// hostArgs converts what __host was called with.
func (vm *VM) hostArgs(argc int32, argv uintptr) ([]string, error) {
	if argc < 1 || argc > MaxHostArgs {
		return nil, fmt.Errorf("__host: want 1 to %d arguments, got %d", MaxHostArgs, argc)
	}
	args := make([]string, argc)
	for i := range args {
		v := argument(argv, i)
		switch tag(v) {
		case lib.EJS_TAG_STRING, lib.EJS_TAG_STRING_ROPE, lib.EJS_TAG_INT, lib.EJS_TAG_FLOAT64, lib.EJS_TAG_BOOL:
		case lib.EJS_TAG_UNDEFINED:
			continue
		default:
			return nil, fmt.Errorf("__host: argument %d is not a string, number, boolean or undefined", i)
		}
		text, ok := vm.text(v)
		if !ok {
			return nil, errPending
		}
		args[i] = text
	}
	return args, nil
}

// argument returns the i-th of the engine's argument vector, borrowed.
func argument(argv uintptr, i int) lib.TJSValue {
	return *(*lib.TJSValue)(pointer(argv + uintptr(i)*valueSize))
}
