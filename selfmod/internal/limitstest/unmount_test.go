package limitstest

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// running calls a tool on a goroutine and waits until it is inside.
func (w *world) running(name, id, printed string) <-chan *tool.Result {
	w.T.Helper()
	done := make(chan *tool.Result, 1)
	go func() { done <- w.Call(name, nil) }()
	w.says(id, printed)
	return done
}

// TestUnmountWhileACallRuns: the call keeps its true result, its timers go on,
// and new calls are refused and told what happened.
func TestUnmountWhileACallRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Mount(selfmodtest.Tool("culprit", "console.log('inside'); for (let i = 0; i < 30; i++) await ctx.timeout(10); return 'the true result'"))
	done := w.running("culprit", id, "inside")
	unmounted := make(chan string, 1)
	w.meanwhile(promptly, func() {
		go func() { unmounted <- w.Unmount(id) }()
		w.says(id, "- state: unloading")
		w.Fails(w.Call("culprit", nil), "takes no calls now: its owner, temporary Plugin "+id, "is unloading")
		if text := w.Works(<-done); text != "the true result" {
			t.Errorf("the running call got %s", text)
		}
		contains(t, <-unmounted, "was unmounted and removed.", "Gone tools: culprit.")
	})
	w.Fails(w.Call("culprit", nil), "unknown tool", id, "was unmounted")
	w.gone(id, "culprit ")
	w.unnoticed()
}

// TestUnmountWhileACallHangs: at the limit the call is abandoned, and the receipt
// says so.
func TestUnmountWhileACallHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, body := range map[string]string{
		"promise": "await new Promise(() => {})",
		"loop":    "while (true) {}",
		"sleep":   "await ctx.timeout(1e9)",
		"turns":   "for (;;) await null",
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			code := selfmodtest.Tool("culprit", "console.log('inside'); "+body)
			if name == "promise" || name == "sleep" { // the unmount's limit is to pass before the call's own
				code = strings.Replace(code, "parameters: {}", "timeoutMs: 60000, parameters: {}", 1)
			}
			id := w.Mount(code)
			done := w.running("culprit", id, "inside")
			w.meanwhile(promptly, func() {
				began := time.Now()
				receipt := w.Unmount(id)
				if d := time.Since(began); d > (selfmod.Config{CallTimeout: callLimit}).DrainLimit()+promptly {
					t.Errorf("the unmount took %v", d)
				}
				contains(t, receipt, "was unmounted and removed.", "Undone: 1 tool,")
				if name == "promise" || name == "sleep" {
					contains(t, receipt, "did not end within its limit: 1 call.")
				}
				contains(t, w.Fails(<-done), id, `tool "culprit"`)
			})
			w.gone(id, "culprit")
		})
	}
	w.unnoticed()
}

// TestUnmountWhileNativeWorkRuns ends the worker, not the server.
func TestUnmountWhileNativeWorkRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patient)
	id := w.Mount(selfmodtest.Tool("culprit", "console.log('inside'); "+natives["lying_length"]))
	done := w.running("culprit", id, "inside")
	w.meanwhile(replaced, func() {
		contains(t, w.Unmount(id), "was unmounted and removed.")
		contains(t, w.Fails(<-done), id, `tool "culprit"`)
		w.started()
	})
	w.gone(id, "culprit")
	w.afresh()
}

// TestUnmountWhileEverythingHangs: calls, a timer, a listener and a disposer at
// once take one limit for the calls and one for the disposer.
func TestUnmountWhileEverythingHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Mount(selfmodtest.Tool("culprit", "console.log('inside'); await new Promise(() => {})",
		"ctx.effect(() => () => new Promise(() => {}));",
		"ctx.setTimeout(() => new Promise(() => {}), 1);",
		"ctx.on('tools/change', () => new Promise(() => {}));"))
	h := w.victim("noise")
	if err := h.Dispose(w.Context()); err != nil {
		t.Fatal(err)
	}
	var calls []<-chan *tool.Result
	for range 4 {
		calls = append(calls, w.running("culprit", id, "inside"))
	}
	w.meanwhile(promptly, func() {
		began := time.Now()
		receipt := w.Unmount(id)
		if d := time.Since(began); d > 2*callLimit+promptly {
			t.Errorf("the unmount took %v", d)
		}
		contains(t, receipt, "A disposer failed:", "the disposer of", "callTimeout")
		for _, done := range calls {
			w.Fails(<-done, id)
		}
	})
	w.gone(id, "culprit")
	w.unnoticed()
}

// TestShutdownWhileEverythingHangs: the rig's end disposes all of it.
func TestShutdownWhileEverythingHangs(t *testing.T) {
	t.Parallel()
	var calls sync.WaitGroup
	t.Run("rig", func(t *testing.T) {
		w := newWorld(t)
		for _, body := range []string{"await new Promise(() => {})", "while (true) {}", natives["lying_length"]} {
			name := "culprit" + string(rune('a'+len(w.Inspect("tools", ""))%26))
			id := w.Mount(selfmodtest.Tool(name, "console.log('inside'); "+body, "ctx.effect(() => () => new Promise(() => {}))"))
			calls.Go(func() { w.Call(name, nil) })
			w.Eventually("it runs", func() (string, bool) {
				report := w.Inspect("temporary", id)
				return report, strings.Contains(report, "inside") || strings.Contains(report, "worker process")
			})
		}
	})
	calls.Wait()
}
