//go:build unix

package bash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-go/dsh/limits"
)

// group is a shell with its process group, without a supervisor.
type group struct {
	cmd *exec.Cmd

	mu    sync.Mutex
	last  *time.Timer // of SIGKILL
	until time.Time   // when it comes
	ended bool
}

var _ child = (*group)(nil)

func startGroup(shell string, s Spec, env []string, streams [3]*os.File) (child, error) {
	cmd := exec.Command(shell, "-c", s.Command)
	cmd.Dir, cmd.Env = s.Workdir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the shell: %w", err)
	}
	return &group{cmd: cmd}, nil
}

func (g *group) stop() { g.ask(limits.BashKillAfter) }

func (g *group) hurry() { g.ask(limits.BashLost) }

// ask has it end, by SIGKILL after patience at the latest.
func (g *group) ask(patience time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	until := time.Now().Add(patience)
	switch {
	case g.ended:
	case g.last == nil:
		g.signal(syscall.SIGTERM)
		g.signal(syscall.SIGCONT)
		g.until, g.last = until, time.AfterFunc(patience, g.kill)
	case until.Before(g.until):
		g.until = until
		g.last.Reset(patience)
	}
}

func (g *group) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		g.signal(syscall.SIGKILL)
	}
}

// signal signals the group. Its number is that of the shell, which belongs to
// nobody else as long as the shell or a member lives.
func (g *group) signal(sig syscall.Signal) { _ = syscall.Kill(-g.cmd.Process.Pid, sig) }

func (g *group) wait() (ending, error) {
	err := g.cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return ending{}, fail(CodeFailed, "the command could not be waited for: %v", reason(err))
	}
	if ws, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ending{signal: signalName(ws.Signal())}, nil
	}
	return ending{code: g.cmd.ProcessState.ExitCode()}, nil
}

func (g *group) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	g.ended = true
	if g.last != nil {
		g.last.Stop()
	}
	g.signal(syscall.SIGKILL)
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(s))
}
