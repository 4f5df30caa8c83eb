package document

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
)

// Fault is one thing that is wrong with a document.
type Fault struct {
	File         string // the layer's name
	Line, Column int    // from 1; Column counts characters
	Message      string
	Row          string // the id of the row that alone is concerned, "" if it is not one
	// Excerpt is the line, bounded and safe to show, and below it a caret; "" where
	// there is none. What looks like the value of a credential is left out.
	Excerpt string
	// Guards says that guards may be among what the fault keeps from being read: who
	// goes on without it may offer tools that somebody wanted guarded.
	Guards bool
}

// Error returns "file:line:column: message", and on further lines the excerpt.
func (f Fault) Error() string {
	text := fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
	if f.Excerpt != "" {
		text += "\n" + f.Excerpt
	}
	return text
}

// Faults are the faults of a document or a composition: of a document in the order
// of their places, of a composition in the order of layers. Of more than
// limits.DocumentFaults the last one says how many more there are.
type Faults []Fault

// Error returns one fault after the other.
func (f Faults) Error() string {
	texts := make([]string, len(f))
	for i, one := range f {
		texts[i] = one.Error()
	}
	return strings.Join(texts, "\n")
}

// Err returns the faults as an error, nil where there is none.
func (f Faults) Err() error {
	if len(f) == 0 {
		return nil
	}
	return f
}

// bounded cuts a list of faults.
func (f Faults) bounded() Faults {
	if len(f) <= limits.DocumentFaults {
		return f
	}
	more := len(f) - limits.DocumentFaults
	guards := f[limits.DocumentFaults:].guards()
	f = f[:limits.DocumentFaults+1]
	last := &f[limits.DocumentFaults]
	last.Guards = guards
	last.Message, last.Excerpt = fmt.Sprintf("and %d more faults from here on", more), ""
	return f
}

func (f Faults) guards() bool {
	return slices.ContainsFunc(f, func(one Fault) bool { return one.Guards })
}

// sorted orders the faults of one document by place.
func (f Faults) sorted() Faults {
	slices.SortStableFunc(f, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return f
}

// faultAt makes a fault of a place in a file.
func faultAt(file *yaml.File, offset int, message string) Fault {
	line, column := file.Position(offset)
	f := Fault{Line: line, Column: column, Message: message}
	if l, ok := file.Owner.(*Layer); ok {
		f.File = l.Name
	}
	text := file.Line(line)
	if text != "" {
		f.Excerpt = excerpt(text, column)
	}
	return f
}

func faultOf(n *yaml.Node, format string, args ...any) Fault {
	return faultAt(n.In, n.Start, fmt.Sprintf(format, args...))
}

// secretLine finds the value of what is named like a credential.
var secretLine = regexp.MustCompile(`(?i)((?:key|token|secret|password|passwd|authorization)["']?\s*[:=]\s*)([^\s#].*)`)

// excerpt shows a line and a caret below its column, at most limits.DocumentExcerpt
// characters of it around that.
func excerpt(line string, column int) string {
	at := forward(line, 0, column-1)
	start := at
	for range limits.DocumentExcerpt / 2 {
		_, size := utf8.DecodeLastRuneInString(line[:start])
		start -= size
	}
	end := forward(line, start, limits.DocumentExcerpt)
	shown, head, tail := line[start:end], "", ""
	if start > 0 {
		head = "…"
	}
	if end < len(line) {
		tail = "…"
	}
	for _, from := range [...]int{0, start} { // what is named like a credential may be far to the left
		part := line[from:max(end, min(len(line), 8*limits.DocumentExcerpt))]
		if place := secretLine.FindStringSubmatchIndex(part[:min(len(part), 16*limits.DocumentExcerpt)]); place != nil && from+place[4] < end {
			end = max(start, from+place[4])
			shown, tail = line[start:end], "…"
		}
	}
	show := func(r rune) rune {
		switch {
		case r == '\t' || unicode.Is(unicode.Zs, r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return '·'
		}
		return r
	}
	caret := utf8.RuneCountInString(head + line[start:at])
	return "    " + head + strings.Map(show, shown) + tail + "\n    " + strings.Repeat(" ", caret) + "^"
}

// forward returns the offset that is n characters behind another.
func forward(s string, at, n int) int {
	for ; n > 0 && at < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}
