package worker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// short is the limit of mounts that are to be stopped.
const short = 100 * time.Millisecond

// endless are ways to run for ever that the engine can interrupt; each is a
// statement.
var endless = map[string]string{
	"loop":       `while (true) {}`,
	"try_catch":  `while (true) { try { while (true) {} } catch {} }`,
	"finally":    `while (true) { try { while (true) {} } finally { continue } }`,
	"regexp":     `/^(?=(a+))(\1|a)+$/.test('a'.repeat(40) + 'b'); while (true) /(a*)*b/.test('a'.repeat(30))`,
	"comparator": `while (true) [3, 2, 1].sort(() => { while (true) {} })`,
	"getter":     `const o = { get x() { while (true) {} } }; o.x`,
	"proxy":      `const p = new Proxy({}, { get() { while (true) {} } }); p.x`,
	"toString":   `'' + { toString() { while (true) {} } }`,
	"generator":  `const g = (function* () { while (true) yield 1 })(); for (const x of g) {}`,
	"replace":    `while (true) 'aaa'.replace(/a/g, () => { while (true) {} })`,
	"json":       `JSON.stringify({ toJSON() { while (true) {} } })`,
}

func TestEndlessTool(t *testing.T) {
	h := startTimed(t)
	h.mount(1, "host.fn(1, () => 1)", time.Second)
	var n uint32 = 1
	for name, body := range endless {
		n++
		t.Run(name, func(t *testing.T) {
			h.mount(n, "host.fn(1, () => {"+body+"}); host.fn(2, () => 'alive'); host.fn(3, async () => {"+body+"})", short)
			_, hung := h.send(invoke(n, 1, "{}"))
			if got := h.must(invoke(1, 1, "{}")); got != "1" { // others go on
				t.Errorf("got %s", got)
			}
			interrupted(t, h.await(hung), n, "tool", 1)
			if got := h.must(invoke(n, 2, "{}")); got != `"alive"` {
				t.Errorf("got %s", got)
			}
			interrupted(t, h.do(invoke(n, 3, "{}")), n, "tool", 1)
		})
	}
	if len(h.late) > 0 {
		t.Errorf("late: %v", h.late)
	}
}

// interrupted checks the result of an entry past its limit.
func interrupted(t *testing.T, r result, mount uint32, entry string, inARow uint32) {
	t.Helper()
	if r.fault == nil || r.fault.Code != wire.CodeVMTimeout || r.stats.Verdict != wire.VerdictTimeout || r.stats.Interrupts != inARow {
		t.Fatalf("value %s, fault %#v, stats %+v", r.value, r.fault, r.stats)
	}
	if want := fmt.Sprintf("dyn-%d: %s did not return within 100 ms", mount, entry); !strings.HasPrefix(r.fault.Message, want) {
		t.Errorf("message: %s", r.fault.Message)
	}
	if r.stats.Engine < short || r.stats.Engine > short+time.Second {
		t.Errorf("engine time: %v", r.stats.Engine)
	}
}

func TestEndlessEntries(t *testing.T) {
	const loop = "while (true) {}"
	h := startTimed(t)
	t.Run("body", func(t *testing.T) {
		interrupted(t, h.do(loadFrame(1, loop, short)), 1, "load", 1)
	})
	t.Run("body_async", func(t *testing.T) {
		interrupted(t, h.do(loadFrame(2, "await null; "+loop, short)), 2, "load", 1)
	})
	t.Run("apply", func(t *testing.T) {
		h.must(loadFrame(3, "return { apply() {"+loop+"} }", short))
		interrupted(t, h.do(wire.Frame{Kind: wire.Apply, Mount: 3, Run: 1, Payload: []byte("{}")}), 3, "apply", 1)
	})
	t.Run("continuation", func(t *testing.T) {
		h.mount(4, "host.fn(1, async () => { await host.async('x'); "+loop+"})", short)
		interrupted(t, h.do(invoke(4, 1, "{}")), 4, "continuation", 1)
	})
	t.Run("phase", func(t *testing.T) {
		h.mount(5, "const busy = (ms) => { const end = Date.now() + ms; while (Date.now() < end); };"+
			"host.fn(1, () => { busy(350); host.phase('render'); busy(350); host.phase('meta'); "+loop+"})", 500*time.Millisecond)
		r := h.do(invoke(5, 1, "{}"))
		if r.fault == nil || !strings.HasPrefix(r.fault.Message, "dyn-5: meta did not return within 500 ms") || r.stats.Engine < 1150*time.Millisecond {
			t.Errorf("%#v, %+v", r.fault, r.stats)
		}
	})
	t.Run("phases_are_bounded", func(t *testing.T) {
		h.mount(6, "host.fn(1, () => { while (true) host.phase('again') })", short)
		if r := h.do(invoke(6, 1, "{}")); r.stats.Verdict != wire.VerdictTimeout || r.stats.Engine > time.Second {
			t.Errorf("%#v, %+v", r.fault, r.stats)
		}
	})
	t.Run("retire", func(t *testing.T) {
		h.mount(7, "return { retire() {"+loop+"} }", short)
		if err := h.w.Write(wire.Frame{Kind: wire.Retire, Mount: 7, Run: 1}); err != nil {
			t.Fatal(err)
		}
		if f := h.nextLate(); f.Mount != 7 || !strings.Contains(string(f.Payload), "retire did not return within 100 ms") {
			t.Errorf("late: %+v", f)
		}
	})
	t.Run("caught_by_the_caller", func(t *testing.T) {
		// The interrupt of an async function is a rejection that its caller may catch.
		h.mount(8, "host.fn(1, async () => { try { await (async () => { await null; "+loop+"})() } catch {} return 'caught' })", short)
		interrupted(t, h.do(invoke(8, 1, "{}")), 8, "tool", 1)
	})
	t.Run("microtasks", func(t *testing.T) {
		h.mount(9, "host.fn(1, () => { const f = () => Promise.resolve().then(f); for (let i = 0; i < 10; i++) f(); return 1 })", short)
		interrupted(t, h.do(invoke(9, 1, "{}")), 9, "tool", 1)
		// The jobs that are left go on until the VM is spent. An interrupt inside
		// one ends its chain, so there are several.
		var f wire.Frame
		for f = h.nextLate(); f.Flags&wire.FlagSpent == 0; f = h.nextLate() {
		}
		if f.Mount != 9 || !strings.Contains(string(f.Payload), wire.CodeVMTimeout) {
			t.Errorf("late: %s", f.Payload)
		}
		if r := h.do(invoke(9, 1, "{}")); r.fault == nil || r.fault.Code != wire.CodeNoMount {
			t.Errorf("after it was spent: %#v", r.fault)
		}
		h.must(wire.Frame{Kind: wire.Unload, Mount: 9})
	})
}

// nextLate returns the next Late.
func (h *host) nextLate() wire.Frame {
	h.t.Helper()
	select {
	case f := <-h.lates:
		return f
	case <-time.After(wait):
		h.t.Fatal("no late error")
	}
	panic("unreachable")
}

func TestInterruptsInARow(t *testing.T) {
	h := startTimed(t)
	h.mount(1, "host.fn(1, () => { while (true) {} }); host.fn(2, () => 1); host.fn(3, () => new Promise(() => {}))", short)
	for i := range uint32(limits.Interrupts - 1) {
		interrupted(t, h.do(invoke(1, 1, "{}")), 1, "tool", i+1)
	}
	h.must(invoke(1, 2, "{}"))
	_, pending := h.send(invoke(1, 3, "{}"))
	for i := range uint32(limits.Interrupts) {
		r := h.do(invoke(1, 1, "{}"))
		interrupted(t, r, 1, "tool", i+1)
		if spent := r.Flags&wire.FlagSpent != 0; spent != (i+1 == limits.Interrupts) {
			t.Errorf("interrupt %d: spent %t", i+1, spent)
		}
	}
	if r := h.await(pending); r.fault == nil || r.fault.Code != wire.CodeNoMount || !strings.HasPrefix(r.fault.Message, "dyn-1 is gone: ") {
		t.Errorf("a call that waited: %#v", r.fault)
	}
	h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
}

// TestClockStandsStill: waiting for the host costs nothing.
func TestClockStandsStill(t *testing.T) {
	h := startTimed(t)
	h.sync = func(h *host, f wire.Frame) {
		time.Sleep(250 * time.Millisecond)
		echo(h, f)
	}
	h.mount(1, "host.fn(1, () => host.sync('x', 7)); host.fn(2, () => { host.sync('x', 7); while (true) {} })", short)
	if r := h.do(invoke(1, 1, "{}")); r.value != "7" || r.stats.Engine > short {
		t.Errorf("%s %#v %+v", r.value, r.fault, r.stats)
	}
	interrupted(t, h.do(invoke(1, 2, "{}")), 1, "tool", 1)
}

func TestMemory(t *testing.T) {
	for name, body := range map[string]string{
		"one_huge":       "new Uint8Array(500e6)",
		"strings":        "const a = []; while (true) a.push('x'.repeat(1e6) + a.length)",
		"small_objects":  "const a = []; while (true) a.push({ a: 1 })",
		"caught":         "const a = []; while (true) { try { while (true) a.push('x'.repeat(1e6) + a.length) } catch { return 'caught' } }",
		"map":            "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
		"async":          "return (async () => { await null; const a = []; while (true) a.push('x'.repeat(1e6) + a.length) })()",
		"in_a_rejection": "return Promise.resolve().then(() => { const a = []; while (true) a.push('x'.repeat(1e6) + a.length) })",
	} {
		t.Run(name, func(t *testing.T) {
			h := startTimed(t)
			h.mount(1, "host.fn(1, () => {"+body+"})", 10*time.Second)
			h.mount(2, "host.fn(1, () => 1)", time.Second)
			r := h.do(invoke(1, 1, "{}"))
			if r.fault == nil || r.fault.Code != wire.CodeMemory || r.stats.Verdict != wire.VerdictMemory || r.Flags&wire.FlagSpent == 0 {
				t.Fatalf("%.100s %#v %+v flags %d", r.value, r.fault, r.stats, r.Flags)
			}
			if r.fault.Message != "dyn-1: tool ran out of memory (its limit is 64 MiB a mount)" {
				t.Errorf("message: %s", r.fault.Message)
			}
			h.must(invoke(2, 1, "{}"))
			h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
			h.mount(3, "host.fn(1, () => 1)", time.Second)
			if got := h.must(invoke(3, 1, "{}")); got != "1" {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestRecursion(t *testing.T) {
	h := startTimed(t)
	h.mount(1, "const f = () => f() + 1; host.fn(1, f); const g = () => [1].map(g); host.fn(2, g); host.fn(3, () => 'alive'); host.fn(4, (a) => a)", 10*time.Second)
	for fn := range uint32(2) {
		if r := h.do(invoke(1, fn+1, "{}")); r.fault == nil || !strings.Contains(r.fault.Message, "stack overflow") || r.stats.Verdict != wire.VerdictNone {
			t.Errorf("%#v %+v", r.fault, r.stats)
		}
	}
	if got := h.must(invoke(1, 3, "{}")); got != `"alive"` {
		t.Errorf("got %s", got)
	}
	deep := strings.Repeat("[", limits.DepthWorks) + strings.Repeat("]", limits.DepthWorks)
	if got := h.must(invoke(1, 4, deep)); got != deep {
		t.Errorf("%d deep: got %d bytes", limits.DepthWorks, len(got))
	}
}
