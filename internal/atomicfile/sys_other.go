//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

import (
	"errors"
	"os"
)

// errHeld says that somebody else has the lock.
var errHeld = errors.New("held")

func tryLock(*os.File) error { return errors.ErrUnsupported }
