package selfmod_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// echo is the code of a plugin whose tool takes the parameters, gives back the
// arguments, and declares the output.
func echo(name, parameters, output string) string {
	return `return { name: 'echo', apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: '` + name + `', description: 'd', parameters: ` + parameters + `,
  output: { schema: ` + output + `, render: (args, v) => [{ type: 'text', text: JSON.stringify(v) }] }, execute: (args) => args })) } }`
}

// parametersOf is the schema that a mount's answer advertises.
func parametersOf(t *testing.T, r *selfmodtest.Rig, code string) (id, schema string) {
	t.Helper()
	res := r.Call("cordis_mount", map[string]string{"code": code})
	r.Works(res)
	var v struct {
		ID    string
		Tools []struct{ Parameters json.RawMessage }
	}
	if err := json.Unmarshal(res.Value, &v); err != nil || len(v.Tools) != 1 {
		t.Fatalf("%v in %s", err, res.Value)
	}
	return v.ID, string(v.Tools[0].Parameters)
}

// TestSchemaDialects: what means the same is advertised the same, in parameters
// and in output, in both dialects, in all forms of required.
func TestSchemaDialects(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, hostile)
	const want = `{"type":"object","properties":{"a":{"type":"string"},"o":{"type":"object","properties":{"n":{"type":"integer"},"m":{}},"required":["n"]},"l":{"type":"array","items":{"type":"object","properties":{"x":{"type":"null"}},"required":["x"]}}},"required":["a","o"]}`
	forms := []struct{ name, schema string }{
		{"map_required_true", `{ a: { type: 'string', required: true }, o: { type: 'object', required: true, properties: { n: { type: 'integer', required: true }, m: { type: 'json', required: false } } }, l: { type: 'array', items: { type: 'object', properties: { x: { type: 'null', required: true } } } } }`},
		{"json_schema_lists", `{ type: 'object', properties: { a: { type: 'string' }, o: { type: 'object', properties: { n: { type: 'integer' }, m: {} }, required: ['n'] }, l: { type: 'array', items: { type: 'object', properties: { x: { type: 'null' } }, required: ['x'] } } }, required: ['a', 'o'] }`},
		{"json_schema_required_true", `{ type: 'object', properties: { a: { type: 'string', required: true }, o: { type: 'object', properties: { n: { type: 'integer', required: true }, m: { type: 'json' } }, required: true }, l: { type: 'array', items: { type: 'object', properties: { x: { type: 'null', required: true } } } } } }`},
		{"mixed", `{ type: 'object', properties: { a: { type: 'string', required: true }, o: { type: 'object', properties: { n: { type: 'integer' }, m: {} }, required: ['n'] }, l: { type: 'array', items: { type: 'object', properties: { x: { type: ['null'] } }, required: ['x'] } } }, required: ['o', 'a'] }`},
	}
	good := `{"a":"x","o":{"n":1,"m":[null]},"l":[{"x":null}],"more":true}`
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			r := root.For(t)
			id, got := parametersOf(t, r, echo("dialect", f.schema, f.schema))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			r.Works(r.Call("dialect", good))
			r.Fails(r.Call("dialect", `{"a":1,"o":{"m":0},"l":[{}]}`), `"a" must be a string`, `missing required property "o.n"`, `missing required property "l[0].x"`)
			r.Unmount(id)
			// The same schema as output alone is held against the value.
			id = r.Mount(echo("out", `{}`, f.schema))
			r.Works(r.Call("out", good))
			r.Fails(r.Call("out", `{"a":1,"o":{"m":0},"l":[{}]}`), `"value.a" must be a string`, `missing required property "value.o.n"`, `missing required property "value.l[0].x"`)
			r.Unmount(id)
		})
	}
}

// TestSchemaEnforced: what is advertised is what is enforced, all violations at
// once, and defaults are filled in.
func TestSchemaEnforced(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, hostile)
	root.Mount(echo("strict", `{ type: 'object', additionalProperties: true, properties: {
    kind: { enum: ['a', 'b'], required: true }, fixed: { const: 7 }, count: { type: 'integer', default: 3 }, ratio: { type: 'number' }, flag: { type: 'boolean', default: false },
    list: { type: 'array', items: { type: 'string' }, default: ['x'] },
    closed: { type: 'object', additionalProperties: false, properties: { in: { type: 'string', default: 'filled' } } },
    either: { oneOf: [{ type: 'object', properties: { t: { const: 'p' }, p: { type: 'number', required: true } } , required: ['t'] }, { type: 'object', properties: { t: { const: 'q' } }, required: ['t'] }, { type: 'string' }] } } }`, `{}`))
	tests := []struct{ name, args, value, has string }{
		{"defaults", `{"kind":"a"}`, `{"kind":"a","count":3,"flag":false,"list":["x"]}`, ""},
		{"defaults_inside", `{"kind":"a","closed":{},"count":0,"flag":true,"list":[]}`, `{"kind":"a","closed":{"in":"filled"},"count":0,"flag":true,"list":[]}`, ""},
		{"extra_is_kept", `{"kind":"a","count":1,"flag":true,"list":[],"z":{"y":[1]}}`, `{"kind":"a","count":1,"flag":true,"list":[],"z":{"y":[1]}}`, ""},
		{"integer_as_float", `{"kind":"b","count":2.0,"flag":true,"list":[]}`, `{"kind":"b","count":2,"flag":true,"list":[]}`, ""},
		{"one_of", `{"kind":"a","either":{"t":"p","p":1},"count":1,"flag":true,"list":[]}`, `{"kind":"a","either":{"t":"p","p":1},"count":1,"flag":true,"list":[]}`, ""},
		{"missing", `{}`, "", `missing required property "kind"`},
		{"enum", `{"kind":"c"}`, "", `"kind" must be one of ["a","b"] (got "c")`},
		{"const", `{"kind":"a","fixed":8}`, "", `"fixed" must be 7 (got 8)`},
		{"integer", `{"kind":"a","count":1.5}`, "", `"count" must be an integer (got 1.5)`},
		{"text_for_number", `{"kind":"a","ratio":"1"}`, "", `"ratio" must be a number (got "1")`},
		{"null_for_boolean", `{"kind":"a","flag":null}`, "", `"flag" must be a boolean (got null)`},
		{"item", `{"kind":"a","list":["x",1]}`, "", `"list[1]" must be a string (got 1)`},
		{"closed", `{"kind":"a","closed":{"out":1}}`, "", `unknown property "closed.out"; allowed: in`},
		{"no_branch", `{"kind":"a","either":{"t":"r"}}`, "", `"either" must match exactly one oneOf branch (matched 0)`},
		{"array_for_object", `[]`, "", "must be an object"},
		{"text_for_object", `"x"`, "", "must be an object"},
		{"infinite", `{"kind":"a","ratio":1e999}`, "", "1e999"},
		{"not_json", `{"kind":`, "", "invalid arguments"},
		{"all_at_once", `{"kind":"c","fixed":8,"count":"n","ratio":[],"flag":0,"list":[1,2],"closed":{"a":1,"b":2}}`, "", `unknown property "closed.b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			res := r.Call("strict", tt.args)
			if tt.has == "" {
				r.Works(res)
				if diff := cmp.Diff(tt.value, string(res.Value)); diff != "" {
					t.Error(diff)
				}
				return
			}
			text := r.Fails(res, "Error: invalid arguments: ", tt.has)
			if n := strings.Count(text, "; "); tt.name == "all_at_once" && n < 8 {
				t.Errorf("only %d violations: %s", n+1, text)
			}
		})
	}
	// More violations than can be read are counted.
	r := root.For(t)
	text := r.Fails(r.Call("strict", `{"kind":"a","list":[`+strings.Repeat("1,", 9999)+`1]}`), fmt.Sprintf("and %d more", 10000-limits.Violations))
	if len(text) > limits.ErrorText+100 {
		t.Errorf("%d characters", len(text))
	}
}

// malformed are parameter specs that mean nothing, and what is said of each.
var malformed = []struct{ name, spec, has string }{
	{"undefined", `undefined`, "parameters must be a ParameterSchemaSpec object"},
	{"null", `null`, "parameters must be a ParameterSchemaSpec object"},
	{"text", `'text'`, "parameters must be a ParameterSchemaSpec object"},
	{"array", `[]`, "parameters must be a ParameterSchemaSpec object"},
	{"function", `() => ({})`, "parameters must be a ParameterSchemaSpec object"},
	{"root_of_other_type", `{ type: 'array', items: {} }`, "type: 'object'"},
	{"root_one_of", `{ oneOf: [{}, {}] }`, "put oneOf into a property"},
	{"properties_without_type", `{ properties: { a: { type: 'string' } } }`, "stands without a type"},
	{"property_null", `{ a: null }`, "parameters.a must be a ParameterSchemaSpec property object"},
	{"property_text", `{ a: 'string' }`, "parameters.a must be a ParameterSchemaSpec property object"},
	{"property_array", `{ a: [] }`, "parameters.a must be a ParameterSchemaSpec property object"},
	{"property_number", `{ a: 1 }`, "parameters.a must be a ParameterSchemaSpec property object"},
	{"unknown_type", `{ a: { type: 'text' } }`, "parameters.a must declare a valid type: 'string' | 'number'"},
	{"type_number", `{ a: { type: 1 } }`, `(got 1)`},
	{"type_constructor", `{ a: { type: String } }`, "parameters.a.type"},
	{"type_list_empty", `{ a: { type: [] } }`, "parameters.a.type is an empty list"},
	{"type_list_unknown", `{ a: { type: ['string', 'any'] } }`, "parameters.a.type is a list"},
	{"type_list_overlaps", `{ a: { type: ['integer', 'number'] } }`, "overlap"},
	{"type_list_and_more", `{ a: { type: ['string', 'null'], enum: ['x'] } }`, "write oneOf"},
	{"type_and_one_of", `{ a: { type: 'string', oneOf: [{}, {}] } }`, "cannot declare both type and oneOf"},
	{"one_of_short", `{ a: { oneOf: [{ type: 'string' }] } }`, ".oneOf must contain at least two schemas"},
	{"one_of_object", `{ a: { oneOf: {} } }`, ".oneOf must contain at least two schemas"},
	{"one_of_branch", `{ a: { oneOf: [{ type: 'string' }, 'null'] } }`, "parameters.a.oneOf[1] must be a schema object"},
	{"one_of_and_enum", `{ a: { oneOf: [{}, {}], enum: [1] } }`, "put it into the branches"},
	{"enum_empty", `{ a: { type: 'string', enum: [] } }`, ".enum must be a non-empty array"},
	{"enum_text", `{ a: { type: 'string', enum: 'x' } }`, ".enum must be a non-empty array"},
	{"enum_of_other_type", `{ a: { type: 'string', enum: ['x', 1] } }`, "parameters.a.enum[1]"},
	{"enum_of_objects", `{ a: { type: 'object', enum: [{}] } }`, ".enum is for scalar types only"},
	{"enum_mixed", `{ a: { enum: ['x', 1] } }`, "enum and const have one scalar type"},
	{"const_of_other_type", `{ a: { type: 'string', const: 1 } }`, ".const must be a string value"},
	{"const_outside_enum", `{ a: { type: 'string', enum: ['x'], const: 'y' } }`, ".const is not one of .enum"},
	{"required_text", `{ a: { type: 'string', required: 'yes' } }`, "parameters.a.required must be true or false"},
	{"required_list_on_scalar", `{ a: { type: 'string', required: ['a'] } }`, "parameters.a.required must be true or false"},
	{"required_undeclared", `{ type: 'object', properties: { a: {} }, required: ['b'] }`, `.required names undeclared property "b"`},
	{"required_of_numbers", `{ type: 'object', properties: { a: {} }, required: [1] }`, ".required must be an array of declared property names"},
	{"required_object", `{ type: 'object', properties: { a: {} }, required: {} }`, ".required must be an array of declared property names"},
	{"required_contradiction", `{ type: 'object', properties: { a: { type: 'string', required: false } }, required: ['a'] }`, "say one of the two"},
	{"required_in_items", `{ a: { type: 'array', items: { type: 'string', required: true } } }`, "belongs to a property of an object"},
	{"additional_schema", `{ a: { type: 'object', additionalProperties: {} } }`, ".additionalProperties must be a boolean"},
	{"additional_on_scalar", `{ a: { type: 'string', additionalProperties: true } }`, ".additionalProperties is for type 'object' only"},
	{"properties_list", `{ a: { type: 'object', properties: [] } }`, ".properties must be an object of schemas"},
	{"items_list", `{ a: { type: 'array', items: [{}] } }`, "parameters.a.items must be a schema object"},
	{"items_on_object", `{ a: { type: 'object', items: {} } }`, ".items is for type 'array' only"},
	{"unsupported_keyword", `{ a: { type: 'string', minLength: 1 } }`, "parameters.a.minLength is not a supported keyword"},
	{"any_of", `{ a: { anyOf: [{}, {}] } }`, "write oneOf"},
	{"ref", `{ a: { $ref: '#/x' } }`, "write the schema where it is used"},
	{"default_of_other_type", `{ a: { type: 'string', default: 1 } }`, ".default does not match the schema"},
	{"default_undefined", `{ a: { type: 'json', default: undefined } }`, "must be lossless JSON data"},
	{"default_nan", `{ a: { type: 'number', default: NaN } }`, "parameters.a.default must be lossless JSON data"},
	{"default_date", `{ a: { type: 'json', default: new Date() } }`, "use date.toISOString()"},
	{"examples_function", `{ a: { type: 'json', examples: [() => {}] } }`, "parameters.a.examples[0] must be lossless JSON data"},
	{"big_const", `{ a: { type: 'integer', const: 1n } }`, "pass it as a string"},
	{"description_number", `{ a: { type: 'string', description: 1 } }`, ".description must be a string"},
	{"symbol_key", `{ [Symbol('s')]: { type: 'string' } }`, "must contain only own enumerable string keys"},
	{"accessor", `{ get a() { return { type: 'string' } } }`, "accessor"},
	{"hidden_key", `Object.defineProperty({}, 'a', { value: { type: 'string' } })`, "must contain only own enumerable string keys"},
	{"instance", `new (class Spec { a = { type: 'string' } })()`, "an instance of Spec"},
	{"map", `new Map([['a', { type: 'string' }]])`, "a Map"},
	{"sparse", `{ a: { type: 'string', enum: ['x', , 'y'] } }`, "hole in a sparse array"},
	{"circular", `(() => { const a = { type: 'object', properties: {} }; a.properties.a = a; return { a } })()`, "is circular"},
	{"circular_list", `(() => { const a = { oneOf: [{}] }; a.oneOf[1] = a; return { a } })()`, "is circular"},
	{"hostile_getter", `({ a: { get type() { throw new Error('hostile') } } })`, "parameters.a.type"},
	{"hostile_proxy", `new Proxy({}, { ownKeys() { throw new Error('hostile trap') } })`, "hostile trap"},
	{"lying_proxy", `new Proxy({ a: { type: 'string' } }, { getOwnPropertyDescriptor: () => undefined, ownKeys: () => ['a'] })`, ""},
}

// TestMalformedSpecs: each is refused when it is defined, with the place and the
// fix, in parameters and in output, and nothing is left.
func TestMalformedSpecs(t *testing.T) { // not parallel: it needs the processor
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 30 * time.Second, CallTimeout: 30 * time.Second})
	for _, tt := range malformed {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			text := r.MountFails(echo("bad", tt.spec, `{}`), tt.has, "Nothing is mounted")
			noneOfOurs(t, text)
			if !strings.Contains(text, "hostile trap") && tt.name != "lying_proxy" && !strings.HasPrefix(text, `Error: harness.defineTool "bad" `) {
				t.Errorf("the refusal does not name the tool: %s", text)
			}
			if n := len(text); n > limits.ErrorText+300 {
				t.Errorf("%d characters", n)
			}
			r.Fails(r.Call("bad", nil), "unknown tool")
		})
	}
	// The same goes for output.schema, and both are reported together.
	root.MountFails(echo("bad", `{ a: { type: 'text' } }`, `{ type: 'object', properties: { b: { type: 'texts' } } }`), "parameters.a must declare a valid type", "output.schema.properties.b must declare a valid type")
}

// TestSchemaDepth: deep schemas and values work as far as is promised; beyond,
// the limit is named and nothing overflows.
func TestSchemaDepth(t *testing.T) { // not parallel: it needs the processor
	root := selfmodtest.New(t, selfmod.Config{VMTimeout: 10 * time.Second, CallTimeout: 20 * time.Second})
	nest := func(depth int, open, inner string) string {
		return fmt.Sprintf(`(() => { let s = %s; for (let i = 0; i < %d; i++) s = %s; return { a: s } })()`, inner, depth, open)
	}
	for _, tt := range []struct{ name, open, inner string }{
		{"arrays", `{ type: 'array', items: s }`, `{ type: 'string' }`},
		{"objects", `{ type: 'object', properties: { o: s } }`, `{ type: 'string', default: 'x' }`},
		{"unions", `{ oneOf: [{ type: 'null' }, s] }`, `{ type: 'string' }`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			levels := 4900 // of JSON text
			if tt.name != "arrays" {
				levels /= 2 // each takes two
			}
			id := r.Mount(echo("deep", nest(levels, tt.open, tt.inner), `{}`))
			r.Works(r.Call("deep", `{}`))
			r.Fails(r.Call("deep", `{"a":7}`), `"a"`)
			wellFormed(t, r.Inspect("", ""))
			r.Unmount(id)
			noneOfOurs(t, r.MountFails(echo("deep", nest(100_000, tt.open, tt.inner), `{}`), fmt.Sprint(limits.Depth)))
			noneOfOurs(t, r.MountFails(echo("deep", `{}`, nest(100_000, tt.open, tt.inner)), fmt.Sprint(limits.Depth)))
		})
	}
}
