package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrLocked says that somebody else held a lock for longer than the wait.
var ErrLocked = errors.New("another process holds the lock")

// ErrHeld says that somebody else has a lock now.
var ErrHeld = errors.New("held")

// pauseMax is the longest pause between two tries: the system tells nobody when a lock
// becomes free, but for who would wait for it without an end.
const pauseMax = 50 * time.Millisecond

// Lock takes the lock that is the file path, which is made if it is missing and stays.
// It excludes everyone else who takes it, of this process too, until release, or until
// the process ends. It waits at most wait, then the error is ErrLocked, and not beyond
// the end of ctx. Where the system has no such locks the error is
// errors.ErrUnsupported.
func Lock(ctx context.Context, path string, wait time.Duration) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("take lock: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, wait, ErrLocked)
	defer cancel()
	err = TryLock(f)
	for pause := time.Millisecond; errors.Is(err, ErrHeld); pause = min(2*pause, pauseMax) {
		select {
		case <-time.After(pause):
			err = TryLock(f)
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take lock %s: %w", path, err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}
