// Package plain makes foreign text safe to show: names, lines, errors and
// values that came from a plugin, a model, a tool or a file.
//
// Every function is pure and may be called from any goroutine. Those that return a
// text take any bytes (what is not UTF-8 becomes U+FFFD) and return valid UTF-8; all
// of them but Preview leave what they returned as it is when they are given it again.
// Lengths are in characters (runes). Text far beyond its limit is not walked to its
// end. Beside them are Nearest, for names that were meant, and Torn and Continued, for
// texts that come in pieces.
package plain

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
)

// unnamed stands for a name with nothing visible in it.
const unnamed = "(unnamed)"

// Name returns s as one line of at most limits.Name characters that cannot forge
// a line, a quote or Markdown structure in a report. Ordinary names are unchanged.
//
//   - Control, bidirectional, zero-width and other invisible characters go; white
//     space becomes one space.
//   - What opens code, links, emphasis, tables, HTML or a quoted value, wherever it
//     stands, is replaced by a look-alike: ` " become ', [ ] become ( ), < > become
//     ‹ ›, | becomes ¦, * becomes ∗, ~ becomes ∼, \ becomes ∖.
//   - What opens a heading, a list, a quote or a rule at the start of a line goes:
//     leading # > - + = and spaces.
//
// A cut shows as "…". Of a name with nothing visible in it "(unnamed)" remains.
func Name(s string) string {
	line := Line(s, 8*limits.Name)
	line = strings.Map(func(r rune) rune {
		switch r {
		case '`', '"':
			return '\''
		case '[':
			return '('
		case ']':
			return ')'
		case '<':
			return '‹'
		case '>':
			return '›'
		case '|':
			return '¦'
		case '*':
			return '∗'
		case '~':
			return '∼'
		case '\\':
			return '∖'
		}
		return r
	}, line)
	line = strings.TrimLeft(line, "#›-+= ")
	if line == "" {
		return unnamed
	}
	return ellipsis(line, limits.Name)
}

// Line returns s as one line of at most max characters, without control,
// bidirectional, zero-width and other invisible characters; white space becomes one
// space and none at the ends. A cut shows as "…". Markdown is left as it is.
func Line(s string, max int) string {
	s = head(s, scan(max))
	s = strip(s)
	var b strings.Builder
	space := false
	for _, r := range s {
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		if invisible(r) {
			continue
		}
		if space {
			b.WriteByte(' ')
			space = false
		}
		b.WriteRune(r)
	}
	return strings.TrimRight(ellipsis(b.String(), max), " ")
}

// Error returns an error's text for a report: at most limits.ErrorText characters,
// newlines kept, control sequences stripped.
func Error(s string) string {
	return Cut(Terminal(s), limits.ErrorText)
}

// Cut returns s cut to at most max characters, the note of how many were cut
// included: "… (1234 characters cut)". Where max leaves no room for the note, only
// "…" stands.
func Cut(s string, max int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	total := utf8.RuneCountInString(s)
	if total <= max {
		return s
	}
	// The note's own length depends on the number in it, by at most a digit.
	keep := max - utf8.RuneCountInString(cutNote(total))
	if keep < max/2 {
		return ellipsis(s, max)
	}
	return head(s, keep) + cutNote(total-keep)
}

func cutNote(n int) string { return fmt.Sprintf("… (%d characters cut)", n) }

// Preview returns a JSON text in one line, without the white space between its
// tokens, cut at limits.Preview characters and "…". Characters that could forge or
// hide something are shown as escapes. What is not JSON is shown in the same way.
func Preview(text string) string {
	var b strings.Builder
	inString, escaped, n := false, false, 0
	for _, r := range text {
		if !inString && (r == ' ' || r == '\n' || r == '\t' || r == '\r') {
			continue
		}
		if n == limits.Preview {
			b.WriteString("…")
			break
		}
		n++
		switch {
		case escaped:
			escaped = false
		case inString && r == '\\':
			escaped = true
		case r == '"':
			inString = !inString
		}
		switch {
		case r > 0xffff && invisible(r):
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		case invisible(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Escape returns a JSON text that says the same with every character that could
// forge or hide something written as an escape. Its length is not bounded.
func Escape(json string) string {
	if strings.IndexFunc(json, invisible) < 0 {
		return json
	}
	var b strings.Builder
	for _, r := range json {
		switch {
		case !invisible(r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// ellipsis cuts s to at most max characters, the last of which is then "…".
func ellipsis(s string, max int) string {
	if max <= 0 {
		return ""
	}
	if utf8.RuneCountInString(s) <= max {
		return s
	}
	return head(s, max-1) + "…"
}

// head returns the first n characters of s.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// scan is how many characters are read for a line of max: many may be dropped,
// but hostile text is not walked to its end.
func scan(max int) int { return 16*max + 1024 }

// invisible reports whether r shows nothing or changes how its neighbours show:
// control and format characters, line and paragraph separators, variation
// selectors, tags, fillers, and what is not a character.
func invisible(r rune) bool {
	switch {
	case 0x20 <= r && r < 0x7f:
		return false
	case r == 0x2800, r == 0x3164, r == 0xffa0, r == 0x115f, r == 0x1160:
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs, unicode.Co,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point)
}
