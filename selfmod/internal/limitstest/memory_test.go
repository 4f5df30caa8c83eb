package limitstest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

const testMemory = 24 // MiB

// memoryHogs use up the memory of a mount.
var memoryHogs = map[string]string{
	"one_string":       "'x'.repeat(2 ** 29)",
	"one_array":        "Array(1e7).fill(0).concat(Array(1e7).fill(1))",
	"one_buffer":       "new ArrayBuffer(2 ** 28)",
	"typed":            "new Float64Array(1e7)",
	"doubling":         "let s = 'x'; for (;;) s = [s, s].join('')",
	"many_strings":     "const a = []; for (;;) a.push('x'.repeat(1000) + a.length)",
	"many_objects":     "const a = []; for (;;) a.push({ a: a.length })",
	"many_closures":    "const a = []; for (;;) a.push(() => a)",
	"many_promises":    "const a = []; for (;;) a.push(new Promise(() => {}))",
	"map":              "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
	"linked":           "let l = null; for (;;) l = { l }",
	"caught":           "const a = []; for (;;) { try { a.push('x'.repeat(100000) + a.length) } catch {} }",
	"padding":          "'x'.padEnd(2 ** 28)",
	"join":             "Array(1e6).join('x'.repeat(1000))",
	"json":             "let o = ['x'.repeat(1e6)]; for (;;) o = [JSON.stringify(o), JSON.stringify(o)]",
	"symbols":          "const a = []; for (;;) a.push(Symbol('x'.repeat(100) + a.length))",
	"async_generators": "const a = []; for (;;) a.push((async function* () { yield 1 })().next())",
	"globals":          "for (let i = 0; ; i++) globalThis['x' + i] = 'x'.repeat(1000)",
}

// TestMemory: a mount that runs out of memory fails its call and is mounted
// again from its source with empty state, or catches the failure and lives;
// nobody else notices.
func TestMemory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) {
		c.VMTimeout, c.CallTimeout, c.MemoryMB = 4*time.Second, 8*time.Second, testMemory
	})
	for name, hog := range memoryHogs {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.Mount(selfmodtest.Tool("culprit", "if (args.well) return state; state = 'used'; "+hog+"; return 'done'", "let state = 'fresh'"))
			defer w.Unmount(id)
			w.meanwhile(promptly, func() {
				text := w.Fails(w.Call("culprit", nil))
				contains(t, text, id, `tool "culprit"`, "ran out of memory", fmt.Sprintf("%d MiB", testMemory))
			})
			w.Eventually("it is mounted again", func() (string, bool) {
				res := w.Call("culprit", map[string]bool{"well": true})
				return selfmodtest.Text(res), selfmodtest.Text(res) == "fresh"
			})
			w.says(id, "- state: running", "mounted again from its source 1 times, each time with empty state", "ran out of memory")
		})
	}
	w.unnoticed()
}

// TestMemoryEverywhere goes every way into a plugin that then uses up its memory.
func TestMemoryEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) {
		c.VMTimeout, c.CallTimeout, c.MemoryMB = 3*time.Second, 5*time.Second, testMemory
	})
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := w.in(t)
			n := "_" + way.name
			var text, id string
			w.meanwhile(promptly, func() {
				if code := way.code(n, "", memoryHogs["many_strings"]); way.mounts {
					text = w.MountFails(code)
				} else {
					id = w.Mount(code)
					text = way.enter(w, n, id)
				}
			})
			contains(t, text, way.entry(n), "ran out of memory")
			if id != "" && strings.Contains(w.Inspect("temporary", ""), id+":") {
				w.Unmount(id)
			}
			w.gone("dyn-0", "culprit"+n)
		})
	}
	w.unnoticed()
}

// engineFails is what is said of an engine that faults where its compiler gets no
// memory, which is its known weakness.
const engineFails = "made the JavaScript engine fail"

// TestMemoryOfTheWorker: mounts that each keep to their limit can still be too
// much for their worker together. The one that asks for more runs out of memory and
// is mounted again, or the worker dies; then all come back but the one that was
// taking more when it did, if that is known.
func TestMemoryOfTheWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) {
		c.VMTimeout, c.CallTimeout, c.MemoryMB, c.WorkerMemoryMB = 10*time.Second, 15*time.Second, 256, limits.WorkerMemoryMBMin
	})
	for i := range 3 {
		w.Mount(selfmodtest.Tool(fmt.Sprintf("eater%d", i), "for (let n = 0; n < 1500; n++) kept.push('x'.repeat(1e5) + n); return 'kept'", "const kept = []"))
	}
	failed := 0
	stays := map[string]bool{} // failed
	w.meanwhile(replaced, func() {
		for i := range 3 {
			eater, blamed := fmt.Sprintf("eater%d", i), false
			if res := w.Call(eater, nil); res.IsError {
				failed++
				text := selfmodtest.Text(res)
				if !strings.Contains(text, "ran out of memory") && !strings.Contains(text, "worker process") && !strings.Contains(text, "starting again") && !strings.Contains(text, "takes no calls now") && !strings.Contains(text, engineFails) {
					t.Error(text)
				}
				blamed = strings.Contains(text, "this mount is to blame")
			}
			w.Eventually("all are there, but who is to blame", func() (string, bool) {
				report := w.Inspect("temporary", "")
				if blamed && !strings.Contains(report, eater+" [failed]") {
					return report, false
				}
				return report, strings.Count(report, "[running]")+strings.Count(report, "[failed]") == 4
			})
			for line := range strings.Lines(w.Inspect("temporary", "")) {
				if name, _, isFailed := strings.Cut(line, " [failed]"); isFailed && !stays[name] {
					stays[name] = true
					if !outOfMemory(line) && (!strings.HasSuffix(name, ": "+eater) || !strings.Contains(line, "to blame")) {
						t.Errorf("while %s took memory: %s", eater, line)
					}
				}
			}
		}
	})
	if failed == 0 {
		t.Error("450 MB found place in a worker of 256 MiB")
	}
	// One that is mounted again after its answer may find the memory taken by the
	// others: it fails for that, and only such do.
	w.Eventually("the others are there", func() (string, bool) {
		report := w.Inspect("temporary", "")
		for line := range strings.Lines(report) {
			name, _, isFailed := strings.Cut(line, " [failed]")
			if isFailed && (!strings.Contains(name, ": eater") || !stays[name] && !outOfMemory(line)) {
				return report, false
			}
		}
		return report, strings.Count(report, "[running]")+strings.Count(report, "[failed]") == 4
	})
}

// outOfMemory says whether a mount failed for the memory that it asked for itself,
// without anybody being blamed for the end of the worker.
func outOfMemory(line string) bool {
	return strings.Contains(line, engineFails) || strings.Contains(line, "ran out of memory") && !strings.Contains(line, "to blame")
}

// recursions overflow the stack; the author may catch it.
var recursions = map[string]string{
	"function":  "(function f() { f() })()",
	"method":    "({ f() { this.f() } }).f()",
	"getter":    "const o = { get x() { return o.x } }; o.x",
	"proxy":     "const p = new Proxy({}, { get: (t, k) => p[k] }); p.x",
	"to_string": "const o = { toString() { return `${o}` } }; `${o}`",
	"callback":  "(function f() { [1].map(f) })()",
	"sort":      "(function f() { [1, 2].sort(f) })()",
	"replace":   "(function f() { 'x'.replace('x', f) })()",
	"json":      "(function f() { JSON.stringify({ toJSON: f }) })()",
	"generator": "function* g() { yield* g() } [...g()]",
	"construct": "class X { constructor() { new X() } } new X()",
	"async":     "await (async function f() { await f() })()",
	"parse":     "JSON.parse('['.repeat(200000) + ']'.repeat(200000))",
	"regexp":    "new RegExp('('.repeat(20000) + ')'.repeat(20000))",
	"clone":     "let o = {}; for (let i = 0; i < 50000; i++) o = { o }; structuredClone(o)",
	"proxies":   "let p = {}; for (let i = 0; i < 50000; i++) p = new Proxy(p, {}); p.x",
	"flat":      "let a = []; for (let i = 0; i < 50000; i++) a = [a]; a.flat(Infinity)",
	"to_text":   "let a = []; for (let i = 0; i < 50000; i++) a = [a]; String(a)",
	"console":   "let a = []; for (let i = 0; i < 50000; i++) a = [a]; console.log(a); throw new Error('printed')",
	"prototype": "let o = null; for (let i = 0; i < 50000; i++) o = Object.create(o); o.x; throw new Error('too much recursion is none')",
}

// TestRecursion: too deep a call is an ordinary error of the author's; the mount
// and its state live on.
func TestRecursion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 3*time.Second, 5*time.Second })
	for name, form := range recursions {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.Mount(selfmodtest.Tool("culprit", "if (args.well) return state; state = 'kept'; "+form+"; return 'done'", "let state = 'fresh'"))
			defer w.Unmount(id)
			w.meanwhile(promptly, func() {
				text := w.Fails(w.Call("culprit", nil))
				if len(text) > 2*limits.ErrorText {
					t.Errorf("the error has %d characters", len(text))
				}
				t.Log(text)
			})
			w.Works(w.Call("culprit", map[string]bool{"well": true}), "kept")
		})
	}
	w.unnoticed()
}

// nested is JSON of that depth.
func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// TestDeepData: depth that is promised works both ways, ten times the limit is
// refused by name.
func TestDeepData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 5*time.Second, 10*time.Second })
	w.Mount(`return {
  name: 'deep', inject: ['tools'],
  apply(ctx) {
    const measure = (v) => { let n = 0; while (Array.isArray(v) && v.length) { v = v[0]; n++ } return n + 1 }
    const build = (n) => { let v = []; for (let i = 1; i < n; i++) v = [v]; return v }
    const define = (name, execute) => harness.registerTool(ctx, harness.defineTool({
      name, description: 'd', parameters: { v: { type: 'json' }, n: { type: 'integer' } },
      output: { schema: { type: 'json' }, render: (_a, v) => [{ type: 'text', text: 'rendered' }] }, execute,
    }))
    define('take', async (a) => measure(a.v))
    define('give', async (a) => build(a.n))
    define('both', async (a) => a.v)
    ctx.provide('deep', { echo: (v) => v, build, measure })
  },
}`)
	w.Mount(`return { name: 'user', inject: ['deep', 'tools'], apply(ctx) {
    harness.registerTool(ctx, harness.defineTool({
      name: 'cross', description: 'd', parameters: { n: { type: 'integer' } },
      output: { schema: { type: 'json' }, render: (_a, v) => [{ type: 'text', text: JSON.stringify(v) }] },
      async execute(a) { let v = []; for (let i = 1; i < a.n; i++) v = [v]; return [ctx.deep.measure(v), ctx.deep.measure(ctx.deep.build(a.n))] },
    }))
  } }`)
	args := func(v string) string { return `{"v":` + v + `}` }
	limit := fmt.Sprint(limits.Depth)
	t.Run("works", func(t *testing.T) {
		w := w.in(t)
		deep := nested(limits.DepthWorks)
		if res := w.Call("take", args(deep)); res.IsError || string(res.Value) != fmt.Sprint(limits.DepthWorks) {
			t.Errorf("take: %s %.300s", res.Value, selfmodtest.Text(res))
		}
		if res := w.Call("give", fmt.Sprintf(`{"n":%d}`, limits.DepthWorks)); res.IsError || string(res.Value) != deep {
			t.Errorf("give: %d bytes, %.300s", len(res.Value), selfmodtest.Text(res))
		}
		if res := w.Call("both", args(deep)); res.IsError || string(res.Value) != deep {
			t.Errorf("both: %d bytes, %.300s", len(res.Value), selfmodtest.Text(res))
		}
		w.Works(w.Call("cross", fmt.Sprintf(`{"n":%d}`, limits.DepthWorks)), fmt.Sprintf("[%[1]d,%[1]d]", limits.DepthWorks))
	})
	t.Run("refused", func(t *testing.T) {
		w := w.in(t)
		w.meanwhile(promptly, func() {
			w.Fails(w.Call("take", args(nested(100_000))), limit)
			w.Fails(w.Call("give", `{"n":100000}`), limit)
			w.Fails(w.Call("cross", `{"n":100000}`), limit)
		})
	})
	t.Run("schema", func(t *testing.T) {
		w := w.in(t)
		code := func(depth int) string {
			return fmt.Sprintf(`let s = { type: 'string' }; for (let i = 0; i < %d; i++) s = { type: 'array', items: s };
return { name: 'culprit', inject: ['tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({
  name: 'culprit', description: 'd', parameters: { a: s }, output: { schema: s, render: () => [] }, async execute() { return [] } })) } }`, depth)
		}
		w.meanwhile(promptly, func() { t.Logf("%.300s", w.MountFails(code(100_000))) })
		w.Works(w.Call("cordis_mount", map[string]string{"code": code(500)}))
	})
	w.unnoticed()
}

// TestBigResults: 50 MB are refused with the limit, wherever they come from.
func TestBigResults(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) {
		c.VMTimeout, c.CallTimeout, c.MemoryMB = 20*time.Second, 25*time.Second, 512
	})
	const big = "'x'.repeat(50e6)"
	limit := fmt.Sprint(limits.Result)
	for name, c := range map[string]struct{ code, says string }{
		"string":  {toolWith("", "return "+big, "", ""), limit},
		"array":   {toolWith("", "return Array(2e5).fill('x'.repeat(250))", "", ""), limit},
		"render":  {toolWith("", "", "render() { return [{ type: 'text', text: "+big+" }] }", ""), limit},
		"meta":    {toolWith("", "", "render() { return [] }, presentationMeta() { return "+big+" }", ""), limit},
		"error":   {toolWith("", "throw new Error("+big+")", "", ""), "xxx"},
		"thrown":  {toolWith("", "throw "+big, "", ""), "xxx"},
		"code":    {toolWith("", "throw Object.assign(new Error('e'), { code: "+big+", name: "+big+" })", "", ""), ""},
		"message": {toolWith("", "const e = new Error('e'); Object.defineProperty(e, 'stack', { value: "+big+" }); throw e", "", ""), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.Mount(c.code)
			defer w.Unmount(id)
			w.meanwhile(2*promptly, func() {
				text := w.Fails(w.Call("culprit", nil), c.says)
				if len(text) > 4*limits.ErrorText {
					t.Errorf("the error has %d bytes", len(text))
				}
			})
			w.Inspect("temporary", id)
		})
	}
	t.Run("progress_console_labels", func(t *testing.T) {
		w := w.in(t)
		id := w.Mount(toolWith("", "const s = "+big+"; exec.progress({ text: s }); console.log(s); ctx.effect(Object.defineProperty(() => () => {}, 'name', { value: s }), s); return 'ok'", "", ""))
		defer w.Unmount(id)
		w.meanwhile(2*promptly, func() { w.Works(w.Call("culprit", nil), "ok") })
		if report := head(w.Inspect("temporary", id)); len(report) > limits.ReportName {
			t.Errorf("the report has %d characters", len(report))
		}
	})
	t.Run("arguments", func(t *testing.T) {
		w := w.in(t)
		args, err := json.Marshal(map[string]string{"x": strings.Repeat("x", 50_000_000)})
		if err != nil {
			t.Fatal(err)
		}
		w.Fails(w.Call("witness", string(args)), fmt.Sprint(limits.Arguments))
	})
	t.Run("service", func(t *testing.T) {
		w := w.in(t)
		provider := w.Mount("return { name: 'culprit', apply(ctx) { ctx.provide('big', { text: () => " + big + ", length: (s) => s.length }) } }")
		user := w.Mount(strings.Replace(selfmodtest.Tool("user", "return String(ctx.big.text().length) + ctx.big.length("+big+")"), "['tools'", "['big', 'tools'", 1))
		w.meanwhile(2*promptly, func() { t.Logf("%.300s", selfmodtest.Text(w.Call("user", nil))) })
		w.Unmount(user)
		w.Unmount(provider)
	})
	t.Run("listener", func(t *testing.T) {
		w := w.in(t)
		id := w.Mount(listening("", "tools/execute", "exec, next", "", "return { isError: false, value: "+big+", content: [] }"))
		h := w.victim("victim")
		w.meanwhile(2*promptly, func() { t.Logf("%.300s", w.Fails(w.Call("victim", nil))) })
		if err := h.Dispose(w.Context()); err != nil {
			t.Error(err)
		}
		w.Unmount(id)
	})
	w.unnoticed()
}
