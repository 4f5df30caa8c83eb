package limitstest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

const stateful = "if (args.well) return state; state = 'used'; "

// TestInterruptsInARow: a machine is spent after three of them; a call that ends
// well between them counts. The third machine within a minute is the last.
func TestInterruptsInARow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inEngine)
	id := w.Mount(selfmodtest.Tool("culprit", stateful+"while (true) {}", "let state = 'fresh'"))
	ask := func() string { return w.Works(w.Call("culprit", map[string]bool{"well": true})) }
	spin := func() string { return w.Fails(w.Call("culprit", nil), id, `tool "culprit"`, sandbox.Millis(vmLimit)) }
	back := func() {
		w.Eventually("it is back with empty state", func() (string, bool) {
			res := w.Call("culprit", map[string]bool{"well": true})
			return selfmodtest.Text(res), selfmodtest.Text(res) == "fresh"
		})
	}
	w.meanwhile(promptly, func() {
		for range limits.Interrupts + 1 { // never in a row
			spin()
			if got := ask(); got != "used" {
				t.Fatalf("state %q", got)
			}
		}
		for machine := 1; machine < limits.SpentVMs; machine++ {
			for range limits.Interrupts - 1 {
				spin()
			}
			contains(t, spin(), fmt.Sprintf("as the %d. entry in a row; the plugin is mounted again from its source, with empty state", limits.Interrupts))
			back()
			w.says(id, "- state: running", fmt.Sprintf("mounted again from its source %d times, each time with empty state", machine), "in a row")
		}
		for range limits.Interrupts {
			spin()
		}
		w.says(id, "- state: failed", fmt.Sprintf("that was the %d. time within a minute, so it is not mounted again by itself", limits.SpentVMs))
	})
	w.Fails(w.Call("culprit", nil), "culprit", id)
	w.Unmount(id)
	w.gone(id, "culprit")
	w.unnoticed()
}

// TestMemoryThreeTimes: the same for memory.
func TestMemoryThreeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) {
		c.VMTimeout, c.CallTimeout, c.MemoryMB = 3*time.Second, 5*time.Second, testMemory
	})
	id := w.Mount(selfmodtest.Tool("culprit", stateful+"const a = []; for (;;) a.push('x'.repeat(100000) + a.length)", "let state = 'fresh'"))
	w.meanwhile(promptly, func() {
		for n := 1; n <= limits.SpentVMs; n++ {
			w.Fails(w.Call("culprit", nil), id, "ran out of memory", "mounted again from its source, with empty state, unless that came too often")
			if n == limits.SpentVMs {
				break
			}
			w.Eventually("it is back with empty state", func() (string, bool) {
				res := w.Call("culprit", map[string]bool{"well": true})
				return selfmodtest.Text(res), selfmodtest.Text(res) == "fresh"
			})
		}
		w.says(id, "- state: failed", "ran out of memory", "that was the 3. time within a minute")
	})
	w.Unmount(id)
	w.unnoticed()
}

// TestMachinesThatFailAtOnce: neither ends the worker.
func TestMachinesThatFailAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) {
		c.VMTimeout, c.CallTimeout, c.MemoryMB = 3*time.Second, 5*time.Second, limits.VMMemoryMBMin
	})
	var ids []string
	for i := range 8 {
		ids = append(ids, w.Mount(selfmodtest.Tool(fmt.Sprintf("culprit%d", i), "new ArrayBuffer(2 ** 28)")))
	}
	for range limits.SpentVMs - 1 {
		w.meanwhile(promptly, func() {
			var calls sync.WaitGroup
			for i := range ids {
				calls.Go(func() {
					w.Eventually("it runs out of memory", func() (string, bool) {
						text := selfmodtest.Text(w.Call(fmt.Sprintf("culprit%d", i), nil))
						return text, strings.Contains(text, "ran out of memory")
					})
				})
			}
			calls.Wait()
		})
	}
	for _, id := range ids {
		w.Unmount(id)
	}
	w.unnoticed()
}

// TestApplyThatSpendsTheMachine again and again does not restart for ever.
func TestApplyThatSpendsTheMachine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.MemoryMB = testMemory; c.VMTimeout = 3 * time.Second })
	// It is well once: the second apply, after its service came back, is not.
	provider := w.Mount("return { name: 'gate', apply(ctx) { ctx.provide('gate', 1) } }")
	id := w.Mount(`let runs = 0
return { name: 'culprit', inject: ['gate'], apply(ctx) { if (ctx.gate === 1) return; const a = []; for (;;) a.push('x'.repeat(100000) + a.length) } }`)
	w.Unmount(provider)
	w.meanwhile(promptly, func() {
		w.Mount("return { name: 'gate', apply(ctx) { ctx.provide('gate', 2) } }")
		w.says(id, "- state: failed", "ran out of memory")
	})
	w.Unmount(id)
	w.unnoticed()
}

// TestAbandonedCalls: a call that never ends is abandoned; the ninth ends the
// mount.
func TestAbandonedCalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.CallTimeout = 100 * time.Millisecond })
	id := w.Mount(selfmodtest.Tool("culprit", "await new Promise(() => {})"))
	w.meanwhile(promptly, func() {
		for n := 1; n <= limits.AbandonedCalls; n++ {
			w.Fails(w.Call("culprit", nil), id, `tool "culprit"`, "did not settle within 100 ms (callTimeout) and was abandoned")
			w.says(id, "- state: running", fmt.Sprintf("abandoned calls still running: %d", n))
		}
		w.Fails(w.Call("culprit", nil), id, `tool "culprit"`)
		w.says(id, "- state: failed", fmt.Sprintf("more than %d of its calls were abandoned and still run; the mount was stopped", limits.AbandonedCalls))
	})
	w.Fails(w.Call("culprit", nil), "culprit", id)
	w.Unmount(id)
	w.gone(id, "culprit")
	w.unnoticed()
}

// TestAbandonedCallThatEnds gives its place back.
func TestAbandonedCallThatEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Mount(`const waiting = []
return { name: 'culprit', inject: ['tools'], apply(ctx) {
  const define = (name, timeoutMs, execute) => harness.registerTool(ctx, harness.defineTool({
    name, description: 'd', timeoutMs, parameters: {}, output: { schema: { type: 'string' }, render: (_a, v) => [{ type: 'text', text: v }] }, execute,
  }))
  define('culprit', 50, async () => { await new Promise((f) => waiting.push(f)); return 'late' })
  define('free', 20000, async () => { for (const f of waiting.splice(0)) f(); return 'freed' })
} }`)
	for range 2 * limits.AbandonedCalls {
		w.Fails(w.Call("culprit", nil), "did not settle within 50 ms (callTimeout) and was abandoned")
		w.Works(w.Call("free", nil), "freed")
		w.says(id, "abandoned calls still running: 0")
	}
	w.says(id, "- state: running")
}

// TestAbandonedCallThatGoesOnForEver: it sleeps and works on and on; nobody
// waits for it, and the unmount ends it.
func TestAbandonedCallThatGoesOnForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.Mount(selfmodtest.Tool("culprit", "if (args.turns) return String(turns); for (;;) { await ctx.timeout(1); turns++ }", "let turns = 0"))
	turns := func() string { return w.Works(w.Call("culprit", map[string]bool{"turns": true})) }
	w.meanwhile(promptly, func() {
		w.Fails(w.Call("culprit", nil), "abandoned")
		before := turns()
		// It was told to stop. Where that met it in the engine, it has; asleep, it
		// goes on.
		w.Eventually("it goes on", func() (string, bool) {
			now := turns()
			report := w.Inspect("temporary", id)
			return now + report, now != before || strings.Contains(report, "abandoned calls still running: 0")
		})
		began := time.Now()
		t.Log(w.Unmount(id)) // which says so, if it still ran then
		if d := time.Since(began); d > callLimit+promptly {
			t.Errorf("the unmount took %v", d)
		}
	})
	w.gone(id, "culprit")
	w.unnoticed()
}

// TestMicrotasksForEver: a promise chain without end runs on after every
// interrupt, until the machine is spent.
func TestMicrotasksForEver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inEngine)
	id := w.Mount(selfmodtest.Tool("culprit", "const f = () => Promise.resolve().then(f); for (let i = 0; i < 20; i++) f(); return 'started'"))
	w.meanwhile(promptly, func() {
		w.Fails(w.Call("culprit", nil), id, sandbox.Millis(vmLimit))
		w.says(id, "mounted again from its source 1 times", "in a row")
	})
	w.says(id, "- state: running")
	w.Unmount(id)
	w.unnoticed()
}

// TestWorkerDiesThreeTimes: after that nothing comes back by itself, and inspect
// says so; a new mount works.
func TestWorkerDiesThreeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, patient)
	kill := func(n int) {
		w.Mount(selfmodtest.Tool(fmt.Sprintf("culprit%d", n), natives["lying_length"]+"; return ''"))
		w.Fails(w.Call(fmt.Sprintf("culprit%d", n), nil), "its worker process was ended")
	}
	for n := 1; n < limits.WorkerDeaths; n++ {
		kill(n)
		w.Eventually("the witness is mounted again", func() (string, bool) {
			report := w.Inspect("temporary", w.witness)
			return report, strings.Contains(report, fmt.Sprintf("mounted again from its source %d times", n)) && strings.Contains(report, "- state: running")
		})
	}
	kill(limits.WorkerDeaths)
	w.says(w.witness, "- state: failed", "nothing is mounted again by itself", "cordis_unmount it, then mount it again")
	contains(t, w.Inspect("temporary", ""), fmt.Sprintf("the worker process died %d times within a minute; nothing is mounted again by itself", limits.WorkerDeaths))
	w.Unmount(w.witness)
	w.Mount(selfmodtest.Tool("witness", "return 'well'"))
	w.Works(w.Call("witness", nil), "well")
}
