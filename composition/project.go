package composition

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/files"
	"github.com/dsh-go/dsh/trust"
)

// The names of a project's files, below its root.
const (
	folderName   = ".dsh"
	documentName = "cordis.yml"
	pluginsName  = "plugins"
	documentPath = folderName + "/" + documentName
)

// snapshot is what of a project counts: the bytes of its trusted files.
type snapshot struct {
	root  string            // with links resolved
	files map[string][]byte // by path below root, with slashes
	// notice says what was left out, and what to do; "" where nothing was.
	notice string
}

func (s *snapshot) dir() string { return filepath.Join(s.root, folderName) }

// find gives the root of the project of a folder. Where there is none it is the
// folder itself, so that a .dsh that appears there is followed; "" where that could
// only be dsh's own folder.
func find(cwd, home string) (root string, found bool, err error) {
	if root, ok := trust.Find(cwd, home); ok {
		return root, true, nil
	}
	real, err := filepath.EvalSymlinks(cwd)
	if err != nil {
		return "", false, fmt.Errorf("find project: %w", err)
	}
	if own, err := filepath.EvalSymlinks(home); home != "" && err == nil && own == filepath.Join(real, folderName) {
		return "", false, nil
	}
	return real, false, nil
}

// warden decides which files of projects count.
type warden struct {
	store   *trust.Store // nil: there is no place to keep it, and nothing is trusted
	all     bool         // everything is, for this run
	confirm func(ctx context.Context, s trust.State) (bool, error)
}

// read reads a project. Of a file that is not trusted as it is, the bytes of before
// go on to count, if there are any. ask says whether the person may be asked.
func (w warden) read(ctx context.Context, root string, before *snapshot, ask bool) (*snapshot, error) {
	read, unread := trust.Read(root) // a file that cannot be read keeps no other from counting
	now := &snapshot{root: root, files: make(map[string][]byte, len(read))}
	if unread != nil {
		now.notice = unread.Error()
	}
	state, err := w.check(root, read)
	if err != nil {
		now.notice = err.Error()
	}
	if ask && w.confirm != nil && !w.all && w.store != nil && !state.Complete() {
		if state, err = w.ask(ctx, state, read); err != nil {
			return nil, err
		}
	}
	for _, f := range read {
		switch old, had := before.file(f.Path); {
		case w.all || state.Allows(f.Path):
			now.files[f.Path] = f.Content
		case had:
			now.files[f.Path] = old
		}
	}
	if unread != nil && before != nil { // what could not be read has not gone
		for name, text := range before.files {
			if _, ok := now.files[name]; !ok && !slices.ContainsFunc(read, func(f trust.File) bool { return f.Path == name }) {
				now.files[name] = text
			}
		}
	}
	if !w.all && now.notice == "" {
		now.notice = state.NoticeWhere(func(path string) bool {
			_, had := before.file(path)
			return had
		})
	}
	return now, nil
}

// ask asks the person, and trusts the files where they say yes.
func (w warden) ask(ctx context.Context, s trust.State, read []trust.File) (trust.State, error) {
	yes, err := w.confirm(ctx, s)
	if err != nil {
		return s, fmt.Errorf("ask about project %s: %w", plain.Visible(s.Root), err)
	}
	if !yes {
		return s, nil
	}
	if err := w.store.Trust(ctx, s.Root, read); err != nil {
		return s, fmt.Errorf("trust project %s: %w", plain.Visible(s.Root), err)
	}
	return w.store.Check(s.Root, read)
}

func (s *snapshot) file(name string) ([]byte, bool) {
	if s == nil {
		return nil, false
	}
	text, ok := s.files[name]
	return text, ok
}

func (w warden) check(root string, read []trust.File) (trust.State, error) {
	if w.store != nil {
		return w.store.Check(root, read)
	}
	state := trust.State{Root: root}
	for _, f := range read {
		state.New = append(state.New, trust.Change{Path: f.Path, Hash: trust.Hash(f.Content), Size: len(f.Content)})
	}
	return state, nil
}

// documents are the project's layers: its plugin files that no row of its
// cordis.yml names, and its cordis.yml. The dropped ones come first, so that
// cordis.yml may override them.
func (s *snapshot) documents() ([]*document.Document, document.Faults) {
	if s == nil {
		return nil, nil
	}
	var docs []*document.Document
	var faults document.Faults
	named := map[string]bool{}
	text, has := s.files[documentPath]
	if has {
		doc, wrong := document.Partial(document.Layer{
			Name: filepath.Join(s.root, documentPath), Kind: document.Project, Text: text, Dir: s.dir(),
		})
		faults = append(faults, wrong...)
		if doc != nil {
			docs = append(docs, doc)
			named = namedBy(doc)
		}
	}
	var names []string
	for name := range s.files {
		names = append(names, strings.TrimPrefix(name, folderName+"/"))
	}
	dropped, wrong := droppedLayer(names, named, document.Layer{
		Name: filepath.Join(s.dir(), pluginsName), Kind: document.Project, Dir: s.dir(),
	})
	faults = append(faults, wrong...)
	if dropped != nil {
		docs = append([]*document.Document{dropped}, docs...)
	}
	return docs, faults
}

// namedBy are the plugin files that a document names, as paths from its folder.
func namedBy(doc *document.Document) map[string]bool {
	named := map[string]bool{}
	c, _ := document.Compose([]*document.Document{doc}, document.Options{})
	var walk func(rows []document.Row)
	walk = func(rows []document.Row) {
		for _, r := range rows {
			if isFile(r.Name) {
				named[path.Clean(r.Name)] = true
			}
			walk(r.Children)
		}
	}
	walk(c.Rows)
	return named
}

// isFile says whether a row's name is that of a plugin file.
func isFile(name string) bool {
	return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../")
}

// droppedLayer has a row for each plugin file right in plugins that is not named:
// names are the files that there are, from the layer's folder, with slashes.
func droppedLayer(names []string, named map[string]bool, layer document.Layer) (*document.Document, document.Faults) {
	var found []string
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, pluginsName+"/")
		if !ok {
			continue
		}
		first, below, nested := strings.Cut(rest, "/")
		switch ext := path.Ext(first); {
		case nested && below != "index.js" && below != "index.ts":
			continue
		case !nested && (ext != ".js" && ext != ".ts" || strings.HasSuffix(first, ".d.ts")):
			continue
		}
		if plugin := pluginsName + "/" + first; !named[plugin] {
			found = append(found, "./"+plugin)
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil, nil
	}
	var text strings.Builder
	for _, name := range found {
		text.WriteString("- name: " + quoted(name) + "\n")
	}
	layer.Text = []byte(text.String())
	return document.Parse(layer)
}

// quoted is a text as JSON, which YAML reads too.
func quoted(text string) string {
	v, err := lossless.From(text)
	if err != nil {
		return `""` // a name that is no text names nothing
	}
	return v.String()
}

// errNotTrusted says that a plugin file does not count.
var errNotTrusted = errors.New("it is not there, or not trusted")

// plugin gives a plugin file of the project, of the bytes that count. The path is
// absolute; shown is how it is named to people.
func (s *snapshot) plugin(abs, shown string) (files.File, error) {
	rel, err := filepath.Rel(s.root, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return files.File{}, fmt.Errorf("open plugin file %s: it is outside of the project", shown)
	}
	rel = filepath.ToSlash(rel)
	parts := map[string]string{}
	if text, ok := s.files[rel]; ok {
		parts[path.Base(rel)] = string(text)
	} else {
		for name, text := range s.files {
			if below, ok := strings.CutPrefix(name, rel+"/"); ok {
				parts[below] = string(text)
			}
		}
	}
	if len(parts) == 0 {
		return files.File{}, fmt.Errorf("open plugin file %s: %w", shown, errNotTrusted)
	}
	f, err := files.From(abs, parts)
	f.Path = shown
	return f, err
}
