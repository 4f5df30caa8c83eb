package surface

import (
	"fmt"
	"go/constant"
	"go/token"
	"go/types"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/selfmod/catalog"
)

// place is where a type is written, for problems.
type place struct {
	pos  token.Pos
	what string // the parameter path of fs.readText
}

// known are the types that mean something by themselves.
var known = map[string]string{
	"time.Time":                "string",
	"encoding/json.RawMessage": "any",
	Module + "/lossless.Text":  "any",
	Module + "/lossless.Value": "any",
	Module + "/service.Signal": "AbortSignal",
	// Dispose undoes what a method began.
	Module + "/service.Dispose": "() => Promise<void>",
}

// meaningless are the named types that have no meaning in JavaScript, with what
// to write instead.
var meaningless = map[string]string{
	"time.Duration":             "write a number of milliseconds",
	"context.Context":           "a context is the first parameter of a method, and nothing else",
	"error":                     "an error is the last result of a method, and nothing else",
	"iter.Seq2":                 "it is the only result of a method",
	Module + "/service.Promise": "it is the result of a method of an object, without parameters",
	Module + "/cordis.Context":  "no plugin gets a context of the host",
}

// javascript are the types that //dsh:ts may mention beside those of its package.
var javascript = []string{
	"AbortSignal", "Array", "AsyncIterable", "AsyncIterator", "Date", "DefinedTool", "Error", "Map", "Partial", "Promise",
	"Record", "Set", "Uint8Array",
}

// ts writes a type as TypeScript.
func (r *reader) ts(t types.Type, at place) string {
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		return r.basic(t, at)
	case *types.Pointer:
		return r.ts(t.Elem(), at)
	case *types.Slice:
		if b, ok := t.Elem().Underlying().(*types.Basic); ok && b.Kind() == types.Byte {
			return "Uint8Array"
		}
		return grouped(r.ts(t.Elem(), at)) + "[]"
	case *types.Array:
		return grouped(r.ts(t.Elem(), at)) + "[]"
	case *types.Map:
		if b, ok := t.Key().Underlying().(*types.Basic); !ok || b.Kind() != types.String {
			r.fault(at.pos, "%s: a map whose keys are no strings has no meaning in JavaScript", at.what)
		}
		return "Record<string, " + r.ts(t.Elem(), at) + ">"
	case *types.Signature:
		return r.callback(t, at)
	case *types.Interface:
		if t.NumMethods() == 0 {
			return "any"
		}
		r.fault(at.pos, "%s: an unnamed interface cannot be described; give it a name and a comment", at.what)
	case *types.Struct:
		if t.NumFields() > 0 {
			r.fault(at.pos, "%s: an unnamed struct cannot be described; give it a name and comments", at.what)
		}
		return "{}"
	case *types.Named:
		return r.named(t, at)
	case *types.TypeParam:
		r.fault(at.pos, "%s: a type parameter cannot be described", at.what)
	default:
		r.fault(at.pos, "%s: type %s has no meaning in JavaScript", at.what, short(t))
	}
	return "never"
}

func (r *reader) basic(t *types.Basic, at place) string {
	switch info := t.Info(); {
	case t.Kind() == types.Uintptr || t.Kind() == types.UnsafePointer || info&types.IsComplex != 0:
		r.fault(at.pos, "%s: type %s has no meaning in JavaScript", at.what, t.Name())
		return "never"
	case info&types.IsNumeric != 0:
		return "number"
	case info&types.IsBoolean != 0:
		return "boolean"
	}
	return "string"
}

// grouped puts what binds less than [] into parentheses.
func grouped(t string) string {
	if strings.ContainsAny(t, "|&") || strings.Contains(t, "=>") {
		return "(" + t + ")"
	}
	return t
}

func (r *reader) named(n *types.Named, at place) string {
	obj := n.Obj()
	full := short(obj.Type())
	if obj.Pkg() != nil {
		full = obj.Pkg().Path() + "." + obj.Name()
	}
	if t, ok := known[full]; ok {
		return t
	}
	if why, ok := meaningless[full]; ok {
		r.fault(at.pos, "%s: type %s has no meaning here: %s", at.what, short(n), why)
		return "never"
	}
	if obj.Pkg() == nil || !strings.HasPrefix(obj.Pkg().Path()+"/", Module+"/") || n.TypeArgs() != nil {
		r.fault(at.pos, "%s: type %s has no meaning in JavaScript", at.what, short(n))
		return "never"
	}
	if !obj.Exported() {
		r.fault(at.pos, "%s: type %s is not exported, so no document can name it", at.what, short(n))
		return "never"
	}
	doc := r.docs.of(obj)
	if text := directive(doc.directives, "ts"); text != "" {
		r.mentioned(text, obj, at)
		if directive(doc.directives, "name") == "" {
			return text
		}
		return r.declare(n, doc, func(d *declared) { d.alias(text) })
	}
	switch u := n.Underlying().(type) {
	case *types.Struct:
		if ownJSON(n) {
			r.fault(obj.Pos(), "type %s has a JSON form of its own: say what it is with //dsh:ts", short(n))
			return "never"
		}
		return r.declare(n, doc, func(d *declared) { r.object(d, n, u, doc) })
	case *types.Interface:
		if u.NumMethods() > 0 {
			if directive(doc.directives, "name") != "" {
				r.fault(obj.Pos(), "type %s: //dsh:name is not for interfaces: the bridge knows an object by its Go name", short(n))
			}
			return r.declare(n, doc, func(d *declared) { r.handle(d, u, doc) })
		}
	case *types.Basic:
		if literals := constants(obj); u.Kind() == types.String && len(literals) > 0 {
			union := strings.Join(literals, " | ")
			name := r.declare(n, doc, func(d *declared) { d.alias(union) })
			if len(literals) <= maxInline {
				return union
			}
			return name
		}
	}
	return r.ts(n.Underlying(), at)
}

// maxInline is up to how many literals a union is written out where it is
// mentioned. It has an entry of its own in any case.
const maxInline = 8

// short is a type as Go writes it, with the name of its package.
func short(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string { return p.Name() })
}

// ownJSON tells whether values of a type write their JSON themselves.
func ownJSON(n *types.Named) bool {
	set := types.NewMethodSet(types.NewPointer(n))
	for _, name := range []string{"MarshalJSON", "UnmarshalJSON", "MarshalText"} {
		if set.Lookup(n.Obj().Pkg(), name) != nil {
			return true
		}
	}
	return false
}

// constants are the literals of a string type, in the order of the source.
func constants(obj *types.TypeName) []string {
	var found []*types.Const
	for _, name := range obj.Pkg().Scope().Names() {
		if c, ok := obj.Pkg().Scope().Lookup(name).(*types.Const); ok && types.Identical(c.Type(), obj.Type()) && c.Exported() {
			found = append(found, c)
		}
	}
	slices.SortFunc(found, func(a, b *types.Const) int { return int(a.Pos()) - int(b.Pos()) })
	out := make([]string, len(found))
	for i, c := range found {
		out[i] = "'" + constant.StringVal(c.Val()) + "'"
	}
	return out
}

var typeWord = regexp.MustCompile(`'[^']*'|\b[A-Z]\w*\b`)

// mentioned describes the types that a directive names.
func (r *reader) mentioned(text string, obj *types.TypeName, at place) {
	for _, word := range typeWord.FindAllString(text, -1) {
		if word[0] == '\'' || slices.Contains(javascript, word) {
			continue
		}
		name := word
		if goName := r.docs.named(obj.Pkg().Path(), word); goName != "" {
			name = goName
		}
		found, ok := obj.Pkg().Scope().Lookup(name).(*types.TypeName)
		if !ok {
			r.fault(at.pos, "%s: //dsh:ts mentions %s, which is no type of package %s and none of JavaScript", at.what, word, obj.Pkg().Name())
			continue
		}
		r.ts(found.Type(), at)
	}
}

// declare gives the name of a type, and describes it the first time.
func (r *reader) declare(n *types.Named, doc *typeDoc, fill func(*declared)) string {
	obj := n.Obj()
	name := obj.Name()
	if other := directive(doc.directives, "name"); other != "" {
		name = other
	}
	if d := r.types[name]; d != nil {
		if d.is != any(obj) {
			r.fault(obj.Pos(), "type %s: another type of this name is at %s; rename one of them, or give it a line //dsh:name Other",
				name, r.where(d.pos))
		}
		return name
	}
	if slices.Contains(javascript, name) {
		r.fault(obj.Pos(), "type %s: JavaScript has a type of this name; give it a line //dsh:name Other", name)
		return name
	}
	d := &declared{Type: catalog.Type{Name: name, Doc: r.docs.prose(obj.Name(), doc.text, nil)}, pos: obj.Pos(), is: obj}
	d.Doc = capital(d.Doc)
	r.types[name] = d
	if d.Doc == "" {
		r.fault(obj.Pos(), "type %s has no comment", short(n))
	}
	fill(d)
	d.full = JSDoc("", d.Doc) + d.full
	d.Declaration = d.full
	return name
}

func (r *reader) where(pos token.Pos) string {
	p := Problem{Pos: r.fset.Position(pos)}
	if rel, ok := strings.CutPrefix(p.Pos.Filename, r.dir); ok {
		p.Pos.Filename = strings.TrimLeft(rel, `/\`)
	}
	return fmt.Sprintf("%s:%d", p.Pos.Filename, p.Pos.Line)
}

func (d *declared) alias(text string) {
	d.full = "type " + d.Name + " = " + text + ";"
	d.Short = d.Name + " = " + text
}

// JSDoc is a doc comment of TypeScript; nothing for an empty doc.
func JSDoc(indent, doc string) string {
	if doc == "" {
		return ""
	}
	lines := strings.Split(strings.ReplaceAll(doc, "*/", `*\/`), "\n")
	if len(lines) == 1 {
		return indent + "/** " + lines[0] + " */\n"
	}
	var b strings.Builder
	b.WriteString(indent + "/**\n")
	for _, l := range lines {
		b.WriteString(strings.TrimRight(indent+" * "+l, " ") + "\n")
	}
	b.WriteString(indent + " */\n")
	return b.String()
}

// object describes a struct.
func (r *reader) object(d *declared, n *types.Named, s *types.Struct, doc *typeDoc) {
	names := map[string]string{}
	for f := range fields(s) {
		names[f.v.Name()] = f.name
	}
	var full, brief []string
	for f := range fields(s) {
		at := place{f.v.Pos(), fmt.Sprintf("field %s of %s", f.v.Name(), d.Name)}
		text := r.fieldDoc(f, n, doc, names)
		if f.name == "" {
			r.fault(at.pos, "%s has no JSON tag", at.what)
			continue
		}
		if text == "" {
			r.fault(at.pos, "%s has no comment", at.what)
		}
		line := f.name + f.mark() + ": " + r.ts(f.v.Type(), at) + f.null()
		full = append(full, JSDoc("  ", text)+"  "+line+";\n")
		brief = append(brief, line)
	}
	d.full = "interface " + d.Name + " {\n" + strings.Join(full, "") + "}"
	d.Short = d.Name + " { " + strings.Join(brief, "; ") + " }"
}

// fieldDoc is the doc of a field, also of one that is embedded.
func (r *reader) fieldDoc(f field, n *types.Named, doc *typeDoc, names map[string]string) string {
	if f.from != nil {
		doc = r.docs.of(f.from)
	}
	m := doc.members[f.v.Name()]
	switch {
	case m != nil && m.text != "":
		return r.docs.prose(f.v.Name(), m.text, names)
	case f.signal():
		return "ends the call when it fires."
	}
	return ""
}

// field is a field of a struct as JSON has it.
type field struct {
	v        *types.Var
	name     string // empty: no tag
	optional bool
	from     *types.TypeName // the embedded struct that it comes from
}

// fields yields the fields of a struct that JSON has.
func fields(s *types.Struct) func(yield func(field) bool) {
	return func(yield func(field) bool) { walkFields(s, nil, yield) }
}

func walkFields(s *types.Struct, from *types.TypeName, yield func(field) bool) bool {
	for i := range s.NumFields() {
		v := s.Field(i)
		tag, tagged := reflect.StructTag(s.Tag(i)).Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		if tag == "-" || !v.Exported() && !v.Embedded() {
			continue
		}
		if v.Embedded() && name == "" {
			t := v.Type()
			if p, ok := t.(*types.Pointer); ok {
				t = p.Elem()
			}
			if n, ok := types.Unalias(t).(*types.Named); ok {
				if inner, ok := n.Underlying().(*types.Struct); ok {
					if !walkFields(inner, n.Obj(), yield) {
						return false
					}
					continue
				}
			}
		}
		f := field{v: v, from: from, optional: strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")}
		if tagged {
			f.name = name
			if name == "" {
				f.name = v.Name()
			}
		}
		if f.signal() {
			f.name, f.optional = lower(v.Name()), true
			if name != "" {
				f.name = name
			}
		}
		if !yield(f) {
			return false
		}
	}
	return true
}

// signal tells whether the field is an AbortSignal.
func (f field) signal() bool {
	t := f.v.Type()
	if p, ok := t.(*types.Pointer); ok {
		t = p.Elem()
	}
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == Module+"/service" && n.Obj().Name() == "Signal"
}

func (f field) mark() string {
	if f.optional {
		return "?"
	}
	return ""
}

func (f field) null() string {
	if _, ok := f.v.Type().(*types.Pointer); ok && !f.optional {
		return " | null"
	}
	return ""
}
