// Package compile turns the source of a mount, or the files of a plugin, into
// bytecode, and positions in it back into the author's.
//
// The source of a mount is the body of an async function. The engine compiles it first;
// what the engine refuses goes through esbuild as TypeScript, which also lowers
// what the engine does not know (using, decorators). Source that neither takes
// is refused with the better of the two explanations: where, the line, a caret,
// what is wrong, and for common mistakes what to do instead.
//
// A plugin's files are ES modules that import each other. esbuild makes one module
// of them, from memory: it never looks for a file. One that stands alone and that the
// engine takes is not bundled.
//
// Both parsers recurse, and esbuild's goroutine stack ends the process when it
// overflows. So the nesting of brackets is counted before anything is parsed.
//
// Lines end at "\n". Lines and columns count from 1, columns in code points.
// The package has no state; its functions may be called from any goroutine,
// with an engine of its own each.
package compile

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// The wrapper makes a body an expression: an async function. It stands on lines
// of its own, so that columns are the author's.
const (
	before = "(async function () {\n"
	after  = "\n})"
)

// Engine compiles one script or one module.
type Engine interface {
	// CompileScript keeps the file name; source that does not parse is a
	// *qjs.Error.
	CompileScript(source, file string) (qjs.Script, error)
	CompileModule(source, file string) (qjs.Script, error)
}

var _ Engine = (*qjs.VM)(nil)

// Unit is compiled source.
type Unit struct {
	// Code is a script whose completion value is the async function, unless the
	// source's own brackets end the function early. The caller runs or frees it.
	Code qjs.Script
	// Module says that Code is a module, which exports the plugin.
	Module bool
	// TypeScript is true when the source is TypeScript and no JavaScript.
	TypeScript bool
	Positions  *Positions
}

// Source compiles the body. What is wrong with the source is a *wire.Fault with
// wire.CodeSyntax (wire.CodeTooLarge beyond limits.Source): Message is the
// parser's text, with a hint on a second line where there is a fitting one,
// Excerpt the place, the source line, a caret, and "SyntaxError: …". Other
// errors are the engine's.
func Source(engine Engine, source, file string) (*Unit, error) {
	if len(source) > limits.Source {
		return nil, &wire.Fault{Name: "RangeError", Code: wire.CodeTooLarge, Message: fmt.Sprintf(
			"the source takes %d bytes; the limit is %d", len(source), limits.Source)}
	}
	source = strings.ToValidUTF8(source, "\uFFFD")
	s := scan(source)
	if s.tooDeep >= 0 {
		return nil, fault(source, file, s.tooDeep,
			fmt.Sprintf("the source is nested deeper than %d brackets", limits.SourceNesting), "")
	}
	code, err := engine.CompileScript(before+source+after, file)
	if err == nil {
		return &Unit{Code: code, Positions: &Positions{file: file}}, nil
	}
	refused, ok := syntax(err)
	if !ok {
		return nil, err
	}
	if refused.Kind == qjs.KindStackOverflow {
		return nil, fault(source, file, 0, tooDeep, "")
	}
	return viaTypeScript(engine, source, file, s, refused)
}

// tooDeep is what is said of source that the engine's parser has no stack for,
// without a place: the parser gives none.
const tooDeep = "the source is nested too deep"

// syntax is the engine's error when it is about the source.
func syntax(err error) (*qjs.Error, bool) {
	var e *qjs.Error
	ok := errors.As(err, &e) && (e.Kind == qjs.KindSyntax || e.Kind == qjs.KindStackOverflow)
	return e, ok
}

func viaTypeScript(engine Engine, text, file string, s scanned, refused *qjs.Error) (*Unit, error) {
	out, problem := transform(text, file, true)
	if problem != nil {
		if problem.offset < 0 { // esbuild does not say where
			problem.offset = offsetAt(text, refused.Line-1, refused.Column)
		}
		return nil, explain(text, file, s, *problem, bodyHint)
	}
	positions := &Positions{file: file, sources: []source{{file, newIndex(text)}}, generated: strings.Split(out.code, "\n"), mapping: out.mapping}
	code, err := engine.CompileScript(out.code, file)
	if err != nil {
		e, ok := syntax(err)
		if !ok {
			return nil, err
		}
		if e.Kind == qjs.KindStackOverflow {
			return nil, fault(text, file, 0, tooDeep, "")
		}
		at := 0
		if _, line, column, ok := positions.original(e.Line, e.Column); ok {
			at = offsetAt(text, line, column)
		}
		return nil, explain(text, file, s, problemAt{at, e.Message}, bodyHint)
	}
	_, plain := transform(text, file, false)
	return &Unit{Code: code, TypeScript: plain != nil, Positions: positions}, nil
}

// problemAt is what a parser says is wrong, at a byte of the source; an offset
// beyond it means the end.
type problemAt struct {
	offset int
	text   string
}
