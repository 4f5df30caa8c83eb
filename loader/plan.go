package loader

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/loader/settings"
	"github.com/dsh-go/dsh/lossless"
)

// wanted is a row as it is to be mounted.
type wanted struct {
	document.Row
	off   bool // it is disabled, or a group around it is
	twice bool // its id is another row's
	surroundings
}

// flatten gives the rows that are no groups, and groups that have faults, in their
// order, and the keys of the realms that they use.
func (t *Tree) flatten(rows []document.Row) (out []wanted, realms map[string]bool) {
	ids := map[string]bool{}
	realms = map[string]bool{}
	var walk func(rows []document.Row, off bool, s surroundings)
	walk = func(rows []document.Row, off bool, s surroundings) {
		for _, r := range rows {
			w := wanted{Row: r, off: off || r.Disabled && len(r.Faults) == 0, twice: ids[r.ID], surroundings: s.within(t, r)}
			ids[r.ID] = true
			if r.Group && len(r.Faults) == 0 && !w.twice {
				walk(r.Children, w.off, w.surroundings)
				continue
			}
			out = append(out, w)
			for _, key := range w.isolate {
				realms[key] = realms[key] || !w.off
			}
		}
	}
	walk(rows, false, surroundings{})
	maps.DeleteFunc(realms, func(_ string, used bool) bool { return !used })
	return out, realms
}

// same says whether a fiber of w needs no other one for o, but for a file's text.
func (w wanted) same(o wanted) bool {
	return w.Name == o.Name && w.path() == o.path() && lossless.Equal(w.Config, o.Config) && w.equal(o.surroundings)
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
	file, line := placeOf(w.Row)
	return fmt.Errorf("row %s (plugin %s, %s:%d): %w", w.ID, plain.Line(w.Name, limits.Name), file, line, err)
}

// placeOf is where a row stands; "" and 0 of one that was not composed.
func placeOf(r document.Row) (file string, line int) {
	at := r.At()
	if at.Layer == nil {
		return "", 0
	}
	return at.Layer.Name, at.Line
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
	spec, config, wrong := Check(w.Row, t.o.Catalog)
	if len(wrong) == 0 {
		return spec, config, nil
	}
	faults := make(document.Faults, len(wrong))
	for i, p := range wrong {
		faults[i] = p.Fault
	}
	return spec, nil, faults
}

// Problem is a fault of a row, with the way from the row to what it is about.
type Problem struct {
	document.Fault
	Path []string
}

// Check says everything that is wrong with the row of a Go plugin before anything of it
// runs, and gives the plugin's Spec and its config, for Spec.New.
func Check(r document.Row, c Catalog) (spec Spec, config any, wrong []Problem) {
	problem := func(message string, path ...string) {
		wrong = append(wrong, Problem{document.FieldFault(r, path, message), path})
	}
	spec, ok := c.Lookup(r.Name)
	if !ok {
		text := fmt.Sprintf("there is no plugin %q", plain.Line(r.Name, limits.Name))
		if near := plain.Nearest(r.Name, c.Names()); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		} else {
			text += `; a plugin file is named "./file.js"`
		}
		problem(text, "name")
		return spec, nil, wrong
	}
	if spec.Settings == nil {
		if !r.Config.IsNull() {
			problem(fmt.Sprintf("plugin %s takes no config", spec.Name), "config")
		}
		return spec, nil, wrong
	}
	config, faults := spec.Settings.CheckFrom(r.Config, SourceOf(r))
	for _, f := range faults {
		problem(f.Message, append([]string{"config"}, f.Path...)...)
	}
	return spec, config, wrong
}

// SourceOf tells which document says the values of a row's config.
func SourceOf(r document.Row) func(path ...string) settings.Source {
	return func(path ...string) settings.Source {
		at := r.At(append([]string{"config"}, path...)...)
		if at.Layer == nil {
			return settings.Source{}
		}
		return settings.Source{Dir: at.Layer.Dir, Project: at.Layer.Kind == document.Project}
	}
}
