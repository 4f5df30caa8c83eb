package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// maxNesting is how many entries may nest on one thread, through however many
// VMs.
const maxNesting = 200

// waitLimit bounds every wait of a thread: for a VM, for the host, for another
// thread. The host's own limits end it long before.
const waitLimit = limits.CallTimeout

// thread is one synchronous run of JavaScript. It owns the VMs of its frames.
// Fields are guarded by worker.mu.
type thread struct {
	chain  uint64
	frames []*entry // innermost last

	waiting    bool
	waitsVM    *mount  // in whose queue it stands
	waitsOther *thread // whose turn it waits for, of its own chain
	inbox      []func()
	mail       chan struct{} // inbox has something, or the thread was cancelled
	cancelled  bool
}

// ticket is a place in a VM's queue: an entry for an executor to run, or a
// thread that waits.
type ticket struct {
	entry  *entry
	thread *thread
	ready  chan struct{} // closed when the thread owns the VM, or err is set
	err    *wire.Fault
}

// enqueue gives the entry its turn. It reports false when the VM is gone.
func (w *worker) enqueue(e *entry, first bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enqueueLocked(e, first)
}

func (w *worker) enqueueLocked(e *entry, first bool) bool {
	m := e.m
	if m.dead != nil || m.unload != nil {
		return false
	}
	if o := m.owner; o != nil && e.nests && w.adopts(o, e.chain) {
		o.post(func() { w.handle(o, e) })
		return true
	}
	tk := &ticket{entry: e}
	if first {
		m.queue = slices.Insert(m.queue, 0, tk)
	} else {
		m.queue = append(m.queue, tk)
	}
	if m.owner == nil {
		w.own(m)
	}
	return true
}

// own lets an executor serve a VM that nobody owns.
func (w *worker) own(m *mount) {
	m.owner = &thread{}
	w.run.serve(m)
}

// adopts reports whether a thread would run an entry of the chain nested, now.
func (w *worker) adopts(t *thread, chain uint64) bool {
	return chain != 0 && t.chain == chain && t.waiting && len(t.frames) < maxNesting
}

// post hands a waiting thread something to run.
func (t *thread) post(f func()) {
	t.inbox = append(t.inbox, f)
	t.wake()
}

func (t *thread) wake() {
	select {
	case t.mail <- struct{}{}:
	default:
	}
}

// serve runs the queue of a VM that the executor's thread owns, until it is
// empty or the VM goes to a waiting thread.
func (w *worker) serve(m *mount) {
	for {
		t, e := w.next(m)
		if e == nil {
			return
		}
		w.handle(t, e)
	}
}

// next returns the entry whose turn it is and the thread for it, or gives the
// VM up.
func (w *worker) next(m *mount) (*thread, *entry) {
	w.mu.Lock()
	if m.closes() {
		w.mu.Unlock()
		w.closeMount(m)
		return nil, nil
	}
	defer w.mu.Unlock()
	if len(m.queue) == 0 || w.stopping {
		m.owner = nil
		return nil, nil
	}
	tk := m.queue[0]
	m.queue = slices.Delete(m.queue, 0, 1)
	if tk.thread != nil {
		w.grant(m, tk)
		return nil, nil
	}
	m.owner = &thread{chain: tk.entry.chain}
	return m.owner, tk.entry
}

// grant makes the waiting thread the owner.
func (w *worker) grant(m *mount, tk *ticket) {
	m.owner = tk.thread
	tk.thread.waitsVM = nil
	close(tk.ready)
}

// release gives up a VM that a thread took from inside another one.
func (w *worker) release(m *mount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case m.closes():
		w.own(m)
	case len(m.queue) == 0:
		m.owner = nil
	case m.queue[0].thread != nil:
		tk := m.queue[0]
		m.queue = slices.Delete(m.queue, 0, 1)
		w.grant(m, tk)
	default:
		w.own(m)
	}
}

// How a thread came to a VM.
const (
	took   = iota // it owns it from now on, and releases it
	had           // it owned it before
	posted        // another thread of its chain owns it, and will run it
)

// acquire makes the thread the owner of the VM, waiting for it if need be. When
// a thread of the same chain owns it and waits, that one gets run posted.
func (w *worker) acquire(t *thread, m *mount, run func(*thread)) (how int, fault *wire.Fault) {
	w.mu.Lock()
	o := m.owner
	switch {
	case m.dead != nil:
		fault = m.dead
	case m.unload != nil:
		fault = goneFault(m)
	case len(t.frames) >= maxNesting:
		fault = &wire.Fault{Name: "RangeError", Code: wire.CodeStack,
			Message: fmt.Sprintf("calls between mounts are nested deeper than %d", maxNesting)}
	case o == nil:
		m.owner = t
	case o == t:
		how = had
	case w.adopts(o, t.chain):
		how = posted
		t.waitsOther = o
		o.post(func() { run(o) })
	default:
		if circle := w.circle(t, m); circle != nil {
			fault = deadlockFault(circle)
			break
		}
		tk := &ticket{thread: t, ready: make(chan struct{})}
		m.queue = append(m.queue, tk)
		t.waitsVM = m
		w.mu.Unlock()
		return took, w.awaitTurn(t, m, tk)
	}
	w.mu.Unlock()
	return how, fault
}

// awaitTurn waits until the ticket's turn has come.
func (w *worker) awaitTurn(t *thread, m *mount, tk *ticket) *wire.Fault {
	fault := w.await(t, tk.ready)
	w.mu.Lock()
	t.waitsVM = nil
	granted := true
	select {
	case <-tk.ready:
	default:
		granted = false
		m.queue = slices.DeleteFunc(m.queue, func(q *ticket) bool { return q == tk })
	}
	w.mu.Unlock()
	switch {
	case granted && tk.err != nil:
		return tk.err
	case granted && fault != nil: // its turn came too late
		w.release(m)
	case fault != nil && fault.Code == wire.CodeBusy:
		fault.Message = fmt.Sprintf("%s was in the middle of another synchronous call for %d ms", m.label, waitLimit.Milliseconds())
	}
	return fault
}

// circle follows who waits for whom from the VM's owner and returns the mounts
// on the way when it ends at t.
func (w *worker) circle(t *thread, m *mount) []string {
	names := []string{m.label}
	for o := m.owner; o != nil; {
		switch {
		case o == t:
			return names
		case o.waitsVM != nil:
			m = o.waitsVM
			if slices.Contains(names, m.label) {
				return nil
			}
			names = append(names, m.label)
			o = m.owner
		case o.waitsOther != nil:
			o = o.waitsOther
		default:
			return nil
		}
	}
	return nil
}

func deadlockFault(names []string) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeDeadlock, Message: fmt.Sprintf(
		"deadlock: %s wait for each other in synchronous calls; let one of them answer with a promise",
		strings.Join(names, " and "))}
}

func goneFault(m *mount) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeNoMount, Message: m.label + " is gone: it was unmounted"}
}

// await waits until ready is closed and meanwhile runs what the thread's own
// chain asks of the VMs that it owns.
func (w *worker) await(t *thread, ready <-chan struct{}) *wire.Fault {
	w.startWait(t)
	timer := time.NewTimer(waitLimit)
	defer timer.Stop()
	var fault *wire.Fault
	for fault == nil {
		select {
		case <-ready:
			if !w.endWait(t) {
				continue // something came in first
			}
			return nil
		case <-t.mail:
			fault = w.mail(t)
		case <-timer.C:
			fault = &wire.Fault{Name: "Error", Code: wire.CodeBusy,
				Message: fmt.Sprintf("no answer within %d ms", waitLimit.Milliseconds())}
		case <-w.done:
			fault = &wire.Fault{Name: "Error", Code: wire.CodeCancelled, Message: "the worker ends"}
		}
	}
	for !w.endWait(t) {
		w.mail(t)
	}
	return fault
}

// startWait lets the thread be posted to, and takes up what stands in the queues
// of its VMs and belongs to its chain.
func (w *worker) startWait(t *thread) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.mail == nil {
		t.mail = make(chan struct{}, 1)
	}
	t.waiting = true
	if t.cancelled {
		t.wake()
	}
	if t.chain == 0 {
		return
	}
	for _, f := range t.frames {
		m := f.m
		m.queue = slices.DeleteFunc(m.queue, func(tk *ticket) bool {
			if tk.entry == nil || !tk.entry.nests || tk.entry.chain != t.chain {
				return false
			}
			t.post(func() { w.handle(t, tk.entry) })
			return true
		})
	}
}

// endWait ends the wait, unless there is something to run.
func (w *worker) endWait(t *thread) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(t.inbox) > 0 {
		t.wake()
		return false
	}
	t.waiting = false
	return true
}

// mail runs what was posted to a waiting thread. It returns why the thread is to
// wait no longer.
func (w *worker) mail(t *thread) *wire.Fault {
	w.mu.Lock()
	inbox, cancelled := t.inbox, t.cancelled
	t.inbox = nil
	w.mu.Unlock()
	for _, f := range inbox {
		w.nested(t, f)
	}
	if cancelled {
		return &wire.Fault{Name: "Error", Code: wire.CodeCancelled, Message: "the call was cancelled while it waited"}
	}
	return nil
}

// nested runs f inside the wait: the thread does not wait meanwhile.
func (w *worker) nested(t *thread, f func()) {
	w.mu.Lock()
	t.waiting = false
	m, other := t.waitsVM, t.waitsOther
	w.mu.Unlock()
	f()
	w.mu.Lock()
	t.waiting = true
	t.waitsVM, t.waitsOther = m, other
	if m != nil && m.owner == t { // its turn came meanwhile
		t.waitsVM = nil
	}
	w.mu.Unlock()
}

// interrupt stops every entry that runs in the VM, and those nested in them.
// Called with worker.mu held.
func (m *mount) interrupt() {
	if m.owner == nil {
		return
	}
	m.owner.interruptFrom(slices.IndexFunc(m.owner.frames, func(f *entry) bool { return f.m == m }))
}

// interruptFrom stops the thread's frames from the i-th inwards.
func (t *thread) interruptFrom(i int) {
	if i < 0 {
		return
	}
	for _, f := range t.frames[i:] {
		f.cancelled = true
		f.m.interruptVM()
	}
	t.cancelled = true
	if t.waiting {
		t.wake()
	}
}
