package prelude_test

import (
	"strings"
	"testing"
)

func TestLoad(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"function", "return (ctx) => {}", `={"name":"","inject":[]}`},
		{"named-function", "return function watcher(ctx) {}", `={"name":"watcher","inject":[]}`},
		{"function-inject", "const f = (ctx) => {}; f.inject = ['a']; return f", `={"name":"f","inject":[{"name":"a"}]}`},
		{"object", "return { name: 'p', apply() {} }", `={"name":"p","inject":[]}`},
		{"instance", "class P { name = 'p'; apply() {} } return new P()", `={"name":"p","inject":[]}`},
		{"name-object", "return { name: {}, apply() {} }", `={"name":"","inject":[]}`},
		{"list", "return { inject: ['a', 'b', 'a'], apply() {} }", `={"name":"","inject":[{"name":"a"},{"name":"b"}]}`},
		{"one-name", "return { inject: 'timer', apply() {} }", `={"name":"","inject":[{"name":"timer"}]}`},
		{"map", "return { inject: { a: { x: 1 }, b: undefined, __proto__: null }, apply() {} }", `={"name":"","inject":[{"name":"a","config":{"x":1}},{"name":"b"}]}`},
		{"split", "return { inject: { required: ['a'], optional: ['b', 'a'] }, apply() {} }", `={"name":"","inject":[{"name":"a"},{"name":"b","optional":true}]}`},
		{"split-one", "return { inject: { optional: 'b' }, apply() {} }", `={"name":"","inject":[{"name":"b","optional":true}]}`},
		{"async-body", "await 0; return { name: 'late', apply() {} }", `={"name":"late","inject":[]}`},
		{"read-once", "let n = 0; return new Proxy({ name: 'x', apply() {} }, { get(t, k) { if (k === 'apply' && n++ > 0) throw new Error('read twice'); return t[k] } })", `={"name":"x","inject":[]}`},
		{"arguments", "return { name: [typeof harness.defineTool, typeof console.log, ctx].join(), apply() {} }", `={"name":"function,function,","inject":[]}`},
		{"dunder-inject", "return { inject: JSON.parse('{\"__proto__\":1}'), apply() {} }", `={"name":"","inject":[{"name":"__proto__","config":1}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newMachine(t).load(c.body); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestLoadRefuses(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"undefined", "const p = (ctx) => {}", "temporary Plugin code returned `undefined` — did you forget `return`?\n  ✓ return (ctx) => { … }\n  ✓ return { name: '…', inject: […], apply(ctx) { … } }"},
		{"number", "return 42", "temporary Plugin code must `return` a Plugin: a function, or an object with an `apply(ctx)` method"},
		{"null", "return null", "must `return` a Plugin"},
		{"no-apply", "return { name: 'x' }", "must `return` a Plugin"},
		{"class", "return class P { apply() {} }", "got a class"},
		{"inject-number", "return { inject: 5, apply() {} }", "inject is a list of service names"},
		{"inject-nested", "return { inject: ['a', 5], apply() {} }", "a name is a non-empty string, got the number 5"},
		{"inject-instance", "return { inject: new Map(), apply() {} }", "got an instance of Map"},
		{"inject-config", "return { inject: { a: () => {} }, apply() {} }", "inject.a is a function"},
		{"inject-many", "return { inject: Array.from({ length: 201 }, (_, i) => 's' + i), apply() {} }", "at most 200 services"},
		{"throws", "throw new TypeError('line')", "line"},
		{"hostile-proxy", "return new Proxy({}, { get() { throw new Error('trap') } })", "trap"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := newMachine(t).load(c.body)
			if got := message(t, text); !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if text := newMachine(t).load("return 42"); !strings.Contains(text, `"code":"NOT_A_PLUGIN"`) {
		t.Error(text)
	}
}

func TestThrownValues(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"string", "throw 'plain'", `!{"message":"plain","raw":true}`},
		{"null", "throw null", `!{"message":"null","raw":true}`},
		{"undefined", "throw undefined", `!{"message":"undefined","raw":true}`},
		{"symbol", "throw Symbol('x')", `!{"message":"Symbol(x)","raw":true}`},
		{"object-with-message", "throw { message: 'm' }", `!{"message":"m","raw":true}`},
		{"unprintable", "throw { toString() { throw 1 } }", `!{"message":"<unprintable thrown value>","raw":true}`},
		{"hostile-proxy", "throw new Proxy({}, { get() { throw 1 }, getPrototypeOf() { throw 1 } })", `!{"message":"<unprintable thrown value>","raw":true}`},
		{"hostile-getters", "throw Object.defineProperties(new Error('x'), { message: { get() { throw 1 } }, stack: { get() { throw 1 } }, name: { get() { throw 1 } } })", `!{"name":"Error","message":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := newMachine(t).load(c.body); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	t.Run("causes", func(t *testing.T) {
		text := newMachine(t).load("throw new TypeError('outer', { cause: new RangeError('in\\nner', { cause: 'root' }) })")
		for _, want := range []string{`"name":"TypeError","message":"outer"`, `\ncause: RangeError: in ner\ncause: root"`, "cordis-mount-dyn-1.js:2:"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in %s", want, text)
			}
		}
	})
	t.Run("aggregate", func(t *testing.T) {
		text := newMachine(t).load("throw new AggregateError([new Error('a'), 'b'], 'many')")
		if !strings.Contains(text, `\ncause: Error: a\ncause: b"`) {
			t.Error(text)
		}
	})
	t.Run("code", func(t *testing.T) {
		text := newMachine(t).load("throw Object.assign(new Error('x'), { code: 'E_X' })")
		if !strings.Contains(text, `"code":"E_X"`) {
			t.Error(text)
		}
	})
	t.Run("huge", func(t *testing.T) {
		if text := newMachine(t).load("throw new Error('x'.repeat(5e6))"); len(text) > 150_000 {
			t.Error(len(text))
		}
	})
}

func TestApplyResults(t *testing.T) {
	effects := func(m *machine) int { return len(m.asks("sync", "effect")) }
	for _, c := range []struct {
		name, apply string
		want        int
	}{
		{"nothing", "() => {}", 0},
		{"null", "() => null", 0},
		{"function", "() => () => {}", 1},
		{"promise", "async () => () => {}", 1},
		{"own-handle", "(ctx) => ctx.on('x', () => {})", 0},
		{"async-own-handle", "async (ctx) => ctx.effect(async () => () => {})", 1},
		{"generator", "function* () { yield () => {}; yield null; yield () => {}; return () => {} }", 3},
		{"async-generator", "async function* () { yield () => {}; await 0; yield () => {} }", 2},
		{"iterator", "() => [() => {}, () => {}].values()", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t)
			m.run("return { apply: "+c.apply+" }", "{}")
			if got := effects(m); got != c.want {
				t.Errorf("%d effects, want %d", got, c.want)
			}
		})
	}
	for name, apply := range map[string]string{
		"number": "() => 5", "array": "() => [() => {}]", "object": "() => ({})", "promise": "async () => 'x'", "yield": "function* () { yield 5 }", "async-yield": "async function* () { yield {} }",
	} {
		t.Run("invalid-"+name, func(t *testing.T) {
			m := newMachine(t)
			m.load("return { apply: " + apply + " }")
			text := m.call("apply", "1", "{}")
			if got := message(t, text); !strings.HasPrefix(got, "Invalid effect: ") || !strings.Contains(got, "a (possibly async) generator") {
				t.Error(got)
			}
			if !strings.Contains(text, `"name":"TypeError"`) {
				t.Error(text)
			}
		})
	}
	t.Run("this-and-config", func(t *testing.T) {
		m := newMachine(t)
		m.run("return { tag: 7, apply(ctx, config) { console.log(this.tag, config) } }", "{}")
		if got := m.console[0]; got != "log: 7 {}" {
			t.Error(got)
		}
	})
	t.Run("throws", func(t *testing.T) {
		m := newMachine(t)
		m.load("return { apply() { throw new RangeError('second thoughts') } }")
		if got := m.call("apply", "1", "{}"); !strings.Contains(got, `"name":"RangeError","message":"second thoughts"`) {
			t.Error(got)
		}
	})
	t.Run("disposers-run", func(t *testing.T) {
		m := newMachine(t)
		m.run("return { *apply() { yield () => console.log('one'); yield async () => { await 0; console.log('two'); throw new Error('bad') } } }", "{}")
		if got := m.call("invoke", "dispose", "2", "{}"); !strings.Contains(got, "bad") {
			t.Error(got)
		}
		if got := m.call("invoke", "dispose", "1", "{}"); got != "=" {
			t.Error(got)
		}
		if got := strings.Join(m.console, " "); got != "log: two log: one" {
			t.Error(got)
		}
	})
}
