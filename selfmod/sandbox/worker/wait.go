package worker

import (
	"fmt"
	"slices"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/relay"
)

// await waits until ready is closed and meanwhile runs what the thread's own
// chain asks of the VMs that it owns.
func (w *worker) await(t *thread, ready <-chan struct{}) *wire.Fault {
	w.startWait(t)
	timer := time.NewTimer(w.wait)
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
			fault = w.busyFault()
		case <-w.done:
			fault = endsFault()
		}
	}
	for !w.endWait(t) {
		_ = w.mail(t) // the wait is over, whatever it says
	}
	return fault
}

// awaitReply is await for an answer of the host. The reader's goroutine reads
// meanwhile, if nobody has relieved it: most of the time what comes is the answer.
func (w *worker) awaitReply(t *thread, ready <-chan struct{}) *wire.Fault {
	if !t.leads {
		return w.await(t, ready)
	}
	if t.leads = w.relay.Back(); !t.leads {
		return w.await(t, ready)
	}
	w.startWait(t)
	w.setReading(t, w.relay)
	fault := w.readUntil(t, ready)
	w.setReading(t, nil)
	w.leave(t)
	switch {
	case fault == nil && !isClosed(ready):
		return w.await(t, ready) // it was relieved
	case fault == nil && w.endWait(t):
		return nil
	case fault == nil:
		return w.await(t, ready) // something came in first
	}
	for !w.endWait(t) {
		_ = w.mail(t) // the wait is over, whatever it says
	}
	return fault
}

func (w *worker) setReading(t *thread, r *relay.Relay) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t.reading = r
}

// readUntil reads and acts on frames until ready is closed, the thread is relieved,
// which then does not lead any more, or the wait is over for the reason that it
// returns.
func (w *worker) readUntil(t *thread, ready <-chan struct{}) *wire.Fault {
	limit := time.Now().Add(w.wait)
	for !isClosed(ready) {
		select {
		case <-t.mail:
			// What runs now may take long.
			w.leave(t)
			fault := w.mail(t)
			t.leads = t.leads && w.relay.Back()
			if fault != nil || !t.leads {
				return fault
			}
			continue
		case <-w.done:
			return endsFault()
		default:
		}
		left := time.Until(limit)
		if left <= 0 {
			return w.busyFault()
		}
		// While nothing else runs, only a frame can end the wait: the host's answer,
		// which it gives in time whatever it does, its Cancel, or the end of its
		// frames. Reading costs half of what waiting and then reading does.
		if w.in.Buffered() == 0 && !w.run.alone() && !w.relay.Wait(left) {
			continue
		}
		f, err := w.next()
		if err == nil {
			err = w.frame(f)
		}
		if err != nil {
			w.fail(err)
			return endsFault()
		}
	}
	return nil
}

// leave lets the standby read from here on. What has been read already, and that the
// standby would not see, is acted on before.
func (w *worker) leave(t *thread) {
	for t.leads && w.in.Buffered() > 0 {
		f, err := w.next()
		if err == nil {
			err = w.frame(f)
		}
		if err != nil {
			w.fail(err)
			return
		}
	}
	if t.leads && !w.relay.Leave() {
		t.leads = false // it ends, or has no standby for a reason of the system
		go w.read()
	}
}

func (w *worker) busyFault() *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeBusy, Message: fmt.Sprintf("no answer within %d ms", w.wait.Milliseconds())}
}

func endsFault() *wire.Fault {
	return &wire.Fault{Name: "Error", Code: wire.CodeCancelled, Message: "the worker ends"}
}

// startWait lets the thread be posted to.
func (w *worker) startWait(t *thread) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t.mail == nil {
		t.mail = make(chan struct{}, 1)
	}
	w.takeUp(t)
	if t.cancelled {
		t.wake()
	}
}

// takeUp makes the thread wait, and takes up what stands in the queues of its VMs
// and belongs to its chain. Called with worker.mu held.
func (w *worker) takeUp(t *thread) {
	t.waiting = true
	if t.chain == 0 {
		return
	}
	for _, f := range t.frames {
		m := f.m
		m.queue = slices.DeleteFunc(m.queue, func(tk *ticket) bool {
			switch {
			case tk.entry != nil && tk.entry.nests && tk.entry.chain == t.chain:
				t.post(func() { w.handle(t, tk.entry) })
			case tk.thread != nil && tk.thread != t && tk.thread.chain == t.chain:
				w.postTicket(t, tk)
			default:
				return false
			}
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

// nested runs f inside the wait: the thread does not wait meanwhile, and what came
// for it waits in the queue.
func (w *worker) nested(t *thread, f func()) {
	w.mu.Lock()
	t.waiting = false
	w.mu.Unlock()
	f()
	w.mu.Lock()
	w.takeUp(t)
	w.mu.Unlock()
}
