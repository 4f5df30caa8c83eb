package qjs

import "testing"

// TestGrown: a growing heap is told of while the entry runs, at every doubling,
// and a small one never.
func TestGrown(t *testing.T) {
	t.Parallel()
	vm := open(t, Options{MemoryLimit: 256 << 20})
	var told []int64
	vm.SetGrown(func(size int64) { told = append(told, size) })
	run := func(source string) []int64 {
		t.Helper()
		told = nil
		code, err := vm.Compile(source, "grown.js")
		if err != nil {
			t.Fatal(err)
		}
		if err := vm.EvalBytecode(code); err != nil {
			t.Fatal(err)
		}
		return told
	}
	if got := run("let small = []; for (let i = 0; i < 1e5; i++) small.push(i)"); len(got) > 0 {
		t.Errorf("told of %v", got)
	}
	got := run("globalThis.kept = []; for (let i = 0; i < 1200; i++) kept.push('x'.repeat(1e5) + i)")
	if len(got) < 3 || len(got) > 4 || got[0] < 16<<20 {
		t.Errorf("told of %v", got)
	}
	for i, size := range got[1:] {
		if size < 2*got[i] {
			t.Errorf("told of %v", got)
		}
	}
	if got := run("for (let i = 0; i < 100; i++) kept.push('x'.repeat(1e5) + i)"); len(got) > 0 {
		t.Errorf("told again of %v", got)
	}
}
