package worker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

func lateFault(t *testing.T, f wire.Frame) wire.Fault {
	t.Helper()
	var fault wire.Fault
	if err := json.Unmarshal(f.Payload, &fault); err != nil {
		t.Fatalf("%v: %q", err, f.Payload)
	}
	return fault
}

func TestRejections(t *testing.T) {
	h := startWorker(t)
	h.mount(1, `
host.fn(1, () => { (async () => { throw new RangeError('floating') })() })
host.fn(2, async () => { await host.async('x'); Promise.reject('text') })
host.fn(3, () => { host.p = Promise.reject(new Error('handled later')) })
host.fn(4, () => { host.p.catch(() => {}) })
host.fn(5, () => { Promise.reject(new Error('caught')).catch(() => {}) })
host.fn(6, () => { for (let i = 0; i < 300; i++) Promise.reject(new Error('no ' + i)) })
host.fn(7, () => 7)`, 10*time.Second)
	h.must(invoke(1, 1, "{}"))
	f := h.nextLate()
	if got := lateFault(t, f); got.Name != "RangeError" || got.Message != "floating" || len(got.Frames) == 0 ||
		got.Frames[0] != "at <anonymous> (cordis-mount-dyn-1.js:2:55)" || f.Mount != 1 {
		t.Errorf("late: %+v %+v", f, got)
	}
	h.must(invoke(1, 2, "{}"))
	if got := lateFault(t, h.nextLate()); !got.Raw || got.Message != "text" {
		t.Errorf("late: %+v", got)
	}
	h.must(invoke(1, 3, "{}"))
	f = h.nextLate()
	h.must(invoke(1, 4, "{}"))
	if g := h.nextLate(); g.ID != f.ID || g.Flags&wire.FlagHandled == 0 {
		t.Errorf("late %+v, then %+v", f, g)
	}
	h.must(invoke(1, 5, "{}"))
	h.must(invoke(1, 6, "{}"))
	for range maxLates {
		h.nextLate()
	}
	if got := lateFault(t, h.nextLate()); got.Message != "dyn-1: 280 more promises were rejected and nothing handles them" {
		t.Errorf("late: %+v", got)
	}
	h.must(invoke(1, 7, "{}"))
	if len(h.lates) > 0 {
		t.Errorf("more: %+v", <-h.lates)
	}
}

// TestInterruptedIsNoRejection: the promise that an interrupt rejects belongs to
// the call that was interrupted.
func TestInterruptedIsNoRejection(t *testing.T) {
	h := startTimed(t)
	h.mount(1, `
host.fn(1, async () => { while (true) {} })
host.fn(2, async () => { await host.async('x'); while (true) {} })
host.fn(3, () => 3)`, short)
	for fn := range uint32(2) {
		interruptedAny(t, h.do(invoke(1, fn+1, "{}")))
		h.must(invoke(1, 3, "{}"))
	}
	if len(h.lates) > 0 {
		t.Errorf("late: %+v", lateFault(t, <-h.lates))
	}
}

func interruptedAny(t *testing.T, r result) {
	t.Helper()
	if r.stats.Verdict != wire.VerdictTimeout || r.fault == nil || r.fault.Code != wire.CodeVMTimeout {
		t.Errorf("%s %#v %+v", r.value, r.fault, r.stats)
	}
}

func TestConsole(t *testing.T) {
	h := startWorker(t)
	h.mount(1, `
host.fn(1, () => { console.log('one'); console.log('é'.repeat(9000)) })
host.fn(2, () => { for (let i = 0; i < 10000; i++) console.log(i) })
host.fn(3, () => { console.log('after') })`, 10*time.Second)
	h.must(invoke(1, 1, "{}"))
	if len(h.console) != 2 || h.console[0].Name != "log" || string(h.console[0].Payload) != "one" ||
		len(h.console[1].Payload) > limits.ConsoleLineBytes || !strings.HasSuffix(string(h.console[1].Payload), "é…") {
		t.Errorf("console: %d lines", len(h.console))
	}
	began := time.Now()
	h.must(invoke(1, 2, "{}"))
	h.mu.Lock()
	n := len(h.console)
	h.mu.Unlock()
	// Two lines came before; each second lets some pass, and one notice.
	most := 2 + limits.ConsoleBurst + (limits.ConsoleRate+1)*(1+int(time.Since(began).Seconds()))
	if n < limits.ConsoleBurst || n > most {
		t.Errorf("%d lines passed, at most %d may", n, most)
	}
}

func TestBucket(t *testing.T) {
	var b bucket
	now := time.Unix(1000, 0)
	passed := 0
	for range 1000 {
		if ok, dropped := b.take(now); ok {
			passed++
		} else if dropped != 0 {
			t.Error("told at once")
		}
	}
	if passed != limits.ConsoleBurst {
		t.Errorf("%d passed at once", passed)
	}
	now = now.Add(time.Second)
	ok, dropped := b.take(now)
	if !ok || dropped != 1000-limits.ConsoleBurst {
		t.Errorf("a second later: %t, %d", ok, dropped)
	}
	passed = 1
	for range 1000 {
		now = now.Add(time.Millisecond)
		ok, dropped := b.take(now)
		if ok {
			passed++
		}
		if dropped != 0 && now.Before(time.Unix(1002, 0)) {
			t.Errorf("told twice within a second")
		}
	}
	if passed < 195 || passed > 205 {
		t.Errorf("%d passed in a second", passed)
	}
}

// TestFlood: what a VM asks for is bounded.
func TestFlood(t *testing.T) {
	h := startTimed(t)
	h.async = func(h *host, f wire.Frame) {}
	payload := wire.AppendLoad(nil, wire.LoadRequest{MemoryMB: 512, ID: "dyn-1", Source: `
host.fn(1, () => { try { while (true) host.async('x') } catch (e) { return e.message } })
host.fn(2, () => { for (let i = 0; i < 5000; i++) host.send('progress', i) })
host.fn(3, () => { try { host.async('x', '\\u0001'.repeat(2.9e6)) } catch (e) { return e.message } })
host.fn(4, () => 'x'.repeat(8e6))
host.fn(5, () => { try { host.raw('nonsense') } catch (e) { return e.message } })
host.fn(6, () => { try { host.raw('sync', '1') } catch (e) { return e.message } })
host.fn(7, () => { host.raw('done', '1', '=1'); host.raw('done', '999', '=1'); host.raw('peerdone', '1', '=1'); host.raw('phase', '77', 'x'); return 'alive' })
host.fn(8, () => host.raw('peer', '2', 'nonsense'))
`})
	h.must(wire.Frame{Kind: wire.Load, Mount: 1, Payload: payload})
	for fn, want := range map[uint32]string{
		1: `"x: 1000 requests of this mount are unanswered, the limit is 1000; await some of them first"`,
		3: `"x: the arguments take 20300002 bytes as JSON, the limit is 16777216"`,
		5: `"__host: no operation \"nonsense\""`,
		6: `"__host: sync takes 4 arguments, got 1"`,
		7: `"alive"`,
	} {
		if got := h.must(invoke(1, fn, "{}")); got != want {
			t.Errorf("%d: got %s", fn, got)
		}
	}
	h.must(invoke(1, 2, "{}"))
	h.mu.Lock()
	if n := len(h.sends); n < limits.ConsoleBurst || n > 2*limits.ConsoleBurst {
		t.Errorf("%d reports of progress passed", n)
	}
	h.mu.Unlock()
	if got := h.must(invoke(1, 4, "{}")); len(got) != 8e6+2 {
		t.Errorf("got %d bytes", len(got))
	}
	if r := h.do(invoke(1, 8, "{}")); r.fault == nil {
		t.Errorf("got %s", r.value)
	}
}

// TestOneWay: bind and retire take effect in their order.
func TestOneWay(t *testing.T) {
	h := startWorker(t)
	h.mount(1, `host.fn(1, () => [host.bound, host.retired, host.about])`, 10*time.Second)
	h.oneWay(wire.Frame{Kind: wire.Bind, Mount: 1, Run: 1, Name: "clock", Payload: []byte("null")})
	h.oneWay(wire.Frame{Kind: wire.Retire, Mount: 1, Run: 1})
	h.oneWay(wire.Frame{Kind: wire.Bind, Mount: 7, Run: 1, Name: "clock"})
	h.oneWay(wire.Frame{Kind: wire.Settle, ID: 12345})
	h.oneWay(wire.Frame{Kind: wire.Reply, ID: 12345})
	if got, want := h.must(invoke(1, 1, "{}")), `[["1","clock","null"],"1",{"mount":1}]`; got != want && !strings.HasPrefix(got, want[:30]) {
		t.Errorf("got %s", got)
	}
}

func TestCheck(t *testing.T) {
	h := startWorker(t)
	h.mount(1, `host.fn(1, (a) => { try { return host.check(a) } catch (e) { return e.name + ': ' + e.message } })`, 10*time.Second)
	if got := h.must(invoke(1, 1, `{"name":"ok","parameters":{"text":{"type":"string"}},"output":{"type":"string"}}`)); got != "" {
		t.Errorf("got %s", got)
	}
	got := h.must(invoke(1, 1, `{"name":"bad","parameters":{"text":{"type":"text"}},"output":{"type":"string"}}`))
	if !strings.HasPrefix(got, `"TypeError: harness.defineTool \"bad\" parameters`) {
		t.Errorf("got %s", got)
	}
}
