package surface

import (
	"fmt"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/selfmod/catalog"
)

// service describes one service.
func (r *reader) service(s foundService) catalog.Service {
	out := catalog.Service{Key: s.key, Facade: s.facade}
	n, ok := types.Unalias(s.plugin).(*types.Named)
	if !ok {
		r.fault(s.pos, "service %s: its plugin interface needs a name", s.key)
		return out
	}
	u, ok := n.Underlying().(*types.Interface)
	if !ok {
		r.fault(s.pos, "service %s: %s is no interface", s.key, short(n))
		return out
	}
	doc := r.docs.of(n.Obj())
	methods := inOrder(u)
	out.Doc = capital(r.docs.prose(n.Obj().Name(), doc.text, renames(methods)))
	out.Summary = summary(out.Doc)
	if out.Doc == "" {
		r.fault(n.Obj().Pos(), "service %s: its interface %s has no comment", s.key, short(n))
	}
	if len(methods) == 0 {
		r.fault(n.Obj().Pos(), "service %s: its interface %s has no methods", s.key, short(n))
	}
	for _, m := range methods {
		p := &projection{reader: r, owner: s.key, home: n.Obj(), doc: doc.members[m.Name()], names: renames(methods), facade: s.facade}
		out.Methods = append(out.Methods, p.method(m))
	}
	return out
}

// handle describes an object that a method returns, which stays in the host.
func (r *reader) handle(d *declared, u *types.Interface, doc *typeDoc) {
	methods := inOrder(u)
	var full, brief []string
	for _, m := range methods {
		md := doc.members[m.Name()]
		p := &projection{reader: r, owner: d.Name, home: d.is.(*types.TypeName), doc: md, names: renames(methods), object: true}
		projected := p.method(m)
		d.Methods = append(d.Methods, projected)
		full = append(full, JSDoc("  ", projected.Doc)+"  "+projected.Signature+";\n")
		brief = append(brief, projected.Signature)
	}
	d.full = "interface " + d.Name + " {\n" + strings.Join(full, "") + "}"
	d.Short = d.Name + " { " + strings.Join(brief, "; ") + " }"
}

// inOrder are the methods of an interface as the source has them.
func inOrder(u *types.Interface) []*types.Func {
	var out []*types.Func
	for m := range u.Methods() {
		if m.Exported() {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *types.Func) int { return int(a.Pos()) - int(b.Pos()) })
	return out
}

// renames maps the names of methods to those of JavaScript.
func renames(methods []*types.Func) map[string]string {
	out := map[string]string{}
	for _, m := range methods {
		out[m.Name()] = lower(m.Name())
	}
	return out
}

// projection describes one method.
type projection struct {
	*reader
	owner  string          // fs, or Process
	home   *types.TypeName // the interface
	doc    *memberDoc
	names  map[string]string
	facade bool
	object bool // of an object rather than of a service
}

func (p *projection) method(m *types.Func) catalog.Method {
	out := catalog.Method{Name: lower(m.Name()), Go: m.Name(), Kind: catalog.KindSync, Result: "void"}
	what := p.owner + "." + out.Name
	if p.doc == nil || p.doc.text == "" {
		p.fault(m.Pos(), "method %s has no comment", what)
		p.doc = cmpDoc(p.doc)
	}
	out.Doc = capital(p.prose(m.Name(), p.doc.text))
	out.Summary = summary(out.Doc)
	if lines := p.doc.directives["ts"]; len(lines) > 0 {
		p.overloads(&out, m, lines, what)
		return out
	}
	sig := m.Type().(*types.Signature)
	params := list(sig.Params())
	if len(params) > 0 && isContext(params[0].Type()) {
		out.Kind = catalog.KindAsync
		params = params[1:]
	}
	if sig.Variadic() {
		p.fault(m.Pos(), "method %s: a variadic parameter has no meaning here; take a slice", what)
	}
	for _, v := range params {
		out.Params = append(out.Params, p.param(v, out.Params, what))
	}
	p.result(&out, m, sig, what)
	out.Signature = signature(out)
	if p.facade {
		out.Go = ""
	}
	return out
}

func cmpDoc(d *memberDoc) *memberDoc {
	if d == nil {
		return &memberDoc{}
	}
	return d
}

func (p *projection) prose(own, text string) string { return p.docs.prose(own, text, p.names) }

func list(t *types.Tuple) []*types.Var {
	var out []*types.Var
	for v := range t.Variables() {
		out = append(out, v)
	}
	return out
}

// param describes one parameter.
func (p *projection) param(v *types.Var, before []catalog.Param, what string) catalog.Param {
	at := place{v.Pos(), fmt.Sprintf("parameter %s of %s", v.Name(), what)}
	out := catalog.Param{Name: v.Name()}
	if v.Name() == "" || v.Name() == "_" {
		p.fault(v.Pos(), "%s: a parameter has no name", what)
	}
	t := v.Type()
	if isContext(t) {
		p.fault(v.Pos(), "%s: the context is not first", at.what)
		return out
	}
	if ptr, ok := t.(*types.Pointer); ok {
		out.Optional = true
		t = ptr.Elem()
	}
	if !out.Optional && len(before) > 0 && before[len(before)-1].Optional {
		p.fault(v.Pos(), "%s: it is required, and stands behind an optional one", at.what)
	}
	out.Type = p.ts(t, at)
	// What its type says stands with the type, once.
	out.Doc = p.prose("", listed(p.doc.text, v.Name()))
	if out.Doc == "" && p.typeDoc(t) == "" && !mentions(p.doc.text, v.Name()) {
		p.fault(v.Pos(), "%s: the comment of the method does not mention it, and its type has none", at.what)
	}
	return out
}

// typeDoc is the doc of a documented type, "" for others.
func (p *projection) typeDoc(t types.Type) string {
	for {
		switch u := types.Unalias(t).(type) {
		case *types.Pointer:
			t = u.Elem()
			continue
		case *types.Slice:
			t = u.Elem()
			continue
		case *types.Named:
			return capital(p.docs.prose(u.Obj().Name(), p.docs.of(u.Obj()).text, nil))
		}
		return ""
	}
}

// listed is what a list in a comment says of a name: "  - key: 1 to 512 bytes."
func listed(text, name string) string {
	_, rest, ok := strings.Cut("\n"+text, "\n  - "+name+": ")
	if !ok {
		return ""
	}
	var lines []string
	for line := range strings.Lines(rest) {
		if len(lines) > 0 && !strings.HasPrefix(line, "    ") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return strings.Join(lines, " ")
}

func mentions(text, word string) bool {
	return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`).MatchString(text)
}

var tellsResult = regexp.MustCompile(`(?i)\b(gives?|returns?|resolves?|reports?|tells?|yields?|says?|reads?|lists?|finds?)\b`)

// result describes what a method gives.
func (p *projection) result(out *catalog.Method, m *types.Func, sig *types.Signature, what string) {
	results := list(sig.Results())
	failing := false
	if n := len(results); n > 0 && isError(results[n-1].Type()) {
		failing, results = true, results[:n-1]
	}
	at := place{m.Pos(), "the result of " + what}
	if len(results) > 1 {
		p.fault(m.Pos(), "%s: a method of JavaScript has one result; put them into a struct", at.what)
		return
	}
	if len(results) == 0 {
		return
	}
	t := results[0].Type()
	if elem, ok := generic(t, "iter.Seq2", 0); ok {
		if out.Kind != catalog.KindAsync || failing {
			p.fault(m.Pos(), "%s: a method that gives an iterator takes a context first, and has no other result", at.what)
		}
		if second, _ := generic(t, "iter.Seq2", 1); second == nil || !isError(second) {
			p.fault(m.Pos(), "%s: an iterator is an iter.Seq2[T, error]", at.what)
		}
		out.Kind = catalog.KindIterator
		out.Result = p.ts(elem, at)
		p.told(results[0], elem, at)
		return
	}
	if p.object && sig.Params().Len() == 0 && !failing && short(t) != "service.Dispose" {
		out.Kind = catalog.KindProperty
		if value, ok := generic(t, Module+"/service.Promise", 0); ok {
			out.Kind, t = catalog.KindPromise, value
		}
		out.Result = p.orNull(t, at)
		return
	}
	out.Result = p.orNull(t, at)
	p.told(results[0], t, at)
}

// orNull is a type that is null where Go has a nil pointer.
func (p *projection) orNull(t types.Type, at place) string {
	text := p.ts(t, at)
	if _, ok := t.(*types.Pointer); ok {
		text += " | null"
	}
	return text
}

// told checks that somebody says what the result is.
func (p *projection) told(v *types.Var, t types.Type, at place) {
	if n, ok := types.Unalias(t).(*types.Named); ok && known[n.Obj().Id()] != "" || short(t) == "service.Dispose" {
		return
	}
	if p.typeDoc(t) != "" || v.Name() != "" && mentions(p.doc.text, v.Name()) || tellsResult.MatchString(p.doc.text) {
		return
	}
	p.fault(at.pos, "%s: the comment of the method does not say what it gives (write gives, returns, tells, …)", at.what)
}

// generic gives a type argument of an instance of a generic type.
func generic(t types.Type, name string, i int) (types.Type, bool) {
	n, ok := types.Unalias(t).(*types.Named)
	if !ok || n.Obj().Pkg() == nil || n.Obj().Pkg().Path()+"."+n.Obj().Name() != name || n.TypeArgs().Len() <= i {
		return nil, false
	}
	return n.TypeArgs().At(i), true
}

func isContext(t types.Type) bool { return short(t) == "context.Context" }

func isError(t types.Type) bool { return short(t) == "error" }

// signature writes a method as TypeScript.
func signature(m catalog.Method) string {
	switch m.Kind {
	case catalog.KindProperty:
		return "readonly " + m.Name + ": " + m.Result
	case catalog.KindPromise:
		return "readonly " + m.Name + ": Promise<" + m.Result + ">"
	}
	params := make([]string, len(m.Params))
	for i, p := range m.Params {
		name := p.Name
		if p.Optional {
			name += "?"
		}
		params[i] = name + ": " + p.Type
	}
	result := m.Result
	switch m.Kind {
	case catalog.KindAsync:
		result = "Promise<" + result + ">"
	case catalog.KindIterator:
		result = "AsyncIterable<" + result + ">"
	}
	return m.Name + "(" + strings.Join(params, ", ") + "): " + result
}

// callback writes a function that JavaScript passes.
func (r *reader) callback(sig *types.Signature, at place) string {
	params := list(sig.Params())
	if len(params) > 0 && isContext(params[0].Type()) {
		params = params[1:]
	}
	args := make([]string, len(params))
	for i, v := range params {
		name := v.Name()
		if name == "" || name == "_" {
			name = lower(baseName(v.Type()))
		}
		args[i] = name + ": " + r.ts(v.Type(), at)
	}
	results := list(sig.Results())
	if n := len(results); n > 0 && isError(results[n-1].Type()) {
		results = results[:n-1]
	}
	result := "void"
	switch {
	case len(results) > 1:
		r.fault(at.pos, "%s: a callback has one result", at.what)
	case len(results) == 1:
		result = r.ts(results[0].Type(), at)
		result += " | Promise<" + result + ">"
	}
	return "(" + strings.Join(args, ", ") + ") => " + result
}

// baseName is the Go name of a type without its package.
func baseName(t types.Type) string {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		return n.Obj().Name()
	}
	return "Value"
}
