package prelude_test

import (
	"strings"
	"testing"
)

const allBindings = `{"tools":{"kind":"tools"},"timer":{"kind":"timer"},"fs":{"kind":"host","members":[["contains","sync","contains(path: string): boolean"],["resolve","async","resolve(path: string): Promise<Target>"]],"types":{}},` +
	`"num":{"kind":"value","value":5},"nothing":{"kind":"value","value":null},"undef":{"kind":"value","value":{"$":"u"}},"opt":null}`

const injectAll = "inject: { required: ['tools', 'timer', 'fs', 'num', 'nothing', 'undef'], optional: ['opt'] }"

// inApply runs code in apply and returns the value text of apply.
func inApply(m *machine, code, bindings string) string {
	m.t.Helper()
	if text := m.load("return { name: 'p', " + injectAll + ", apply(ctx) { " + code + " } }"); text[0] != '=' {
		m.t.Fatalf("load: %s", text)
	}
	return m.call("apply", "1", bindings)
}

func TestFacadeRefuses(t *testing.T) {
	for _, c := range []struct{ name, code, want string }{
		{"root", "ctx.root", `sandbox ctx does not expose "root". Available: ctx.tools.register`},
		{"root-why", "ctx.root", "Framework internals (root, fiber, registry, extend, plugin, …) are withheld by design."},
		{"parent", "ctx.parent", "works through its own ctx"},
		{"plugin", "ctx.plugin({ apply() {} })", "cordis_mount"},
		{"emit", "ctx.emit('x')", "cannot dispatch events"},
		{"set", "ctx.set('tools', 1)", "ctx.provide(name, value)"},
		{"logger", "ctx.logger", "console.log"},
		{"unknown", "ctx.nonsense", `sandbox ctx does not expose "nonsense"`},
		{"live", "ctx.greeter", "service \"greeter\" is not injected. Declare it: inject: ['greeter', …] on your plugin, so cordis parks this temporary Plugin if the provider is later unmounted."},
		{"live-get", "ctx.get('greeter')", `service "greeter" is not injected`},
		{"write", "ctx.stash = 1", `sandbox ctx is read-only; cannot assign "stash"`},
		{"define", "Object.defineProperty(ctx, 'x', { value: 1 })", `sandbox ctx is read-only; cannot assign "x"`},
		{"delete", "delete ctx.on", "read-only"},
		{"prototype", "Object.setPrototypeOf(ctx, {})", "read-only"},
		{"freeze", "Object.freeze(ctx)", "read-only"},
		{"tools-guard", "ctx.tools.guard(() => {})", "Listen to 'tools/pre-execute' and return { kind: 'deny', reason }"},
		{"tools-execute", "ctx.tools.execute('x')", "A tool cannot call tools"},
		{"tools-call", "ctx.tools.call('x')", "A tool cannot call tools"},
		{"tools-list", "ctx.tools.list()", "ctx.tools.schemas()"},
		{"tools-restrict", "ctx.tools.restrict({})", "tools/pre-execute"},
		{"tools-write", "ctx.tools.register = 1", "sandbox ctx.tools is read-only"},
		{"tools-register", "ctx.tools.register({ name: 'raw', execute() {} })", "dynamic tool registration must use a tool returned by harness.defineTool(...)"},
		{"tools-get-register", "ctx.get('tools').register({})", "dynamic tool registration must use a tool returned by harness.defineTool(...)"},
		{"register-forged", "ctx.tools.register(new Proxy(Object.freeze({}), {}))", "harness.defineTool"},
		{"registerTool-ctx", "harness.registerTool({}, {})", "the first argument must be the ctx that apply(ctx) received"},
		{"on-event", "ctx.on(5, () => {})", "ctx.on(event, fn): the event is a non-empty string, got the number 5"},
		{"on-fn", "ctx.on('x')", "fn must be a function, got undefined"},
		{"on-options", "ctx.on('x', () => {}, 'first')", "options is { prepend: true } or true"},
		{"once-fn", "ctx.once('x', {})", "ctx.once(\"x\", fn): fn must be a function, got an object"},
		{"provide-name", "ctx.provide({}, 1)", "ctx.provide(name, value): the name is a non-empty string"},
		{"provide-ctx", "ctx.provide('leak', ctx)", `service "leak" returned a cordis Context, which the sandbox does not expose. Operate through your own plugin ctx`},
		{"provide-symbol", "ctx.provide('s', Symbol('x'))", "a symbol cannot cross"},
		{"effect", "ctx.effect(5)", "ctx.effect(setup) takes a function"},
		{"effect-result", "ctx.effect(() => 5)", "Invalid effect: the setup of ctx.effect returned the number 5"},
		{"get-name", "ctx.get(5)", "ctx.get(name) takes the name"},
		{"timeout-ms", "ctx.timeout(() => {}, -1)", "ctx.timeout: ms must be a finite number ≥ 0, got the number -1"},
		{"timeout-nan", "ctx.setTimeout(() => {}, 'soon')", "ms must be a finite number"},
		{"timeout-big", "ctx.setTimeout(() => {}, 1e12)", "at most 2147483647"},
		{"timeout-swapped", "ctx.timeout(5, () => {})", "ctx.timeout(fn, ms) takes a function first"},
		{"interval-fn", "ctx.setInterval('x', 1)", "ctx.setInterval(fn, ms) takes a function first"},
		{"clear", "ctx.clearTimeout(5)", "ctx.clearTimeout takes what ctx.setTimeout"},
		{"host-member", "ctx.fs.readFile('x')", `service "fs" has no member "readFile". Available: contains, resolve`},
		{"host-write", "ctx.fs.x = 1", "read-only"},
		{"host-near", "ctx.fs.contain('x')", `service "fs" has no member "contain"; did you mean "contains"? Available: contains, resolve`},
		{"host-map", "ctx.fs.contains('x', { a: [new Map()] })", "ctx.fs.contains: argument 2.a[0] is a Map; pass Object.fromEntries(map). Signature: contains(path: string): boolean"},
		{"host-promise", "ctx.fs.contains(Promise.resolve('x'))", "ctx.fs.contains: argument 1 is a promise; await it first. Signature"},
		{"host-nan", "ctx.fs.contains(NaN)", "argument 1 is NaN, which is no number for a service"},
		{"host-bigint", "ctx.fs.contains(1n)", "argument 1 is a BigInt; pass it as a string or a number"},
		{"host-cycle", "const a = []; a[0] = a; ctx.fs.contains(a)", "argument 1 is nested deeper than 2000, or holds itself"},
		{"host-ctx", "ctx.fs.contains({ ctx })", "returned a cordis Context"},
		{"host-service", "ctx.fs.contains(ctx.fs)", `argument 1 is service "fs", which cannot be passed on`},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.sync[`live {"name":"greeter"}`] = "=true"
			text := inApply(m, c.code, allBindings)
			if got := message(t, text); !strings.Contains(got, c.want) {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(m.asks("sync", "tool"))+len(m.asks("sync", "on"))+len(m.asks("sync", "provide"))+len(m.asks("sync", "timer")) > 0 {
				t.Errorf("something was registered: %v", m.log)
			}
		})
	}
}

func TestFacadeWithoutTimer(t *testing.T) {
	for _, verb := range []string{"timeout", "interval", "setTimeout", "setInterval", "clearTimeout", "clearInterval", "throttle", "debounce"} {
		m := newMachine(t)
		m.load("return (ctx) => { ctx." + verb + "(() => {}, 5) }")
		if got := message(t, m.call("apply", "1", "{}")); !strings.Contains(got, "inject: ['timer']") || !strings.Contains(got, "ctx."+verb+" needs the timer service") {
			t.Errorf("%s: %s", verb, got)
		}
	}
}

func TestFacadeReads(t *testing.T) {
	for _, c := range []struct{ name, expression, want string }{
		{"in", "['tools' in ctx, 'on' in ctx, 'get' in ctx, 'fs' in ctx, 'opt' in ctx, 'root' in ctx, 'greeter' in ctx, Symbol.iterator in ctx].join()", "true,true,true,true,true,false,false,false"},
		{"symbol", "ctx[Symbol.iterator] === undefined && ctx[Symbol.toPrimitive] === undefined", "true"},
		{"then", "ctx.then === undefined && ctx.tools.then === undefined && ctx.fs.then === undefined", "true"},
		{"keys", "Object.keys(ctx).length + JSON.stringify(ctx)", "0{}"},
		{"values", "[ctx.num, ctx.nothing, ctx.undef, ctx.get('num'), ctx.get('nothing'), ctx.get('undef')].map(String).join()", "5,null,undefined,5,null,undefined"},
		{"optional", "[ctx.opt, ctx.get('opt')].map(String).join()", "undefined,undefined"},
		{"get-unknown", "String(ctx.get('nope'))", "undefined"},
		{"tools", "ctx.tools === ctx.get('tools') && typeof ctx.tools.register === 'function'", "true"},
		{"timer", "Object.keys(ctx.timer).join()", "timeout,interval,setTimeout,setInterval,clearTimeout,clearInterval,throttle,debounce"},
		{"same", "ctx.fs === ctx.fs && ctx.fs === ctx.get('fs')", "true"},
		{"verbs", "['on', 'once', 'provide', 'effect', 'get', 'timeout', 'interval', 'setTimeout', 'setInterval', 'throttle', 'debounce'].every((k) => typeof ctx[k] === 'function')", "true"},
		{"schemas", "JSON.stringify([ctx.tools.schemas(), ctx.tools.get('nope'), Object.keys(ctx.tools.get('x'))])", `[[{"name":"x"}],null,["name","description","parameters"]]`},
		{"sync-service", "ctx.fs.contains('a', new Uint8Array([1]))", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.sync["schemas"] = `=[{"name":"x"}]`
			m.sync[`get {"name":"x"}`] = `={"name":"x","description":"","parameters":{}}`
			m.sync["service"] = "=true"
			if text := inApply(m, "console.log("+c.expression+")", allBindings); text != "=" {
				t.Fatal(text)
			}
			if got := m.console[0]; got != "log: "+c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestFacadeAwaitable(t *testing.T) {
	m := newMachine(t)
	m.run("return async (ctx) => { await ctx; console.log(ctx); return undefined }", "{}")
	if got := m.console[0]; got != "log: [ctx of a temporary Plugin]" {
		t.Error(got)
	}
}

func TestFacadeParked(t *testing.T) {
	m := newMachine(t)
	m.load("return { inject: ['fs'], apply(ctx) { ctx.fs.read() } }")
	if got := message(t, m.call("apply", "1", `{"fs":null}`)); !strings.Contains(got, `service "fs" is not available now`) {
		t.Error(got)
	}
}

func TestFacadeBind(t *testing.T) {
	m := newMachine(t)
	m.run("return { inject: { optional: ['opt'] }, apply(ctx) { ctx.on('x', () => console.log(ctx.opt, ctx.get('opt'))) } }", `{"opt":null}`)
	for _, binding := range []string{"", `{"kind":"value","value":7}`, "null"} {
		if binding != "" {
			m.dispatch("bind", "1", "opt", binding)
		}
		m.call("invoke", "listener", "1", `{"args":[],"next":false}`)
	}
	if got := strings.Join(m.console, ";"); got != "log: undefined undefined;log: 7 7;log: undefined undefined" {
		t.Error(got)
	}
}

func TestFacadeRetired(t *testing.T) {
	m := newMachine(t)
	m.run("globalThis.other = 1; return { name: 'old', "+injectAll+", apply(ctx) { globalThis.ctx ??= ctx; globalThis.tools ??= ctx.tools; globalThis.on ??= ctx.on; globalThis.fs ??= ctx.fs; globalThis.off ??= ctx.on('x', () => console.log('late')); ctx.on('again', async (what) => { "+
		"const t = { ctx: () => ctx, read: () => globalThis.ctx.on, num: () => globalThis.ctx.num, tools: () => tools.get, verb: () => on('x', () => {}), service: () => fs.contains(1), off: () => off(), symbol: () => globalThis.ctx[Symbol.iterator], then: () => globalThis.ctx.then, has: () => 'on' in globalThis.ctx }[what]; return String(await t()) }) } }", allBindings)
	m.dispatch("retire", "1")
	if got := m.call("apply", "2", allBindings); got != "=" {
		t.Fatal(got)
	}
	listener := m.asks("sync", "on")
	fn := listener[len(listener)-1].args[3]
	fn = fn[strings.Index(fn, `"fn":`)+5 : strings.LastIndex(fn, "}")]
	for _, what := range []string{"read", "num", "tools", "verb", "service"} {
		got := message(t, m.call("invoke", "listener", fn, `{"args":["`+what+`"],"next":true}`))
		if !strings.HasPrefix(got, `this ctx belongs to a run of the temporary Plugin "old" that has ended`) {
			t.Errorf("%s: %s", what, got)
		}
	}
	for what, want := range map[string]string{"off": `="undefined"`, "symbol": `="undefined"`, "then": `="undefined"`, "has": `="true"`} {
		if got := m.call("invoke", "listener", fn, `{"args":["`+what+`"],"next":true}`); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	if got := m.call("invoke", "listener", "1", `{"args":[],"next":false}`); got != "=" || len(m.console) > 0 {
		t.Errorf("an ended run's listener ran: %s %v", got, m.console)
	}
}

func TestListeners(t *testing.T) {
	m := newMachine(t)
	m.run(`return (ctx) => {
		ctx.on('a', (x) => { console.log('a', x); return x })
		ctx.once('b', () => console.log('b'))
		ctx.on('c', () => new Map(), { prepend: true })
		ctx.on('d', async (x, next) => { const r = await next(); return { ...r, seen: x } }, true)
		ctx.on('e', async (next) => { await next(); await next() })
		const off = ctx.on('f', () => console.log('f'))
		ctx.on('g', () => { const p = off(); console.log(p instanceof Promise, p === off()) })
		ctx.on('h', () => { throw new Error('boom') })
	}`, "{}")
	if got := m.asks("sync", "on"); got[1].args[3] != `{"event":"b","fn":2,"once":true}` || got[2].args[3] != `{"event":"c","fn":3,"prepend":true}` || got[3].args[3] != `{"event":"d","fn":4,"prepend":true}` {
		t.Error(got)
	}
	emit := func(fn, args string) string { return m.call("invoke", "listener", fn, args) }
	if got := emit("1", `{"args":[{"k":[1]}],"next":false}`); got != `={"k":[1]}` {
		t.Error(got)
	}
	emit("2", `{"args":[],"next":false}`)
	emit("2", `{"args":[],"next":false}`)
	if got := emit("3", `{"args":[],"next":false}`); got != "=" {
		t.Errorf("a Map of a plain listener: %s", got)
	}
	if got := message(t, emit("3", `{"args":[],"next":true}`)); !strings.Contains(got, "must be lossless JSON data: it is a Map") {
		t.Error(got)
	}
	// next: the answer of the host settles it.
	call := func(fn, args string) (string, string) {
		before := m.asyncID
		if got := emit(fn, args); got != "~" {
			t.Fatalf("listener %s: %s", fn, got)
		}
		if m.asyncID != before+1 {
			t.Fatalf("listener %s asked %d times", fn, m.asyncID-before)
		}
		m.settle(itoa(m.asyncID), `={"kind":"allow"}`)
		return itoa(m.calls), m.done[itoa(m.calls)]
	}
	if id, got := call("4", `{"args":["x"],"next":true}`); got != `={"kind":"allow","seen":"x"}` || !strings.Contains(m.asks("async", "next")[0].args[3], `{"call":`+id+`}`) {
		t.Error(got, m.asks("async", "next"))
	}
	if _, got := call("5", `{"args":[],"next":true}`); !strings.Contains(got, "next() was called twice") {
		t.Error(got)
	}
	emit("7", `{"args":[],"next":false}`)
	emit("6", `{"args":[],"next":false}`)
	if _, got := call("6", `{"args":[],"next":true}`); got != `={"kind":"allow"}` {
		t.Errorf("a removed listener of a waterfall: %s", got)
	}
	if got := emit("8", `{"args":[],"next":false}`); !strings.Contains(got, "boom") {
		t.Error(got)
	}
	if got := strings.Join(m.console, ";"); got != "log: a { k: [ 1 ] };log: b;log: true true" {
		t.Error(got)
	}
	if got := m.asks("async", "dispose"); len(got) != 1 || got[0].args[3] != `{"effect":6}` {
		t.Error(got)
	}
}

func TestRefusedRegistration(t *testing.T) {
	m := newMachine(t)
	m.refuse = `!{"name":"RangeError","message":"too many listeners","code":"LIMIT"}`
	m.run("return (ctx) => { try { ctx.on('x', () => console.log('ran')) } catch (e) { console.log(e instanceof RangeError, e.message, e.code) } }", "{}")
	if got := m.console[0]; got != "log: true too many listeners LIMIT" {
		t.Error(got)
	}
	if got := m.call("invoke", "listener", "1", `{"args":[],"next":false}`); got != "=" || len(m.console) > 1 {
		t.Error("the refused function is still there")
	}
}
