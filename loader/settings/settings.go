// Package settings describes the config of Go plugins by struct types: one source
// for validation, documentation and the schema that editors read.
package settings

import (
	"encoding/json"

	"github.com/dsh-go/dsh/lossless"
)

// Type is the description of a config. It is immutable and may be used from any
// goroutine.
type Type struct{}

// Fault is one thing that is wrong with a config.
type Fault struct {
	// Path is the way from the config to the value; an item of a list is its index.
	Path    []string
	Message string
}

// Check gives the config as a T, with defaults filled in, or everything that is wrong
// with it. null is the empty config.
func (t *Type) Check(config lossless.Value) (value any, faults []Fault) { return nil, nil }

// Schema is the JSON Schema of the config.
func (t *Type) Schema() json.RawMessage { return nil }
