package jsonl

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/session"
)

// openFile opens one of a session's files. It does not wait: what is no regular
// file, such as a pipe whose other end nobody has, is damage.
func openFile(path string, flags int) (*os.File, error) {
	f, _, err := regular.Open(path, flags, 0o600)
	if errors.Is(err, regular.ErrIrregular) {
		return nil, irregular(path)
	}
	return f, err
}

func irregular(path string) error {
	return fmt.Errorf("%s: %w: it is %w", path, session.ErrCorrupt, regular.ErrIrregular)
}

// readFile reads one of a session's files, at most most bytes of it.
func readFile(path string, most int64) ([]byte, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	return text, errors.Join(err, f.Close())
}
