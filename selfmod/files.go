package selfmod

import (
	"context"
	"fmt"
	"path"

	"github.com/dsh-go/dsh/internal/plain"
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

// reportPlugin is everything about one plugin file.
func (t *toolset) reportPlugin(name string, scope *tool.Scope) (string, error) {
	if m := t.file(name, scope); m != nil {
		return t.reportMount(m), nil
	}
	text := fmt.Sprintf("there is no plugin file %q", plain.Name(name))
	var known []string
	for _, m := range t.files(scope) {
		known = append(known, plain.Name(m.ID))
	}
	if len(known) > 0 {
		return "", fmt.Errorf("%s; there are: %s", text, listed(known, shownNames))
	}
	return "", fmt.Errorf("%s: none is loaded. Only plugin files are shown one by one; all plugins are listed without name", text)
}
