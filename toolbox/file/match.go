package file

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// matcher finds the lines that a pattern fits.
type matcher struct {
	re   *regexp.Regexp
	must []literal // one of them is in every line that fits; none: not known
	only bool      // a line with the only literal fits: there is nothing else
	slow bool      // the pattern is so large that long lines are not matched whole
}

// codePattern is the code of a pattern that is none.
const codePattern = "BAD_PATTERN"

// compile reads a pattern.
func compile(pattern string, fold bool) (*matcher, error) {
	if pattern == "" {
		return nil, badPattern(pattern, "it is empty; give the text or the regular expression to look for")
	}
	if len(pattern) > limits.GrepPattern {
		return nil, badPattern(pattern, fmt.Sprintf("it has %d bytes; at most %d are taken", len(pattern), limits.GrepPattern))
	}
	flags := syntax.Perl &^ syntax.OneLine // ^ and $ are those of a line
	if fold {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, badPattern(pattern, teach(pattern, err))
	}
	if breaks(tree) {
		return nil, badPattern(pattern, "it has a line break, and grep matches line by line; look for one of the lines, then read around it")
	}
	asLines(tree)
	tree = tree.Simplify()
	m := &matcher{}
	if prog, err := syntax.Compile(tree); err != nil || len(prog.Inst) > limits.GrepProgram {
		return nil, badPattern(pattern, "it is too large once its repetitions are written out; use smaller counts, or * and +")
	} else {
		m.slow = len(prog.Inst) > limits.GrepProgram/10
	}
	if m.re, err = regexp.Compile(tree.String()); err != nil {
		return nil, badPattern(pattern, err.Error())
	}
	m.must = required(tree)
	m.only = tree.Op == syntax.OpLiteral && len(m.must) == 1 && !m.must[0].fold && string(m.must[0].text) == string(tree.Rune)
	return m, nil
}

func badPattern(pattern, why string) error {
	return &tool.Error{Name: "GrepError", Code: codePattern, Message: fmt.Sprintf("the pattern %q cannot be used: %s", plain.Line(pattern, limits.Preview), why)}
}

// teach says what to do about an error of the syntax.
func teach(pattern string, err error) string {
	e := new(syntax.Error)
	if !errors.As(err, &e) {
		return err.Error()
	}
	const engine = "patterns are RE2, as in Go, without lookaround and backreferences"
	at := e.Expr
	switch {
	case strings.HasPrefix(at, "(?=") || strings.HasPrefix(at, "(?!"):
		return fmt.Sprintf("%s is a lookahead; %s. Match the text itself, and leave out what does not fit when you read the lines", at, engine)
	case strings.HasPrefix(at, "(?<=") || strings.HasPrefix(at, "(?<!"):
		return fmt.Sprintf("%s is a lookbehind; %s. Make what stands before a part of the pattern", at[:4], engine)
	case strings.HasPrefix(at, "(?>"):
		return fmt.Sprintf("%s is an atomic group; %s. A plain group (?:…) finds the same lines", at, engine)
	case e.Code == syntax.ErrInvalidPerlOp || e.Code == syntax.ErrMissingRepeatArgument && strings.HasPrefix(at, "(?"):
		return fmt.Sprintf("%s is not known; %s. The groups are (…), (?:…), (?P<name>…) and (?i:…); a ( itself is \\(", at, engine)
	case e.Code == syntax.ErrInvalidEscape && len(at) == 2 && at[1] >= '1' && at[1] <= '9':
		return fmt.Sprintf("%s is a backreference; %s. Write the text out, or match more and look at the lines", at, engine)
	case e.Code == syntax.ErrInvalidEscape:
		return fmt.Sprintf("the escape %s is not known; %s. A \\ itself is \\\\", at, engine)
	case e.Code == syntax.ErrInvalidRepeatOp:
		return fmt.Sprintf("%s repeats what repeats already; %s. One of * + ? does", at, engine)
	case e.Code == syntax.ErrMissingParen || e.Code == syntax.ErrUnexpectedParen:
		return `a parenthesis has no partner; \( and \) are the characters themselves`
	case e.Code == syntax.ErrMissingBracket:
		return `a [ is not closed; \[ is the character itself`
	case e.Code == syntax.ErrMissingRepeatArgument:
		return fmt.Sprintf(`%s repeats nothing; \%s is the character itself, .* is any text`, at, at)
	case e.Code == syntax.ErrTrailingBackslash:
		return `it ends with a \; \\ is the character itself`
	case e.Code == syntax.ErrInvalidRepeatSize:
		return fmt.Sprintf("%s is no count: it goes from the smaller to the larger, up to 1000 in all", at)
	}
	return fmt.Sprintf("%s: %s", e.Code, plain.Line(at, limits.Preview))
}

// breaks tells whether a line break has to be matched.
func breaks(re *syntax.Regexp) bool {
	if re.Op == syntax.OpLiteral {
		return strings.ContainsRune(string(re.Rune), '\n')
	}
	for _, sub := range re.Sub {
		if breaks(sub) {
			return true
		}
	}
	return false
}

// asLines makes the ends of the text those of a line, and keeps what fits any
// character from line breaks, so that no match goes beyond its line.
func asLines(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpCharClass:
		var ranges []rune
		for i := 0; i < len(re.Rune); i += 2 {
			lo, hi := re.Rune[i], re.Rune[i+1]
			if lo > '\n' || hi < '\n' {
				ranges = append(ranges, lo, hi)
				continue
			}
			if lo < '\n' {
				ranges = append(ranges, lo, '\n'-1)
			}
			if hi > '\n' {
				ranges = append(ranges, '\n'+1, hi)
			}
		}
		if re.Rune = ranges; len(ranges) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	for _, sub := range re.Sub {
		asLines(sub)
	}
}

// literal is a text that has to occur; fold: in any case. It is ASCII then.
type literal struct {
	text []byte
	fold bool
}

// maxLiterals bounds the alternatives that are looked for.
const maxLiterals = 8

// required gives texts of which one is in every match; nil: not known.
func required(re *syntax.Regexp) []literal {
	switch re.Op {
	case syntax.OpLiteral:
		return ofRunes(re.Rune, re.Flags&syntax.FoldCase != 0)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		var best []literal
		for _, sub := range re.Sub {
			if some := required(sub); better(some, best) {
				best = some
			}
		}
		return best
	case syntax.OpAlternate:
		var all []literal
		for _, sub := range re.Sub {
			some := required(sub)
			if some == nil || len(all)+len(some) > maxLiterals {
				return nil
			}
			all = append(all, some...)
		}
		return all
	}
	return nil
}

// better tells which of two choices is found less often, most likely.
func better(a, b []literal) bool {
	if a == nil || b == nil {
		return a != nil
	}
	if shortest(a) != shortest(b) {
		return shortest(a) > shortest(b)
	}
	return len(a) < len(b)
}

func shortest(s []literal) int {
	n := len(s[0].text)
	for _, l := range s[1:] {
		n = min(n, len(l.text))
	}
	return n
}

// ofRunes gives the text that is looked for. In any case: its longest part of
// ASCII letters that have two forms only (k and s have a third, K and ſ).
func ofRunes(runes []rune, fold bool) []literal {
	plainRune := func(r rune) bool {
		return r != utf8.RuneError && (!fold || r < utf8.RuneSelf && !strings.ContainsRune("kKsS", r))
	}
	var best, part []rune
	for _, r := range runes {
		if !plainRune(r) {
			part = nil
			continue
		}
		part = append(part, r)
		if len(part) > len(best) {
			best = part
		}
	}
	if len(best) == 0 {
		return nil
	}
	text := []byte(string(best))
	if fold {
		text = bytes.ToLower(text)
	}
	return []literal{{text, fold}}
}

// index finds the literal.
func (l literal) index(b []byte) int {
	if !l.fold {
		return bytes.Index(b, l.text)
	}
	lower := l.text[0]
	upper := bytes.ToUpper(l.text[:1])[0]
	nextLower, nextUpper := -1, -1 // the next places of either, len(b): none
	for at := 0; ; {
		if nextLower < at {
			nextLower = next(b, at, lower)
		}
		if nextUpper < at {
			nextUpper = next(b, at, upper)
		}
		i := min(nextLower, nextUpper)
		if i+len(l.text) > len(b) {
			return -1
		}
		if bytes.EqualFold(b[i:i+len(l.text)], l.text) {
			return i
		}
		at = i + 1
	}
}

func next(b []byte, at int, c byte) int {
	if i := bytes.IndexByte(b[at:], c); i >= 0 {
		return at + i
	}
	return len(b)
}

// longLine is how much of a line a slow pattern is matched against: the engine
// cannot be stopped within a match.
const longLine = 16 << 10

// line tells whether the pattern fits a line, which has no line break.
func (m *matcher) line(line []byte) bool {
	line = bytes.TrimSuffix(line, []byte("\r"))
	if m.only {
		return bytes.Contains(line, m.must[0].text)
	}
	if m.slow && len(line) > longLine {
		line = line[:longLine]
	}
	return m.re.Match(line)
}

// finder finds the lines of one buffer that may fit.
type finder struct {
	*matcher
	buf   []byte
	next  []int // where each literal is next; len(buf): nowhere
	lines bool  // every line may
}

func (m *matcher) in(buf []byte) *finder {
	f := &finder{matcher: m, buf: buf}
	if m.must != nil {
		f.next = make([]int, len(m.must))
		for i := range f.next {
			f.next[i] = -1
		}
		return f
	}
	f.lines = m.slow || bytes.IndexByte(buf, '\r') >= 0
	return f
}

// after gives a place in the first line from at on that may fit; -1: there is none.
func (f *finder) after(at int) int {
	if at >= len(f.buf) {
		return -1
	}
	if f.next == nil {
		if f.lines {
			return at
		}
		loc := f.re.FindIndex(f.buf[at:])
		switch end := len(f.buf) - 1; {
		case loc == nil:
			return -1
		case at+loc[0] <= end:
			return at + loc[0]
		case f.buf[end] != '\n': // at the end of the last line
			return end
		}
		return -1
	}
	best := len(f.buf)
	for i, l := range f.must {
		if f.next[i] < at {
			f.next[i] = len(f.buf)
			if n := l.index(f.buf[at:]); n >= 0 {
				f.next[i] = at + n
			}
		}
		best = min(best, f.next[i])
	}
	if best == len(f.buf) {
		return -1
	}
	return best
}
