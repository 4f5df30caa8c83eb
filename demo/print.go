package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxLine is how much of one line of an answer is shown.
const maxLine = 270

// printer writes lines of at most Columns characters. It keeps the first error
// and writes nothing after it.
type printer struct {
	w   io.Writer
	err error
}

func newPrinter(w io.Writer) *printer { return &printer{w: w} }

func (p *printer) line(s string) {
	if p.err != nil {
		return
	}
	if _, err := io.WriteString(p.w, s+"\n"); err != nil {
		p.err = fmt.Errorf("write transcript: %w", err)
	}
}

// text writes a text in as many lines as it needs, each after the same prefix.
func (p *printer) text(prefix, s string) {
	for _, l := range wrap(s, Columns-utf8.RuneCountInString(prefix)) {
		p.line(prefix + l)
	}
}

// ask shows a call.
func (p *printer) ask(c call) {
	if c.plugin == "" {
		p.line("   > " + c.tool + " " + compact(c.args))
		return
	}
	p.line("   > " + c.tool + " (" + c.plugin + ".js)")
	if c.code == 0 {
		return
	}
	source, err := source(c.plugin)
	if err != nil {
		return // Model failed with it
	}
	lines := strings.Split(source, "\n")
	for _, l := range lines[:min(c.code, len(lines))] {
		p.text("   >   ", l)
	}
	if more := len(lines) - c.code; more > 0 {
		p.line(fmt.Sprintf("   >   … (%d more lines)", more))
	}
}

// answer shows a text.
func (p *printer) answer(s string) {
	for l := range strings.Lines(strings.TrimRight(s, "\n")) {
		p.text("   | ", cut(strings.TrimRight(l, "\n"), maxLine))
	}
}

// compact is a call's arguments as JSON.
func compact(args map[string]any) string {
	if len(args) == 0 {
		return "{}"
	}
	text, err := json.Marshal(args)
	if err != nil {
		return "{…}"
	}
	return string(text)
}

func cut(s string, most int) string {
	r := []rune(s)
	if len(r) <= most {
		return s
	}
	return string(r[:most-1]) + "…"
}

// wrap breaks a line at spaces, and in a word only where it is longer than a
// line. Continued lines keep the indentation of the first.
func wrap(s string, width int) []string {
	body := strings.TrimLeft(s, " ")
	indent := strings.Repeat(" ", min(len(s)-len(body), width/2))
	var lines []string
	rest := []rune(indent + body)
	for len(rest) > width {
		at := width
		for i := width; i > len(indent); i-- {
			if rest[i] == ' ' {
				at = i
				break
			}
		}
		lines = append(lines, strings.TrimRight(string(rest[:at]), " "))
		rest = []rune(indent + strings.TrimLeft(string(rest[at:]), " "))
	}
	return append(lines, string(rest))
}
