package casetest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// WorkerEnv names a plain build of cmd/dsh. Tests under the race detector use
// it, since the engine is forty times slower under it; where it is set, nothing
// is built.
const WorkerEnv = "DSH_TEST_WORKER"

var built struct {
	once    sync.Once
	dir     string
	program string
	err     error
}

// Program returns the path of the program, which is built once for a test
// process, without cgo. Call Clean at the end of TestMain.
func Program(t testing.TB) string {
	t.Helper()
	built.once.Do(func() { built.program, built.err = build() })
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.program
}

func build() (string, error) {
	if program := os.Getenv(WorkerEnv); program != "" {
		return program, nil
	}
	dir, err := os.MkdirTemp("", "dsh-test-")
	if err != nil {
		return "", fmt.Errorf("build program: %w", err)
	}
	built.dir = dir
	program := filepath.Join(dir, "dsh")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	cmd := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/dsh-go/dsh/cmd/dsh")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build program: %w\n%s", err, bytes.TrimSpace(out))
	}
	return program, nil
}

// Clean removes what Program built.
func Clean() {
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary folder; the system clears what stays
	}
}
