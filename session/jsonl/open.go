package jsonl

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/dsh-go/dsh/session"
)

// errIrregular says that something else than a file has the name of one.
var errIrregular = errors.New("no regular file")

// openFile opens one of a session's files. It does not wait: what is no regular
// file, such as a pipe whose other end nobody has, is refused.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		if info, lerr := os.Stat(path); lerr == nil && !info.Mode().IsRegular() {
			return nil, irregular(path)
		}
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func irregular(path string) error {
	return fmt.Errorf("%s: %w: it is %w", path, session.ErrCorrupt, errIrregular)
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
