package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
)

// hit is a line that grep shows.
type hit struct {
	Line  int    `json:"line"`
	Text  string `json:"text"`
	Match bool   `json:"match"` // else it is one around a match
}

// fileHits is what was found in one file.
type fileHits struct {
	Path    string `json:"path"`
	Matches int    `json:"matches"` // lines that fit, all of them
	Lines   []hit  `json:"lines,omitempty"`
}

var newline = []byte{'\n'}

// errBinary and errRecord say why a file is not searched.
var (
	errBinary = errors.New("binary")
	errRecord = errors.New("a line is too long")
)

// bufferSize is what is read of a file at once, unless a line is longer.
const bufferSize = 256 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, bufferSize); return &b }}

// lookup is the search through one file.
type lookup struct {
	*matcher
	context int  // lines around each match
	max     int  // matches that are kept
	first   bool // one match is enough

	out    fileHits
	line   int // the number of the line at the place that was reached
	shown  int // the last line that was kept
	wanted int // lines up to this one are kept, since they follow a match
}

// search reads a file to its end.
func (l *lookup) search(ctx context.Context, r io.Reader, read func(n int) error) error {
	pooled := buffers.Get().(*[]byte)
	defer buffers.Put(pooled)
	buf := *pooled
	held, done := 0, 0 // bytes in buf; those of them that were searched
	l.line = 1
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf[held:])
		if bytes.IndexByte(buf[held:held+n], 0) >= 0 {
			return errBinary
		}
		held += n
		end := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !end {
			return err
		}
		if err := read(n); err != nil {
			return err
		}
		upTo := held
		if !end {
			upTo = done + bytes.LastIndexByte(buf[done:held], '\n') + 1
		}
		if enough, err := l.part(ctx, buf[:upTo], done); err != nil || enough || end {
			return err
		}
		keep := before(buf[:upTo], upTo, l.context)
		held, done = copy(buf, buf[keep:held]), upTo-keep
		if held == len(buf) {
			if len(buf) >= limits.GrepRecord {
				return errRecord
			}
			buf = append(slices.Clip(buf), buf...)
		}
	}
}

// before gives the start of the line that stands n lines before at, which is the
// start of a line itself.
func before(buf []byte, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(buf[:at-1], '\n') + 1
	}
	return at
}

// checkLines is how many lines are looked at between two looks at the context.
const checkLines = 256

// part searches the lines of buf from at on; what is before it was searched. It
// tells that there is enough.
func (l *lookup) part(ctx context.Context, buf []byte, at int) (enough bool, err error) {
	f := l.in(buf)
	for n := 0; ; n++ {
		if n%checkLines == 0 || l.slow {
			if err := ctx.Err(); err != nil {
				return false, err
			}
		}
		place := f.after(at)
		if place < 0 {
			break
		}
		start := at + bytes.LastIndexByte(buf[at:place], '\n') + 1
		stop := len(buf)
		if i := bytes.IndexByte(buf[place:], '\n'); i >= 0 {
			stop = place + i
		}
		if l.matcher.line(buf[start:stop]) {
			l.pass(buf, at, start)
			if l.out.Matches++; l.first {
				return true, nil
			}
			l.found(buf, start, stop)
			at = min(stop+1, len(buf))
			l.line++
			continue
		}
		stop = min(stop+1, len(buf))
		l.pass(buf, at, stop)
		at = stop
	}
	l.pass(buf, at, len(buf))
	return false, nil
}

// found keeps the line of a match and those before it.
func (l *lookup) found(buf []byte, start, stop int) {
	if l.out.Matches > l.max {
		return
	}
	for from := before(buf, start, l.context); from < start; {
		to := from + bytes.IndexByte(buf[from:], '\n')
		if number := l.line - bytes.Count(buf[from:start], newline); number > l.shown {
			l.keep(number, buf[from:to], false)
		}
		from = to + 1
	}
	l.keep(l.line, buf[start:stop], true)
	l.wanted = l.line + l.context
}

// pass goes from the start of a line to that of another, and keeps what follows a
// match.
func (l *lookup) pass(buf []byte, from, to int) {
	for from < to && l.line <= l.wanted {
		stop := to
		if i := bytes.IndexByte(buf[from:to], '\n'); i >= 0 {
			stop = from + i
		}
		l.keep(l.line, buf[from:stop], false)
		from = min(stop+1, to)
		l.line++
	}
	l.line += bytes.Count(buf[from:to], newline)
}

func (l *lookup) keep(number int, line []byte, match bool) {
	l.out.Lines = append(l.out.Lines, hit{number, shownLine(l.matcher, line, match), match})
	l.shown = number
}

// shownLine is what is shown of a line: of a long one the part around the match.
func shownLine(m *matcher, line []byte, match bool) string {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if utf8.RuneCount(line) <= limits.GrepLine {
		return strings.ToValidUTF8(string(line), "\ufffd")
	}
	from := 0
	if match {
		if loc := m.re.FindIndex(line[:min(len(line), longLine)]); loc != nil {
			from = max(0, loc[0]-limits.GrepLine/4)
		}
	}
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	part := []rune(string(line[from:min(len(line), from+limits.GrepLine*utf8.UTFMax)]))
	text := string(part[:min(len(part), limits.GrepLine)])
	if from > 0 {
		text = "…" + text
	}
	if from+len(text) < len(line) {
		text += "…"
	}
	return text
}
