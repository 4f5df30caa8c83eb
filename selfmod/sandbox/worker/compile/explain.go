package compile

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// explain makes the fault of a parser's complaint, with the hint for its place.
func explain(source, file string, s scanned, p problemAt, hint func(source string, at int) string) *wire.Fault {
	text := p.text
	if p.offset > len(source) {
		p.offset = len(strings.TrimRight(source, " \t\r\n"))
		at, what := s.since, "the "+s.inside
		if s.inside == "" && len(s.open) > 0 {
			at = s.open[len(s.open)-1]
			what = fmt.Sprintf("the %q", source[at:at+1])
		}
		text = "Unexpected end of the code: " + p.text
		if what != "the " {
			line, column := place(source, at)
			text = fmt.Sprintf("Unexpected end of the code: %s opened at %d:%d is never closed", what, line, column)
		}
	}
	return fault(source, file, p.offset, text, hint(source, p.offset))
}

var (
	moduleLine    = regexp.MustCompile(`^\s*(import|export)\b`)
	namespaceLine = regexp.MustCompile(`\b(namespace|module)\s+[\w.$]+\s*\{`)
)

// bodyHint is the sentence that fits a common mistake in a body, "" for others.
func bodyHint(source string, at int) string {
	line := lineAt(source, at)
	switch {
	case strings.HasPrefix(source, "#!") && at < len(lineAt(source, 0))+1:
		return "The code is no script file: remove the first line (#!…)."
	case moduleLine.MatchString(line):
		return "The code runs as the BODY of an async function, so there are no import and export statements: " +
			"`return` the Plugin, and reach services with inject: ['fs', …] and ctx."
	case namespaceLine.MatchString(line):
		return "A namespace cannot stand inside a function body: use an object or plain functions instead."
	}
	return ""
}

func lineAt(source string, at int) string {
	at = min(max(at, 0), len(source))
	start := strings.LastIndexByte(source[:at], '\n') + 1
	line, _, _ := strings.Cut(source[start:], "\n")
	return strings.TrimSuffix(line, "\r")
}

// fault is the error of source that does not parse.
func fault(source, file string, at int, text, hint string) *wire.Fault {
	at = min(max(at, 0), len(source))
	line, column := place(source, at)
	shown, caret := window(lineAt(source, at), column)
	f := &wire.Fault{
		Name: "SyntaxError", Code: wire.CodeSyntax, Message: text,
		Excerpt: fmt.Sprintf("%s:%d:%d\n%s\n%s^\nSyntaxError: %s", file, line, column, shown, strings.Repeat(" ", caret), text),
	}
	if hint != "" {
		f.Message += "\n" + hint
	}
	return f
}

// window cuts a line to limits.SourceLine characters around the column and
// returns how many characters stand before it.
func window(line string, column int) (string, int) {
	line = strings.Map(func(r rune) rune {
		if r == '\t' || r < ' ' || r == '\u2028' || r == '\u2029' || r == utf8.RuneError {
			return ' ' // one column stays one column
		}
		return r
	}, line)
	runes := []rune(line)
	column = min(max(column-1, 0), len(runes))
	if len(runes) <= limits.SourceLine {
		return string(runes), column
	}
	const room = limits.SourceLine - 2 // for the two marks
	from := min(max(column-room/2, 0), len(runes)-room)
	shown, caret := string(runes[from:from+room]), column-from
	if from > 0 {
		shown, caret = "…"+shown, caret+1
	}
	if from+room < len(runes) {
		shown += "…"
	}
	return shown, caret
}
