package qjs

import (
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

// FuzzSource evaluates any source within limits: every outcome is a result or a
// classified error, and a VM that is not broken can be used again. SharedArrayBuffer,
// Atomics and the native loops that nothing interrupts are kept out, as a
// prelude would.
func FuzzSource(f *testing.F) {
	for _, s := range []string{
		"1 + 1",
		"for (;;);",
		"throw {get message() { throw 1 }}",
		"(function f() { try { f() } catch { f() } })()",
		"Promise.reject(__host('a', 1))",
		"(async () => { for await (const x of [1, Promise.reject(2)]) __host(x) })()",
		"__hold(() => { throw new Error('x') })",
		"new Proxy(class { static #x; static { throw this } }, {})",
		"/(?<a>x)|\\k<a>{2,1}/u.exec('😀\\ud800')",
		"[].concat([[]], ...'x'.repeat(99)).sort(() => 0.5)",
		"const a = []; for (;;) a.push('x'.repeat(99999) + a.length)",
		"JSON.parse('{\"a\":[1,', (k, v) => v)",
		"label: { break label } with ({}) {}",
		"function* g() { try { yield } finally { yield* g() } } [...g()]",
		"import('x').catch(__host)",
		"new WeakRef({}); new FinalizationRegistry(() => {}).register({}, 1)",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		if len(src) > 4096 {
			t.Skip()
		}
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		vm := open(t, Options{MemoryLimit: MinMemory, MaxStackSize: 500})
		vm.SetHost(func(op string, args []string) (string, bool, error) {
			if op == "err" {
				return "", false, errors.New(op)
			}
			return op + strings.Join(args, ""), true, nil
		})
		if err := vm.EvalBytecode(capPrelude(t)); err != nil {
			t.Fatal(err)
		}
		vm.SetDeadline(time.Now().Add(30 * time.Millisecond))
		outcomes := make([]error, 3)
		_, outcomes[0] = eval(vm, src)
		_, _, outcomes[1] = vm.RunJobs(1000)
		if _, _, outcomes[2] = vm.Call("x"); errors.Is(outcomes[2], ErrNoFunction) {
			outcomes[2] = nil
		}
		vm.Unhandled()
		vm.SetDeadline(time.Time{})
		for i, err := range outcomes {
			var p *Panic
			if errors.As(err, &p) {
				t.Fatalf("step %d: %v\n%s", i, err, p.Stack)
			}
		}
		if !vm.OutOfMemory() {
			if err := vm.EvalBytecode(onePlusOne(t)); err != nil {
				t.Fatalf("the VM cannot be used again: %v", err)
			}
		}
	})
}

var fuzzCode = map[string][]byte{}

func compiled(t testing.TB, src string) []byte {
	code, ok := fuzzCode[src]
	if !ok {
		var err error
		if code, err = open(t, Options{}).Compile(src, "fuzz.js"); err != nil {
			t.Fatal(err)
		}
		fuzzCode[src] = code
	}
	return code
}

func onePlusOne(t testing.TB) []byte { return compiled(t, "1 + 1") }

// capPrelude removes what runs without end inside the engine.
func capPrelude(t testing.TB) []byte {
	return compiled(t, `
		delete globalThis.SharedArrayBuffer; delete globalThis.Atomics;
		const { apply } = Reflect;
		for (const [object, names] of [
			[Array.prototype, Object.getOwnPropertyNames(Array.prototype)],
			[Array, ['from', 'of']],
			[Object.getPrototypeOf(Int8Array), ['from', 'of']],
		]) for (const name of names) {
			const f = object[name];
			if (typeof f !== 'function' || name === 'constructor') continue;
			object[name] = function (...a) {
				for (const x of [this, ...a]) if (x != null && x.length > 1e5) throw new RangeError('too long');
				return apply(f, this, a);
			};
		}
		const repeat = String.prototype.repeat;
		String.prototype.repeat = function (n) { if (n > 1e6) throw new RangeError('too long'); return apply(repeat, this, [n]) };`)
}
