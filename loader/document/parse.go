package document

import "github.com/dsh-go/dsh/lossless"

// Document is a layer that was parsed.
type Document struct {
	Layer *Layer
}

// Read returns the file as a layer named path, in the file's folder. It looks at
// the size before it reads. The error wraps what the file system says (ErrNotExist
// among it), or is a Fault where the file is too long.
func Read(path string, kind Kind) (Layer, error) { return Layer{}, nil }

// Parse reads a layer. The document is nil if there are faults.
func Parse(l Layer) (*Document, Faults) { return nil, nil }

// ParseSet reads the argument of --set, "id.path=value": the id of a row, the fields
// and members down to the value (quoted where they have dots, numbers for items of
// lists), and a YAML scalar or flow collection. Unlike a row it replaces what it
// names alone: "tool-cordis.config.vmTimeoutMs=100" leaves the rest of the config.
// null deletes what it names.
func ParseSet(arg string) (*Document, Faults) { return nil, nil }

// Flag is ParseSet of a flag that is no --set: name is shown as the layer's.
func Flag(name, id string, path []string, value lossless.Value) *Document { return nil }
