package web

import (
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/dsh-go/dsh/limits"
)

// tame changes a page so that turning it into Markdown takes time and memory in
// proportion to its size. The converter goes over its output again for each
// level of what marks lines (a nested list indents them), and fills tables up to
// their widest row, so a small page could keep it busy for hours:
//
//   - Marking elements beyond limits.WebNesting levels become plain ones.
//   - Spans of table cells are ignored, and a table that holds another one, or of
//     more than limits.WebTableCells places, becomes plain blocks: the converter
//     may render a table twice, and so one within it four times.
//
// It also escapes what would end a cell, since the converter's own escaping,
// which is quadratic, is off.
func tame(doc *html.Node) {
	level, tables := 0, 0
	walk(doc, func(n *html.Node) bool {
		switch {
		case n.Type == html.TextNode:
			if tables > 0 {
				n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
			}
			return true
		case n.DataAtom == atom.Table:
			if !simple(n) {
				flatten(n)
			}
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
			n.Attr = withoutSpans(n.Attr)
		case n.DataAtom == atom.Ol:
			n.Attr = smallStart(n.Attr)
		}
		if n.DataAtom == atom.Table {
			tables++
		}
		if marking(n.DataAtom) {
			if level++; level > limits.WebNesting {
				level--
				plainly(n)
			}
		}
		return true
	}, func(n *html.Node) {
		if n.DataAtom == atom.Table {
			tables--
		}
		if marking(n.DataAtom) {
			level--
		}
	})
}

// walk goes through a tree without recursion. enter tells whether the children
// are to be seen; leave is called for every node that was entered, after them.
func walk(top *html.Node, enter func(*html.Node) bool, leave func(*html.Node)) {
	for n := top; ; {
		if enter(n) && n.FirstChild != nil {
			n = n.FirstChild
			continue
		}
		leave(n)
		for n != top && n.NextSibling == nil {
			n = n.Parent
			leave(n)
		}
		if n == top {
			return
		}
		n = n.NextSibling
	}
}

// marking tells whether an element marks every line of what it holds, or is
// looked at as a whole.
func marking(a atom.Atom) bool {
	switch a {
	case atom.Ul, atom.Ol, atom.Li, atom.Blockquote, atom.Table, atom.A, atom.B, atom.Strong, atom.I, atom.Em, atom.Pre,
		atom.Code, atom.Var, atom.Samp, atom.Kbd, atom.Tt, atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		return true
	}
	return false
}

// plainly makes an element one that marks nothing.
func plainly(n *html.Node) {
	switch n.DataAtom {
	case atom.A, atom.B, atom.Strong, atom.I, atom.Em, atom.Code, atom.Var, atom.Samp, atom.Kbd, atom.Tt:
		n.Data, n.DataAtom = "span", atom.Span
	default:
		n.Data, n.DataAtom = "div", atom.Div
	}
}

// simple tells whether a table holds no other one, and its rows times its widest
// row are not too many places.
func simple(table *html.Node) bool {
	rows, widest, columns, nested := 0, 0, 0, false
	walk(table, func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.Table:
			nested = nested || n != table
			return n == table // those within are looked at for themselves
		case atom.Tr:
			rows, columns = rows+1, 0
		case atom.Td, atom.Th:
			columns++
			widest = max(widest, columns)
		}
		return true
	}, func(*html.Node) {})
	return !nested && rows*widest <= limits.WebTableCells
}

// flatten makes plain blocks of a table and its parts.
func flatten(table *html.Node) {
	walk(table, func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.Table:
			if n != table {
				return false
			}
			plainly(n)
		case atom.Tr, atom.Thead, atom.Tbody, atom.Tfoot, atom.Caption:
			plainly(n)
		case atom.Td, atom.Th:
			n.Data, n.DataAtom = "span", atom.Span
		}
		return true
	}, func(*html.Node) {})
}

func withoutSpans(attrs []html.Attribute) []html.Attribute {
	kept := attrs[:0]
	for _, a := range attrs {
		if a.Key != "colspan" && a.Key != "rowspan" {
			kept = append(kept, a)
		}
	}
	return kept
}

// smallStart keeps the number at which a list starts if it is an ordinary one.
func smallStart(attrs []html.Attribute) []html.Attribute {
	kept := attrs[:0]
	for _, a := range attrs {
		if n, err := strconv.Atoi(a.Val); a.Key == "start" && (err != nil || n < 0 || n > 1_000_000) {
			continue
		}
		kept = append(kept, a)
	}
	return kept
}
