package qjs

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// limitSlack is how late an interrupt may come on a busy machine.
const limitSlack = 5 * time.Second

// limit is how long the endless programs may run.
func limit() time.Time { return time.Now().Add(50 * time.Millisecond) }

func TestInterrupted(t *testing.T) {
	programs := []struct{ name, src string }{
		{"loop", "for (;;);"},
		{"catch", "for (;;) try { for (;;); } catch {}"},
		{"finally", "for (;;) try { for (;;); } finally { continue }"},
		{"regexp_backtracking", "/^(?=(a+)+$)b|(x+x+)+y/.test('x'.repeat(60))"},
		{"regexp_backreference", "/^(a*)*\\1$/.test('a'.repeat(40) + 'b')"},
		{"comparator", "[3, 1, 2].sort(() => { for (;;); })"},
		{"getter", "({ get x() { for (;;); } }).x"},
		{"getter_of_thrown", "throw { get message() { for (;;); } }"},
		{"to_string", "`${{ toString() { for (;;); } }}`"},
		{"proxy_trap", "new Proxy({}, { get() { for (;;); } }).x"},
		{"generator", "[...(function* () { for (;;) yield 1; })()].length"},
		{"replace_callback", "'aaa'.replace(/a/g, () => { for (;;); })"},
		{"json_getter", "JSON.stringify({ get x() { for (;;); } })"},
		{"async_function", "(async () => { for (;;); })(); 1"},
		{"async_caught", "(async () => { try { await (async () => { for (;;); })() } catch {} })(); 1"},
		{"overflow_storm", "(function f() { try { f() } catch { f() } })()"},
		{"overflow_storm_finally", "(function f() { try { f() } finally { f() } })()"},
		{"slow_natives", "const a = Array(50000).fill(1); for (;;) a.indexOf(2)"},
		{"long_strings", "for (let i = 0; ; i++) ('x'.repeat(100000) + i).indexOf('y')"},
		{"host_calls", "for (;;) try { __host('x') } catch {}"},
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			vm := open(t, Options{})
			vm.SetHost(func(string, []string) (string, bool, error) { return "", false, nil })
			start := time.Now()
			vm.SetDeadline(limit())
			_, err := eval(vm, p.src)
			wantKind(t, err, KindInterrupted)
			if d := time.Since(start); d > limitSlack {
				t.Errorf("stopped only after %v", d)
			}
			if !strings.Contains(err.Error(), "deadline") {
				t.Errorf("error %q does not name the deadline", err)
			}
			vm.SetDeadline(time.Time{})
			want(t, vm, "1 + 1", "2")
		})
	}
}

func TestInterruptedJobs(t *testing.T) {
	for name, src := range map[string]string{
		"one_endless_job": "Promise.resolve().then(() => { for (;;); })",
		"endless_chain":   "(function f() { Promise.resolve().then(f) })()",
		"await_loop":      "(async () => { for (;;) await 0 })()",
		"caught":          "(async () => { await 0; for (;;) try { for (;;); } catch {} })()",
	} {
		t.Run(name, func(t *testing.T) {
			vm := open(t, Options{})
			if _, err := eval(vm, src); err != nil {
				t.Fatal(err)
			}
			vm.SetDeadline(limit())
			ran, more, err := vm.RunJobs(1 << 30)
			wantKind(t, err, KindInterrupted)
			if ran == 0 {
				t.Error("no job ran")
			}
			vm.SetDeadline(time.Time{})
			if more != vm.PendingJobs() {
				t.Errorf("more = %v, PendingJobs = %v", more, vm.PendingJobs())
			}
			list, _ := vm.Unhandled()
			for _, r := range list {
				if !r.Interrupted {
					t.Errorf("rejection %+v is not marked as a consequence", r.Error)
				}
			}
			want(t, vm, "1 + 1", "2")
		})
	}
}

// TestPoke: by itself the engine would look after some hundred steps only, each
// of which takes a while here.
func TestPoke(t *testing.T) {
	if raceEnabled {
		t.Skip("slow under the race detector")
	}
	vm := open(t, Options{MemoryLimit: 64 << 20})
	vm.SetDeadline(time.Now().Add(50 * time.Millisecond))
	stop := make(chan struct{})
	var poker sync.WaitGroup
	poker.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				vm.Poke()
			case <-stop:
				return
			}
		}
	})
	began := time.Now()
	_, err := eval(vm, "const a = new Uint8Array(2e7); for (;;) a.indexOf(1)")
	took := time.Since(began)
	close(stop)
	poker.Wait()
	wantKind(t, err, KindInterrupted)
	if took > time.Second {
		t.Errorf("it was stopped after %v", took)
	}
}

func TestInterrupt(t *testing.T) {
	vm := open(t, Options{})
	entered := make(chan struct{})
	vm.SetHost(func(string, []string) (string, bool, error) {
		close(entered)
		return "", false, nil
	})
	go func() {
		<-entered
		vm.Interrupt()
	}()
	_, err := eval(vm, "__host('x'); for (;;);")
	wantKind(t, err, KindInterrupted)
	if !strings.Contains(err.Error(), "on request") {
		t.Errorf("error %q does not say that it was asked for", err)
	}
	_, err = eval(vm, "1") // the flag stands
	wantKind(t, err, KindInterrupted)
	vm.ClearInterrupt()
	want(t, vm, "1", "1")
}

func TestInterruptedStack(t *testing.T) {
	vm := open(t, Options{})
	vm.SetDeadline(limit())
	_, err := eval(vm, "function spin() {\n  let i = 0\n  for (;;) {\n    i++\n  }\n}\nspin()")
	var e *Error
	if e, _ = err.(*Error); e == nil || e.File != "test.js" || e.Line < 2 || e.Line > 4 || !strings.Contains(e.Stack, "spin") {
		t.Fatalf("error %+v; want a place in the function", e)
	}
}

// TestDeadlinePaused excludes the host function's time from its caller's.
func TestDeadlinePaused(t *testing.T) {
	vm := open(t, Options{})
	vm.SetHost(func(op string, _ []string) (string, bool, error) {
		left := time.Until(vm.Deadline())
		vm.SetDeadline(time.Time{})
		if op == "nested" { // a tighter limit inside, and the outer one survives
			vm.SetDeadline(limit())
			_, err := eval(vm, "for (;;);")
			wantKind(t, err, KindInterrupted)
		} else {
			time.Sleep(150 * time.Millisecond)
		}
		vm.SetDeadline(time.Now().Add(left))
		return "", false, nil
	})
	vm.SetDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := eval(vm, "__host('sleep'); __host('nested'); 1"); err != nil {
		t.Fatalf("the host's time was counted: %v", err)
	}
	_, err := eval(vm, "__host('sleep'); for (;;);")
	wantKind(t, err, KindInterrupted)
}

func TestDeadlineInHost(t *testing.T) {
	vm := open(t, Options{})
	vm.SetHost(func(string, []string) (string, bool, error) {
		vm.SetDeadline(time.Now())
		return "", false, nil
	})
	_, err := eval(vm, "try { __host('x') } catch {} globalThis.after = 1")
	wantKind(t, err, KindInterrupted)
	vm.SetDeadline(time.Time{})
	want(t, vm, "typeof after", "undefined")
	if d := vm.Deadline(); !d.IsZero() {
		t.Errorf("Deadline = %v; want none", d)
	}
}

func TestOutOfMemory(t *testing.T) {
	programs := []struct{ name, src string }{
		{"strings", "const a = []; for (;;) a.push('x'.repeat(1 << 20) + a.length)"},
		{"fill", "Array(1e8).fill(0).length"},
		{"small_objects", "const a = []; for (;;) a.push({ i: a.length })"},
		{"map", "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})"},
		{"closures", "const a = []; for (;;) a.push(() => a)"},
		{"join", "Array(1e6).join('x'.repeat(1000)).length"},
		{"array_buffer", "const a = []; for (;;) a.push(new ArrayBuffer(1 << 20))"},
		{"bigint", "const b = 1n << 500000n, a = []; for (;;) a.push(b + BigInt(a.length))"},
		{"linked", "let l = null; for (;;) l = { l }"},
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			if raceEnabled && p.name != "strings" {
				t.Skip("slow under the race detector")
			}
			vm := open(t, Options{})
			vm.SetDeadline(time.Now().Add(20 * time.Second))
			_, err := eval(vm, p.src)
			wantKind(t, err, KindOutOfMemory)
			if !vm.OutOfMemory() {
				t.Error("OutOfMemory is false")
			}
		})
	}
	t.Run("caught", func(t *testing.T) {
		vm := open(t, Options{})
		want(t, vm, "try { 'x'.repeat(1e9 / 2).toUpperCase() } catch { 'caught' }", "caught")
		if !vm.OutOfMemory() {
			t.Error("OutOfMemory is false after a caught one")
		}
	})
	t.Run("throw_null_is_no_memory_error", func(t *testing.T) {
		_, err := eval(open(t, Options{}), "throw null")
		wantKind(t, err, KindThrown)
	})
	t.Run("string_from_go", func(t *testing.T) {
		vm := open(t, Options{})
		holdFunction(t, vm, "s => s.length")
		_, _, err := vm.Call(strings.Repeat("x", 32<<20))
		wantKind(t, err, KindOutOfMemory)
	})
}

func TestStackOverflow(t *testing.T) {
	programs := []struct{ name, src string }{
		{"function", "(function f() { f() })()"},
		{"caught_again", "(function f() { try { f() } catch (e) { throw e } })()"},
		{"native_callback", "(function f() { [1].map(f) })()"},
		{"sort", "(function f() { [1, 2].sort(f) })()"},
		{"to_string", "const o = { toString() { return `${o}` } }; `${o}`"},
		{"getter", "const o = { get x() { return o.x } }; o.x"},
		{"proxy", "const p = new Proxy({}, { get: (t, k) => p[k] }); p.x"},
		{"json_parse", "JSON.parse('['.repeat(100000))"},
		{"json_stringify", "let o = {}; for (let i = 0; i < 3000; i++) o = { o }; JSON.stringify(o)"},
		{"generator", "function* g() { yield* g() } [...g()]"},
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			vm := open(t, Options{MemoryLimit: 64 << 20, MaxStackSize: 2000})
			_, err := eval(vm, p.src)
			wantKind(t, err, KindStackOverflow)
			want(t, vm, "1 + 1", "2")
		})
	}
	t.Run("parser", func(t *testing.T) {
		_, err := open(t, Options{}).Compile(strings.Repeat("(", 50_000), "deep.js")
		wantKind(t, err, KindStackOverflow)
	})
	t.Run("lower_limit", func(t *testing.T) {
		vm := open(t, Options{})
		if err := vm.SetMaxStack(MinStack - 1); err == nil {
			t.Error("a limit below MinStack was taken")
		}
		depth := "let n = 0; (function f() { n++; f() })()"
		count := func() string {
			eval(vm, strings.Replace(depth, "let n", "globalThis.n", 1))
			s, err := eval(vm, "n")
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		high := count()
		if err := vm.SetMaxStack(MinStack); err != nil {
			t.Fatal(err)
		}
		if low := count(); len(low) >= len(high) {
			t.Errorf("depth %s with the lower limit, %s before", low, high)
		}
	})
}

func TestJSONDepth(t *testing.T) {
	if raceEnabled {
		t.Skip("slow under the race detector")
	}
	vm := open(t, Options{MemoryLimit: 64 << 20})
	holdFunction(t, vm, "s => JSON.stringify(JSON.parse(s))")
	for _, depth := range []int{1, 100, 5000} {
		array := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		object := strings.Repeat(`{"a":`, depth) + "1" + strings.Repeat("}", depth)
		for _, text := range []string{array, object} {
			if got, _, err := vm.Call(text); err != nil || got != text {
				t.Fatalf("depth %d: %d bytes back, %v", depth, len(got), err)
			}
		}
	}
}
