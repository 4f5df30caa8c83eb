package bash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// single is a shell on a system without process groups: what it started lives on.
type single struct{ cmd *exec.Cmd }

var _ child = (*single)(nil)

func startChild(_ Config, shell string, s Spec, env []string, streams [3]*os.File) (child, error) {
	cmd := exec.Command(shell, "-c", s.Command)
	cmd.Dir, cmd.Env = s.Workdir, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the shell: %w", err)
	}
	return &single{cmd}, nil
}

func (c *single) stop() { _ = c.cmd.Process.Kill() } // it has ended, if that fails

func (c *single) hurry() { c.stop() }

func (c *single) wait() (ending, error) {
	err := c.cmd.Wait()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return ending{}, fail(CodeFailed, "the command could not be waited for: %v", reason(err))
	}
	return ending{code: c.cmd.ProcessState.ExitCode()}, nil
}

func (c *single) finish() {}
