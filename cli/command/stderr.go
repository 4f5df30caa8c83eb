package command

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// The bounds of what waits for a slow reader of standard error.
const (
	waitingWrites = 1024
	flushTimeout  = 200 * time.Millisecond // at the end of the program
)

// LossyWriter hands writes to a goroutine and never blocks: a client that does
// not read standard error must not stop the server. What does not fit is dropped
// and counted; the count is written as soon as there is room.
type LossyWriter struct {
	out    io.Writer
	writes chan []byte
	done   chan struct{}

	mu      sync.Mutex
	closed  bool
	dropped int
}

var _ io.WriteCloser = (*LossyWriter)(nil)

// NewLossyWriter returns one that writes to out.
func NewLossyWriter(out io.Writer) *LossyWriter {
	w := &LossyWriter{out: out, writes: make(chan []byte, waitingWrites), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for b := range w.writes {
			_, _ = w.out.Write(b) // nobody can be told
		}
	}()
	return w
}

// Fd is the descriptor behind it, so that it can be told whether that is a
// terminal; one that there is not for a writer of another kind.
func (w *LossyWriter) Fd() uintptr {
	if f, ok := w.out.(interface{ Fd() uintptr }); ok {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Write never fails and never waits.
func (w *LossyWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return len(b), nil
	}
	text := append([]byte(nil), b...)
	if w.dropped > 0 {
		text = append(fmt.Appendf(nil, "(%d messages dropped: standard error was not read)\n", w.dropped), text...)
	}
	select {
	case w.writes <- text:
		w.dropped = 0
	default:
		w.dropped++
	}
	return len(b), nil
}

// Close waits a moment for what was written.
func (w *LossyWriter) Close() error {
	w.mu.Lock()
	if !w.closed {
		w.closed = true
		close(w.writes)
	}
	w.mu.Unlock()
	timer := time.NewTimer(flushTimeout)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
	}
	return nil
}
