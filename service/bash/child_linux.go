package bash

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash/supervise"
)

// selfExe survives that the file is replaced or removed while the program runs.
const selfExe = "/proc/self/exe"

// supervised is a shell below a supervisor.
type supervised struct {
	cmd     *exec.Cmd
	control *os.File
	lines   *bufio.Reader
	part    string // of a line

	mu    sync.Mutex
	last  *time.Timer // the end of patience with the supervisor
	ended bool
}

var _ child = (*supervised)(nil)

func startChild(cfg Config, shell string, s Spec, env []string, streams [3]*os.File) (child, error) {
	if cfg.NoSupervisor {
		return startGroup(shell, s, env, streams)
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "control"), os.NewFile(uintptr(fds[1]), "control")
	if err := unix.SetNonblock(fds[1], false); err != nil { // the supervisor has a thread for it
		_, _ = ours.Close(), theirs.Close()
		return nil, fmt.Errorf("make a socket: %w", err)
	}
	exe := cfg.Program
	if exe == "" {
		exe = selfExe
	}
	cmd := exec.Command(exe, supervise.Command, shell, "-c", s.Command)
	cmd.Args[0] = "dsh"
	cmd.Dir, cmd.Env = s.Workdir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is not for it
	err = cmd.Start()
	_ = theirs.Close() // so that ours ends with the supervisor
	if err != nil {
		_ = ours.Close()
		return nil, fmt.Errorf("start the supervisor: %w", err)
	}
	c := &supervised{cmd: cmd, control: ours, lines: bufio.NewReaderSize(ours, 512)}
	if err := c.begun(); err != nil {
		c.force()
		_, _ = c.wait()
		return nil, err
	}
	return c, nil
}

// beginning is the most that a supervisor needs to start its shell.
const beginning = 10 * time.Second

// begun waits until the shell runs. A command may stop or kill its supervisor
// before that has said so: it has begun all the same, and its limits hold.
func (c *supervised) begun() error {
	until := time.Now().Add(beginning)
	defer func() { _ = c.control.SetReadDeadline(time.Time{}) }()
	starting := false
	for patience := nudge; ; patience *= 2 {
		_ = c.control.SetReadDeadline(earlier(time.Now().Add(patience), until)) // a socket has deadlines
		line, err := c.line()
		text, failed := strings.CutPrefix(line, "error ")
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && time.Now().Before(until):
			_ = c.cmd.Process.Signal(syscall.SIGCONT)
		case err != nil && starting:
			return nil // wait tells what became of it
		case err != nil:
			return errors.New("the supervisor ended before the command began")
		case failed:
			return errors.New(text)
		case line == "begun":
			return nil
		case line == "starting":
			starting = true
		}
	}
}

// nudge is how long a supervisor may be silent before it is told to go on.
const nudge = 50 * time.Millisecond

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// line reads a line of the supervisor's. After an error it can be called again.
func (c *supervised) line() (string, error) {
	part, err := c.lines.ReadString('\n')
	c.part += part
	if err != nil {
		return "", err //nolint:wrapcheck // for our callers only
	}
	line := strings.TrimSuffix(c.part, "\n")
	c.part = ""
	return line, nil
}

func (c *supervised) stop() { c.order(supervise.Stop) }

func (c *supervised) hurry() { c.order(supervise.Hurry) }

func (c *supervised) order(what byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	_, _ = c.control.Write([]byte{what})      // gone, if it fails
	_ = c.cmd.Process.Signal(syscall.SIGCONT) // its command may have stopped it
	if c.last == nil {
		c.last = time.AfterFunc(limits.BashLost, func() { c.check(limits.BashLost) })
	}
}

// check is called when a supervisor was told to end its command that long ago, and
// again after twice the time. One that is stopped was stopped again by its command,
// which would go on with that.
func (c *supervised) check(after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
	case after > abandoned || supervise.Stopped(c.cmd.Process.Pid):
		c.kill()
	default:
		c.last = time.AfterFunc(after, func() { c.check(2 * after) })
	}
}

// abandoned is the most that a supervisor needs to end, with some to spare.
const abandoned = limits.BashKillAfter + limits.BashGiveUpAll + 10*time.Second

// force ends a supervisor that does not do its work, and what can be reached of
// the command.
func (c *supervised) force() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		c.kill()
	}
}

// kill is called with mu held, before the supervisor has been waited for.
func (c *supervised) kill() {
	_ = c.cmd.Process.Kill()
	supervise.EndSession(c.cmd.Process.Pid)
}

func (c *supervised) wait() (ending, error) {
	var end ending
	told, failed := false, ""
	for {
		line, err := c.line()
		if err != nil {
			break // it has exited, or was killed
		}
		what, number, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		switch {
		case what == "error":
			failed = number
		case err != nil:
		case what == "exit":
			end, told = ending{code: n}, true
		case what == "signal":
			end, told = ending{signal: signalName(syscall.Signal(n))}, true
		case what == "left":
			end.left = n
		}
	}
	if !told {
		c.force()
	}
	_ = c.cmd.Wait() // its status says nothing
	c.mu.Lock()
	c.ended = true
	if c.last != nil {
		c.last.Stop()
	}
	c.mu.Unlock()
	_ = c.control.Close()
	if failed != "" { // it took longer than begun waited
		return end, startError(errors.New(failed))
	}
	if !told {
		return end, fail(CodeFailed, "the supervisor of the command was killed, and what it ran with it; its result is not known")
	}
	return end, nil
}

// finish has nothing to do: the supervisor has.
func (c *supervised) finish() {}
