package composition

import (
	"context"

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
	r.Faults = append(append(r.Faults, check(whole.Rows, o.Catalog, false)...), check(whole.Rows, o.Catalog, true)...)
	r.files(whole.Rows, snap)
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

// files checks that plugin files are there.
func (r *Reading) files(rows []document.Row, snap *snapshot) {
	for _, row := range rows {
		if row.Disabled {
			continue
		}
		r.files(row.Children, snap)
		if isFile(row.Name) {
			if err := snap.there(row); err != nil {
				r.Faults = append(r.Faults, document.FieldFault(row, []string{"name"}, err.Error()))
			}
		}
	}
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
