package repotest

import (
	"go/ast"
	"testing"
)

// The size limits. What does not fit is two things: split it by concept.
const (
	maxFile     = 500
	maxTestFile = 800
	maxFunction = 80
	maxPackage  = 12 // source files, generated ones and tests apart
)

// sizeExceptions may only shrink. Each row says why it is here.
var sizeExceptions = map[string]string{}

func TestFileSize(t *testing.T) {
	for _, s := range repoSources(t) {
		limit := maxFile
		if s.Test {
			limit = maxTestFile
		}
		if s.Generated || sizeExceptions[s.Path] != "" {
			continue
		}
		if n := s.Lines(); n > limit {
			t.Errorf("%s: %d lines, the limit is %d; split it by concept", s.Path, n, limit)
		}
	}
}

func TestFunctionSize(t *testing.T) {
	for _, s := range repoSources(t) {
		if s.Generated {
			continue
		}
		for _, decl := range s.Syntax.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := lines(fn)
			if s.Test {
				n -= tableLines(fn)
			}
			if n > maxFunction && sizeExceptions[s.Path+":"+fn.Name.Name] == "" {
				t.Errorf("%s: %s is %d lines, the limit is %d", s.Path, fn.Name.Name, n, maxFunction)
			}
		}
	}
}

func TestPackageSize(t *testing.T) {
	packages := byPackage(repoSources(t))
	for _, dir := range sortedKeys(packages) {
		n := 0
		for _, s := range packages[dir] {
			if !s.Generated {
				n++
			}
		}
		if n > maxPackage && sizeExceptions[dir] == "" {
			t.Errorf("%s: %d source files, the limit is %d; cut the package in two", dir, n, maxPackage)
		}
	}
}

func lines(n ast.Node) int {
	return fset.Position(n.End()).Line - fset.Position(n.Pos()).Line + 1
}

// tableLines are the lines of a test's literals: a table is data, however long.
func tableLines(fn *ast.FuncDecl) int {
	total := 0
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit, *ast.BasicLit:
			total += lines(n) - 1
			return false
		}
		return true
	})
	return total
}
