package compile

import (
	"strings"

	"github.com/dsh-go/dsh/limits"
)

// scanned is what a look at the brackets of a source shows.
type scanned struct {
	tooDeep int   // where the nesting passes limits.SourceNesting; -1: nowhere
	open    []int // brackets that nothing closes, outermost first
	imports bool  // there is a word that imports may begin with
	// What the source ends in, where it begins: "template", "comment"; else "".
	inside string
	since  int
}

// scan counts brackets outside strings, templates, comments and regular
// expressions. It is rough: it does not parse, and what it takes for a regular
// expression may be a division. Erring costs a wrong count within a line.
func scan(source string) scanned {
	s := scanner{src: source, result: scanned{tooDeep: -1}}
	for s.pos < len(source) && s.result.tooDeep < 0 {
		s.step()
	}
	s.result.open = s.open
	return s.result
}

// template is one that goes on after the } of its current ${.
type template struct {
	depth int // how many brackets are open outside its ${
	start int
}

type scanner struct {
	src       string
	pos       int
	open      []int
	templates []template
	last      byte // the last byte that was no space and no comment; 'a' for a word that ends a value
	result    scanned
}

func (s *scanner) step() {
	c := s.src[s.pos]
	switch {
	case c == '(' || c == '[' || c == '{':
		s.push()
	case c == ')' || c == ']' || c == '}':
		s.pop(c)
	case c == '"' || c == '\'':
		s.quoted(c)
	case c == '`':
		s.pos++
		s.template(s.pos - 1)
	case c == '/':
		s.slash()
	case isWord(c):
		s.word()
	default:
		s.pos++
		if c > ' ' {
			s.last = c
		}
	}
}

func (s *scanner) push() {
	s.open = append(s.open, s.pos)
	if len(s.open) > limits.SourceNesting {
		s.result.tooDeep = s.pos
	}
	s.last = s.src[s.pos]
	s.pos++
}

func (s *scanner) pop(c byte) {
	s.pos++
	s.last = c
	if n := len(s.open); n > 0 {
		s.open = s.open[:n-1]
	}
	if n := len(s.templates); c == '}' && n > 0 && s.templates[n-1].depth == len(s.open) {
		start := s.templates[n-1].start
		s.templates = s.templates[:n-1]
		s.template(start)
	}
}

// quoted skips a string, to the end of the line when it is not closed.
func (s *scanner) quoted(quote byte) {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case quote:
			s.pos++
			s.last = 'a'
			return
		case '\n':
			return
		}
	}
}

// template skips to the end of a template or into its next ${.
func (s *scanner) template(start int) {
	for ; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '`':
			s.pos++
			s.last = 'a'
			return
		case '$':
			if s.pos+1 < len(s.src) && s.src[s.pos+1] == '{' {
				s.templates = append(s.templates, template{len(s.open), start})
				s.pos++
				s.push()
				return
			}
		}
	}
	s.result.inside, s.result.since = "template", start
}

// slash skips a comment or a regular expression, or is a division.
func (s *scanner) slash() {
	rest := s.src[s.pos:]
	switch {
	case strings.HasPrefix(rest, "//"):
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			s.pos += i
			return
		}
		s.pos = len(s.src)
	case strings.HasPrefix(rest, "/*"):
		if i := strings.Index(rest[2:], "*/"); i >= 0 {
			s.pos += i + 4
			return
		}
		s.result.inside, s.result.since = "comment", s.pos
		s.pos = len(s.src)
	case s.last == 'a' || s.last == ')' || s.last == ']' || s.last == '}':
		s.pos++
		s.last = '/'
	default:
		s.regexp()
	}
}

// regexp skips a regular expression; a / that nothing closes on its line is a
// division.
func (s *scanner) regexp() {
	class := false
	for i := s.pos + 1; i < len(s.src) && s.src[i] != '\n'; i++ {
		switch c := s.src[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			s.pos = i + 1
			s.last = 'a'
			return
		}
	}
	s.pos++
	s.last = '/'
}

// beforeValue are the words after which a / begins a regular expression.
var beforeValue = map[string]bool{
	"return": true, "typeof": true, "case": true, "in": true, "of": true, "delete": true, "void": true,
	"throw": true, "new": true, "instanceof": true, "do": true, "else": true, "yield": true, "await": true,
}

func (s *scanner) word() {
	start := s.pos
	for s.pos < len(s.src) && isWord(s.src[s.pos]) {
		s.pos++
	}
	word, before := s.src[start:s.pos], s.last
	s.last = 'a'
	if beforeValue[word] {
		s.last = '('
	}
	if before != '.' && (word == "import" || word == "from") {
		s.result.imports = true
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
