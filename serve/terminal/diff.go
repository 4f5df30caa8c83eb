package terminal

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/tool"
)

// diffLines are the changes of files, shortened: for each the lines between its
// common beginning and its common end, at most most of them.
func diffLines(d *tool.DiffCard, width, most int) []line {
	var out []line
	for i, f := range d.Diffs {
		if i == shownItems {
			out = append(out, line{dim, "… and " + counted(len(d.Diffs)-i, "more file")})
			break
		}
		out = append(out, fileDiff(f, width, most)...)
	}
	return out
}

func fileDiff(f tool.FileDiff, width, most int) []line {
	if f.OldText == nil {
		rows := rowsOf(f.NewText)
		out := []line{{bold, plain.Line(fmt.Sprintf("%s (new, %s)", plain.Visible(f.Path), counted(len(rows), "line")), width)}}
		return append(out, marked(rows, "+", green, width, most)...)
	}
	was, is := rowsOf(*f.OldText), rowsOf(f.NewText)
	from := 0
	for from < len(was) && from < len(is) && was[from] == is[from] {
		from++
	}
	same := 0
	for same < len(was)-from && same < len(is)-from && was[len(was)-1-same] == is[len(is)-1-same] {
		same++
	}
	was, is = was[from:len(was)-same], is[from:len(is)-same]
	where := fmt.Sprintf("%s:%d (-%d +%d lines)", plain.Visible(f.Path), from+1, len(was), len(is))
	if len(was)+len(is) == 0 {
		where = plain.Visible(f.Path) + " (unchanged)"
	}
	out := []line{{bold, plain.Line(where, width)}}
	out = append(out, marked(was, "-", red, width, most/2)...)
	return append(out, marked(is, "+", green, width, most/2)...)
}

// rowsOf are the lines of a text, with everything in them to be seen.
func rowsOf(text string) []string {
	text = strings.TrimSuffix(plain.Visible(text), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

func marked(rows []string, mark, style string, width, most int) []line {
	var out []line
	for i, r := range rows {
		if i == most-1 && len(rows) > most {
			out = append(out, line{dim, mark + " … " + counted(len(rows)-i, "more line")})
			break
		}
		out = append(out, line{style, mark + " " + fit(r, width-2)})
	}
	return out
}
