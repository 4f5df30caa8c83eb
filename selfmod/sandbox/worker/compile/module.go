package compile

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// moduleEnd makes every file of a plugin an ES module, whatever is in it: then a
// `return` that ends a mount is refused where it stands.
const moduleEnd = "\nexport {};\n"

// Module compiles the ES module entry of files, by their paths below the plugin's
// folder, with what it imports of them. file is how messages name the plugin: the
// path of the entry itself, or of its folder; the other files are named beside it.
// The errors are those of Source.
//
// The engine takes a file that imports nothing as it is. What it refuses, and what
// has imports, goes through esbuild, in memory: nothing is read from anywhere.
func Module(engine Engine, files map[string]string, entry, file string) (*Unit, error) {
	b, err := newBundle(files, entry, file)
	if err != nil {
		return nil, err
	}
	text := b.files[entry]
	single := isScript(entry) && !b.scanned[entry].imports
	if single {
		code, err := engine.CompileModule(text, b.script)
		if err == nil {
			return b.unit(code, &Positions{file: b.script, sources: []source{{b.shown(entry), newIndex(text)}}, module: true}), nil
		}
		refused := new(qjs.Error)
		if !errors.As(err, &refused) || refused.Kind != qjs.KindSyntax && refused.Kind != qjs.KindStackOverflow {
			return nil, err
		}
		if refused.Kind == qjs.KindStackOverflow {
			return nil, fault(text, b.shown(entry), 0, tooDeep, "")
		}
	}
	out, err := b.compile(single)
	if err != nil {
		return nil, err
	}
	positions := &Positions{file: b.script, generated: strings.Split(out.code, "\n"), sources: out.sources, mapping: out.mapping, module: true}
	code, err := engine.CompileModule(out.code, b.script)
	if err != nil {
		return nil, b.refused(err, positions)
	}
	return b.unit(code, positions), nil
}

func (b *bundle) unit(code qjs.Script, positions *Positions) *Unit {
	return &Unit{Code: code, Module: true, TypeScript: isTypeScript(b.entry), Positions: positions}
}

// newBundle checks the files.
func newBundle(files map[string]string, entry, file string) (*bundle, error) {
	b := &bundle{
		files: make(map[string]string, len(files)), scanned: make(map[string]scanned, len(files)),
		file: file, entry: entry,
	}
	total := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if total += len(text); total > limits.Source {
			return nil, &wire.Fault{Name: "RangeError", Code: wire.CodeTooLarge, Message: fmt.Sprintf(
				"the files of the plugin take more than %d bytes together, which is the limit", limits.Source)}
		}
		text = strings.TrimPrefix(text, "\uFEFF")
		if !utf8.ValidString(text) {
			at := 0
			for at < len(text) {
				r, n := utf8.DecodeRuneInString(text[at:])
				if r == utf8.RuneError && n == 1 {
					break
				}
				at += n
			}
			return nil, fault(text, b.shown(name), at, "the file is no UTF-8 text", "")
		}
		if isScript(name) || path.Ext(name) == ".json" {
			s := scan(text)
			if s.tooDeep >= 0 {
				return nil, fault(text, b.shown(name), s.tooDeep, fmt.Sprintf("the source is nested deeper than %d brackets", limits.SourceNesting), "")
			}
			b.scanned[name] = s
		}
		b.files[name] = text
	}
	switch _, ok := b.files[entry]; {
	case !ok:
		return nil, &wire.Fault{Name: "Error", Code: wire.CodeSyntax, Message: fmt.Sprintf(
			"the plugin %s has no file %q; its files are: %s", file, entry, b.list())}
	case !isScript(entry):
		return nil, &wire.Fault{Name: "Error", Code: wire.CodeSyntax, Message: fmt.Sprintf(
			"%s is no plugin file: a plugin is a .js or a .ts file, or a folder with an index.js or an index.ts", b.shown(entry))}
	}
	b.script = scriptName(b.shown(entry))
	return b, nil
}

func isTypeScript(name string) bool { return path.Ext(name) == ".ts" }
func isScript(name string) bool     { return isTypeScript(name) || path.Ext(name) == ".js" }

// frameSafe are the paths that stand in an engine's stack as they are.
var frameSafe = regexp.MustCompile(`^[\w./-]{1,200}$`)

// scriptName is the name by which the engine knows a module: the shown one, unless it
// could be mistaken for something else in a stack.
func scriptName(shown string) string {
	if !frameSafe.MatchString(shown) || shown == preludeName || shown == "native" {
		return "plugin.js"
	}
	return shown
}

// shown is how messages name one of the files.
func (b *bundle) shown(name string) string {
	if path.Base(b.file) == b.entry {
		return path.Join(path.Dir(b.file), name)
	}
	return path.Join(b.file, name)
}

// list names the files, as many as fit into a line.
func (b *bundle) list() string {
	const most = 20
	names := slices.Sorted(maps.Keys(b.files))
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// refused is the fault of a bundle that the engine does not take.
func (b *bundle) refused(err error, positions *Positions) error {
	e, ok := syntax(err)
	if !ok {
		return err
	}
	name, line, column, known := positions.original(e.Line, e.Column)
	text := b.files[b.entry]
	if e.Kind == qjs.KindStackOverflow || !known {
		said := e.Message
		if e.Kind == qjs.KindStackOverflow {
			said = tooDeep
		}
		return fault(text, b.shown(b.entry), 0, said, "")
	}
	for _, s := range positions.sources {
		if s.name == name {
			text = s.text
		}
	}
	return fault(text, name, offsetAt(text, line, column), e.Message, "")
}
