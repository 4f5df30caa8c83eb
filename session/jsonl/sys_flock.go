//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package jsonl

import (
	"errors"
	"os"
	"syscall"
)

// errHeld says that another writer has the lock.
var errHeld = errors.New("held")

// tryLock takes a flock, which another open file, of this process too, may hold.
func tryLock(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var locked error
	err = conn.Control(func(fd uintptr) {
		for {
			locked = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
			if !errors.Is(locked, syscall.EINTR) {
				return
			}
		}
	})
	switch {
	case err != nil:
		return err
	case errors.Is(locked, syscall.EWOULDBLOCK):
		return errHeld
	}
	return locked
}

// gone says whether a process is known to have ended.
func gone(pid int) bool { return pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
