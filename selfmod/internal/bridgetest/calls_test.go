package bridgetest

import (
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
)

var small = selfmod.Config{VMTimeout: 2 * time.Second, CallTimeout: 5 * time.Second, MaxCallTimeout: 10 * time.Second}

// Every shape of an interface, as a plugin uses it.
func TestShapes(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	for _, c := range []struct{ name, use, want string }{
		{"sync", "s.add(2, 3)", "5"},
		{"sync_is_no_promise", "typeof s.add(2, 3)", "number"},
		{"detached", "(({ add }) => add(1, 1))(s)", "2"},
		{"async", "await s.read('a.txt')", "a.txt"},
		{"async_is_a_promise", "s.nothing() instanceof Promise", "true"},
		{"either_form", "await s.read({ path: 'b.txt' })", "b.txt"},
		{"optional_either_form", "s.either('a', { b: 1 })", `a {"b":1}`},
		{"optional_either_left_out", "s.either()", "nowhere nothing"},
		{"optional_data", "s.either(undefined, 'text')", `nowhere "text"`},
		{"options", "await s.read('a', { maxBytes: 5, encoding: 'é', mode: 'slow' })", "a 5 é slow"},
		{"options_left_out", "await s.read('a', undefined)", "a"},
		{"options_null", "await s.read('a', null)", "a"},
		{"options_empty", "await s.read('a', {})", "a -1  "},
		{"option_undefined", "await s.read('a', { maxBytes: undefined, mode: 'fast' })", "a -1  fast"},
		{"nothing", "(await s.nothing()) === undefined", "true"},
		{"struct", "s.item({ name: 'n', size: 3, tags: ['a'] })", `{"name":"n","size":3,"tags":["a"]}`},
		{"struct_nested", "s.item({ name: 'n', size: 3, tags: [], attrs: { a: 'b' }, inner: { name: 'i', size: 0, tags: [] } }).inner.name", "i"},
		{"struct_bytes", "(({ bytes }) => [bytes instanceof Uint8Array, bytes.length, bytes[1]].join())(s.item({ name: '', size: 0, tags: [], bytes: new Uint8Array([7, 8]) }))", "true,2,8"},
		{"no_list_is_empty", "s.none()", "[]"},
		{"name_of_capitals", "s.htmlPage()", "<b>&</b>"},
		{"text_of_everything", `await s.read('\u0000\u2028 "\\ é \u{1f600}~^*')`, "\x00\u2028 \"\\ é \U0001f600~^*"},
		{"empty_text", "(await s.read('')) === ''", "true"},
		{"bytes", "(await s.bytes(new Uint8Array([1, 2, 255]))).join()", "255,2,1"},
		{"bytes_are", "(await s.bytes(new Uint8Array())) instanceof Uint8Array", "true"},
		{"bytes_of_a_view", "(await s.bytes(new Uint16Array([258]).subarray(0))).join()", "1,2"},
		{"bytes_of_a_buffer", "(await s.bytes(new Uint8Array([3, 4]).buffer)).join()", "4,3"},
		{"data", `s.echo({ a: [1, 'x', null, true, { b: 1.5 }], 'odd key': -0 })`, `{"a":[1,"x",null,true,{"b":1.5}],"odd key":0}`},
		{"data_dollars", `s.echo({ $: 'b', v: 1, $$: { $: 2 } })`, `{"$":"b","v":1,"$$":{"$":2}}`},
		{"data_proto", `Object.keys(s.echo(JSON.parse('{"__proto__":1,"a":{"__proto__":2}}'))).join()`, "__proto__,a"},
		{"data_date", "s.echo(new Date(0))", "1970-01-01T00:00:00.000Z"},
		{"data_class", "s.echo(new (class { constructor() { this.a = 1 } })())", `{"a":1}`},
		{"pointer", "(await s.maybe(true)).name", "there"},
		{"pointer_nil", "(await s.maybe(false)) === null", "true"},
		{"in", "['add' in s, 'nope' in s].join()", "true,false"},
		{"keys", "Object.keys(d).join()", "read"},
		{"same", "s.add === s.add && ctx.shapes === s && ctx.get('shapes') === s", "true"},
		{"iterator", "await (async () => { const out = []; for await (const n of s.count(40)) out.push(n); return out.length + ':' + out[0] + out[39] })()", "40:039"},
		{"iterator_twice", "await (async () => { const it = s.count(2), out = []; for (let i = 0; i < 2; i++) for await (const n of it) out.push(n); return out.join() })()", "0,1,0,1"},
		{"iterator_of_bytes", "await (async () => { let sum = 0; for await (const b of s.chunks(20)) sum += b[0] + b.length; return sum })()", "230"},
		{"iterator_empty", "await (async () => { for await (const n of s.count(0)) return 'some'; return 'none' })()", "none"},
		{"iterator_ends_with_error", "await (async () => { let n = 0; try { for await (const x of s.count(13)) n++ } catch (e) { return n + text(e) } })()", "13true | Error | UNLUCKY | thirteen"},
		{"iterator_panics", "await (async () => { let n = 0; try { for await (const x of s.count(99)) n++ } catch (e) { return n + text(e) } })()", "99true | Error | HOST_PANIC | ctx.shapes.count failed in the host: ninety-nine"},
		{"iterator_by_hand", "await (async () => { const it = s.count(3)[Symbol.asyncIterator](); const all = await Promise.all([it.next(), it.next(), it.next(), it.next()]); return all.map((r) => r.done + ':' + r.value).join() })()", "false:0,false:1,false:2,true:undefined"},
		{"iterator_returns", "await (async () => { const it = s.count(3)[Symbol.asyncIterator](); await it.next(); const r = await it.return(7); return [r.value, r.done, (await it.next()).done].join() })()", "7,true,true"},
		{"callback", "await s.each(['a', 'b'], (one, at) => one.name + at + one.bytes[1])", `["a02","b12"]`},
		{"callback_async", "await s.each(['a'], async (one) => { await ctx.timeout(1); return 'later ' + one.name })", `["later a"]`},
		{"callback_throws", "await failed(() => s.each(['a'], () => { const e = new RangeError('mine'); e.code = 'MINE'; throw e }))", "true | RangeError | MINE | mine"},
		{"callback_wrong", "await failed(() => s.each(['a'], () => 5))", "true | Error |  | a: the result of the callback of ctx.shapes.each must be string, got the number 5"},
		{"callback_calls", "await s.each(['a'], async (one) => String(s.add(1, 1)) + await s.read('x'))", `["2x"]`},
		{"callback_sync", "s.eachNow(['1', '20'], (one) => one.length)", "3"},
		{"object", "await (async () => { const p = await s.start('cat'); await p.write('a'); const before = p.state; await p.write('b'); return [p.pid, before, p.state].join() })()", "42,cat after 1 writes,cat after 2 writes"},
		{"object_promise", "await (async () => { const p = await s.start('cat'); return [(await p.exited).name, (await p.exited).size, p.exited === p.exited].join() })()", "cat,1,true"},
		{"object_lines", "await (async () => { const p = await s.start('cat'); await p.write('1'); await p.write('2'); let t = ''; for await (const l of p.lines()) t += l; return t })()", "12"},
		{"object_of_object", "(await s.start('cat')).child().child().state", "cat's child's child after 0 writes"},
		{"object_error", "failed(() => p.child())", ""},
		{"object_null", "(await s.find('')) === null", "true"},
		{"object_as_json", "JSON.stringify(await s.start('cat'))", `{"pid":42,"state":"cat after 0 writes"}`},
		{"dispose", "await (async () => { const off = s.keep(() => 'x'); return [typeof off, await off(), off() === off()].join() })()", "function,,true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			use := c.use
			if c.name == "object_error" {
				use, c.want = "await (async () => { const p = await s.start('childless'); return failed(() => p.child()) })()", "true | Error | NO_CHILD | it has none"
			}
			if got := eval(r, use); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

const signature = " Signature: read(target: string | Place, options?: Options): Promise<string>"

// What a plugin does wrong, and the exact texts.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	r, _ := rig(t, small)
	for _, c := range []struct{ name, use, want string }{
		{"type", "d.read(5)", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) must be string | Place, got the number 5." + signature},
		{"type_object", "d.read({ pth: 'x' })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) must be string | Place, got the object {"pth":"x"}: it has no path.` + signature},
		{"type_array", "d.read(['x'])", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) must be string | Place, got an array." + signature},
		{"type_null", "d.read(null)", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) must be string | Place, got null." + signature},
		{"type_function", "d.read(() => 'x')", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) must be string | Place, got a function." + signature},
		{"missing", "d.read()", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) is missing." + signature},
		{"undefined", "d.read(undefined, {})", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 1 (target) is missing." + signature},
		{"surplus", "d.read('a', {}, 'b')", "TypeError | BAD_ARGUMENTS | ctx.shapes-described.read takes at most 2 arguments, got 3." + signature},
		{"unknown_option", "d.read('a', { maxByte: 5 })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options) has no member "maxByte"; did you mean "maxBytes"? It takes: maxBytes, encoding, mode, signal.` + signature},
		{"strange_option", "d.read('a', { zzzzzzzz: 5 })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options) has no member "zzzzzzzz". It takes: maxBytes, encoding, mode, signal.` + signature},
		{"option_type", "d.read('a', { maxBytes: '5' })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options).maxBytes must be number, got the string "5".` + signature},
		{"option_fraction", "d.read('a', { maxBytes: 1.5 })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options).maxBytes must be an integer, got the number 1.5.` + signature},
		{"option_union", "d.read('a', { mode: 'fats' })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options).mode must be "fast" | "slow", got the string "fats"; did you mean "fast"?` + signature},
		{"option_signal", "d.read('a', { signal: 5 })", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options).signal must be an AbortSignal, got the number 5.` + signature},
		{"options_are_text", "d.read('a', 'utf8')", `TypeError | BAD_ARGUMENTS | ctx.shapes-described.read: argument 2 (options) must be Options, got the string "utf8".` + signature},
		{"no_method", "d.raed('a')", `TypeError |  | service "shapes-described" has no member "raed"; did you mean "read"? Available: read`},
		{"no_method_alike", "d.readFile('a')", `TypeError |  | service "shapes-described" has no member "readFile"; did you mean "read"? Available: read`},
		{"no_method_far", "d.exists('a')", `TypeError |  | service "shapes-described" has no member "exists". Available: read`},
		{"not_in_the_catalog", "d.add(1, 2)", `TypeError |  | service "shapes-described" has no member "add". Available: read`},
		{"field_missing", "s.item({ name: 'x', tags: [] })", "TypeError | BAD_ARGUMENTS | ctx.shapes.item: argument 1 (arg1).size is missing; it must be number. Signature: item(arg1: Item): Item"},
		{"list_item", "s.item({ name: 'x', size: 1, tags: ['a', 2] })", "TypeError | BAD_ARGUMENTS | ctx.shapes.item: argument 1 (arg1).tags[1] must be string, got the number 2. Signature: item(arg1: Item): Item"},
		{"map_value", "s.item({ name: 'x', size: 1, tags: [], attrs: { 'a b': 1 } })", `TypeError | BAD_ARGUMENTS | ctx.shapes.item: argument 1 (arg1).attrs["a b"] must be string, got the number 1. Signature: item(arg1: Item): Item`},
		{"number", "s.add(1, '2')", `TypeError | BAD_ARGUMENTS | ctx.shapes.add: argument 2 (arg2) must be number, got the string "2". Signature: add(arg1: number, arg2: number): number`},
		{"number_too_large", "s.add(1, 1e300)", `TypeError | BAD_ARGUMENTS | ctx.shapes.add: argument 2 (arg2) must be an integer, got the number 1e+300. Signature: add(arg1: number, arg2: number): number`},
		{"bytes", "s.bytes('text')", `TypeError | BAD_ARGUMENTS | ctx.shapes.bytes: argument 1 (arg1) must be Uint8Array, got the string "text". Signature: bytes(arg1: Uint8Array): Promise<Uint8Array>`},
		{"callback", "s.each([], 'fn')", `TypeError | BAD_ARGUMENTS | ctx.shapes.each: argument 2 (arg2) must be (arg1: Item, arg2: number) => string, got the string "fn". Signature: each(arg1: string[], arg2: (arg1: Item, arg2: number) => string): Promise<string[]>`},
		{"data_of_bytes", "s.echo({ a: new Uint8Array(1) })", "TypeError | BAD_ARGUMENTS | ctx.shapes.echo: argument 1 (arg1).a must be JSON data, got a Uint8Array. Signature: echo(arg1: any): any"},
		{"promise", "s.read(s.read('a'))", "TypeError |  | ctx.shapes.read: argument 1 is a promise; await it first. Signature: read(arg1: Place, arg2?: Options): Promise<string>"},
		{"fails", "s.fails('E_CODE')", "Error | E_CODE | outer: it failed as it was told"},
		{"panics", "s.panics()", "Error | HOST_PANIC | ctx.shapes.panics failed in the host: a nil map"},
		{"panics_now", "s.panicsNow()", "Error | HOST_PANIC | ctx.shapes.panicsNow failed in the host: now"},
		{"unsafe", "s.unsafe()", "Error |  | ctx.shapes.unsafe: the result has the integer 9007199254740994, which is beyond 2^53 and would be changed"},
		{"too_large", "s.big(17 << 20)", "Error | TOO_LARGE | the result is 17825793 bytes, and the limit is 16777216; ask for less at a time"},
		{"assign", "(() => { 'use strict'; s.add = 5 })()", `TypeError |  | sandbox service "shapes" is read-only; cannot assign "add"`},
		{"object_member", "s.start('x').then((p) => p.sate)", `TypeError |  | Process has no member "sate"; did you mean "state"? Available: child, exited, lines, pid, state, write`},
		{"object_argument", "s.start('x').then((p) => p.write(1))", `TypeError | BAD_ARGUMENTS | Process.write: argument 1 (arg1) must be string, got the number 1. Signature: write(arg1: string): Promise<void>`},
		{"object_passed_on", "s.start('x').then((p) => s.echo(p))", `TypeError |  | ctx.shapes.echo: argument 1 is object of type Process, which cannot be passed on; pass its data. Signature: echo(arg1: any): any`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			want := "true | " + c.want
			if got := eval(r, "await failed(() => "+c.use+")"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
