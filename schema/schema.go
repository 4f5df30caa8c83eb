package schema

import (
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// Schema is a compiled schema: what it advertises is what it enforces. It is
// immutable and may be used from any goroutine.
type Schema struct {
	root  *node
	value lossless.Value
	text  string
	depth int
}

// node is one compiled node. Neither typ nor oneOf means any JSON.
type node struct {
	typ        string
	title      annotation
	desc       annotation
	def        annotation
	examples   annotation
	enum       []lossless.Value
	constant   annotation
	properties []property
	index      map[string]int // of properties, when they are many
	listed     bool           // properties is advertised: written, or the root's
	openness   annotation     // additionalProperties as stated
	items      *node
	oneOf      []*node

	depth int            // of nodes, this one included
	fills bool           // a default may be filled in below it
	value lossless.Value // the canonical form; its children share it
	size  int            // bytes of the encoded default
}

// annotation is a keyword's value that may be absent.
type annotation struct {
	set   bool
	value lossless.Value
}

type property struct {
	name     string
	node     *node
	required bool
}

// manyProperties is the number of properties from which a map finds them faster.
const manyProperties = 8

func (n *node) find(name string) *property {
	if n.index != nil {
		if i, ok := n.index[name]; ok {
			return &n.properties[i]
		}
		return nil
	}
	for i := range n.properties {
		if n.properties[i].name == name {
			return &n.properties[i]
		}
	}
	return nil
}

func (n *node) closed() bool { return n.openness.set && !n.openness.value.Bool() }
func (n *node) any() bool    { return n.typ == "" && n.oneOf == nil }

// Must returns the schema, and panics on an error: for schemas that are part of
// the program.
func Must(s *Schema, err error) *Schema {
	if err != nil {
		panic(err)
	}
	return s
}

// JSON returns the canonical JSON Schema text: keywords in a fixed order,
// properties in the author's, required in the order of the properties and absent
// when empty. Compiling it again gives the same text.
func (s *Schema) JSON() lossless.Text { return lossless.Text(s.text) }

// Value returns the canonical form as a value.
func (s *Schema) Value() lossless.Value { return s.value }

// Depth returns how deep the schema's nodes are nested; 1 for a scalar.
func (s *Schema) Depth() int { return s.depth }

// RootType returns the root's type, "" for any JSON and for oneOf.
func (s *Schema) RootType() string { return s.root.typ }

// Violation is one thing that is wrong, at one place.
type Violation struct {
	Path    string // as lossless.Path.Format prints it; "" where none fits
	Message string // the whole sentence, path included
}

// Join puts violations in one line, with "; " between them.
func Join(violations []Violation) string {
	texts := make([]string, len(violations))
	for i, v := range violations {
		texts[i] = v.Message
	}
	return strings.Join(texts, "; ")
}

// Error is what is wrong with a schema: its violations in the order of its text,
// limits.Violations of them at most, then one that says how many more.
type Error struct{ Violations []Violation }

// Error returns the violations joined with "; ".
func (e *Error) Error() string { return Join(e.Violations) }

// violations collects: limits.Violations by name, the rest by number.
type violations struct {
	list []Violation
	more int
}

// full reports whether the next one is only counted, so that its text need not be made.
func (vs *violations) full() bool {
	if len(vs.list) < limits.Violations {
		return false
	}
	vs.more++
	return true
}

func (vs *violations) count() int { return len(vs.list) + vs.more }

func (vs *violations) all() []Violation {
	if vs.more == 0 {
		return vs.list
	}
	return append(vs.list, Violation{Message: "and " + lossless.Int(int64(vs.more)).Literal() + " more"})
}

// show echoes a value, short and safe.
func show(v lossless.Value) string {
	return plain.Preview(string(v.Prefix(8 * limits.Preview)))
}
