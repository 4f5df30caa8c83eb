package limitstest

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// forms are kinds of endless work that the engine can interrupt.
var forms = map[string]string{
	"slow_steps":        "const a = new Uint8Array(2e6); for (;;) a.indexOf(1)",
	"plain":             "while (true) {}",
	"try_catch":         "for (;;) { try { while (true) {} } catch {} }",
	"finally":           "for (;;) { try { for (;;) { try { while (true) {} } catch {} finally { continue } } } finally { continue } }",
	"regexp":            "/^(a+)+$/.test('a'.repeat(60) + 'b')",
	"replace":           "'a'.repeat(1e5).replace(/a/g, () => { while (true) {} })",
	"comparator":        "[3, 2, 1].sort(() => { while (true) {} })",
	"getter":            "({ get x() { while (true) {} } }).x",
	"proxy_get":         "new Proxy({}, { get() { while (true) {} } }).x",
	"proxy_own_keys":    "Object.keys(new Proxy({}, { ownKeys() { while (true) {} } }))",
	"to_string":         "`${{ toString() { while (true) {} } }}`",
	"to_primitive":      "+{ [Symbol.toPrimitive]() { while (true) {} } }",
	"to_json":           "JSON.stringify({ toJSON() { while (true) {} } })",
	"reviver":           "JSON.parse('[1]', () => { while (true) {} })",
	"iterator":          "for (const x of { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }) }) }) {}",
	"spread":            "[...{ [Symbol.iterator]: () => ({ next() { while (true) {} } }) }]",
	"generator":         "const g = (function* () { while (true) yield 1 })(); for (const x of g) {}",
	"generator_return":  "const g = (function* () { try { yield 1 } finally { while (true) {} } })(); g.next(); g.return()",
	"constructor":       "new (class { constructor() { while (true) {} } })()",
	"static_block":      "class X { static { while (true) {} } }",
	"tagged_template":   "((s) => { while (true) {} })`x`",
	"microtasks":        "const f = () => Promise.resolve().then(f); await f()",
	"queue_microtask":   "const f = () => queueMicrotask(f); f(); await new Promise(() => {})",
	"then_getter":       "return { get then() { while (true) {} } }",
	"thenable":          "return { then() { while (true) {} } }",
	"returned_getter":   "return { get x() { while (true) {} } }",
	"returned_proxy":    "return new Proxy({}, { getPrototypeOf() { while (true) {} }, ownKeys() { while (true) {} }, get() { while (true) {} } })",
	"returned_to_json":  "return { get toJSON() { while (true) {} } }",
	"error_message":     "throw { get message() { while (true) {} } }",
	"error_to_string":   "throw { toString() { while (true) {} } }",
	"error_stack":       "const e = new Error('x'); Object.defineProperty(e, 'stack', { get() { while (true) {} } }); Object.defineProperty(e, 'name', { get() { while (true) {} } }); throw e",
	"prepare_stack":     "Error.prepareStackTrace = () => { while (true) {} }; new Error('x').stack; while (true) {}",
	"console":           "console.log({ get x() { while (true) {} }, toString() { while (true) {} } }); while (true) {}",
	"clone":             "structuredClone({ get x() { while (true) {} } })",
	"abort_listener":    "const c = new AbortController(); c.signal.addEventListener('abort', () => { while (true) {} }); c.abort()",
	"array_from":        "Array.from({ length: 1e6 }, () => { while (true) {} })",
	"bigint":            "let b = 3n; while (true) { b = b * b % (2n ** 4096n) + 3n }",
	"date":              "for (;;) new Date().toString()",
	"string_building":   "for (;;) 'x'.repeat(1000).split('').reverse().join('')",
	"throw_in_finally":  "for (;;) { try { throw 1 } finally { continue } }",
	"label":             "a: for (;;) { for (;;) { continue a } }",
	"mutual_recursion":  "const f = (n) => n ? g(n - 1) : 0, g = (n) => n ? f(n - 1) : 0; for (;;) f(100)",
	"async_iteration":   "for await (const x of (async function* () { while (true) yield 1 })()) {}",
	"weak_ref":          "for (;;) new WeakRef({}).deref()",
	"symbol_species":    "class A extends Array { static get [Symbol.species]() { while (true) {} } } new A(1, 2, 3).map((x) => x)",
	"has_instance":      "({}) instanceof { [Symbol.hasInstance]() { while (true) {} } }",
	"set_methods":       "new Set([1]).union({ size: 1, has() {}, keys() { return { next() { while (true) {} } } } })",
	"replace_species":   "class R extends RegExp { exec() { while (true) {} } } 'x'.replace(new R('x'), '')",
	"proxy_of_proxies":  "let p = {}; for (let i = 0; i < 50; i++) p = new Proxy(p, {}); for (;;) p.x",
	"string_comparison": "const s = 'x'.repeat(1e6), t = s + 'y'; for (;;) { if (s > t) break }",
}

// TestFormsOfEndlessWork does all of them in a tool.
func TestFormsOfEndlessWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inEngine)
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			id := w.Mount(selfmodtest.Tool("culprit", form))
			defer w.Unmount(id)
			w.meanwhile(promptly, func() {
				w.Fails(w.Call("culprit", nil), id+" (culprit): tool \"culprit\" did not", sandbox.Millis(vmLimit))
			})
		})
	}
	w.unnoticed()
}

// natives are work that the engine cannot interrupt.
var natives = map[string]string{
	"lying_length": "let lies = 0; Array.prototype.indexOf.call({ get length() { return lies++ ? 2 ** 53 - 1 : 1 } }, 1)",
	"power":        "3n ** 600000n",
	"multiply":     "const b = 2n ** 500000n - 1n; " + strings.Repeat("b * b; ", 100),
	"to_string":    "(2n ** 900000n - 1n).toString()",
	"normalize":    "'\\u0344'.repeat(3e6).normalize('NFD')",
}

// inEngine are limits of which the time inside the engine is passed first, however
// busy the machine is.
func inEngine(c *selfmod.Config) { c.CallTimeout = 20 * callLimit }

// patient lets the mounts that come back take their time on a busy machine.
func patient(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 2*vmLimit, 2*callLimit }

// TestNativeWork: only the end of the worker stops it. The guilty mount fails,
// the others are back with empty state.
func TestNativeWork(t *testing.T) {
	t.Parallel()
	for name, form := range natives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, patient)
			id := w.Mount(selfmodtest.Tool("culprit", form+"; return ''"))
			w.meanwhile(replaced, func() {
				text := w.Fails(w.Call("culprit", nil), id+" (culprit): tool \"culprit\"")
				if strings.Contains(text, "inside the engine (vmTimeout) and was stopped") {
					t.Skip("the engine can interrupt it")
				}
				contains(t, text, "went on beyond its limit of "+sandbox.Millis(2*vmLimit)+" inside the engine (vmTimeout)", "its worker process was ended")
				w.started()
			})
			w.says(id, "- state: failed", "- error: ", "native call that the engine cannot interrupt", "tool \"culprit\"")
			w.Fails(w.Call("culprit", nil), "culprit")
			w.Unmount(id)
			w.gone(id, "culprit")
			w.afresh()
			// The worker is a new one, and works.
			w.Unmount(w.Mount(selfmodtest.Tool("culprit", "return 'well'")))
		})
	}
}

// TestNativeWorkEverywhere goes the other ways in with work that cannot be
// interrupted.
func TestNativeWorkEverywhere(t *testing.T) {
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, patient)
			n, id, text := "", "", ""
			w.meanwhile(replaced, func() {
				if code := way.code(n, "", natives["lying_length"]); way.mounts {
					text = w.MountFails(code)
					id = "dyn-2"
				} else {
					id = w.Mount(code)
					text = way.enter(w, n, id)
				}
				w.started()
			})
			contains(t, text, id, way.entry(n), "native call that the engine cannot interrupt")
			if report := w.Inspect("temporary", ""); strings.Contains(report, id+":") {
				contains(t, report, "Temporary Plugin "+id+": culprit [failed]")
				w.Unmount(id)
			}
			w.gone(id, "culprit")
			w.afresh()
		})
	}
}
