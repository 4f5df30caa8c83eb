package qjs

import (
	"strings"
	"testing"
)

// regionCount is how many pages of regions there are in the process.
func regionCount() (n int) {
	regions.Range(func(any, any) bool { n++; return true })
	return n
}

// A region comes with its VM and goes with it, also when the VM is broken.
func TestCellsGoWithTheVM(t *testing.T) {
	before := regionCount()
	vm := open(t, Options{})
	if got := regionCount() - before; got != regionPages {
		t.Fatalf("a VM has %d pages, want %d", got, regionPages)
	}
	if vm.cells.next == vm.cells.region {
		t.Error("a fresh VM uses no cell")
	}
	other := open(t, Options{})
	want(t, other, "[1, 2].join()", "1,2")
	vm.broken = true
	vm.Close()
	vm.Close()
	want(t, other, "[3, 4].join()", "3,4")
	other.Close()
	if got := regionCount(); got != before {
		t.Errorf("%d pages are left", got-before)
	}
}

// Blocks around the size of a cell keep what is in them while they are made, grow,
// shrink and go, with cells and, when those are used up, without.
func TestCellsHoldTheirContents(t *testing.T) {
	vm := open(t, Options{})
	const script = `
		const kept = [];
		let sum = 0;
		for (let round = 0; round < 40; round++) {
			for (let n = 2900; n < 4300; n += 97) {
				const bytes = new Uint8Array(n).fill(round + n);
				const text = String.fromCharCode(97 + n % 26).repeat(n);
				const grown = [];
				for (let i = 0; i < n / 8; i++) grown.push(i + round);
				kept.push({ n, round, bytes, text, grown });
				if (kept.length > 60) kept.splice((n * 7 + round) % 40, 1);
			}
		}
		for (const k of kept) {
			const letter = String.fromCharCode(97 + k.n % 26);
			if (!k.bytes.every((b) => b === (k.round + k.n) % 256)) throw new Error('bytes of ' + k.n);
			if (k.text !== letter.repeat(k.n)) throw new Error('text of ' + k.n);
			if (!k.grown.every((v, i) => v === i + k.round)) throw new Error('array of ' + k.n);
			sum++;
		}
		sum > 50`
	size, count := vm.Memory()
	for range 3 {
		want(t, vm, "{"+script+"}", "true")
	}
	if _, more := vm.Memory(); more < count {
		t.Errorf("%d blocks, before there were %d", more, count)
	}
	if after, _ := vm.Memory(); after > size+1<<20 {
		t.Errorf("the heap grew from %d to %d", size, after)
	}
}

// The memory limit counts cells, and a VM whose cells are used up goes on.
func TestCellsAreBounded(t *testing.T) {
	vm := open(t, Options{MemoryLimit: MinMemory})
	_, err := eval(vm, "const all = []; for (;;) all.push('"+strings.Repeat("x", 10)+"'.repeat(380).split('').join('-'))")
	wantKind(t, err, KindOutOfMemory)
	if size, _ := vm.Memory(); size > MinMemory {
		t.Errorf("the heap takes %d bytes, the limit is %d", size, MinMemory)
	}
	if free := vm.cells.take(); free != 0 {
		vm.cells.put(free)
		if again := vm.cells.take(); again != free {
			t.Errorf("took %x, want %x", again, free)
		}
	}
}
