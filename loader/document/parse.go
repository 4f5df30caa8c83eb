package document

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-go/dsh/internal/regular"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
)

// Document is a layer that was parsed.
type Document struct {
	Layer *Layer

	file *yaml.File
	rows []*entry
	ids  map[string]*entry // explicit ones, at any depth
	set  *assignment       // of --set: instead of rows
}

// Read returns the file as a layer named path, in the file's folder. It looks at
// the size before it reads. The error wraps what the file system says (ErrNotExist
// among it), or is a Fault where the file is too long.
func Read(path string, kind Kind) (Layer, error) {
	l := Layer{Name: path, Kind: kind, Dir: filepath.Dir(path)}
	f, info, err := regular.Open(path, os.O_RDONLY, 0)
	if err != nil {
		return l, fmt.Errorf("read document: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if info.Size() > limits.DocumentBytes {
		return l, tooLong(path, info.Size())
	}
	text, err := io.ReadAll(io.LimitReader(f, limits.DocumentBytes+1))
	if err != nil {
		return l, fmt.Errorf("read document: %w", err)
	}
	if len(text) > limits.DocumentBytes { // it grew
		return l, tooLong(path, int64(len(text)))
	}
	l.Text = text
	return l, nil
}

func tooLong(name string, size int64) Fault {
	return Fault{File: name, Line: 1, Column: 1, Message: fmt.Sprintf(
		"the document has %d bytes; at most %d are read. Move rows to files of their own, with rows {name: include, config: {path: ./more.yml}}", size, limits.DocumentBytes)}
}

// Parse reads a layer. The document is nil if there are faults. The text is kept and
// must not be changed afterwards.
func Parse(l Layer) (*Document, Faults) {
	d, faults := Partial(l)
	if len(faults) > 0 {
		return nil, faults
	}
	return d, nil
}

// Partial is Parse for who would rather have a part than nothing: where there are
// faults the document has what can be read. Fields with faults are left out of it; a
// row that is new and has faults is in it, and will have them as Row.Faults, so that its
// guards hold. The document is nil where nothing can be read.
func Partial(l Layer) (*Document, Faults) {
	d, faults := partial(l)
	if d == nil && bytes.Contains(l.Text, []byte(fieldNames[fieldGuards])) {
		for i := range faults {
			faults[i].Guards = true
		}
	}
	return d, faults
}

func partial(l Layer) (*Document, Faults) {
	if len(l.Text) > limits.DocumentBytes {
		return nil, Faults{tooLong(l.Name, int64(len(l.Text)))}
	}
	file, fault := yaml.Parse(l.Text)
	file.Owner = &l
	if fault != nil {
		return nil, Faults{faultAt(file, fault.Offset, fault.Message)}
	}
	d := &Document{Layer: &l, file: file, ids: map[string]*entry{}}
	if file.Root == nil {
		return nil, Faults{faultAt(file, 0, "the document is empty; a document without rows is written as []")}
	}
	if file.Root.Kind != yaml.List {
		what := file.Root.Kind.String()
		hint := "; begin each row with a dash: \"- id: …\""
		if file.Root.Kind == yaml.Map {
			hint += ", and indent its other fields by two"
		}
		return nil, Faults{faultOf(file.Root, "the document is a list of rows, not %s%s", what, hint)}
	}
	r := &reader{doc: d}
	d.rows = r.entries(file.Root)
	return d, r.faults.sorted().bounded()
}

// nameID is the id that a row without one would like to have.
func nameID(name string) string {
	base := strings.TrimSuffix(name, "/")
	if i := strings.LastIndexByte(base, '/'); i >= 0 {
		base = base[i+1:]
	}
	base = strings.TrimSuffix(strings.TrimSuffix(base, ".js"), ".ts")
	id := strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_') {
			return r
		}
		return '-'
	}, base), "-")
	if id == "" {
		id = "row"
	}
	return id[:min(len(id), limits.DocumentID-6)] // there is room for a number behind it
}

// freeID returns the id with the lowest number behind it that is not taken. next is
// where to go on counting.
func freeID(want string, next map[string]int, taken func(string) bool) string {
	id, n := want, max(1, next[want])
	if n > 1 {
		id = fmt.Sprintf("%s-%d", want, n)
	}
	for taken(id) {
		n++
		id = fmt.Sprintf("%s-%d", want, n)
	}
	next[want] = n
	return id
}
