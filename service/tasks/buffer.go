package tasks

import (
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// buffer is the output of a task: its end, and where each reader stands.
type buffer struct {
	mu     sync.Mutex
	kept   []byte
	total  int64 // bytes ever written
	read   map[*cordis.Fiber]int64
	closed bool
	added  chan struct{} // closed when there is more, or the end; nil: nobody waits
}

var _ io.Writer = (*buffer)(nil)

// Write adds output; after the end it is dropped.
func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return len(p), nil
	}
	b.total += int64(len(p))
	defer b.tell()
	whole := len(p)
	if len(p) > limits.TaskOutput {
		p = p[len(p)-limits.TaskOutput:]
	}
	if len(b.kept)+len(p) > 2*limits.TaskOutput { // not at every write
		b.kept = append(b.kept[:0], b.kept[len(b.kept)+len(p)-limits.TaskOutput:]...)
	}
	b.kept = append(b.kept, p...)
	return whole, nil
}

// close ends the output: the beginning of a character at its end is given as it is.
func (b *buffer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.tell()
	b.kept = slices.Clone(b.kept[max(0, len(b.kept)-limits.TaskOutput):]) // nothing will be added
}

// tell tells those who wait that there is more. mu is held.
func (b *buffer) tell() {
	if b.added != nil {
		close(b.added)
		b.added = nil
	}
}

// more gives nil if there is something that a reader has not got, or the output has
// ended, as closed says; else what is closed when that may have changed.
func (b *buffer) more(reader *cordis.Fiber) (added <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	unread := b.kept[max(0, len(b.kept)-int(b.total-b.read[reader])):]
	if b.closed || len(unread) > plain.Torn(unread) {
		return nil, b.closed
	}
	if b.added == nil {
		b.added = make(chan struct{})
	}
	return b.added, false
}

// take gives what a reader has not got, how many bytes follow, and how many
// before it are lost.
func (b *buffer) take(reader *cordis.Fiber) (text string, more int, lost int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.read[reader]
	if first := b.total - int64(min(len(b.kept), limits.TaskOutput)); at < first {
		lost, at = first-at, first
	}
	rest := b.kept[len(b.kept)-int(b.total-at):]
	if lost > 0 {
		cut := plain.Continued(rest)
		rest, at, lost = rest[cut:], at+int64(cut), lost+int64(cut)
	}
	piece := rest[:min(len(rest), limits.TaskRead)]
	if len(piece) < len(rest) || !b.closed {
		piece = piece[:len(piece)-plain.Torn(piece)]
	}
	if len(rest) > limits.TaskRead {
		more = len(rest) - len(piece)
	}
	if b.read == nil || len(b.read) >= limits.TaskReaders && b.unknown(reader) {
		own, known := b.read[nil]
		b.read = map[*cordis.Fiber]int64{} // the others begin again with what is kept
		if known {
			b.read[nil] = own
		}
	}
	b.read[reader] = at + int64(len(piece))
	return strings.ToValidUTF8(string(piece), "\uFFFD"), more, lost
}

func (b *buffer) unknown(reader *cordis.Fiber) bool {
	_, known := b.read[reader]
	return !known
}
