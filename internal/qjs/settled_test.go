package qjs

import "testing"

// A promise has a value at once when it is fulfilled and nothing else would run
// before its handlers.
func TestValue(t *testing.T) {
	for _, c := range []struct{ name, expression, want string }{
		{"async", "__value((async () => 5)())", "5"},
		{"resolved", "__value(Promise.resolve(undefined))", "undefined"},
		{"object", "__value(Promise.resolve(o)) === o", "true"},
		{"class", "__value((class P extends Promise {}).resolve(5))", "5"},
		{"disguised", "__value(Object.setPrototypeOf(Promise.resolve(5), null))", "5"},
		{"then-is-not-asked", "__value(Object.assign(Promise.resolve(5), { then() { throw 1 } }))", "5"},
		{"pending", "same(new Promise(() => {}))", "true"},
		{"awaits", "same((async () => { await 0 })())", "true"},
		{"rejected", "(() => { const p = Promise.reject(5); p.catch(() => {}); return same(p) })()", "true"},
		{"thenable", "same({ then(ok) { ok(5) } })", "true"},
		{"resolved-with-thenable", "same(Promise.resolve({ then() {} }))", "true"},
		{"plain", "same(o)", "true"},
		{"proxy", "same(new Proxy(Promise.resolve(5), {}))", "true"},
		{"inherits", "same(Object.create(Promise.resolve(5)))", "true"},
		{"primitive", "__value('x') + __value(5) + __value(null) + __value()", "x5nullundefined"},
		{"job-waits", "(Promise.resolve().then(() => {}), same(Promise.resolve(5)))", "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := open(t, Options{})
			holdFunction(t, vm, "() => { const o = {}, same = (v) => __value(v) === v; return String("+c.expression+") }")
			if got, _, err := vm.Call(); got != c.want || err != nil {
				t.Errorf("got %s %v, want %s", got, err, c.want)
			}
		})
	}
}
