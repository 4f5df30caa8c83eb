package repotest

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// modulePath is what go.mod declares and every import of ours starts with.
const modulePath = "github.com/dsh-go/dsh"

// source is one Go file of the repository.
type source struct {
	Path      string // slash-separated, from the root
	Text      []byte
	Syntax    *ast.File
	Test      bool
	Generated bool
}

// Dir is the package's folder from the root; "." is the root itself.
func (s *source) Dir() string { return path.Dir(s.Path) }

// Lines counts lines as an editor does.
func (s *source) Lines() int { return bytes.Count(s.Text, []byte("\n")) }

var fset = token.NewFileSet()

// root is the folder of go.mod.
var root = sync.OnceValue(func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			panic("no go.mod above the test's folder")
		}
		dir = up
	}
})

// files lists every file of the repository from the root. Build output, hidden
// folders other than .ci and what .gitignore names are not part of it.
var files = sync.OnceValues(func() ([]string, error) {
	var out []string
	err := filepath.WalkDir(root(), func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root(), p)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			hidden := strings.HasPrefix(d.Name(), ".") && rel != "." && rel != ".ci"
			if hidden || rel == "bin" || d.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && rel != "dsh" {
			out = append(out, rel)
		}
		return nil
	})
	return out, err
})

// sources parses every Go file outside testdata, whatever its build tags.
var sources = sync.OnceValues(func() ([]*source, error) {
	names, err := files()
	if err != nil {
		return nil, err
	}
	var out []*source
	for _, name := range names {
		if path.Ext(name) != ".go" || strings.Contains("/"+name, "/testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root(), filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("read source: %w", err)
		}
		syntax, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse source: %w", err)
		}
		out = append(out, &source{
			Path:      name,
			Text:      text,
			Syntax:    syntax,
			Test:      strings.HasSuffix(name, "_test.go"),
			Generated: ast.IsGenerated(syntax),
		})
	}
	return out, nil
})

// repoSources is sources for a test.
func repoSources(t *testing.T) []*source {
	t.Helper()
	out, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(out) == 0 {
		t.Fatal("no Go files found")
	}
	return out
}

// byPackage groups the files that are no tests by folder.
func byPackage(all []*source) map[string][]*source {
	out := map[string][]*source{}
	for _, s := range all {
		if !s.Test {
			out[s.Dir()] = append(out[s.Dir()], s)
		}
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// goTool runs the go command at the root and returns its standard output.
func goTool(t *testing.T, limit time.Duration, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out
}

// textFiles are the files that a person reads: code, prose, configuration.
func textFiles(t *testing.T) []string {
	t.Helper()
	all, err := files()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		switch path.Ext(name) {
		case ".go", ".md", ".txtar", ".json", ".yml", ".yaml", ".js", ".ts", ".sh", ".mod", ".txt", "":
			return strings.Contains("/"+name, "/testdata/fuzz/")
		}
		return true
	})
}
