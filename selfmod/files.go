package selfmod

import (
	"context"
	"fmt"
	"path"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/tool"
)

// files are the plugin files that a scope has, by path.
func (t *toolset) files(scope *tool.Scope) []*mount.Mount {
	return mount.Files(context.Background(), t.ctx, scope)
}

// file finds a plugin file by its path, the end of that, or its plugin's name; nil:
// there is none. A path goes before a name.
func (t *toolset) file(name string, scope *tool.Scope) *mount.Mount {
	var found *mount.Mount
	for _, m := range t.files(scope) {
		switch name {
		case m.ID, plain.Name(m.ID):
			return m
		case path.Base(m.ID), m.Name():
			found = m
		}
	}
	return found
}

// reportPlugin is everything about one plugin file, or about one row.
func (t *toolset) reportPlugin(name string, scope *tool.Scope) (string, error) {
	if m := t.file(name, scope); m != nil {
		return t.reportMount(m), nil
	}
	if r, ok := t.row(name, scope); ok {
		text := fmt.Sprintf("## Row %s\n%s", plain.Name(r.ID), rowLine(r, limits.ErrorText))
		if m := t.file(r.Name, scope); m != nil {
			text += "\n\n" + t.reportMount(m)
		}
		return text, nil
	}
	text := fmt.Sprintf("there is no plugin file or row %q", plain.Name(name))
	var known, loaded []string
	for _, m := range t.files(scope) {
		loaded = append(loaded, plain.Name(m.ID))
	}
	known = append(known, loaded...)
	if c, ok := loader.Service.Get(t.ctx); ok {
		for _, r := range c.Rows(scope) {
			known = append(known, plain.Name(r.ID))
		}
	}
	return "", fmt.Errorf("%s%s; plugin files that are loaded: %s", text, didYouMean(name, known), orNone(loaded))
}
