package casetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs testdata/script/*.txtar over the built program. Beside the
// commands of testscript there are:
//
//	exits N PROGRAM ARGS…   runs the program, which has to end with this status
//	mode PERM FILE          the file's permissions
//	served SIGNAL           a dsh mcp that serves ends in order at this signal
func TestScript(t *testing.T) {
	program := Program(t)
	testscript.Run(t, testscript.Params{
		Dir: "../../testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(program)+string(os.PathListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  scriptExits,
			"mode":   scriptMode,
			"served": func(ts *testscript.TestScript, _ bool, args []string) { scriptServed(ts, program, args) },
		},
	})
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: exits N PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

func scriptMode(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 || neg {
		ts.Fatalf("usage: mode PERM FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := fmt.Sprintf("%04o", info.Mode().Perm()); got != args[0] {
		ts.Fatalf("%s has mode %s, want %s", args[1], got, args[0])
	}
}

func scriptServed(ts *testscript.TestScript, program string, args []string) {
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt}
	if len(args) != 1 || signals[args[0]] == nil {
		ts.Fatalf("usage: served TERM|INT")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := Start(ctx, program, "mcp", "--services", "none")
	ts.Check(err)
	ts.Check(client.Signal(signals[args[0]], closeWithin))
	if got := client.Stderr(); got != "" {
		ts.Fatalf("standard error: %s", got)
	}
}
