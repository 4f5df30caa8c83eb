package schema

import (
	"errors"

	"github.com/dsh-go/dsh/lossless"
)

// Schema is a compiled schema: what it advertises is what it enforces. It is
// immutable and may be used from any goroutine.
type Schema struct{}

// Parameters compiles a tool's parameters: a direct map of property name to
// node, or, when the top `type` is the string "object", the wrapper {type:
// 'object', properties, required}. The root is an object, open unless the
// wrapper says additionalProperties: false. The error is an *Error whose paths
// begin with "parameters"; wrap it with the owner before it.
func Parameters(v lossless.Value) (*Schema, error) { return nil, errors.New("not built") }

// Output compiles the schema of a tool's value: a node, or a map of property
// name to node. The error is an *Error whose paths begin with "output.schema".
func Output(v lossless.Value) (*Schema, error) { return nil, errors.New("not built") }

// Must returns the schema, and panics on an error: for schemas that are part of the program.
func Must(s *Schema, err error) *Schema {
	if err != nil {
		panic(err)
	}
	return s
}

// JSON returns the canonical JSON Schema text: keywords in a fixed order,
// properties in the author's.
func (s *Schema) JSON() lossless.Text { return nil }

// Value returns the canonical form as a value.
func (s *Schema) Value() lossless.Value { return lossless.Value{} }

// Depth returns how deep the schema's nodes are nested; 1 for a scalar.
func (s *Schema) Depth() int { return 0 }

// RootType returns the root's type, "" for any JSON and for oneOf.
func (s *Schema) RootType() string { return "" }

// Violation is one thing that is wrong, at one place.
type Violation struct {
	Path    string // printed as lossless.Path.Format does
	Message string // the whole sentence, path included
}

// Join puts violations in one line, with "; " between them.
func Join(violations []Violation) string { return "" }

// Error is what is wrong with a schema: every violation, the first limits.Violations by name.
type Error struct{ Violations []Violation }

// Error returns the violations joined with "; ".
func (e *Error) Error() string { return Join(e.Violations) }

// Validate returns every violation of v, in walk order; none when v is valid. The
// first limits.Violations are named, then one last says "and N more". root is
// "" for arguments and "value" for outputs.
func (s *Schema) Validate(root string, v lossless.Value) []Violation { return nil }

// ApplyDefaults returns v with the declared default in the place of each absent
// property whose object is present. A default is taken as written: nothing is
// filled in inside it, nor inside a oneOf branch. It fails when the result would
// be larger than limits.Arguments.
func (s *Schema) ApplyDefaults(v lossless.Value) (lossless.Value, error) { return v, nil }
