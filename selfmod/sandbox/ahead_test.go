package sandbox_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox"
)

const liveServices = `{"tools":{"kind":"tools"},"timer":{"kind":"timer"}}`

// asked is a host that keeps what it is asked for, with what context.
type asked struct {
	host
	mu    sync.Mutex
	verbs []string
	keys  []any
}

type aheadKey struct{}

func (h *asked) Sync(ctx context.Context, a sandbox.Ask) (json.RawMessage, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.verbs, h.keys = append(h.verbs, a.Verb), append(h.keys, ctx.Value(aheadKey{}))
	return json.RawMessage(`{"effect":1}`), nil
}

func (h *asked) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.verbs)
}

// TestAhead: a worker goes on to apply only where all that the plugin injects is
// live, and nothing comes of it before Apply takes it over.
func TestAhead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		source string
		live   string
		ahead  bool
		fails  string
		asks   int
	}{
		"listener":       {source: "return (ctx) => { ctx.on('tools/change', () => {}) }", live: liveServices, ahead: true, asks: 1},
		"injects":        {source: "return { inject: ['timer', 'tools'], apply(ctx) { ctx.timer; ctx.on('tools/change', () => {}) } }", live: liveServices, ahead: true, asks: 1},
		"awaits":         {source: "await null; return (ctx) => { ctx.on('tools/change', () => {}) }", live: liveServices, ahead: true, asks: 1},
		"does_nothing":   {source: "return () => {}", live: liveServices, ahead: true},
		"throws":         {source: "return () => { throw new Error('from apply') }", live: liveServices, ahead: true, fails: "from apply"},
		"not_declared":   {source: "return (ctx) => { ctx.timeout(1) }", live: liveServices, ahead: true, fails: "timer service"},
		"not_live":       {source: "return { inject: ['tools', 'other'], apply() {} }", live: liveServices},
		"optional":       {source: "return { inject: { tools: { required: false } }, apply() {} }", live: liveServices},
		"configured":     {source: "return { inject: { tools: { required: true, config: { a: 1 } } }, apply() {} }", live: liveServices},
		"nothing_is":     {source: "return () => {}", live: "{}", ahead: true},
		"not_allowed":    {source: "return () => {}"},
		"typescript":     {source: "const a: number = 1; return (ctx: any) => { ctx.on('tools/change', () => {}) }", live: liveServices, ahead: true, asks: 1},
		"runs_too_long":  {source: "return () => { for (;;); }", live: liveServices, ahead: true, fails: "vmTimeout"},
		"takes_too_much": {source: "return () => { const a = []; for (;;) a.push(new Array(1e5).fill(1)) }", live: liveServices, ahead: true, fails: "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := sandbox.Config{MemoryMB: 16, Exe: os.Getenv("DSH_TEST_WORKER")}
			if name == "runs_too_long" {
				cfg.VMTimeout = 100 * time.Millisecond
			}
			s, err := sandbox.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			h := &asked{host: *newHost()}
			vm, _, err := s.Load(t.Context(), sandbox.Spec{ID: "dyn-1", File: "f.js", Source: c.source, Run: 1, Live: c.live}, h)
			if err != nil {
				t.Fatal(err)
			}
			if vm.Ahead() != c.ahead {
				t.Fatalf("ahead: %t", vm.Ahead())
			}
			if c.ahead { // until the worker has done all that it can
				waitFor(t, vm, h)
			}
			bindings := json.RawMessage(`{"tools":{"kind":"tools"},"timer":{"kind":"timer"},"other":null}`)
			err = vm.Apply(context.WithValue(t.Context(), aheadKey{}, "its own"), 1, bindings, nil)
			if c.fails == "" && err != nil || c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)) {
				t.Errorf("apply: %v", err)
			}
			if vm.Ahead() || vm.Open() != 0 {
				t.Errorf("ahead %t, %d calls are open", vm.Ahead(), vm.Open())
			}
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(h.verbs) != c.asks {
				t.Errorf("asked for %v", h.verbs)
			}
			for _, key := range h.keys {
				if key != "its own" {
					t.Errorf("asked in a context of %v", key)
				}
			}
		})
	}
}

// waitFor gives the worker time for what it does ahead; the host must not hear of it.
func waitFor(t *testing.T, vm *sandbox.VM, h *asked) {
	t.Helper()
	if vm.Number() == 0 {
		t.Fatal("no VM")
	}
	time.Sleep(20 * time.Millisecond) // whether it is too short or not, what is checked holds
	if n := h.count(); n != 0 {
		t.Errorf("the host was asked %d times before", n)
	}
	select {
	case why := <-h.died:
		t.Errorf("the host was told of a death before: %v", why)
	default:
	}
}

// TestAheadUnwanted: an apply that nobody takes over ends with its VM, and one of
// another run is not taken for it.
func TestAheadUnwanted(t *testing.T) {
	t.Parallel()
	s, err := sandbox.New(sandbox.Config{Exe: os.Getenv("DSH_TEST_WORKER")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	h := &asked{host: *newHost()}
	source := "let n = 0; return (ctx) => { n++; ctx.on('tools/change', () => {}); if (n > 1) throw new Error('a second time') }"
	vm, _, err := s.Load(t.Context(), sandbox.Spec{ID: "dyn-1", File: "f.js", Source: source, Run: 1, Live: "{}"}, h)
	if err != nil {
		t.Fatal(err)
	}
	if !vm.Ahead() {
		t.Fatal("the worker did not go on")
	}
	if !vm.Close(t.Context()) {
		t.Error("the VM was not closed")
	}
	if vm.Ahead() || vm.Open() != 0 {
		t.Errorf("ahead %t, %d calls are open", vm.Ahead(), vm.Open())
	}
	if err := vm.Apply(t.Context(), 1, json.RawMessage("{}"), nil); !sandbox.IsCode(err, sandbox.CodeClosed) {
		t.Errorf("apply of a closed VM: %v", err)
	}
}

// TestAheadForged: a worker that claims to go on where it may not is not believed.
func TestAheadForged(t *testing.T) {
	t.Parallel()
	h := newHost()
	vm, err := load(t, start(t, "claims_ahead"), h)
	if err != nil {
		t.Fatal(err)
	}
	if vm.Ahead() {
		t.Error("it was believed")
	}
	if err := vm.Apply(t.Context(), 1, json.RawMessage("{}"), nil); err != nil {
		t.Error(err)
	}
}
