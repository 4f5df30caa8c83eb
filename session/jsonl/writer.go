package jsonl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/dsh-go/dsh/session"
)

// file is what a writer needs of its log; tests put one there that fails.
type file interface {
	WriteAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Close() error
}

// writer is the sink of one open session.
type writer struct {
	root, id, dir string
	lock          *lock
	file          file
	size          int64 // of what is durable
	buf           []byte
	empty         bool  // the log has no event
	broken        error // after it nothing is written

	mu    sync.Mutex // guards the attachments
	known map[string]bool
	total int64 // bytes of them; known is nil until they were counted
}

var _ session.Sink = (*writer)(nil)

// load reads the log and cuts off a last line that is not whole.
func (w *writer) load() (*session.Log, error) {
	l, size, kept, err := readLog(w.dir, w.id)
	if err != nil {
		return nil, err
	}
	f, err := openFile(filepath.Join(w.dir, logName), os.O_RDWR)
	if err != nil {
		return nil, explain(err)
	}
	w.file, w.size, w.empty = f, kept, l.Len() == 0
	if size > kept {
		if err := errors.Join(f.Truncate(kept), f.Sync()); err != nil {
			return nil, fmt.Errorf("cut off the unfinished last line: %w", explain(err))
		}
	}
	return l, nil
}

// keptBuffer is the most bytes of a buffer that is used again.
const keptBuffer = 1 << 20

// Write implements session.Sink: one write, one sync.
func (w *writer) Write(events []session.Event) error {
	if w.broken != nil {
		return w.broken
	}
	buf := w.buf[:0]
	for _, e := range events {
		buf = append(append(buf, e.Line()...), '\n')
	}
	if cap(buf) <= keptBuffer {
		w.buf = buf
	}
	if _, err := w.file.WriteAt(buf, w.size); err != nil {
		// What was written of it would be overwritten by the next attempt, which
		// begins in the same place with the same events; but a reader may come first.
		return errors.Join(fmt.Errorf("write session log: %w", explain(err)), w.file.Truncate(w.size))
	}
	if err := w.file.Sync(); err != nil {
		w.broken = fmt.Errorf("sync session log: %w: %w: what the file holds is not known; open it again", explain(err), session.ErrClosed)
		return w.broken
	}
	w.size += int64(len(buf))
	w.empty = w.empty && len(events) == 0
	return nil
}

// Close implements session.Sink. A session to which nothing was appended goes.
func (w *writer) Close() error {
	err := w.file.Close()
	if w.empty {
		err = errors.Join(err, discard(w.root, w.dir, w.id))
	}
	w.lock.release()
	return err
}

// abandon gives up what of the writer is open, and leaves the files.
func (w *writer) abandon() {
	if w.file != nil {
		_ = w.file.Close() // nothing was written that matters
	}
	if w.lock != nil {
		w.lock.release()
	}
}
