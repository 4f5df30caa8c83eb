package files

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/limits"
)

// File is the code of a plugin file as it was read.
type File struct {
	// Path is how messages and reports name it: ./plugins/greet.js. Whoever shows
	// paths relative to something else than [Read] was given sets it.
	Path string
	// Dir is the folder in which the files are, as it was found.
	Dir string
	// Entry is the file of Files that is the module: greet.js, index.ts.
	Entry string
	// Files are the texts by their paths relative to Dir, with slashes.
	Files map[string]string
	// Hash is the SHA-256 of all of it but Path and Dir, in hexadecimal.
	Hash string
}

// kinds are the files that a plugin consists of; entries may be its module.
var (
	kinds   = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".json"}
	entries = []string{"index.js", "index.ts"}
)

// Module says whether a file name is one that a plugin of a single file can have.
func Module(name string) bool {
	ext := path.Ext(name)
	return (ext == ".js" || ext == ".ts") && name != ext && !declares(name)
}

// declares says whether a file has types only.
func declares(name string) bool {
	return strings.HasSuffix(name, ".d.ts") || strings.HasSuffix(name, ".d.mts") || strings.HasSuffix(name, ".d.cts")
}

// Read reads one file (.js or .ts), or a folder with an index.js or index.ts: of that
// all scripts and JSON, but what begins with a dot, node_modules and files that only
// declare types. Links within the folder are followed, those that lead out of it are
// refused, and so are more than limits.Source bytes together.
func Read(name string) (File, error) {
	f := File{Path: filepath.ToSlash(name), Files: map[string]string{}}
	info, err := os.Stat(name)
	if err != nil {
		return f, fmt.Errorf("read plugin file %s: %w", shown(name), reason(err))
	}
	if info.IsDir() {
		f.Dir = name
		err = f.folder()
	} else {
		f.Dir, f.Entry = filepath.Dir(name), filepath.Base(name)
		err = f.single(name)
	}
	if err != nil {
		return File{}, fmt.Errorf("read plugin file %s: %w", shown(name), err)
	}
	f.Hash = f.sum()
	return f, nil
}

// From makes a File of texts that were read before, by their paths below the plugin's
// folder; of a plugin of a single file that is one. It is checked as by Read.
func From(name string, texts map[string]string) (File, error) {
	f := File{Path: filepath.ToSlash(name), Dir: filepath.Dir(name), Files: map[string]string{}}
	if len(texts) != 1 || !Module(path.Base(f.Path)) {
		f.Dir = name
	}
	for _, rel := range slices.Sorted(maps.Keys(texts)) {
		if f.Dir == name && !wanted(rel) {
			continue
		}
		if err := f.add(rel, []byte(texts[rel])); err != nil {
			return File{}, fmt.Errorf("read plugin file %s: %w", shown(name), err)
		}
		f.Entry = rel
	}
	if f.Dir == name {
		if err := f.index(); err != nil {
			return File{}, fmt.Errorf("read plugin file %s: %w", shown(name), err)
		}
	}
	f.Hash = f.sum()
	return f, nil
}

func (f *File) single(name string) error {
	if !Module(f.Entry) {
		return errors.New("a plugin is a .js or .ts file, or a folder with an index.js or index.ts")
	}
	opened, _, err := regular.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return reason(err)
	}
	defer opened.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(opened, limits.Source+1))
	if err != nil {
		return reason(err)
	}
	return f.add(f.Entry, text)
}

// folder reads a plugin of several files. The names are resolved within the folder by
// the system, so that no link leads out of it.
func (f *File) folder() error {
	root, err := os.OpenRoot(f.Dir)
	if err != nil {
		return reason(err)
	}
	defer root.Close() //nolint:errcheck // it was only read
	seen := 0
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if seen++; seen > 10*limits.PluginFileParts {
			return fmt.Errorf("the folder has more than %d names; keep what is not the plugin's elsewhere", 10*limits.PluginFileParts)
		}
		switch {
		case err != nil:
			return reason(err)
		case name == ".":
			return nil
		case skipped(d.Name()) && d.IsDir():
			return fs.SkipDir
		case d.IsDir() && strings.Count(name, "/")+1 > limits.PluginFileDepth:
			return fmt.Errorf("the folder %s lies deeper than %d folders", shown(name), limits.PluginFileDepth)
		case d.IsDir() || !wanted(name):
			return nil
		}
		text, err := readIn(root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", shown(name), err)
		}
		return f.add(name, text)
	})
	if err != nil {
		return err
	}
	return f.index()
}

// index finds the module of a folder.
func (f *File) index() error {
	f.Entry = ""
	for _, name := range entries {
		if _, ok := f.Files[name]; ok && f.Entry != "" {
			return errors.New("the folder has an index.js and an index.ts: leave one")
		} else if ok {
			f.Entry = name
		}
	}
	if f.Entry == "" {
		return errors.New("the folder has no index.js or index.ts, which would be the plugin")
	}
	return nil
}

// wanted says whether a file in a folder is a part of the plugin.
func wanted(name string) bool {
	return slices.Contains(kinds, path.Ext(name)) && !declares(name) && !slices.ContainsFunc(strings.Split(name, "/"), skipped)
}

func skipped(name string) bool { return strings.HasPrefix(name, ".") || name == "node_modules" }

func readIn(root *os.Root, name string) ([]byte, error) {
	opened, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		if info, other := root.Lstat(name); other == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, errors.New("it is a link that leads nowhere, or out of the plugin's folder; put the file itself there")
		}
		return nil, reason(err)
	}
	defer opened.Close() //nolint:errcheck // it was only read
	info, err := opened.Stat()
	switch {
	case err != nil:
		return nil, reason(err)
	case !info.Mode().IsRegular():
		return nil, regular.ErrIrregular
	}
	return io.ReadAll(io.LimitReader(opened, limits.Source+1))
}

// add takes a text as a part.
func (f *File) add(name string, text []byte) error {
	total := len(text)
	for _, other := range f.Files {
		total += len(other)
	}
	switch {
	case total > limits.Source:
		return fmt.Errorf("a plugin has at most %d bytes, all its files together: split it into several that provide and inject services", limits.Source)
	case len(f.Files) >= limits.PluginFileParts:
		return fmt.Errorf("a plugin has at most %d files", limits.PluginFileParts)
	case len(name) > limits.PluginFileName:
		return fmt.Errorf("the name %s has more than %d bytes", shown(name), limits.PluginFileName)
	case !utf8.Valid(text):
		return fmt.Errorf("%s is no UTF-8 text", shown(name))
	}
	f.Files[name] = string(text)
	return nil
}

// sum identifies the code: every part, with its length, so that none runs into
// another.
func (f *File) sum() string {
	h := sha256.New()
	fmt.Fprintf(h, "%q\n", f.Entry)
	for _, name := range slices.Sorted(maps.Keys(f.Files)) {
		fmt.Fprintf(h, "%q %d\n%s\n", name, len(f.Files[name]), f.Files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reason is what the system says, without the path that the message has already.
func reason(err error) error {
	if e := new(fs.PathError); errors.As(err, &e) {
		return e.Err
	}
	return err
}

func shown(path string) string { return plain.Line(path, limits.SourceLine) }
