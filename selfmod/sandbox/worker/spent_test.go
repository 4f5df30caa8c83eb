package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// TestPanic: a VM whose engine panicked is closed; its calls and those that wait
// for it are answered, other mounts go on.
func TestPanic(t *testing.T) {
	h := startWorker(t)
	h.mount(1, "host.fn(1, () => new Promise(() => {})); host.fn(2, () => 2)", time.Second)
	h.mount(2, "host.fn(2, () => 2)", time.Second)
	_, pending := h.send(invoke(1, 1, "{}"))
	h.must(invoke(1, 2, "{}"))
	w := h.worker
	w.mu.Lock()
	m := w.mounts[1]
	w.mu.Unlock()
	w.enqueue(&entry{m: m, name: "continuation", dispatch: func() (string, bool, error) {
		return "", false, &qjs.Panic{Value: "unexpected fault address"}
	}}, false)
	f := h.nextLate()
	if fault := lateFault(t, f); f.Flags&wire.FlagSpent == 0 || fault.Code != wire.CodePanic || fault.Message != "dyn-1: the JavaScript engine failed in continuation" {
		t.Errorf("late: %+v %+v", f, fault)
	}
	hasCode(t, h.await(pending), wire.CodeNoMount)
	hasCode(t, h.do(invoke(1, 2, "{}")), wire.CodeNoMount)
	h.must(invoke(2, 2, "{}"))
	h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
}

// TestWaitsEnd: a host that never answers, and a VM that is never free.
func TestWaitsEnd(t *testing.T) {
	h := startOptions(t, Options{Prelude: stubPrelude, wait: short})
	h.sync = func(*host, wire.Frame) {}
	const source = `
		host.export('plus', (a, b) => a + b)
		host.fn(1, () => { try { host.sync('x') } catch (e) { return e.message } })
		host.fn(2, () => { try { host.peer(2, 'plus', 1, 2) } catch (e) { return e.message + ' ' + e.code } })
		host.fn(3, () => { while (true) {} })`
	h.mount(1, source, time.Minute)
	h.mount(2, source, time.Minute)
	if got := h.must(invoke(1, 1, "{}")); got != `"no answer within 100 ms"` {
		t.Errorf("got %s", got)
	}
	id, spins := h.send(invoke(2, 3, "{}"))
	h.ping()
	if got := h.must(invoke(1, 2, "{}")); got != `"dyn-2 was in the middle of another synchronous call for 100 ms VM_BUSY"` {
		t.Errorf("got %s", got)
	}
	h.cancel(id)
	hasCode(t, h.await(spins), wire.CodeCancelled)
}

// TestThrown: what the code throws crosses as it is; only the engine's words about
// import() get a hint.
func TestThrown(t *testing.T) {
	h := startWorker(t)
	h.mount(1, `
		host.fn(1, () => JSON.parse('{bad'))
		host.fn(2, () => import('fs'))
		host.fn(3, () => { throw 'text' })
		host.fn(4, () => { throw Object.assign(new InternalError('interrupted'), { code: 'VM_TIMEOUT' }) })`, 10*time.Second)
	for fn, want := range []wire.Fault{
		{Name: "SyntaxError", Message: "expecting property name"},
		{Name: "ReferenceError", Message: "could not load module 'fs'" + importHint},
		{Message: "text", Raw: true},
		{Name: "InternalError", Message: "interrupted", Code: wire.CodeVMTimeout},
	} {
		r := h.do(invoke(1, uint32(fn+1), "{}"))
		f := r.fault
		if f == nil || f.Name != want.Name || !strings.HasPrefix(f.Message, want.Message) || f.Raw != want.Raw || f.Code != want.Code || r.stats.Verdict != wire.VerdictNone {
			t.Errorf("%d: %#v %+v", fn+1, f, r.stats)
		}
	}
	r := h.do(loadFrame(2, "return {\n});", time.Second))
	if r.fault == nil || r.fault.Code != wire.CodeSyntax || r.stats.Verdict != wire.VerdictSyntax ||
		!strings.HasPrefix(r.fault.Excerpt, "cordis-mount-dyn-2.js:2:2\n});\n ^\nSyntaxError: ") {
		t.Errorf("%#v %+v", r.fault, r.stats)
	}
	// Brackets that end the wrapper stay in their own VM.
	h.must(loadFrame(3, "}); (async function () {", time.Second))
	hasCode(t, h.do(loadFrame(4, "}); 42; ({", time.Second)), wire.CodeSyntax)
}
