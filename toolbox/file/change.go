package file

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

//go:embed write.md
var writeText string

//go:embed edit.md
var editText string

// hunk is what changed in a file, with some lines around it.
type hunk struct {
	Line int     `json:"line,omitempty"` // of its first line; absent: not known
	Old  *string `json:"old,omitempty"`  // absent: nothing was there
	New  string  `json:"new"`
}

var hunkSchema = schema.Object(
	schema.Prop("line", schema.Integer("The number of the first line.")),
	schema.Prop("old", schema.String("What was there; absent in a new file.")),
	schema.Prop("new", schema.String("What is there now."), schema.Required),
)

type writeArgs struct {
	FilePath string `json:"file_path"`
	Content  string `json:"content"`
}

// writeValue is the canonical value of write.
type writeValue struct {
	Path      string            `json:"path"`
	Operation fs.WriteOperation `json:"operation"`
	Change    hunk              `json:"change"`
}

func (t *tools) writeTool() *tool.Definition {
	return &tool.Definition{
		Name: "write", Title: "Write file", Kind: tool.KindEdit, Description: strings.TrimSpace(writeText),
		Parameters: parameters(
			schema.Prop("file_path", schema.String("The file; absolute, or relative to the working directory."), schema.Required),
			schema.Prop("content", schema.String("The whole new content of the file."), schema.Required),
		),
		Output: tool.Output{
			Schema: output(
				schema.Prop("path", schema.String(""), schema.Required),
				schema.Prop("operation", schema.Enum("", string(fs.OperationCreate), string(fs.OperationUpdate)), schema.Required),
				schema.Prop("change", hunkSchema, schema.Required),
			),
			Render: rendered(func(v writeValue) string {
				if v.Operation == fs.OperationCreate {
					return envelope(v.Path, kindFile, "Created file")
				}
				return envelope(v.Path, kindFile, "Updated file")
			}),
			Meta: carded(func(v writeValue) *tool.Card { return v.Change.card("", v.Path) }),
		},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			args, err := arguments[writeArgs](exec)
			if err != nil {
				return tool.Outcome{}, err
			}
			v, err := t.write(ctx, args)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(v)
		},
		PresentCall: called(func(a writeArgs) *tool.Card {
			path := t.shown(a.FilePath)
			return (&hunk{New: plain.Cut(a.Content, limits.FSEcho)}).card("Write "+path, path)
		}),
		PresentResult: cardOf,
	}
}

func (h *hunk) card(title, path string) *tool.Card {
	return &tool.Card{Diff: &tool.DiffCard{
		Title:     title,
		Diffs:     []tool.FileDiff{{Path: path, OldText: h.Old, NewText: h.New}},
		Locations: []tool.Location{{Path: path, Line: h.Line}},
	}}
}

func (t *tools) write(ctx context.Context, a writeArgs) (writeValue, error) {
	if a.FilePath == "" {
		return writeValue{}, failed(fs.CodeInvalidArgument, nil, "file_path is empty; name the file")
	}
	known, err := t.known(ctx, "write", a.FilePath)
	if err != nil {
		return writeValue{}, err
	}
	var o *fs.WriteOptions
	if scope, ok := model(ctx); ok && !t.unguarded && scope.Within(tool.ScopeOf(t.c)) {
		// What the model does not know is not replaced, whatever comes in between.
		o = &fs.WriteOptions{Kind: fs.CreateIfAbsent}
		if known != "" {
			o = &fs.WriteOptions{Kind: fs.ReplaceIfVersion, Version: known}
		}
	}
	out, err := t.files.WriteText(ctx, t.place(a.FilePath), a.Content, o)
	if known != "" && service.CodeOf(err) == fs.CodeStaleVersion {
		if info, serr := t.files.Stat(ctx, t.place(a.FilePath), nil); serr == nil && info == nil { // it was removed
			out, err = t.files.WriteText(ctx, t.place(a.FilePath), a.Content, &fs.WriteOptions{Kind: fs.CreateIfAbsent})
		}
	}
	switch service.CodeOf(err) {
	case fs.CodeStaleVersion, fs.CodeExists:
		return writeValue{}, failed(fs.CodeStaleVersion, err, "%s", t.stale("write", a.FilePath))
	case fs.CodeNotRegularFile:
		return writeValue{}, failed(fs.CodeNotRegularFile, err, "write %s: something else than a file is there, such as a folder; choose another name", strconv.Quote(t.shown(a.FilePath)))
	}
	if err != nil {
		return writeValue{}, t.failure("write", a.FilePath, err)
	}
	return writeValue{Path: t.shown(a.FilePath), Operation: out.Operation, Change: changeOf(out.Before, out.After, out.Truncated)}, nil
}

// known gives the version of a file that the model has seen; "" for none.
func (t *tools) known(ctx context.Context, doing, path string) (string, error) {
	scope, ok := model(ctx)
	if !ok || t.unguarded {
		return "", nil
	}
	target, err := t.files.Resolve(ctx, t.place(path), nil)
	if err != nil {
		return "", t.failure(doing, path, err)
	}
	return t.memory.version(scope, target.Path), nil
}

type editArgs struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
}

// editValue is the canonical value of edit.
type editValue struct {
	Path         string `json:"path"`
	Replacements int    `json:"replacements"`
	Change       hunk   `json:"change"`
}

func (t *tools) editTool() *tool.Definition {
	return &tool.Definition{
		Name: "edit", Title: "Edit file", Kind: tool.KindEdit, Description: strings.TrimSpace(editText),
		Parameters: parameters(
			schema.Prop("file_path", schema.String("The file; absolute, or relative to the working directory."), schema.Required),
			schema.Prop("old_string", schema.String("The exact text to replace, without the line numbers that read shows."), schema.Required),
			schema.Prop("new_string", schema.String("The text that comes in its place."), schema.Required),
			schema.Prop("replace_all", schema.Boolean("Replace every occurrence; else old_string must occur once.")),
		),
		Output: tool.Output{
			Schema: output(
				schema.Prop("path", schema.String(""), schema.Required),
				schema.Prop("replacements", schema.Integer("How many were replaced."), schema.Required),
				schema.Prop("change", hunkSchema, schema.Required),
			),
			Render: rendered(func(v editValue) string {
				text := fmt.Sprintf("The file %s has been updated successfully.", v.Path)
				if v.Replacements > 1 {
					text += fmt.Sprintf(" %s were replaced.", count(v.Replacements, "occurrence"))
				}
				return text
			}),
			Meta: carded(func(v editValue) *tool.Card { return v.Change.card("", v.Path) }),
		},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			args, err := arguments[editArgs](exec)
			if err != nil {
				return tool.Outcome{}, err
			}
			v, err := t.edit(ctx, args)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(v)
		},
		PresentCall: called(func(a editArgs) *tool.Card {
			path, old := t.shown(a.FilePath), plain.Cut(a.OldString, limits.FSEcho)
			return (&hunk{Old: &old, New: plain.Cut(a.NewString, limits.FSEcho)}).card("Edit "+path, path)
		}),
		PresentResult: cardOf,
	}
}

func (t *tools) edit(ctx context.Context, a editArgs) (editValue, error) {
	shown := strconv.Quote(t.shown(a.FilePath))
	switch {
	case a.FilePath == "":
		return editValue{}, failed(fs.CodeInvalidArgument, nil, "file_path is empty; name the file")
	case a.OldString == "":
		return editValue{}, failed(fs.CodeInvalidArgument, nil, "edit %s: old_string is empty; give the text to replace, or create or replace the whole file with the tool write", shown)
	case a.OldString == a.NewString:
		return editValue{}, failed(fs.CodeInvalidArgument, nil, "edit %s: old_string and new_string are the same, so there is nothing to change", shown)
	}
	known, err := t.known(ctx, "edit", a.FilePath)
	if err != nil {
		return editValue{}, err
	}
	out, err := t.files.EditText(ctx, t.place(a.FilePath),
		fs.Edit{OldString: a.OldString, NewString: a.NewString, ReplaceAll: a.ReplaceAll}, &fs.EditOptions{Version: known})
	switch code := service.CodeOf(err); code {
	case "":
	case fs.CodeStaleVersion:
		return editValue{}, failed(code, err, "%s", t.stale("edit", a.FilePath))
	case fs.CodeEditNotFound, fs.CodeAmbiguousEdit:
		text, rerr := t.files.ReadText(ctx, t.place(a.FilePath), nil)
		if rerr != nil {
			return editValue{}, t.failure("edit", a.FilePath, err)
		}
		return editValue{}, failed(code, err, "edit %s: %s", shown, why(code, toLF(text), toLF(a.OldString)))
	case fs.CodeNotFound:
		return editValue{}, t.notFound(ctx, "edit", a.FilePath, err)
	case fs.CodeNotText:
		return editValue{}, failed(code, err, "edit %s: it is not UTF-8 text, which is all that edit changes; use bash for it", shown)
	case fs.CodeNotRegularFile:
		return editValue{}, failed(code, err, "edit %s: it is a folder, or something else that is not a file", shown)
	}
	if err != nil {
		return editValue{}, t.failure("edit", a.FilePath, err)
	}
	return editValue{Path: t.shown(a.FilePath), Replacements: out.Replacements, Change: changeOf(&out.Before, out.After, out.Truncated)}, nil
}

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// why tells why an edit cannot be done, and what to do.
func why(code, text, old string) string {
	const again = "Copy the text exactly as the file has it, with its white space."
	if code == fs.CodeAmbiguousEdit {
		return ambiguous(text, old)
	}
	if bare, ok := withoutNumbers(old); ok && strings.Contains(text, bare) {
		return "old_string does not occur in it, but without the line numbers that read puts before each line it does. Leave them out."
	}
	found := nearest(text, old)
	if len(found) == 0 {
		return "old_string does not occur in it, nor lines that are like it. Read the file again; maybe it is another one."
	}
	var b strings.Builder
	if found[0].space {
		b.WriteString("old_string does not occur in it, but with other white space it does:\n\n")
	} else {
		b.WriteString("old_string does not occur in it. The lines most like it are:\n\n")
	}
	for i, n := range found {
		if i > 0 {
			b.WriteString("…\n")
		}
		b.WriteString(numbered(n.line, n.lines))
	}
	b.WriteString("\n" + again)
	return b.String()
}

// ambiguousPlaces is how many places are shown.
const ambiguousPlaces = 8

// ambiguous shows where a text occurs; what overlaps counts too.
func ambiguous(text, old string) string {
	var b strings.Builder
	n, line, last := 0, 1, 0
	for at := 0; ; n++ {
		i := strings.Index(text[at:], old)
		if i < 0 {
			break
		}
		at += i
		line += strings.Count(text[last:at], "\n")
		last = at
		if n < ambiguousPlaces {
			start := strings.LastIndexByte(text[:at], '\n') + 1
			first, _, _ := strings.Cut(text[start:], "\n")
			b.WriteString(numbered(line, []string{first}))
		}
		at++
	}
	if n > ambiguousPlaces {
		fmt.Fprintf(&b, "… and %s more\n", number(n-ambiguousPlaces))
	}
	return fmt.Sprintf("old_string occurs %s times in it, so nothing was changed:\n\n%s\nAdd lines before or after it until it occurs once, or set replace_all to replace all of them.", number(n), b.String())
}

// withoutNumbers takes the numbers off that read puts before lines, if all have one.
func withoutNumbers(text string) (string, bool) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		n, rest, ok := strings.Cut(line, ": ")
		if _, err := strconv.Atoi(strings.TrimSpace(n)); !ok || err != nil {
			return "", false
		}
		lines[i] = rest
	}
	return strings.Join(lines, "\n"), true
}

// hunkContext is how many lines stay around a change.
const hunkContext = 3

// changeOf leaves out what two texts have in common, but for some lines. Of texts
// that are cut it leaves out nothing at the end.
func changeOf(before *string, after string, truncated bool) hunk {
	if before == nil {
		return hunk{Line: 1, New: after}
	}
	old, now := strings.SplitAfter(toLF(*before), "\n"), strings.SplitAfter(toLF(after), "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for !truncated && tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	head, tail = max(0, head-hunkContext), max(0, tail-hunkContext)
	was := strings.Join(old[head:len(old)-tail], "")
	return hunk{Line: head + 1, Old: &was, New: strings.Join(now[head:len(now)-tail], "")}
}
