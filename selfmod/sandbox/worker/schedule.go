package worker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/relay"
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

	leads     bool         // it is the goroutine of the reader, which has left
	reading   *relay.Relay // it waits and reads meanwhile; see awaitReply
	waiting   bool         // now, so that it can be posted to
	waitsFor  []*waitFor   // innermost last: what runs inside a wait may wait again
	inbox     []func()
	mail      chan struct{} // inbox has something, or the thread was cancelled
	cancelled bool
}

// waitFor is one wait for another thread: for the owner of a VM, or for one of
// the same chain that runs something for the thread.
type waitFor struct {
	vm     *mount
	thread *thread
}

// on is the thread that is waited for, nil for none.
func (f *waitFor) on() *thread {
	if f.vm != nil {
		return f.vm.owner
	}
	return f.thread
}

// ticket is a place in a VM's queue: an entry for an executor to run, or a
// thread that waits.
type ticket struct {
	entry  *entry
	thread *thread
	wait   *waitFor
	run    func(*thread) // what the thread wants to run in the VM
	ready  chan struct{} // closed when the thread owns the VM, run has run, or err is set
	posted bool          // the VM's owner runs it
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

// own lets an executor, or the reader, serve a VM that nobody owns.
func (w *worker) own(m *mount) {
	m.owner = &thread{}
	if w.catching && w.caught == nil {
		w.caught = m
		return
	}
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
	if t.reading != nil {
		t.reading.Wake()
	}
}

// serve runs the queue of a VM that the executor's thread owns, until it is
// empty or the VM goes to a waiting thread. It leads on the reader's goroutine.
func (w *worker) serve(m *mount, leads bool) {
	for {
		t, e := w.turn(m, leads)
		if e == nil {
			return
		}
		w.handle(t, e)
	}
}

// turn returns the entry whose turn it is and the thread for it, or gives the
// VM up.
func (w *worker) turn(m *mount, leads bool) (*thread, *entry) {
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
	m.owner = &thread{chain: tk.entry.chain, leads: leads}
	return m.owner, tk.entry
}

// grant makes the waiting thread the owner.
func (w *worker) grant(m *mount, tk *ticket) {
	m.owner = tk.thread
	tk.wait.vm = nil
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
	default:
		if circle := m.circle(t); circle != nil && !w.adopts(o, t.chain) {
			fault = deadlockFault(circle)
			break
		}
		tk := &ticket{thread: t, wait: &waitFor{vm: m}, run: run, ready: make(chan struct{})}
		t.waitsFor = append(t.waitsFor, tk.wait)
		if w.adopts(o, t.chain) {
			w.postTicket(o, tk)
		} else {
			m.queue = append(m.queue, tk)
		}
		w.mu.Unlock()
		return w.awaitTurn(t, m, tk)
	}
	w.mu.Unlock()
	return how, fault
}

// postTicket lets the VM's owner, which waits, run what the ticket's thread
// wants to run.
func (w *worker) postTicket(o *thread, tk *ticket) {
	tk.posted = true
	tk.wait.vm, tk.wait.thread = nil, o
	o.post(func() {
		tk.run(o)
		close(tk.ready)
	})
}

// awaitTurn waits until the ticket's turn has come, or what was posted is done.
func (w *worker) awaitTurn(t *thread, m *mount, tk *ticket) (how int, fault *wire.Fault) {
	fault = w.await(t, tk.ready)
	w.mu.Lock()
	t.waitsFor = t.waitsFor[:len(t.waitsFor)-1]
	granted := isClosed(tk.ready)
	if !granted {
		m.queue = slices.DeleteFunc(m.queue, func(q *ticket) bool { return q == tk })
	}
	w.mu.Unlock()
	switch {
	case tk.posted:
		how = posted
	case granted && tk.err != nil:
		fault = tk.err
	case granted && fault != nil: // its turn came too late
		w.release(m)
	case fault != nil && fault.Code == wire.CodeBusy:
		fault.Message = fmt.Sprintf("%s was in the middle of another synchronous call for %d ms", m.label, w.wait.Milliseconds())
	}
	return how, fault
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// circle returns the mounts on a way from the VM's owner, along who waits for
// whom, back to t; nil when there is none.
func (m *mount) circle(t *thread) []string {
	seen := map[*thread]bool{}
	var walk func(o *thread, names []string) []string
	walk = func(o *thread, names []string) []string {
		if o == t {
			return names
		}
		if o == nil || seen[o] {
			return nil
		}
		seen[o] = true
		for _, f := range o.waitsFor {
			way := names
			if f.vm != nil {
				way = append(slices.Clip(names), f.vm.label)
			}
			if found := walk(f.on(), way); found != nil {
				return found
			}
		}
		return nil
	}
	return walk(m.owner, []string{m.label})
}

func deadlockFault(names []string) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeDeadlock, Message: fmt.Sprintf(
		"deadlock: %s wait for each other in synchronous calls; let one of them answer with a promise",
		strings.Join(names, " and "))}
}

func goneFault(m *mount) *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeNoMount, Message: m.label + " is gone: it was unmounted"}
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
