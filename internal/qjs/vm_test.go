package qjs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open returns a VM that the test closes, with a small heap.
func open(t testing.TB, o Options) *VM {
	t.Helper()
	if o.MemoryLimit == 0 {
		o.MemoryLimit = 16 << 20
	}
	vm, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	return vm
}

// eval compiles and runs src and returns its completion value as text.
func eval(vm *VM, src string) (string, error) {
	code, err := vm.Compile(src, "test.js")
	if err != nil {
		return "", err
	}
	v, err := vm.RunBytecode(code)
	if err != nil {
		return "", err
	}
	defer v.Free()
	text, _ := v.Text()
	return text, nil
}

// want evaluates src and compares its text.
func want(t testing.TB, vm *VM, src, text string) {
	t.Helper()
	if got, err := eval(vm, src); err != nil || got != text {
		t.Fatalf("%s = %q, %v; want %q", src, got, err, text)
	}
}

// wantKind asserts the Kind of err.
func wantKind(t testing.TB, err error, kind Kind) {
	t.Helper()
	if k, ok := KindOf(err); !ok || k != kind {
		t.Fatalf("error %v of kind %v; want kind %v", err, k, kind)
	}
}

// holdFunction runs src, an expression, and holds its function.
func holdFunction(t testing.TB, vm *VM, src string) {
	t.Helper()
	if _, err := eval(vm, "__hold("+src+")"); err != nil {
		t.Fatal(err)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		o    Options
		want string
	}{
		{"memory_small", Options{MemoryLimit: 1 << 20}, "memory limit of 1048576 bytes is below"},
		{"memory_negative", Options{MemoryLimit: -1}, "memory limit of -1"},
		{"stack_small", Options{MaxStackSize: 1}, "stack limit of 1 slots"},
		{"stack_large", Options{MaxStackSize: 1 << 20}, "stack limit of 1048576 slots"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if vm, err := New(c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("New = %v, %v; want an error with %q", vm, err, c.want)
			}
		})
	}
	vm, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	vm.Close()
}

func TestClose(t *testing.T) {
	vm := open(t, Options{})
	holdFunction(t, vm, "() => {}")
	v, err := eval2(vm, "({})")
	if err != nil {
		t.Fatal(err)
	}
	if size, count := vm.Memory(); size < 100<<10 || count == 0 {
		t.Errorf("Memory = %d, %d", size, count)
	}
	vm.Close()
	vm.Close()
	v.Free()
	vm.Interrupt()
	vm.SetDeadline(time.Now())
	if _, _, err := vm.Call("x"); !errors.Is(err, ErrClosed) {
		t.Errorf("Call = %v", err)
	}
	if _, err := vm.Compile("1", "f"); !errors.Is(err, ErrClosed) {
		t.Errorf("Compile = %v", err)
	}
	if _, _, err := vm.RunJobs(1); !errors.Is(err, ErrClosed) {
		t.Errorf("RunJobs = %v", err)
	}
	if err := vm.SetMaxStack(1000); !errors.Is(err, ErrClosed) {
		t.Errorf("SetMaxStack = %v", err)
	}
	if size, count := vm.Memory(); size != 0 || count != 0 {
		t.Errorf("Memory after Close = %d, %d", size, count)
	}
	if list, more := vm.Unhandled(); list != nil || more != 0 {
		t.Errorf("Unhandled after Close = %v, %d", list, more)
	}
	if _, ok := v.Text(); ok || v.IsFunction() || vm.PendingJobs() || vm.StackUsed() != 0 {
		t.Error("something answers after Close")
	}
	if _, ok := live.Load(vm.id); ok {
		t.Error("the closed VM is still registered")
	}
}

func eval2(vm *VM, src string) (Value, error) {
	code, err := vm.Compile(src, "test.js")
	if err != nil {
		return Value{}, err
	}
	return vm.RunBytecode(code)
}

func TestCloseInsideHost(t *testing.T) {
	vm := open(t, Options{})
	vm.SetHost(func(string, []string) (string, bool, error) {
		vm.Close()
		return "", false, nil
	})
	_, err := eval(vm, "try { __host('x') } finally { for (;;); }")
	wantKind(t, err, KindInterrupted)
	if _, err := eval(vm, "1"); !errors.Is(err, ErrClosed) {
		t.Fatalf("after the entry: %v; want ErrClosed", err)
	}
}

// TestManyVMs opens and closes VMs in all states; neither memory nor a
// process-wide table may grow.
func TestManyVMs(t *testing.T) {
	n := 2000
	if raceEnabled {
		n = 60
	}
	code, err := open(t, Options{}).Compile(`
		__hold(x => x);
		Promise.reject(1);
		globalThis.o = {f() { return this }}; o.self = o;
		({})`, "m.js")
	if err != nil {
		t.Fatal(err)
	}
	one := func() {
		vm, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		vm.SetHost(func(op string, _ []string) (string, bool, error) { return op, true, nil })
		if _, err := vm.RunBytecode(code); err != nil { // the Value is left to Close
			t.Fatal(err)
		}
		vm.Unhandled()
		vm.Close()
	}
	for range n / 10 {
		one()
	}
	before := rss(t)
	for range n {
		one()
	}
	if after := rss(t); after > before+8<<20 {
		t.Errorf("resident memory grew from %d to %d KiB over %d VMs", before>>10, after>>10, n)
	}
	count := 0
	live.Range(func(any, any) bool { count++; return true })
	if count > 1 {
		t.Errorf("%d VMs are still registered", count)
	}
}

// rss returns the resident memory after a collection; 0 where it is not known.
func rss(t *testing.T) int {
	debug.FreeOSMemory()
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int
	if _, err := fmt.Sscan(string(b), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

func TestParallelVMs(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			vm, err := New(Options{})
			if err != nil {
				t.Error(err)
				return
			}
			defer vm.Close()
			vm.SetHost(func(op string, args []string) (string, bool, error) { return op + args[0], true, nil })
			rounds := 50
			if raceEnabled {
				rounds = 3
			}
			for j := range rounds {
				src := fmt.Sprintf("let s = 0; for (let k = 0; k < 1000; k++) s += %d; __host('h', s)", i)
				if got, err := eval(vm, "{"+src+"}"); err != nil || got != fmt.Sprintf("h%d", i*1000) {
					t.Errorf("VM %d, round %d: %q, %v", i, j, got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestManyGoroutines uses one VM from many goroutines in turn.
func TestManyGoroutines(t *testing.T) {
	vm := open(t, Options{})
	holdFunction(t, vm, "(() => { let n = 0; return () => ++n })()")
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			if _, _, err := vm.Call(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got, _, err := vm.Call(); got != "101" || err != nil {
		t.Fatalf("Call = %q, %v; want 101", got, err)
	}
}

// TestEnginePanic tears the engine on purpose; the VM must be broken, not the
// process.
func TestEnginePanic(t *testing.T) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	vm := open(t, Options{})
	vm.SetHost(func(op string, _ []string) (string, bool, error) {
		err := vm.guard(func() error {
			*(*byte)(pointer(0xffffffff)) = 1 // faults as a bad write of the engine does
			return nil
		})
		return "", false, err
	})
	_, err := eval(vm, "try { __host('x') } catch {} finally { for (;;); }")
	var p *Panic
	if !errors.As(err, &p) || p.Host || len(p.Stack) == 0 || !strings.Contains(p.Error(), "engine panicked") {
		t.Fatalf("error %v; want a *Panic of the engine", err)
	}
	if !vm.Broken() {
		t.Error("the VM is not broken")
	}
	if _, err := eval(vm, "1"); !errors.Is(err, ErrBroken) {
		t.Errorf("after the panic: %v; want ErrBroken", err)
	}
	vm.Close()
	if _, err := eval(vm, "1"); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v; want ErrClosed", err)
	}
}

// TestGoexit ends the goroutine inside a host function.
func TestGoexit(t *testing.T) {
	vm := open(t, Options{})
	vm.SetHost(func(string, []string) (string, bool, error) {
		runtime.Goexit()
		return "", false, nil
	})
	var wg sync.WaitGroup
	wg.Go(func() { eval(vm, "__host('x')") })
	wg.Wait()
	if _, err := eval(vm, "1"); !errors.Is(err, ErrBroken) {
		t.Errorf("after Goexit: %v; want ErrBroken", err)
	}
}

// A trimmed VM keeps its state and its limits; inside an entry and after Close
// nothing happens.
func TestTrim(t *testing.T) {
	vm := open(t, Options{MaxStackSize: 500})
	const deep = "var n = 0; (function f() { n++; f() })()"
	want(t, vm, "var kept = { a: [1, 2] }; __hold((op) => op + __host('x')); 1", "1")
	overflow := func() string {
		_, err := eval(vm, deep)
		wantKind(t, err, KindStackOverflow)
		n, err := eval(vm, "String(n)")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := overflow()
	vm.Trim()
	if after := overflow(); after != before {
		t.Errorf("recursion ends after %s calls, before it did after %s", after, before)
	}
	vm.SetHost(func(string, []string) (string, bool, error) {
		vm.Trim()
		return "inside", true, nil
	})
	if got, _, err := vm.Call("trim "); err != nil || got != "trim inside" {
		t.Errorf("got %q, %v", got, err)
	}
	vm.Trim()
	vm.Trim()
	want(t, vm, "JSON.stringify(kept)", `{"a":[1,2]}`)
	vm.Close()
	vm.Trim()
}
