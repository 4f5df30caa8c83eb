package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// host is a mount that notes what it is told.
type host struct{ died chan *sandbox.Error }

func newHost() *host { return &host{died: make(chan *sandbox.Error, 10)} }

func (h *host) Sync(ctx context.Context, a sandbox.Ask) (json.RawMessage, error) {
	return h.Async(ctx, a)
}

func (h *host) Async(ctx context.Context, a sandbox.Ask) (json.RawMessage, error) {
	if a.Verb == "hang" {
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		return nil, errors.New("hung")
	}
	return a.Payload, nil
}

func (h *host) Send(context.Context, sandbox.Ask) {}
func (h *host) Console(string, string)            {}
func (h *host) Late(uint64, *wire.Fault, bool)    {}
func (h *host) Died(err *sandbox.Error, _ bool)   { h.died <- err }
func start(t *testing.T, lie string) *sandbox.Sandbox {
	t.Helper()
	return startWithin(t, lie, 1500*time.Millisecond)
}

func startWithin(t *testing.T, lie string, callTimeout time.Duration) *sandbox.Sandbox {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, err := sandbox.New(sandbox.Config{Exe: exe, Args: []string{"fake", lie}, VMTimeout: 100 * time.Millisecond, CallTimeout: callTimeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		began := time.Now()
		s.Close()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
	})
	return s
}

func load(t *testing.T, s *sandbox.Sandbox, h sandbox.Host) (*sandbox.VM, error) {
	t.Helper()
	vm, _, err := s.Load(t.Context(), sandbox.Spec{ID: "dyn-7", File: "f.js", Source: "return 1"}, h)
	return vm, err
}

// safe demands an error's text that hides nothing and is not long.
func safe(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 4*limits.ErrorText {
		t.Errorf("the error has %d bytes", len(text))
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) }) {
		t.Errorf("the error has control characters: %.300q", text)
	}
	if strings.Contains(text, ": :") || strings.Contains(text, ":  ") || strings.Contains(text, "goroutine") || strings.Contains(text, ".go:") {
		t.Errorf("the error reads badly: %q", text)
	}
}

// TestHandshake: a program that is not this version's worker is refused, soon.
func TestHandshake(t *testing.T) {
	t.Parallel()
	for lie := range handshakes {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			s := start(t, lie)
			began := time.Now()
			_, err := load(t, s, newHost())
			if err == nil {
				t.Fatal("the worker was accepted")
			}
			safe(t, err)
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %v to refuse: %v", took, err)
			}
			if strings.HasPrefix(lie, "wrong") && !strings.Contains(err.Error(), "restart dsh") {
				t.Errorf("the refusal does not say what to do: %v", err)
			}
			if lock, running := s.Lock(); running {
				t.Errorf("a refused worker runs: %+v", lock)
			}
		})
	}
}

// TestForgedFrames: whatever a worker that was taken over sends, calls end in
// time with an error that names the mount, the worker is ended where it broke
// the protocol, and the next one works.
func TestForgedFrames(t *testing.T) {
	t.Parallel()
	outcomes := map[string]struct {
		code  string // of the call
		dies  bool   // the VM does
		value string // of a call that works
	}{
		"never_quits":         {code: sandbox.CodeCallTimeout},
		"silence":             {code: sandbox.CodeCallTimeout},
		"stops_reading":       {code: sandbox.CodeCallTimeout, dies: true},
		"frame_unfinished":    {code: sandbox.CodeCallTimeout, dies: true},
		"stuck":               {code: sandbox.CodeStuck, dies: true},
		"waits_for_the_host":  {code: sandbox.CodeCallTimeout},
		"spent_without_fault": {code: wire.CodePanic, dies: true},
		"late_and_spent":      {code: wire.CodePanic, dies: true},
		"wrong_ids":           {value: `"harmless"`},
		"unknown_mounts":      {value: `"harmless"`},
		"unknown_chain":       {value: `"asked"`},
	}
	for lie := range lies() {
		t.Run(lie, func(t *testing.T) {
			t.Parallel()
			want, known := outcomes[lie]
			if !known {
				want.code, want.dies = sandbox.CodeDied, true
			}
			limit := 30 * time.Second // of a call that ends otherwise, however busy the machine is
			if want.code == sandbox.CodeCallTimeout {
				limit = 1500 * time.Millisecond
			}
			s, h := startWithin(t, lie, limit), newHost()
			vm, err := load(t, s, h)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			got, err := vm.Invoke(t.Context(), sandbox.Call{Kind: "lie", Run: 1, Fn: 1, Args: json.RawMessage("{}"), Entry: `tool "x"`})
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("the call took %v", took)
			}
			var e *sandbox.Error
			switch {
			case want.code == "" && err != nil, want.code != "" && !errors.As(err, &e):
				t.Fatalf("the call gave %q, %v; want code %q", got, err, want.code)
			case e != nil:
				safe(t, err)
				if e.Code != want.code || !strings.HasPrefix(err.Error(), "dyn-7: ") {
					t.Errorf("the call failed with %q: %v; want %q", e.Code, err, want.code)
				}
			case string(got) != want.value:
				t.Errorf("the call gave %q, want %q", got, want.value)
			}
			if want.dies {
				select {
				case err := <-h.died:
					safe(t, err)
				case <-time.After(30 * time.Second):
					t.Fatal("the host was not told of the death")
				}
				if vm.Dead() == nil {
					t.Error("the VM lives")
				}
				if vm, err = load(t, s, h); err != nil {
					t.Fatalf("another machine: %v", err)
				}
			}
			if got, err := vm.Invoke(t.Context(), sandbox.Call{Kind: "good", Run: 1, Fn: 1, Args: json.RawMessage("{}")}); err != nil || string(got) != `"good"` {
				t.Errorf("the next call gave %q, %v", got, err)
			}
		})
	}
}

// TestHostIsBusy: a machine that waits for the host gets an answer within the limit
// of a call, whatever the host does, and the late one is dropped.
func TestHostIsBusy(t *testing.T) {
	t.Parallel()
	s := start(t, "waits_for_the_host")
	vm, err := load(t, s, newHost())
	if err != nil {
		t.Fatal(err)
	}
	_, err = vm.Invoke(t.Context(), sandbox.Call{Kind: "lie", Run: 1, Args: json.RawMessage("{}"), Entry: `tool "x"`, Limit: 5 * time.Second})
	if !sandbox.IsCode(err, wire.CodeBusy) || !strings.Contains(err.Error(), "no answer within 1500 ms") {
		t.Errorf("the error is %v", err)
	}
}

// TestCancelled: a caller that gives up is told so at once, in words.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := start(t, "silence")
	vm, err := load(t, s, newHost())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = vm.Invoke(ctx, sandbox.Call{Kind: "lie", Run: 1, Args: json.RawMessage("{}"), Entry: `tool "x"`})
	if !sandbox.IsCode(err, wire.CodeCancelled) || err.Error() != `dyn-7: tool "x": was cancelled` {
		t.Errorf("the error is %v", err)
	}
}
