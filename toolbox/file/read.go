package file

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

//go:embed read.md
var readText string

type readArgs struct {
	FilePath string  `json:"file_path"`
	Offset   integer `json:"offset"`
	Limit    integer `json:"limit"`
}

// The kinds of what read gives.
const (
	kindFile   = "file"
	kindFolder = "directory"
	kindImage  = "image"
)

// readValue is the canonical value of read.
type readValue struct {
	Path       string   `json:"path"`
	Type       string   `json:"type"`
	Offset     int      `json:"offset,omitempty"`
	Lines      []string `json:"lines,omitempty"`
	TotalLines int      `json:"totalLines"`
	More       bool     `json:"more,omitempty"`    // there are more lines or entries behind these
	AtLeast    bool     `json:"atLeast,omitempty"` // totalLines was not counted to the end
	Capped     bool     `json:"capped,omitempty"`  // there are fewer lines than were asked for
	Cut        int      `json:"cut,omitempty"`     // lines that are not whole
	// Of an image.
	MediaType  string              `json:"mediaType,omitempty"`
	Bytes      int64               `json:"bytes,omitempty"`
	Attachment *message.Attachment `json:"attachment,omitempty"` // within an agent
	Data       string              `json:"data,omitempty"`       // base64, without one
}

func (t *tools) readTool() *tool.Definition {
	text, number, yes := schema.String, schema.Integer, schema.Boolean
	return &tool.Definition{
		Name: "read", Title: "Read file", Kind: tool.KindRead, Description: strings.TrimSpace(readText),
		Parameters: parameters(
			schema.Prop("file_path", text("The file, or a folder to list; absolute, or relative to the working directory."), schema.Required),
			schema.Prop("offset", number("The first line to show, counted from 1. Only for files that are too long to read at once.")),
			schema.Prop("limit", number(fmt.Sprintf("How many lines to show, %d at most; %d if absent.", limits.FileLinesMax, limits.FileLines))),
		),
		Output: tool.Output{
			Schema: output(
				schema.Prop("path", text(""), schema.Required),
				schema.Prop("type", schema.Enum("", kindFile, kindFolder, kindImage), schema.Required),
				schema.Prop("offset", number("The number of the first line.")),
				schema.Prop("lines", schema.Array("The lines, or the entries of the folder.", text(""))),
				schema.Prop("totalLines", number("Of the whole file or folder."), schema.Required),
				schema.Prop("more", yes("Whether there are more lines behind these.")),
				schema.Prop("atLeast", yes("Whether totalLines was not counted to the end.")),
				schema.Prop("capped", yes("Whether fewer lines are here than were asked for.")),
				schema.Prop("cut", number("How many of the lines are cut.")),
				schema.Prop("mediaType", text("Of an image.")),
				schema.Prop("bytes", number("The size of an image.")),
				schema.Prop("attachment", schema.Any("The image in the session.")),
				schema.Prop("data", text("The image as base64, where there is no session.")),
			),
			Render: renderRead,
			Meta:   readMeta,
		},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			args, err := arguments[readArgs](exec)
			if err != nil {
				return tool.Outcome{}, err
			}
			v, err := t.read(ctx, args)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(v)
		},
		ConcurrencySafe: always,
		PresentCall: called(func(a readArgs) *tool.Card {
			at := tool.Location{Path: t.shown(a.FilePath), Line: max(int(a.Offset), 0)}
			title := "Read " + at.Path
			if at.Line > 1 {
				title += fmt.Sprintf(" from line %d", at.Line)
			}
			return &tool.Card{Generic: &tool.GenericCard{Title: title, Kind: tool.KindRead, Locations: []tool.Location{at}}}
		}),
		PresentResult: presentRead,
	}
}

func (t *tools) read(ctx context.Context, a readArgs) (readValue, error) {
	if a.FilePath == "" {
		return readValue{}, failed(fs.CodeInvalidArgument, nil, "file_path is empty; name the file")
	}
	if a.Offset < 0 || a.Limit < 0 || a.Limit > limits.FileLinesMax {
		return readValue{}, failed(fs.CodeInvalidArgument, nil, "offset %d and limit %d are not a part of a file: offset counts from 1, limit goes up to %d", a.Offset, a.Limit, limits.FileLinesMax)
	}
	w := &window{from: max(int(a.Offset), 1), limit: int(a.Limit)}
	if w.limit == 0 {
		w.limit = limits.FileLines
	}
	v := readValue{Path: t.shown(a.FilePath), Type: kindFile, Offset: w.from}
	for piece, err := range t.files.StreamText(ctx, t.place(a.FilePath), nil) {
		if err != nil {
			return t.other(ctx, a, v, err)
		}
		if w.add(piece); w.enough() {
			break
		}
	}
	w.end()
	if w.from > 1 && w.from > w.lines {
		return v, failed(fs.CodeInvalidArgument, nil, "read %s: offset %d is beyond the end: the file has %s", strconv.Quote(v.Path), w.from, count(w.lines, "line"))
	}
	v.Lines, v.TotalLines, v.AtLeast = w.out, w.lines, w.enough()
	v.Cut, v.Capped = w.cut, w.full
	v.More = w.from+len(w.out)-1 < w.lines
	return v, nil
}

// other reads what is no text: a folder, an image.
func (t *tools) other(ctx context.Context, a readArgs, v readValue, cause error) (readValue, error) {
	switch service.CodeOf(cause) {
	case fs.CodeNotText:
		return t.image(ctx, a, v, cause)
	case fs.CodeNotRegularFile:
		if info, err := t.files.Stat(ctx, t.place(a.FilePath), nil); err == nil && info != nil && info.Type == fs.TypeDirectory {
			return t.folder(ctx, a, v)
		}
		return v, failed(fs.CodeNotRegularFile, cause, "read %s: it is a pipe, socket or device, not a file", strconv.Quote(v.Path))
	case fs.CodeNotFound:
		return v, t.notFound(ctx, "read", a.FilePath, cause)
	}
	return v, t.failure("read", a.FilePath, cause)
}

// notFound names what is there instead.
func (t *tools) notFound(ctx context.Context, doing, name string, cause error) error {
	text := fmt.Sprintf("%s %s: there is no such file or folder", doing, strconv.Quote(t.shown(name)))
	folder := fs.Path(path.Dir(string(t.place(name))))
	entries, err := t.files.ListDir(ctx, folder, nil)
	if err != nil {
		return failed(fs.CodeNotFound, cause, "%s; glob finds files by a part of their name", text)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	var like []string
	for _, n := range nearest(strings.Join(names, "\n"), path.Base(name)) {
		like = append(like, strconv.Quote(t.shown(path.Join(path.Dir(name), n.lines[0]))))
	}
	if len(like) == 0 {
		return failed(fs.CodeNotFound, cause, "%s, nor one with such a name in its folder; glob finds files by a part of their name", text)
	}
	return failed(fs.CodeNotFound, cause, "%s. Did you mean %s?", text, strings.Join(like, " or "))
}

func (t *tools) folder(ctx context.Context, a readArgs, v readValue) (readValue, error) {
	entries, err := t.files.ListDir(ctx, t.place(a.FilePath), nil)
	if service.CodeOf(err) == fs.CodeTooLarge {
		return v, failed(fs.CodeTooLarge, err, "read %s: the folder has more than %s entries; glob with a narrower pattern finds some of them", strconv.Quote(v.Path), number(limits.FSEntries))
	}
	if err != nil {
		return v, t.failure("read", a.FilePath, err)
	}
	w := &window{from: v.Offset, limit: int(a.Limit)}
	if w.limit == 0 {
		w.limit = limits.FileLines
	}
	for _, e := range entries {
		name := strings.ReplaceAll(e.Name, "\n", "?")
		switch e.Type {
		case fs.TypeDirectory:
			name += "/"
		case fs.TypeSymlink:
			name += "@"
		}
		w.add(name + "\n")
	}
	if w.from > 1 && w.from > w.lines {
		return v, failed(fs.CodeInvalidArgument, nil, "read %s: offset %d is beyond the end: the folder has %d entries", strconv.Quote(v.Path), w.from, w.lines)
	}
	v.Type, v.Lines, v.TotalLines, v.Capped = kindFolder, w.out, w.lines, w.full
	v.More = w.from+len(w.out)-1 < w.lines
	return v, nil
}

// renderRead is what the model reads.
func renderRead(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	v, err := decoded[readValue](value)
	if err != nil {
		return nil, err
	}
	if v.Type == kindImage {
		return v.image()
	}
	var b strings.Builder
	last := v.Offset + len(v.Lines) - 1
	for i, line := range v.Lines {
		if v.Type == kindFile {
			fmt.Fprintf(&b, "%d: ", v.Offset+i)
		}
		b.WriteString(line)
		b.WriteByte('\n')
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	things, thing := "lines", "line"
	if v.Type == kindFolder {
		things, thing = "entries", "entry"
	}
	total := number(v.TotalLines)
	if v.AtLeast {
		total = "at least " + total
	}
	switch {
	case v.TotalLines == 0:
		fmt.Fprintf(&b, "(The %s is empty.)", map[string]string{kindFile: "file", kindFolder: "folder"}[v.Type])
	case v.More && v.Capped:
		fmt.Fprintf(&b, "(The output is full at %d KB: %s %d to %d of %s. Use offset=%d to go on.)", limits.FileShown>>10, things, v.Offset, last, total, last+1)
	case v.More:
		fmt.Fprintf(&b, "(Showing %s %d to %d of %s. Use offset=%d to go on.)", things, v.Offset, last, total, last+1)
	case v.Type == kindFolder:
		fmt.Fprintf(&b, "(%s)", strings.Replace(count(v.TotalLines, "entry"), "entrys", things, 1))
	default:
		fmt.Fprintf(&b, "(End of file: %s)", count(v.TotalLines, thing))
	}
	if v.Cut > 0 {
		fmt.Fprintf(&b, "\n(%s cut after %s characters; grep shows the part of a line around a match.)", were(v.Cut), number(limits.FileLine))
	}
	return []tool.Block{tool.TextBlock(envelope(v.Path, v.Type, b.String()))}, nil
}

// readMeta is what the card needs beside the content.
func readMeta(_ context.Context, _, value lossless.Text) (lossless.Text, error) {
	v, err := decoded[readValue](value)
	if err != nil || v.Type == kindFolder {
		return nil, err
	}
	return json.Marshal(tool.ReadCard{Path: v.Path, Offset: v.Offset, Lines: []tool.ReadLine{}, TotalLines: v.TotalLines, Lang: strings.TrimPrefix(path.Ext(v.Path), ".")})
}

// presentRead makes the card of the meta and of the lines in the content.
func presentRead(_ context.Context, _ lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError || r.Meta == nil {
		return nil, nil
	}
	var card tool.ReadCard
	if err := json.Unmarshal(r.Meta, &card); err != nil {
		return nil, err
	}
	card.Lines = []tool.ReadLine{}
	if len(r.Content) != 1 || r.Content[0].Type != "text" {
		card.Content, card.Lang = r.Content, ""
		return &tool.Card{Read: &card}, nil
	}
	_, body, ok := strings.Cut(r.Content[0].Text, "\n<content>\n")
	if !ok {
		return nil, nil // it was pruned
	}
	lines := bufio.NewScanner(strings.NewReader(body))
	lines.Buffer(nil, limits.Result)
	for n := max(card.Offset, 1); lines.Scan(); n++ {
		text, ok := strings.CutPrefix(lines.Text(), strconv.Itoa(n)+": ")
		if !ok {
			break
		}
		card.Lines = append(card.Lines, tool.ReadLine{Number: n, Text: text})
	}
	return &tool.Card{Read: &card}, nil
}

// were says how many lines something happened to.
func were(n int) string {
	if n == 1 {
		return "1 line was"
	}
	return number(n) + " lines were"
}
