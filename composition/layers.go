package composition

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/loader/document"
)

// Sources say what the layers are, but for those of projects.
type Sources struct {
	// Home is dsh's own folder, whose cordis.yml and plugins are the person's own; ""
	// is none.
	Home string
	// Builtin is the built-in composition.
	Builtin document.Layer
	// Config are the files of --config, in order.
	Config []string
	// Set are the values of --set and of other flags, in order.
	Set []*document.Document
	// Elsewhere says whether another built-in composition has a row with the id: to
	// override it is no fault, and does nothing. Nil: there is none.
	Elsewhere func(id string) bool
	// Safe leaves out everything but Builtin and Set.
	Safe bool
}

// documents are the layers below and above those of a project, as they were read.
type documents struct {
	below, above []*document.Document
	faults       document.Faults // of documents that a person named
	folders      []string        // that are to be watched for them
	deep         []string        // likewise, with all below
	loaded       []string        // what of them is loaded: files and folders, links resolved
}

// read reads the documents. What is missing in Home is no fault; a file of --config is.
func (s Sources) read() (documents, error) {
	var d documents
	if err := d.add(&d.below, s.Builtin); err != nil {
		return d, err
	}
	if s.Safe {
		d.above = append(d.above, s.Set...)
		return d, nil
	}
	if s.Home != "" {
		if err := d.own(s.Home); err != nil {
			return d, err
		}
	}
	for _, name := range s.Config {
		if err := d.file(&d.above, name, document.Config); err != nil {
			return d, err
		}
	}
	d.above = append(d.above, s.Set...)
	return d, nil
}

// own reads the person's own cordis.yml, and what is dropped beside it.
func (d *documents) own(home string) error {
	var mine []*document.Document
	err := d.file(&mine, filepath.Join(home, documentName), document.User)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	named := map[string]bool{}
	if len(mine) > 0 {
		named = namedBy(mine[0])
	}
	plugins := filepath.Join(home, pluginsName)
	d.deep = append(d.deep, plugins)
	dropped, faults := droppedLayer(droppedNames(plugins), named, document.Layer{Name: plugins, Kind: document.User, Dir: home})
	d.faults = append(d.faults, faults...)
	if dropped != nil {
		d.below = append(d.below, dropped)
	}
	d.below = append(d.below, mine...)
	return nil
}

// droppedNames lists a folder of plugins as droppedLayer wants it. One that cannot be
// read has none: it is no document.
func droppedNames(plugins string) (names []string) {
	entries, err := os.ReadDir(plugins)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		name := pluginsName + "/" + e.Name()
		info, err := os.Stat(filepath.Join(plugins, e.Name())) // links are followed
		if err != nil || e.Name()[0] == '.' {
			continue
		}
		if !info.IsDir() {
			names = append(names, name)
			continue
		}
		for _, entry := range []string{"index.js", "index.ts"} {
			if _, err := os.Stat(filepath.Join(plugins, e.Name(), entry)); err == nil {
				names = append(names, name+"/"+entry)
			}
		}
	}
	return names
}

// file reads and adds a file.
func (d *documents) file(to *[]*document.Document, name string, kind document.Kind) error {
	d.folders = append(d.folders, filepath.Dir(name))
	d.loads(name)
	layer, err := document.Read(name, kind)
	var fault document.Fault
	switch {
	case errors.As(err, &fault):
		d.faults = append(d.faults, fault)
		return nil
	case err != nil:
		return fmt.Errorf("read %s: %w", name, err)
	}
	return d.add(to, layer)
}

// add parses a layer.
func (d *documents) add(to *[]*document.Document, layer document.Layer) error {
	doc, faults := document.Partial(layer) // so that what else is wrong is told with it
	d.faults = append(d.faults, faults...)
	if doc != nil {
		*to = append(*to, doc)
	}
	if layer.Kind == document.Builtin {
		return faults.Err() // a mistake of the program
	}
	return nil
}

// compose lays the layers over each other, those of a project between them.
func (d documents) compose(project []*document.Document, o document.Options) (*document.Composition, document.Faults) {
	all := make([]*document.Document, 0, len(d.below)+len(project)+len(d.above))
	all = append(append(append(all, d.below...), project...), d.above...)
	return document.Compose(all, o)
}

// noteFiles adds what is to be watched for the plugin files of rows that no project
// has, and for what includes name.
func (d *documents) noteFiles(c *document.Composition) {
	for _, l := range c.Included {
		if l.Kind != document.Project {
			d.folders = append(d.folders, l.Dir)
			d.loads(l.Name)
		}
	}
	var walk func([]document.Row)
	walk = func(rows []document.Row) {
		for _, r := range rows {
			walk(r.Children)
			if !isFile(r.Name) || r.Layer.Kind == document.Project {
				continue
			}
			path := fileOf(r)
			d.loads(path)
			if info, err := os.Stat(path); err == nil && info.IsDir() {
				d.deep = append(d.deep, path)
			}
			d.folders = append(d.folders, filepath.Dir(path))
		}
	}
	walk(c.Rows)
}

// loads notes a document or a plugin file that no project has.
func (d *documents) loads(name string) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return // what has no path cannot be read either
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil { // it is not there yet
		real = abs
		if dir, err := filepath.EvalSymlinks(filepath.Dir(abs)); err == nil {
			real = filepath.Join(dir, filepath.Base(abs))
		}
	}
	d.loaded = append(d.loaded, real)
}

// Loads says whether a file, absolute with links resolved, is one of the documents and
// plugin files that are not a project's, as they were read last. They are not asked
// about when they change, so whoever lets a model change one has to ask before.
func (c *Composition) Loads(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.loaded, func(l string) bool {
		return name == l || strings.HasPrefix(name, l+string(filepath.Separator))
	})
}

// count takes documents over.
func (c *Composition) count(d documents) {
	c.docs = d
	c.mu.Lock()
	defer c.mu.Unlock()
	c.loaded = d.loaded
}

// fileOf is the path of a row's plugin file.
func fileOf(r document.Row) string {
	return filepath.Join(r.Layer.Dir, filepath.FromSlash(r.Name))
}
