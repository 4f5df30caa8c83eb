// Package strictyaml reads small YAML files: no anchors and aliases, no member
// that nobody knows, every fault with its place. What passes its bounds or what
// the parser cannot take is an error and no panic.
package strictyaml

import (
	"errors"
	"fmt"
	"io"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Fault says what is wrong with a file and where. Its Message may quote the
// file: do not show it where there are secrets.
type Fault struct {
	Line, Column int // from 1
	Message      string
}

// Error returns the place and the message.
func (f *Fault) Error() string { return fmt.Sprintf("line %d:%d: %s", f.Line, f.Column, f.Message) }

// maxDepth is the nesting beyond which a file is refused.
const maxDepth = 100

// maxIndent is the same for indentation, which block text may have for other reasons.
const maxIndent = 2000

// Decode reads text into the value. The error is a *Fault. An empty text leaves
// the value as it is.
func Decode(text []byte, into any) (err error) {
	defer func() {
		if p := recover(); p != nil { // the parser has been seen to do that with what is no YAML
			err = &Fault{1, 1, "it is no YAML"}
		}
	}()
	if deep(text) {
		return &Fault{1, 1, fmt.Sprintf("it is nested deeper than %d", maxDepth)}
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return fault(err)
	}
	for _, d := range file.Docs {
		if d.Body == nil {
			continue
		}
		seen := &walk{}
		ast.Walk(seen, d.Body)
		if seen.fault != nil {
			return seen.fault
		}
	}
	if len(file.Docs) > 1 {
		return &Fault{1, 1, "it has more than one document"}
	}
	if err := yaml.UnmarshalWithOptions(text, into, yaml.Strict()); err != nil && !errors.Is(err, io.EOF) {
		return fault(err)
	}
	return nil
}

// deep sees flow nesting and indentation that the recursive parser should not.
func deep(text []byte) bool {
	open, indent, blank := 0, 0, true
	for _, c := range text {
		switch {
		case c == '\n':
			indent, blank = 0, true
		case blank && (c == ' ' || c == '-' || c == '?'):
			indent++
		default:
			blank = false
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
		}
		if open > maxDepth || (blank && indent > maxIndent) {
			return true
		}
	}
	return false
}

func fault(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	var at yaml.Error
	if errors.As(err, &at) && at.GetToken() != nil {
		p := at.GetToken().Position
		return &Fault{p.Line, p.Column, at.GetMessage()}
	}
	return &Fault{1, 1, err.Error()}
}

type walk struct{ fault *Fault }

// Visit looks at one node.
func (w *walk) Visit(n ast.Node) ast.Visitor {
	if w.fault != nil || n == nil {
		return nil
	}
	switch n.Type() {
	case ast.AliasType, ast.AnchorType, ast.MergeKeyType:
		p := n.GetToken().Position
		w.fault = &Fault{p.Line, p.Column, "anchors and aliases are not read here"}
		return nil
	}
	return w
}
