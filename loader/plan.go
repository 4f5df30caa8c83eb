package loader

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
)

// wanted is a row as it is to be mounted.
type wanted struct {
	document.Row
	off bool // it is disabled, or a group around it is
	surroundings
}

// flatten gives the rows that are no groups, in their order.
func (t *Tree) flatten(rows []document.Row) (out []wanted, ids map[string]bool) {
	ids = map[string]bool{}
	var walk func(rows []document.Row, off bool, s surroundings)
	walk = func(rows []document.Row, off bool, s surroundings) {
		for _, r := range rows {
			ids[r.ID] = true
			if inner := s.within(t, r); r.Group {
				walk(r.Children, off || r.Disabled, inner)
			} else {
				out = append(out, wanted{r, off || r.Disabled, inner})
			}
		}
	}
	walk(rows, false, surroundings{})
	return out, ids
}

// same says whether a fiber of w needs no other one for o, but for a file's text.
func (w wanted) same(o wanted) bool {
	return w.Name == o.Name && w.path() == o.path() && lossless.Equal(w.Config, o.Config) &&
		w.equal(o.surroundings) && slices.EqualFunc(w.Inject, o.Inject, sameDependency)
}

func sameDependency(a, b cordis.Dependency) bool {
	x, _ := a.Config.(lossless.Value)
	y, _ := b.Config.(lossless.Value)
	return a.Name == b.Name && a.Optional == b.Optional && (a.Config == nil) == (b.Config == nil) && lossless.Equal(x, y)
}

// path is where the row's file is; "" for a Go plugin.
func (w wanted) path() string {
	if !isFile(w.Name) {
		return ""
	}
	return filepath.Join(w.Layer.Dir, filepath.FromSlash(w.Name))
}

// blame names the row that an error is of, and where it stands.
func (w wanted) blame(err error) error {
	var fault document.Fault
	var faults document.Faults
	if errors.As(err, &fault) || errors.As(err, &faults) {
		return err // it has its place
	}
	at := w.At()
	return fmt.Errorf("row %s (plugin %s, %s:%d): %w", w.ID, plain.Line(w.Name, 80), at.Layer.Name, at.Line, err)
}

// check says what is wrong with a row before anything of it runs, and gives what its
// plugin is made of. spec is the zero Spec for a plugin file.
func (t *Tree) check(w wanted) (spec Spec, config any, err error) {
	if len(w.Faults) > 0 {
		return spec, nil, w.Faults
	}
	if isFile(w.Name) {
		if t.o.Opener == nil {
			err = ErrNoFiles
		}
		return spec, nil, err
	}
	spec, ok := t.o.Catalog.Lookup(w.Name)
	if !ok {
		text := fmt.Sprintf("there is no plugin %q", plain.Line(w.Name, 80))
		if near := plain.Nearest(w.Name, t.o.Catalog.Names()); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		} else {
			text += `; a plugin file is named "./file.js"`
		}
		return spec, nil, nameFault(w.Row, text)
	}
	if spec.Settings == nil {
		if !w.Config.IsNull() {
			err = document.ConfigFault(w.Row, nil, fmt.Sprintf("plugin %s takes no config", spec.Name))
		}
		return spec, nil, err
	}
	config, wrong := spec.Settings.Check(w.Config)
	if len(wrong) > 0 {
		faults := make(document.Faults, len(wrong))
		for i, f := range wrong {
			faults[i] = document.ConfigFault(w.Row, f.Path, f.Message)
		}
		return spec, nil, faults
	}
	return spec, config, nil
}

// nameFault is a fault of a row's name.
func nameFault(r document.Row, message string) error {
	at := r.At("name")
	return document.Faults{{File: at.Layer.Name, Line: at.Line, Column: at.Column, Row: r.ID, Message: message}}
}

// injecting is the plugin with what the row injects beside it.
func injecting(p *cordis.Plugin, more []cordis.Dependency) *cordis.Plugin {
	if len(more) == 0 {
		return p
	}
	next := *p
	next.Inject = slices.Clone(p.Inject)
	for _, d := range more {
		if !slices.ContainsFunc(next.Inject, func(o cordis.Dependency) bool { return o.Name == d.Name }) {
			next.Inject = append(next.Inject, d)
		}
	}
	return &next
}
