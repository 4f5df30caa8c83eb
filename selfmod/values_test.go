package selfmod_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// results are what execute returns, and what becomes of it: the canonical value,
// or what the refusal says.
var results = []struct{ name, expr, value, has string }{
	{"undefined", `undefined`, "", "did execute forget to return?"},
	{"nothing", `void 0`, "", "it is undefined"},
	{"undefined_inside", `({ a: [undefined] })`, "", "value.a[0] is undefined"},
	{"null", `null`, `null`, ""},
	{"cyclic", `(() => { const a = { b: [] }; a.b.push(a); return a })()`, "", "value.b[0] is circular"},
	{"shared", `(() => { const a = { x: 1 }; return [a, a] })()`, `[{"x":1},{"x":1}]`, ""},
	{"bigint", `10n`, "", "pass it as a string: String(value)"},
	{"bigint_inside", `({ n: 10n })`, "", "value.n is a BigInt"},
	{"date", `new Date(0)`, "", "use date.toISOString()"},
	{"map", `({ m: new Map() })`, "", "Object.fromEntries(map)"},
	{"set", `new Set()`, "", "Array.from(set)"},
	{"promise_inside", `({ p: Promise.resolve(1) })`, "", "await it"},
	{"promise", `Promise.resolve({ a: 1 })`, `{"a":1}`, ""},
	{"nan", `NaN`, "", "it is NaN"},
	{"infinity", `({ a: -Infinity })`, "", "value.a is -Infinity"},
	{"negative_zero", `[-0]`, "", "value[0] is -0"},
	{"sparse", `[1, , 3]`, "", "value[1] is a hole in a sparse array"},
	{"array_with_names", `Object.assign([1], { x: 2 })`, "", "array with extra properties"},
	{"instance", `new (class Point { x = 1 })()`, "", "an instance of Point"},
	{"instance_that_lies", `new (class { x = 1; toJSON() { return 1 } })()`, "", "must be lossless JSON data"},
	{"array_subclass", `new (class Mine extends Array {})(3)`, "", "an instance of Mine"},
	{"no_prototype", `Object.assign(Object.create(null), { a: 1 })`, `{"a":1}`, ""},
	{"odd_prototype", `Object.create({ inherited: 1 })`, "", "must be lossless JSON data"},
	{"symbol", `Symbol('x')`, "", "is a symbol"},
	{"symbol_key", `({ [Symbol('key')]: 1 })`, "", "has the symbol key Symbol(key)"},
	{"hidden_key", `Object.defineProperty({}, 'h', { value: 1 })`, "", "value.h is not enumerable"},
	{"function", `({ f() {} })`, "", "value.f is a function"},
	{"to_json", `({ toJSON() { return 'lie' } })`, "", "value.toJSON is a function"},
	{"error", `new Error('x')`, "", "must be lossless JSON data"},
	{"boxed", `new String('x')`, "", "must be lossless JSON data"},
	{"bytes", `new Uint8Array(3)`, "", "must be lossless JSON data"},
	{"buffer", `new ArrayBuffer(3)`, "", "must be lossless JSON data"},
	{"regexp", `/x/`, "", "must be lossless JSON data"},
	{"façade", `ctx`, "", ""},
	{"call", `exec`, "", "must be lossless JSON data"},
	{"arguments", `args`, `{}`, ""},
	{"getter", `({ get a() { return 1 } })`, `{"a":1}`, ""},
	{"getter_throws", `({ get a() { throw new Error('hostile getter') } })`, "", "hostile getter"},
	{"getter_changes", `(() => { let n = 0; return { get a() { return n++ === 0 ? 1 : new Date() } } })()`, "", ""},
	{"proxy", `new Proxy({ a: 1 }, {})`, `{"a":1}`, ""},
	{"proxy_throws", `new Proxy({}, { ownKeys() { throw new Error('hostile trap') } })`, "", "hostile trap"},
	{"proxy_lies", `new Proxy({}, { ownKeys: () => ['a'], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: () => 2n })`, "", ""},
	{"proxy_grows", `(() => { let n = 0; return new Proxy([], { get: (t, k) => k === 'length' ? n++ : t[k] }) })()`, "", ""},
	{"thenable_inside", `({ then: 1 })`, `{"then":1}`, ""},
	{"proto_key", `JSON.parse('{"__proto__":{"x":1},"a":2}')`, `{"__proto__":{"x":1},"a":2}`, ""},
	{"numbers", `[0, -1.5, 1e21, 5e-324, 1.7976931348623157e308, 9007199254740991, 0.1]`, "", "-"},
	{"text", `'\u0000\u2028"\\\ud83d\ude42\n'`, "", "-"},
	{"lone_surrogate", `['\ud800', '\udc00x']`, "", "-"},
	{"seventeen_megabytes", `'x'.repeat(17 << 20)`, "", fmt.Sprintf("the limit is %d", limits.Result)},
	{"fifty_megabytes", `Array.from({ length: 50 }, () => 'x'.repeat(1 << 20))`, "", ""},
	{"escapes_count", `'\u0001'.repeat(3 << 20)`, "", fmt.Sprintf("the limit is %d", limits.Result)},
	{"deep", `(() => { let v = []; for (let i = 1; i < 4900; i++) v = [v]; return v })()`, strings.Repeat("[", 4900) + strings.Repeat("]", 4900), ""},
	{"deep_objects", `(() => { let v = {}; for (let i = 1; i < 4900; i++) v = { a: v }; return v })()`, strings.Repeat(`{"a":`, 4899) + "{}" + strings.Repeat("}", 4899), ""},
	{"too_deep", `(() => { let v = []; for (let i = 1; i < 100000; i++) v = [v]; return v })()`, "", fmt.Sprint(limits.Depth)},
	{"too_deep_and_wrong", `(() => { let v = [1n]; for (let i = 1; i < 9000; i++) v = [v]; return v })()`, "", "BigInt"},
	{"very_wide", `Array.from({ length: 30000 }, (_, i) => i)`, "", "-"},
}

// TestResults: a result is lossless JSON or a refusal that says what it was,
// where, and what to return instead; nothing is changed on its way.
func TestResults(t *testing.T) { // not parallel: it needs the processor
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 10 * time.Second, CallTimeout: 20 * time.Second, MemoryMB: 512})
	for _, tt := range results {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			id := r.Mount(`return { name: 'results', apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'result', description: 'd', parameters: {},
  output: { schema: { type: 'json' }, render: (args, v) => [{ type: 'text', text: 'ok' }] }, execute: (args, exec) => ` + tt.expr + ` })) } }`)
			defer r.Unmount(id)
			res := r.Call("result", nil)
			switch {
			case tt.value != "":
				r.Works(res, "ok")
				if string(res.Value) != tt.value {
					t.Error(cmp.Diff(tt.value, string(res.Value)))
				}
			case tt.has == "-":
				r.Works(res)
			case tt.has == "" && !res.IsError: // either is fine, if it is in order
			default:
				text := r.Fails(res, "Error: ", tt.has)
				noneOfOurs(t, text)
				if len(res.Content) != 1 || len(text) > limits.ErrorText+100 {
					t.Errorf("%d blocks, %d characters", len(res.Content), len(text))
				}
			}
		})
	}
}

// TestRendering: what render and presentationMeta return is checked, shown in
// part, and a failure there says which of them it was.
func TestRendering(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 600 * time.Millisecond, CallTimeout: 1000 * time.Millisecond})
	tests := []struct{ name, render, meta, has string }{
		{"text", `'x'`, "", `output.render returned "x" — it must return an ARRAY of content blocks`},
		{"nothing", `undefined`, "", "output.render returned undefined"},
		{"object", `({ type: 'text', text: 'x' })`, "", "ARRAY of content blocks"},
		{"items", `['x']`, "", "ARRAY of content blocks"},
		{"type_number", `[{ type: 1 }]`, "", "ARRAY of content blocks"},
		{"huge_is_not_echoed", `'x'.repeat(1 << 20)`, "", "…"},
		{"cyclic", `(() => { const a = []; a.push(a); return a })()`, "", "output.render"},
		{"bigint", `[{ type: 'text', text: 1n }]`, "", "pass it as a string"},
		{"throws", `(() => { throw new Error('render broke') })()`, "", "render broke"},
		{"proxy", `new Proxy([], { get() { throw new Error('trap broke') } })`, "", "trap broke"},
		{"never_settles", `new Promise(() => {})`, "", "1000 ms"},
		{"spins", `(() => { for (;;) {} })()`, "", "600 ms"},
		{"too_large", `[{ type: 'text', text: 'x'.repeat(17 << 20) }]`, "", ""},
		{"meta_throws", `[]`, `(() => { throw new Error('meta broke') })()`, "meta broke"},
		{"meta_map", `[]`, `new Map()`, "presentationMeta"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			meta := ""
			if tt.meta != "" {
				meta = ", presentationMeta: () => " + tt.meta
			}
			id := r.Mount(`return { name: 'renderer', apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'rendered', description: 'd', parameters: {}, output: { schema: { type: 'json' }, render: () => ` + tt.render + meta + ` }, execute: () => 1 })) } }`)
			defer r.Unmount(id)
			res := r.Call("rendered", nil)
			text := r.Fails(res, "Error: ", tt.has)
			noneOfOurs(t, text)
			if len(res.Content) != 1 || len(text) > 700 {
				t.Errorf("%d blocks, %d characters: %.300s", len(res.Content), len(text), text)
			}
		})
	}
}

// TestRefusedOutcomes: what a tool returned and was refused is an error of its
// plugin, counted and kept.
func TestRefusedOutcomes(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, selfmod.Config{})
	for _, tt := range []struct{ name, render, execute, has string }{
		{"value", `[]`, `'text'`, `tool "refused" returned invalid output: "value" must be an integer`},
		{"render", `'x'`, `1`, `output.render returned "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			id := r.Mount(`return { apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'refused', description: 'd', parameters: {}, output: { schema: { type: 'integer' }, render: () => ` + tt.render + ` }, execute: () => ` + tt.execute + ` })) } }`)
			defer r.Unmount(id)
			r.Fails(r.Call("refused", nil), tt.has)
			r.Works(r.Call("cordis_inspect", map[string]string{"what": "temporary", "name": id}), "; errors: 1;", `- last errors:`+"\n"+`  - tool "refused": `+tt.has)
			r.Works(r.Call("cordis_inspect", map[string]string{"what": "temporary"}), "; errors: 1 (see ")
		})
	}
}

// TestArguments: arguments are lossless JSON or refused; a plugin gets exactly
// what was sent, as plain data that it cannot change for anybody else.
func TestArguments(t *testing.T) { // not parallel: it needs the processor
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 10 * time.Second, CallTimeout: 20 * time.Second})
	root.Mount(`return { apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'look', description: 'd', parameters: {}, output: { schema: { type: 'json' }, render: () => [] },
  execute(args) { let frozen = false; try { 'use strict'; args.added = 1 } catch { frozen = true }
    return { args, keys: Object.keys(args), plain: Object.getPrototypeOf(args) === Object.prototype, polluted: ({}).polluted === undefined, frozen: frozen || !('added' in args) } } })) } }`)
	tests := []struct{ name, args, keys, has string }{
		{"empty", `{}`, `[]`, ""},
		{"proto", `{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`, `["__proto__","constructor"]`, ""},
		{"to_json", `{"toJSON":"x","then":"y","valueOf":1}`, `["toJSON","then","valueOf"]`, ""},
		{"numeric_keys", `{"1":1,"0":0}`, "", ""},
		{"duplicate", `{"a":1,"a":2}`, "", ""},
		{"safe_integer", `{"n":9007199254740991}`, `["n"]`, ""},
		{"integer_beyond", `{"n":9007199254740993}`, "", "pass it as a string"},
		{"negative_beyond", `{"n":{"m":[-9007199254740993]}}`, "", "pass it as a string"},
		{"huge_integer", `{"n":` + strings.Repeat("9", 400) + `}`, "", "invalid arguments"},
		{"overflow", `{"n":1e400}`, "", "invalid arguments"},
		{"negative_zero", `{"n":-0}`, "", "-0"},
		{"nan", `{"n":NaN}`, "", "invalid arguments"},
		{"comment", `{/*x*/}`, "", "invalid arguments"},
		{"trailing", `{} {}`, "", "invalid arguments"},
		{"bom", "\ufeff{}", "", "invalid arguments"},
		{"not_utf8", "{\"a\":\"\xff\"}", "", "invalid arguments"},
		{"control_in_text", "{\"a\":\"\n\"}", "", "invalid arguments"},
		{"null", `null`, "", "must be an object"},
		{"deep", `{"a":` + strings.Repeat("[", 4900) + strings.Repeat("]", 4900) + `}`, `["a"]`, ""},
		{"too_deep", `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "", fmt.Sprint(limits.Depth)},
		{"too_large", `{"a":"` + strings.Repeat("x", limits.Arguments) + `"}`, "", fmt.Sprintf("more than the limit of %d", limits.Arguments)},
		{"large", `{"a":"` + strings.Repeat("x", 8<<20) + `"}`, `["a"]`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			res := r.Call("look", tt.args)
			if tt.has != "" {
				text := r.Fails(res, "Error: invalid arguments", tt.has)
				noneOfOurs(t, text)
				if len(text) > 600 {
					t.Errorf("%d characters: %.300q", len(text), text)
				}
				return
			}
			if res.IsError && tt.keys == "" {
				noneOfOurs(t, selfmodtest.Text(res)) // refusing it is in order, too
				return
			}
			r.Works(res)
			if value := string(res.Value); tt.keys != "" && (!strings.HasPrefix(value, `{"args":`+tt.args+`,"keys":`+tt.keys+`,`) || !strings.HasSuffix(value, `"plain":true,"polluted":true,"frozen":true}`)) {
				t.Errorf("%.100s … %s", value, value[max(0, len(value)-120):])
			}
		})
	}
}

// TestAnswersOfListeners: what a listener answers instead of a result is checked
// as a result is, and a failure names the mount.
func TestAnswersOfListeners(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 500 * time.Millisecond, CallTimeout: 900 * time.Millisecond})
	root.Mount(selfmodtest.Tool("heard", `return 'true result'`))
	answers := []string{
		`1`, `'x'`, `[]`, `{}`, `null`, `undefined`, `NaN`, `1n`, `new Date()`, `new Map()`, `() => {}`, `Symbol('x')`, `ctx`, `{ isError: 'no' }`, `{ isError: false, value: undefined }`,
		`{ isError: false, value: 1n, content: [] }`, `{ value: 'x', content: 'not a list' }`, `{ value: 'x', content: [{ type: 1 }] }`, `{ isError: true, error: 'x' }`, `{ isError: true, error: { message: {} } }`,
		`{ kind: 'accept', content: 5 }`, `{ kind: 'accept', content: [5] }`, `{ kind: 'accept', value: 5 }`, `{ kind: 'accept', value: { x: 'x'.repeat(1 << 20) } }`, `{ kind: 'block', feedback: {} }`, `{ kind: 'block', feedback: 'f'.repeat(1 << 20) }`, `{ kind: 'other' }`,
		`(() => { const a = {}; a.a = a; return a })()`, `(() => { let v = {}; for (let i = 0; i < 20000; i++) v = { v }; return v })()`, `new Proxy({}, { get() { throw new Error('hostile answer') }, ownKeys() { throw new Error('hostile answer') } })`,
		`{ get kind() { throw new Error('hostile answer') } }`, `{ then() {} }`, `{ then(ok, bad) { bad(new Error('hostile answer')) } }`, `Promise.reject(undefined)`, `new Promise(() => {})`,
	}
	for _, event := range []string{"tools/execute", "tools/post-execute", "tools/pre-execute"} {
		for i, answer := range answers {
			t.Run(fmt.Sprintf("%s_%d", strings.ReplaceAll(event, "/", "-"), i), func(t *testing.T) {
				r := root.For(t)
				id := r.Mount(`return { name: 'liar', apply(ctx) { ctx.on('` + event + `', (...a) => a[0].name !== 'heard' && !(a[0].exec && a[0].exec.name === 'heard') ? a[a.length - 1]() : ` + "(" + answer + `)) } }`)
				res := r.Call("heard", nil)
				text := selfmodtest.Text(res)
				noneOfOurs(t, text)
				if len(text) > limits.ErrorText+200 {
					t.Errorf("%s: %d characters", answer, len(text))
				}
				if event == "tools/pre-execute" && (!res.IsError || !strings.Contains(text, `"heard" was denied because the guard of temporary Plugin `+id+` (liar) failed`)) {
					t.Errorf("%s did not deny by name: %.300s", answer, text)
				}
				if !res.IsError && strings.Contains(answer, "hostile") {
					t.Errorf("%s passed: %s", answer, text)
				}
				r.Unmount(id)
				r.Works(r.Call("heard", nil), "true result")
			})
		}
	}
}

// TestHostileServices: a service that lies, throws or never ends is its
// consumer's error, which names what was thrown; both plugins go on.
func TestHostileServices(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 400 * time.Millisecond, CallTimeout: 1200 * time.Millisecond})
	values := []struct{ name, value, use, want string }{
		{"getter_throws", `{ get x() { throw new TypeError('getter broke') } }`, `s.x`, "TypeError getter broke"},
		{"proxy_throws", `new Proxy({ f() {} }, { get() { throw new Error('trap broke') } })`, `s.x`, "trap broke"},
		{"revoked_later", `(() => { const p = Proxy.revocable({ f() { p.revoke(); return 1 } }, {}); return p.proxy })()`, `(s.f(), s.f())`, ""},
		{"throws_null", `{ f() { throw null } }`, `s.f()`, "null"},
		{"throws_proxy", `{ f() { throw new Proxy({}, { get() { throw 1 } }) } }`, `s.f()`, "<unprintable thrown value>"},
		{"spins", `{ f() { for (;;) {} } }`, `s.f()`, "400 ms"},
		{"never_settles", `{ f: () => new Promise(() => {}) }`, `await s.f()`, "1200 ms"},
		{"thenable_service", `{ then(ok) { ok('evil') }, f: () => 5 }`, `s.f()`, "5"},
		{"returns_ctx", `{ f: () => ctx }`, `s.f()`, "returned a cordis Context"},
		{"returns_cycle", `{ f() { const a = { n: NaN, z: -0, d: new Date(5), m: new Map([[1, new Set([2n])]]), u: undefined }; a.a = a; return a } }`,
			`((v) => [v.a === v, Object.is(v.z, -0), v.n !== v.n, v.d instanceof Date && +v.d, v.m instanceof Map && v.m.get(1).has(2n), 'u' in v].join())(s.f())`, "true,true,true,5,true,true"},
		{"returns_deep", `{ f() { let v = []; for (let i = 0; i < 200000; i++) v = [v]; return v } }`, `typeof s.f()`, ""},
		{"deletes", `{ f: 1 }`, `delete s.f`, ""},
		{"callback_throws", `{ f(cb) { try { cb() } catch (e) { return e.name + ' ' + e.message + ' ' + (e instanceof RangeError) } } }`, `s.f(() => { throw new RangeError('from the consumer') })`, "RangeError from the consumer true"},
		{"recursion_between", `{ f(cb) { return cb() } }`, `(() => { const again = () => s.f(again); return again() })()`, ""},
		{"constructor_of_stub", `{ f() {} }`, `s.f.constructor('return 1')()`, "not available in the temporary Plugin sandbox"},
		{"constructor_of_object", `{ f() {} }`, `s.constructor.constructor('return 1')()`, "not available in the temporary Plugin sandbox"},
	}
	for _, tt := range values {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			provider := r.Mount(`return { name: 'provider', apply(ctx) { ctx.provide('hostile', ` + tt.value + `) } }`)
			consumer := r.Mount(`return { name: 'consumer', inject: ['hostile'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'use', description: 'd', parameters: {}, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] },
  async execute() { const s = ctx.hostile; try { return String(` + tt.use + `) } catch (e) { return e === null ? 'null' : typeof e === 'string' ? e : e.name + ' ' + e.message } } }));
  harness.registerTool(ctx, harness.defineTool({ name: 'still', description: 'd', parameters: {}, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: () => 'here' })) } }`)
			began := time.Now()
			text := selfmodtest.Text(r.Call("use", nil))
			noneOfOurs(t, text)
			if !strings.Contains(text, tt.want) || len(text) > limits.ErrorText+100 {
				t.Errorf("got %.400s, want %q", text, tt.want)
			}
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			r.Eventually("the consumer", func() (string, bool) {
				res := r.Call("still", nil)
				return selfmodtest.Text(res), !res.IsError
			})
			r.Unmount(consumer)
			r.Unmount(provider)
		})
	}
}
