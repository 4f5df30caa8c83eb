package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// ErrOutside says that a link in a project's .dsh folder leads out of it.
var ErrOutside = errors.New("it is a link that leads out of the project's .dsh folder")

// The names by which something is loaded.
const (
	folderName = ".dsh"
	agentName  = "agent.cordis.yml"
)

// kinds are the files that are loaded.
var kinds = []string{".yml", ".yaml", ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".json"}

// loadable says whether Read would read a file of a project.
func loadable(rel string) bool {
	if rel == agentName {
		return true
	}
	rest, ok := strings.CutPrefix(rel, folderName+"/")
	return ok && !slices.ContainsFunc(strings.Split(rest, "/"), skipped) && slices.Contains(kinds, path.Ext(rest))
}

// skipped says whether a name in .dsh is left out, with all below it.
func skipped(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

// Find gives the project of a folder: the nearest folder at or above it with a .dsh
// that is not home, dsh's own folder. Links are resolved.
func Find(dir, home string) (root string, ok bool) {
	dir, err := canonical(dir)
	if err != nil {
		return "", false
	}
	own, _ := os.Stat(home)
	for {
		info, err := os.Stat(filepath.Join(dir, folderName))
		if err == nil && info.IsDir() && (own == nil || !os.SameFile(info, own)) {
			return dir, true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", false
		}
		dir = up
	}
}

// Read reads what of a project may be loaded, once, by path: agent.cordis.yml, and
// below .dsh the YAML (.yml, .yaml), code (.js, .mjs, .cjs, .ts, .mts, .cts) and
// .json files, without names that begin with a dot and without node_modules. A project
// that has none is no error. Links inside .dsh may lead to other files in it. One that
// leads out ([ErrOutside]) or to a folder, a .dsh that is a link itself, what is no
// regular file, and more than limits.TrustNames names, limits.TrustFiles files,
// limits.TrustFile bytes of one and limits.TrustBytes of all are errors that name the
// file; the files that could be read come with them.
func Read(root string) ([]File, error) {
	base, err := os.OpenRoot(root)
	if err != nil {
		return nil, fmt.Errorf("read project files: %w", err)
	}
	defer base.Close() //nolint:errcheck // a folder that was only read
	r := &reader{}
	if info, err := base.Lstat(agentName); err == nil {
		_ = r.file(base, agentName, agentName, info) // there is room for the first
	}
	r.folder(base)
	slices.SortFunc(r.files, func(a, b File) int { return compareText(a.Path, b.Path) })
	return r.files, errors.Join(r.faults...)
}

// reader reads the files of one project.
type reader struct {
	files  []File
	faults []error
	names  int
	bytes  int
}

// errFull ends the walk.
var errFull = errors.New("too much")

func (r *reader) fault(rel string, err error) {
	if p := new(fs.PathError); errors.As(err, &p) {
		err = p.Err
	}
	r.faults = append(r.faults, fmt.Errorf("read project file %s: %w", shown(rel), err))
}

// folder reads .dsh.
func (r *reader) folder(base *os.Root) {
	info, err := base.Lstat(folderName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		err = errors.New("it is a link; the folder itself has to be there")
	case err == nil && !info.IsDir():
		err = errors.New("it is no folder")
	}
	if err != nil {
		r.fault(folderName, err)
		return
	}
	dsh, err := base.OpenRoot(folderName)
	if err != nil {
		r.fault(folderName, err)
		return
	}
	defer dsh.Close() //nolint:errcheck // a folder that was only read
	if now, err := dsh.Stat("."); err != nil || !os.SameFile(now, info) {
		r.fault(folderName, errors.New("it is being replaced at this moment"))
		return
	}
	r.walk(dsh, ".")
}

// walk reads a folder of .dsh, and those below it.
func (r *reader) walk(dsh *os.Root, dir string) {
	err := fs.WalkDir(dsh.FS(), dir, func(name string, d fs.DirEntry, err error) error {
		rel := path.Join(folderName, name)
		if r.names++; r.names > limits.TrustNames {
			r.fault(rel, fmt.Errorf("there are more than %d names in the folder .dsh; nothing more was looked at", limits.TrustNames))
			return errFull
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went meanwhile
		case err != nil:
			r.fault(rel, err)
			return nil
		case name == ".":
			return nil
		case skipped(d.Name()) && d.IsDir():
			return fs.SkipDir
		case skipped(d.Name()), d.IsDir():
			return nil
		}
		return r.entry(dsh, name, rel, d)
	})
	if err != nil && !errors.Is(err, errFull) {
		r.fault(folderName, err)
	}
}

// entry reads what is no folder, if it is one that is loaded.
func (r *reader) entry(dsh *os.Root, name, rel string, d fs.DirEntry) error {
	info, err := d.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		info, err = dsh.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = errors.New("it is a link that leads nowhere")
		case err != nil:
			err = ErrOutside
		case info.IsDir():
			err = errors.New("it is a link to a folder, which is not followed; put the folder itself there")
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		return nil // it went meanwhile
	}
	if err != nil {
		r.fault(rel, err)
		return nil
	}
	if !loadable(rel) {
		return nil
	}
	return r.file(dsh, name, rel, info)
}

// file reads a file. It never waits for the other end of a pipe.
func (r *reader) file(root *os.Root, name, rel string, info fs.FileInfo) error {
	if len(r.files) >= limits.TrustFiles {
		r.fault(rel, fmt.Errorf("the project has more than %d files that could be loaded; the others were not looked at", limits.TrustFiles))
		return errFull
	}
	content, err := read(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		r.fault(rel, err)
		return nil
	}
	if r.bytes += len(content); r.bytes > limits.TrustBytes {
		r.fault(rel, fmt.Errorf("the project's files have more than %d bytes together; the others were not looked at", limits.TrustBytes))
		return errFull
	}
	r.files = append(r.files, File{rel, content})
	return nil
}

func read(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no regular file")
	}
	content, err := io.ReadAll(io.LimitReader(f, limits.TrustFile+1))
	if err == nil && len(content) > limits.TrustFile {
		err = fmt.Errorf("it has more than %d bytes", limits.TrustFile)
	}
	return content, err
}

// Protected says whether a path, absolute with links resolved, is one by which
// something is loaded: a .dsh folder or anything in it, at any depth, and a file named
// agent.cordis.yml. Upper and lower case are the same, as some file systems have it.
func Protected(name string) bool {
	parts := strings.Split(filepath.ToSlash(name), "/")
	return strings.EqualFold(parts[len(parts)-1], agentName) ||
		slices.ContainsFunc(parts, func(p string) bool { return strings.EqualFold(p, folderName) })
}

// Locate finds the project that a protected path is of: the folder that holds the
// innermost .dsh, or the agent.cordis.yml, and the path below it.
func Locate(name string) (root, rel string, ok bool) {
	parts := strings.Split(filepath.ToSlash(name), "/")
	at := -1
	for i, p := range parts {
		if strings.EqualFold(p, folderName) {
			at = i
		}
	}
	if at < 0 && strings.EqualFold(parts[len(parts)-1], agentName) {
		at = len(parts) - 1
	}
	if at < 1 || at == len(parts)-1 && strings.EqualFold(parts[at], folderName) {
		return "", "", false
	}
	root = strings.Join(parts[:at], "/")
	if root == "" {
		root = "/"
	}
	return filepath.FromSlash(root), strings.Join(parts[at:], "/"), true
}

// Command is how a person trusts a project: dsh trust DIR.
func Command(root string) string { return "dsh trust " + quote(plain.Visible(root)) }

// quote makes one word of a shell of a path.
func quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@:,%", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
