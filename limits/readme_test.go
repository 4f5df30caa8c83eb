package limits_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
)

// TestReadmeTable: the README's table of limits is this package's.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := [][2]string{
		{"time inside the engine, each entry", fmt.Sprintf("%v", limits.VMTimeout)},
		{"time of a whole entry, promises included", fmt.Sprintf("%v; a tool's own `timeoutMs` may raise it to %v", limits.CallTimeout, limits.MaxCallTimeout)},
		{"memory of a plugin", fmt.Sprintf("%d MiB", limits.VMMemoryMB)},
		{"memory of the worker (Linux)", fmt.Sprintf("%d MiB more than at its start", limits.WorkerMemoryMB)},
		{"source; its nesting", fmt.Sprintf("%d KiB; %d", limits.Source>>10, limits.SourceNesting)},
		{"arguments, result of a call; their nesting", fmt.Sprintf("%d MiB each; %d", limits.Arguments>>20, limits.Depth)},
		{"plugins mounted", fmt.Sprint(limits.Mounts)},
		{"tools, listeners, services, timers of a plugin", fmt.Sprintf("%d each", limits.Tools)},
		{"calls in flight into a plugin; abandoned ones", fmt.Sprintf("%d; %d, then it is failed", limits.CallsInFlight, limits.AbandonedCalls)},
		{"events waiting for a plugin", fmt.Sprintf("%d, more are dropped and counted", limits.EventQueue)},
		{"time to stop, whatever hangs", fmt.Sprintf("%v", limits.Shutdown)},
	}
	var want strings.Builder
	want.WriteString("| | Limit |\n|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&want, "| %s | %s |\n", r[0], r[1])
	}
	if !strings.Contains(string(text), want.String()) {
		t.Errorf("README.md does not hold this table; put it there:\n%s", want.String())
	}
}
