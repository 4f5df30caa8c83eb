package file

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

//go:embed grep.md
var grepText string

// The modes of output of grep.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

type grepArgs struct {
	Pattern string  `json:"pattern"`
	Path    string  `json:"path"`
	Glob    string  `json:"glob"`
	Mode    string  `json:"output_mode"`
	Fold    bool    `json:"case_insensitive"`
	Context integer `json:"context"`
}

// grepValue is the canonical value of grep.
type grepValue struct {
	Mode      string     `json:"output_mode"`
	Files     []fileHits `json:"files"`
	Matches   int        `json:"matches"`       // lines that fit, in all files
	Matched   int        `json:"matched_files"` // files with some
	Truncated bool       `json:"truncated"`
	Note      string     `json:"note,omitempty"`
}

func (t *tools) grepTool() *tool.Definition {
	text, number, yes := schema.String, schema.Integer, schema.Boolean
	return &tool.Definition{
		Name: "grep", Title: "Search in files", Kind: tool.KindSearch, Description: strings.TrimSpace(grepText),
		Parameters: parameters(
			schema.Prop("pattern", text("A regular expression (RE2, as in Go), matched against each line."), schema.Required),
			schema.Prop("path", text("The folder or file to search; the working directory if absent.")),
			schema.Prop("glob", text(`Only files that fit, such as "*.go" or "src/**/*.{ts,tsx}"; with ! before it, only the others.`)),
			schema.Prop("output_mode", schema.Enum("content (the default): the lines; files_with_matches: the paths only; count: how many lines in each file.", modeContent, modeFiles, modeCount)),
			schema.Prop("case_insensitive", yes("Take upper and lower case for the same.")),
			schema.Prop("context", number(fmt.Sprintf("How many lines to show before and after each match, %d at most.", limits.GrepContext))),
		),
		Output: tool.Output{
			Schema: output(
				schema.Prop("output_mode", text(""), schema.Required),
				schema.Prop("files", schema.Array("In the order of their paths.", schema.Object(
					schema.Prop("path", text(""), schema.Required),
					schema.Prop("matches", number("How many lines fit."), schema.Required),
					schema.Prop("lines", schema.Array("", schema.Object(
						schema.Prop("line", number("Its number."), schema.Required), schema.Prop("text", text(""), schema.Required),
						schema.Prop("match", yes("Whether it fits, or stands around one."), schema.Required)))))), schema.Required),
				schema.Prop("matches", number("Lines that fit, in all files."), schema.Required),
				schema.Prop("matched_files", number("Files with such lines."), schema.Required),
				schema.Prop("truncated", yes("Whether some are missing from files."), schema.Required),
				schema.Prop("note", text("What else is to be known.")),
			),
			Render: rendered(renderGrep),
			Meta:   carded(grepCard),
		},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			args, err := arguments[grepArgs](exec)
			if err != nil {
				return tool.Outcome{}, err
			}
			v, err := t.grep(ctx, args)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(v)
		},
		ConcurrencySafe: always,
		PresentCall: called(func(a grepArgs) *tool.Card {
			return t.searchCard("Search for "+a.Pattern, a.Path)
		}),
		PresentResult: cardOf,
	}
}

// search is one search by grep.
type search struct {
	*matcher
	args grepArgs
	only func(rel string) bool // which files

	bytes atomic.Int64

	mu      sync.Mutex
	files   []fileHits
	kept    int // lines that fit, in files
	value   grepValue
	binary  int
	records int // files with lines that are too long
}

// errBytes ends a search that has read as much as it may.
var errBytes = errors.New("enough was read")

func (t *tools) grep(ctx context.Context, a grepArgs) (grepValue, error) {
	a.Mode = cmp.Or(a.Mode, modeContent)
	a.Path = cmp.Or(a.Path, ".")
	if a.Context < 0 || a.Context > limits.GrepContext {
		return grepValue{}, failed(fs.CodeInvalidArgument, nil, "context is %d; it goes from 0 to %d", a.Context, limits.GrepContext)
	}
	s := &search{args: a, value: grepValue{Mode: a.Mode, Files: []fileHits{}}}
	var err error
	if s.matcher, err = compile(a.Pattern, a.Fold); err != nil {
		return grepValue{}, err
	}
	if s.only, err = filter(a.Glob, a.Path); err != nil {
		return grepValue{}, err
	}
	timed, stop := context.WithTimeout(ctx, limits.GrepTime)
	defer stop()
	scanned, err := t.fs.Scan(timed, t.c, fs.Scan{Start: t.place(a.Path)}, func(f *fs.Found) error { return s.file(timed, f) })
	s.value.Note = t.unseen(timed, scanned, err)
	switch {
	case s.value.Note != "":
	case errors.Is(err, errBytes):
		s.value.Note = fmt.Sprintf("The search did not see everything: it has read %d MB. Name a folder in path, or a glob.", limits.GrepBytes>>20)
	case service.CodeOf(err) == fs.CodeNotFound:
		return grepValue{}, t.notFound(ctx, "grep", a.Path, err)
	case err != nil:
		return grepValue{}, t.failure("grep", a.Path, err)
	}
	return s.end(func(rel string) string {
		if scanned.File {
			return t.shown(a.Path)
		}
		return t.shown(path.Join(a.Path, rel))
	}), nil
}

// filter reads the argument glob: a pattern without / fits names at any depth,
// another one paths from where the search starts, or from the working directory.
func filter(glob, from string) (func(rel string) bool, error) {
	if glob == "" {
		return func(string) bool { return true }, nil
	}
	pattern, other := strings.CutPrefix(glob, "!")
	if len(pattern) > limits.FSPattern || !doublestar.ValidatePattern(pattern) {
		return nil, failed(fs.CodeInvalidArgument, nil, `glob %q is not a pattern: a [ or { is not closed, or it is too long; "*.go" and "src/**/*.{ts,tsx}" are some`, plain.Line(glob, limits.Preview))
	}
	pattern = strings.TrimPrefix(pattern, "./")
	if !strings.Contains(pattern, "/") {
		pattern = "**/" + pattern
	}
	return func(rel string) bool {
		fits := doublestar.MatchUnvalidated(pattern, rel) || doublestar.MatchUnvalidated(pattern, path.Join(from, rel))
		return fits != other
	}, nil
}

// file searches one file.
func (s *search) file(ctx context.Context, f *fs.Found) error {
	if !s.only(f.Rel) {
		return nil
	}
	file, err := f.Open()
	if err != nil {
		return nil // it went meanwhile, or may not be read
	}
	defer func() { _ = file.Close() }() // it was only read
	l := &lookup{matcher: s.matcher, context: int(s.args.Context), max: limits.GrepMatches, first: s.args.Mode == modeFiles}
	if s.args.Mode != modeContent {
		l.max, l.context = 0, 0
	}
	err = l.search(ctx, file, func(n int) error {
		if s.bytes.Add(int64(n)) > limits.GrepBytes {
			return errBytes
		}
		return nil
	})
	if l.out.Matches > 0 && (err == nil || errors.Is(err, errBytes)) && !f.MayRead() {
		return nil // for whoever may not read it there is nothing in it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case errors.Is(err, errBinary):
		s.binary++
	case errors.Is(err, errRecord):
		s.records++
	case errors.Is(err, errBytes):
		return err
	case err == nil && l.out.Matches > 0:
		l.out.Path = f.Rel
		s.add(l.out)
	}
	return ctx.Err()
}

// add keeps what was found in a file, unless it comes after all that can be shown.
func (s *search) add(f fileHits) {
	s.value.Matches += f.Matches
	s.value.Matched++
	s.files = append(s.files, f)
	if s.kept += max(1, min(f.Matches, limits.GrepMatches)); s.kept > 8*limits.GrepMatches {
		s.trim()
	}
}

// trim drops the files, and the lines, that are beyond what is shown.
func (s *search) trim() {
	slices.SortFunc(s.files, func(a, b fileHits) int { return cmp.Compare(a.Path, b.Path) })
	s.kept = 0
	for i := range s.files {
		f := &s.files[i]
		if s.kept >= limits.GrepMatches {
			s.files = s.files[:i]
			return
		}
		if s.args.Mode != modeContent {
			s.kept++
			continue
		}
		for n, line := range f.Lines {
			if line.Match {
				s.kept++
			}
			if s.kept > limits.GrepMatches {
				s.kept = limits.GrepMatches
				f.Lines = f.Lines[:n]
				break
			}
		}
	}
}

// end makes the value.
func (s *search) end(shown func(rel string) string) grepValue {
	s.trim()
	v := s.value
	size, lines := 0, 0
	for _, f := range s.files {
		f.Path = shown(f.Path)
		size += len(f.Path)
		for i, line := range f.Lines {
			if size += len(line.Text) + len("  Line 12345: \n"); size > limits.FileShown {
				f.Lines = f.Lines[:i]
				break
			}
			if line.Match {
				lines++
			}
		}
		if size > limits.FileShown && len(v.Files) > 0 && len(f.Lines) == 0 {
			break
		}
		v.Files = append(v.Files, f)
		if size > limits.FileShown {
			break
		}
	}
	v.Truncated = v.Note != "" || len(v.Files) < v.Matched || v.Mode == modeContent && lines < v.Matches
	if s.records > 0 {
		v.Note = strings.TrimSpace(fmt.Sprintf("%s Left out: %s with lines of more than %d MB.", v.Note, count(s.records, "file"), limits.GrepRecord>>20))
	}
	if s.binary > 0 && v.Matches == 0 {
		v.Note = strings.TrimSpace(fmt.Sprintf("%s Left out: %s without text.", v.Note, count(s.binary, "file")))
	}
	return v
}

func renderGrep(v grepValue) string {
	var b strings.Builder
	switch {
	case len(v.Files) == 0:
		b.WriteString("No matches found\n")
	case v.Mode == modeContent:
		fmt.Fprintf(&b, "Found %s\n", count(v.Matches, "match"))
	case v.Mode == modeCount:
		fmt.Fprintf(&b, "Found %s in %s\n", count(v.Matches, "match"), count(v.Matched, "file"))
	default:
		fmt.Fprintf(&b, "Found %s\n", count(v.Matched, "file"))
	}
	lines := 0
	for i, f := range v.Files {
		switch v.Mode {
		case modeFiles:
			b.WriteString(f.Path + "\n")
			continue
		case modeCount:
			fmt.Fprintf(&b, "%s: %d\n", f.Path, f.Matches)
			continue
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(f.Path + ":\n")
		for n, line := range f.Lines {
			if n > 0 && line.Line > f.Lines[n-1].Line+1 && (!line.Match || !f.Lines[n-1].Match) {
				b.WriteString("  --\n")
			}
			mark := "-"
			if line.Match {
				mark = ":"
				lines++
			}
			fmt.Fprintf(&b, "  Line %d%s %s\n", line.Line, mark, line.Text)
		}
	}
	switch {
	case v.Mode == modeContent && lines < v.Matches:
		fmt.Fprintf(&b, "\n(Showing %d of %s matches in %s, in the order of the paths. A narrower pattern, path or glob shows the others; output_mode \"count\" tells where they are.)\n", lines, number(v.Matches), count(v.Matched, "file"))
	case v.Mode != modeContent && len(v.Files) < v.Matched:
		fmt.Fprintf(&b, "\n(Showing %d of %s files, in the order of the paths. A narrower pattern, path or glob shows the others.)\n", len(v.Files), number(v.Matched))
	}
	if v.Note != "" {
		fmt.Fprintf(&b, "\n(%s)\n", v.Note)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// grepCard shows the lines that fit, or the files.
func grepCard(v grepValue) *tool.Card {
	card := &tool.SearchCard{Shape: tool.ShapeMatches, Truncated: v.Truncated, Total: v.Matches}
	if v.Mode != modeContent {
		card.Shape, card.Total = tool.ShapePaths, v.Matched
	}
	for _, f := range v.Files {
		if v.Mode != modeContent {
			card.Paths = append(card.Paths, f.Path)
			continue
		}
		for _, line := range f.Lines {
			if line.Match {
				card.Matches = append(card.Matches, tool.Match{Path: f.Path, Line: line.Line, Text: line.Text})
			}
		}
	}
	return &tool.Card{Search: card}
}
