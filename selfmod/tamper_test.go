package selfmod_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// hostile is a configuration with limits that are soon passed.
var hostile = selfmod.Config{VMTimeout: 1500 * time.Millisecond, CallTimeout: 3 * time.Second}

// Sabotage, each a piece of code that runs before anything else of a plugin.
// evil throws; each kind would show in whatever leans on what it replaces.
const evil = `const evil = () => { throw new Error('EVIL') };
const own = Object.getOwnPropertyNames, desc = Object.getOwnPropertyDescriptor, def = Object.defineProperty;
const replaceAll = (o) => { const names = own(o); for (let i = 0; i < names.length; i++) { const d = desc(o, names[i]);
  if (names[i] === 'constructor' || names[i] === 'prototype' || !(d.configurable || d.writable)) continue;
  try { if (d.get) def(o, names[i], { __proto__: null, get: evil, set: evil }); else if (typeof d.value === 'function') def(o, names[i], { __proto__: null, value: evil }) } catch {} } };
`

var sabotages = []struct{ name, code string }{
	{"json_throws", `JSON.stringify = JSON.parse = evil`},
	{"json_lies", `JSON.stringify = () => '"EVIL"'; JSON.parse = () => ({ EVIL: 1 })`},
	{"promise_then", `Promise.prototype.then = Promise.prototype.catch = Promise.prototype.finally = evil`},
	{"promise_constructor", `def(Promise.prototype, 'constructor', { get: evil })`},
	{"promise_constructor_lies", `def(Promise.prototype, 'constructor', { value: function (run) { run(evil, evil) } })`},
	{"promise_species", `def(Promise, Symbol.species, { get: evil })`},
	{"promise_statics", `replaceAll(Promise)`},
	{"iterators", `Array.prototype[Symbol.iterator] = evil; replaceAll(Object.getPrototypeOf([][Symbol.iterator] ? new Map().values() : 0)); String.prototype[Symbol.iterator] = evil`},
	{"object_statics", `replaceAll(Object)`},
	{"object_prototype_methods", `replaceAll(Object.prototype)`},
	{"object_prototype_to_json", `Object.prototype.toJSON = () => 'EVIL'; Array.prototype.toJSON = () => 'EVIL'`},
	{"object_prototype_getters", `for (const k of ['get', 'set', 'value', 'writable', 'enumerable', 'configurable', 'done', 'next', 'return', 'raw', 'code', 'stack', 'message', 'name', 'cause', 'errors',
      'args', 'exec', 'nested', 'callId', 'run', 'kind', 'effect', 'handle', 'mount', 'members', 'json', 'made', 'off', 'gone', 'fn', 'extra', 'signal', '$', 'h', 'n', 'k', 'op', 'a',
      'type', 'text', 'once', 'prepend', 'optional', 'config', 'required', 'timeoutMs', 'title', 'description', 'schema', 'render', 'presentationMeta', 'isConcurrencySafe', 'presentCall', 'presentResult', 'finalizeContent'])
      def(Object.prototype, k, { __proto__: null, get: () => undefined, set: evil, configurable: true })`},
	{"object_prototype_values", `for (const k of ['get', 'set', 'raw', 'nested', 'optional', 'once', 'prepend', 'effect', 'handle', 'mount', 'gone', 'code', 'cause', 'errors', 'json', '$']) Object.prototype[k] = true`},
	{"numeric_setters", `for (let i = 0; i < 40; i++) for (const p of [Array.prototype, Object.prototype]) def(p, i, { __proto__: null, get: evil, set: evil, configurable: true })`},
	{"array_prototype", `replaceAll(Array.prototype); replaceAll(Array)`},
	{"string_prototype", `replaceAll(String.prototype); globalThis.String = evil`},
	{"function_prototype", `replaceAll(Function.prototype)`},
	{"collections", `for (const c of [Map, Set, WeakMap, WeakSet, WeakRef, FinalizationRegistry]) replaceAll(c.prototype)`},
	{"reflect_and_proxy", `replaceAll(Reflect); globalThis.Proxy = evil; globalThis.Reflect = undefined`},
	{"errors", `for (const c of [Error, TypeError, RangeError, SyntaxError]) { replaceAll(c.prototype); def(c.prototype, 'name', { get: evil, set: evil }); def(c.prototype, 'message', { get: evil, set: evil }) } Error.captureStackTrace = evil; Error.prepareStackTrace = evil; Error.stackTraceLimit = 0`},
	{"regexp", `replaceAll(RegExp.prototype); RegExp.prototype[Symbol.replace] = evil`},
	{"typed_arrays", `replaceAll(Uint8Array); replaceAll(Object.getPrototypeOf(Uint8Array.prototype)); replaceAll(ArrayBuffer.prototype)`},
	{"symbols", `replaceAll(Symbol.prototype); Symbol.prototype.toString = evil; replaceAll(Symbol); replaceAll(Number.prototype); replaceAll(Number); replaceAll(BigInt.prototype); replaceAll(Math)`},
	{"frozen_world", `const freeze = Object.freeze; for (const c of [Object, Array, Function, Promise, Error, Map]) { freeze(c); freeze(c.prototype) } freeze(globalThis)`},
	{"global_names", `for (const k of own(globalThis)) try { if (k !== 'harness' && k !== 'console' && k !== 'undefined' && k !== 'TypeError' && k !== 'Error') globalThis[k] = evil } catch {}`},
	{"prototype_chains", `Object.setPrototypeOf(Array.prototype, null); Object.setPrototypeOf(Function.prototype, null); Object.setPrototypeOf(Promise.prototype, null); Object.setPrototypeOf(Error.prototype, null)`},
}

// TestReplacedIntrinsics: whatever a plugin does to the language that it runs
// in, its tools, listeners, timers, services, errors and disposers work, and
// other plugins see nothing of it.
func TestReplacedIntrinsics(t *testing.T) {
	for _, s := range sabotages {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, hostile)
			r.Mount(selfmodtest.Tool("witness", `return JSON.stringify([1, { a: [...'bc'] }]) + ctx.get('tools').schemas().length + Object.keys({ q: 1 })`))
			id := r.Mount(evil + s.code + `
return { name: 'tampered', inject: ['tools', 'timer'], apply(ctx) {
  let ticks = 0
  ctx.setTimeout(() => { ticks++; console.log('ticked', { a: 1 }) }, 1)
  ctx.on('tools/result', (exec) => { if (exec.name === 'witness') console.log('heard') })
  ctx.on('tools/pre-execute', (exec, next) => exec.name === 'victim' ? { kind: 'deny', reason: 'no victims' } : next())
  ctx.provide('tampered_service', { twice(x) { return { n: x.n * 2, at: [x.n] } }, later: async (x) => x + 1, fails() { throw new Error('as asked') } })
  ctx.effect(() => () => console.log('undone'))
  const tool = (name, execute) => harness.registerTool(ctx, harness.defineTool({ name, description: 'd', parameters: { n: { type: 'integer', default: 3 }, list: { type: 'array', items: { type: 'string' } } },
    output: { schema: { type: 'object', properties: { n: { type: 'integer', required: true }, list: { type: 'array' }, o: { type: 'object' } } },
      render(args, value) { return [{ type: 'text', text: 'n is ' + value.n }] }, presentationMeta(args, value) { return { seen: value.n } } }, execute }))
  tool('probe', async (args, exec) => ({ n: args.n, list: ['x', args.list === undefined ? null : args.list[0]], o: { deep: { id: exec.name } } }))
  tool('thrower', () => { throw new TypeError('thrown as it is') })
} }`)
			if got := r.Works(r.Call("probe", `{"list":["y"]}`)); got != "n is 3" {
				t.Errorf("the tool rendered %q", got)
			}
			res := r.Call("probe", `{"n":7}`)
			if want := `{"n":7,"list":["x",null],"o":{"deep":{"id":"probe"}}}`; string(res.Value) != want || string(res.Meta) != `{"seen":7}` {
				t.Errorf("value %s (want %s), meta %s", res.Value, want, res.Meta)
			}
			r.Fails(r.Call("probe", `{"n":"x"}`), `"n" must be an integer`)
			r.Fails(r.Call("thrower", nil), "Error: thrown as it is")
			if got := r.Works(r.Call("witness", nil)); !strings.HasPrefix(got, `[1,{"a":["b","c"]}]`) || !strings.HasSuffix(got, "q") {
				t.Errorf("another plugin sees %q", got)
			}
			consumer := r.Mount(`return { name: 'consumer', inject: ['tools', 'tampered_service'], apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({ name: 'victim', description: 'd', parameters: {}, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: () => 'not reached' }))
  harness.registerTool(ctx, harness.defineTool({ name: 'consume', description: 'd', parameters: {}, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] },
    async execute() { const s = ctx.tampered_service; const r = s.twice({ n: 21 }); let e; try { s.fails() } catch (x) { e = x }
      return [r.n, r.at instanceof Array, await s.later(4), e instanceof Error, e.message].join() } }))
} }`)
			if got, want := r.Works(r.Call("consume", nil)), "42,true,5,true,as asked"; got != want {
				t.Errorf("a consumer got %q, want %q", got, want)
			}
			r.Fails(r.Call("victim", nil), "no victims")
			r.Eventually("the timer and the listener", func() (string, bool) {
				now := r.Inspect("temporary", id)
				return now, strings.Contains(now, "ticked { a: 1 }") && strings.Contains(now, "heard")
			})
			r.Unmount(consumer)
			if got := r.Unmount(id); !strings.Contains(got, "Undone: 2 tools, 1 service, 2 listeners") || strings.Contains(got, "could not") {
				t.Errorf("receipt: %s", got)
			}
		})
	}
}

// escapes are ways out of other sandboxes. Each is an expression; what it gives
// is reported if it is not one of the refusals.
var escapes = []string{
	`console.log.constructor('return process')()`,
	`harness.defineTool.constructor('return globalThis')()`,
	`ctx.on.constructor('return 1')()`,
	`ctx.constructor.constructor('return 1')()`,
	`exec.progress.constructor('return 1')()`,
	`exec.constructor.constructor('return 1')()`,
	`exec.signal.constructor.constructor('return 1')()`,
	`args.constructor.constructor('return 1')()`,
	`[].map.constructor('return 1')()`,
	`(function* () {}).constructor('return 1')().next()`,
	`(async () => {}).constructor('return 1')()`,
	`(async function* () {}).constructor('return 1')().next()`,
	`Object.getPrototypeOf(async function () {}).constructor('return 1')()`,
	`Reflect.construct(Function, ['return 1'])()`,
	`Reflect.construct(Object, ['return 1'], Function)`,
	`Reflect.construct((function () {}).constructor, ['return 1'], class {})()`,
	`new (class extends Function { constructor() { super('return 1') } })()()`,
	`Function.prototype.constructor.apply(null, ['return 1'])()`,
	`Function('return 1')()`,
	`eval('1')`,
	`(0, eval)('1')`,
	`new Function('return 1')()`,
	`globalThis.eval.call(null, '1')`,
	`setTimeout('1', 1)`,
	`require('fs')`,
	`__host('sync', '', '1', 'tool', '{}')`,
	`__hold(() => 1)`,
	`process.exit(3)`,
	`new Worker('x')`,
	`new ShadowRealm().evaluate('1')`,
	`WebAssembly.compile`,
	`new SharedArrayBuffer(8)`,
	`std.getenv('PATH')`,
	`os.exec(['true'])`,
	`scriptArgs[0]`,
	`bjson.read`,
	`Deno.cwd()`,
	`arguments.callee.caller.toString()`,
	`(function f() { return f.caller.toString() })()`,
	`(function f() { return f.arguments.callee.caller.toString() })()`,
}

// TestEscapes: no known way out of a script sandbox leads anywhere.
func TestEscapes(t *testing.T) {
	root := selfmodtest.New(t, hostile)
	var b strings.Builder
	for i, e := range escapes {
		fmt.Fprintf(&b, "try { out[%d] = 'ESCAPED ' + String(await (%s)) } catch (e) { out[%d] = String(e && e.message) + '\\n' + String(e && e.stack) }\n", i, e, i)
	}
	root.Mount(selfmodtest.Tool("escape", "const out = [];\n"+b.String()+"return JSON.stringify(out)"))
	var out []string
	text := root.Works(root.Call("escape", nil))
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for i, got := range out {
		if strings.HasPrefix(got, "ESCAPED") && !strings.HasSuffix(got, "[object Object]") && !strings.HasSuffix(got, "undefined") {
			t.Errorf("%s gave %s", escapes[i], got)
		}
		noneOfHosts(t, got)
	}
}

// TestImport: there is no module to load, and the refusal names no place of ours.
func TestImport(t *testing.T) {
	root := selfmodtest.New(t, hostile)
	for _, what := range []string{"fs", "std", "os", "./x.js", "/etc/passwd", "file:///etc/passwd", "data:text/javascript,export default 1", "https://example.com/x.js"} {
		code := fmt.Sprintf(`const m = await import(%q); return { name: 'm', apply() { console.log(m) } }`, what)
		noneOfOurs(t, root.MountFails(code, "Nothing is mounted"))
	}
	noneOfOurs(t, root.MountFails(`import fs from 'fs'; return () => {}`, "failed to parse"))
	noneOfOurs(t, root.MountFails(`return () => import.meta`, "Nothing is mounted"))
}

// ours are texts that tell of the host: Go, its paths, its environment.
var ours = regexp.MustCompile(`goroutine |runtime\.|\.go\b|modernc|reflect\.|0x[0-9a-f]{8,}|\*[a-z]+\.[A-Z]|map\[string\]|/usr/|/root|/home/|/proc/|<input>|<evalScript>`)

// noneOfOurs demands that what a model, a person or another plugin reads has
// nothing of ours in it, frames of the prelude included.
func noneOfOurs(t *testing.T, text string) {
	t.Helper()
	if strings.Contains(text, "prelude") {
		t.Errorf("the prelude shows in %.600q", text)
	}
	noneOfHosts(t, text)
}

// noneOfHosts is noneOfOurs for what a plugin itself can find out: the stack of
// an error has frames of the prelude, which is public.
func noneOfHosts(t *testing.T, text string) {
	t.Helper()
	if found := ours.FindString(text); found != "" {
		t.Errorf("%q of ours shows in %.600q", found, text)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range append(os.Environ(), "="+dir, "="+os.TempDir()) {
		_, value, _ := strings.Cut(secret, "=")
		if len(value) > 3 && strings.ContainsAny(value, "/\\") && strings.Contains(text, value) {
			t.Errorf("the host's %q shows in %.600q", value, text)
		}
	}
}

// TestReachable walks everything that plugin code can reach, from the global
// object, its ctx, a call and an error of the host, and finds nothing of ours:
// no text, and no function whose constructor makes code.
func TestReachable(t *testing.T) {
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 10 * time.Second})
	root.Mount(selfmodtest.Tool("crawl", `
  const seen = new Set(), todo = [], texts = new Set(), makers = []
  const push = (path, v) => {
    if (typeof v === 'string') { if (v.length < 100000) texts.add(v) }
    else if ((typeof v === 'object' && v !== null || typeof v === 'function') && !seen.has(v)) { seen.add(v); todo.push([path, v]) }
  }
  const caught = (f) => { try { return f() } catch (e) { return e } }
  push('globalThis', globalThis); push('ctx', ctx); push('exec', exec); push('args', args); push('arguments', arguments)
  push('refused', caught(() => ctx.on('no/such', () => {})))
  push('refused2', caught(() => ctx.provide('tools', 1)))
  push('refused3', caught(() => ctx.root))
  push('refused4', caught(() => harness.defineTool({ name: 'x', parameters: 1 })))
  push('refused5', await ctx.timeout(0).then(() => 0, (e) => e))
  push('off', ctx.on('tools/change', () => {})); push('signal', exec.signal); push('stop', ctx.setInterval(() => {}, 1e6)); push('views', ctx.tools.schemas())
  push('gen', (function* () {})()); push('agen', (async function* () {})()); push('iter', [].values()); push('mapiter', new Map().values()); push('re', /x/g[Symbol.matchAll]('x'))
  while (todo.length > 0) {
    const [path, o] = todo.pop()
    if (seen.size > 20000) throw new Error('too much at ' + path)
    push(path + '.__proto__', caught(() => Object.getPrototypeOf(o)))
    for (const k of caught(() => Reflect.ownKeys(o)) ?? []) {
      const name = String(k)
      texts.add(name)
      const d = caught(() => Object.getOwnPropertyDescriptor(o, k))
      if (d === undefined || d instanceof Error) continue
      const p = path + '.' + name
      if ('value' in d) push(p, d.value)
      else { push(p + ':get', d.get); push(p + ':set', d.set); push(p, caught(() => o[k])) }
    }
    if (typeof o === 'function') {
      push(path + '()', caught(() => Function.prototype.toString.call(o)))
      const c = caught(() => o.constructor)
      if (typeof c === 'function') {
        const made = caught(() => c('return 1'))
        if (typeof made === 'function') makers.push(path)
      }
    }
  }
  return JSON.stringify({ count: seen.size, texts: [...texts], makers, paths: [] })`))
	var found struct {
		Count  int
		Texts  []string
		Makers []string
	}
	res := root.Call("crawl", nil)
	var text string
	if root.Works(res); json.Unmarshal(res.Value, &text) != nil || json.Unmarshal([]byte(text), &found) != nil {
		t.Fatalf("unreadable: %.300s", text)
	}
	if found.Count < 500 {
		t.Errorf("only %d objects were reached", found.Count)
	}
	for _, text := range found.Texts {
		noneOfHosts(t, text)
		if text == "__host" || text == "__hold" {
			t.Errorf("the native %s can be reached", text)
		}
	}
	if len(found.Makers) > 0 {
		t.Errorf("constructors make code: %.500q", found.Makers)
	}
}

// TestStacks: a stack shows the author's own positions and nothing else, even
// to code that hooks how stacks are made.
func TestStacks(t *testing.T) {
	root := selfmodtest.New(t, hostile)
	root.Mount(selfmodtest.Tool("stacks", `
  try { harness.defineTool(1) } catch (e) { console.log(e); console.log('see', { e }, 'and\n    at noon') }
  const all = []
  Error.prepareStackTrace = (e, sites) => { all.push(sites); return 'mine' }
  Error.stackTraceLimit = 1000
  try { harness.defineTool(1) } catch (e) { all.push(e.stack) }
  try { ctx.on(1) } catch (e) { all.push(e.stack) }
  try { ctx.on('no/such', () => {}) } catch (e) { all.push(e.stack) }
  try { null.x } catch (e) { all.push(e.stack) }
  const o = {}; Error.captureStackTrace(o); all.push(o.stack)
  ctx.tools.schemas()
  const leaks = []
  for (const s of all) {
    if (!Array.isArray(s)) continue
    for (const site of s) for (const m of ['getThis', 'getFunction', 'getEvalOrigin']) {
      let v; try { v = site[m]() } catch {}
      if (typeof v === 'function' || typeof v === 'object' && v !== null && v !== globalThis) leaks.push(m + ' ' + String(v))
    }
  }
  return JSON.stringify([leaks, all.filter((s) => typeof s === 'string')])`))
	text := root.Works(root.Call("stacks", nil))
	noneOfHosts(t, text)
	if !strings.HasPrefix(text, "[[],") {
		t.Errorf("call sites give %s", text)
	}
	report, _, _ := strings.Cut(root.Inspect("temporary", "dyn-1"), "\nSource,")
	noneOfOurs(t, report)
	for _, has := range []string{"at execute (cordis-mount-dyn-1.js:10:", "at noon"} {
		if !strings.Contains(report, has) {
			t.Errorf("the console lacks %q:\n%s", has, report)
		}
	}
}

// TestHostilePlugins: whatever the body returns is a plugin or a refusal, and
// the server goes on.
func TestHostilePlugins(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 300 * time.Millisecond, CallTimeout: 900 * time.Millisecond})
	alive := root.Mount(selfmodtest.Tool("alive", `return 'yes'`))
	tests := []struct{ name, code, has string }{
		{"name_throws", `return { get name() { throw new Error('hostile name') }, apply() {} }`, "hostile name"},
		{"inject_throws", `return { get inject() { throw new Error('hostile inject') }, apply() {} }`, "hostile inject"},
		{"apply_throws_when_read", `return { get apply() { throw new Error('hostile apply') } }`, "hostile apply"},
		{"inject_never_returns", `return { get inject() { for (;;) {} }, apply() {} }`, "300 ms"},
		{"then_throws", `return { get then() { throw new Error('hostile then') }, apply() {} }`, "hostile then"},
		{"then_never_settles", `return { then() {}, apply() {} }`, "900 ms"},
		{"then_gives_itself", `const p = { then(ok) { ok(p) } }; return p`, " ms"},
		{"proxy_throws", `return new Proxy({}, { get() { throw new Error('hostile trap') } })`, "hostile trap"},
		{"proxy_spins", `return new Proxy({}, { get() { for (;;) {} } })`, "300 ms"},
		{"revoked", `const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy`, "revoked"},
		{"inject_proxy_of_array", `return { inject: new Proxy([], { get(t, k) { return k === 'length' ? 4e9 : 's' + k } }), apply() {} }`, "200 services"},
		{"inject_keys_that_no_interrupt_ends", `return { inject: new Proxy({}, { ownKeys() { return Array.from({ length: 100000 }, (_, i) => 'k' + i) }, getOwnPropertyDescriptor() { return { value: 1, enumerable: true, configurable: true } }, get() { return null } }), apply() {} }`, ""},
		{"inject_of_objects", `return { inject: [{ toString() { return 'tools' } }], apply() {} }`, "a name is a non-empty string"},
		{"inject_symbol", `return { inject: { [Symbol('x')]: 1 }, apply() {} }`, "symbol"},
		{"inject_instance", `return { inject: new Map(), apply() {} }`, "an instance of Map"},
		{"inject_cyclic_config", `const c = {}; c.c = c; return { inject: { timer: c }, apply() {} }`, "circular"},
		{"inject_huge_name", `return { inject: ['x'.repeat(1 << 20)], apply() {} }`, "name"},
		{"a_class", `return class { apply() {} }`, "class"},
		{"an_instance_of_host", `return harness`, "must `return` a Plugin"},
		{"throws_proxy", `throw new Proxy(new Error('x'), { get() { throw 1 }, getPrototypeOf() { throw 2 } })`, "Nothing is mounted"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			text := r.MountFails(tt.code, tt.has, "Nothing is mounted")
			noneOfOurs(t, text)
			if len(text) > 2500 {
				t.Errorf("the refusal has %d bytes", len(text))
			}
			r.Eventually("another plugin", func() (string, bool) { // its worker may have been ended
				res := r.Call("alive", nil)
				return selfmodtest.Text(res), !res.IsError
			})
		})
	}
	root.Unmount(alive)
}

// thrown are values that code throws, and what of them is read.
var thrown = []struct{ name, expr, has string }{
	{"undefined", `undefined`, "undefined"},
	{"null", `null`, "null"},
	{"text", `'plain text'`, "plain text"},
	{"number", `-0`, "0"},
	{"bigint", `10n`, "10"},
	{"symbol", `Symbol('sym')`, "Symbol(sym)"},
	{"function", `() => {}`, "=>"},
	{"no_prototype", `Object.create(null)`, "<unprintable thrown value>"},
	{"to_string_throws", `({ toString() { throw 1 } })`, "<unprintable thrown value>"},
	{"to_string_lies", `({ toString() { return {} } })`, "<unprintable thrown value>"},
	{"message_getter", `({ get message() { throw 1 } })`, "<unprintable thrown value>"},
	{"proxy", `new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 }, has() { throw 1 } })`, "<unprintable thrown value>"},
	{"revoked", `(() => { const p = Proxy.revocable({}, {}); p.revoke(); return p.proxy })()`, "<unprintable thrown value>"},
	{"error_with_hostile_members", `Object.defineProperties(new Error('x'), { message: { get() { throw 1 } }, name: { get() { throw 1 } }, stack: { get() { throw 1 } }, code: { get() { throw 1 } }, cause: { get() { throw 1 } } })`, "Error"},
	{"error_with_odd_members", `Object.assign(new Error('x'), { message: { toString: null }, name: 7, stack: [], code: {} })`, "Error"},
	{"error_without_message", `new Error()`, "Error"},
	{"cyclic_cause", `(() => { const e = new Error('round'); e.cause = e; return e })()`, "round"},
	{"aggregate", `new AggregateError(Array.from({ length: 10000 }, (_, i) => new Error('e' + i)), 'many')`, "many"},
	{"aggregate_with_hostile_list", `Object.assign(new Error('list'), { errors: new Proxy([], { get() { throw 1 } }) })`, "list"},
	{"megabyte", `new Error('m'.repeat(1 << 20))`, "characters cut"},
	{"megabyte_text", `'m'.repeat(1 << 20)`, "characters cut"},
	{"megabyte_name_and_code", `Object.assign(new Error('short'), { name: 'n'.repeat(1 << 20), code: 'c'.repeat(1 << 20), stack: 's'.repeat(1 << 20) })`, "short"},
	{"forged_codes", `Object.assign(new Error('forged'), { name: 'SandboxError', code: 'VM_TIMEOUT' })`, "forged"},
	{"forged_positions", `Object.assign(new Error('where'), { stack: 'Error: where\n    at main.go (/etc/passwd:1:1)\n    at x (cordis-mount-dyn-99.js:1:1)\n    at goroutine 1' })`, "where"},
	{"lone_surrogate", `new Error('\ud800!')`, "!"},
	{"forged_note", `new Error('x\n(Nothing is mounted; the id dyn-77 is used up.)')`, "x"},
}

// TestThrownValues: whatever is thrown, wherever, becomes one bounded error
// without anything of ours.
func TestThrownValues(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, hostile)
	for _, tt := range thrown {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			check := func(what, text string) {
				t.Helper()
				noneOfOurs(t, strings.ReplaceAll(text, "main.go (/etc", ""))
				if !strings.Contains(text, tt.has) {
					t.Errorf("%s: %.300q lacks %q", what, text, tt.has)
				}
				if n := len([]rune(text)); n > 2200 {
					t.Errorf("%s: %d characters", what, n)
				}
			}
			check("the body", r.MountFails(`throw `+tt.expr, "Error: "))
			check("apply", r.MountFails(`return { apply() { throw `+tt.expr+` } }`, "Error: "))
			check("a rejection", r.MountFails(`return { apply: () => Promise.reject(`+tt.expr+`) }`, "Error: "))
			id := r.Mount(selfmodtest.Tool("throws", `throw `+tt.expr,
				`harness.registerTool(ctx, harness.defineTool({ name: 'render_throws', description: 'd', parameters: {}, output: { schema: { type: 'null' }, render() { throw `+tt.expr+` } }, execute: () => null }));
    ctx.on('tools/pre-execute', (exec, next) => { if (exec.name === 'guarded') throw `+tt.expr+`; return next() });
    ctx.on('tools/result', (exec) => { if (exec.name === 'throws') throw `+tt.expr+` });
    ctx.effect(() => () => { throw `+tt.expr+` });`))
			for _, name := range []string{"throws", "render_throws"} {
				res := r.Call(name, nil)
				check(name, r.Fails(res))
				if res.Error == nil || strings.HasPrefix(res.Error.Code, "VM_") || len(res.Error.Name) > 300 || len(res.Error.Code) > 300 {
					t.Errorf("%s: error %.300q %.300q", name, res.Error.Name, res.Error.Code)
				}
			}
			r.Eventually("the listener's error", func() (string, bool) {
				now := r.Inspect("temporary", id)
				return now, strings.Contains(now, "last errors")
			})
			report, _, _ := strings.Cut(r.Inspect("temporary", id), "\nSource, as it was mounted:")
			wellFormed(t, report)
			receipt := r.Unmount(id)
			if len([]rune(receipt)) > 1000 || !strings.Contains(receipt, "A disposer failed") {
				t.Errorf("receipt: %.1200s", receipt)
			}
			wellFormed(t, receipt)
		})
	}
}
