//go:build unix

package keys

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dsh-go/dsh/llm"
)

// TestPipe: a pipe that nobody writes to is refused, not waited for.
func TestPipe(t *testing.T) {
	s := Store{Home: t.TempDir(), Env: env()}
	if err := syscall.Mkfifo(filepath.Join(s.Home, File), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.Find("deepseek")
	var f *llm.Failure
	if !errors.As(err, &f) || f.Code != llm.CodeInvalidCredential || !strings.Contains(f.Message, "no regular file") {
		t.Errorf("error %v", err)
	}
	if err := s.Set("openai", NewKey("sk-new"), ""); err == nil {
		t.Error("it was overwritten")
	}
}
