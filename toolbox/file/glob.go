package file

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

//go:embed glob.md
var globText string

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

// globValue is the canonical value of glob.
type globValue struct {
	Paths     []string `json:"paths"`
	Total     int      `json:"total"`
	Truncated bool     `json:"truncated"`
	Note      string   `json:"note,omitempty"`
}

func (t *tools) globTool() *tool.Definition {
	return &tool.Definition{
		Name: "glob", Title: "Find files", Kind: tool.KindSearch, Description: strings.TrimSpace(globText),
		Parameters: parameters(
			schema.Prop("pattern", schema.String(`Such as "**/*.go" or "src/**/*.{ts,tsx}".`), schema.Required),
			schema.Prop("path", schema.String("The folder where the pattern starts; the working directory if absent.")),
		),
		Output: tool.Output{
			Schema: output(
				schema.Prop("paths", schema.Array("The newest first.", schema.String("")), schema.Required),
				schema.Prop("total", schema.Integer("How many there are."), schema.Required),
				schema.Prop("truncated", schema.Boolean("Whether some are missing from paths."), schema.Required),
				schema.Prop("note", schema.String("What else is to be known.")),
			),
			Render: rendered(renderGlob),
			Meta: carded(func(v globValue) *tool.Card {
				return &tool.Card{Search: &tool.SearchCard{Shape: tool.ShapePaths, Paths: v.Paths, Total: max(v.Total, len(v.Paths)), Truncated: v.Truncated}}
			}),
		},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			args, err := arguments[globArgs](exec)
			if err != nil {
				return tool.Outcome{}, err
			}
			v, err := t.glob(ctx, args)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(v)
		},
		ConcurrencySafe: always,
		PresentCall: called(func(a globArgs) *tool.Card {
			return t.searchCard("Find "+a.Pattern, a.Path)
		}),
		PresentResult: cardOf,
	}
}

// searchCard is the card of a call that searches.
func (t *tools) searchCard(title, in string) *tool.Card {
	card := &tool.GenericCard{Title: title, Kind: tool.KindSearch}
	if in != "" {
		card.Title += " in " + t.shown(in)
		card.Locations = []tool.Location{{Path: t.shown(in)}}
	}
	return &tool.Card{Generic: card}
}

// dated is a path that was found.
type dated struct {
	path string
	time time.Time
}

func (t *tools) glob(ctx context.Context, a globArgs) (globValue, error) {
	if a.Pattern == "" {
		return globValue{}, failed(fs.CodeInvalidArgument, nil, `pattern is empty; "**" finds all files, "**/*.go" those whose names end in .go`)
	}
	if len(a.Pattern) > limits.FSPattern || !doublestar.ValidatePattern(a.Pattern) {
		return globValue{}, failed(fs.CodeInvalidArgument, nil, `pattern %q is none: a [ or { is not closed, or it is too long; "**/*.go" and "src/**/*.{ts,tsx}" are some, \[ is the character itself`, plain.Line(a.Pattern, limits.Preview))
	}
	base, pattern := doublestar.SplitPattern(a.Pattern)
	if pattern == "" {
		pattern = "**"
	}
	from := base
	if !filepath.IsAbs(base) {
		from = path.Join(a.Path, base)
	}
	ctx, stop := context.WithTimeout(ctx, limits.GrepTime)
	defer stop()
	var mu sync.Mutex
	var found []dated
	v := globValue{Paths: []string{}}
	scanned, err := t.fs.Scan(ctx, t.c, fs.Scan{Start: t.place(from), Pattern: pattern, Links: true}, func(f *fs.Found) error {
		info, err := f.Info()
		if err != nil {
			return nil // it went meanwhile
		}
		mu.Lock()
		defer mu.Unlock()
		v.Total++
		if found = append(found, dated{f.Rel, info.ModTime()}); len(found) >= 10*limits.GlobPaths {
			found = newest(found)
		}
		return nil
	})
	v.Note = t.unseen(ctx, scanned, err)
	switch code := service.CodeOf(err); {
	case v.Note != "":
	case code == fs.CodeNotFound:
		if a.Path == "" && from != "." { // the pattern's own folder: nothing is there that could match
			v.Note = fmt.Sprintf("There is no folder %s.", t.shown(from))
			break
		}
		return v, t.notFound(ctx, "glob", from, err)
	case err != nil:
		return v, t.failure("glob", from, err)
	}
	for _, f := range newest(found) {
		v.Paths = append(v.Paths, t.shown(path.Join(from, f.path)))
	}
	v.Truncated = v.Total > len(v.Paths) || v.Note != "" && len(v.Paths) > 0
	if v.Total == 0 && v.Note == "" && !strings.Contains(a.Pattern, "/") && !strings.Contains(a.Pattern, "**") {
		v.Note = fmt.Sprintf("The pattern has no /, so it fits names in the folder itself only; **/%s looks in the folders below too.", plain.Line(a.Pattern, limits.Preview))
	}
	return v, nil
}

// newest keeps the files that are shown.
func newest(found []dated) []dated {
	slices.SortFunc(found, func(a, b dated) int { return cmp.Or(b.time.Compare(a.time), cmp.Compare(a.path, b.path)) })
	return found[:min(len(found), limits.GlobPaths)]
}

// unseen says why a search did not see everything: its time, or too much to see. It
// is "" where it did, and where err is another one.
func (t *tools) unseen(timed context.Context, s fs.Scanned, err error) string {
	switch {
	case err == nil && s.Unseen != "":
		return fmt.Sprintf("The search did not see everything: %s. Name a folder in path.", s.Unseen)
	case err == nil && s.Unread > 0:
		return fmt.Sprintf("%s could not be read.", count(s.Unread, "folder"))
	case err != nil && errors.Is(context.Cause(timed), context.DeadlineExceeded) && ended(timed, err):
		return fmt.Sprintf("The search did not see everything: it was ended after %s. Name a folder in path, or a narrower pattern.", limits.GrepTime)
	}
	return ""
}

func renderGlob(v globValue) string {
	var b strings.Builder
	if len(v.Paths) == 0 {
		b.WriteString("No files found\n")
	}
	for _, p := range v.Paths {
		b.WriteString(p + "\n")
	}
	if v.Total > len(v.Paths) {
		fmt.Fprintf(&b, "\n(Showing the %d newest of %s files. A narrower pattern or path shows the others.)\n", len(v.Paths), number(v.Total))
	}
	if v.Note != "" {
		fmt.Fprintf(&b, "\n(%s)\n", v.Note)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
