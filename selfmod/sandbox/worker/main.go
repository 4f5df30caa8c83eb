package worker

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker/lock"
)

// run is Main with a prelude of the caller's.
func run(args []string, source, hash string) int {
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
	debug.SetMemoryLimit(int64(*memory) << 20 / 2)
	err := Serve(context.Background(), Options{
		In: in, Out: out, Prelude: source, PreludeHash: hash, Lock: lock.Apply(*memory),
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "dsh worker: %v\n", err)
		return 1
	}
	return 0
}
