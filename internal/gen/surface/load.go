package surface

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const cordisPath = Module + "/cordis"

// loaded are type-checked packages with their syntax.
type loaded struct {
	fset     *token.FileSet
	packages []*packages.Package
	docs     *docs
}

func load(cfg Config) (*loaded, error) {
	patterns := cfg.Patterns
	if patterns == nil {
		var err error
		if patterns, err = declaring(cfg.Dir); err != nil {
			return nil, err
		}
	}
	patterns = append(slices.Clip(patterns), "./limits") // docs name its values
	fset := token.NewFileSet()
	pkgs, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports |
			packages.NeedExportFile | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir: cfg.Dir, Fset: fset, Overlay: cfg.Overlay,
	}, patterns...)
	if err != nil {
		return nil, fmt.Errorf("load packages: %w", err)
	}
	d := newDocs(cfg.Dir, fset)
	for _, p := range pkgs {
		for _, e := range p.Errors {
			return nil, fmt.Errorf("load package %s: %w", p.PkgPath, e)
		}
		d.add(p)
	}
	return &loaded{fset: fset, packages: pkgs, docs: d}, nil
}

// declaring finds the packages whose files declare a service or an event.
func declaring(root string) ([]string, error) {
	var dirs []string
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != root && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, mark := range []string{"cordis.PluginInterface", "cordis.ForPlugins()"} {
			if bytes.Contains(text, []byte(mark)) {
				rel, err := filepath.Rel(root, filepath.Dir(name))
				if err != nil {
					return err
				}
				dirs = append(dirs, "./"+filepath.ToSlash(rel))
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find declarations: %w", err)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs), nil
}

// foundService is a declaration of a service with a plugin interface.
type foundService struct {
	key    string
	pos    token.Pos
	plugin types.Type
	facade bool // no bind function: the façade implements it
}

// foundEvent is a declaration of an event that plugins may listen to.
type foundEvent struct {
	name, mode      string
	pos             token.Pos
	doc             string
	varName         string
	payload, result types.Type // result is nil where nothing comes back
}

var modes = map[string]string{
	"NewEmit": "emit", "NewParallel": "parallel", "NewSerial": "serial", "NewBail": "bail", "NewWaterfall": "waterfall",
}

// find looks at the package variables of pkgs.
func (r *reader) find(pkgs []*packages.Package) (services []foundService, events []foundEvent) {
	for _, p := range pkgs {
		for _, file := range p.Syntax {
			for _, decl := range file.Decls {
				gen, ok := decl.(*ast.GenDecl)
				if !ok || gen.Tok != token.VAR {
					continue
				}
				for _, spec := range gen.Specs {
					v := spec.(*ast.ValueSpec)
					for i, value := range v.Values {
						call, ok := value.(*ast.CallExpr)
						if !ok {
							continue
						}
						fn, targs := callee(p.TypesInfo, call)
						switch {
						case fn == "NewService":
							if s, ok := serviceOf(p.TypesInfo, call); ok {
								s.pos = v.Names[i].Pos()
								services = append(services, s)
							}
						case modes[fn] != "" && hasForPlugins(p.TypesInfo, call):
							e := foundEvent{name: text(p.TypesInfo, call.Args[0]), mode: modes[fn], pos: v.Names[i].Pos(), varName: v.Names[i].Name}
							e.payload = targs.At(0)
							if targs.Len() > 1 {
								e.result = targs.At(1)
							}
							e.doc = v.Doc.Text()
							if e.doc == "" && !gen.Lparen.IsValid() {
								e.doc = gen.Doc.Text()
							}
							events = append(events, e)
						}
					}
				}
			}
		}
	}
	return services, events
}

// callee gives the name of a called function of package cordis, and its type arguments.
func callee(info *types.Info, call *ast.CallExpr) (string, *types.TypeList) {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	id, ok := fun.(*ast.Ident)
	if sel, is := fun.(*ast.SelectorExpr); is {
		id, ok = sel.Sel, true
	}
	if !ok {
		return "", nil
	}
	fn, ok := info.Uses[id].(*types.Func)
	if !ok || fn.Pkg() == nil || fn.Pkg().Path() != cordisPath {
		return "", nil
	}
	return fn.Name(), info.Instances[id].TypeArgs
}

func serviceOf(info *types.Info, call *ast.CallExpr) (foundService, bool) {
	for _, arg := range call.Args[1:] {
		option, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok {
			continue
		}
		if fn, targs := callee(info, option); fn == "PluginInterface" {
			return foundService{key: text(info, call.Args[0]), plugin: targs.At(1), facade: info.Types[option.Args[0]].IsNil()}, true
		}
	}
	return foundService{}, false
}

func hasForPlugins(info *types.Info, call *ast.CallExpr) bool {
	return slices.ContainsFunc(call.Args[1:], func(arg ast.Expr) bool {
		option, ok := ast.Unparen(arg).(*ast.CallExpr)
		if !ok {
			return false
		}
		fn, _ := callee(info, option)
		return fn == "ForPlugins"
	})
}

// text is the value of a constant string.
func text(info *types.Info, e ast.Expr) string {
	if v := info.Types[e].Value; v != nil && v.Kind() == constant.String {
		return constant.StringVal(v)
	}
	return ""
}
