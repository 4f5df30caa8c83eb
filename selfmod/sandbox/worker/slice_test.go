package worker

import (
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// TestSlice goes once through everything: load, apply, invoke, sync, async,
// settle, retire, unload.
func TestSlice(t *testing.T) {
	h := startWorker(t)
	h.mount(1, `
		host.fn(1, (a) => a.n + 1)
		host.fn(2, async (a) => (await host.async('twice', a.n)) * 2)
		host.fn(3, (a) => host.sync('same', a))
		host.fn(4, () => { throw Object.assign(new TypeError('no'), { code: 'E_NO' }) })
		return { name: 'demo', apply() { host.send('effect', 1) } }`, 10*time.Second)
	for _, c := range []struct {
		fn         uint32
		args, want string
	}{
		{1, `{"n":1}`, "2"},
		{2, `{"n":21}`, "42"},
		{3, `{"x":["y"]}`, `{"x":["y"]}`},
	} {
		if got := h.must(invoke(1, c.fn, c.args)); got != c.want {
			t.Errorf("function %d: got %s, want %s", c.fn, got, c.want)
		}
	}
	r := h.do(invoke(1, 4, "{}"))
	if f := r.fault; f == nil || f.Name != "TypeError" || f.Message != "no" || f.Code != "E_NO" || len(f.Frames) != 1 ||
		f.Frames[0] != "at <anonymous> (cordis-mount-dyn-1.js:5:55)" {
		t.Errorf("thrown: %+v", *r.fault)
	}
	if r.stats.Heap == 0 || r.stats.Engine <= 0 {
		t.Errorf("stats: %+v", r.stats)
	}
	h.must(wire.Frame{Kind: wire.Unload, Mount: 1})
	if r := h.do(invoke(1, 1, "{}")); r.fault == nil || r.fault.Code != wire.CodeNoMount {
		t.Errorf("after unload: %+v", r.fault)
	}
	if len(h.sends) != 1 || len(h.late) != 0 {
		t.Errorf("sends %v, late %v", h.sends, h.late)
	}
}
