package sandbox

import (
	"testing"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// The beginnings of crashes as they were seen, shortened.
const (
	crashOfCollector = "fatal error: runtime: cannot allocate memory\n\nruntime stack:\nruntime.throw({0xc1d3eb?, 0xa6745f8d5fff?})\nruntime.persistentalloc1(0x1200, 0x26745f561220?, 0x11e0960)\n"
	crashOfParser    = "runtime: out of memory: cannot allocate 536870912-byte block (276267008 in use)\nfatal error: out of memory\n\nruntime stack:\nruntime.throw({0xc0eb12?, 0x344817356960?})\n\ngoroutine 20 gp=0x34481767c5a0 m=7 mp=0x344817356808 [copystack]:\ngithub.com/evanw/esbuild/internal/js_parser.(*parser).parsePrefix(0x34481767ea88, 0x12, 0x0, 0x0)\n"
	crashOfStack     = "runtime: goroutine stack exceeds 1000000000-byte limit\nruntime: sp=0xc0 stack=[0xc0, 0xc1]\nfatal error: stack overflow\n\nruntime stack:\nruntime.throw({0x1, 0x2})\n\ngoroutine 7 [running]:\ngithub.com/evanw/esbuild/internal/js_parser.(*parser).parseExpr(...)\n"
	crashOfEngine    = "panic: runtime error: invalid memory address\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\ngoroutine 9 [running]:\nmodernc.org/libquickjs.XJS_Call(0x1)\n"
	crashOfClosing   = "panic: runtime error: invalid memory address\n\ngoroutine 6 [running]:\ngithub.com/dsh-go/dsh/internal/qjs.(*VM).Close(0x1)\n\tvm.go:149\ngithub.com/dsh-go/dsh/selfmod/sandbox/worker.(*spares).retire(0x1, 0x2)\n"
	crashOfOurs      = "panic: assignment to entry in nil map\n\ngoroutine 9 [running]:\ngithub.com/dsh-go/dsh/selfmod/sandbox/worker.(*worker).read(0x1)\n"
	signalled        = "SIGSEGV: segmentation violation\nPC=0x47e2a1 m=0 sigcode=0\n\ngoroutine 9 [running]:\nmodernc.org/libquickjs.XJS_Call(0x1)\n"
	threadless       = "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\nPC=0x7fba685ffeec m=2 sigcode=18446744073709551610\n"
)

// TestSuspect: who is to blame for a crash.
func TestSuspect(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	type heap map[uint32]int64
	type open map[uint32]wire.Kind
	for _, c := range []struct {
		name   string
		status int
		said   string
		heaps  heap // of the mounts that are there
		open   open // calls
		want   uint32
	}{
		{"parser", 2, crashOfParser, heap{1: mb, 2: 0}, open{1: wire.Invoke, 2: wire.Load}, 2},
		{"parser_stack", 2, crashOfStack, heap{1: mb, 2: 0}, open{1: wire.Invoke, 2: wire.Load}, 2},
		{"parser_of_two", 2, crashOfParser, heap{1: 0, 2: 0}, open{1: wire.Load, 2: wire.Load}, 0},
		{"parser_without_load", 2, crashOfParser, heap{1: 0}, open{1: wire.Invoke}, 1},
		{"parser_others_hold", 2, crashOfParser, heap{1: 150 * mb, 2: 0}, open{2: wire.Load}, 0},
		{"parser_others_take", 2, crashOfParser, heap{1: 150 * mb, 2: 0}, open{1: wire.Invoke, 2: wire.Load}, 1},
		{"memory_taken", 2, crashOfCollector, heap{1: 70 * mb, 2: mb, 3: 0}, open{1: wire.Invoke, 2: wire.Invoke, 3: wire.Load}, 1},
		{"memory_held", 2, crashOfCollector, heap{1: 70 * mb, 2: mb, 3: 0}, open{2: wire.Invoke, 3: wire.Load}, 0},
		{"memory_of_two", 2, crashOfCollector, heap{1: 70 * mb, 2: 60 * mb}, open{1: wire.Invoke, 2: wire.Invoke}, 0},
		{"memory_loading", 2, crashOfCollector, heap{1: mb, 2: mb}, open{2: wire.Load}, 0},
		{"memory_alone", 2, crashOfCollector, heap{1: 0}, open{1: wire.Load}, 1},
		{"memory_idle", 2, crashOfCollector, heap{1: 0}, nil, 0},
		{"engine", 2, crashOfEngine, heap{1: 0, 2: 0}, open{1: wire.Invoke}, 1},
		{"engine_of_two", 2, crashOfEngine, heap{1: 0, 2: 0}, open{1: wire.Invoke, 2: wire.Apply}, 0},
		{"engine_closing", 2, crashOfClosing, heap{1: 0, 2: 0}, open{1: wire.Invoke}, 0},
		{"ours", 2, crashOfOurs, heap{1: 0}, open{1: wire.Invoke}, 0},
		{"signal", 2, signalled, heap{1: 0}, open{1: wire.Invoke}, 0},
		{"signal_ended_it", -1, "", heap{1: 0}, open{1: wire.Invoke}, 0},
		{"no_thread", 2, threadless, heap{1: 0, 2: 0}, open{1: wire.Invoke}, 0},
		{"silent", 2, "", heap{1: 0}, open{1: wire.Invoke}, 0},
		{"gave_up", 1, crashOfEngine, heap{1: 0}, open{1: wire.Invoke}, 0},
		{"closing", 2, crashOfEngine, heap{1: 0}, open{1: wire.Unload}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := &process{cfg: Config{WorkerMemoryMB: 256}, calls: map[uint64]*call{}, vms: map[uint32]*VM{}, tail: &tail{}}
			for num, size := range c.heaps {
				p.vms[num] = &VM{num: num, counts: Counters{Heap: size}}
			}
			for num, kind := range c.open {
				p.calls[uint64(num)] = &call{kind: kind, vm: p.vms[num]}
			}
			if _, err := p.tail.Write([]byte(c.said)); err != nil {
				t.Fatal(err)
			}
			if got := p.suspectLocked(c.status); got != c.want {
				t.Errorf("mount %d is to blame, want %d", got, c.want)
			}
		})
	}
}
