package bash

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// stream takes what a command writes to one of its streams: the end in memory,
// everything in a file once it is longer than that.
type stream struct {
	max  int
	open func() (*os.File, error) // makes the file
	news *news                    // nil: nobody looks before the end
	hear func([]byte)             // nil: nobody listens

	mu     sync.Mutex
	tail   []byte
	total  int64
	file   *os.File
	path   string
	failed bool   // the file could not be written
	torn   []byte // the beginning of a character that news and hear have not got
}

// fill reads until the end of the stream.
func (s *stream) fill(from io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			s.tell(s.add(buf[:n]))
		}
		if err != nil { // its end, or it was closed because nothing is left that is waited for
			s.tell(s.rest())
			return
		}
	}
}

// tell gives whole characters to who listens.
func (s *stream) tell(b []byte) {
	if s.hear != nil && len(b) > 0 {
		s.hear(b)
	}
}

// rest gives the beginning of a character of which no more will come.
func (s *stream) rest() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeRest()
}

// takeRest is rest. stream.mu is held.
func (s *stream) takeRest() []byte {
	b := s.torn
	s.torn = nil
	if s.news != nil && len(b) > 0 {
		s.news.add(b)
	}
	return b
}

// add takes output. It gives the whole characters that are new, if anybody wants them.
func (s *stream) add(b []byte) (heard []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news != nil || s.hear != nil {
		heard, s.torn = characters(append(s.torn, b...))
	}
	if s.news != nil {
		s.news.add(heard)
	}
	before := s.total
	s.total += int64(len(b))
	if s.total > int64(s.max) && !s.failed {
		if s.file == nil {
			s.begin()
		}
		if room := limits.BashSpill - before; room > 0 {
			s.spill(b[:min(int64(len(b)), room)])
		}
	}
	if len(b) > s.max {
		b = b[len(b)-s.max:]
	}
	if len(s.tail)+len(b) > 2*s.max {
		s.tail = s.tail[:copy(s.tail, s.tail[len(s.tail)-s.max:])]
	}
	s.tail = append(s.tail, b...)
	return heard
}

// begin makes the file and writes what is there already.
func (s *stream) begin() {
	f, err := s.open()
	if err != nil {
		s.failed = true
		return
	}
	s.file, s.path = f, f.Name()
	s.spill(s.tail)
}

// spill writes to the file. One that cannot be written to any more is given up:
// what it holds would be taken for all.
func (s *stream) spill(b []byte) {
	if s.failed {
		return
	}
	if _, err := s.file.Write(b); err != nil {
		s.failed, s.path = true, ""
		_ = s.file.Close()
		_ = os.Remove(s.file.Name()) // or its owner does
	}
}

// close ends the file and gives what came.
func (s *stream) close() Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file != nil && !s.failed {
		if s.file.Close() != nil { // not all of it has reached the disk
			s.path = ""
		}
	}
	s.takeRest()
	tail := s.tail
	if len(tail) > s.max {
		tail = tail[len(tail)-s.max:]
	}
	out := Stream{Truncated: s.total > int64(s.max), SpillPath: s.path}
	if out.Truncated {
		tail = tail[plain.Continued(tail):]
	}
	out.Text, out.Binary = text(tail)
	s.tail = nil
	return out
}

func (s *stream) spillPath() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.path
}

// text gives bytes as UTF-8, and tells whether they were something else.
func text(b []byte) (string, bool) {
	s := string(b)
	if utf8.ValidString(s) {
		return s, strings.IndexByte(s, 0) >= 0
	}
	return strings.ToValidUTF8(s, "\uFFFD"), true
}

// news is what came on both streams since the last look.
type news struct {
	mu    sync.Mutex
	buf   []byte
	lossy bool
}

// characters splits b before a character that is not complete.
func characters(b []byte) (whole, torn []byte) {
	at := len(b) - plain.Torn(b)
	return b[:at], append([]byte(nil), b[at:]...)
}

func (n *news) add(b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.buf = append(n.buf, b...)
	if over := len(n.buf) - limits.BashOutput; over > 0 {
		n.lossy = true
		if over > limits.BashOutput { // not at every call
			n.buf = append(n.buf[:0], n.buf[over:]...)
		}
	}
}

// take gives the news and forgets them.
func (n *news) take() (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	b, lossy := n.buf, n.lossy
	if over := len(b) - limits.BashOutput; over > 0 {
		b = b[over:]
	}
	if lossy {
		b = b[plain.Continued(b):]
	}
	s, _ := text(b)
	n.buf, n.lossy = nil, false
	return s, lossy
}
