package schema

import (
	"slices"
	"strings"

	"github.com/dsh-go/dsh/lossless"
)

const supported = "type, oneOf, properties, required, additionalProperties, items, enum, const, description, title, default, examples"

var keywords = strings.Split(supported, ", ")

// constraints are the keywords that need a type of their own beside them.
var constraints = []string{"properties", "additionalProperties", "items", "enum", "const"}

// instead says what to do instead of a keyword that is not supported.
func instead(keyword string) string {
	switch keyword {
	case "anyOf":
		return "write oneOf, with branches that exclude each other"
	case "$ref", "$defs", "definitions":
		return "write the schema where it is used"
	case "nullable":
		return "write oneOf: [{…}, {type: 'null'}]"
	case "optional":
		return "write required: false, or leave required out"
	case "values", "options":
		return "write enum"
	case "$schema", "$id", "id":
		return "leave it out"
	}
	return "check it in execute, and say it in the description"
}

// types are the legal values of type, and what else they are called elsewhere.
var types = []string{"string", "number", "integer", "boolean", "null", "object", "array", "json"}

const typeList = "'string' | 'number' | 'integer' | 'boolean' | 'null' | 'object' | 'array' | 'json'"

// node compiles one node; its children go to the batch.
func (c *compiler) node(t task) {
	if t.raw.Kind() != lossless.Object {
		c.notAnObject(t)
		return
	}
	for key := range t.raw.Members() {
		if !slices.Contains(keywords, key) {
			c.fault(t.at.key(key), " is not a supported keyword (supported: %s); %s", supported, instead(key))
		}
	}
	c.annotations(t)
	before := c.faults.count()
	if c.resolveType(t) {
		c.object(t)
		c.array(t)
		c.scalar(t)
	} else if c.faults.count() > before {
		return // without a type the rest cannot be judged
	}
	c.required(t)
}

func (c *compiler) notAnObject(t task) {
	what := "a schema object"
	if c.parameters && t.property {
		what = "a ParameterSchemaSpec property object"
	}
	hint := ""
	if t.at != nil && t.at.up == nil && t.property && slices.Contains(keywords, t.at.step.Key) {
		hint = "; to say it of the root, write {type: 'object', properties, required}"
	}
	c.fault(t.at, " must be %s, such as {type: 'string'} (got %s)%s", what, show(t.raw), hint)
}

func (c *compiler) annotations(t task) {
	text := func(key string, into *annotation) {
		v, ok := t.raw.Get(key)
		if ok && v.Kind() != lossless.String {
			c.fault(t.at, ".%s must be a string (got %s)", key, show(v))
			return
		}
		*into = annotation{ok, v}
	}
	text("title", &t.node.title)
	text("description", &t.node.desc)
	t.node.def = c.data(t, "default")
	t.node.examples = c.data(t, "examples")
}

// data returns a keyword whose value is any lossless JSON.
func (c *compiler) data(t task, key string) annotation {
	v, ok := t.raw.Get(key)
	if ok {
		if err := lossless.CheckNumbers("", v); err != nil {
			c.fault(t.at, ".%s must be lossless JSON data: %s", key, err)
		}
	}
	return annotation{ok, v}
}

// resolveType decides between type, oneOf, and any JSON, and reports whether the
// other keywords can be judged.
func (c *compiler) resolveType(t task) bool {
	typ, typed := t.raw.Get("type")
	branches, union := t.raw.Get("oneOf")
	switch {
	case typed && union:
		c.fault(t.at, " cannot declare both type and oneOf: put the type into the branches")
		return false
	case union:
		c.union(t, branches)
		return false
	case typed && typ.Kind() == lossless.Array:
		return c.typeList(t, typ)
	case typed:
		if !slices.Contains(types, typ.Str()) {
			c.fault(t.at, " must declare a valid type: %s (got %s)", typeList, show(typ))
			return false
		}
		if t.node.typ = typ.Str(); t.node.typ == "json" {
			t.node.typ = ""
		}
		return true
	}
	return c.untyped(t)
}

// untyped takes the type of enum and const from their values. Of the other
// constraints JSON Schema says that they hold only where the type happens to fit,
// which is not what authors mean.
func (c *compiler) untyped(t task) bool {
	var values []lossless.Value
	enum, hasEnum := t.raw.Get("enum")
	for _, v := range enum.Items() {
		values = append(values, v)
	}
	if v, ok := t.raw.Get("const"); ok {
		values = append(values, v)
	}
	for _, key := range []string{"properties", "additionalProperties", "items"} {
		if _, ok := t.raw.Get(key); ok {
			need := "object"
			if key == "items" {
				need = "array"
			}
			c.fault(t.at, ".%s requires type or oneOf: add type: '%s'", key, need)
			return false
		}
	}
	if len(values) == 0 {
		if hasEnum {
			c.fault(t.at, ".enum must be a non-empty array of scalar values (got %s)", show(enum))
			return false
		}
		return true
	}
	typ := values[0].Kind().String()
	for _, v := range values {
		if v.Kind().String() != typ || v.Kind() == lossless.Object || v.Kind() == lossless.Array {
			c.fault(t.at, " requires type or oneOf: enum and const have one scalar type; for several write oneOf with a branch for each")
			return false
		}
	}
	t.node.typ = typ
	return true
}

// typeList reads a list of types: of one, that type; of several beside nothing
// but annotations, oneOf.
func (c *compiler) typeList(t task, list lossless.Value) bool {
	var names []string
	for _, item := range list.Items() {
		if !slices.Contains(types, item.Str()) || slices.Contains(names, item.Str()) {
			c.fault(t.at, ".type is a list, which must hold different types: %s (got %s)", typeList, show(list))
			return false
		}
		names = append(names, item.Str())
	}
	overlap := slices.Contains(names, "json") || slices.Contains(names, "integer") && slices.Contains(names, "number")
	beside := slices.ContainsFunc(constraints, func(key string) bool { _, ok := t.raw.Get(key); return ok })
	switch {
	case len(names) == 1:
		if t.node.typ = names[0]; t.node.typ == "json" {
			t.node.typ = ""
		}
		return true
	case len(names) == 0:
		c.fault(t.at, ".type is an empty list: name a type, or leave type out for any JSON")
	case overlap:
		c.fault(t.at, ".type is a list whose types overlap (%s): name the wider one alone", strings.Join(names, ", "))
	case beside:
		c.fault(t.at, ".type is a list beside other constraints: write oneOf: [{type: '%s', …}, {type: '%s', …}]", names[0], names[1])
	default:
		for i, name := range names {
			t.node.oneOf = append(t.node.oneOf, c.child(scalar(name, ""), t.at.key("type").at(i), false))
		}
	}
	return false
}

func (c *compiler) union(t task, branches lossless.Value) {
	for _, key := range constraints {
		if _, ok := t.raw.Get(key); ok {
			c.fault(t.at, ".%s cannot stand beside oneOf: put it into the branches", key)
		}
	}
	if branches.Kind() != lossless.Array || branches.Len() < 2 {
		c.fault(t.at, ".oneOf must contain at least two schemas, in an array (got %s)", show(branches))
		return
	}
	at := t.at.key("oneOf")
	for i, branch := range branches.Items() {
		t.node.oneOf = append(t.node.oneOf, c.child(branch, at.at(i), false))
	}
}

// misplaced reports a keyword that the node has and its type does not take.
func (c *compiler) misplaced(t task, key, takes string) bool {
	if _, ok := t.raw.Get(key); !ok {
		return false
	}
	is := "any JSON"
	if t.node.typ != "" {
		is = "'" + t.node.typ + "'"
	}
	c.fault(t.at, ".%s is for %s only, and this schema's type is %s", key, takes, is)
	return true
}

func (c *compiler) object(t task) {
	if t.node.typ != "object" {
		c.misplaced(t, "properties", "type 'object'")
		c.misplaced(t, "additionalProperties", "type 'object'")
		return
	}
	if open, ok := t.raw.Get("additionalProperties"); ok {
		if open.Kind() != lossless.Bool {
			c.fault(t.at, ".additionalProperties must be a boolean, true or false: a schema for what is not declared is not supported (got %s)", show(open))
		}
		t.node.openness = annotation{true, open}
	}
	properties, ok := t.raw.Get("properties")
	t.node.listed = ok || t.at == nil
	if ok && properties.Kind() != lossless.Object {
		c.fault(t.at, ".properties must be an object of schemas (got %s)", show(properties))
		return
	}
	listed := c.requiredList(t, properties)
	at := t.at.key("properties")
	for key, raw := range properties.Members() {
		c.property(t.node, key, raw, at, listed)
	}
	t.node.buildIndex()
}

// requiredList returns the names of an object's own required list.
func (c *compiler) requiredList(t task, properties lossless.Value) map[string]bool {
	list, ok := t.raw.Get("required")
	if !ok || list.Kind() != lossless.Array {
		return nil
	}
	names := make(map[string]bool, list.Len())
	for _, item := range list.Items() {
		if item.Kind() != lossless.String {
			c.fault(t.at, ".required must be an array of declared property names (got %s in it)", show(item))
			continue
		}
		if _, declared := properties.Get(item.Str()); !declared {
			c.fault(t.at, ".required names undeclared property %s: declare it in properties", show(item))
		}
		names[item.Str()] = true
	}
	return names
}

// required judges the forms of required that requiredList did not read.
func (c *compiler) required(t task) {
	v, ok := t.raw.Get("required")
	object := t.node.typ == "object"
	switch {
	case !ok, v.Kind() == lossless.Array && object, v.Kind() == lossless.Bool && t.property:
	case v.Kind() == lossless.Bool:
		c.fault(t.at, ".required belongs to a property of an object, and this schema is none: leave it out")
	case object && t.property:
		c.fault(t.at, ".required must be an array of declared property names, or true or false for the property itself (got %s)", show(v))
	case object:
		c.fault(t.at, ".required must be an array of declared property names (got %s)", show(v))
	default:
		c.fault(t.at, ".required must be true or false when present: a list of names belongs to a schema with type: 'object' (got %s)", show(v))
	}
}

func (c *compiler) array(t task) {
	if t.node.typ != "array" {
		c.misplaced(t, "items", "type 'array'")
		return
	}
	if items, ok := t.raw.Get("items"); ok {
		t.node.items = c.child(items, t.at.key("items"), false)
	}
}

func (c *compiler) scalar(t task) {
	typ := t.node.typ
	if typ == "" || typ == "object" || typ == "array" {
		c.misplaced(t, "enum", "scalar types")
		c.misplaced(t, "const", "scalar types")
		return
	}
	enum, ok := t.raw.Get("enum")
	if ok && (enum.Kind() != lossless.Array || enum.Len() == 0) {
		c.fault(t.at, ".enum must be a non-empty array of %s values (got %s)", typ, show(enum))
		ok = false
	}
	for i, v := range enum.Items() {
		if !fits(typ, v) {
			c.fault(t.at.key("enum").at(i), " must be %s value, like all of .enum (got %s)", articles[typ], show(v))
			ok = false
		}
		t.node.enum = append(t.node.enum, v)
	}
	c.data(t, "enum")
	t.node.constant = c.data(t, "const")
	if v := t.node.constant; v.set && !fits(typ, v.value) {
		c.fault(t.at, ".const must be %s value (got %s)", articles[typ], show(v.value))
	} else if v.set && ok && !contains(t.node.enum, v.value) {
		c.fault(t.at, ".const is not one of .enum, so that nothing matches (const is %s)", show(v.value))
	}
}

// fits reports whether a value is of a scalar type.
func fits(typ string, v lossless.Value) bool {
	if typ == "integer" {
		return v.IsInteger()
	}
	return v.Kind().String() == typ
}

func contains(list []lossless.Value, v lossless.Value) bool {
	return slices.ContainsFunc(list, func(other lossless.Value) bool { return lossless.Equal(other, v) })
}

// finish builds the canonical form of a node whose children have theirs.
func (n *node) finish() {
	var members []lossless.Member
	add := func(key string, v lossless.Value) { members = append(members, lossless.M(key, v)) }
	state := func(key string, a annotation) {
		if a.set {
			add(key, a.value)
		}
	}
	below := func(child *node) {
		n.depth = max(n.depth, child.depth)
		n.fills = n.fills || child.fills
	}
	if n.typ != "" {
		add("type", lossless.Str(n.typ))
	}
	state("title", n.title)
	state("description", n.desc)
	if n.enum != nil {
		add("enum", lossless.Arr(n.enum...))
	}
	state("const", n.constant)
	if n.oneOf != nil {
		branches := make([]lossless.Value, len(n.oneOf))
		for i, branch := range n.oneOf {
			branches[i] = branch.value
			n.depth = max(n.depth, branch.depth)
		}
		add("oneOf", lossless.Arr(branches...))
	}
	if n.typ == "object" {
		var required []lossless.Value
		properties := make([]lossless.Member, len(n.properties))
		for i, p := range n.properties {
			properties[i] = lossless.M(p.name, p.node.value)
			below(p.node)
			n.fills = n.fills || p.node.def.set
			if p.required {
				required = append(required, lossless.Str(p.name))
			}
		}
		if n.listed {
			add("properties", lossless.Obj(properties...))
		}
		if required != nil {
			add("required", lossless.Arr(required...))
		}
		state("additionalProperties", n.openness)
	}
	if n.items != nil {
		add("items", n.items.value)
		below(n.items)
	}
	state("default", n.def)
	state("examples", n.examples)
	n.depth++
	n.value = lossless.Obj(members...)
	if n.def.set {
		n.size = len(n.def.value.Encode())
	}
}
