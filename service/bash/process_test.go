//go:build unix

package bash_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
)

func await(t testing.TB, p bash.Process) bash.RunResult {
	t.Helper()
	return must(p.Done()(within(t, time.Minute)))(t)
}

func TestStart(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		use, _ := r.plugin("dyn-1")
		fifo, goOn := newFifo(t), newFifo(t)
		ctx, cancel := context.WithCancel(context.Background())
		p := must(use.Start(ctx, line("echo one; echo two >&2; echo > "+fifo.path+"; read x <> "+goOn.path+"; printf three; exit 4"), nil))(t)
		cancel() // of the start only
		fifo.await(t)
		if p.Status() != bash.Running || p.ExitCode() != nil || p.Signal() != nil {
			t.Errorf("status %s", p.Status())
		}
		seen := must(p.ReadOutput())(t).Delta
		goOn.send(t)
		got := await(t, p)
		exitCode(t, got, 4)
		last := must(p.ReadOutput())(t)
		seen += last.Delta
		for _, part := range []string{"one\n", "two\n", "three"} {
			if strings.Count(seen, part) != 1 {
				t.Errorf("read %q, want %q once", seen, part)
			}
		}
		if p.Status() != bash.Completed || *p.ExitCode() != 4 || last.Lossy || got.TimeoutMs != 0 || got.Stdout.Text != "one\nthree" {
			t.Errorf("status %s, %+v", p.Status(), got)
		}
		if killed := must(p.Kill())(t); killed {
			t.Error("killed what had ended")
		}
		if again := must(p.ReadOutput())(t); again.Delta != "" {
			t.Errorf("read %q again", again.Delta)
		}
	})
}

func TestKill(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		use, _ := r.plugin("dyn-1")
		p := must(use.Start(within(t, time.Minute), line("sleep 1000"), nil))(t)
		if !must(p.Kill())(t) || must(p.Kill())(t) {
			t.Error("kill tells whether it is the first")
		}
		got := await(t, p)
		signaled(t, got, "SIGTERM")
		if p.Status() != bash.Killed || *p.Signal() != "SIGTERM" || !got.Aborted {
			t.Errorf("status %s, %+v", p.Status(), got)
		}
	})
}

func TestKilledByItself(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	p := must(use.Start(within(t, time.Minute), line("kill -9 $$"), nil))(t)
	got := await(t, p)
	signaled(t, got, "SIGKILL")
	if p.Status() != bash.Killed || got.Aborted || got.TimedOut {
		t.Errorf("status %s, %+v", p.Status(), got)
	}
}

func TestStartWithTimeout(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	ms := 100
	p := must(use.Start(within(t, time.Minute), line("sleep 1000"), &bash.RunOptions{TimeoutMs: &ms}))(t)
	if got := await(t, p); !got.TimedOut || got.Aborted || got.TimeoutMs != 100 {
		t.Errorf("%+v", got)
	}
}

func TestOutputIsLossy(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	p := must(use.Start(within(t, time.Minute), line("yes é | head -c 999999; echo END"), nil))(t)
	await(t, p)
	o := must(p.ReadOutput())(t)
	if !o.Lossy || !strings.HasSuffix(o.Delta, "é\nEND\n") || len(o.Delta) < limits.BashOutput-4 || len(o.Delta) > limits.BashOutput || strings.Contains(o.Delta, "\uFFFD") {
		t.Errorf("lossy %v, %d bytes", o.Lossy, len(o.Delta))
	}
	if info, err := os.Stat(o.StdoutSpillPath); err != nil || info.Size() != 1_000_003 || o.StderrSpillPath != "" {
		t.Errorf("spilled to %v, %v; stderr to %q", info, err, o.StderrSpillPath)
	}
}

// A character that comes in two parts is one in the output.
func TestOutputKeepsCharactersWhole(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	fifo, goOn := newFifo(t), newFifo(t)
	p := must(use.Start(within(t, time.Minute), line(`printf 'a\xc3'; echo > `+fifo.path+`; read x <> `+goOn.path+`; printf '\xa9b\xc3'`), nil))(t)
	fifo.await(t)
	first := must(p.ReadOutput())(t).Delta
	goOn.send(t)
	await(t, p)
	if got := first + must(p.ReadOutput())(t).Delta; got != "aéb\uFFFD" {
		t.Errorf("read %q", got)
	}
}

func TestUnmountEndsWhatRuns(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		use, f := r.plugin("dyn-1")
		fifo := newFifo(t)
		p := must(use.Start(within(t, time.Minute), line("exec 9>"+fifo.path+"; sleep 1000 & echo >&9; sleep 1000"), nil))(t)
		fifo.await(t)
		var labels []string
		for _, e := range f.Effects() {
			labels = append(labels, e.Label)
		}
		if !strings.HasPrefix(labels[len(labels)-1], `bash.start("exec 9>`) {
			t.Errorf("effects %q", labels)
		}
		dispose(t, f)
		fifo.closed(t)
		if got := await(t, p); !got.Aborted || p.Status() != bash.Killed {
			t.Errorf("%+v", got)
		}
	})
}

// What has ended is no effect any more.
func TestEndedCommandsLeaveNoEffects(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, f := r.plugin("dyn-1")
	for range 3 {
		must(use.Run(within(t, time.Minute), line("true"), nil))(t)
	}
	if n := len(f.Effects()); n != 1 { // for its output files
		t.Errorf("%d effects: %v", n, f.Effects())
	}
}

func TestServiceEndsWhatRuns(t *testing.T) {
	r := newRig(t, bash.Config{})
	service := must(bash.Service.Use(r.root))(t)
	p := must(service.Start(within(t, time.Minute), r.root, line("sleep 1000")))(t)
	dispose(t, r.bash)
	if p.Status() != bash.Killed {
		t.Errorf("status %s", p.Status())
	}
	if _, err := service.Start(within(t, time.Minute), r.root, line("true")); err == nil {
		t.Error("started after the end of the service")
	}
}
