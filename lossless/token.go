package lossless

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// next skips white space and returns the byte there, 0 at the end.
func (p *parser) next() byte {
	for p.pos < len(p.src) {
		switch c := p.src[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
	return 0
}

// str reads the string at the position; without escapes it is cut from the text.
func (p *parser) str() (string, error) {
	start := p.pos + 1
	for i := start; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '"':
			p.pos = i + 1
			return p.src[start:i], nil
		case c == '\\':
			return p.escaped(start, i)
		case c < 0x20:
			p.pos = i
			return "", p.fail(fmt.Sprintf("control character %#02x in a string: write it as \\u%04x", c, c))
		}
	}
	p.pos = len(p.src)
	return "", p.fail("the text ends inside a string")
}

// escaped reads on from the first backslash, at i, of the string that began at start.
func (p *parser) escaped(start, i int) (string, error) {
	buf := append(make([]byte, 0, i-start+32), p.src[start:i]...)
	for i < len(p.src) {
		switch c := p.src[i]; {
		case c == '"':
			p.pos = i + 1
			return string(buf), nil
		case c < 0x20:
			p.pos = i
			return "", p.fail(fmt.Sprintf("control character %#02x in a string: write it as \\u%04x", c, c))
		case c != '\\':
			buf = append(buf, c)
			i++
		default:
			unit, size := unescape(p.src[i:])
			if size == 0 {
				p.pos = i
				return "", p.fail(`not an escape: after \ comes one of " \ / b f n r t or u with four hex digits`)
			}
			i += size
			if isHigh(unit) {
				if low, n := unescape(p.src[i:]); n == 6 && isLow(low) {
					unit = (unit-0xd800)<<10 + (low - 0xdc00) + 0x10000
					i += n
				}
			}
			buf = appendRune(buf, unit)
		}
	}
	p.pos = len(p.src)
	return "", p.fail("the text ends inside a string")
}

// unescape reads one escape at the start of s and returns its UTF-16 unit and
// its length; length 0 means that there is none.
func unescape(s string) (rune, int) {
	if len(s) < 2 || s[0] != '\\' {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		if len(s) < 6 {
			return 0, 0
		}
		var r rune
		for _, c := range []byte(s[2:6]) {
			switch {
			case isDigit(c):
				r = r<<4 + rune(c-'0')
			case 'a' <= c|0x20 && c|0x20 <= 'f':
				r = r<<4 + rune(c|0x20-'a') + 10
			default:
				return 0, 0
			}
		}
		return r, 6
	}
	return 0, 0
}

func isHigh(r rune) bool { return 0xd800 <= r && r < 0xdc00 }
func isLow(r rune) bool  { return 0xdc00 <= r && r < 0xe000 }

// appendRune appends r as UTF-8, and a lone surrogate in the same three-byte form.
func appendRune(dst []byte, r rune) []byte {
	if isHigh(r) || isLow(r) {
		return append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6)&0x3f, 0x80|byte(r)&0x3f)
	}
	return utf8.AppendRune(dst, r)
}

// surrogate returns the lone surrogate at the start of s in its three-byte form.
func surrogate(s string) (rune, bool) {
	if len(s) < 3 || s[0] != 0xed || s[1] < 0xa0 || s[1] > 0xbf || s[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(s[1]&0x3f)<<6 | rune(s[2]&0x3f), true
}

// number reads the number at the position, by the grammar of JSON.
func (p *parser) number() error {
	start, i := p.pos, p.pos
	digits := func() bool {
		from := i
		for i < len(p.src) && isDigit(p.src[i]) {
			i++
		}
		return i > from
	}
	at := func(set string) bool { return i < len(p.src) && strings.IndexByte(set, p.src[i]) >= 0 }
	if at("-") {
		i++
	}
	whole := i
	ok := digits()
	if ok && p.src[whole] == '0' && i > whole+1 {
		return p.fail("a number does not begin with 0 before another digit")
	}
	if ok && at(".") {
		i++
		ok = digits()
	}
	if ok && at("eE") {
		i++
		if at("+-") {
			i++
		}
		ok = digits()
	}
	p.pos = i
	if !ok {
		return p.unexpected("a digit")
	}
	p.values = append(p.values, Value{kind: Number, text: p.src[start:i]})
	return nil
}

func (p *parser) unexpected(want string) error {
	if p.pos >= len(p.src) {
		return p.fail("the text ends where " + want + " is expected")
	}
	r, _ := utf8.DecodeRuneInString(p.src[p.pos:])
	return p.fail(fmt.Sprintf("%s where %s is expected", strconv.QuoteRune(r), want))
}

func (p *parser) fail(reason string) error {
	path := make(Path, 0, len(p.open))
	for i := 1; i < len(p.open); i++ {
		outer, inner := p.open[i-1], p.open[i]
		if outer.object {
			path = append(path, Step{Key: p.keys[inner.keys-1]})
		} else {
			path = append(path, Step{Index: inner.values - outer.values, IsIndex: true})
		}
	}
	return &SyntaxError{Offset: p.pos, Path: path.Format(""), Reason: reason}
}

// invalidUTF8 returns the first byte that is not UTF-8, or -1.
func invalidUTF8(s string) int {
	if utf8.ValidString(s) {
		return -1
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}
