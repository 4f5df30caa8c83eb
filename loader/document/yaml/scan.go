package yaml

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
)

// parser goes through the text once. After the first fault every method returns at
// once or soon, and what it returns is not used.
type parser struct {
	src    string
	pos    int
	file   *File
	fault  *Fault
	depth  int
	nodes  int
	single bool // one value on one line
	slab   []Node
}

func (p *parser) fail(at int, format string, args ...any) *Node {
	if p.fault == nil {
		p.fault = &Fault{at, fmt.Sprintf(format, args...)}
	}
	return nil
}

// node makes a node that begins at start; end is set by the caller.
func (p *parser) node(kind Kind, style Style, start, end int) *Node {
	if p.nodes++; p.nodes > limits.DocumentValues {
		p.fail(start, "a document has at most %d values", limits.DocumentValues)
	}
	if len(p.slab) == 0 {
		p.slab = make([]Node, min(256, 16+p.nodes))
	}
	n := &p.slab[0]
	p.slab = p.slab[1:]
	*n = Node{Kind: kind, Style: style, Start: start, End: end, In: p.file}
	return n
}

func (p *parser) missing(at int) *Node { return p.node(Null, Missing, at, at) }

// enter counts nesting; whoever gets true leaves.
func (p *parser) enter() bool {
	if p.depth++; p.depth > limits.DocumentDepth {
		p.fail(p.pos, "values are nested at most %d deep", limits.DocumentDepth)
		return false
	}
	return true
}

func (p *parser) leave() { p.depth-- }

// characters refuses what no part of a document may have.
func (p *parser) characters() {
	for i := 0; i < len(p.src); {
		c := p.src[i]
		if c >= 0x20 && c < 0x7f || c == '\n' || c == '\t' {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(p.src[i:])
		switch {
		case r == '\r':
			p.fail(i, "a carriage return: lines end with a line feed alone (LF, not CRLF); save the file with Unix line ends")
		case r == utf8.RuneError && size == 1:
			p.fail(i, "the bytes here are not UTF-8; save the file as UTF-8")
		case r == '\ufeff':
			p.fail(i, "a byte order mark (BOM); save the file as UTF-8 without it")
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0xfffe || r == 0xffff:
			p.fail(i, `the control character U+%04X; inside of double quotes it is written as "\u%04x"`, r, r)
		case r == 0x2028 || r == 0x2029:
			p.fail(i, `U+%04X, which some take for the end of a line; inside of double quotes it is written as "\u%04x"`, r, r)
		}
		if p.fault != nil {
			return
		}
		i += size
	}
}

// at returns the byte at an offset, 0 beyond the end.
func (p *parser) at(i int) byte {
	if i >= 0 && i < len(p.src) {
		return p.src[i]
	}
	return 0
}

// ends says whether offset i is the end of a line or of the text.
func (p *parser) ends(i int) bool { return i >= len(p.src) || p.src[i] == '\n' }

// gap says whether a token ends before i: there is a space or the end of the line.
func (p *parser) gap(i int) bool { return p.ends(i) || p.src[i] == ' ' || p.src[i] == '\t' }

// begun says whether i is the beginning of a line.
func (p *parser) begun(i int) bool { return i == 0 || p.src[i-1] == '\n' }

// column returns the column of an offset in bytes, from 0.
func (p *parser) column(i int) int { return i - 1 - strings.LastIndexByte(p.src[:i], '\n') }

const tabs = `a tab; indent and separate with spaces, and write it as "\t" inside of double quotes`

// spaces goes over spaces, and refuses a tab after them.
func (p *parser) spaces() {
	for p.at(p.pos) == ' ' {
		p.pos++
	}
	if p.at(p.pos) == '\t' {
		p.fail(p.pos, tabs)
	}
}

// comment goes over a comment that begins at pos.
func (p *parser) comment() {
	if end := strings.IndexByte(p.src[p.pos:], '\n'); end >= 0 {
		p.pos += end
	} else {
		p.pos = len(p.src)
	}
}

// endLine goes over what may follow a value on its line: spaces and a comment.
func (p *parser) endLine() {
	start := p.pos
	if p.spaces(); p.fault != nil {
		return
	}
	switch {
	case p.ends(p.pos):
	case p.src[p.pos] == '#' && p.pos > start:
		p.comment()
	case p.src[p.pos] == '#':
		p.fail(p.pos, "a comment needs a space before its #")
	case p.src[p.pos] == ':':
		p.fail(p.pos, `a key and its ":" cannot stand here; put a value with ": " in quotes`)
	default:
		p.fail(p.pos, "there is something behind a value; what has spaces or quotes inside is put in quotes as a whole")
	}
}

// blank goes over empty lines and comments, from the end of a line or the beginning
// of one, to the next token. It returns its column, -1 at the end of the text.
func (p *parser) blank() int {
	for p.fault == nil {
		p.spaces()
		switch {
		case p.fault != nil:
			return -1
		case p.pos >= len(p.src):
			return -1
		case p.src[p.pos] == '\n':
			p.pos++
		case p.src[p.pos] == '#':
			p.comment()
		default:
			column := p.column(p.pos)
			if column == 0 && p.marker(p.pos) {
				p.fail(p.pos, "a file has one document: no --- and no ... between")
				return -1
			}
			return column
		}
	}
	return -1
}

// marker says whether a document marker is at i, the beginning of a line.
func (p *parser) marker(i int) bool {
	return (strings.HasPrefix(p.src[i:], "---") || strings.HasPrefix(p.src[i:], "...")) && p.gap(i+3)
}
