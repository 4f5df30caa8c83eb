//go:build unix

package shell

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestTasksEndWithTheAgent: nothing is orphaned, nobody is told.
func TestTasksEndWithTheAgent(t *testing.T) {
	r := newRig(t)
	r.background("t1", "(sleep 301 & echo child $!; wait) & echo pid $$; wait")
	r.until("t1", "pid ")
	out := text(r.call("task_output", `{"task_id":"t1","wait_ms":50}`))
	if err := r.agent.Close(r.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(out) {
		_, number, ok := strings.Cut(strings.TrimSpace(line), " ")
		pid, err := strconv.Atoi(number)
		if !ok || err != nil {
			continue
		}
		n++
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("process %d: %v", pid, err)
		}
	}
	if n != 2 {
		t.Fatalf("%d processes in %q", n, out)
	}
	if told := r.told(); told != nil {
		t.Errorf("told %q", told)
	}
	if left := r.tasks.List(r.agent.Scope()); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
}
