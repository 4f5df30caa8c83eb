package casetest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shutdownWithin is what a front door promises, whatever hangs.
const shutdownWithin = 2 * time.Second

// hanging is a mount with a tool for each way to hang, and a disposer that hangs.
const hanging = `return { name: 'hanging', inject: ['tools'], apply(ctx) {
  const tool = (name, execute) => harness.registerTool(ctx, harness.defineTool({
    name, description: 'hangs', parameters: {}, output: { schema: { type: 'string' }, render: () => [] }, execute }))
  tool('never', () => new Promise(() => {}))
  tool('loop', () => { for (;;) {} })
  ctx.effect(() => () => new Promise(() => {}))
} }`

// TestShutdownWhileHanging: asked to end while calls and disposers hang, the
// program ends with status 0 and in time, and so do its workers.
func TestShutdownWhileHanging(t *testing.T) {
	ways := map[string]func(*Client) error{
		"input_ends": func(c *Client) error { return c.Close(shutdownWithin) },
		"sigterm":    func(c *Client) error { return c.Signal(syscall.SIGTERM, shutdownWithin) },
		"sigint":     func(c *Client) error { return c.Signal(os.Interrupt, shutdownWithin) },
	}
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && name != "input_ends" {
				t.Skip("Windows has no signals that end a process in order")
			}
			s := open(t, "--vm-timeout", "30s", "--call-timeout", "60s")
			s.mount(hanging)
			for _, tool := range []string{"never", "never", "loop"} {
				s.send(tool, struct{}{})
			}
			// The server still answers, so the calls have been taken.
			if a := s.call("cordis_inspect", map[string]string{"what": "temporary"}); !strings.Contains(a.Text, "hanging") {
				t.Fatalf("inspect: %s", a.Text)
			}
			workers, err := s.children()
			if err != nil {
				t.Fatal(err)
			}
			if runtime.GOOS == "linux" && len(workers) == 0 {
				t.Error("no worker was found")
			}
			if err := end(s.Client); err != nil {
				t.Errorf("%v; standard error:\n%s", err, s.Stderr())
			}
			if !strings.HasSuffix(s.Stderr(), "is killed with dsh: the plugin dyn-1\n") {
				t.Errorf("it does not say what hangs:\n%s", s.Stderr())
			}
			for _, pid := range workers {
				if !gone(pid, time.Second) {
					t.Errorf("worker %d outlived the program", pid)
				}
			}
		})
	}
}

// TestShutdownEndsCommands: asked to end, the program ends the commands that mounts
// run before it goes, and those too that do not want to.
func TestShutdownEndsCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals that end a process in order")
	}
	for name, end := range map[string]func(*Client) error{
		"input_ends": func(c *Client) error { return c.Close(shutdownWithin) },
		"sigterm":    func(c *Client) error { return c.Signal(syscall.SIGTERM, shutdownWithin) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			deaf := func(file string) string {
				return "trap '' INT TERM HUP; cd " + dir + "; echo $$ > new; mv new " + file + "; while :; do sleep 60; done"
			}
			s := open(t)
			code := fmt.Sprintf(`return { name: 'deaf', inject: ['tools', 'bash'], async apply(ctx) {
  await ctx.bash.start(%q)
  harness.registerTool(ctx, harness.defineTool({ name: 'deaf', description: 'hangs', parameters: {}, output: { schema: {}, render: () => [] },
    execute: () => ctx.bash.run(%q) }))
} }`, deaf("one"), deaf("two"))
			s.mount(code)
			waitFile(t, filepath.Join(dir, "one"))
			s.send("deaf", struct{}{})
			waitFile(t, filepath.Join(dir, "two"))
			if err := end(s.Client); err != nil || strings.Contains(s.Stderr(), "killed") {
				t.Errorf("%v; standard error:\n%s", err, s.Stderr())
			}
			for _, file := range []string{"one", "two"} {
				text, err := os.ReadFile(filepath.Join(dir, file))
				if err != nil {
					t.Fatal(err)
				}
				pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
				if err != nil || !gone(pid, 0) {
					t.Errorf("command %s outlived the program: %v", file, err)
				}
			}
		})
	}
}

// children are the processes that the program has started, where /proc says so.
func (c *Client) children() ([]int, error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", c.cmd.Process.Pid))
	if err != nil {
		return nil, fmt.Errorf("find workers: %w", err)
	}
	var pids []int
	for _, name := range names {
		text, err := os.ReadFile(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // the thread has ended
		}
		if err != nil {
			return nil, fmt.Errorf("find workers: %w", err)
		}
		for word := range strings.FieldsSeq(string(text)) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err != nil {
				return nil, fmt.Errorf("find workers: %w", err)
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// gone waits for the end of a process that is not our child; a zombie has ended.
func gone(pid int, limit time.Duration) bool {
	for deadline := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return true
		}
		if _, rest, ok := strings.Cut(string(stat), ") "); ok && strings.HasPrefix(rest, "Z") {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
	}
}
