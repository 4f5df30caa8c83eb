// Package surface reads what the Go source of this module offers to mounted
// plugins, and writes it down as TypeScript: the services that are declared with
// cordis.PluginInterface, the events that are declared with cordis.ForPlugins,
// and every type that they mention.
//
// # Rules
//
// Package service says how Go is written as TypeScript. Beyond that:
//
//   - Everything has a comment: interfaces, methods, events, structs, fields. The
//     comment of a method mentions each parameter by its name, unless the type of
//     the parameter is a documented type of its own; and it says what the method
//     gives, unless that is nothing, a disposer or such a type.
//   - Fields have a JSON tag; omitempty, omitzero and *service.Signal make them
//     optional; another pointer may be null, as may a result that is one.
//   - "//dsh:ts T" in the comment of a type says what it is in TypeScript; on a
//     method of a service without a bind function, its whole signature, once for
//     each overload. The types that it mentions are looked up in its package.
//   - "//dsh:name N" gives a type another name, and a "//dsh:ts" type beside it a
//     declaration of its own.
//   - "//dsh:args" on a struct that is the payload of an event says that its fields
//     reach a listener as arguments of their own.
//
// In docs the Go name at the beginning is dropped, doc links and the names of
// methods and fields become those of JavaScript, and limits.X becomes its value.
//
// # Errors
//
// All problems of a source are reported at once, sorted by place, as
// file:line: what is wrong and what to do. Nothing is returned beside them.
package surface

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"

	"github.com/dsh-go/dsh/selfmod/catalog"
)

// Module is the module whose types are described.
const Module = "github.com/dsh-go/dsh"

// Surface is what was found, in the order of package catalog.
type Surface struct {
	Services []catalog.Service
	Events   []catalog.Event
	Types    []catalog.Type
	// Full are the declarations of types that the catalog has cut, by name.
	Full map[string]string
	// Limits are the values of package limits, as docs show them, by name.
	Limits map[string]string
}

// Config says what is read.
type Config struct {
	// Dir is the root of the module.
	Dir string
	// Patterns are the packages to look into; none: all that declare something.
	Patterns []string
	// Overlay replaces files, by absolute name.
	Overlay map[string][]byte
}

// A Problem is one fault of the source.
type Problem struct {
	Pos  token.Position // the file is relative to Config.Dir
	Text string
}

// Error gives file:line: text.
func (p *Problem) Error() string {
	return fmt.Sprintf("%s:%d: %s", filepath.ToSlash(p.Pos.Filename), p.Pos.Line, p.Text)
}

// Read loads the packages and describes them. Its error joins *Problem values
// where the source is at fault.
func Read(cfg Config) (*Surface, error) {
	loaded, err := load(cfg)
	if err != nil {
		return nil, err
	}
	return describe(cfg, loaded, loaded.packages...)
}

// describe projects some of the loaded packages.
func describe(cfg Config, l *loaded, pkgs ...*packages.Package) (*Surface, error) {
	r := &reader{dir: cfg.Dir, fset: l.fset, docs: l.docs, types: map[string]*declared{}}
	services, events := r.find(pkgs)
	out := &Surface{Full: map[string]string{}, Limits: l.docs.values}
	for _, s := range services {
		out.Services = append(out.Services, r.service(s))
	}
	for _, e := range events {
		out.Events = append(out.Events, r.event(e))
	}
	for _, name := range slices.Sorted(maps.Keys(r.types)) {
		d := r.types[name]
		if len(d.full) > maxDeclaration {
			out.Full[name] = d.full
			d.Declaration = cut(d.full)
		}
		out.Types = append(out.Types, d.Type)
	}
	slices.SortFunc(out.Services, func(a, b catalog.Service) int { return cmp.Compare(a.Key, b.Key) })
	slices.SortFunc(out.Events, func(a, b catalog.Event) int { return cmp.Compare(a.Name, b.Name) })
	return out, r.err()
}

// The most characters of a declaration, and what a cut one ends with.
const (
	maxDeclaration = 1500
	cutMarker      = "\n  /* … cut: the rest is in docs/reference/types.md */"
)

// cut shortens a declaration at the end of a line.
func cut(text string) string {
	head := text[:maxDeclaration]
	return head[:strings.LastIndexByte(head, '\n')] + cutMarker
}

// reader is one projection.
type reader struct {
	dir      string
	fset     *token.FileSet
	docs     *docs
	types    map[string]*declared // by name in TypeScript
	problems []*Problem
}

// declared is one type on its way into the catalog.
type declared struct {
	catalog.Type
	full string
	pos  token.Pos
	is   any // the types.Object behind it
}

// fault notes a problem.
func (r *reader) fault(pos token.Pos, format string, args ...any) {
	p := r.fset.Position(pos)
	if rel, err := filepath.Rel(r.dir, p.Filename); err == nil {
		p.Filename = rel
	}
	found := &Problem{Pos: p, Text: fmt.Sprintf(format, args...)}
	if !slices.ContainsFunc(r.problems, func(o *Problem) bool { return o.Error() == found.Error() }) {
		r.problems = append(r.problems, found)
	}
}

func (r *reader) err() error {
	slices.SortFunc(r.problems, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Pos.Filename, b.Pos.Filename), cmp.Compare(a.Pos.Line, b.Pos.Line), cmp.Compare(a.Text, b.Text))
	})
	var errs []error
	for _, p := range r.problems {
		errs = append(errs, p)
	}
	return errors.Join(errs...)
}
