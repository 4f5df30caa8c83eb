package surface

import (
	"go/ast"
	"go/constant"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/tools/go/packages"
)

// docs finds the comments of declarations. Packages that were loaded without
// syntax are parsed when they are first asked for.
type docs struct {
	dir      string
	fset     *token.FileSet
	packages map[string]map[string]*typeDoc // by path, then by name
	values   map[string]string              // of package limits, formatted, by name
}

// typeDoc is the comment of a type and of what is in it.
type typeDoc struct {
	text       string
	directives map[string][]string // dsh:ts and the like
	members    map[string]*memberDoc
}

// memberDoc is the comment of a field or a method.
type memberDoc struct {
	text       string
	directives map[string][]string
}

func newDocs(dir string, fset *token.FileSet) *docs {
	return &docs{dir: dir, fset: fset, packages: map[string]map[string]*typeDoc{}, values: map[string]string{}}
}

func (d *docs) add(p *packages.Package) {
	d.packages[p.PkgPath] = index(p.Syntax)
	for _, imported := range append([]*types.Package{p.Types}, p.Types.Imports()...) {
		if imported.Path() == Module+"/limits" {
			d.limits(imported)
		}
	}
}

// limits reads the bounds, so that docs can name them by their values.
func (d *docs) limits(p *types.Package) {
	for _, name := range p.Scope().Names() {
		c, ok := p.Scope().Lookup(name).(*types.Const)
		if !ok {
			continue
		}
		switch n, exact := constant.Int64Val(constant.ToInt(c.Val())); {
		case c.Val().Kind() == constant.String:
			d.values[name] = constant.StringVal(c.Val())
		case exact && c.Type().String() == "time.Duration":
			d.values[name] = Duration(n)
		case exact:
			d.values[name] = Count(n)
		}
	}
}

// of gives the doc of a named type; an empty one where there is none.
func (d *docs) of(obj *types.TypeName) *typeDoc {
	if obj.Pkg() == nil {
		return &typeDoc{}
	}
	path := obj.Pkg().Path()
	if d.packages[path] == nil {
		d.packages[path] = index(d.parse(path))
	}
	if t := d.packages[path][obj.Name()]; t != nil {
		return t
	}
	return &typeDoc{}
}

// named gives the Go name of the type that a directive has named so.
func (d *docs) named(path, name string) string {
	for goName, t := range d.packages[path] {
		if directive(t.directives, "name") == name {
			return goName
		}
	}
	return ""
}

// parse reads the files of a package of this module.
func (d *docs) parse(path string) []*ast.File {
	rel, ok := strings.CutPrefix(path, Module)
	if !ok {
		return nil
	}
	dir := filepath.Join(d.dir, filepath.FromSlash(rel))
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // what is missing is reported as undocumented
	}
	var files []*ast.File
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".go") && !strings.HasSuffix(e.Name(), "_test.go") {
			if f, err := parser.ParseFile(d.fset, filepath.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution); err == nil {
				files = append(files, f)
			}
		}
	}
	return files
}

func index(files []*ast.File) map[string]*typeDoc {
	out := map[string]*typeDoc{}
	for _, f := range files {
		for _, decl := range f.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.TYPE {
				continue
			}
			for _, spec := range gen.Specs {
				s := spec.(*ast.TypeSpec)
				doc := s.Doc
				if doc == nil && !gen.Lparen.IsValid() {
					doc = gen.Doc
				}
				out[s.Name.Name] = &typeDoc{text: doc.Text(), directives: directives(doc), members: members(s.Type)}
			}
		}
	}
	return out
}

func members(e ast.Expr) map[string]*memberDoc {
	var list *ast.FieldList
	switch t := e.(type) {
	case *ast.StructType:
		list = t.Fields
	case *ast.InterfaceType:
		list = t.Methods
	default:
		return nil
	}
	out := map[string]*memberDoc{}
	for _, f := range list.List {
		doc := f.Doc
		if doc.Text() == "" {
			doc = f.Comment
		}
		for _, n := range f.Names {
			out[n.Name] = &memberDoc{text: doc.Text(), directives: directives(f.Doc)}
		}
	}
	return out
}

// directives are the lines //dsh:key value of a comment.
func directives(g *ast.CommentGroup) map[string][]string {
	if g == nil {
		return nil
	}
	var out map[string][]string
	for _, c := range g.List {
		rest, ok := strings.CutPrefix(c.Text, "//dsh:")
		if !ok {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		key, value, _ := strings.Cut(rest, " ")
		out[key] = append(out[key], strings.TrimSpace(value))
	}
	return out
}

func directive(in map[string][]string, key string) string {
	if len(in[key]) == 0 {
		return ""
	}
	return in[key][0]
}

var (
	docLink   = regexp.MustCompile(`\[\*?(?:[A-Za-z]\w*\.)*([A-Z]\w*)\]`)
	limitName = regexp.MustCompile(`\blimits\.([A-Z]\w*)`)
	goName    = regexp.MustCompile(`(\n\n|[.:] |["'\x60])?\b([A-Z]\w*)\b`)
)

// prose turns a Go comment into text for a reader of JavaScript. own is the Go
// name that the comment begins with; names are what the members are called.
func (d *docs) prose(own, text string, names map[string]string) string {
	text = strings.TrimSpace(text)
	text = limitName.ReplaceAllStringFunc(text, func(m string) string {
		if v, ok := d.values[strings.TrimPrefix(m, "limits.")]; ok {
			return v
		}
		return m
	})
	text = trimName(own, text)
	text = docLink.ReplaceAllStringFunc(text, func(m string) string {
		name := docLink.FindStringSubmatch(m)[1]
		if js, ok := names[name]; ok {
			return js
		}
		return name
	})
	text = goName.ReplaceAllStringFunc(". "+text, func(m string) string {
		name := goName.FindStringSubmatch(m)[2]
		js, ok := names[name]
		if before := strings.TrimSuffix(m, name); ok && (before == "" || strings.ToLower(name[1:]) != name[1:]) {
			return before + js // a single word at the beginning of a sentence may be English
		}
		return m
	})
	var p comment.Parser
	out := (&comment.Printer{TextWidth: -1, TextCodePrefix: "  "}).Text(p.Parse(text[len(". "):]))
	return strings.TrimSpace(string(out))
}

// trimName drops the name at the beginning: "ReadText gives …" is "Gives …",
// "A Target is a place" is "A place"; of a field, "Kind is allow" is "allow".
func trimName(own, text string) string {
	if own == "" {
		return text
	}
	rest := text
	for _, article := range []string{"A ", "An ", "The "} {
		if after, ok := strings.CutPrefix(text, article+own+" "); ok {
			rest = own + " " + after
		}
	}
	rest, ok := strings.CutPrefix(rest, own+" ")
	if !ok {
		return text
	}
	for _, verb := range []string{"is ", "are "} {
		if after, ok := strings.CutPrefix(rest, verb); ok {
			return after
		}
	}
	return capital(rest)
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	c, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(c)) + s[n:]
}

// summary is the first sentence of a doc, in one line.
func summary(doc string) string {
	first, _, _ := strings.Cut(doc, "\n\n")
	first = strings.Join(strings.Fields(first), " ")
	for i := 0; i < len(first)-1; i++ {
		if first[i] == '.' && first[i+1] == ' ' && !abbreviation(first[:i]) {
			return first[:i+1]
		}
	}
	return first
}

func abbreviation(head string) bool {
	return strings.HasSuffix(head, "e.g") || strings.HasSuffix(head, "i.e") || strings.HasSuffix(head, " .")
}

// Count formats a number for people: 16,777,216.
func Count(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Duration formats nanoseconds for people: 30 s, 100 ms.
func Duration(n int64) string {
	switch {
	case n != 0 && n%1e9 == 0:
		return Count(n/1e9) + " s"
	case n != 0 && n%1e6 == 0:
		return Count(n/1e6) + " ms"
	}
	return Count(n) + " ns"
}

// lower is a Go name as JavaScript writes it: ReadText is readText, URL is url.
func lower(name string) string {
	n := 0
	for n < len(name) && name[n] >= 'A' && name[n] <= 'Z' {
		n++
	}
	switch {
	case n == len(name):
		return strings.ToLower(name)
	case n > 1:
		n-- // the last capital begins the next word
	}
	return strings.ToLower(name[:n]) + name[n:]
}
