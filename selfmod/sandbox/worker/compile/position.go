package compile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxFrames is how many frames of a stack are kept; maxName bounds a function's
// name in one.
const (
	maxFrames = 20
	maxName   = 80
)

// Positions maps places in the compiled script to the author's.
type Positions struct {
	file      string
	generated []string // lines that esbuild wrote; nil when the engine took the source itself
	sources   []source
	mapping   []segment
	module    bool // no wrapper stands before the author's lines
}

// source is a text that the author wrote.
type source struct {
	name string
	*index
}

// Frames returns the frames of an engine's stack that are in the author's
// source, nearest first, as "at deep (dyn-1.js:4:30)". Frames of the prelude, of
// the engine and of esbuild's helpers are left out. A nil Positions knows none.
func (p *Positions) Frames(stack string) []string {
	if p == nil || stack == "" {
		return nil
	}
	var out []string
	for line := range strings.Lines(stack) {
		name, file, l, c, ok := parseFrame(line)
		if !ok || file != p.file {
			continue
		}
		if file, l, c, ok = p.original(l, c); !ok {
			continue
		}
		out = append(out, fmt.Sprintf("at %s (%s:%d:%d)", name, file, l, c))
		if len(out) == maxFrames {
			break
		}
	}
	return out
}

// Printed returns text that a plugin prints with the stacks in it made the
// author's: frames of the prelude, of the engine and of esbuild's helpers are left
// out, the others get the author's positions. What is no frame stays as it is. A
// nil Positions changes nothing.
func (p *Positions) Printed(text string) string {
	if p == nil || !strings.Contains(text, "    at ") {
		return text
	}
	return printedFrame.ReplaceAllStringFunc(text, func(frame string) string {
		name, file, l, c, ok := parseFrame(frame)
		switch {
		case !ok || file == preludeName:
			return "" // (native), or ours
		case file != p.file:
			return frame
		}
		if file, l, c, ok = p.original(l, c); !ok {
			return ""
		}
		return fmt.Sprintf("\n    at %s (%s:%d:%d)", name, file, l, c)
	})
}

// printedFrame is a frame of an engine's stack under the line before it.
var printedFrame = regexp.MustCompile(`\n    at [^\n()]* \((?:native|[^\n()]+:[0-9]+:[0-9]+)\)`)

// preludeName is the file that the frames of the prelude carry.
const preludeName = "prelude.js"

// parseFrame reads "    at name (file:line:column)" or "    at file:line:column".
func parseFrame(text string) (name, file string, line, column int, ok bool) {
	text, ok = strings.CutPrefix(strings.TrimSpace(text), "at ")
	if !ok {
		return
	}
	place := text
	name = "<anonymous>"
	if i := strings.LastIndex(text, " ("); i >= 0 && strings.HasSuffix(text, ")") {
		name, place = frameName(text[:i]), text[i+2:len(text)-1]
	}
	rest, column, ok := cutNumber(place)
	if !ok {
		return
	}
	file, line, ok = cutNumber(rest)
	return
}

// frameName is a function's name on one line; a script can name it anything.
func frameName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, name)
	if utf8.RuneCountInString(name) > maxName {
		name = string([]rune(name)[:maxName-1]) + "…"
	}
	return cmp.Or(name, "<anonymous>")
}

func cutNumber(s string) (string, int, bool) {
	i := strings.LastIndexByte(s, ':')
	if i < 0 {
		return "", 0, false
	}
	n, err := strconv.Atoi(s[i+1:])
	return s[:i], n, err == nil && n > 0
}

// original maps a place in the compiled script to the author's. It is false for
// the wrapper and for what esbuild added.
func (p *Positions) original(line, column int) (string, int, int, bool) {
	before := 1
	if p.module {
		before = 0
	}
	if p.generated == nil {
		name := p.file
		if p.module {
			name = p.sources[0].name
		}
		return name, line - before, column, line > before
	}
	if line < 1 || line > len(p.generated) {
		return "", 0, 0, false
	}
	genLine, genColumn := line-1, units(p.generated[line-1], column-1)
	i, found := slices.BinarySearchFunc(p.mapping, segment{genLine: genLine, genColumn: genColumn}, func(a, b segment) int {
		return cmp.Or(cmp.Compare(a.genLine, b.genLine), cmp.Compare(a.genColumn, b.genColumn))
	})
	if !found {
		i--
	}
	if i < 0 || p.mapping[i].genLine != genLine || !p.mapping[i].mapped || p.mapping[i].line < before || p.mapping[i].source < 0 || p.mapping[i].source >= len(p.sources) {
		return "", 0, 0, false
	}
	src := p.sources[p.mapping[i].source]
	at := src.offsetUTF16(p.mapping[i].line-before, p.mapping[i].column)
	l, c := place(src.text, at)
	return src.name, l, c, true
}

// units is how many UTF-16 units the first n code points of s are.
func units(s string, n int) int {
	total := 0
	for _, r := range s {
		if n <= 0 {
			break
		}
		n--
		total += utf16Len(r)
	}
	return total + max(n, 0)
}

func utf16Len(r rune) int {
	if r > 0xFFFF {
		return 2
	}
	return 1
}

// index finds lines as esbuild counts them: they also end at "\r", U+2028 and
// U+2029.
type index struct {
	text   string
	starts []int
}

func newIndex(text string) *index {
	x := &index{text: text, starts: []int{0}}
	for i, r := range text {
		switch r {
		case '\r':
			if i+1 < len(text) && text[i+1] == '\n' {
				continue
			}
			x.starts = append(x.starts, i+1)
		case '\n', '\u2028', '\u2029':
			x.starts = append(x.starts, i+utf8.RuneLen(r))
		}
	}
	return x
}

// offset is the byte at a line from 0 and a column in bytes; len(text)+1 beyond
// the last line.
func (x *index) offset(line, column int) int {
	switch {
	case line < 0:
		return 0
	case line >= len(x.starts):
		return len(x.text) + 1
	}
	return min(x.starts[line]+column, len(x.text))
}

// offsetUTF16 is offset for a column in UTF-16 units.
func (x *index) offsetUTF16(line, column int) int {
	at := x.offset(line, 0)
	if at > len(x.text) {
		return len(x.text)
	}
	for _, r := range x.text[at:] {
		if column <= 0 {
			break
		}
		column -= utf16Len(r)
		at += utf8.RuneLen(r)
	}
	return at
}

// place is the author's line and column of a byte.
func place(text string, at int) (line, column int) {
	at = min(max(at, 0), len(text))
	line = 1 + strings.Count(text[:at], "\n")
	return line, 1 + utf8.RuneCountInString(text[strings.LastIndexByte(text[:at], '\n')+1:at])
}

// offsetAt is the byte of an author's line and column; len(text)+1 beyond the
// last line.
func offsetAt(text string, line, column int) int {
	at := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(text[at:], '\n')
		if i < 0 {
			return len(text) + 1
		}
		at += i + 1
	}
	for _, r := range text[at:] {
		if column <= 1 || r == '\n' {
			break
		}
		column--
		at += utf8.RuneLen(r)
	}
	return at
}
