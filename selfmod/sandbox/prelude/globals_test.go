package prelude_test

import (
	"strings"
	"testing"
)

func TestGlobals(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct{ name, expression, want string }{
		{"absent", "[typeof process, typeof Buffer, typeof Intl, typeof SharedArrayBuffer, typeof Atomics, typeof WebAssembly, typeof __host, typeof __hold].join()", strings.Repeat("undefined,", 7) + "undefined"},
		{"function-instanceof", "[(() => {}) instanceof Function, class {} instanceof Function, Function.prototype === Object.getPrototypeOf(() => {}), Function.prototype.constructor === Function].join()", "true,true,true,true"},
		{"instanceof", "[[] instanceof Array, {} instanceof Object, new TypeError instanceof Error, /x/ instanceof RegExp, new Date instanceof Date, new Map instanceof Map, new Set instanceof Set, Promise.resolve() instanceof Promise].every(Boolean)", "true"},
		{"base64-round-trip", "atob(btoa('hé😀\\u0000'))", "hé😀\x00"},
		{"btoa-utf8", "btoa('é')", "w6k="},
		{"btoa-lone-surrogate", "atob(btoa('a\\ud800b'))", "a\uFFFDb"},
		{"atob-url-safe", "atob('w6k') + atob('w 6k=')", "éé"},
		{"encoder", "new TextEncoder().encode('é€😀').join()", "195,169,226,130,172,240,159,152,128"},
		{"encoder-into", "(() => { const b = new Uint8Array(4); const r = new TextEncoder().encodeInto('aé€', b); return [r.read, r.written, b.join()].join() })()", "2,3,97,195,169,0"},
		{"decoder", "new TextDecoder().decode(new TextEncoder().encode('héllo €😀'))", "héllo €😀"},
		{"decoder-bad", "new TextDecoder().decode(new Uint8Array([0x61, 0xe2, 0x82, 0x62, 0xff, 0xed, 0xa0, 0x80]))", "a\uFFFDb\uFFFD\uFFFD\uFFFD\uFFFD"},
		{"decoder-stream", "(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) + d.decode(new Uint8Array([0xac])) })()", "€"},
		{"decoder-bom", "new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])).length", "1"},
		{"decoder-view", "new TextDecoder('utf8').decode(new DataView(new Uint8Array([97, 98, 99]).buffer, 1, 1))", "b"},
		{"clone", "(() => { const a = { d: new Date(5), m: new Map([[1, { x: [1, , 3] }]]), s: new Set(['q']), r: /a/gi, u: undefined, n: -0, b: 10n, t: new Uint8Array([1, 2]), e: new RangeError('no') }; a.self = a; const c = structuredClone(a); return [c !== a, c.self === c, c.d.getTime(), c.m.get(1).x.length, 1 in c.m.get(1).x, c.s.has('q'), c.r.flags, 'u' in c, Object.is(c.n, -0), c.b, c.t.join('-'), c.e instanceof RangeError, c.e.message].join() })()", "true,true,5,3,false,true,gi,true,true,10,1-2,true,no"},
		{"clone-deep", "(() => { const build = (n) => { let o = {}; while (--n) o = { o }; return o }; let n = 0; for (let o = structuredClone(build(9000)); o; o = o.o) n++; try { structuredClone(build(100000)) } catch (e) { return n + ' ' + e.name + ' ' + e.message } })()", "9000 RangeError a value that crosses to another plugin, or is cloned, is nested deeper than 10000"},
		{"clone-function", "(() => { try { structuredClone({ f() {} }) } catch (e) { return e.name } })()", "DataCloneError"},
		{"microtask", "(async () => { let s = 'a'; queueMicrotask(() => { s += 'c' }); s += 'b'; await 0; await 0; return s })()", "abc"},
		{"abort", "(() => { const c = new AbortController(); const seen = []; c.signal.onabort = () => seen.push('on'); c.signal.addEventListener('abort', (e) => seen.push(e.type)); const gone = () => seen.push('gone'); c.signal.addEventListener('abort', gone); c.signal.removeEventListener('abort', gone); const any = AbortSignal.any([c.signal]); c.abort('why'); c.abort('again'); try { c.signal.throwIfAborted() } catch (e) { seen.push(e) } seen.push(any.reason, AbortSignal.abort().reason.name); return seen.join() })()", "on,abort,why,why,AbortError"},
		{"from-async", "(async () => (await Array.fromAsync((async function* () { yield 1; yield 2 })(), (x) => x * 2)).join())()", "2,4"},
		{"from-async-promises", "(async () => (await Array.fromAsync([Promise.resolve(1), 2])).join())()", "1,2"},
		{"capture-stack", "(() => { const o = {}; Error.captureStackTrace(o); return typeof o.stack })()", "string"},
		{"take", "[1, 2, 3].values().map((x) => x * 2).take(2).toArray().join()", "2,4"},
		{"take-map-iterator", "new Map([[1, 2]]).keys().filter(() => true).take(1).toArray().join()", "1"},
		{"helper-break", "(() => { for (const x of [1, 2].values().map((x) => x)) return x })()", "1"},
		{"natives-look-native", "[Array.prototype.map.name, Array.prototype.map.length, Object.keys([]).length, Array.from.name, String(Array.prototype.map).includes('native code'), Object.keys(Array.prototype).length, typeof Uint8Array, Uint8Array.name, Object.getOwnPropertyDescriptor(globalThis, 'Uint8Array').enumerable].join()", "map,1,0,from,true,0,function,Uint8Array,false"},
		{"array-methods", "[[3, 1, 2].sort().join(), [1, 2].concat([3], 4).join(), [[1], [2]].flat().join(), Array.from({ length: 2 }, (_, i) => i).join(), Array.from(new Set([5])).join(), Array.from('ab').join(), [1, 2, 3].includes(2), 'a-b'.replaceAll('-', '+'), String.raw`a\\n${1}`, Array.from.call(Array, [1]).join()].join(';')", `1,2,3;1,2,3,4;1,2;0,1;5;a,b;true;a+b;a\n1;1`},
		{"typed-arrays", "[new Uint8Array([1, 2]).map((x) => x * 2).join(), new Uint8Array(2) instanceof Uint8Array, new Uint8Array(2).constructor === Uint8Array, Uint8Array.from([7]).join(), class extends Float64Array {}.name, new (class A extends Uint8Array {})(3).length].join(';')", "2,4;true;true;7;;3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.eval(c.expression); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestTraps(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct{ name, code, want string }{
		{"require", "require('fs')", "require is not available in the temporary Plugin sandbox — inject: ['fs']"},
		{"require-inspect", "require('fs')", `cordis_inspect what:"services"`},
		{"setTimeout", "setTimeout(() => {}, 5)", "ctx.setTimeout"},
		{"setTimeout-inject", "setTimeout(() => {}, 5)", "setTimeout is not available in the temporary Plugin sandbox — inject: ['timer']"},
		{"setInterval", "setInterval(() => {}, 5)", "setInterval is not available"},
		{"setImmediate", "setImmediate(() => {})", "setImmediate is not available"},
		{"clearTimeout", "clearTimeout(1)", "clearTimeout is not available"},
		{"clearInterval", "clearInterval(1)", "clearInterval is not available"},
		{"fetch", "await fetch('http://x.invalid')", "ctx.web"},
		{"eval", "eval('1')", "eval is not available in the temporary Plugin sandbox — "},
		{"indirect-eval", "(0, eval)('1')", "eval is not available"},
		{"Function", "new Function('return 1')", "Function is not available"},
		{"constructor", "console.log.constructor('return process')()", "Function is not available"},
		{"AsyncFunction", "(async () => {}).constructor('1')", "AsyncFunction is not available"},
		{"GeneratorFunction", "(function* () {}).constructor('1')", "GeneratorFunction is not available"},
		{"AsyncGeneratorFunction", "(async function* () {}).constructor('1')", "AsyncGeneratorFunction is not available"},
		{"reflect-construct", "Reflect.construct(Function, ['return 1'])", "Function is not available"},
		{"subclass", "new (class extends Function {})('return 1')", "Function is not available"},
		{"signal-timeout", "AbortSignal.timeout(5)", "inject: ['timer']"},
		{"indexOf", "Array(4294967295).indexOf(1)", "Array.prototype.indexOf: a length of 4294967295 is over the limit of 10000000"},
		{"array-to-text", "Array(1e8) + ''", "over the limit"},
		{"reverse", "Array(1e9).reverse()", "over the limit"},
		{"concat", "[].concat(Array(1e9))", "over the limit"},
		{"raw", "String.raw({ raw: { length: 1e10 } })", "over the limit"},
		{"typed", "new Uint8Array({ length: 5e7 })", "over the limit"},
		{"typed-from", "Uint8Array.from({ length: 5e7 })", "over the limit"},
		{"array-like", "Array.prototype.forEach.call({ length: 4e9 }, () => {})", "over the limit"},
		{"from", "Array.from({ length: 4e9 })", "over the limit"},
		{"replaceAll", "'x'.repeat(1e5).replaceAll('x', 'y'.repeat(1e5))", "String.prototype.replaceAll: the result would be longer than 268435456"},
		{"replaceAll-empty", "'x'.repeat(1e5).replaceAll('', 'y'.repeat(1e5))", "String.prototype.replaceAll"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := message(t, m.load(c.code)); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want it to contain %q", got, c.want)
			}
		})
	}
}

func TestConsole(t *testing.T) {
	m := newMachine(t)
	for _, c := range []struct{ name, args, want string }{
		{"text", "'a', 1, true, null, undefined, 10n, -0, Symbol('s')", "a 1 true null undefined 10n -0 Symbol(s)"},
		{"object", "{ a: 1, 'b c': 'x', [Symbol('k')]: [1, 'two'] }", "{ a: 1, \"b c\": 'x', [Symbol(k)]: [ 1, 'two' ] }"},
		{"empty", "{}, [], new Map, new Set", "{} [] Map(0) {} Set(0) {}"},
		{"deep", "{ a: { b: { c: { d: { e: { f: 1 } } } } } }", "{ a: { b: { c: { d: { e: [Object] } } } } }"},
		{"cycle", "(() => { const o = {}; o.o = o; return o })()", "{ o: [Circular] }"},
		{"holes", "[1, , , 4]", "[ 1, <2 empty items>, 4 ]"},
		{"collections", "new Map([['k', new Set([1])]])", "Map(1) { 'k' => Set(1) { 1 } }"},
		{"functions", "() => {}, function f() {}, class C {}", "[Function (anonymous)] [Function: f] [class: C]"},
		{"instance", "new (class Dog { constructor() { this.n = 1 } })", "Dog { n: 1 }"},
		{"getter", "{ get x() { throw 1 } }", "{ x: [Getter] }"},
		{"dates", "new Date(0), /a/g, new Uint8Array([1, 2])", "1970-01-01T00:00:00.000Z /a/g Uint8Array(2) [ 1, 2 ]"},
		{"format", "'%s is %d%% of %j %x', 'a', 5, { b: 1 }, 'rest'", "a is 5% of { b: 1 } %x rest"},
		{"hostile", "new Proxy({}, { ownKeys() { throw 1 } })", "[Object]"},
		{"null-prototype", "Object.create(null)", "[Object: null prototype] {}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m.console = nil
			if text := m.load("console.log(" + c.args + "); return () => {}"); text[0] != '=' {
				t.Fatal(text)
			}
			if got := strings.Join(m.console, "\n"); got != "log: "+c.want {
				t.Errorf("got  %s\nwant log: %s", got, c.want)
			}
		})
	}
	t.Run("levels", func(t *testing.T) {
		m.console = nil
		m.load("for (const l of ['log', 'info', 'warn', 'error', 'debug']) console[l](l); console.trace('t'); console.dir({ a: 1 }); console.assert(true, 'no'); console.assert(false, 'yes')")
		got := strings.Join(m.console, "\n")
		for _, want := range []string{"log: log", "info: info", "warn: warn", "error: error", "debug: debug", "error: Trace: t\n", "cordis-mount-dyn-1.js:", "log: { a: 1 }", "error: Assertion failed: yes"} {
			if !strings.Contains(got, want) {
				t.Errorf("%q is not in %s", want, got)
			}
		}
	})
	t.Run("error", func(t *testing.T) {
		m.console = nil
		m.load("console.log(new TypeError('bad'), [new Error('in')])")
		if got := m.console[0]; !strings.HasPrefix(got, "log: TypeError: bad\n    at ") || !strings.Contains(got, "Error: in") {
			t.Error(got)
		}
	})
	t.Run("bounded", func(t *testing.T) {
		for _, code := range []string{
			"console.log('é'.repeat(1e6))",
			"console.log('x'.repeat(1e6), 'y')",
			"console.log(Array.from({ length: 1e5 }, (_, i) => 'item ' + i))",
			"const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = 'v'.repeat(100); console.log(o, o, o)",
			"console.log(Array(1e9))",
		} {
			m.console = nil
			m.load(code)
			if len(m.console) != 1 || len(m.console[0]) > 8192+8 {
				t.Errorf("%s: %d lines, %d bytes", code, len(m.console), len(strings.Join(m.console, "")))
			}
		}
	})
}
