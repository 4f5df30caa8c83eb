package selfmod_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// What one mount provides, as another sees it.
func TestServiceValues(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	for _, c := range []struct{ name, value, use, want string }{
		{"number", "42", "s + 1", "43"},
		{"float", "-0.5", "s", "-0.5"},
		{"text", "'h\\u00e9 \\u{1f600}'", "s", "hé 😀"},
		{"true", "true", "s === true", "true"},
		{"null", "null", "s === null", "true"},
		{"nan", "NaN", "Number.isNaN(s)", "true"},
		{"minus_zero", "-0", "Object.is(s, -0)", "true"},
		{"bigint", "12345678901234567890n", "String(s + 1n)", "12345678901234567891"},
		{"function", "(a, b) => a + b", "s(2, 3)", "5"},
		{"async_function", "async (a) => a * 2", "await s(4)", "8"},
		{"function_throws", "() => { throw new TypeError('no good') }", "(() => { try { s() } catch (e) { return [e instanceof TypeError, e.message, e.name].join() } })()", "true,no good,TypeError"},
		{"error_with_code", "{ f() { const e = new RangeError('far'); e.code = 'E_FAR'; throw e } }", "(() => { try { s.f() } catch (e) { return [e instanceof RangeError, e.code, e.message].join() } })()", "true,E_FAR,far"},
		{"rejects_with_code", "{ async f() { const e = new Error('late'); e.code = 'E_LATE'; throw e } }", "await s.f().catch((e) => e.code + e.message)", "E_LATElate"},
		{"throws_text", "{ f() { throw 'plain' } }", "(() => { try { s.f() } catch (e) { return typeof e + e } })()", "stringplain"},
		{"nested_data", "{ a: { b: [1, { c: 'd' }] } }", "s.a.b[1].c + s.a.b.length", "d2"},
		{"method_this", "{ n: 7, get() { return this.n } }", "s.get()", "7"},
		{"member_is_live", "(() => { const o = { n: 0, inc() { o.n++ } }; return o })()", "(s.inc(), s.inc(), s.n)", "2"},
		{"class_instance", "new (class Counter { #n = 1; get n() { return this.#n } inc(by = 1) { this.#n += by; return this.#n } })()", "[s.inc(), s.inc(5), s.n].join()", "2,7,7"},
		{"inherited_getter", "new (class B extends (class A { get kind() { return 'A' + this.x } }) { x = 1 })()", "s.kind", "A1"},
		{"setter", "new (class { #v; set v(x) { this.#v = x * 2 } get v() { return this.#v } })()", "(s.v = 4, s.v)", "8"},
		{"static_class", "class Point { constructor(x) { this.x = x } double() { return this.x * 2 } }", "new s(4).double()", "8"},
		{"returns_instance", "{ make() { return new (class { hi() { return 'hi' } })() } }", "s.make().hi()", "hi"},
		{"returns_function", "{ adder: (a) => (b) => a + b }", "s.adder(1)(2)", "3"},
		{"promise_member", "{ p: Promise.resolve(5) }", "await s.p", "5"},
		{"promise_nested", "{ async f() { return { g: async () => 'deep' } } }", "await (await s.f()).g()", "deep"},
		{"callback", "{ each(list, fn) { return list.map(fn).join() } }", "s.each([1, 2, 3], (x) => x * 10)", "10,20,30"},
		{"callback_async", "{ async each(list, fn) { let t = 0; for (const x of list) t += await fn(x); return t } }", "await s.each([1, 2], async (x) => x * 10)", "30"},
		{"callback_throws", "{ f(fn) { try { fn() } catch (e) { return e.code + ':' + e.message } } }", "s.f(() => { const e = new Error('mine'); e.code = 'C'; throw e })", "C:mine"},
		{"callback_kept", "(() => { let k; return { keep(f) { k = f }, use: () => k() } })()", "(s.keep(() => 'kept'), s.use())", "kept"},
		{"comes_back", "(() => { let k; return { give() { return k = { x: 1, f() {} } }, mine: (o) => o === k } })()", "s.mine(s.give())", "true"},
		{"own_comes_back", "{ echo: (o) => o }", "(() => { const f = () => {}; return s.echo(f) === f })()", "true"},
		{"undefined_result", "{ f() {} }", "s.f() === undefined", "true"},
		{"date", "{ f: () => new Date(86400000) }", "s.f() instanceof Date && s.f().getTime()", "86400000"},
		{"map", "{ f: () => new Map([['a', { b: 1 }]]) }", "s.f() instanceof Map && s.f().get('a').b", "1"},
		{"set", "{ f: () => new Set([1, 2]) }", "s.f() instanceof Set && s.f().size", "2"},
		{"bytes", "{ f: () => new Uint8Array([1, 2, 255]) }", "s.f() instanceof Uint8Array && s.f()[2]", "255"},
		{"regexp", "{ f: () => /a(b)/gi }", "'xAB'.replace(s.f(), '$1')", "xB"},
		{"error_value", "{ f: () => new RangeError('as data') }", "s.f() instanceof RangeError && s.f().message", "as data"},
		{"cycle", "{ f: () => { const a = { n: 1 }; a.self = a; return a } }", "s.f().self.self.n", "1"},
		{"in", "{ a: 1, f() {} }", "['a' in s, 'f' in s, 'nope' in s].join()", "true,true,false"},
		{"keys", "{ a: 1, b: 2 }", "Object.keys(s).join()", "a,b"},
		{"missing_member", "{ a: 1 }", "s.nope === undefined", "true"},
		{"missing_method", "{ a: 1 }", "(() => { try { s.nope() } catch (e) { return e instanceof TypeError } })()", "true"},
		{"array", "[1, 2, 3]", "s.length + s[2] + s.map((x) => x * 2).join()", "62,4,6"},
		{"iterator", "{ *f() { yield 1; yield 2 } }", "[...s.f()].join()", "1,2"},
		{"async_iterator", "{ async *f() { yield 1; yield 2 } }", "await (async () => { const out = []; for await (const x of s.f()) out.push(x); return out.join() })()", "1,2"},
		{"thenable_is_awaited", "{ f: () => ({ then(ok) { ok('thenable') } }) }", "await s.f()", "thenable"},
		{"many_arguments", "{ f: (...a) => a.length }", "s.f(...Array(100).fill(0))", "100"},
		{"large", "{ f: (x) => x.length }", "s.f('x'.repeat(1 << 20))", "1048576"},
		{"json", "{ a: 1, b: [2] }", "JSON.stringify(s)", `{"a":1,"b":[2]}`},
		{"spread", "{ a: 1, b: 2 }", "Object.entries({ ...s }).join()", "a,1,b,2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			for _, first := range []bool{true, false} {
				provides := fmt.Sprintf("return { name: 'p', apply(ctx) { ctx.provide('val', %s) } }", c.value)
				uses := withTool("use", "['val']", "const s = ctx.val; if (ctx.get('val') !== s && typeof s !== 'number') return 'ctx.get gives another'; return String("+c.use+")")
				codes := []string{provides, uses}
				if !first {
					codes = []string{uses, provides}
				}
				a, b := r.Mount(codes[0]), r.Mount(codes[1])
				if got := selfmodtest.Text(r.Call("use", nil)); got != c.want {
					t.Errorf("provider first %v: got %s, want %s", first, got, c.want)
				}
				r.Unmount(a)
				r.Unmount(b)
			}
		})
	}
}

// Whatever was got of a mount says that it is gone when its owner went; it does
// not hang, and a new owner is not mistaken for the old one.
func TestStubsAfterTheirOwnerWent(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	stop := bystander(r, prompt)
	r.Mount(withTool("keeper", "{ optional: ['val'] }", `
      const k = globalThis.kept ??= {}
      if (args.x === 'keep') { k.s = ctx.get('val'); k.f = k.s.f; k.o = k.s.make(); k.p = k.s.never(); k.p.catch(() => {}); return 'kept' }
      const out = []
      for (const [n, use] of Object.entries({ method: () => k.s.f(), stub: () => k.f(), object: () => k.o.hi(), member: () => k.s.n, assign: () => { k.s.n = 1 }, has: () => 'n' in k.s, keys: () => Object.keys(k.s) })) {
        try { out.push(n + '=' + use()) } catch (e) { out.push(n + ': ' + e.code + ' ' + e.message) }
      }
      out.push(await Promise.race([k.p.then(() => 'settled', (e) => 'promise: ' + e.message), Promise.resolve().then(() => 'promise: still open')]))
      return out.join('\n')`))
	const p = "return { name: 'p', apply(ctx) { ctx.provide('val', { n: 1, f: () => 'alive', make: () => new (class { hi() { return 'hi' } })(), never: () => new Promise(() => {}) }) } }"
	id := r.Mount(p)
	r.Works(r.Call("keeper", map[string]string{"x": "keep"}), "kept")
	r.Works(r.Call("keeper", nil), "method=alive", "stub=alive", "object=hi", "member=1")
	r.Unmount(id)
	gone := func() {
		t.Helper()
		text := r.Works(r.Call("keeper", nil), "promise: temporary Plugin dyn-")
		for _, what := range []string{"method", "stub", "object", "member", "assign", "has", "keys"} {
			hasAll(t, text, what+`: SERVICE_GONE service "val" is gone: the mount that provided it was unmounted or restarted`)
		}
		if strings.Contains(text, "still open") {
			t.Errorf("a promise of a mount that is gone is still open:\n%s", text)
		}
	}
	gone()
	again := r.Mount(p)
	gone()
	r.Works(r.Call("keeper", map[string]string{"x": "keep"}), "kept")
	restart(r, "p")
	gone()
	r.Unmount(again)
	stop()
}

// A callback that a consumer handed over is gone with the consumer, and the
// provider goes on.
func TestCallbackAfterItsOwnerWent(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, small)
	r.Mount(withTool("fire", "[]", "const out = []; for (const f of list) { try { out.push(f()) } catch (e) { out.push(e.code + ': ' + e.message) } } return out.join('\\n')",
		"const list = []", "ctx.provide('bus', { on(f) { list.push(f); return () => list.splice(list.indexOf(f), 1) } })"))
	sub := func(says string) string {
		return "return { name: 'sub', inject: ['bus'], apply(ctx) { const off = ctx.bus.on(() => '" + says + "'); " + map[bool]string{true: "ctx.effect(() => off)", false: ""}[says == "tidy"] + " } }"
	}
	tidy, messy := r.Mount(sub("tidy")), r.Mount(sub("messy"))
	r.Works(r.Call("fire", nil), "tidy\nmessy")
	r.Unmount(tidy)
	if got := selfmodtest.Text(r.Call("fire", nil)); got != "messy" {
		t.Errorf("after the tidy one went: %s", got)
	}
	r.Unmount(messy)
	r.Works(r.Call("fire", nil), "SERVICE_GONE: ", "is gone")
}

// What is shared is bounded, and what is no longer used is given back.
func TestSharedObjectsAreBounded(t *testing.T) {
	t.Parallel()
	roomy := small
	roomy.VMTimeout, roomy.CallTimeout, roomy.MaxCallTimeout = 10*time.Second, 10*time.Second, 10*time.Second
	r := selfmodtest.New(t, roomy)
	r.Mount("return { name: 'p', apply(ctx) { ctx.provide('val', { make: () => ({ f() {} }), drop() {} }) } }")
	r.Mount(withTool("hoard", "['val']", "const all = []; try { for (let i = 0; i < 20000; i++) all.push(ctx.val.make()) } catch (e) { return e.message } return 'no limit'"))
	r.Mount(withTool("waste", "['val']", "for (let i = 0; i < 3000; i++) ctx.val.make(); return 'fine'"))
	for range 6 {
		r.Works(r.Call("waste", nil), "fine")
	}
	r.Works(r.Call("hoard", nil), "10000")
	r.Works(r.Call("hoard", nil), "10000") // what it lost went with its next request
}
