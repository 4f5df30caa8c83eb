package qjs

import (
	"modernc.org/libc"
	lib "modernc.org/libquickjs"
)

// Rejection is a promise that was rejected and that nothing handled by the time
// Unhandled was called.
type Rejection struct {
	// ID names the promise in HandledLate. IDs grow in the order of rejection.
	ID uint64
	// Error is the reason.
	Error *Error
	// Interrupted is true when the promise was rejected because, or after, the
	// entry was interrupted: a consequence, not a fault of its own.
	Interrupted bool
}

// tracked is one rejected promise, kept alive so that its address is not reused.
type tracked struct {
	id          uint64
	promise     lib.TJSValue
	interrupted bool
	reported    bool
}

// tracker follows the engine's two events: rejected without a handler, and
// given a handler afterwards.
type tracker struct {
	promises map[uint64]*tracked // by the promise's address
	order    []*tracked          // not yet reported, oldest first; handled ones have no id
	reported []*tracked          // reported, oldest first
	late     []uint64            // reported, then handled
	lost     int                 // rejected beyond MaxTracked
	lastID   uint64
}

func (t *tracker) init() { t.promises = map[uint64]*tracked{} }

// maxLate is the most IDs that HandledLate returns.
const maxLate = 1000

// compact takes handled promises out of order once they are most of it, so that
// a script that rejects and handles without end keeps it short.
func (t *tracker) compact() {
	if len(t.order) < 2*MaxTracked {
		return
	}
	kept := t.order[:0]
	for _, p := range t.order {
		if p.id != 0 {
			kept = append(kept, p)
		}
	}
	clear(t.order[len(kept):])
	t.order = kept
}

// onRejection is told by the engine in the middle of running code: it runs none.
func onRejection(tls *libc.TLS, ctx uintptr, promise, _ lib.TJSValue, handled int32, id uintptr) {
	vm := vmOf(id)
	if vm == nil {
		return
	}
	t, address := &vm.tracker, payload(promise)
	p := t.promises[address]
	switch {
	case handled == 0 && p == nil:
		if len(t.promises) >= MaxTracked {
			t.lost++
			return
		}
		t.lastID++
		p = &tracked{id: t.lastID, promise: lib.XDupValue(tls, ctx, promise), interrupted: vm.fired}
		t.promises[address] = p
		t.compact()
		t.order = append(t.order, p)
	case handled != 0 && p != nil:
		if p.reported {
			t.late = append(t.late, p.id)
			t.late = t.late[max(0, len(t.late)-maxLate):]
		}
		delete(t.promises, address)
		p.id = 0
		// The engine still uses the promise, so this is not its last reference.
		vm.free(p.promise)
	}
}

// Unhandled returns the promises rejected without a handler since the last
// call, oldest first, and how many more there were that are not described.
// Call it when RunJobs has left no job: only then is "no handler" a verdict.
// Getters of the reasons may run, within the deadline.
func (vm *VM) Unhandled() (list []Rejection, more int) {
	t := &vm.tracker
	if vm.usable() != nil || len(t.order) == 0 && t.lost == 0 {
		return nil, 0
	}
	order, lost := t.order, t.lost
	t.order, t.lost = nil, 0
	_ = vm.guard(func() error { // a panic breaks the VM, which later calls report
		for _, p := range order {
			if p.id == 0 {
				continue
			}
			if len(list) == MaxUnhandled {
				more++
				vm.forget(p)
				continue
			}
			p.reported = true
			t.reported = append(t.reported, p)
			list = append(list, Rejection{ID: p.id, Error: vm.reason(p), Interrupted: p.interrupted})
		}
		vm.trimReported()
		return nil
	})
	return list, more + lost
}

// HandledLate returns the IDs of reported rejections that got a handler since
// the last call, at most the last 1,000. The last MaxUnhandled reported
// promises are watched.
func (vm *VM) HandledLate() []uint64 {
	late := vm.tracker.late
	vm.tracker.late = nil
	return late
}

func (vm *VM) reason(p *tracked) *Error {
	v := lib.XJS_PromiseResult(vm.tls, vm.ctx, p.promise)
	e := vm.describe(v)
	vm.free(v)
	if e.Stack != "" {
		e.position()
	}
	return e
}

// trimReported forgets all but the last MaxUnhandled reported promises.
func (vm *VM) trimReported() {
	t := &vm.tracker
	kept := t.reported[:0]
	for i, p := range t.reported {
		switch {
		case p.id == 0:
		case len(t.reported)-i > MaxUnhandled:
			vm.forget(p)
		default:
			kept = append(kept, p)
		}
	}
	clear(t.reported[len(kept):])
	t.reported = kept
}

// forget stops watching p.
func (vm *VM) forget(p *tracked) {
	delete(vm.tracker.promises, payload(p.promise))
	p.id = 0
	vm.free(p.promise)
}

// forgetBody stops watching the promise of a module's body, which the engine makes for
// itself and rejects just before end, the module's promise, for the same reason.
func (vm *VM) forgetBody(end lib.TJSValue) {
	order := vm.tracker.order
	i := len(order) - 1
	if i < 1 || order[i].id == 0 || order[i-1].id == 0 || payload(order[i].promise) != payload(end) {
		return
	}
	why := lib.XJS_PromiseResult(vm.tls, vm.ctx, end)
	body := lib.XJS_PromiseResult(vm.tls, vm.ctx, order[i-1].promise)
	if tag(why) == tag(body) && payload(why) == payload(body) {
		vm.forget(order[i-1])
	}
	vm.free(body)
	vm.free(why)
}

// dropPromises forgets all, at Close.
func (vm *VM) dropPromises() {
	promises := vm.tracker.promises
	vm.tracker = tracker{}
	for _, p := range promises {
		vm.free(p.promise)
	}
}
