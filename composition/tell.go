package composition

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/tool"
)

// composing is how documents are composed, with the bytes of a project that count.
func (c *Composition) composing(snap *snapshot) document.Options {
	return document.Options{Env: c.o.Env, May: may(c.o.Catalog), Elsewhere: c.o.Elsewhere, Open: func(from *document.Layer, name string) (document.Layer, error) {
		path := filepath.Join(from.Dir, filepath.FromSlash(name))
		if from.Kind != document.Project {
			return document.Read(path, from.Kind)
		}
		rel, err := filepath.Rel(snap.root, path)
		if err != nil || !filepath.IsLocal(rel) {
			return document.Layer{}, errors.New("it is outside of the project")
		}
		text, ok := snap.file(filepath.ToSlash(rel))
		if !ok {
			return document.Layer{}, &os.PathError{Op: "open", Path: path, Err: errNotTrusted}
		}
		return document.Layer{Name: path, Kind: document.Project, Text: text, Dir: filepath.Dir(path)}, nil
	}}
}

// provide offers what became of the rows.
func (c *Composition) provide() error {
	_, err := c.root.Mount(&cordis.Plugin{Name: "composition", Provides: []string{loader.Service.Name()}, Apply: func(ctx *cordis.Context, _ any) error {
		_, err := loader.Service.Provide(ctx, told{c})
		return err
	}}, nil)
	if err != nil {
		return fmt.Errorf("compose: %w", err)
	}
	return nil
}

// told tells of a composition. It waits for no transaction.
type told struct{ c *Composition }

var _ loader.Composition = told{}

// Rows implements loader.Composition.
func (t told) Rows(scope *tool.Scope) []loader.RowInfo {
	var rows []loader.RowInfo
	for _, tree := range t.c.trees(scope) {
		for _, r := range tree.Rows() {
			if r.State != "group" || !slices.ContainsFunc(rows, func(other loader.RowInfo) bool { return other.ID == r.ID }) {
				rows = append(rows, r) // a group is there in each tree
			}
		}
	}
	return rows
}

// Notices implements loader.Composition.
func (t told) Notices(scope *tool.Scope) []string {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	notices := slices.Clone(t.c.notices)
	for _, s := range t.c.known {
		if text := s.notice; text != "" && scope.Within(s.scope) {
			notices = append(notices, text)
		}
	}
	return notices
}

// know makes a space one that is told of.
func (c *Composition) know(s *space) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = append(c.known, s)
}

// forget takes know back.
func (c *Composition) forget(s *space) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known = slices.DeleteFunc(c.known, func(other *space) bool { return other == s })
}

// note keeps for inspect what is wrong with a project.
func (c *Composition) note(s *space, notice string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.notice = notice
}

// Fault says why a row of the host does not run; nil: it does, or is not there.
func (c *Composition) Fault(id string) error {
	for _, r := range c.host.Rows() {
		if r.ID == id && r.Reason != "" {
			return errors.New(r.Reason)
		}
	}
	return nil
}

// trees are those that concern a scope: the host's, its project's, its agent's.
func (c *Composition) trees(scope *tool.Scope) []*loader.Tree {
	c.mu.Lock()
	defer c.mu.Unlock()
	trees := []*loader.Tree{c.host}
	for _, s := range c.known {
		if scope.Within(s.scope) {
			trees = append(trees, s.tree)
		}
	}
	for _, a := range c.agents {
		if scope.Within(a.scope) {
			trees = append(trees, a.tree)
		}
	}
	return trees
}
