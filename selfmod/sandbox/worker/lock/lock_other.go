//go:build !linux

package lock

import (
	"runtime"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

func apply(int) wire.Lock {
	no := "not on " + runtime.GOOS
	return wire.Lock{Landlock: no, Seccomp: no, Memory: no}
}

// Keep does nothing: there is no limit.
func Keep() {}

// GiveUp does nothing.
func GiveUp() {}

// Used gives 0: it is not known.
func Used() time.Duration { return 0 }
