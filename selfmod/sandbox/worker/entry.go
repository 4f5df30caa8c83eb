package worker

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// entry is one way into a VM.
type entry struct {
	m       *mount
	call    *call // of this mount, whose entry it is; nil for none
	caller  *call // of another mount, on whose behalf it is; nil for none
	chain   uint64
	run     uint32
	name    string
	answers bool // what dispatch returns is the call's answer
	nests   bool // it may run inside a wait of a thread of its chain
	trims   bool // the VM is likely to rest after it
	// dispatch enters the VM.
	dispatch func() (string, bool, error)
	// answered is told what dispatch returned, before the promise jobs run.
	answered func(text string)

	// Guarded by worker.mu.
	cancelled bool
	outer     *entry // the entry of the same VM that it nests in
}

// origin is the call that the entry is for.
func (e *entry) origin() *call {
	if e.call != nil {
		return e.call
	}
	return e.caller
}

// outcome is how an entry ended.
type outcome struct {
	text    string
	fault   *wire.Fault // what the worker saw; a value that says it failed is none
	verdict uint8
	nested  bool // inside another entry of the same VM: no promise job has run
}

// handle runs the entry on the thread, which owns the VM, and answers its call.
func (w *worker) handle(t *thread, e *entry) {
	fault := notLoaded(e.m)
	if e.m.vm == nil && e.name == "load" {
		fault = w.equip(e.m)
	}
	switch {
	case fault == nil:
		w.enter(t, e)
	case e.answers:
		w.refuse(e.call, fault)
	}
}

// notLoaded is the fault of a mount that has no VM: its Load was cancelled, or
// there was no memory for one.
func notLoaded(m *mount) *wire.Fault {
	if m.vm != nil {
		return nil
	}
	return &wire.Fault{Name: "Error", Code: wire.CodeNoMount, Message: m.label + " was not loaded"}
}

// enter runs the entry and everything that follows from it: promise jobs, late
// errors, Results.
func (w *worker) enter(t *thread, e *entry) outcome {
	m := e.m
	w.begin(t, e)
	o := outcome{nested: e.outer != nil}
	if !o.nested {
		m.clock.arm(m.limit)
	}
	if e.answers {
		e.call.timeouts = m.timeouts
	}
	before := m.clock.used
	m.clock.resume()
	var err error
	o.text, _, err = e.dispatch()
	if err == nil && e.answered != nil {
		e.answered(o.text)
	}
	if !o.nested && !fatal(err) {
		if d := m.drain(); d != nil {
			err = d
		}
		if !fatal(err) {
			w.rejections(e)
		}
	}
	m.clock.pause()
	if e.call != nil {
		e.call.engine += m.clock.used - before
	}
	w.judge(e, &o, err)
	w.end(t, e)
	w.conclude(e, &o)
	if e.trims && !o.nested {
		m.vm.Trim()
	}
	return o
}

// fatal reports an error after which the VM is not entered in the same entry.
func fatal(err error) bool {
	if err == nil {
		return false
	}
	kind, ok := qjs.KindOf(err)
	var fault *wire.Fault
	return !ok && !errors.As(err, &fault) || ok && (kind == qjs.KindInterrupted || kind == qjs.KindOutOfMemory)
}

// jobsAtOnce is how many promise jobs run between looks at what they did.
const jobsAtOnce = 1 << 16

// drain runs promise jobs until none is left or the time is up.
func (m *mount) drain() error {
	for {
		_, more, err := m.vm.RunJobs(jobsAtOnce)
		if err != nil || !more {
			return err
		}
	}
}

// begin puts the entry on its thread.
func (w *worker) begin(t *thread, e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := e.m
	e.outer, m.top = m.top, e
	m.depth++
	t.frames = append(t.frames, e)
	if t.cancelled || w.stopping || m.unload != nil {
		e.cancelled = true
		m.interruptVM()
	}
}

// end takes the entry, the innermost, off its thread.
func (w *worker) end(t *thread, e *entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := e.m
	m.top, e.outer = e.outer, nil
	m.depth--
	t.frames = slices.Delete(t.frames, len(t.frames)-1, len(t.frames))
	t.cancelled = slices.ContainsFunc(t.frames, func(f *entry) bool { return f.cancelled })
	if w.stopping || m.unload != nil || slices.ContainsFunc(t.frames, func(f *entry) bool { return f.m == m && f.cancelled }) {
		return
	}
	m.vm.ClearInterrupt()
}

// judge decides what the worker itself saw of the entry.
func (w *worker) judge(e *entry, o *outcome, err error) {
	m := e.m
	var p *qjs.Panic
	var fault *wire.Fault
	var thrown *qjs.Error
	kind, _ := qjs.KindOf(err)
	switch {
	case errors.As(err, &p), errors.Is(err, qjs.ErrBroken), m.vm.Broken():
		o.verdict = wire.VerdictPanic
		o.fault = w.spend(m, wire.CodePanic, fmt.Sprintf("%s: the JavaScript engine failed in %s", m.label, e.name))
	case m.vm.OutOfMemory():
		o.verdict = wire.VerdictMemory
		o.fault = w.spend(m, wire.CodeMemory, fmt.Sprintf("%s: %s ran out of memory (its limit is %d MiB a mount)", m.label, e.name, m.load.MemoryMB))
	case kind == qjs.KindInterrupted:
		w.judgeInterrupt(e, o)
	case errors.As(err, &fault):
		o.fault = fault
		if fault.Code == wire.CodeSyntax {
			o.verdict = wire.VerdictSyntax
		}
	case errors.As(err, &thrown):
		o.fault = m.thrown(thrown)
	case err != nil:
		o.fault = &wire.Fault{Name: "Error", Message: m.label + ": " + err.Error()}
	}
	// What only follows from an interrupted call, or is the worker's own, does not
	// come between interrupts.
	if !o.nested && kind != qjs.KindInterrupted && e.origin() != nil {
		m.interrupts = 0
	}
}

func (w *worker) judgeInterrupt(e *entry, o *outcome) {
	m := e.m
	w.mu.Lock()
	cancelled, unloaded := e.cancelled, m.unload != nil
	w.mu.Unlock()
	switch {
	case unloaded:
		o.fault = goneFault(m)
	case cancelled:
		o.fault = cancelledFault(m, e.name+" was cancelled while it ran")
	default:
		o.verdict, o.fault = wire.VerdictTimeout, m.timeoutFault(e.name)
		m.timeouts++
		if o.nested {
			return
		}
		if m.interrupts++; m.interrupts >= limits.Interrupts {
			_ = w.spend(m, wire.CodeVMTimeout, fmt.Sprintf("%s; it was the %d. entry in a row, so its VM was closed", o.fault.Message, m.interrupts))
		}
	}
}

// spend marks the VM as no longer usable; it is closed when its thread leaves it.
func (w *worker) spend(m *mount, code, message string) *wire.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.spentBy == nil {
		m.spentBy = &wire.Fault{Name: "Error", Code: code, Message: message}
		m.left = w.spare.leave(m.vm)
	}
	return m.spentBy
}

// conclude sends what follows from the entry.
func (w *worker) conclude(e *entry, o *outcome) {
	m := e.m
	told := w.answer(e, o)
	if e.call != nil {
		defer w.tellPhase(e.call) // it goes on: its host may get tired of waiting
	}
	if o.nested {
		return
	}
	done := m.done
	m.done = nil
	for _, a := range done {
		value, verdict := m.value(a.call, a.text)
		w.finish(a.call, value, verdict, 0)
	}
	switch {
	case m.spentBy != nil:
		if !told {
			w.late(e, w.nextID(), wire.FlagSpent, m.spentBy)
		}
	case o.fault != nil && !told && e.caller == nil && !expected(o.fault):
		w.late(e, w.nextID(), 0, o.fault)
	}
	if m.spentBy == nil && o.fault != nil && m.vm.PendingJobs() {
		w.enqueue(&entry{m: m, chain: e.chain, run: e.run, name: "continuation", dispatch: nothing}, true)
	}
}

// expected reports a fault that somebody asked for.
func expected(f *wire.Fault) bool { return f.Code == wire.CodeCancelled || f.Code == wire.CodeNoMount }

// nothing is the dispatch of an entry that only runs the jobs that are left.
func nothing() (string, bool, error) { return "", false, nil }

// answer finishes the call whose entry it was, if that is decided. It reports
// whether the entry's fault has been told that way.
func (w *worker) answer(e *entry, o *outcome) bool {
	c := e.call
	if c == nil {
		return false
	}
	var flags uint8
	if e.m.spentBy != nil && !o.nested {
		flags = wire.FlagSpent
	}
	switch {
	case o.fault != nil:
		return w.finish(c, failed(o.fault), o.verdict, flags)
	case !e.answers:
	case o.text != "" && o.text[0] == '~':
		if o.nested {
			w.finish(c, failed(&wire.Fault{Name: "Error", Code: wire.CodeBusy, Message: fmt.Sprintf(
				"%s: %s answered with a promise, but %s is in the middle of a synchronous call, so it cannot settle; answer synchronously",
				e.m.label, e.name, e.m.label)}), 0, 0)
		}
	default:
		value, verdict := e.m.value(c, o.text)
		w.finish(c, value, verdict, 0)
	}
	return false
}

// late sends an error that no call carries.
func (w *worker) late(e *entry, id uint64, flags uint8, fault *wire.Fault) {
	f := wire.Frame{Kind: wire.Late, Flags: flags, ID: id, Chain: e.chain, Mount: e.m.id, Run: e.run, Name: e.name}
	if fault != nil {
		f.Payload = failed(fault)[1:]
	}
	w.send(f)
}

// maxLates is how many unhandled rejections of one entry are reported by
// themselves, and how many of a mount are remembered to be withdrawn.
const (
	maxLates           = 20
	maxRememberedLates = 200
)

// rejections reports promises that were rejected and that nothing handles. The
// clock still runs: getters of the reasons may.
func (w *worker) rejections(e *entry) {
	m := e.m
	list, more := m.vm.Unhandled()
	sent := 0
	for _, r := range list {
		if r.Interrupted || r.Error.Kind == qjs.KindInterrupted ||
			m.timeouts > 0 && r.Error.Name == "InternalError" && r.Error.Message == "interrupted" {
			continue // the interrupted entry's own answer says it
		}
		if sent == maxLates {
			more++
			continue
		}
		sent++
		id := w.nextID()
		if len(m.lates) >= maxRememberedLates {
			clear(m.lates)
		}
		m.lates[r.ID] = id
		w.late(e, id, 0, m.thrown(r.Error))
	}
	if more > 0 {
		w.late(e, w.nextID(), 0, &wire.Fault{Name: "Error", Message: fmt.Sprintf(
			"%s: %d more promises were rejected and nothing handles them", m.label, more)})
	}
	for _, r := range m.vm.HandledLate() {
		if id, ok := m.lates[r]; ok {
			delete(m.lates, r)
			w.late(e, id, wire.FlagHandled, nil)
		}
	}
}
