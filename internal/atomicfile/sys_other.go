//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package atomicfile

import (
	"errors"
	"os"
)

// TryLock is not possible here.
func TryLock(*os.File) error { return errors.ErrUnsupported }
