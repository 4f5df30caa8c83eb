package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"unicode"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/dsh-go/dsh/limits"
)

// markdown is the converter, which may be used from any goroutine.
var markdown = sync.OnceValue(func() *converter.Converter {
	c := converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	c.Register.Renderer(func(ctx converter.Context, _ converter.Writer, _ *html.Node) converter.RenderStatus {
		if err := ctx.Err(); err != nil {
			panic(err) // the only way out; convert recovers
		}
		return converter.RenderTryNext
	}, converter.PriorityEarly)
	return c
})

// convert turns a page into Markdown or text. Links become absolute.
func convert(ctx context.Context, page string, u *url.URL, format FetchFormat) (text string, err error) {
	if len(page) > limits.WebConvert {
		return "", fail(CodeTooLarge, "%s has %d bytes of HTML, and only %d can be turned into %s: fetch it with format 'raw'",
			shown(u.String()), len(page), limits.WebConvert, format)
	}
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		if over := ended(ctx, CodeTimeout, "the fetch of "+shown(u.String())); err != nil && over != nil {
			err = over
		} else if err != nil {
			err = fail(CodeFetchFailed, "the HTML of %s could not be turned into %s (fetch it with format 'raw'): %w", shown(u.String()), format, err)
		}
	}()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		return "", err
	}
	if format == FormatText {
		return visible(doc), nil
	}
	tame(doc)
	out, err := markdown().ConvertNode(doc, converter.WithContext(ctx), converter.WithDomain(baseOf(doc, u).String()))
	return strings.ToValidUTF8(string(out), "\ufffd"), err
}

// baseOf is what the links of a page are relative to.
func baseOf(doc *html.Node, u *url.URL) *url.URL {
	for n := range doc.Descendants() {
		if n.DataAtom != atom.Base {
			continue
		}
		for _, a := range n.Attr {
			if ref, err := url.Parse(strings.TrimSpace(a.Val)); a.Key == "href" && err == nil {
				if to := u.ResolveReference(ref); to.Host != "" && (to.Scheme == "http" || to.Scheme == "https") {
					return to
				}
			}
		}
	}
	return u
}

// visible gives the text that a reader of the page sees, a line for each block.
func visible(doc *html.Node) string {
	w := &textWriter{}
	walk(doc, w.open, w.close)
	return strings.TrimSpace(w.b.String())
}

// textWriter collects text; white space between words is one space, and between
// blocks one line break, or two.
type textWriter struct {
	b      strings.Builder
	pre    int // open elements that keep white space
	breaks int // pending line breaks
	space  bool
}

// open writes what stands at the beginning of a node, and tells whether its
// children are to be seen.
func (w *textWriter) open(n *html.Node) bool {
	if n.Type == html.TextNode {
		w.text(n.Data)
		return true
	}
	switch n.DataAtom {
	case atom.Head, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Iframe, atom.Svg, atom.Textarea, atom.Select:
		return false
	case atom.Br:
		w.breaks++
	case atom.Pre:
		w.pre++
	}
	w.breaks = max(w.breaks, breaksAt(n))
	return true
}

func (w *textWriter) close(n *html.Node) {
	if n.DataAtom == atom.Pre {
		w.pre--
	}
	w.breaks = max(w.breaks, breaksAt(n))
	if n.DataAtom == atom.Td || n.DataAtom == atom.Th {
		w.space = true
	}
}

func breaksAt(n *html.Node) int {
	switch n.DataAtom {
	case atom.P, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6, atom.Pre, atom.Table, atom.Ul, atom.Ol, atom.Blockquote:
		return 2
	case atom.Div, atom.Li, atom.Tr, atom.Section, atom.Article, atom.Header, atom.Footer, atom.Nav, atom.Main, atom.Aside,
		atom.Dl, atom.Dt, atom.Dd, atom.Figure, atom.Figcaption, atom.Form, atom.Fieldset, atom.Hr, atom.Address, atom.Details,
		atom.Summary, atom.Option, atom.Body:
		return 1
	}
	return 0
}

func (w *textWriter) text(s string) {
	if w.pre > 0 {
		w.flush()
		w.b.WriteString(s)
		return
	}
	for _, r := range s {
		if unicode.IsSpace(r) {
			w.space = true
			continue
		}
		w.flush()
		w.b.WriteRune(r)
	}
}

// flush writes what has to stand before the next character.
func (w *textWriter) flush() {
	switch {
	case w.b.Len() == 0:
	case w.breaks > 0:
		w.b.WriteString("\n\n"[:min(w.breaks, 2)])
	case w.space:
		w.b.WriteByte(' ')
	}
	w.breaks, w.space = 0, false
}
