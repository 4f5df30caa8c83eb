package worker

import (
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

func (h *host) cancel(id uint64) {
	h.t.Helper()
	if err := h.w.Write(wire.Frame{Kind: wire.Cancel, ID: id, Payload: []byte("no longer wanted")}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) oneWay(f wire.Frame) {
	h.t.Helper()
	if err := h.w.Write(f); err != nil {
		h.t.Fatal(err)
	}
}

// ping returns once the worker has read every frame before it.
func (h *host) ping() {
	h.t.Helper()
	_, ch := h.send(wire.Frame{Kind: wire.Ping})
	select {
	case <-ch:
	case <-time.After(wait):
		h.t.Fatal("no pong")
	}
}

func hasCode(t *testing.T, r result, code string) {
	t.Helper()
	if r.fault == nil || r.fault.Code != code {
		t.Errorf("value %.100s, fault %#v, want code %s", r.value, r.fault, code)
	}
}

func TestCancel(t *testing.T) {
	h := startWorker(t)
	const source = `
		host.fn(1, () => { while (true) {} })
		host.fn(2, (a, signal) => new Promise((resolve) => { signal.listeners.push((reason) => resolve('aborted: ' + reason)) }))
		host.fn(3, () => new Promise(() => {}))
		host.fn(4, () => host.sync('hang'))
		host.fn(5, () => 'alive')
		host.fn(6, (a) => host.peer(a.mount, 'spin'))
		host.export('spin', () => { while (true) {} })`
	h.sync = func(h *host, f wire.Frame) {} // never answers
	h.mount(1, source, time.Minute)
	h.mount(2, source, time.Minute)

	t.Run("running", func(t *testing.T) {
		id, ch := h.send(invoke(1, 1, "{}"))
		queued, other := h.send(invoke(1, 1, "{}"))
		h.ping()
		h.cancel(queued)
		r := h.await(other)
		hasCode(t, r, wire.CodeCancelled)
		h.cancel(id)
		r = h.await(ch)
		hasCode(t, r, wire.CodeCancelled)
		if r.stats.Verdict != wire.VerdictNone || r.stats.Interrupts != 0 {
			t.Errorf("stats: %+v", r.stats)
		}
	})
	t.Run("signal", func(t *testing.T) {
		id, ch := h.send(invoke(1, 2, "{}"))
		h.must(invoke(1, 5, "{}"))
		h.cancel(id)
		if r := h.await(ch); r.value != `"aborted: no longer wanted"` {
			t.Errorf("%s %#v", r.value, r.fault)
		}
		h.cancel(id)     // of a call that has been answered
		h.cancel(99_999) // of none
	})
	t.Run("in_a_host_call", func(t *testing.T) {
		id, ch := h.send(invoke(1, 4, "{}"))
		h.ping()
		h.cancel(id)
		hasCode(t, h.await(ch), wire.CodeCancelled)
	})
	t.Run("in_another_mount", func(t *testing.T) {
		id, ch := h.send(invoke(1, 6, `{"mount":2}`))
		_, waits := h.send(invoke(2, 5, "{}"))
		h.ping()
		h.cancel(id)
		hasCode(t, h.await(ch), wire.CodeCancelled)
		if r := h.await(waits); r.value != `"alive"` {
			t.Errorf("%s %#v", r.value, r.fault)
		}
	})
	t.Run("waiting_for_a_mount", func(t *testing.T) {
		spin, spins := h.send(invoke(2, 1, "{}"))
		h.ping()
		id, ch := h.send(invoke(1, 6, `{"mount":2}`))
		h.ping()
		h.cancel(id)
		hasCode(t, h.await(ch), wire.CodeCancelled)
		h.cancel(spin)
		hasCode(t, h.await(spins), wire.CodeCancelled)
	})
	for _, m := range []uint32{1, 2} {
		if got := h.must(invoke(m, 5, "{}")); got != `"alive"` {
			t.Errorf("got %s", got)
		}
	}
}

func TestUnload(t *testing.T) {
	const source = `
		host.fn(1, () => { while (true) {} })
		host.fn(2, () => new Promise(() => {}))
		host.fn(3, () => host.sync('hang'))
		host.fn(4, (a) => host.peer(a.mount, 'spin'))
		host.fn(5, () => 'alive')
		host.export('spin', () => { while (true) {} })
		host.export('never', () => new Promise(() => {}))
		host.fn(6, (a) => host.peer(a.mount, 'never'))`
	for name, fn := range map[string]uint32{"running": 1, "pending": 2, "in_a_host_call": 3, "in_another_mount": 4} {
		t.Run(name, func(t *testing.T) {
			h := startWorker(t)
			h.sync = func(h *host, f wire.Frame) {}
			h.mount(1, source, time.Minute)
			h.mount(2, source, time.Minute)
			_, ch := h.send(invoke(1, fn, `{"mount":2}`))
			_, queued := h.send(invoke(1, 1, "{}"))
			h.ping()
			h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
			hasCode(t, h.await(ch), wire.CodeNoMount)
			hasCode(t, h.await(queued), wire.CodeNoMount)
			hasCode(t, h.do(invoke(1, 5, "{}")), wire.CodeNoMount)
			hasCode(t, h.do(wire.Frame{Kind: wire.Unload, Mount: 1}), wire.CodeNoMount)
			h.must(invoke(2, 5, "{}"))
		})
	}
	t.Run("a_promise_that_is_owed", func(t *testing.T) {
		h := startWorker(t)
		h.mount(1, source, time.Minute)
		h.mount(2, source, time.Minute)
		_, ch := h.send(invoke(1, 6, `{"mount":2}`))
		h.must(invoke(1, 5, "{}"))
		h.must(wire.Frame{Kind: wire.Unload, Mount: 2})
		if r := h.await(ch); r.fault == nil || r.fault.Message != "dyn-2 is gone: it was unmounted" {
			t.Errorf("%#v", r.fault)
		}
	})
}

// TestNeverSettles: what never settles holds nothing up, and is answered never.
func TestNeverSettles(t *testing.T) {
	h := startWorker(t)
	_, body := h.send(loadFrame(1, "await new Promise(() => {})", time.Second))
	h.must(loadFrame(2, "host.fn(1, () => new Promise(() => {})); host.fn(2, () => 2); return { apply: () => new Promise(() => {}) }", time.Second))
	_, apply := h.send(wire.Frame{Kind: wire.Apply, Mount: 2, Run: 1, Payload: []byte("{}")})
	_, tool := h.send(invoke(2, 1, "{}"))
	if got := h.must(invoke(2, 2, "{}")); got != "2" {
		t.Errorf("got %s", got)
	}
	for _, ch := range []<-chan wire.Frame{body, apply, tool} {
		select {
		case f := <-ch:
			t.Errorf("answered: %+v", f)
		default:
		}
	}
	h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
	h.must(wire.Frame{Kind: wire.Unload, Mount: 2})
	for _, ch := range []<-chan wire.Frame{body, apply, tool} {
		hasCode(t, h.await(ch), wire.CodeNoMount)
	}
}
