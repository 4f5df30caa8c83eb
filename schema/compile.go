package schema

import (
	"errors"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/lossless"
)

// MaxNodes is the most nodes of one schema.
const MaxNodes = 50_000

// Parameters compiles a tool's parameters: a direct map of property name to
// node, or, when the top type is the string "object", the wrapper {type: 'object',
// properties, required}. The root is an object, open unless the wrapper says
// additionalProperties: false. The error is an *Error whose paths begin with
// "parameters"; a caller puts the owner before it:
//
//	fmt.Errorf("harness.defineTool %q %w", name, err)
func Parameters(v lossless.Value) (*Schema, error) {
	c := compiler{root: "parameters", parameters: true}
	switch {
	case v.Kind() != lossless.Object:
		c.fault(nil, " must be a ParameterSchemaSpec object: a map of property name to schema, or {type: 'object', properties, required} (got %s)", show(v))
	case isObjectType(v):
		c.child(v, nil, false)
	case c.directRoot(v):
		c.directMap(v)
	}
	return c.compile()
}

// Output compiles the schema of a tool's value: a node, or a map of property
// name to node. The error is an *Error whose paths begin with "output.schema"; a
// caller puts the owner before it, as with Parameters.
func Output(v lossless.Value) (*Schema, error) {
	c := compiler{root: "output.schema"}
	switch {
	case !isMap(v):
		c.child(v, nil, false)
	case c.directRoot(v):
		c.directMap(v)
	}
	return c.compile()
}

func isObjectType(v lossless.Value) bool {
	t, _ := v.Get("type")
	return t.Str() == "object"
}

// isMap reports whether an output can only be meant as a map of properties.
func isMap(v lossless.Value) bool {
	named := false
	for key, member := range v.Members() {
		if member.Kind() != lossless.Object {
			return false
		}
		named = named || key != "default" && key != "examples"
	}
	return named
}

// place is where a node or a keyword stands, as a chain towards the root.
type place struct {
	up   *place
	step lossless.Step
}

func (p *place) key(k string) *place { return &place{p, lossless.Step{Key: k}} }
func (p *place) at(i int) *place     { return &place{p, lossless.Step{Index: i, IsIndex: true}} }

func (p *place) format(root string) string {
	var path lossless.Path
	for ; p != nil; p = p.up {
		path = append(path, p.step)
	}
	slices.Reverse(path)
	return path.Format(root)
}

// task is a node to compile.
type task struct {
	raw      lossless.Value
	at       *place
	node     *node
	property bool // it is an entry of a property map, so a boolean required is its own
}

// compiler walks the author's text in its order with a stack of its own. nodes are
// in that order too, so that walking them backwards meets children first.
type compiler struct {
	root       string
	parameters bool
	faults     violations
	nodes      []*node
	places     []*place // of nodes
	todo       []task   // the next one last
	batch      []task   // children of the node at work, in order
	overflow   bool
}

// fault records what is wrong at a place; text begins with "." or " ".
func (c *compiler) fault(at *place, format string, args ...any) {
	if c.faults.full() {
		return
	}
	path := at.format(c.root)
	c.faults.list = append(c.faults.list, Violation{Path: path, Message: path + fmt.Sprintf(format, args...)})
}

// child returns the node that raw will be compiled into.
func (c *compiler) child(raw lossless.Value, at *place, property bool) *node {
	n := &node{}
	c.batch = append(c.batch, task{raw, at, n, property})
	return n
}

// compile works until nothing is left to do, then builds the canonical form.
func (c *compiler) compile() (*Schema, error) {
	for c.push(); len(c.todo) > 0 && !c.overflow; c.push() {
		t := c.todo[len(c.todo)-1]
		c.todo = c.todo[:len(c.todo)-1]
		c.nodes = append(c.nodes, t.node)
		c.places = append(c.places, t.at)
		c.node(t)
	}
	if len(c.faults.list) == 0 {
		if s := c.finish(); s != nil {
			return s, nil
		}
	}
	return nil, &Error{Violations: c.faults.all()}
}

// push moves the batch onto the stack, first child on top.
func (c *compiler) push() {
	if !c.overflow && len(c.nodes)+len(c.todo)+len(c.batch) > MaxNodes {
		c.overflow = true
		c.fault(nil, " has more than %d schemas in it: describe the value more simply", MaxNodes)
	}
	slices.Reverse(c.batch)
	c.todo = append(c.todo, c.batch...)
	c.batch = c.batch[:0]
}

// directRoot refuses roots that are JSON Schema in part, where every entry would be
// refused as a property with a reason that does not help.
func (c *compiler) directRoot(v lossless.Value) bool {
	if t, ok := v.Get("type"); ok && t.Kind() != lossless.Object {
		c.fault(nil, " must be a ParameterSchemaSpec object: the root is a map of property name to schema, or has type: 'object' (its type is %s)", show(t))
		return false
	}
	if branches, ok := v.Get("oneOf"); ok && branches.Kind() == lossless.Array {
		c.fault(nil, ".oneOf cannot stand at the root: parameters are an object; put oneOf into a property")
		return false
	}
	if _, typed := v.Get("type"); typed {
		return true
	}
	properties, ok := v.Get("properties")
	if ok && properties.Len() > 0 && isMap(properties) && !looksLikeNode(properties) {
		c.fault(nil, ".properties stands without a type: write {type: 'object', properties: {…}, required: […]}, or the properties alone")
		return false
	}
	return true
}

// looksLikeNode reports whether an object has what only a node has.
func looksLikeNode(v lossless.Value) bool {
	t, _ := v.Get("type")
	o, _ := v.Get("oneOf")
	return t.Kind() == lossless.String || o.Kind() == lossless.Array
}

// directMap compiles a map of property name to node as an open object.
func (c *compiler) directMap(v lossless.Value) {
	n := &node{typ: "object", listed: true}
	c.nodes = append(c.nodes, n)
	c.places = append(c.places, nil)
	for key, raw := range v.Members() {
		c.property(n, key, raw, nil, nil)
	}
	n.buildIndex()
}

// property adds one property to an object; listed is the object's own required list.
func (c *compiler) property(n *node, name string, raw lossless.Value, at *place, listed map[string]bool) {
	own, stated := raw.Get("required")
	required := own.Bool()
	if listed[name] {
		if stated && own.Kind() == lossless.Bool && !required {
			c.fault(at.key(name), ".required is false, but the list of the object names %q: say one of the two", name)
		}
		required = true
	}
	n.properties = append(n.properties, property{name, c.child(raw, at.key(name), true), required})
}

func (n *node) buildIndex() {
	if len(n.properties) < manyProperties {
		return
	}
	n.index = make(map[string]int, len(n.properties))
	for i, p := range n.properties {
		n.index[p.name] = i
	}
}

// finish builds the canonical form, children first, and checks what needs whole
// nodes: that it can be read again, and that defaults match. It returns nil after
// a fault.
func (c *compiler) finish() *Schema {
	for _, n := range slices.Backward(c.nodes) {
		n.finish()
	}
	root := c.nodes[0]
	text := root.value.Encode()
	if _, err := lossless.Parse(text); err != nil {
		reason := "cannot be read again: " + err.Error()
		if errors.Is(err, lossless.ErrDepth) {
			reason = "its canonical form is nested deeper than JSON text may be: nest it less"
		}
		c.fault(nil, " %s", reason)
		return nil
	}
	work := newWork()
	for i, n := range c.nodes {
		if !n.def.set {
			continue
		}
		if found := work.validate(n, "default", n.def.value); len(found) > 0 {
			c.fault(c.places[i], ".default does not match the schema that it stands in: %s", Join(found[:min(len(found), 3)]))
		}
	}
	if len(c.faults.list) > 0 {
		return nil
	}
	return &Schema{root: root, value: root.value, text: string(text), depth: root.depth}
}
