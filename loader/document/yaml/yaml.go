// Package yaml reads a strict part of YAML 1.2 and keeps the place of everything.
//
// What it reads means the same to every reader of YAML 1.2 (core schema). What
// readers disagree about, what hides something, and what one document of settings
// does not need is refused, with the place and what to write instead: tags, anchors,
// aliases, merge keys, directives, several documents, complex keys, keys twice, tabs
// outside of comments and block text, a byte order mark, CRLF, control characters,
// numbers with leading zeros, .inf and .nan.
//
// # What is promised
//
//   - Parse never panics, takes time and memory in proportion to the text, and never
//     reads outside of it. Nesting and the number of values are bounded (package
//     limits).
//   - The span of every node is exact: the text from Start to End is the node as it
//     is written, without what is around it.
//   - A File and its nodes are not changed after Parse and may be read from any
//     goroutine.
//
// It is a reader of its own since edits need the spans, faults need exact places, and
// thousands of rows need to be read in a few milliseconds.
package yaml

import (
	"sort"
	"strings"
	"unicode/utf8"
)

// Kind says what a node is.
type Kind uint8

// The kinds of nodes.
const (
	Null Kind = iota
	Bool
	Number
	String
	List
	Map
)

var kindNames = [...]string{"null", "true or false", "a number", "text", "a list", "a map"}

// String returns the kind in words: "a list".
func (k Kind) String() string { return kindNames[k] }

// Style says how a node is written.
type Style uint8

// The styles of nodes.
const (
	Plain   Style = iota // without quotes
	Single               // 'quoted'
	Double               // "quoted"
	Literal              // block text after |
	Folded               // block text after >
	Block                // a list or map on lines
	Flow                 // [] and {}
	Missing              // null, because nothing is written; Start and End are where it would be
)

// Node is one value, or a key.
type Node struct {
	Kind  Kind
	Style Style
	// Text is a string's content, "true" or "false", or a number as a JSON literal.
	Text string
	// Start and End are byte offsets in the file's text. Of block text the span ends
	// before the newline of its last line that is not empty; of lists and maps on
	// lines it is that of what is in them.
	Start, End int
	Keys       []*Node // of a map
	Items      []*Node // of a list, or the values of a map
	Dashes     []int   // of a list on lines: where each - is
	In         *File
}

// Get returns the value of a map's key, nil where it has none.
func (n *Node) Get(key string) *Node {
	for i, k := range n.Keys {
		if k.Text == key {
			return n.Items[i]
		}
	}
	return nil
}

// File is a text and what is in it.
type File struct {
	Text string
	Root *Node // nil where the text has only comments, or a fault
	// Owner is for whoever parses the text to note what it belongs to.
	Owner any
	lines []int // the offset of the beginning of each line
}

// Fault says what is wrong with a text.
type Fault struct {
	Offset  int
	Message string
}

// Error returns the message, without the place: only the file knows the line.
func (f *Fault) Error() string { return f.Message }

// Position returns the line and column of an offset, from 1; columns are characters.
func (f *File) Position(offset int) (line, column int) {
	offset = min(max(offset, 0), len(f.Text))
	if len(f.lines) == 0 {
		return 1, 1
	}
	i := sort.SearchInts(f.lines, offset+1) - 1
	return i + 1, utf8.RuneCountInString(f.Text[f.lines[i]:offset]) + 1
}

// Line returns the text of a line, from 1, without its newline; "" where there is none.
func (f *File) Line(line int) string {
	if line < 1 || line > len(f.lines) {
		return ""
	}
	text := f.Text[f.lines[line-1]:]
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	return text
}

// NewFile returns a file in which nothing is parsed yet.
func NewFile(text string) *File {
	f := &File{Text: text, lines: append(make([]int, 0, 1+strings.Count(text, "\n")), 0)}
	for i := 0; i < len(text); i++ {
		if text[i] == '\n' {
			f.lines = append(f.lines, i+1)
		}
	}
	return f
}

// Parse reads a text. The file is never nil, so that the place of a fault can be
// shown. The caller bounds the length.
func Parse(text []byte) (*File, *Fault) {
	f := NewFile(string(text))
	p := &parser{src: f.Text, file: f}
	if p.characters(); p.fault != nil {
		return f, p.fault
	}
	root := p.document()
	if p.fault != nil {
		return f, p.fault
	}
	f.Root = root
	return f, nil
}

// Value reads what is behind an offset of a file's text as one value: a scalar or a
// flow collection on one line, as it would stand after a key.
func (f *File) Value(offset int) (*Node, *Fault) {
	p := &parser{src: f.Text, pos: offset, file: f, single: true}
	p.characters()
	if i := strings.IndexByte(f.Text, '\n'); i >= 0 {
		p.fail(i, "a value here has one line")
	}
	if p.fault != nil {
		return nil, p.fault
	}
	var n *Node
	if p.spaces(); p.pos == len(f.Text) {
		n = p.missing(p.pos)
	} else if n = p.inline(-1); p.fault == nil {
		p.endLine()
	}
	if p.fault != nil {
		return nil, p.fault
	}
	return n, nil
}
