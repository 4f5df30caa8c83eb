package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// Config bounds a Sandbox. The zero value of a field is its default in package limits.
type Config struct {
	// Exe is the worker's executable; empty: the running one. Args are its
	// arguments; nil: "__worker".
	Exe  string
	Args []string

	VMTimeout      time.Duration
	CallTimeout    time.Duration
	MaxCallTimeout time.Duration
	MemoryMB       int
	WorkerMemoryMB int

	// Stderr receives what the worker itself writes there (never what mounts
	// print), cut to its first lines; nil: dropped.
	Stderr io.Writer
}

// withDefaults fills absent fields and refuses values out of their range.
func (c Config) withDefaults() (Config, error) {
	for _, d := range []struct {
		name          string
		v             *time.Duration
		def, min, max time.Duration
	}{
		{"vmTimeoutMs", &c.VMTimeout, limits.VMTimeout, limits.VMTimeoutMin, limits.VMTimeoutMax},
		{"callTimeoutMs", &c.CallTimeout, limits.CallTimeout, limits.CallTimeoutMin, limits.CallTimeoutMax},
		{"maxCallTimeoutMs", &c.MaxCallTimeout, limits.MaxCallTimeout, limits.CallTimeoutMin, limits.MaxCallTimeoutMax},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if *d.v < d.min || *d.v > d.max {
			return c, fmt.Errorf("%s must be from %s to %s, got %s", d.name, Millis(d.min), Millis(d.max), Millis(*d.v))
		}
	}
	if c.WorkerMemoryMB == 0 { // room for one mount that uses all of its own, and for the rest
		c.WorkerMemoryMB = min(max(limits.WorkerMemoryMB, 2*c.MemoryMB), limits.WorkerMemoryMBMax)
	}
	for _, d := range []struct {
		name          string
		v             *int
		def, min, max int
	}{
		{"memoryMB", &c.MemoryMB, limits.VMMemoryMB, limits.VMMemoryMBMin, limits.VMMemoryMBMax},
		{"workerMemoryMB", &c.WorkerMemoryMB, limits.WorkerMemoryMB, limits.WorkerMemoryMBMin, limits.WorkerMemoryMBMax},
	} {
		if *d.v == 0 {
			*d.v = d.def
		}
		if *d.v < d.min || *d.v > d.max {
			return c, fmt.Errorf("%s must be from %d to %d MiB, got %d", d.name, d.min, d.max, *d.v)
		}
	}
	if c.MemoryMB > c.WorkerMemoryMB {
		return c, fmt.Errorf("memoryMB (%d) must not be above workerMemoryMB (%d): the worker holds all mounts", c.MemoryMB, c.WorkerMemoryMB)
	}
	if c.MaxCallTimeout < c.CallTimeout {
		return c, fmt.Errorf("maxCallTimeoutMs (%s) must not be below callTimeoutMs (%s)", Millis(c.MaxCallTimeout), Millis(c.CallTimeout))
	}
	if c.Args == nil {
		c.Args = []string{"__worker"}
	}
	return c, nil
}

// Millis prints a limit as every message does: in whole milliseconds, "300 ms".
func Millis(d time.Duration) string { return fmt.Sprintf("%d ms", d.Milliseconds()) }

// Ask is what a mount asks of its host.
type Ask struct {
	Run     uint32 // the run of apply that asks; the host refuses those that are over
	Verb    string
	Payload json.RawMessage
}

// Host answers one mount. See the package comment for goroutines and locks.
type Host interface {
	// Sync answers while the mount's VM waits: of model code it may wait only for
	// what answers at once and belongs to the call that asks.
	// The context carries the chain of the call that asks. An empty answer is
	// undefined; an error is thrown at the author's line.
	Sync(ctx context.Context, a Ask) (json.RawMessage, error)
	// Async answers whenever it likes; the VM goes on.
	Async(ctx context.Context, a Ask) (json.RawMessage, error)
	// Send takes a one-way message in the order in which it was sent, before
	// the result of the call that sent it. It must not block.
	Send(ctx context.Context, a Ask)
	// Console takes one printed line. It must not block.
	Console(level, text string)
	// Late takes an error that no call carries. A withdrawn one was handled
	// after all; id tells which.
	Late(id uint64, f *wire.Fault, withdrawn bool)
	// Died tells that the VM is gone, once: with its worker, or because it was
	// spent. Guilty says whether this mount is to blame.
	Died(err *Error, guilty bool)
}
