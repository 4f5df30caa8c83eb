package settings

import (
	"cmp"
	"encoding/json"
	"reflect"

	"github.com/dsh-go/dsh/limits"
)

// Schema is the JSON Schema (draft 2020-12) of the config, with descriptions and
// defaults, deterministic.
func (t *Type) Schema() json.RawMessage {
	text, err := json.Marshal(t.node.schema())
	if err != nil {
		panic("settings: write schema: " + err.Error()) // of strings and numbers: it has no error
	}
	return text
}

// schemaNode is a node of JSON Schema in the order in which it is written.
type schemaNode struct {
	Description string          `json:"description,omitempty"`
	Type        string          `json:"type"`
	Enum        []string        `json:"enum,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Minimum     *float64        `json:"minimum,omitempty"`
	Maximum     *float64        `json:"maximum,omitempty"`
	MinLength   *float64        `json:"minLength,omitempty"`
	MaxLength   *float64        `json:"maxLength,omitempty"`
	MinItems    *float64        `json:"minItems,omitempty"`
	MaxItems    *float64        `json:"maxItems,omitempty"`
	Items       *schemaNode     `json:"items,omitempty"`

	Properties map[string]*schemaNode `json:"properties,omitempty"`
	Additional any                    `json:"additionalProperties,omitempty"`
}

func (n *node) schema() *schemaNode {
	s := &schemaNode{Description: n.doc, Enum: n.enum}
	if n.fallback != nil {
		s.Default = n.fallback.Encode()
	}
	switch n.kind {
	case reflect.Bool:
		s.Type = "boolean"
	case reflect.String:
		s.Type, s.MinLength, s.MaxLength = "string", n.min, cmp.Or(n.max, &mostText)
	case reflect.Int:
		s.Type, s.Minimum, s.Maximum = "integer", n.min, n.max
	case reflect.Float64:
		s.Type, s.Minimum, s.Maximum = "number", n.min, n.max
	case reflect.Slice:
		s.Type, s.Items, s.MinItems, s.MaxItems = "array", n.item.schema(), n.min, cmp.Or(n.max, &mostItems)
	case reflect.Map:
		s.Type, s.Additional = "object", n.item.schema()
	case reflect.Struct:
		s.Type, s.Additional = "object", no
		s.Properties = make(map[string]*schemaNode, len(n.fields))
		for name, f := range n.fields {
			s.Properties[name] = f.schema()
		}
	}
	return s
}

// The bounds of what says none of its own.
var mostText, mostItems float64 = limits.SettingsText, limits.SettingsItems

// no is written as false although it is the zero value.
var no = json.RawMessage("false")
