package worker

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/prelude"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/lock"
)

// Main is the whole of the process "dsh __worker [--memory-mb N]": it locks
// itself down, then serves standard input and output until the host is gone. It
// returns the exit status: 0 after Quit or the end of input, 1 after a failure,
// 2 for wrong arguments. Call it before anything else of the program runs, with
// the arguments after "__worker", and exit with what it returns.
func Main(args []string) int { return run(args, prelude.Core(), prelude.Hash(), prelude.Parts()...) }

// maxProcs is how many threads run JavaScript at one time, at most.
const maxProcs = 8

// run is Main with a prelude of the caller's.
func run(args []string, source, hash string, parts ...prelude.Part) int {
	// Keep both files: when os.Stdout is replaced, nothing else refers to the
	// old one and its finalizer would close the descriptor.
	in, out := os.Stdin, os.Stdout
	os.Stdout = os.Stderr
	defer runtime.KeepAlive(in)
	defer runtime.KeepAlive(out)
	flags := flag.NewFlagSet("__worker", flag.ContinueOnError)
	memory := flags.Int("memory-mb", limits.WorkerMemoryMB, "MiB of memory beyond the size at start")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *memory < limits.WorkerMemoryMBMin || *memory > limits.WorkerMemoryMBMax || flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "dsh worker: --memory-mb must be from %d to %d\n", limits.WorkerMemoryMBMin, limits.WorkerMemoryMBMax)
		return 2
	}
	// With one, a loop in one VM holds up the reader and every other VM for whole
	// time slices of the scheduler (measured: 40 ms); beyond a few, nothing gains.
	runtime.GOMAXPROCS(max(2, min(runtime.NumCPU(), maxProcs)))
	debug.SetMemoryLimit(int64(*memory) << 20 / 2)
	qjs.OnShortage(lock.GiveUp)
	err := Serve(context.Background(), Options{
		In: in, Out: out, Prelude: source, Parts: parts, PreludeHash: hash, Lock: lock.Apply(*memory),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "dsh worker: %v\n", err)
		return 1
	}
	return 0
}
