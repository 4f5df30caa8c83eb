package repotest

import (
	"go/ast"
	"go/token"
	"testing"
)

// TestExportedDocumented: the comment on an exported name is its contract, so
// there is one on every exported name. A comment on a group of constants or
// variables counts for the group.
func TestExportedDocumented(t *testing.T) {
	for _, s := range repoSources(t) {
		if s.Test || s.Generated || s.Syntax.Name.Name == "main" {
			continue
		}
		for _, decl := range s.Syntax.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s has no comment; say what it promises", fset.Position(name.Pos()), name.Name)
			}
		}
	}
}

// wellKnown are methods whose contract is an interface of the standard library.
var wellKnown = map[string]bool{
	"Error": true, "Unwrap": true, "Is": true, "As": true, "String": true, "GoString": true,
	"MarshalJSON": true, "UnmarshalJSON": true, "MarshalText": true, "UnmarshalText": true,
	"Read": true, "Write": true, "Close": true, "Len": true, "Less": true, "Swap": true,
}

func undocumented(decl ast.Decl) []*ast.Ident {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		known := decl.Recv != nil && wellKnown[decl.Name.Name]
		if decl.Doc == nil && decl.Name.IsExported() && receiverExported(decl) && !known {
			return []*ast.Ident{decl.Name}
		}
	case *ast.GenDecl:
		var out []*ast.Ident
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				// A comment above a single declaration belongs to the declaration.
				if spec.Name.IsExported() && spec.Doc == nil && (decl.Doc == nil || decl.Lparen.IsValid()) {
					out = append(out, spec.Name)
				}
			case *ast.ValueSpec:
				if decl.Doc != nil || spec.Doc != nil || (spec.Comment != nil && decl.Tok != token.TYPE) {
					continue
				}
				for _, name := range spec.Names {
					if name.IsExported() {
						out = append(out, name)
					}
				}
			}
		}
		return out
	}
	return nil
}

func receiverExported(fn *ast.FuncDecl) bool {
	if fn.Recv == nil || len(fn.Recv.List) == 0 {
		return true
	}
	switch typ := ast.Unparen(fn.Recv.List[0].Type).(type) {
	case *ast.StarExpr:
		return baseExported(typ.X)
	default:
		return baseExported(typ)
	}
}

func baseExported(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.IsExported()
	case *ast.IndexExpr:
		return baseExported(e.X)
	case *ast.IndexListExpr:
		return baseExported(e.X)
	}
	return true
}
