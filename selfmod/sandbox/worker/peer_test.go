package worker

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

const peerSource = `
	host.export('plus', (a, b) => a + b)
	host.export('later', async (a) => { await null; return a * 2 })
	host.export('hosted', async (a) => (await host.async('x', a)) * 2)
	host.export('throws', () => { throw Object.assign(new RangeError('out'), { code: 'E_OUT' }) })
	host.export('rejects', async () => { throw new RangeError('later out') })
	host.export('spin', () => { while (true) {} })
	host.export('back', (m, n) => n > 0 ? host.peer(m, 'forth', host.me, n - 1) : 'bottom')
	host.export('forth', (m, n) => host.peer(m, 'back', host.me, n))
	host.export('nap', () => { const end = Date.now() + 400; while (Date.now() < end); return 1 })
	host.me = host.about.mount
	host.fn(1, (a) => host.peer(...a))
	host.fn(2, (a) => { try { return host.peer(...a) } catch (e) { return e.name + ': ' + e.message + ' ' + e.code } })
	host.fn(3, (a) => { let n = 0; for (let i = 0; i < 4; i++) n += host.peer(...a); return n })
	host.fn(4, (a) => { host.sync('x'); return host.peer(...a) })
	host.fn(5, () => [host.dropped, host.caller])
`

func mountPeers(h *host, limit time.Duration) *host {
	for m := uint32(1); m <= 3; m++ {
		h.mount(m, peerSource, limit)
	}
	return h
}

func TestPeers(t *testing.T) {
	h := mountPeers(startTimed(t), time.Second)
	for _, c := range []struct {
		fn         uint32
		args, want string
	}{
		{1, `[2,"plus",1,2]`, "3"},
		{1, `[1,"plus",1,2]`, "3"}, // its own
		{1, `[2,"later",21]`, "42"},
		{1, `[2,"hosted",21]`, "42"},
		{2, `[2,"throws"]`, `"RangeError: out E_OUT"`},
		{1, `[2,"back",1,20]`, `"bottom"`}, // there and back through both VMs
		{2, `[9,"plus"]`, `"Error: there is no mount 9 NO_MOUNT"`},
		{2, `[2,"spin"]`, `"Error: dyn-2: service member did not return within 1000 ms inside the engine (vmTimeout) and was stopped VM_TIMEOUT"`},
		{3, `[3,"nap"]`, "4"}, // 1.6 s in the other VM cost the caller nothing
	} {
		r := h.do(invoke(1, c.fn, c.args))
		if r.value != c.want {
			t.Errorf("%s: got %s %#v, want %s", c.args, r.value, r.fault, c.want)
		}
	}
	if r := h.do(invoke(1, 1, `[2,"rejects"]`)); r.fault == nil || r.fault.Message != "later out" || r.fault.Name != "RangeError" {
		t.Errorf("%#v", r.fault)
	}
	r := h.do(invoke(1, 2, `[2,"back",1,500]`))
	if !strings.Contains(r.value, "nested deeper than 200") {
		t.Errorf("endless nesting: %s %#v", r.value, r.fault)
	}
	if got := h.must(invoke(2, 5, "[]")); got != `[[],"1:1"]` {
		t.Errorf("the callers that mount 2 saw: %s", got)
	}
	h.oneWay(wire.Frame{Kind: wire.Retire, Mount: 1, Run: 1})
	h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
	if got := h.must(invoke(2, 5, "[]")); got != `[["1:1"],"1:1"]` {
		t.Errorf("what mount 2 was told to drop: %s", got)
	}
}

// TestCrossingChains: two chains that hold what the other wants. One side gets an
// error that names both, the other its result.
func TestCrossingChains(t *testing.T) {
	h := mountPeers(startWorker(t), time.Minute)
	both := make(chan wire.Frame, 2)
	h.sync = func(h *host, f wire.Frame) {
		both <- f
		if len(both) == 2 {
			echo(h, <-both)
			echo(h, <-both)
		}
	}
	_, a := h.send(invoke(1, 4, `[2,"plus",1,1]`))
	_, b := h.send(invoke(2, 4, `[1,"plus",1,1]`))
	ra, rb := h.await(a), h.await(b)
	if ra.fault != nil {
		ra, rb = rb, ra
	}
	if ra.value != "2" || rb.fault == nil || rb.fault.Code != wire.CodeDeadlock ||
		!strings.Contains(rb.fault.Message, "dyn-1") || !strings.Contains(rb.fault.Message, "dyn-2") {
		t.Errorf("%s %#v, %s %#v", ra.value, ra.fault, rb.value, rb.fault)
	}
}

// TestReadTogether: what comes together with the answer that a machine waits for is
// acted on while that machine goes on.
func TestReadTogether(t *testing.T) {
	h := startTimed(t)
	const source = "host.fn(1, (n) => { host.sync('x'); for (const end = Date.now() + n; Date.now() < end;); return 'slow' }); host.fn(2, () => 'quick')"
	h.mount(1, source, time.Minute)
	h.mount(2, source, time.Minute)
	quick := make(chan wire.Frame, 1)
	h.sync = func(h *host, f wire.Frame) {
		var both bytes.Buffer
		w := wire.NewWriter(&both)
		in := invoke(2, 2, "{}")
		in.ID, in.Chain = 1<<40, 1<<40
		h.mu.Lock()
		h.results[in.ID] = quick
		h.mu.Unlock()
		for _, frame := range []wire.Frame{{Kind: wire.Reply, ID: f.ID, Mount: f.Mount, Payload: wire.Ok(nil)}, in} {
			if err := w.Write(frame); err != nil {
				h.t.Error(err)
			}
		}
		if _, err := h.in.Write(both.Bytes()); err != nil {
			h.t.Error(err)
		}
	}
	_, slow := h.send(invoke(1, 1, "2000"))
	if got := h.await(quick); got.value != `"quick"` {
		t.Errorf("got %s %v", got.value, got.fault)
	}
	select {
	case <-slow:
		t.Error("the call that came with the answer waited for the one that the answer was for")
	default:
	}
	if got := h.await(slow); got.value != `"slow"` {
		t.Errorf("got %s %v", got.value, got.fault)
	}
}

// TestSameChain: a host that calls back while a VM waits for it, on the VM's own
// chain, is served at once; other chains wait.
func TestSameChain(t *testing.T) {
	h := mountPeers(startWorker(t), time.Second)
	h.mount(4, peerSource+`
		host.fn(6, () => 'inside')
		host.fn(7, async () => 'later')
		host.fn(8, () => host.sync('call'))`, 10*time.Second)
	for _, c := range []struct {
		name  string
		frame wire.Frame
		want  string
	}{
		{"same_VM", invoke(4, 6, "{}"), `"inside"`},
		{"another_VM", invoke(1, 1, `[2,"plus",1,2]`), "3"},
		{"another_VM_and_back", invoke(1, 1, `[4,"plus",1,2]`), "3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h.sync = func(h *host, f wire.Frame) {
				in := c.frame
				in.Chain = f.Chain
				h.reply(f, wire.Ok([]byte(h.do(in).value)))
			}
			if got := h.must(invoke(4, 8, "{}")); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("same_VM_with_a_promise", func(t *testing.T) {
		h.sync = func(h *host, f wire.Frame) {
			in := invoke(4, 7, "{}")
			in.Chain = f.Chain
			r := h.do(in)
			hasCode(t, r, wire.CodeBusy)
			echo(h, f)
		}
		h.must(invoke(4, 8, "{}"))
	})
	t.Run("another_chain", func(t *testing.T) {
		var other <-chan wire.Frame
		h.sync = func(h *host, f wire.Frame) {
			_, other = h.send(invoke(4, 6, "{}"))
			h.ping()
			select {
			case <-other:
				t.Error("it did not wait")
			default:
			}
			echo(h, f)
		}
		h.must(invoke(4, 8, "{}"))
		if r := h.await(other); r.value != `"inside"` {
			t.Errorf("%s %#v", r.value, r.fault)
		}
	})
}

// TestManyPeers: chains of many mounts cross at random and all end.
func TestManyPeers(t *testing.T) {
	h := mountPeers(startWorker(t), 10*time.Second)
	var all []<-chan wire.Frame
	for i := range 300 {
		m := uint32(i%3 + 1)
		_, ch := h.send(invoke(m, 2, fmt.Sprintf(`[%d,"back",%d,3]`, i%2+1, m)))
		all = append(all, ch)
	}
	answered := 0
	for _, ch := range all {
		r := h.await(ch)
		switch {
		case r.value == `"bottom"`:
			answered++
		case strings.Contains(r.value, "deadlock"):
		default:
			t.Errorf("%s %#v", r.value, r.fault)
		}
	}
	if answered == 0 {
		t.Error("none was answered")
	}
}
