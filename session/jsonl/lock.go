package jsonl

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
)

// lock is the right to write a session, held as long as the file is open.
type lock struct{ f *os.File }

// maxOwner is the most bytes that are read of what a holder says of itself.
const maxOwner = 1 << 10

// acquire takes the lock of a session's folder, and says in it who has it. It does
// not wait for one that lives. A process that was killed while it started another
// leaves the lock with that one, until it has begun: that is waited for, at most
// limits.SessionFree. A folder that goes meanwhile is session.ErrNotFound. Only where
// create is set a lock file that is missing is made.
func acquire(dir, id string, create bool) (*lock, error) {
	flags := os.O_RDWR
	if create {
		flags |= os.O_CREATE
	}
	path := filepath.Join(dir, lockName)
	f, err := openFile(path, flags)
	if err != nil {
		return nil, explain(missing(id, err))
	}
	held := &session.LockedError{ID: id}
	err = atomicfile.TryLock(f)
	for begun, pause := time.Now(), time.Millisecond; errors.Is(err, atomicfile.ErrHeld); pause *= 2 {
		held.PID, held.Since = owner(f)
		if !gone(held.PID) || time.Since(begun) > limits.SessionFree {
			break
		}
		time.Sleep(pause)
		err = atomicfile.TryLock(f)
	}
	switch {
	case errors.Is(err, atomicfile.ErrHeld):
		return nil, errors.Join(held, f.Close())
	case errors.Is(err, errors.ErrUnsupported):
		return nil, errors.Join(fmt.Errorf("lock session %s: one writer at a time cannot be promised on this system: %w", id, err), f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock session %s: %w", id, err), f.Close())
	}
	l := &lock{f}
	// Whoever deletes a session has its lock, so ours may be on a file that has gone.
	mine, err := f.Stat()
	if err == nil {
		var named os.FileInfo
		if named, err = os.Stat(path); err == nil && !os.SameFile(mine, named) {
			err = fs.ErrNotExist
		}
	}
	if err != nil {
		l.release()
		return nil, explain(missing(id, err))
	}
	l.sign()
	return l, nil
}

// sign writes who has the lock, for people. It is no fault if that cannot be
// written: on a full disk a session can still be deleted.
func (l *lock) sign() {
	text := lossless.Obj(
		lossless.M("pid", lossless.Int(int64(os.Getpid()))),
		lossless.M("since", lossless.Int(time.Now().UnixMilli())),
	).String() + "\n"
	if l.f.Truncate(0) == nil {
		_, _ = l.f.WriteAt([]byte(text), 0)
	}
}

// owner reads what the holder wrote; zeros where it says nothing.
func owner(f *os.File) (pid int, since time.Time) {
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxOwner))
	if err != nil {
		return 0, time.Time{}
	}
	v, err := lossless.Parse(text)
	if err != nil {
		return 0, time.Time{}
	}
	p, _ := v.Get("pid")
	t, _ := v.Get("since")
	n, _ := p.Int64()
	if ms, ok := t.Int64(); ok && ms > 0 {
		since = time.UnixMilli(ms)
	}
	return int(n), since
}

// holder says who has the lock of a session's folder, nil if nobody has. The lock
// is tried only where the file names somebody, so that who is about to write is
// not kept out for a moment: whoever ended well is not named, and for one that was
// killed acquire waits.
func holder(dir, id string) *session.LockedError {
	f, err := openFile(filepath.Join(dir, lockName), os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	held := &session.LockedError{ID: id}
	if held.PID, held.Since = owner(f); held.PID == 0 || !errors.Is(atomicfile.TryLock(f), atomicfile.ErrHeld) {
		return nil
	}
	return held
}

// release gives the lock up. The file stays, and names nobody.
func (l *lock) release() {
	_ = l.f.Truncate(0)
	_ = l.f.Close() // releases the flock; nothing was written that matters
}
