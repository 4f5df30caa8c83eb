package qjs

import (
	"strings"
	"testing"
)

// textOf returns what __text, and what JSON.stringify, make of an expression.
func textOf(t *testing.T, expression, options string) string {
	t.Helper()
	vm := open(t, Options{})
	holdFunction(t, vm, "() => { const v = ("+expression+"); const text = __text(v"+options+"); if (text !== undefined && text !== JSON.stringify(v)) throw new Error(text + ' is not ' + JSON.stringify(v)); return text }")
	text, defined, err := vm.Call()
	if err != nil {
		t.Fatal(err)
	}
	if !defined {
		return "none"
	}
	return text
}

func TestText(t *testing.T) {
	for _, c := range []struct{ name, expression, want string }{
		{"null", "null", "null"},
		{"booleans", "[true, false]", "[true,false]"},
		{"integers", "[0, -1, 2147483647, -2147483648, 2147483648, 9007199254740993]", "[0,-1,2147483647,-2147483648,2147483648,9007199254740992]"},
		{"fractions", "[0.1, -1.5, 1e-6, 1e-7, 123456789.125, 5e-324, 1.7976931348623157e308]", "[0.1,-1.5,0.000001,1e-7,123456789.125,5e-324,1.7976931348623157e+308]"},
		{"large", "[1e20, 1e21, 1.5e300, -1e100, 1e-10]", "[100000000000000000000,1e+21,1.5e+300,-1e+100,1e-10]"},
		{"number-as-float", "[1.5 + 1.5, 2 ** 40]", "[3,1099511627776]"},
		{"string", "'a\"b\\\\c/d'", `"a\"b\\c/d"`},
		{"controls", `'\b\f\n\r\t\0\x01\x1f\x7f'`, "\"\\b\\f\\n\\r\\t\\u0000\\u0001\\u001f\x7f\""},
		{"latin", `'\xa0é\xff'`, "\"\u00a0é\u00ff\""},
		{"wide", `'Ω\u2028😀"'`, "\"Ω\u2028😀\\\"\""},
		{"halves", `['\ud83d', '\ude00x', 'a\ud83d\ud83d\ude00']`, "[\"\\ud83d\",\"\\ude00x\",\"a\\ud83d😀\"]"},
		{"rope", "(() => { let s = ''; for (let i = 0; i < 3000; i++) s += 'abc\"' + i; return s.slice(0, 12) + [s].length })()", `"abc\"0abc\"1ab1"`},
		{"object", "({ a: 1, 'b c': [], c: {}, '': null, é: 'x', Ω: 1 })", `{"a":1,"b c":[],"c":{},"":null,"é":"x","Ω":1}`},
		{"null-prototype", "Object.assign(Object.create(null), { a: 1 })", `{"a":1}`},
		{"dunder", `JSON.parse('{"__proto__":{"x":1}}')`, `{"__proto__":{"x":1}}`},
		{"deleted", "(() => { const o = { a: 1, b: 2, c: 3 }; delete o.a; o.d = 4; return o })()", `{"b":2,"c":3,"d":4}`},
		{"all-deleted", "(() => { const o = { a: 1 }; delete o.a; return o })()", `{}`},
		{"frozen", "Object.freeze([1, Object.freeze({ a: Object.freeze([]) })])", `[1,{"a":[]}]`},
		{"sealed", "Object.seal([1, 2])", `[1,2]`},
		{"slow-array", "(() => { const a = [1, 2]; Object.defineProperty(a, 2, { value: 3, enumerable: true }); return a })()", `[1,2,3]`},
		{"shared", "(() => { const s = { x: 1 }; return [s, s] })()", `[{"x":1},{"x":1}]`},
		{"many", "Object.fromEntries(Array.from({ length: 100 }, (_, i) => ['k' + i, i]))", ""},
		{"deep", "(() => { let a = []; for (let i = 0; i < 399; i++) a = [a]; return a })()", strings.Repeat("[", 400) + strings.Repeat("]", 400)},

		{"number-keys", "({ b: 1, 2: 1, 1: 1 })", "none"},
		{"large-number-key", "({ b: 1, 4294967290: 1 })", "none"},
		{"undefined", "undefined", "none"},
		{"undefined-inside", "[1, { a: undefined }]", "none"},
		{"nan", "[NaN]", "none"},
		{"infinite", "[-Infinity]", "none"},
		{"minus-zero", "[-0]", "none"},
		{"bigint", "[1n]", "none"},
		{"bigint-large", "[2n ** 70n]", "none"},
		{"symbol", "Symbol('x')", "none"},
		{"symbol-key", "({ a: 1, [Symbol('x')]: 1 })", "none"},
		{"hidden", "Object.defineProperty({ a: 1 }, 'h', { value: 1 })", "none"},
		{"accessor", "({ get a() { return 1 } })", "none"},
		{"function", "[() => 1]", "none"},
		{"date", "new Date(0)", "none"},
		{"regexp", "/x/", "none"},
		{"error", "new Error('x')", "none"},
		{"map", "new Map()", "none"},
		{"boxed", "[Object('x')]", "none"},
		{"class", "new (class Box { a = 1 })()", "none"},
		{"private", "(() => { class B { constructor(o) { return o } } class P extends B { #x = 1 } return new P({ a: 1 }) })()", "none"},
		{"inherits", "Object.create({ a: 1 })", "none"},
		{"array-class", "new (class L extends Array {})()", "none"},
		{"array-null-prototype", "Object.setPrototypeOf([], null)", "none"},
		{"object-array-prototype", "Object.create(Array.prototype)", "none"},
		{"holes", "[1, , 2]", "none"},
		{"holes-at-the-end", "new Array(3)", "none"},
		{"length", "(() => { const a = [1]; a.length = 2; return a })()", "none"},
		{"extra", "Object.assign([1], { x: 1 })", "none"},
		{"extra-frozen", "Object.freeze(Object.assign([1], { x: 1 }))", "none"},
		{"array-accessor", "Object.defineProperty([1], 0, { get: () => 1, enumerable: true })", "none"},
		{"array-hidden", "Object.defineProperty([1], 0, { value: 1, enumerable: false })", "none"},
		{"array-order", "(() => { const a = []; Object.defineProperty(a, 1, { value: 1, enumerable: true }); Object.defineProperty(a, 0, { value: 0, enumerable: true }); return a })()", "none"},
		{"arguments", "(function () { return arguments })(1)", "none"},
		{"typed", "new Uint8Array(2)", "none"},
		{"proxy", "new Proxy({}, {})", "none"},
		{"proxy-array", "[new Proxy([], {})]", "none"},
		{"prototypes", "[Object.prototype]", "none"},
		{"global", "globalThis", "none"},
		{"cycle", "(() => { const a = []; a[0] = a; return a })()", "none"},
		{"deeper", "(() => { let a = []; for (let i = 0; i < 401; i++) a = [a]; return a })()", "none"},
		{"exploding", "(() => { let a = []; for (let i = 0; i < 100; i++) a = [a, a]; return a })()", "none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := textOf(t, c.expression, ""); got != c.want && (c.want != "" || got == "none") {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	t.Run("toJSON-is-not-asked", func(t *testing.T) {
		vm := open(t, Options{})
		holdFunction(t, vm, "() => { Object.prototype.toJSON = Array.prototype.toJSON = String.prototype.toJSON = () => 'asked'; return __text(['a', { b: 1 }]) }")
		if got, _, err := vm.Call(); got != `["a",{"b":1}]` || err != nil {
			t.Error(got, err)
		}
	})
	t.Run("own-prototypes-only", func(t *testing.T) {
		if got := textOf(t, "[Object.create(null)]", ", true"); got != "none" {
			t.Error(got)
		}
		if got := textOf(t, "[{}]", ", true"); got != "[{}]" {
			t.Error(got)
		}
	})
	t.Run("nothing", func(t *testing.T) {
		vm := open(t, Options{})
		holdFunction(t, vm, "() => String(__text()) + __data() + __data(5) + __data({})")
		if got, _, err := vm.Call(); got != "undefinedundefinedundefinedundefined" || err != nil {
			t.Error(got, err)
		}
	})
}

// randomText makes values of all sorts from a seed, with a check that is as strict as
// __text, and says which of them __text gets wrong.
const randomText = `(() => {
	let seed = 1
	const next = (n) => { seed = (seed * 1103515245 + 12345) & 0x7fffffff; return (seed >> 8) % n }
	const strings = ['', 'a', 'key', 'é', 'Ω', '\ud83d', '😀', 'a"b', '\n', '__proto__', 'length', 'x'.repeat(300), '-1', '1x']
	const odd = [undefined, NaN, -0, Infinity, 10n, Symbol('s'), () => 1, new Date(0), /x/, new Map(), new (class A { a = 1 })(), [1, , 2], Object.assign([1], { x: 1 }), { 7: 1 }, { get a() { return 1 } }, Object.defineProperty({}, 'h', { value: 1 }), { [Symbol('k')]: 1 }]
	const leaf = () => [null, true, false, next(100), -next(1000), next(1000) / 8, 1e21 * (1 + next(9)), 1e-7 * (1 + next(9)), next(2) * 2 ** 40 + 1, strings[next(strings.length)], strings[next(strings.length)] + next(9)][next(11)]
	const value = (depth) => {
		if (next(60) === 0) return odd[next(odd.length)]
		if (depth === 0 || next(3) === 0) return leaf()
		const n = next(8) === 0 ? 20 + next(30) : next(5)
		if (next(2) === 0) {
			const a = []
			for (let i = 0; i < n; i++) a[i] = value(depth - 1)
			if (next(4) === 0) a.pop()
			return next(3) === 0 ? Object.freeze(a) : a
		}
		const o = next(6) === 0 ? Object.create(null) : {}
		for (let i = 0; i < n; i++) Object.defineProperty(o, strings[next(strings.length)].slice(0, 9) + (next(2) ? 'k' + i : ''), { value: value(depth - 1), enumerable: true, configurable: true, writable: next(2) === 0 })
		if (next(3) === 0) for (const k of Object.keys(o)) if (next(2) === 0) delete o[k]
		if (next(4) === 0) o.last = next(10)
		return next(3) === 0 ? Object.freeze(o) : o
	}
	const plain = (v) => {
		switch (typeof v) {
			case 'string': case 'boolean': return true
			case 'number': return Number.isFinite(v) && !Object.is(v, -0)
			case 'object': break
			default: return false
		}
		if (v === null) return true
		const keys = Reflect.ownKeys(v), proto = Object.getPrototypeOf(v)
		if (Array.isArray(v)) return proto === Array.prototype && keys.length === v.length + 1 && keys.slice(0, -1).every((k, i) => k === String(i) && plain(v[i]))
		if (proto !== Object.prototype && proto !== null) return false
		return keys.every((k) => { const d = typeof k === 'string' && !/^[0-9]/.test(k) && Reflect.getOwnPropertyDescriptor(v, k); return d && d.enumerable && 'value' in d && plain(d.value) })
	}
	return (from, n) => {
		seed = from
		let yes = 0
		for (let i = 0; i < n; i++) {
			const v = value(3), text = __text(v), want = plain(v) ? JSON.stringify(v) : undefined
			if (text !== want) return 'got ' + text + ', want ' + want
			yes += text === undefined ? 0 : 1
			const back = text === undefined ? undefined : __data(text)
			if (back !== undefined && __text(back) !== text) return 'read otherwise: ' + text
		}
		return yes > n / 10 && yes < n * 9 / 10 ? 'right' : 'one-sided: ' + yes
	}
})()`

func TestTextOfRandomValues(t *testing.T) {
	if raceEnabled {
		t.Skip("too slow under the race detector")
	}
	vm := open(t, Options{})
	holdFunction(t, vm, randomText)
	for seed := range 8 {
		if got, _, err := vm.Call(seed+1, 100); got != "right" || err != nil {
			t.Errorf("seed %d: %.2000s %v", seed, got, err)
		}
	}
}

// dataCheck holds a function that reads a text both ways and says what differs.
const dataCheck = `(text) => {
	const same = (a, b) => {
		if (typeof a !== 'object' || a === null) return Object.is(a, b)
		if (!Object.isFrozen(b) || Array.isArray(a) !== Array.isArray(b) || Object.getPrototypeOf(a) !== Object.getPrototypeOf(b)) return false
		const k = Reflect.ownKeys(a), l = Reflect.ownKeys(b)
		return k.length === l.length && k.every((key, i) => key === l[i] && same(a[key], b[key]))
	}
	const data = __data(text)
	if (data === undefined) { try { JSON.parse(text); return 'left' } catch { return 'invalid' } }
	if (!same(JSON.parse(text), data)) return 'differs: ' + JSON.stringify(data)
	if (JSON.stringify(data) !== JSON.stringify(JSON.parse(text))) return 'other text'
	const again = __text(data)
	return again === undefined || again === JSON.stringify(data) ? 'same' : 'written as ' + again
}`

func TestData(t *testing.T) {
	vm := open(t, Options{})
	holdFunction(t, vm, dataCheck)
	for _, c := range []struct{ text, want string }{
		{`null`, "same"}, {`true`, "same"}, {` false `, "same"}, {`"a"`, "same"}, {`""`, "same"}, {`[]`, "same"}, {`{}`, "same"},
		{`0`, "same"}, {`-0`, "same"}, {`-0.0`, "same"}, {`12`, "same"}, {`-999999999`, "same"}, {`2147483648`, "same"}, {`9007199254740993`, "same"},
		{`1.5`, "same"}, {`1e3`, "same"}, {`1E+3`, "same"}, {`-1.25e-3`, "same"}, {`123456789012345678901234567890`, "same"}, {`5e-324`, "same"}, {`1e-400`, "same"},
		{"{\"a\": [1, {\"b\":2}],\n\t\"c\" : { } , \"d\":[ ]}", "same"},
		{`{"b":1,"2":2,"1":3,"a":4}`, "same"}, {`{"":1,"4294967295":1,"4294967294":2,"-1":3,"01":4}`, "same"},
		{`{"__proto__":{"x":1},"constructor":1,"length":2}`, "same"}, {`[[[["x"]]],null,true]`, "same"},
		{`"\"\\\/\b\f\n\r\t\u0041\u00e9\u2028"`, "same"}, {`"é Ω 😀"`, "same"}, {`"\ud83d\ude00x"`, "same"}, {`{"\u0061é\n":1}`, "same"}, {`"a\u0000b"`, "same"},
		{strings.Repeat("[", 400) + strings.Repeat("]", 400), "same"},
		{`{"a":1,"a":1}`, "same"},

		{`{"a":1,"a":2}`, "left"}, {`{"a":{},"a":{}}`, "left"}, {`"\ud83d"`, "left"}, {`"\ud83dx"`, "left"}, {`"\ude00\ud83d"`, "left"}, {`"\ud83d\u0041"`, "left"}, {`1e400`, "left"},
		{strings.Repeat("[", 401) + strings.Repeat("]", 401), "left"},
		{`"` + strings.Repeat("x", 5<<20) + `"`, "left"},

		{``, "invalid"}, {` `, "invalid"}, {`nul`, "invalid"}, {`nulls`, "invalid"}, {`tru`, "invalid"}, {`'a'`, "invalid"}, {`"a`, "invalid"}, {"\"\n\"", "invalid"}, {`"\x"`, "invalid"}, {`"\u12"`, "invalid"}, {`"\u12g4"`, "invalid"}, {`"\`, "invalid"},
		{`01`, "invalid"}, {`-`, "invalid"}, {`1.`, "invalid"}, {`.5`, "invalid"}, {`1e`, "invalid"}, {`+1`, "invalid"}, {`--1`, "invalid"}, {`-01`, "invalid"}, {`NaN`, "invalid"},
		{`[`, "invalid"}, {`[1`, "invalid"}, {`[1,`, "invalid"}, {`[1,]`, "invalid"}, {`[,1]`, "invalid"}, {`[1 2]`, "invalid"}, {`]`, "invalid"}, {`[1]]`, "invalid"}, {`[}`, "invalid"},
		{`{`, "invalid"}, {`{"a"`, "invalid"}, {`{"a":`, "invalid"}, {`{"a":1`, "invalid"}, {`{"a":1,`, "invalid"}, {`{"a":1,}`, "invalid"}, {`{a:1}`, "invalid"}, {`{"a" 1}`, "invalid"}, {`{,}`, "invalid"}, {`{"a":1 "b":2}`, "invalid"}, {`{]`, "invalid"}, {`{} {}`, "invalid"},
	} {
		if got, _, err := vm.Call(c.text); got != c.want || err != nil {
			t.Errorf("%.60s: %s %v, want %s", c.text, got, err, c.want)
		}
	}
}

// Setters and indexed accessors of the prototypes are not asked.
func TestDataAsksNobody(t *testing.T) {
	vm := open(t, Options{})
	holdFunction(t, vm, `() => {
		for (const p of [Object.prototype, Array.prototype]) for (const k of ['a', '0', 'length2']) Object.defineProperty(p, k, { set() { throw new Error('asked') }, get() { throw new Error('asked') } })
		return __text(Object.keys(__data('[{"a":1,"0":2},[3]]')[0])) + __text(__data('[{"a":1,"length2":2},[3]]'))
	}`)
	if got, _, err := vm.Call(); got != `["0","a"][{"a":1,"length2":2},[3]]` || err != nil {
		t.Error(got, err)
	}
}

// What is made, kept, left and refused leaves nothing behind.
func TestDataLeaks(t *testing.T) {
	vm := open(t, Options{})
	holdFunction(t, vm, `(n) => {
		for (let i = 0; i < n; i++) {
			__text(__data('{"key' + i % 7 + '":[1,"two",{"x":null}],"é":"\\u00e9"}'))
			__data('{"a":[1,{"b":[2,"x"]}],"a":3}'); __data('[{"c":"x"},{"d":'); __data('[1,"\\ud800"]')
			__text([{ a: 1, b: { c: undefined } }])
			let s = 'rope'; for (let j = 0; j < 5; j++) s += s + i; __text({ s })
		}
	}`)
	run := func(n int) int64 {
		if _, _, err := vm.Call(n); err != nil {
			t.Fatal(err)
		}
		_, count := vm.Memory()
		return count
	}
	run(1000)
	before := run(1000)
	if after := run(5000); after > before+10 {
		t.Errorf("%d blocks before, %d after", before, after)
	}
}

// A VM whose memory ends says so, wherever that happens.
func TestDataOutOfMemory(t *testing.T) {
	vm := open(t, Options{MemoryLimit: MinMemory})
	holdFunction(t, vm, `(text) => { const all = []; for (;;) all.push(__data(text), __text(all[all.length - 1])) }`)
	_, _, err := vm.Call(`{"a":[1,2,{"b":"` + strings.Repeat("x", 100) + `"}]}`)
	if k, _ := KindOf(err); k != KindOutOfMemory {
		t.Error(err)
	}
}

func FuzzData(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-0,1.5e-7,"\ud83d\ude00é\n"],"__proto__":{}}`, `[{"1":1,"a":null,"a":2}]`, `"\ud800"`, `[1e400,{"b":[]}]`} {
		f.Add(seed)
	}
	vm := open(f, Options{})
	holdFunction(f, vm, dataCheck)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4096 {
			return
		}
		got, _, err := vm.Call(text)
		if err != nil || got != "same" && got != "left" && got != "invalid" {
			t.Fatalf("%q: %s %v", text, got, err)
		}
	})
}

func BenchmarkData(b *testing.B) {
	const text = `{"args":{"a":[1,{"b":2}]},"exec":{"callId":"c1","rootCallId":"c0","name":"x","nested":false}}`
	for _, c := range []struct{ name, body string }{
		{"data", "__data(text)"}, {"parse", "JSON.parse(text)"}, {"text", "__text(v)"}, {"stringify", "JSON.stringify(v)"}, {"text_string", "__text('how')"},
	} {
		b.Run(c.name, func(b *testing.B) {
			vm := open(b, Options{})
			holdFunction(b, vm, "(() => { const text = '"+text+"', v = JSON.parse(text); return (n) => { for (let i = 0; i < n; i++) "+c.body+" } })()")
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := vm.Call(1000); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/value")
		})
	}
}
