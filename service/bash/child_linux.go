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

// begun waits until the shell runs.
func (c *supervised) begun() error {
	_ = c.control.SetReadDeadline(time.Now().Add(beginning)) // a socket has deadlines
	defer func() { _ = c.control.SetReadDeadline(time.Time{}) }()
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return errors.New("the supervisor ended before the command began")
	}
	line = strings.TrimSuffix(line, "\n")
	if text, failed := strings.CutPrefix(line, "error "); failed {
		return errors.New(text)
	}
	return nil
}

func (c *supervised) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last != nil || c.ended {
		return
	}
	_, _ = c.control.Write([]byte{supervise.Stop}) // gone, if it fails
	_ = c.cmd.Process.Signal(syscall.SIGCONT)      // its command may have stopped it
	c.last = time.AfterFunc(abandoned, c.force)
}

// abandoned is the most that a supervisor needs to end, with some to spare.
const abandoned = limits.BashKillAfter + limits.BashGiveUpAll + 10*time.Second

// force ends a supervisor that does not do its work, and what can be reached of
// the command.
func (c *supervised) force() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = c.cmd.Process.Kill()
		supervise.EndSession(c.cmd.Process.Pid)
	}
}

func (c *supervised) wait() (ending, error) {
	var end ending
	told := false
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			break // it has exited, or was killed
		}
		what, number, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(number)
		switch {
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
	if !told {
		return end, fail(CodeFailed, "the supervisor of the command was killed, and what it ran with it; its result is not known")
	}
	return end, nil
}

// finish has nothing to do: the supervisor has.
func (c *supervised) finish() {}
