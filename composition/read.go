package composition

import (
	"context"
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/selfmod/files"
	"github.com/dsh-go/dsh/trust"
)

// Reading is what documents say, with nothing mounted.
type Reading struct {
	*document.Composition
	// Faults are all that is wrong, in the order of the layers.
	Faults document.Faults
	// Project is the folder of the project; "" where there is none. Notice says which
	// of its files were left out because they are not trusted.
	Project, Notice string
}

// ReadOptions say how documents are read.
type ReadOptions struct {
	Catalog loader.Catalog
	Env     func(name string) (string, bool)
	// Cwd is the folder whose project is read; "" is none.
	Cwd string
	// All reads what of a project is not trusted, too. Nothing of it runs.
	All bool
}

// Read composes documents and checks the configs of their rows, as Start and Place
// would, and mounts nothing.
func Read(ctx context.Context, s Sources, o ReadOptions) (*Reading, error) {
	docs, err := s.read()
	if err != nil {
		return nil, err
	}
	r := &Reading{Faults: docs.faults}
	c := &Composition{o: Options{Sources: s, Catalog: o.Catalog, Env: o.Env}}
	var snap *snapshot
	if o.Cwd != "" && !s.Safe {
		if snap, err = c.look(ctx, o); err != nil {
			return nil, err
		}
		if snap != nil {
			r.Project, r.Notice = snap.root, snap.notice
		}
	}
	project, faults := snap.documents()
	r.Faults = append(r.Faults, faults...)
	whole, faults := docs.compose(project, c.composing(snap))
	r.Composition, r.Faults = whole, append(r.Faults, faults...)
	r.check(whole.Rows, snap, o.Catalog)
	return r, nil
}

// look reads the project of a folder; nil where there is none.
func (c *Composition) look(ctx context.Context, o ReadOptions) (*snapshot, error) {
	root, found, err := find(o.Cwd, c.o.Home)
	if err != nil || !found {
		return nil, err
	}
	w := warden{all: o.All}
	if c.o.Home != "" {
		if w.store, err = trust.Open(c.o.Home); err != nil {
			return nil, err
		}
	}
	return w.read(ctx, root, nil, false)
}

// check checks what the rows name, and the configs of Go plugins.
func (r *Reading) check(rows []document.Row, snap *snapshot, catalog loader.Catalog) {
	for _, row := range rows {
		r.Faults = append(r.Faults, row.Faults...)
		if row.Disabled || len(row.Faults) > 0 {
			continue
		}
		if row.Group {
			r.check(row.Children, snap, catalog)
			continue
		}
		if isFile(row.Name) {
			if err := snap.there(row); err != nil {
				r.add(row, nil, err.Error())
			}
			continue
		}
		spec, ok := catalog.Lookup(row.Name)
		if !ok {
			text := fmt.Sprintf("there is no plugin %q", plain.Name(row.Name))
			if near := plain.Nearest(row.Name, catalog.Names()); near != "" {
				text += fmt.Sprintf("; did you mean %q?", near)
			}
			r.add(row, []string{"name"}, text)
			continue
		}
		if spec.Settings == nil {
			if !row.Config.IsNull() {
				r.add(row, []string{"config"}, "the plugin "+spec.Name+" takes no config")
			}
			continue
		}
		_, faults := spec.Settings.CheckFrom(row.Config, loader.SourceOf(row))
		for _, f := range faults {
			r.Faults = append(r.Faults, document.ConfigFault(row, f.Path, f.Message))
		}
	}
}

// add adds a fault of a row, where the field stands.
func (r *Reading) add(row document.Row, path []string, message string) {
	at := row.At(path...)
	r.Faults = append(r.Faults, document.Fault{File: at.Layer.Name, Line: at.Line, Column: at.Column, Message: message, Row: row.ID})
}

// there says why a row's plugin file cannot be read.
func (s *snapshot) there(row document.Row) (err error) {
	path := fileOf(row)
	if row.Layer.Kind == document.Project {
		_, err = s.plugin(path, row.Name)
	} else {
		_, err = files.Read(path)
	}
	return err
}
