// Package ignore reads .gitignore files and says what they leave out.
//
// The rules are git's: the last pattern of a file that fits decides; one with a /
// that is not its last character counts from the file's folder, another fits names
// at any depth; a / at the end means folders only; ** stands for any folders; !
// takes back. What is in a folder that is left out cannot be taken back, so
// whoever walks does not enter it. A line that is no pattern is skipped, as are
// character classes by name ([[:alpha:]]).
//
// Parse reads at most limits.IgnoreFile bytes and limits.IgnoreRules patterns; the
// rest is not looked at. Everything is pure and safe for concurrent use.
package ignore

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-go/dsh/limits"
)

// A Decision is what rules say about a path.
type Decision int

// The decisions.
const (
	Undecided Decision = iota // no pattern fits: ask the rules of the folder above
	Ignored
	Kept // taken back with !
)

// Rules are the patterns of one file.
type Rules struct{ list []rule }

// rule is one pattern.
type rule struct {
	pattern string // as doublestar reads it; of a plain name or ending, that text
	match   func(pattern, text string) bool
	whole   bool // the path is matched, not the last name in it
	folders bool // folders only
	kept    bool
}

// Parse reads the text of a .gitignore file.
func Parse(text string) *Rules {
	r := &Rules{}
	if len(text) > limits.IgnoreFile {
		text = text[:limits.IgnoreFile]
		text = text[:strings.LastIndexByte(text, '\n')+1]
	}
	text = strings.TrimPrefix(text, "\ufeff")
	for line := range strings.Lines(text) {
		if len(r.list) >= limits.IgnoreRules {
			break
		}
		if one, ok := parse(strings.TrimRight(line, "\r\n")); ok {
			r.list = append(r.list, one)
		}
	}
	return r
}

// Empty tells that there is no pattern.
func (r *Rules) Empty() bool { return r == nil || len(r.list) == 0 }

// Match decides about a path, given from the file's folder with /; dir tells that
// it is a folder.
func (r *Rules) Match(path string, dir bool) Decision {
	if r.Empty() {
		return Undecided
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	for i := len(r.list) - 1; i >= 0; i-- {
		one := &r.list[i]
		if one.folders && !dir {
			continue
		}
		text := name
		if one.whole {
			text = path
		}
		if !one.match(one.pattern, text) {
			continue
		}
		if one.kept {
			return Kept
		}
		return Ignored
	}
	return Undecided
}

// parse reads one line.
func parse(line string) (rule, bool) {
	line = trimSpaces(line)
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	var r rule
	if line[0] == '!' {
		r.kept, line = true, line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.folders, line = true, rest
	}
	r.whole = strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return rule{}, false
	}
	if !r.whole && !strings.ContainsAny(line, `*?[\`) {
		r.pattern, r.match = line, func(pattern, text string) bool { return pattern == text }
		return r, true
	}
	if rest := strings.TrimPrefix(line, "*"); !r.whole && rest != line && !strings.ContainsAny(rest, `*?[\`) {
		r.pattern, r.match = rest, func(pattern, text string) bool { return strings.HasSuffix(text, pattern) }
		return r, true
	}
	r.pattern, r.match = translate(line), doublestar.MatchUnvalidated
	return r, doublestar.ValidatePattern(r.pattern)
}

// trimSpaces takes the spaces at the end that no backslash protects.
func trimSpaces(s string) string {
	for strings.HasSuffix(s, " ") {
		before := strings.TrimRight(s[:len(s)-1], `\`)
		if (len(s)-1-len(before))%2 == 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s
}

var braces = strings.NewReplacer(`\\`, `\\`, `\{`, `\{`, `\}`, `\}`, `{`, `\{`, `}`, `\}`)

// translate writes a pattern of git as one of doublestar.
func translate(pattern string) string {
	parts := strings.Split(braces.Replace(pattern), "/")
	for i, part := range parts {
		if part == "**" {
			continue
		}
		for strings.Contains(part, "**") && !strings.Contains(part, `\*`) {
			part = strings.ReplaceAll(part, "**", "*")
		}
		parts[i] = part
	}
	if n := len(parts); n > 1 && parts[n-1] == "**" {
		parts = append(parts, "*") // what is in the folder, not the folder
	}
	return strings.Join(parts, "/")
}
