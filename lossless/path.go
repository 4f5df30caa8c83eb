package lossless

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Step is one step of a Path: a member's key, or an item's index when IsIndex.
type Step struct {
	Key     string
	Index   int
	IsIndex bool
}

// Path leads from a root to a value.
type Path []Step

// The most characters of a printed path, and of a key in it.
const (
	maxPath = 200
	maxKey  = 60
)

// Format prints the path as one writes it in JavaScript: root.items[2].label, keys
// that are not plain words as ["odd key"]. With root "" it begins with the first
// step. Of a path longer than about 200 bytes the middle is left out, of a key
// longer than 60 the end; both show as "…". Nothing in it can forge a line.
func (p Path) Format(root string) string {
	var head strings.Builder
	head.WriteString(root)
	for i, step := range p {
		text := step.format(head.Len() == 0)
		if head.Len()+len(text) <= maxPath*2/3 {
			head.WriteString(text)
			continue
		}
		// What is left may be long: print it from the end while it fits.
		var tail []string
		room := maxPath / 3
		for j := len(p) - 1; j >= i; j-- {
			text := p[j].format(false)
			if room -= len(text); room < 0 && len(tail) > 0 {
				head.WriteString("…")
				break
			}
			tail = append(tail, text)
		}
		for j := len(tail) - 1; j >= 0; j-- {
			head.WriteString(tail[j])
		}
		break
	}
	return head.String()
}

func (s Step) format(first bool) string {
	switch {
	case s.IsIndex:
		return "[" + strconv.Itoa(s.Index) + "]"
	case !plainWord(s.Key):
		return "[" + quote(s.Key) + "]"
	case first:
		return s.Key
	}
	return "." + s.Key
}

// plainWord reports whether a key can stand in a path as it is.
func plainWord(key string) bool {
	if key == "" || len(key) > maxKey {
		return false
	}
	for i, r := range key {
		switch {
		case r == '_', r == '$', unicode.IsLetter(r) && utf8.ValidRune(r):
		case i > 0 && (r == '-' || unicode.IsDigit(r)):
		default:
			return false
		}
	}
	return true
}

// quote prints a key or a string so that it stays one safe word.
func quote(s string) string {
	if utf8.RuneCountInString(s) <= maxKey {
		return strconv.Quote(s)
	}
	runes := 0
	for i := range s {
		if runes++; runes > maxKey {
			return strconv.Quote(s[:i]) + "…"
		}
	}
	return strconv.Quote(s)
}
