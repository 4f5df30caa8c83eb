package limitstest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// TestCounts: a plugin may have so many of each; the one beyond is refused by
// name, those it has stay, and a place that is given back can be taken again.
func TestCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 5*time.Second, 10*time.Second })
	const define = "harness.defineTool({ name: 'culprit_' + i, description: '', parameters: {}, output: { schema: {type: 'json'}, render: () => [] }, execute: async () => 1 })"
	for name, c := range map[string]struct {
		make string
		most int
		what string
	}{
		"tools":     {"ctx.tools.register(" + define + ")", limits.Tools, "tools"},
		"listeners": {"ctx.on('tools/change', () => {})", limits.Listeners, "listeners"},
		"timeouts":  {"ctx.setTimeout(() => {}, 1e6)", limits.Timers, "timers"},
		"intervals": {"ctx.setInterval(() => {}, 1e6)", limits.Timers, "timers"},
		"services":  {"ctx.provide('culprit.' + i, i)", limits.Services, "services"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			code := fmt.Sprintf(`return { name: 'culprit', inject: ['tools', 'timer'], async apply(ctx) {
  const undo = []
  let i = 0
  for (; i < %d; i++) undo.push(%s)
  let refusal = 'none'
  try { %[2]s } catch (e) { refusal = e.message }
  console.log(refusal)
  await undo.pop()()
  i++
  undo.push(%[2]s)
  console.log('taken again')
} }`, c.most, c.make)
			id := w.Mount(code)
			w.says(id, fmt.Sprintf("a temporary Plugin may have %d %s at a time", c.most, c.what), "taken again")
			began := time.Now()
			w.Unmount(id)
			if d := time.Since(began); d > promptly {
				t.Errorf("the unmount took %v", d)
			}
			w.gone(id, "culprit")
		})
	}
	w.unnoticed()
}

// TestSleepersAreTimers: a promise of ctx.timeout counts as a timer.
func TestSleepersAreTimers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Mount(selfmodtest.Tool("culprit", fmt.Sprintf("const all = []; for (let i = 0; i < %d; i++) all.push(ctx.timeout(1e6)); return await Promise.race(all)", limits.Timers+1)))
	w.Fails(w.Call("culprit", nil), fmt.Sprintf("%d timers at a time", limits.Timers))
}

// TestCallsInFlight: one more is refused at once, others of other plugins go on.
func TestCallsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.CallTimeout = 3 * time.Second })
	id := w.Mount(selfmodtest.Tool("culprit", "return await new Promise((f) => { waiting.push(f); console.log('waiting', waiting.length) })", "const waiting = []"))
	var calls sync.WaitGroup
	for range limits.CallsInFlight - 1 {
		calls.Go(func() { w.Call("culprit", nil) })
	}
	w.says(id, fmt.Sprintf("waiting %d", limits.CallsInFlight-1))
	calls.Go(func() { w.Call("culprit", nil) })
	w.says(id, fmt.Sprintf("waiting %d", limits.CallsInFlight))
	w.meanwhile(promptly, func() {
		w.Fails(w.Call("culprit", nil), id, `tool "culprit"`, fmt.Sprintf("%d calls are in flight into this mount, the most that are allowed", limits.CallsInFlight))
	})
	// Nothing can free them but their limit: every way in is taken.
	w.Unmount(id)
	calls.Wait()
	w.unnoticed()
}

// TestEventQueue: what a plugin does not take in time is dropped and counted, and
// the emitter never waits.
func TestEventQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.CallTimeout = 5 * time.Second })
	id := w.Mount(`return { name: 'culprit', inject: ['timer'], apply(ctx) {
  let heard = 0
  ctx.on('tools/result', async (exec) => {
    if (exec.name !== 'noise') return
    if (heard++ === 0) { console.log('first'); await ctx.timeout(400) }
    if (exec.arguments.last) console.log('heard', heard)
  })
} }`)
	h := w.victim("noise")
	defer func() { _ = h.Dispose(context.Background()) }()
	w.Call("noise", nil)
	w.says(id, "first")
	const beyond = 50
	began := time.Now()
	for range limits.EventQueue + beyond {
		w.Call("noise", nil)
	}
	took := time.Since(began)
	if took > 350*time.Millisecond {
		t.Skipf("the machine is too slow to fill the queue: %v", took)
	}
	// The calls that asked for the report were events, too.
	w.Eventually("they are counted", func() (string, bool) {
		report := w.Inspect("temporary", id)
		_, after, _ := strings.Cut(report, "events dropped: ")
		var dropped int
		_, err := fmt.Sscanf(after, "%d", &dropped)
		return report, err == nil && dropped >= beyond
	})
	contains(t, w.Inspect("temporary", ""), "; events dropped: ")
	w.Eventually("it hears again", func() (string, bool) {
		w.Call("noise", map[string]bool{"last": true})
		report := w.Inspect("temporary", id)
		return report, strings.Contains(head(report), "heard ")
	})
	w.unnoticed()
}

// TestMounts: so many, and no more; unmounting one makes room.
func TestMounts(t *testing.T) {
	if testing.Short() {
		t.Skip("1,000 mounts")
	}
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 5*time.Second, 20*time.Second })
	ids := make([]string, limits.Mounts-1)
	for i := range ids {
		ids[i] = w.Mount("return () => {}")
	}
	text := w.Fails(w.Call("cordis_mount", map[string]string{"code": "return () => {}"}))
	contains(t, text, fmt.Sprintf("%d temporary Plugins are mounted", limits.Mounts), "cordis_unmount some first")
	if report := w.Inspect("", ""); len(report) > limits.ReportAll {
		t.Errorf("the report has %d characters", len(report))
	}
	w.Unmount(ids[0])
	w.Mount("return () => {}")
	w.unnoticed()
}

// TestManyHandles: functions and objects given to another plugin are bounded.
func TestManyHandles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 20*time.Second, 25*time.Second })
	provider := w.Mount("return { name: 'provider', apply(ctx) { ctx.provide('maker', { make: () => () => 1 }) } }")
	user := w.Mount(strings.Replace(selfmodtest.Tool("user", fmt.Sprintf("const kept = []; for (let i = 0; i <= %d; i++) kept.push(ctx.maker.make()); return String(kept.length)", limits.Handles)), "['tools'", "['maker', 'tools'", 1))
	w.meanwhile(promptly, func() { w.Fails(w.Call("user", nil), fmt.Sprint(limits.Handles)) })
	w.Unmount(user)
	w.Unmount(provider)
	w.unnoticed()
}

// TestFloods: what a plugin says without being asked is bounded.
func TestFloods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 5*time.Second, 10*time.Second })
	for name, flood := range map[string]string{
		"console":    "for (let i = 0; i < 20000; i++) console.log('line', i)",
		"progress":   "for (let i = 0; i < 30000; i++) exec.progress({ done: i })",
		"rejections": "for (let i = 0; i < 30000; i++) Promise.reject(new Error('r' + i))",
		"defer":      "for (let i = 0; i < 10000; i++) exec.deferContext('x')",
		"sleepers":   "for (let i = 0; i < 3000; i++) ctx.timeout(1e6).catch(() => {})",
		"timers":     "for (let i = 0; i < 1000; i++) try { ctx.setTimeout(() => {}, 1) } catch {}",
		"effects":    "for (let i = 0; i < 1000; i++) ctx.effect(() => () => {})",
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.Mount(selfmodtest.Tool("culprit", flood+"; return 'done'"))
			w.meanwhile(promptly, func() {
				res := w.Call("culprit", nil)
				t.Logf("%.200s", selfmodtest.Text(res))
			})
			if report := head(w.Inspect("temporary", id)); len(report) > limits.ReportName {
				t.Errorf("the report has %d characters", len(report))
			}
			w.Unmount(id)
			w.gone(id, "culprit")
		})
	}
	w.unnoticed()
}

// TestMountAnswerIsBounded: the value of a mount says what came, as bounded text.
func TestMountAnswerIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 5*time.Second, 10*time.Second })
	code := fmt.Sprintf("return { name: 'x'.repeat(1e6), apply(ctx) { for (let i = 0; i < %d; i++) ctx.provide('s' + i + 'y'.repeat(60), i) } }", limits.Services)
	res := w.Call("cordis_mount", map[string]string{"code": code})
	text := w.Works(res)
	if len(text) > 2*limits.MountAnswer {
		t.Errorf("the answer has %d characters", len(text))
	}
	var v struct {
		ID       string
		Provides []string
	}
	if err := json.Unmarshal(res.Value, &v); err != nil || len(v.Provides) != limits.Services {
		t.Errorf("%d services, %v", len(v.Provides), err)
	}
	if receipt := w.Unmount(v.ID); len(receipt) > 2*limits.Receipt {
		t.Errorf("the receipt has %d characters", len(receipt))
	}
}
