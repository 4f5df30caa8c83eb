package schema

import "github.com/dsh-go/dsh/lossless"

// Property is one entry of Object.
type Property struct {
	name     string
	node     lossless.Value
	required bool
}

// Option changes a Property.
type Option func(*Property)

// Required makes a property required.
func Required(p *Property) { p.required = true }

// Default gives a property the value that is filled in when it is absent.
func Default(v lossless.Value) Option {
	return func(p *Property) { p.node = p.node.With("default", v) }
}

// Prop returns a property for Object.
func Prop(name string, node lossless.Value, options ...Option) Property {
	p := Property{name: name, node: node}
	for _, o := range options {
		o(&p)
	}
	return p
}

// Object returns an object node with the properties, for Parameters or Output.
func Object(properties ...Property) lossless.Value {
	members := make([]lossless.Member, 0, len(properties))
	var required []lossless.Value
	for _, p := range properties {
		members = append(members, lossless.M(p.name, p.node))
		if p.required {
			required = append(required, lossless.Str(p.name))
		}
	}
	node := lossless.Obj(lossless.M("type", lossless.Str("object")), lossless.M("properties", lossless.Obj(members...)))
	if len(required) > 0 {
		node = node.With("required", lossless.Arr(required...))
	}
	return node
}

// Closed returns an object node that refuses properties it does not declare.
func Closed(object lossless.Value) lossless.Value {
	return object.With("additionalProperties", lossless.Boolean(false))
}

// String returns a string node.
func String(description string) lossless.Value { return scalar("string", description) }

// Enum returns a string node that allows the values.
func Enum(description string, values ...string) lossless.Value {
	items := make([]lossless.Value, len(values))
	for i, v := range values {
		items[i] = lossless.Str(v)
	}
	return scalar("string", description).With("enum", lossless.Arr(items...))
}

// Number returns a number node.
func Number(description string) lossless.Value { return scalar("number", description) }

// Integer returns an integer node.
func Integer(description string) lossless.Value { return scalar("integer", description) }

// Boolean returns a boolean node.
func Boolean(description string) lossless.Value { return scalar("boolean", description) }

// Array returns an array node whose items match the node.
func Array(description string, items lossless.Value) lossless.Value {
	return scalar("array", description).With("items", items)
}

// Any returns a node that any JSON matches.
func Any(description string) lossless.Value { return Describe(lossless.Obj(), description) }

// OneOf returns a node of which exactly one branch must match.
func OneOf(description string, branches ...lossless.Value) lossless.Value {
	return Describe(lossless.Obj(lossless.M("oneOf", lossless.Arr(branches...))), description)
}

// Describe returns the node with a description; "" leaves it as it is.
func Describe(node lossless.Value, description string) lossless.Value {
	if description == "" {
		return node
	}
	return node.With("description", lossless.Str(description))
}

func scalar(name, description string) lossless.Value {
	return Describe(lossless.Obj(lossless.M("type", lossless.Str(name))), description)
}
