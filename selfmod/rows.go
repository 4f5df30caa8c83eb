package selfmod

import (
	"context"
	"fmt"
	"path"
	"strings"

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

// rows are the rows of the composition that concern a scope, one line each, and what
// is wrong beside them; none where there is no composition.
func (t *toolset) rows(scope *tool.Scope) (lines, notices []string) {
	c, ok := loader.Service.Get(t.ctx)
	if !ok {
		return nil, nil
	}
	for _, r := range c.Rows(scope) {
		lines = append(lines, rowLine(r, limits.SourceLine))
	}
	for _, n := range c.Notices(scope) {
		notices = append(notices, "Attention: "+plain.Line(n, 2*limits.SourceLine))
	}
	if skip := len(notices) - shownNotices; skip > 0 {
		notices = append(notices[:shownNotices], fmt.Sprintf("(and %d more)", skip))
	}
	return lines, notices
}

// shownNotices bounds what is said beside rows.
const shownNotices = 5

// rowLine is a row with what became of it, why in at most so many characters.
func rowLine(r loader.RowInfo, reason int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- row %s: %s [%s]", plain.Name(r.ID), plain.Name(r.Name), plain.Name(r.State))
	if r.Layer != "" {
		b.WriteString(" (" + plain.Line(r.Layer, limits.Name))
		if r.Line > 0 {
			fmt.Fprintf(&b, ":%d", r.Line)
		}
		b.WriteString(")")
	}
	if r.Reason != "" {
		b.WriteString(": " + plain.Line(r.Reason, reason))
	}
	if len(r.Waiting) > 0 {
		b.WriteString("; waiting for: " + listed(names(r.Waiting), rowList))
	}
	if len(r.Guards) > 0 {
		b.WriteString("; guards " + listed(names(r.Guards), rowList))
		if r.Withheld {
			b.WriteString(", which are absent until it is active")
		}
	}
	if r.Later {
		b.WriteString("; its document says something else, which counts from the next start")
	}
	return b.String()
}

// row is the row of the composition with an id or a plugin's name; false: none.
func (t *toolset) row(name string, scope *tool.Scope) (found loader.RowInfo, ok bool) {
	c, there := loader.Service.Get(t.ctx)
	if !there {
		return found, false
	}
	for _, r := range c.Rows(scope) {
		switch name {
		case r.ID:
			return r, true
		case r.Name:
			found, ok = r, true
		}
	}
	return found, ok
}
