package project

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod/files"
	fsservice "github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/trust"
)

// layer is a folder that plugins are loaded from: a project's .dsh, or the person's.
type layer struct {
	dir     string // links resolved
	root    string // of the project; "" for the person's own
	kind    document.Kind
	text    []byte // of cordis.yml; nil: it is not there
	faults  error  // why its rows cannot be read
	broken  bool   // the faults are of cordis.yml itself
	trusted trust.State
	unread  error // of the project's files
	rows    []found
}

// found is a row, or a file that was dropped into the folder of plugins.
type found struct {
	id       string
	name     string // as a row has it: ./plugins/x.js, or a Go plugin's
	path     string // of the file or folder; "" for a Go plugin
	row      bool   // the layer's rows have it; false: dropped, without a row, or built in
	builtin  bool   // of the built-in compositions, and the layer's rows do not have it
	included string // the file that has the row, where it is not the layer's own
	disabled bool
	broken   string // why it cannot be loaded
	config   any    // of its row
}

// rowsPath is where the layer's rows are.
func (l *layer) rowsPath() string { return filepath.Join(l.dir, rowsName) }

// layers are the project's, where there is one, and the person's own.
func layers(store *trust.Store) ([]*layer, error) {
	root, err := here()
	if err != nil {
		return nil, err
	}
	var list []*layer
	if root != "" {
		l := &layer{dir: filepath.Join(root, dshName), root: root, kind: document.Project}
		read, err := trust.Read(root)
		l.unread = err
		if l.trusted, err = store.Check(root, read); err != nil {
			l.unread = errors.Join(l.unread, err)
		}
		l.read(func(path string) ([]byte, error) {
			at := slices.IndexFunc(read, func(f trust.File) bool { return filepath.Join(root, filepath.FromSlash(f.Path)) == path })
			if at < 0 {
				return nil, fs.ErrNotExist
			}
			return read[at].Content, nil
		})
		list = append(list, l)
	}
	home, err := filepath.Abs(fsservice.Home())
	if err != nil {
		return nil, fmt.Errorf("find the home folder: %w", err)
	}
	own := &layer{dir: fsservice.Canonical(home), kind: document.User}
	own.read(func(path string) ([]byte, error) {
		l, err := document.Read(path, document.User)
		return l.Text, err
	})
	return append(list, own), nil
}

// read reads the rows and looks at the files.
func (l *layer) read(file func(path string) ([]byte, error)) {
	var docs []*document.Document
	text, err := file(l.rowsPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		l.faults = err
	default:
		l.text = append([]byte{}, text...) // nil means that it is not there
		doc, faults := document.Parse(document.Layer{Name: shown(l.rowsPath()), Kind: l.kind, Text: text, Dir: l.dir})
		if l.faults = faults.Err(); doc != nil {
			docs = append(docs, doc)
		}
	}
	l.broken = l.faults != nil
	// A file that no row names is a row by itself, which the others may override; so are
	// the rows of the program.
	o := document.Options{Env: os.LookupEnv, Open: func(from *document.Layer, path string) (document.Layer, error) {
		at := filepath.Join(from.Dir, filepath.FromSlash(path))
		text, err := file(at)
		return document.Layer{Name: shown(at), Kind: l.kind, Text: text, Dir: filepath.Dir(at)}, err
	}}
	named, _ := document.Compose(docs, o)
	if files := l.dropped(named.Rows); len(files.Text) > 0 {
		doc, faults := document.Parse(files)
		if l.faults = errors.Join(l.faults, faults.Err()); doc != nil {
			docs = append([]*document.Document{doc}, docs...)
		}
	}
	for _, builtin := range []document.Layer{standard.MCP(), standard.Run()} {
		if doc, _ := document.Parse(builtin); doc != nil {
			docs = append([]*document.Document{doc}, docs...)
		}
	}
	// What is wrong with rows that change those of other layers is not told here: dsh
	// config check does.
	composed, _ := document.Compose(docs, o)
	l.add(composed.Rows, "")
}

// dropped is a document with a row for each file of the folder of plugins that no row
// names.
func (l *layer) dropped(rows []document.Row) document.Layer {
	dir := filepath.Join(l.dir, pluginsName)
	named := map[string]bool{}
	var walk func(rows []document.Row)
	walk = func(rows []document.Row) {
		for _, r := range rows {
			if strings.HasPrefix(r.Name, ".") {
				named[filepath.Join(r.Layer.Dir, filepath.FromSlash(r.Name))] = true
			}
			walk(r.Children)
		}
	}
	walk(rows)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.faults = errors.Join(l.faults, err)
	}
	var text strings.Builder
	for _, e := range entries {
		if path := filepath.Join(dir, e.Name()); isPlugin(path, e) && !named[path] {
			fmt.Fprintf(&text, "- name: %s\n", lossless.Str("./"+pluginsName+"/"+e.Name()))
		}
	}
	return document.Layer{Name: shown(dir), Kind: l.kind, Text: []byte(text.String()), Dir: l.dir}
}

// add adds rows, and those below them.
func (l *layer) add(rows []document.Row, off string) {
	for _, r := range rows {
		f := found{id: r.ID, name: r.Name, disabled: r.Disabled || off != "", config: rowConfig(r), row: l.mentions(r)}
		f.builtin = r.Layer.Kind == document.Builtin && !f.row
		if from := r.Layer.Name; r.Layer.Kind != document.Builtin && from != shown(l.rowsPath()) && from != shown(filepath.Join(l.dir, pluginsName)) {
			f.included = from
		}
		if strings.HasPrefix(r.Name, ".") {
			f.path = filepath.Join(r.Layer.Dir, filepath.FromSlash(r.Name))
			f.look()
		}
		switch {
		case len(r.Faults) > 0:
			f.broken, f.disabled = plain.Line(r.Faults.Error(), limits.ErrorText), false
		case off != "" && !r.Disabled:
			f.broken = "the group " + off + " is disabled"
		}
		l.rows = append(l.rows, f)
		below := off
		if r.Disabled {
			below = r.ID
		}
		l.add(r.Children, below)
	}
}

// mentions says whether the layer's rows have one of this id.
func (l *layer) mentions(r document.Row) bool {
	if l.broken {
		return false
	}
	_, err := document.SetDisabled(l.text, r.ID, true)
	return l.text != nil && !errors.Is(err, document.ErrNoRow)
}

// look says why a file cannot be loaded.
func (f *found) look() {
	if _, err := files.Read(f.path); err != nil {
		f.broken = plain.Line(err.Error(), limits.ErrorText)
	}
}

// isPlugin says whether something in the folder of plugins is loaded by itself.
func isPlugin(path string, e fs.DirEntry) bool {
	name := e.Name()
	if strings.HasPrefix(name, ".") || name == "node_modules" || strings.HasSuffix(name, ".d.ts") {
		return false
	}
	if !e.IsDir() {
		ext := filepath.Ext(name)
		return ext == ".js" || ext == ".ts"
	}
	for _, index := range []string{"index.js", "index.ts"} {
		if _, err := os.Lstat(filepath.Join(path, index)); err == nil {
			return true
		}
	}
	return false
}

// stem is a file's name without what it ends in.
func stem(name string) string { return strings.TrimSuffix(name, filepath.Ext(name)) }

// state is how things are with what was found, and what to do about it.
func (l *layer) state(f found) (state, note string) {
	switch {
	case f.broken != "" && !f.disabled:
		return "broken", f.broken
	case f.disabled:
		return "disabled", f.broken
	case l.root == "":
		return "enabled", ""
	}
	if f.row {
		if state := l.trust(rel(l.root, l.rowsPath()), false); state != "trusted" {
			return state, "its row is in " + shown(l.rowsPath()) + ": " + trust.Command(l.root)
		}
	}
	if f.path == "" {
		return "trusted", ""
	}
	if state := l.trust(rel(l.root, f.path), true); state != "trusted" {
		return state, trust.Command(l.root)
	}
	return "trusted", ""
}

// trust says how a file, or the worst of a folder, is trusted.
func (l *layer) trust(path string, folder bool) string {
	in := func(p string) bool { return p == path || folder && strings.HasPrefix(p, path+"/") }
	changed := func(c trust.Change) bool { return in(c.Path) }
	switch {
	case slices.ContainsFunc(l.trusted.Changed, changed):
		return "changed"
	case slices.ContainsFunc(l.trusted.New, changed):
		return "new"
	case slices.ContainsFunc(l.trusted.Trusted, in):
		return "trusted"
	}
	return "new" // it was not read
}

// rel is a path below a project, with slashes.
func rel(root, path string) string {
	if r, err := filepath.Rel(root, path); err == nil {
		path = r
	}
	return filepath.ToSlash(path)
}

// matches says whether a person means it by arg: its id, its file, or that one's name.
func (f found) matches(arg string) bool {
	if f.id == arg || f.name == arg {
		return true
	}
	if f.path == "" {
		return false
	}
	base := filepath.Base(f.path)
	if base == arg || stem(base) == arg {
		return true
	}
	abs, err := filepath.Abs(arg)
	return err == nil && fsservice.Canonical(abs) == f.path
}
