package prelude_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// provided returns the binding of the n-th service that a machine provided, as
// the host would pass it on.
func provided(m *machine, n int) string {
	m.t.Helper()
	var p struct {
		Name    string
		Binding json.RawMessage
	}
	if err := json.Unmarshal([]byte(m.asks("sync", "provide")[n].args[3]), &p); err != nil {
		m.t.Fatal(err)
	}
	b := strings.Replace(string(p.Binding), `{"kind":"peer"`, fmt.Sprintf(`{"kind":"peer","mount":%d`, m.number), 1)
	return `{"` + p.Name + `":` + b + `}`
}

// peers runs a provider of svc and a consumer whose listener runs code with svc,
// and returns the two and a function that enters that listener.
func peers(t testing.TB, service, code string) (provider, consumer *machine, enter func() string) {
	t.Helper()
	world := newWorld(t, 2)
	provider, consumer = world[0], world[1]
	provider.run("return { name: 'provider', apply(ctx) { const svc = "+service+"; ctx.provide('svc', svc) } }", "{}")
	consumer.run("return { name: 'consumer', inject: ['svc'], apply(ctx) { ctx.on('go', async (next) => { const svc = ctx.svc; "+code+" }) } }", provided(provider, 0))
	return provider, consumer, func() string {
		t.Helper()
		return consumer.call("invoke", "listener", "1", `{"args":[],"next":true}`)
	}
}

func TestPeer(t *testing.T) {
	for _, c := range []struct{ name, service, code, want string }{
		{"method", "{ greet: (who) => 'hi ' + who }", "return svc.greet('you')", `="hi you"`},
		{"receiver", "{ n: 1, inc() { return ++this.n } }", "svc.inc(); return [svc.inc(), svc.n]", `=[3,3]`},
		{"detached", "{ n: 1, inc() { return ++this.n } }", "const { inc } = svc; return inc()", `=2`},
		{"getter", "{ calls: 0, get now() { return ++this.calls } }", "return [svc.now, svc.now]", `=[1,2]`},
		{"class", "new (class Dog { #n = 'rex'; name() { return this.#n } get upper() { return this.#n.toUpperCase() } })()", "return [svc.name(), svc.upper]", `=["rex","REX"]`},
		{"set", "{ v: 1, read() { return this.v } }", "svc.v = { a: [1] }; return svc.read()", `={"a":[1]}`},
		{"has-and-keys", "{ a: 1, b() {} }", "return ['a' in svc, 'x' in svc, Object.keys(svc), JSON.stringify(svc), { ...svc }.a]", `=[true,false,["a","b"],"{\"a\":1}",1]`},
		{"sync-stays-sync", "{ f: () => 1 }", "return svc.f() instanceof Promise", `=false`},
		{"promise", "{ async f(x) { await 0; return { x } } }", "const p = svc.f(5); return [p instanceof Promise, await p]", `=[true,{"x":5}]`},
		{"promise-member", "{ ready: Promise.resolve('yes') }", "return await svc.ready", `="yes"`},
		{"rejects", "{ async f() { await 0; throw Object.assign(new RangeError('late'), { code: 'E_LATE' }) } }", "try { await svc.f() } catch (e) { return [e instanceof RangeError, e.message, e.code] }", `=[true,"late","E_LATE"]`},
		{"throws", "{ f() { throw Object.assign(new TypeError('bad'), { code: 'E' }) } }", "try { svc.f() } catch (e) { return [e instanceof TypeError, e.message, e.code, e.stack.includes('cordis-mount')] }", `=[true,"bad","E",true]`},
		{"throws-string", "{ f() { throw 'plain' } }", "try { svc.f() } catch (e) { return e }", `="plain"`},
		{"own-error-class", "{ f() { throw new (class MyError extends Error { name = 'MyError' })('m') } }", "try { svc.f() } catch (e) { return [e instanceof Error, e.name, e.message] }", `=[true,"MyError","m"]`},
		{"not-a-function", "{ x: 1 }", "try { svc.x() } catch (e) { return e.message }", `="not a function"`},
		{"missing", "{}", "try { svc.nope() } catch (e) { return [e instanceof TypeError, svc.nope === undefined] }", `=[true,true]`},
		{"await-service", "{ a: 1 }", "return (await svc).a", `=1`},
		{"function-service", "(x) => x * 2", "return [typeof svc, svc(4), svc.call(null, 5), [1, 2].map(svc)]", `=["function",8,10,[2,4]]`},
		{"array-service", "[1, { a: 2 }, () => 3]", "return [Array.isArray(svc), svc.length, svc[1].a, svc[2](), Array.from(svc, (x) => typeof x)]", `=[true,3,2,3,["number","object","function"]]`},
		{"map-service", "new Map([['k', 'v']])", "svc.set('x', 1); return [svc.get('k'), svc.size, [...svc.keys()]]", `=["v",2,["k","x"]]`},
		{"iterate", "{ *[Symbol.iterator]() { yield 1; yield 2 } }", "return [...svc]", `=[1,2]`},
		{"iterate-async", "{ async *[Symbol.asyncIterator]() { yield 1; await 0; yield 2 } }", "const r = []; for await (const x of svc) r.push(x); return r", `=[1,2]`},
		{"constructor", "{ Point: class { constructor(x) { this.x = x } twice() { return this.x * 2 } } }", "return [new svc.Point(4).x]", `=[4]`},
		{"callback", "{ each(f) { return [1, 2].map((x) => f(x)) } }", "return svc.each((x) => x + 10)", `=[11,12]`},
		{"callback-async", "{ async each(f) { return [await f(1), await f(2)] } }", "return svc.each(async (x) => { await 0; return x + 10 })", `=[11,12]`},
		{"callback-throws", "{ each(f) { try { f() } catch (e) { return [e instanceof RangeError, e.message] } } }", "return svc.each(() => { throw new RangeError('mine') })", `=[true,"mine"]`},
		{"returned-function", "{ counter() { let n = 0; return () => ++n } }", "const a = svc.counter(); a(); return [a(), svc.counter()()]", `=[2,1]`},
		{"returned-object", "{ open: (n) => ({ n, close() { return 'closed ' + n } }) }", "return svc.open(3).close()", `="closed 3"`},
		{"identity-home", "{ keep: null, put(o) { this.keep = o; return this }, same(o) { return o === this.keep } }", "const o = { f() {} }; const back = svc.put(o); return [back === svc, svc.same(o)]", `=[true,true]`},
		{"object-comes-home", "{ o: { f() { return 1 } }, get() { return this.o }, is(x) { return x === this.o } }", "const x = svc.get(); return [svc.is(x), x === svc.get()]", `=[true,true]`},
		{"options-with-function", "{ run(o) { return o.name + o.on('x') } }", "return svc.run({ name: 'n', on: (x) => x + '!' })", `="nx!"`},
		{"signal", "{ watch(s) { return new Promise((ok) => s.addEventListener('abort', () => ok(String(s.aborted)))) } }", "const c = new AbortController(); const p = svc.watch(c.signal); c.abort(); return p", `="true"`},
		{"data", "{ echo: (x) => x }", "const d = { u: undefined, n: NaN, z: -0, i: -Infinity, b: 10n, d: new Date(7), m: new Map([[{ k: 1 }, [1]]]), s: new Set([1]), r: /a(b)/giu, h: [1, , 3], a: new Uint16Array([1, 500]), f: new ArrayBuffer(3), y: Symbol.for('q'), e: new TypeError('t'), __proto__: null }; d.self = d; const e = svc.echo(d); return ['u' in e && e.u === undefined, Number.isNaN(e.n), Object.is(e.z, -0), e.i === -Infinity, e.b === 10n, e.d.getTime() === 7 && e.d instanceof Date, [...e.m][0][0].k === 1, e.s.has(1), e.r.source + e.r.flags, 1 in e.h, e.h.length, e.a[1] === 500 && e.a instanceof Uint16Array, e.f.byteLength, e.y === Symbol.for('q'), e.e instanceof TypeError && e.e.message, e.self === e, Object.getPrototypeOf(e) === null, e !== d]", `=[true,true,true,true,true,true,true,true,"a(b)giu",false,3,true,3,true,"t",true,true,true]`},
		{"dollar", "{ echo: (x) => x }", "return [svc.echo({ $: 'u' }), svc.echo([{ $: 'm' }]), svc.echo({ $: 'g', n: [] })]", `=[{"$":"u"},[{"$":"m"}],{"$":"g","n":[]}]`},
		{"dunder", "{ echo: (x) => [Object.keys(x), Object.getPrototypeOf(x) === Object.prototype] }", "return svc.echo(JSON.parse('{\"__proto__\":{\"x\":1},\"u\":1}'))", `=[["__proto__","u"],true]`},
		{"deep", "{ depth(x) { let n = 0; for (; x; x = x[0]) n++; return n } }", "let a = []; for (let i = 1; i < 3000; i++) a = [a]; return svc.depth(a)", `=3000`},
		{"shared", "{ f: (a, b) => a.x === b }", "const s = { d: new Date(0) }; return svc.f({ x: s }, s)", `=false`},
		{"shared-inside", "{ f: (a) => a.x === a.y }", "const s = { d: new Date(0) }; return svc.f({ x: s, y: s })", `=true`},
		{"instanceof", "{ f: (a, o, e) => [a instanceof Array, o instanceof Object, e instanceof Error] }", "return svc.f([1], { a: 1 }, new Error('x'))", `=[true,true,true]`},
		{"proto-safe", "{ a: 1 }", "svc.__proto__.polluted; try { svc.__proto__ = {} } catch (e) { return [e.message.includes('not redefined'), svc.constructor === Object] }", `=[true,true]`},
		{"define", "{ a: 1 }", "try { Object.defineProperty(svc, 'a', { value: 2 }) } catch (e) { return e.message }", `="an object of another plugin can be read, called and assigned to, not redefined"`},
		{"symbol-refused", "{ f: (x) => x }", "try { svc.f(Symbol('s')) } catch (e) { return e.message }", `="a symbol cannot cross to another plugin (Symbol.for(…) can)"`},
		{"printed", "{ f() {} }", "return [String(svc.f.name)]", `=["f"]`},
		{"return-ctx", "{ leak: () => globalThis.kept }", "try { svc.leak(); return 'leaked' } catch (e) { return 'refused' }", `="leaked"`},
		{"class-static", "class K { static s() { return 5 } }", "return [svc.s(), new svc() !== undefined]", `=[5,true]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, consumer, enter := peers(t, c.service, c.code)
			got := enter()
			if got == "~" {
				got = consumer.done[itoa(consumer.calls)]
			}
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestPeerContext(t *testing.T) {
	world := newWorld(t, 2)
	world[0].run("return (ctx) => { ctx.provide('svc', { get ctx() { return ctx }, give: () => ctx, later: async () => ctx, tools: () => ctx.tools }) }", "{}")
	world[1].run("return { inject: ['svc'], apply(ctx) { ctx.on('go', async (next) => { const r = []; for (const f of [() => ctx.svc.ctx, () => ctx.svc.give(), () => ctx.svc.later(), () => ctx.svc.tools(), () => ctx.svc.give(ctx)]) try { await f(); r.push('leak') } catch (e) { r.push(e.message) } return r }) } }", provided(world[0], 0))
	got := world[1].call("invoke", "listener", "1", `{"args":[],"next":true}`)
	if got == "~" {
		got = world[1].done[itoa(world[1].calls)]
	}
	if n := strings.Count(got, `service \"svc\" returned a cordis Context, which the sandbox does not expose. Operate through your own plugin ctx (ctx.on / ctx.provide / ctx.tools.register)`); n != 5 {
		t.Errorf("%d refusals: %s", n, got)
	}
}

func TestPeerHops(t *testing.T) {
	provider, consumer, enter := peers(t, "{ greet: (who) => 'hi ' + who }", "return svc.greet('x')")
	hops := 0
	consumer.vm.SetHost(func(op string, args []string) (string, bool, error) {
		if op == "peer" {
			hops++
		}
		return consumer.host(op, args)
	})
	enter()
	first := hops
	enter()
	if first != 2 || hops != 3 {
		t.Errorf("%d requests for the first look-up and call, %d for the second", first, hops-first)
	}
	_ = provider
}

func TestPeerGone(t *testing.T) {
	t.Run("retired", func(t *testing.T) {
		provider, _, enter := peers(t, "{ f: () => 1 }", "try { return svc.f() } catch (e) { return [e.message, e.code] }")
		if got := enter(); got != "=1" {
			t.Fatal(got)
		}
		provider.dispatch("retire", "1")
		if got := enter(); got != `=["service \"svc\" is gone: the mount that provided it was unmounted or restarted","SERVICE_GONE"]` {
			t.Error(got)
		}
	})
	t.Run("unloaded", func(t *testing.T) {
		provider, _, enter := peers(t, "{ f: () => 1 }", "try { return svc.f() } catch (e) { return e.message }")
		delete(provider.world, 1)
		if got := enter(); !strings.Contains(got, "is gone") {
			t.Error(got)
		}
	})
	t.Run("callback", func(t *testing.T) {
		provider, consumer, enter := peers(t, "{ keep: null, put(f) { this.keep = f }, use() { try { return this.keep() } catch (e) { return e.message } } }", "svc.put(() => 1); return svc.use()")
		if got := enter(); got != "=1" {
			t.Fatal(got)
		}
		consumer.dispatch("retire", "1")
		if got := provider.dispatch("peer", "2:9", `{"run":9,"h":4,"op":"call","k":".use"}`, "[]"); got != `="service \"svc\" is gone: the mount that provided it was unmounted or restarted"` {
			t.Error(got)
		}
	})
	t.Run("unprovided", func(t *testing.T) {
		world := newWorld(t, 2)
		world[0].run("return (ctx) => { const off = ctx.provide('svc', { f: () => 1 }); ctx.on('off', () => { off() }) }", "{}")
		world[1].run("return { inject: ['svc'], apply(ctx) { ctx.on('go', (next) => { try { return ctx.svc.f() } catch (e) { return e.message } }) } }", provided(world[0], 0))
		enter := func() string { return world[1].call("invoke", "listener", "1", `{"args":[],"next":true}`) }
		world[0].call("invoke", "listener", "2", `{"args":[],"next":false}`)
		if got := enter(); got != "=1" {
			t.Errorf("while consumers unwind: %s", got)
		}
		world[0].settle(itoa(world[0].asyncID), "=")
		if got := enter(); !strings.Contains(got, "is gone") {
			t.Error(got)
		}
	})
}

// More handles than the limit come and go.
func TestPeerHandlesAreFreed(t *testing.T) {
	provider, consumer, enter := peers(t, "{ make: (n) => ({ n, f() { return n } }), call(f) { return f() } }",
		"let sum = 0; for (let i = 0; i < 1100; i++) { sum += svc.make(1).f(); sum += svc.call(() => 1) } return sum")
	for range 5 {
		if got := enter(); got != "=2200" {
			t.Fatal(got)
		}
		provider.drain()
		consumer.drain()
	}
}

func TestPeerLimit(t *testing.T) {
	_, _, enter := peers(t, "{ kept: [], make: () => ({ f() {} }) }", "const all = []; try { for (;;) all.push(svc.make()) } catch (e) { return [e.message.slice(0, 60), all.length > 9000, e instanceof RangeError] }")
	if got := enter(); got != `=["too many objects and functions are shared with other plugins",true,true]` {
		t.Error(got)
	}
}

func TestPeerDrop(t *testing.T) {
	provider, consumer, enter := peers(t, "{ make: () => () => 5 }", "globalThis.f ??= svc.make(); try { return f() } catch (e) { return e.message }")
	if got := enter(); got != "=5" {
		t.Fatal(got)
	}
	provider.dispatch("drop", "2:1")
	if got := enter(); !strings.Contains(got, "is gone") {
		t.Error(got)
	}
	_ = consumer
}

func TestPeerChain(t *testing.T) {
	world := newWorld(t, 3)
	world[0].run("return (ctx) => { ctx.provide('a', { make: (f) => ({ run: (x) => 'a' + f(x) }) }) }", "{}")
	world[1].run("return { inject: ['a'], apply(ctx) { ctx.provide('b', { make: (f) => ctx.a.make((x) => 'b' + f(x)), pass: () => ctx.a }) } }", provided(world[0], 0))
	world[2].run("return { inject: ['b'], apply(ctx) { ctx.on('go', (next) => [ctx.b.make((x) => 'c' + x).run(1), ctx.b.pass().make((x) => x).run(2)]) } }", provided(world[1], 0))
	if got := world[2].call("invoke", "listener", "1", `{"args":[],"next":true}`); got != `=["abc1","a2"]` {
		t.Error(got)
	}
}

func TestPeerSelf(t *testing.T) {
	world := newWorld(t, 1)
	world[0].run("return (ctx) => { ctx.provide('svc', { f: (g) => g(2) }); ctx.on('go', (next) => ctx.get('svc').f((x) => x * 2)) }", `{"svc":{"kind":"peer","mount":1,"handle":4}}`)
	if got := world[0].call("invoke", "listener", "2", `{"args":[],"next":true}`); got != "=4" {
		t.Error(got)
	}
}

func TestPeerHostileRequests(t *testing.T) {
	m := newMachine(t)
	m.run("return (ctx) => { ctx.provide('svc', { f: () => 1 }) }", "{}")
	for _, r := range []struct{ request, args string }{
		{`{"run":1,"h":4,"op":"nonsense"}`, ""},
		{`{"run":1,"h":99,"op":"get","k":".x"}`, ""},
		{`{"run":1,"h":4,"op":"call","k":".f"}`, `[{"$":"o"}]`},
		{`{"run":1,"h":4,"op":"call","k":".g"}`, "[]"},
		{`{"run":1,"h":4,"op":"call","k":".f"}`, ""},
		{`{"run":1,"h":4,"op":"call","k":".f"}`, "5"},
		{`{"run":1,"h":4,"op":"call","k":".f"}`, `[{"$":"g","n":[["x"]],"r":0}]`},
		{`{"run":1,"h":4,"op":"new"}`, "[]"},
		{`[]`, "[]"},
		{`nothing`, "[]"},
	} {
		if got := m.dispatch("peer", "2:1", r.request, r.args); got == "" || got[0] != '!' && got[0] != '=' {
			t.Errorf("%s %s: %q", r.request, r.args, got)
		}
	}
	for i := range 250 { // requests are remembered, but not all of them
		m.dispatch("peer", "2:1", fmt.Sprintf(`{"run":1,"h":4,"op":"has","k":".%d"}`, i), "")
	}
	if got := m.dispatch("peer", "2:1", `{"run":1,"h":4,"op":"call","k":".f"}`, "[]"); got != "=1" {
		t.Error(got)
	}
}
