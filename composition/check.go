package composition

import (
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
)

// check says which rows of Go plugins name none, and what is wrong with their configs:
// of what projects say, or of what others do.
func check(rows []document.Row, catalog loader.Catalog, project bool) (faults document.Faults) {
	for _, r := range rows {
		if r.Disabled || len(r.Faults) > 0 {
			continue
		}
		if r.Group {
			faults = append(faults, check(r.Children, catalog, project)...)
			continue
		}
		if isFile(r.Name) {
			continue
		}
		for _, f := range checkRow(r, catalog) {
			if at := r.At(f.path...); (at.Layer != nil && at.Layer.Kind == document.Project) == project {
				faults = append(faults, f.Fault)
			}
		}
	}
	return faults
}

// placed is a fault with the way to what it is about.
type placed struct {
	document.Fault
	path []string
}

func checkRow(r document.Row, catalog loader.Catalog) []placed {
	spec, ok := catalog.Lookup(r.Name)
	if !ok {
		text := fmt.Sprintf("there is no plugin %q", plain.Name(r.Name))
		if near := plain.Nearest(r.Name, catalog.Names()); near != "" {
			text += fmt.Sprintf("; did you mean %q?", near)
		}
		return []placed{at(r, text, "name")}
	}
	if spec.Settings == nil {
		if r.Config.IsNull() {
			return nil
		}
		return []placed{at(r, "the plugin "+spec.Name+" takes no config", "config")}
	}
	var all []placed
	_, faults := spec.Settings.CheckFrom(r.Config, loader.SourceOf(r))
	for _, f := range faults {
		all = append(all, placed{document.ConfigFault(r, f.Path, f.Message), append([]string{"config"}, f.Path...)})
	}
	return all
}

// at is a fault of a row, where a field of it stands.
func at(r document.Row, message string, field string) placed {
	where := r.At(field)
	return placed{document.Fault{File: where.Layer.Name, Line: where.Line, Column: where.Column, Message: message, Row: r.ID}, []string{field}}
}

// apart says whether all faults are of rows that can be left out by themselves.
func apart(faults document.Faults) bool {
	for _, f := range faults {
		if f.Row == "" {
			return false
		}
	}
	return true
}
