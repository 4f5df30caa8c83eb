// Package regular opens files that have to be regular ones, where something else may
// have their name: a folder, a device, or a pipe, for whose other end an open waits.
package regular

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// ErrIrregular says that something else than a file has the name of one.
var ErrIrregular = errors.New("no regular file")

// Open opens a file as os.OpenFile does, and says what it is. It never waits. What is
// no regular file is not opened, and the error is ErrIrregular then.
func Open(path string, flags int, mode os.FileMode) (*os.File, os.FileInfo, error) {
	f, err := os.OpenFile(path, flags|syscall.O_NONBLOCK, mode)
	if err != nil {
		// A folder that is to be written, or a socket, is told by its kind.
		if info, other := os.Stat(path); other == nil && !info.Mode().IsRegular() {
			return nil, nil, irregular(path)
		}
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = irregular(path)
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

func irregular(path string) error { return fmt.Errorf("%s is %w", path, ErrIrregular) }
