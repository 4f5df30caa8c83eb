package web

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

//go:embed fetch.md
var fetchText string

// fetchArgs are the arguments of web_fetch.
type fetchArgs struct {
	URL      string          `json:"url"`
	Format   web.FetchFormat `json:"format"`
	Offset   int             `json:"offset"`
	MaxChars int             `json:"max_chars"`
}

// page is the canonical value of web_fetch: a window of a page. Numbers count
// characters.
type page struct {
	URL         string `json:"url"`
	Status      int    `json:"status"`
	ContentType string `json:"content_type,omitempty"`
	Content     string `json:"content"`
	Offset      int    `json:"offset"`
	Total       int    `json:"total"`
	// NextOffset is where the next window begins; absent at the end.
	NextOffset int `json:"next_offset,omitempty"`
	// Cut says that the page goes on after total, where it cannot be read.
	Cut bool `json:"cut"`
}

func fetchTool(w web.Web) *tool.Definition {
	number := lossless.Int
	return &tool.Definition{
		Name: "web_fetch", Title: "Fetch a page", Description: strings.TrimSpace(fetchText), Kind: tool.KindFetch,
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("url", schema.String("The URL, with http:// or https://."), schema.Required),
			schema.Prop("format", schema.Enum("What becomes of HTML.", string(web.FormatMarkdown), string(web.FormatText), string(web.FormatRaw)),
				schema.Default(lossless.Str(string(web.FormatMarkdown)))),
			schema.Prop("offset", schema.Integer("The character to begin with: the one that an answer before named, or 0."), schema.Default(number(0))),
			schema.Prop("max_chars", schema.Integer(fmt.Sprintf("The most characters of the answer, %d to %d.", limits.WebWindowMin, limits.WebContent)),
				schema.Default(number(limits.WebWindow))),
		)))),
		Output: tool.Output{Render: renderFetch, Schema: schema.Must(schema.Output(schema.Object(
			schema.Prop("url", schema.String("The URL that answered."), schema.Required),
			schema.Prop("status", schema.Integer("The HTTP status."), schema.Required),
			schema.Prop("content_type", schema.String("The media type, where the server said one.")),
			schema.Prop("content", schema.String("The window of the page."), schema.Required),
			schema.Prop("offset", schema.Integer("The first character of content."), schema.Required),
			schema.Prop("total", schema.Integer("The characters that can be read."), schema.Required),
			schema.Prop("next_offset", schema.Integer("Where the next window begins; absent at the end.")),
			schema.Prop("cut", schema.Boolean("Whether the page goes on after total."), schema.Required),
		)))},
		ConcurrencySafe: parallel,
		PresentCall: func(_ context.Context, args lossless.Text) (*tool.Card, error) {
			var a fetchArgs
			if err := json.Unmarshal(args, &a); err != nil {
				return nil, fmt.Errorf("read arguments: %w", err)
			}
			return &tool.Card{Generic: &tool.GenericCard{Title: "Fetch " + plain.Line(a.URL, limits.SourceLine), Kind: tool.KindFetch}}, nil
		},
		PresentResult: presentFetch,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			var a fetchArgs
			if err := json.Unmarshal(exec.Arguments, &a); err != nil {
				return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
			}
			p, err := fetch(ctx, w, a)
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(p)
		},
	}
}

func fetch(ctx context.Context, w web.Web, a fetchArgs) (page, error) {
	if a.MaxChars < limits.WebWindowMin || a.MaxChars > limits.WebContent {
		return page{}, fmt.Errorf("max_chars is %d; it must be from %d to %d", a.MaxChars, limits.WebWindowMin, limits.WebContent)
	}
	if a.Offset < 0 {
		return page{}, fmt.Errorf("offset is %d; it counts characters from 0", a.Offset)
	}
	r, err := w.Fetch(ctx, web.FetchRequest{URL: a.URL, Format: a.Format})
	if err != nil {
		return page{}, err
	}
	p := page{URL: r.URL, Status: r.StatusCode, ContentType: r.ContentType, Offset: a.Offset, Total: utf8.RuneCountInString(r.Body.Content), Cut: r.Truncated}
	if a.Offset > 0 && a.Offset >= p.Total {
		return page{}, fmt.Errorf("offset %d is behind the end: %s has %d characters now", a.Offset, plain.Line(r.URL, limits.SourceLine), p.Total)
	}
	p.Content = window(r.Body.Content, a.Offset, a.MaxChars)
	if end := a.Offset + utf8.RuneCountInString(p.Content); end < p.Total {
		p.NextOffset = end
	}
	return p, nil
}

// window gives at most most characters from offset on. One that is not the rest
// ends with a line, unless that would cost more than half of it.
func window(s string, offset, most int) string {
	s = s[bytesOf(s, offset):]
	n := bytesOf(s, most)
	if n == len(s) {
		return s
	}
	if line := strings.LastIndexByte(s[:n], '\n') + 1; line > n/2 {
		n = line
	}
	return s[:n]
}

// bytesOf is how many bytes the first characters of s have.
func bytesOf(s string, characters int) int {
	for i := range s {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(s)
}

func renderFetch(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var p page
	if err := json.Unmarshal(value, &p); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	text := fmt.Sprintf("%s (status %d", plain.Line(p.URL, limits.WebURL), p.Status)
	if p.ContentType != "" {
		text += ", " + plain.Line(p.ContentType, limits.Name)
	}
	text += ")\n\n"
	if strings.TrimSpace(p.Content) == "" {
		text += "(no content)"
	}
	text += strings.TrimRight(p.Content, "\n")
	return []tool.Block{tool.TextBlock(text + p.footer())}, nil
}

// footer says what of the page the window is, unless it is all of it.
func (p page) footer() string {
	switch end := p.Offset + utf8.RuneCountInString(p.Content); {
	case p.NextOffset > 0:
		return fmt.Sprintf("\n\n[characters %d to %d of %s; to go on, fetch the same url with offset %d]", p.Offset, end, p.length(), p.NextOffset)
	case p.Cut:
		return fmt.Sprintf("\n\n[characters %d to %d; the page goes on, but this tool reads only its first %d characters: look for a more specific page, or download it with a command]",
			p.Offset, end, p.Total)
	case p.Offset > 0:
		return fmt.Sprintf("\n\n[characters %d to %d: this is the end of the page]", p.Offset, end)
	}
	return ""
}

func (p page) length() string {
	if p.Cut {
		return fmt.Sprintf("more than %d", p.Total)
	}
	return fmt.Sprint(p.Total)
}

func presentFetch(_ context.Context, _ lossless.Text, r *tool.Result) (*tool.Card, error) {
	if r.IsError {
		return nil, nil
	}
	var p page
	if err := json.Unmarshal(r.Value, &p); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	card := &tool.WebCard{Kind: tool.WebFetch, URL: p.URL, Status: p.Status, Title: title(p.Content)}
	if p.Content != "" {
		card.Content = []tool.Block{tool.TextBlock(p.Content)}
	}
	return &tool.Card{Web: card}, nil
}

// title is the first heading of Markdown, if it stands near the beginning.
func title(content string) string {
	n := 0
	for line := range strings.Lines(content) {
		if heading, ok := strings.CutPrefix(line, "# "); ok {
			return plain.Line(heading, limits.WebTitle)
		}
		if n++; n == 50 {
			break
		}
	}
	return ""
}
