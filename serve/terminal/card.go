package terminal

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/tool"
)

// How much of a card is shown.
const (
	shownLines = 12 // of output, and of a file
	shownDiff  = 24 // of the changes of one file
	shownItems = 10 // of a search
	shownCode  = 60 // of code that a person is asked about
)

// line is one line of text and its style.
type line struct{ style, text string }

// titleOf is what a call does, in one line.
func titleOf(name string, c *tool.Card) string {
	title := ""
	switch {
	case c == nil:
	case c.Generic != nil:
		title = c.Generic.Title
	case c.Terminal != nil:
		title = "$ " + strings.ReplaceAll(strings.TrimSpace(c.Terminal.Title), "\n", " ⏎ ")
		if c.Terminal.Title == "" {
			title = c.Terminal.Description
		}
	case c.Diff != nil:
		if title = c.Diff.Title; title == "" && len(c.Diff.Diffs) > 0 {
			title = "Edit " + c.Diff.Diffs[0].Path
		}
	}
	if title == "" {
		title = name
	}
	return title
}

// callLines are what a call shows beside its title.
func callLines(c *tool.Card, width int) []line {
	switch {
	case c == nil:
		return nil
	case c.Diff != nil:
		return diffLines(c.Diff, width, shownDiff)
	case c.Generic != nil && c.Generic.RawInput != nil && c.Generic.Kind != tool.KindRead && c.Generic.Kind != tool.KindSearch:
		text := string(c.Generic.RawInput)
		if text == "{}" {
			return nil
		}
		return []line{{dim, plain.Line(plain.Preview(text), width)}}
	}
	return nil
}

// resultLines are what a result shows.
func resultLines(c *tool.Card, width int) []line {
	switch {
	case c == nil:
		return nil
	case c.Terminal != nil:
		return terminalLines(c.Terminal, width)
	case c.Diff != nil:
		return diffLines(c.Diff, width, shownDiff)
	case c.Search != nil:
		return searchLines(c.Search, width)
	case c.Read != nil:
		return []line{{dim, plain.Line(readText(c.Read), width)}}
	case c.Web != nil:
		return webLines(c.Web, width)
	}
	return block(blocksText(c.Generic.Content), dim, width, shownLines)
}

// readText is how much of a file was read; of one that has no lines, as an image
// has none, the name alone.
func readText(r *tool.ReadCard) string {
	if r.TotalLines == 0 {
		return r.Path
	}
	return fmt.Sprintf("%s: %d of %s", r.Path, len(r.Lines), counted(r.TotalLines, "line"))
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func terminalLines(t *tool.TerminalCard, width int) []line {
	var out []line
	if t.Output != nil {
		out = block(*t.Output, dim, width, shownLines)
	}
	switch {
	case t.Signal != "":
		out = append(out, line{red, "ended by " + plain.Name(t.Signal)})
	case t.ExitCode != nil && *t.ExitCode != 0:
		out = append(out, line{red, fmt.Sprintf("exit status %d", *t.ExitCode)})
	}
	return out
}

func searchLines(s *tool.SearchCard, width int) []line {
	var out []line
	for _, m := range s.Matches {
		out = append(out, line{dim, plain.Line(fmt.Sprintf("%s:%d: %s", m.Path, m.Line, m.Text), width)})
	}
	for _, p := range s.Paths {
		out = append(out, line{dim, plain.Line(p, width)})
	}
	listed := len(out)
	out = out[:min(listed, shownItems)]
	if more := s.Total - len(out); more > 0 {
		out = append(out, line{dim, fmt.Sprintf("… and %d more", more)})
	}
	if s.Total == 0 {
		out = append(out, line{dim, "nothing found"})
	}
	return out
}

func webLines(w *tool.WebCard, width int) []line {
	if w.Kind == tool.WebFetch {
		text := w.Title
		if w.Status != 0 {
			text = strings.TrimSpace(fmt.Sprintf("%d %s", w.Status, text))
		}
		return []line{{dim, plain.Line(text, width)}}
	}
	var out []line
	for _, r := range w.Results[:min(len(w.Results), shownItems)] {
		out = append(out, line{dim, plain.Line(r.Title+" — "+r.URL, width)})
	}
	if more := len(w.Results) - len(out); more > 0 {
		out = append(out, line{dim, fmt.Sprintf("… and %d more", more)})
	}
	return out
}

// blocksText is the text of content; what is none is named.
func blocksText(content []tool.Block) string {
	var texts []string
	for _, b := range content {
		if b.Type == "text" {
			texts = append(texts, b.Text)
		} else {
			texts = append(texts, "("+plain.Name(b.Type)+")")
		}
	}
	return strings.Join(texts, "\n")
}

// block is a text as at most most lines: its beginning and its end.
func block(text, style string, width, most int) []line {
	text = strings.Trim(plain.Terminal(text), "\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	rows := strings.Split(text, "\n")
	head, tail := rows, []string(nil)
	cut := 0
	if len(rows) > most {
		head, tail = rows[:most/2], rows[len(rows)-(most-most/2-1):]
		cut = len(rows) - len(head) - len(tail)
	}
	var out []line
	add := func(rows []string) {
		for _, r := range rows {
			out = append(out, line{style, fit(r, width)})
		}
	}
	add(head)
	if cut > 0 {
		out = append(out, line{dim, fmt.Sprintf("… %s …", counted(cut, "line"))})
		add(tail)
	}
	return out
}

// fit is a row of a block: its indentation stays, what is too long is cut.
func fit(row string, width int) string {
	row = strings.ReplaceAll(row, "\t", "    ")
	indent := len(row) - len(strings.TrimLeft(row, " "))
	indent = min(indent, width/2)
	return row[:indent] + plain.Line(row[indent:], width-indent)
}
