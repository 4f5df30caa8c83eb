package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Terminal strips what a terminal would act on: ANSI, OSC and C1 control
// sequences, other control characters than newline and tab, and bidirectional
// overrides. A carriage return becomes a newline, so that it cannot overwrite a line.
func Terminal(s string) string {
	s = strings.ReplaceAll(strip(s), "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r < 0x20, 0x7f <= r && r < 0xa0, 0x202a <= r && r <= 0x202e, 0x2066 <= r && r <= 0x2069:
			return -1
		}
		return r
	}, s)
}

const (
	esc = 0x1b
	bel = 0x07
	st  = 0x9c // the C1 string terminator
)

// strip removes whole control sequences, introducer to terminator, in their
// seven-bit (ESC [) and C1 forms. A sequence that never ends is removed up to the
// end of its line.
func strip(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexFunc(s, introduces)
		if i < 0 {
			if b.Len() == 0 {
				return s
			}
			break
		}
		b.WriteString(s[:i])
		s = s[i+sequence(s[i:]):]
	}
	b.WriteString(s)
	return b.String()
}

func introduces(r rune) bool {
	switch r {
	case esc, 0x90, 0x98, 0x9b, 0x9d, 0x9e, 0x9f:
		return true
	}
	return false
}

// sequence returns the length in bytes of the control sequence that s begins with.
func sequence(s string) int {
	r, n := utf8.DecodeRuneInString(s)
	if r == esc {
		if n == len(s) {
			return n
		}
		switch s[n] {
		case '[':
			r = 0x9b
		case ']', 'P', 'X', '^', '_':
			r = 0x9d
		default:
			// ESC, intermediates, one final byte.
			for n < len(s) && 0x20 <= s[n] && s[n] < 0x30 {
				n++
			}
			if n < len(s) && 0x30 <= s[n] && s[n] < 0x7f {
				n++
			}
			return n
		}
		n++
	}
	if r == 0x9b {
		for n < len(s) && 0x20 <= s[n] && s[n] < 0x40 {
			n++
		}
		if n < len(s) && 0x40 <= s[n] && s[n] < 0x7f {
			n++
		}
		return n
	}
	return n + controlString(s[n:])
}

// controlString returns the length of an OSC, DCS, SOS, PM or APC string,
// terminator included.
func controlString(s string) int {
	for i, r := range s {
		switch {
		case r == bel:
			return i + 1
		case r == st:
			return i + 2
		case r == esc && strings.HasPrefix(s[i+1:], `\`):
			return i + 2
		case r == esc, r == '\n':
			return i
		}
	}
	return len(s)
}

// Visible returns s with everything that a screen would act on or not show in
// words, for what a person is to judge as it is: \x1b for a control character,
// <U+202E> for what is invisible, changes a direction or looks like a space.
// Newlines and tabs stay; what was replaced cannot be told from the same words in
// the text.
func Visible(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	if strings.IndexFunc(s, hides) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !hides(r):
			b.WriteRune(r)
		case r == '\r':
			b.WriteString(`\r`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, "<U+%04X>", r)
		}
	}
	return b.String()
}

// hides reports whether Visible says a character in words.
func hides(r rune) bool {
	switch r {
	case '\n', '\t', ' ':
		return false
	}
	return invisible(r) || unicode.IsSpace(r)
}
