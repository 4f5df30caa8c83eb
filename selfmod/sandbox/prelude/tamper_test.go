package prelude_test

import (
	"strings"
	"testing"
)

// sabotage replaces everything of the language that the prelude might lean on.
// It runs in the body of a plugin, before its apply.
const sabotage = `
	const keep = { define: Object.defineProperty, names: Object.getOwnPropertyNames, own: Object.getOwnPropertyDescriptor }
	const boom = function () { throw new Error('SABOTAGE') }
	const roots = [Object, Function, Array, String, Number, Boolean, Symbol, BigInt, Math, JSON, Reflect, Promise, Map, Set, WeakMap, WeakSet, WeakRef, FinalizationRegistry, Proxy, Date, RegExp, Error, TypeError, RangeError, ArrayBuffer, Uint8Array, DataView, Iterator, Object.getPrototypeOf(Uint8Array), Object.getPrototypeOf([][Symbol.iterator]()), Object.getPrototypeOf(new Map().keys()), Object.getPrototypeOf(function* () {}), Object.getPrototypeOf(async function () {}), Object.getPrototypeOf(async function* () {}), Object.getPrototypeOf(function* () {}).prototype, Object.getPrototypeOf(async function* () {}).prototype]
	const all = []
	for (let i = 0; i < roots.length; i++) { all[all.length] = roots[i]; if (roots[i].prototype) all[all.length] = roots[i].prototype }
	const skip = { hasInstance: 1 }
	for (let i = 0; i < all.length; i++) {
		const o = all[i]
		const names = keep.names(o)
		for (let j = 0; j < names.length; j++) {
			const d = keep.own(o, names[j])
			if (!d.configurable && !d.writable) continue
			try {
				if (d.get) keep.define(o, names[j], { get: boom, set: boom })
				else if (typeof d.value === 'function' && (d.writable || d.configurable)) keep.define(o, names[j], { value: boom })
			} catch (e) {}
		}
		try { keep.define(o, Symbol.iterator, { value: boom, configurable: true }) } catch (e) {}
		try { keep.define(o, Symbol.species, { get: boom, configurable: true }) } catch (e) {}
		try { keep.define(o, Symbol.toPrimitive, { value: boom, configurable: true }) } catch (e) {}
	}
	const globals = keep.names(globalThis)
	for (let j = 0; j < globals.length; j++) try { if (typeof globalThis[globals[j]] === 'function' || typeof globalThis[globals[j]] === 'object') globalThis[globals[j]] = boom } catch (e) {}
`

// poison puts setters, getters and values where a missing property is looked for.
const poison = `
	const define = Object.defineProperty
	const boom = () => { throw new Error('POISON') }
	const O = Object.prototype, A = Array.prototype
	const names = ['get', 'set', 'value', 'has', 'apply', 'construct', 'ownKeys', 'defineProperty', 'getOwnPropertyDescriptor', 'deleteProperty', 'getPrototypeOf', 'writable', 'enumerable', 'configurable', 'toJSON', 'next', 'done', 'return', 'run', 'effect', 'kind', 'mount', 'handle', 'members', 'name', 'optional', 'config', 'once', 'prepend', 'raw', 'code', 'stack', 'args', 'exec', 'callId', 'rootCallId', 'nested', 'signal', 'transfer', '$', 'h', 'n', 'r', 'f', 'v', 'k', 'a', 'op', 'i', 'type', 'text', 'extra', 'gone', 'off', 'errors', 'cause']
	for (let i = 0; i < 20; i++) { define(A, i, { __proto__: null, get: boom, set: boom, configurable: true }); define(O, i, { __proto__: null, get: boom, set: boom, configurable: true }) }
	for (let i = 0; i < names.length; i++) define(O, names[i], { __proto__: null, get: boom, set: boom, configurable: true })
`

const tampered = `
	return { name: 'tampered', inject: ['timer', 'svc'], apply(ctx) {
		harness.registerTool(ctx, harness.defineTool({ name: 'x', description: 'd', title: 't', timeoutMs: 5, parameters: { a: { type: 'string' } },
			output: { schema: { type: 'json' }, render(args, value) { return [{ type: 'text', text: 'r' }] }, presentationMeta: undefined },
			isConcurrencySafe: undefined, presentCall: undefined, presentResult: undefined, finalizeContent: undefined,
			async execute(args, exec) { return { list: [1, [2]], o: { p: null } } } }))
		ctx.on('e', function (x) { console.log('heard', x); return ctx.svc.greet('you') }, true)
		ctx.on('w', function (x, next) { return next() }, true)
		ctx.setTimeout(function () { console.log('tick') }, 5)
		ctx.effect(function () { return function () { console.log('undone') } })
		ctx.provide('mine', { f(x) { return 'mine ' + x } })
	} }`

// drive takes a tampered machine through all its entries.
func drive(t *testing.T, body string) {
	world := newWorld(t, 2)
	world[0].run("return (ctx) => { ctx.provide('svc', { greet: (w) => 'hi ' + w }) }", "{}")
	m := world[1]
	if got := m.load(body); got != `={"name":"tampered","inject":[{"name":"timer"},{"name":"svc"}]}` {
		t.Fatalf("load: %s", got)
	}
	bindings := `{"timer":{"kind":"timer"},` + provided(world[0], 0)[1:]
	if got := m.call("apply", "1", bindings); got != "=" {
		t.Fatalf("apply: %s", got)
	}
	if got, want := m.call("invoke", "tool", "1", toolArgs), `={"value":{"list":[1,[2]],"o":{"p":null}},"content":[{"type":"text","text":"r"}]}`; got != want {
		t.Errorf("tool: got %s", got)
	}
	if got := m.call("invoke", "listener", "2", `{"args":["x"],"next":false}`); got != `="hi you"` {
		t.Errorf("listener: %s", got)
	}
	if got := m.call("invoke", "listener", "3", `{"args":["x"],"next":true}`); got != "~" {
		t.Errorf("waterfall: %s", got)
	} else {
		id := itoa(m.calls)
		m.settle(itoa(m.asyncID), `="passed"`)
		if got := m.done[id]; got != `="passed"` {
			t.Errorf("waterfall: %s", got)
		}
	}
	if got := m.call("invoke", "callback", "4", "{}"); got != "=" {
		t.Errorf("callback: %s", got)
	}
	if got := m.call("invoke", "dispose", "5", "{}"); got != "=" {
		t.Errorf("dispose: %s", got)
	}
	if got := m.dispatch("peer", "1:1", `{"run":1,"h":4,"op":"call","k":".f"}`, `["x"]`); got != `="mine x"` {
		t.Errorf("peer: %s", got)
	}
	m.dispatch("drop", "1:1")
	m.dispatch("retire", "1")
	m.drain()
	if got := strings.Join(m.console, ";"); got != "log: heard x;log: tick;log: undone" {
		t.Errorf("console: %s", got)
	}
	if got := m.call("apply", "2", bindings); got != "=" {
		t.Errorf("apply again: %s", got)
	}
	if got := strings.Join(m.console, ";"); strings.Contains(got, "SABOTAGE") || strings.Contains(got, "POISON") {
		t.Error(got)
	}
}

func TestTampering(t *testing.T) {
	t.Run("untouched", func(t *testing.T) { drive(t, tampered) })
	t.Run("intrinsics", func(t *testing.T) {
		drive(t, "const { harness: h, console: c } = globalThis;"+sabotage+strings.NewReplacer("harness.", "h.", "console.", "c.").Replace(tampered))
	})
	t.Run("prototypes", func(t *testing.T) { drive(t, poison+tampered) })
	for _, one := range []string{
		"Promise.prototype.then = null",
		"Promise.prototype.constructor = class { constructor() {} }",
		"Object.defineProperty(Promise, Symbol.species, { value: class {} })",
		"Object.defineProperty(Promise.prototype, 'constructor', { get() { throw 1 } })",
		"Array.prototype.toJSON = () => 'x'; Object.prototype.toJSON = () => 'y'; String.prototype.toJSON = () => 'z'",
		"String.prototype.concat = () => 'no'; String.prototype.slice = () => 'no'; String.prototype.indexOf = () => 0",
		"Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => 'no'",
		"JSON.parse = () => ({}); JSON.stringify = () => 'no'",
		"Object.prototype.then = undefined",
		"Error.prototype.toString = () => { throw 1 }; Object.setPrototypeOf(Error.prototype, null)",
		"Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Promise.prototype); Object.freeze(Function.prototype); Object.freeze(globalThis)",
		"for (const k of ['WeakMap', 'Map', 'Promise', 'Proxy', 'Reflect', 'Object', 'JSON']) delete globalThis[k]",
		"Array.isArray = () => true; Object.keys = () => ['x']; Reflect.ownKeys = () => []; Object.getPrototypeOf = () => null",
	} {
		t.Run(strings.Fields(one)[0], func(t *testing.T) { drive(t, one+";"+tampered) })
	}
}

// TestNothingLeaks looks for what a mount must not get at.
func TestNothingLeaks(t *testing.T) {
	m := newMachine(t)
	for name, code := range map[string]string{
		"natives":     "return { name: String(globalThis.__host) + String(globalThis.__hold), apply() {} }",
		"stack":       "try { null.x } catch (e) { return { name: String(/\\/(root|home|work|tmp)/.test(e.stack)), apply() {} } }",
		"source":      "return { name: String(String(harness.defineTool).includes('toolError')), apply() {} }",
		"constructor": "return { name: (() => { try { return String(harness.defineTool.constructor('return 1')()) } catch (e) { return 'refused' } })(), apply() {} }",
		"frozen":      "return { name: [Object.isFrozen(harness)].join(), apply() {} }",
	} {
		got := m.load(code)
		want := map[string]string{"natives": "undefinedundefined", "stack": "false", "source": "false", "constructor": "refused", "frozen": "true"}[name]
		if got != `={"name":"`+want+`","inject":[]}` {
			t.Errorf("%s: %s", name, got)
		}
	}
}
