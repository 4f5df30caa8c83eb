package file

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
)

// window takes some lines out of a text that comes in pieces, and counts them all.
type window struct {
	from, limit int // the first line, from 1, and how many

	out   []string
	cut   int  // lines of out that are not whole
	full  bool // there is no room for more
	lines int  // that have ended; after end, all
	bytes int  // of out
	after int  // bytes that came when nothing more was wanted

	line strings.Builder // the beginning of the line that has not ended
	size int             // its bytes
	open bool            // there is such a line
}

// wanted tells whether the line that comes now is shown.
func (w *window) wanted() bool {
	return !w.full && w.lines+1 >= w.from && len(w.out) < w.limit
}

// enough tells that no more is counted.
func (w *window) enough() bool { return w.after > limits.FileCounted }

// lineBytes is how much of a line is kept while it comes.
const lineBytes = limits.FileLine * utf8.UTFMax

func (w *window) add(piece string) {
	for piece != "" {
		if !w.wanted() && w.skip(&piece) {
			continue
		}
		part, rest, ended := strings.Cut(piece, "\n")
		w.open = true
		w.size += len(part)
		if room := lineBytes - w.line.Len(); room > 0 && w.wanted() {
			w.line.WriteString(part[:min(room, len(part))])
		}
		if piece = rest; ended {
			w.finish()
		}
	}
}

// skip passes a whole piece in which nothing is wanted.
func (w *window) skip(piece *string) bool {
	n := strings.Count(*piece, "\n")
	past := w.full || len(w.out) >= w.limit
	if !past && w.lines+n+1 >= w.from {
		return false
	}
	if past {
		w.after += len(*piece)
	}
	w.lines += n
	w.open = !strings.HasSuffix(*piece, "\n")
	w.line.Reset()
	w.size = 0
	*piece = ""
	return true
}

// finish ends a line.
func (w *window) finish() {
	if w.wanted() {
		text, cut := w.kept()
		if w.bytes += len(text) + 1; w.bytes > limits.FileShown && len(w.out) > 0 {
			w.full = true
		} else {
			w.out = append(w.out, text)
			w.cut += cut
		}
	}
	w.lines++
	w.line.Reset()
	w.size, w.open = 0, false
}

// kept is what is shown of the line, and 1 if that is not all.
func (w *window) kept() (text string, cut int) {
	text = strings.TrimSuffix(w.line.String(), "\r")
	if utf8.RuneCountInString(text) <= limits.FileLine && w.size == w.line.Len() {
		return text, 0
	}
	n := 0
	for i := range text {
		if n++; n > limits.FileLine {
			text = text[:i]
			break
		}
	}
	return strings.ToValidUTF8(text, "") + fmt.Sprintf("… (the line has %s bytes)", number(w.size)), 1
}

// end is called after the last piece.
func (w *window) end() {
	if w.open && !w.enough() {
		w.finish()
	}
}
