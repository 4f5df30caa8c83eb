//go:build linux

package casetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// running finds the processes whose command line has the mark.
func running(t *testing.T, mark string) (found []string) {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(text), mark) {
			found = append(found, filepath.Base(filepath.Dir(name))+" "+strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return found
}

// TestNothingIsOrphaned: fifty plugins run commands, some of which left their
// process group and session; however the server ends, so do all of them.
func TestNothingIsOrphaned(t *testing.T) {
	const plugins = 50
	for name, end := range map[string]func(*session) error{
		"input_ends": func(s *session) error { return s.Close(shutdownWithin) },
		"sigterm":    func(s *session) error { return s.Signal(syscall.SIGTERM, shutdownWithin) },
		"sigkill":    func(s *session) error { return s.Kill() },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, "--root", t.TempDir(), "--services", "bash")
			mark := fmt.Sprintf("86400.%d%d", os.Getpid(), time.Now().UnixNano()%1e9)
			for i := range plugins {
				s.mount(fmt.Sprintf(`return { name: 'runner-%d', inject: ['bash'], async apply(ctx) {
  await ctx.bash.start('trap "" TERM; setsid sleep %[2]s & sleep %[2]s & sleep %[2]s')
  ctx.bash.run('sleep %[2]s')
} }`, i, mark))
			}
			s.eventually("the commands run", func() bool { return len(running(t, mark)) >= 4*plugins })
			if err := end(s); err != nil {
				t.Errorf("%v; standard error:\n%s", err, s.Stderr())
			}
			s.eventually("the commands end", func() bool { return len(running(t, mark)) == 0 })
		})
	}
}
