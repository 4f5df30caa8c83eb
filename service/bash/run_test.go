//go:build unix

package bash_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
)

// both runs a test with the supervisor and with the process group alone.
func both(t *testing.T, test func(t *testing.T, r *rig)) {
	for name, alone := range map[string]bool{"supervisor": false, "group": true} {
		t.Run(name, func(t *testing.T) { test(t, newRig(t, bash.Config{NoSupervisor: alone})) })
	}
}

func TestRun(t *testing.T) {
	for _, tt := range []struct {
		name, command  string
		stdout, stderr string
		code           int
	}{
		{"output", "echo hello", "hello\n", "", 0},
		{"without_newline", "printf hello", "hello", "", 0},
		{"stderr", "echo oops >&2; exit 3", "", "oops\n", 3},
		{"not_found", "no-such-command-xyz 2>/dev/null", "", "", 127},
		{"bash", "a=(1 2 3); echo ${#a[@]}", "3\n", "", 0},
		{"forced", "echo $NO_COLOR $TERM $PAGER $GIT_PAGER", "1 dumb cat cat\n", "", 0},
		{"no_terminal", "test -t 0 || test -t 1 || { : </dev/tty; } 2>/dev/null && echo terminal", "", "", 1},
		{"sigpipe_is_not_ignored", "yes | head -1; echo ${PIPESTATUS[0]}", "y\n141\n", "", 0},
		{"empty_stdin", "cat; echo end", "end\n", "", 0},
		{"process_substitution", "echo hi > >(cat; echo there)", "hi\nthere\n", "", 0},
		{"quotes_and_lines", "printf '%s|' \"a b\" 'c\"d'\necho", "a b|c\"d|\n", "", 0},
		{"unicode", "printf 'déjà 🎉'", "déjà 🎉", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, r *rig) {
				got := r.run(line(tt.command))
				exitCode(t, got, tt.code)
				want := bash.RunResult{
					ExitCode: got.ExitCode, TimeoutMs: 120_000,
					Stdout: bash.Stream{Text: tt.stdout}, Stderr: bash.Stream{Text: tt.stderr},
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

func TestRunSettings(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	ctx := within(t, time.Minute)
	spec := must(use.Resolve(line("pwd")))(t)
	if err := os.Mkdir(filepath.Join(spec.Workdir, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Run("default_workdir", func(t *testing.T) {
		if got := must(use.Run(ctx, line("pwd"), nil))(t); got.Stdout.Text != spec.Workdir+"\n" {
			t.Errorf("ran in %q", got.Stdout.Text)
		}
	})
	t.Run("relative_workdir_from_options", func(t *testing.T) {
		sub := "sub"
		if got := must(use.Run(ctx, line("pwd; echo $PWD"), &bash.RunOptions{Workdir: &sub}))(t); got.Stdout.Text != strings.Repeat(spec.Workdir+"/sub\n", 2) {
			t.Errorf("ran in %q", got.Stdout.Text)
		}
	})
	t.Run("stdin", func(t *testing.T) {
		long := strings.Repeat("0123456789\n", 100_000)
		c := line("wc -c")
		c.Stdin = long
		if got := must(use.Run(ctx, c, nil))(t); strings.TrimSpace(got.Stdout.Text) != "1100000" {
			t.Errorf("read %q", got.Stdout.Text)
		}
	})
	t.Run("stdin_not_read", func(t *testing.T) {
		c := line("exec 0<&-; echo done")
		c.Stdin = strings.Repeat("x", 1<<20)
		if got := must(use.Run(ctx, c, nil))(t); got.Stdout.Text != "done\n" {
			t.Errorf("got %q", got.Stdout.Text)
		}
	})
	t.Run("env", func(t *testing.T) {
		c := line("echo $A $TERM")
		c.Env = map[string]string{"A": "x=y", "TERM": "vt100"}
		if got := must(use.Run(ctx, c, nil))(t); got.Stdout.Text != "x=y vt100\n" {
			t.Errorf("got %q", got.Stdout.Text)
		}
	})
	t.Run("spec", func(t *testing.T) {
		c := bash.Command{Request: bash.Request{Command: spec.Command, Workdir: spec.Workdir, TimeoutMs: spec.TimeoutMs, StdoutMaxBytes: spec.StdoutMaxBytes}}
		if again := must(use.Resolve(c))(t); cmp.Diff(spec, again) != "" {
			t.Error(cmp.Diff(spec, again))
		}
	})
}

func TestCredentials(t *testing.T) {
	kept := map[string]string{"PLAIN": "1", "MY_TOKEN": "1", "TOKENS": "1", "AWSOME": "1"}
	gone := []string{
		"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_REGION",
		"GITHUB_TOKEN", "some_token", "X_SECRET", "db_password", "Foo_Api_Key", "TOKEN", "PGPASSWORD", "DSH_HOME",
	}
	for name := range kept {
		t.Setenv(name, "1")
	}
	for _, name := range gone {
		t.Setenv(name, "leaked")
	}
	r := newRig(t, bash.Config{PassEnv: []string{"MY_TOKEN"}})
	out := r.run(line("env")).Stdout.Text
	for name := range kept {
		if !strings.Contains("\n"+out, "\n"+name+"=1\n") {
			t.Errorf("%s is missing", name)
		}
	}
	if strings.Contains(out, "leaked") {
		t.Errorf("credentials in the environment:\n%s", out)
	}
}

func TestTimeout(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		c := line("echo begun; sleep 1000")
		c.TimeoutMs = 200
		got := r.run(c)
		signaled(t, got, "SIGTERM")
		if !got.TimedOut || got.Aborted || got.TimeoutMs != 200 || got.Stdout.Text != "begun\n" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestTimeoutHandled(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		c := line("trap 'echo bye; exit 7' TERM; sleep 1000 & wait")
		c.TimeoutMs = 300
		got := r.run(c)
		exitCode(t, got, 7)
		if !got.TimedOut || got.Stdout.Text != "bye\n" {
			t.Errorf("got %+v", got)
		}
	})
}

func TestSigtermIgnored(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		c := line("trap '' TERM; sleep 1000; sleep 1000")
		c.TimeoutMs = 100
		began := time.Now()
		got := r.run(c)
		signaled(t, got, "SIGKILL")
		if took := time.Since(began); took < limits.BashKillAfter || took > 3*limits.BashKillAfter {
			t.Errorf("took %v", took)
		}
	})
}

func TestAbort(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		use, _ := r.plugin("dyn-1")
		fifo := newFifo(t)
		ctx, cancel := context.WithCancel(context.Background())
		go func() { fifo.await(t); cancel() }()
		got := must(use.Run(ctx, line("echo begun; echo > "+fifo.path+"; sleep 1000"), nil))(t)
		signaled(t, got, "SIGTERM")
		if !got.Aborted || got.TimedOut || got.Stdout.Text != "begun\n" {
			t.Errorf("got %+v", got)
		}
		before := must(use.Run(ctx, line("echo ran"), nil))(t)
		if !before.Aborted || before.ExitCode != nil || before.Signal != nil || before.Stdout.Text != "" {
			t.Errorf("a command of a call that had ended: %+v", before)
		}
	})
}

func TestOutputIsBounded(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, f := r.plugin("dyn-1")
	got := must(use.Run(within(t, time.Minute), line("head -c 100000000 /dev/zero | tr '\\0' x; printf END"), nil))(t)
	exitCode(t, got, 0)
	if s := got.Stdout; !s.Truncated || len(s.Text) != limits.BashOutput || !strings.HasSuffix(s.Text, "xxxEND") || s.Binary {
		t.Fatalf("kept %d bytes, truncated %v, ends in %q", len(s.Text), s.Truncated, s.Text[max(0, len(s.Text)-10):])
	}
	info, err := os.Stat(got.Stdout.SpillPath)
	if err != nil || info.Size() != limits.BashSpill || info.Mode().Perm() != 0o600 {
		t.Fatalf("the file: %v %v", info, err)
	}
	if dir, err := os.Stat(filepath.Dir(got.Stdout.SpillPath)); err != nil || dir.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v %v", dir, err)
	}
	dispose(t, f)
	if _, err := os.Stat(got.Stdout.SpillPath); !os.IsNotExist(err) {
		t.Errorf("the file outlives its owner: %v", err)
	}
	dispose(t, r.bash)
	if _, err := os.Stat(filepath.Dir(got.Stdout.SpillPath)); !os.IsNotExist(err) {
		t.Errorf("the folder outlives the service: %v", err)
	}
}

func TestSpillIsWhole(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	c := line("seq 1 5000; seq 1 30000 >&2")
	c.StdoutMaxBytes = 1000
	got := must(use.Run(within(t, time.Minute), c, nil))(t)
	for _, s := range []struct {
		bash.Stream
		last string
		kept int
		size int
	}{{got.Stdout, "4999\n5000\n", 1000, 23_893}, {got.Stderr, "29999\n30000\n", 64_000, 168_894}} {
		all, err := os.ReadFile(s.SpillPath)
		if err != nil || len(all) != s.size || !strings.HasPrefix(string(all), "1\n2\n3\n") || !strings.HasSuffix(string(all), s.last) {
			t.Errorf("the file has %d bytes: %v", len(all), err)
		}
		if len(s.Text) != s.kept || !strings.HasSuffix(string(all), s.Text) {
			t.Errorf("kept %d bytes", len(s.Text))
		}
	}
}

func TestSpillFilesAreBounded(t *testing.T) {
	r := newRig(t, bash.Config{})
	use, _ := r.plugin("dyn-1")
	c := line("echo 12345")
	c.StdoutMaxBytes = 2
	var paths []string
	for range limits.BashSpillFiles + 3 {
		paths = append(paths, must(use.Run(within(t, time.Minute), c, nil))(t).Stdout.SpillPath)
	}
	for i, path := range paths {
		if _, err := os.Stat(path); os.IsNotExist(err) != (i < 3) {
			t.Errorf("file %d: %v", i, err)
		}
	}
}

func TestBinaryOutput(t *testing.T) {
	r := newRig(t, bash.Config{})
	got := r.run(line(`printf 'a\xff\xfeb'; printf 'x\0y' >&2`))
	if d := cmp.Diff(bash.Stream{Text: "a\uFFFDb", Binary: true}, got.Stdout); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(bash.Stream{Text: "x\x00y", Binary: true}, got.Stderr); d != "" {
		t.Error(d)
	}
	c := line(`printf 'ééé'`)
	c.StdoutMaxBytes = 3 // in the middle of a character
	use, _ := r.plugin("dyn-2")
	if got := must(use.Run(within(t, time.Minute), c, nil))(t); got.Stdout.Text != "é" || got.Stdout.Binary {
		t.Errorf("a character was torn: %+v", got.Stdout)
	}
}

func TestBackgroundChildHoldsThePipe(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		fifo := newFifo(t)
		began := time.Now()
		got := r.run(line("exec 9>" + fifo.path + "; sleep 1000 & echo started"))
		exitCode(t, got, 0)
		if got.Stdout.Text != "started\n" || got.TimedOut || got.Aborted {
			t.Errorf("got %+v", got)
		}
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("took %v", took)
		}
		fifo.closed(t)
	})
}

func TestBackgroundChildThatEndsIsHeard(t *testing.T) {
	both(t, func(t *testing.T, r *rig) {
		got := r.run(line("(sleep 0.05; echo late) & echo early"))
		exitCode(t, got, 0)
		if got.Stdout.Text != "early\nlate\n" {
			t.Errorf("got %q", got.Stdout.Text)
		}
	})
}
