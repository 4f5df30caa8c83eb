//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package jsonl

import (
	"errors"
	"fmt"
	"os"
)

// errHeld says that another writer has the lock.
var errHeld = errors.New("held")

func tryLock(*os.File) error {
	return fmt.Errorf("one writer at a time cannot be promised on this system: %w", errors.ErrUnsupported)
}

func gone(int) bool { return false }

func isFull(error) bool { return false }

func isReadOnly(error) bool { return false }
