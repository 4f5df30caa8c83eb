//go:build unix

package permission

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestTextOfPipe: a question about a pipe is asked, not waited for.
func TestTextOfPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := textOf(pipe); !strings.Contains(*got, "not shown") {
		t.Error(*got)
	}
}
