package qjs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// unhandled runs all jobs and returns the reasons without a handler.
func unhandled(t *testing.T, vm *VM) (texts []string) {
	t.Helper()
	if _, more, err := vm.RunJobs(10_000); more || err != nil {
		t.Fatalf("RunJobs: %v, %v", more, err)
	}
	list, more := vm.Unhandled()
	if more != 0 {
		t.Errorf("%d more rejections", more)
	}
	for _, r := range list {
		if r.Interrupted {
			t.Errorf("%v is marked as interrupted", r.Error)
		}
		texts = append(texts, strings.TrimPrefix(r.Error.Name+": "+r.Error.Message, ": "))
	}
	return texts
}

func TestUnhandled(t *testing.T) {
	const boom = "const boom = async () => { throw new Error('boom') };"
	for _, c := range []struct {
		name, src string
		want      []string
	}{
		{"floating_async", "boom()", []string{"Error: boom"}},
		{"chain_without_catch", "boom().then(() => 1).then(() => 2)", []string{"Error: boom"}},
		{"finally_only", "boom().finally(() => {})", []string{"Error: boom"}},
		{"executor", "new Promise(() => { throw new TypeError('in executor') })", []string{"TypeError: in executor"}},
		{"thenable", "Promise.resolve({ then(_, no) { no(new Error('thenable')) } })", []string{"Error: thenable"}},
		{"subclass", "(class P extends Promise {}).reject(new Error('sub'))", []string{"Error: sub"}},
		{"null", "Promise.reject(null)", []string{"null"}},
		{"async_generator", "(async function* () { throw new Error('gen') })().next()", []string{"Error: gen"}},
		{"two", "Promise.reject('b'); Promise.reject('a')", []string{"b", "a"}},
		{"in_job", "Promise.resolve().then(() => { throw new Error('job') })", []string{"Error: job"}},
		{"caught_same_tick", "boom().catch(() => {})", nil},
		{"caught_later", "const p = boom(); (async () => { for (let i = 0; i < 5; i++) await 0; p.catch(() => {}) })()", nil},
		{"try_await", "(async () => { try { await boom() } catch {} })()", nil},
		{"all_second", "Promise.all([boom(), boom()]).catch(() => {})", nil},
		{"race_loser", "Promise.race([Promise.resolve(1), boom()])", nil},
		{"settled", "Promise.allSettled([boom(), boom()])", nil},
		{"then_two", "boom().then(null, () => {})", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := open(t, Options{})
			if _, err := eval(vm, boom+c.src); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, unhandled(t, vm)); diff != "" {
				t.Error(diff)
			}
			if again := unhandled(t, vm); again != nil {
				t.Errorf("reported again: %v", again)
			}
			if late := vm.HandledLate(); late != nil {
				t.Errorf("late handlers: %v", late)
			}
		})
	}
}

func TestUnhandledPlace(t *testing.T) {
	vm := open(t, Options{})
	if _, err := eval(vm, "\n(async function f() {\n  throw new Error('x') })()"); err != nil {
		t.Fatal(err)
	}
	list, _ := vm.Unhandled()
	if len(list) != 1 || list[0].Error.Line != 3 || !strings.Contains(list[0].Error.Stack, "at f (test.js:3:") {
		t.Fatalf("rejections %+v; want one with its place", list)
	}
}

func TestHandledLate(t *testing.T) {
	vm := open(t, Options{})
	if _, err := eval(vm, "globalThis.p = Promise.reject(1); globalThis.q = Promise.reject(2); 1"); err != nil {
		t.Fatal(err)
	}
	list, _ := vm.Unhandled()
	if len(list) != 2 {
		t.Fatalf("rejections %+v; want two", list)
	}
	if _, err := eval(vm, "q.catch(() => {}); 1"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]uint64{list[1].ID}, vm.HandledLate()); diff != "" {
		t.Error(diff)
	}
	if late := vm.HandledLate(); late != nil {
		t.Errorf("told twice: %v", late)
	}
}

// TestRejectionBounds rejects more promises than are watched and reported.
func TestRejectionBounds(t *testing.T) {
	vm := open(t, Options{MemoryLimit: 64 << 20})
	const n = MaxTracked + 500
	if _, err := eval(vm, fmt.Sprintf("globalThis.a = []; for (let i = 0; i < %d; i++) a.push(Promise.reject(i)); 1", n)); err != nil {
		t.Fatal(err)
	}
	list, more := vm.Unhandled()
	if len(list) != MaxUnhandled || more != n-MaxUnhandled || list[0].Error.Message != "0" {
		t.Fatalf("%d rejections and %d more", len(list), more)
	}
	for round := range 3 { // older reports are forgotten, their late handlers ignored
		if _, err := eval(vm, fmt.Sprintf("for (let i = 0; i < %d; i++) Promise.reject(i); 1", MaxUnhandled)); err != nil {
			t.Fatal(err)
		}
		if list, more := vm.Unhandled(); len(list) != MaxUnhandled || more != 0 {
			t.Fatalf("round %d: %d rejections and %d more", round, len(list), more)
		}
	}
	if got := len(vm.tracker.promises); got > MaxUnhandled {
		t.Errorf("%d promises are still watched", got)
	}
	if _, err := eval(vm, "for (const p of a) p.catch(() => {}); 1"); err != nil {
		t.Fatal(err)
	}
	if late := vm.HandledLate(); late != nil {
		t.Errorf("late handlers: %v", late)
	}
}

// TestHandledInOneEntry rejects and handles without end: nothing may pile up.
func TestHandledInOneEntry(t *testing.T) {
	if raceEnabled {
		t.Skip("slow under the race detector")
	}
	vm := open(t, Options{MemoryLimit: 64 << 20})
	if _, err := eval(vm, fmt.Sprintf("for (let i = 0; i < %d; i++) Promise.reject(i).catch(() => {}); 1", 5*MaxTracked)); err != nil {
		t.Fatal(err)
	}
	if got := len(vm.tracker.order); got > 2*MaxTracked {
		t.Errorf("%d handled promises are remembered", got)
	}
	if list, more := vm.Unhandled(); list != nil || more != 0 {
		t.Errorf("Unhandled = %v, %d", list, more)
	}
}

// TestReasonGetters reads a reason whose getter does not end.
func TestReasonGetters(t *testing.T) {
	vm := open(t, Options{})
	if _, err := eval(vm, "Promise.reject({ get message() { for (;;); } }); Promise.reject({ get message() { throw 1 } }); 1"); err != nil {
		t.Fatal(err)
	}
	vm.SetDeadline(time.Now().Add(20 * time.Millisecond))
	list, _ := vm.Unhandled()
	if len(list) != 2 {
		t.Fatalf("rejections %+v; want two", list)
	}
	vm.SetDeadline(time.Time{})
	want(t, vm, "1 + 1", "2")
}
