package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
)

func parse(t testing.TB, text string) lossless.Value {
	t.Helper()
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", text, err)
	}
	return v
}

// both runs Parameters and Output.
var both = map[string]func(lossless.Value) (*schema.Schema, error){"parameters": schema.Parameters, "output": schema.Output}

func TestDialectsInBothPlaces(t *testing.T) {
	const want = `{"type":"object","properties":{"text":{"type":"string","description":"d"},"n":{"type":"integer","default":1}},"required":["text"]}`
	for name, text := range map[string]string{
		"direct":           `{"text":{"type":"string","description":"d","required":true},"n":{"type":"integer","default":1}}`,
		"direct_false":     `{"text":{"required":true,"description":"d","type":"string"},"n":{"default":1,"required":false,"type":"integer"}}`,
		"wrapper":          `{"type":"object","properties":{"text":{"type":"string","description":"d"},"n":{"type":"integer","default":1}},"required":["text"]}`,
		"wrapper_per_prop": `{"properties":{"text":{"type":"string","description":"d","required":true},"n":{"type":"integer","default":1,"required":false}},"type":"object"}`,
		"wrapper_both":     `{"type":"object","required":["text"],"properties":{"text":{"type":["string"],"description":"d","required":true},"n":{"type":"integer","default":1}}}`,
	} {
		for place, compile := range both {
			t.Run(name+"_"+place, func(t *testing.T) {
				s, err := compile(parse(t, text))
				if err != nil {
					t.Fatal(err)
				}
				if got := string(s.JSON()); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
				if s.RootType() != "object" || s.Depth() != 2 {
					t.Errorf("root %q, depth %d", s.RootType(), s.Depth())
				}
			})
		}
	}
}

func TestCanonical(t *testing.T) {
	// Each as a property p of parameters, and as an output.
	for name, c := range map[string][2]string{
		"scalars":         {`{"oneOf":[{"type":"number"},{"type":"boolean"},{"type":"null"}]}`, `{"oneOf":[{"type":"number"},{"type":"boolean"},{"type":"null"}]}`},
		"keyword_order":   {`{"examples":["a"],"default":"a","const":"a","enum":["a","b"],"description":"d","title":"t","type":"string"}`, `{"type":"string","title":"t","description":"d","enum":["a","b"],"const":"a","default":"a","examples":["a"]}`},
		"json":            {`{"type":"json","description":"d"}`, `{"description":"d"}`},
		"nothing":         {`{"description":"d"}`, `{"description":"d"}`},
		"array":           {`{"type":"array"}`, `{"type":"array"}`},
		"array_items":     {`{"items":{"type":"json"},"type":"array"}`, `{"type":"array","items":{}}`},
		"open_unsaid":     {`{"type":"object"}`, ``},
		"open_said":       {`{"additionalProperties":true,"type":"object","properties":{}}`, `{"type":"object","properties":{},"additionalProperties":true}`},
		"closed":          {`{"type":"object","properties":{"b":{"type":"string"},"a":{"required":true}},"additionalProperties":false,"required":["b"]}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{}},"required":["b","a"],"additionalProperties":false}`},
		"required_order":  {`{"type":"object","properties":{"b":{},"a":{}},"required":["a","b"]}`, `{"type":"object","properties":{"b":{},"a":{}},"required":["b","a"]}`},
		"required_empty":  {`{"type":"object","properties":{"b":{}},"required":[]}`, `{"type":"object","properties":{"b":{}}}`},
		"proto":           {`{"type":"object","properties":{"__proto__":{"type":"string","required":true}}}`, `{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}`},
		"type_list":       {`{"type":["string","null"],"description":"d","default":null}`, `{"description":"d","oneOf":[{"type":"string"},{"type":"null"}],"default":null}`},
		"enum_untyped":    {`{"enum":["a","b"]}`, `{"type":"string","enum":["a","b"]}`},
		"const_untyped":   {`{"const":1}`, `{"type":"number","const":1}`},
		"integer_enum":    {`{"type":"integer","enum":[1,2.0]}`, `{"type":"integer","enum":[1,2.0]}`},
		"annotated_union": {`{"oneOf":[{"const":"a","description":"x"},{"type":"array","items":{"type":"string"},"default":["q"]}],"title":"t","examples":[1]}`, `{"title":"t","oneOf":[{"type":"string","description":"x","const":"a"},{"type":"array","items":{"type":"string"},"default":["q"]}],"examples":[1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			if want := c[1]; want != "" {
				s, err := schema.Output(parse(t, c[0]))
				if err != nil {
					t.Fatal(err)
				}
				if got := string(s.JSON()); got != want {
					t.Errorf("output\ngot  %s\nwant %s", got, want)
				}
				again, err := schema.Output(s.Value())
				if err != nil || string(again.JSON()) != want {
					t.Errorf("again: %s, %v", again.JSON(), err)
				}
			} else {
				c[1] = c[0]
			}
			s, err := schema.Parameters(parse(t, `{"p":`+c[0]+`}`))
			if err != nil {
				t.Fatal(err)
			}
			if got, want := string(s.JSON()), `{"type":"object","properties":{"p":`+c[1]+`}}`; got != want {
				t.Errorf("parameters\ngot  %s\nwant %s", got, want)
			}
		})
	}
}

func TestRoots(t *testing.T) {
	for name, c := range map[string]struct{ place, text, want string }{
		"no_parameters":      {"parameters", `{}`, `{"type":"object","properties":{}}`},
		"bare_object":        {"parameters", `{"type":"object"}`, `{"type":"object","properties":{}}`},
		"closed_root":        {"parameters", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`},
		"root_annotations":   {"parameters", `{"type":"object","title":"t","default":{},"examples":[{}],"description":"d"}`, `{"type":"object","title":"t","description":"d","properties":{},"default":{},"examples":[{}]}`},
		"named_type":         {"parameters", `{"type":{"type":"string"},"oneOf":{},"properties":{"type":"object"}}`, `{"type":"object","properties":{"type":{"type":"string"},"oneOf":{},"properties":{"type":"object"}}}`},
		"named_like_keyword": {"parameters", `{"default":{"type":"string"},"description":{},"required":{"type":"boolean","required":true}}`, `{"type":"object","properties":{"default":{"type":"string"},"description":{},"required":{"type":"boolean"}},"required":["required"]}`},
		"any_output":         {"output", `{}`, `{}`},
		"scalar_output":      {"output", `{"type":"string"}`, `{"type":"string"}`},
		"map_output":         {"output", `{"items":{"type":"array"},"title":{"type":"string"}}`, `{"type":"object","properties":{"items":{"type":"array"},"title":{"type":"string"}}}`},
		"annotated_output":   {"output", `{"default":{"a":1},"examples":{}}`, `{"default":{"a":1},"examples":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := both[c.place](parse(t, c.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(s.JSON()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string][2]string{
		"not_an_object":     {`"string"`, `parameters must be a ParameterSchemaSpec object: a map of property name to schema, or {type: 'object', properties, required} (got "string")`},
		"null":              {`null`, `parameters must be a ParameterSchemaSpec object`},
		"root_type":         {`{"type":"string"}`, `parameters must be a ParameterSchemaSpec object: the root is a map of property name to schema, or has type: 'object' (its type is "string")`},
		"root_union":        {`{"oneOf":[{},{}]}`, `parameters.oneOf cannot stand at the root`},
		"no_type_wrapper":   {`{"properties":{"text":{"type":"string"}},"required":["text"]}`, `parameters.properties stands without a type: write {type: 'object', properties: {…}, required: […]}`},
		"shorthand":         {`{"text":"string"}`, `parameters.text must be a ParameterSchemaSpec property object, such as {type: 'string'} (got "string")`},
		"root_description":  {`{"text":{},"description":"x"}`, `parameters.description must be a ParameterSchemaSpec property object, such as {type: 'string'} (got "x"); to say it of the root, write {type: 'object', properties, required}`},
		"bad_type":          {`{"a":{"type":"text"}}`, `parameters.a must declare a valid type: 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'object' | 'array' | 'json' (got "text")`},
		"type_number":       {`{"a":{"type":5}}`, `parameters.a must declare a valid type`},
		"bad_type_once":     {`{"a":{"type":"dict","required":["x"]}}`, `(got "dict")`},
		"unknown_keyword":   {`{"a":{"type":"string","minLength":1}}`, `parameters.a.minLength is not a supported keyword (supported: type, oneOf, properties, required, additionalProperties, items, enum, const, description, title, default, examples); check it in execute, and say it in the description`},
		"any_of":            {`{"a":{"anyOf":[{},{}]}}`, `parameters.a.anyOf is not a supported keyword (supported: type, oneOf, properties, required, additionalProperties, items, enum, const, description, title, default, examples); write oneOf`},
		"ref":               {`{"a":{"$ref":"#/x"}}`, `parameters.a.$ref is not a supported keyword`},
		"required_text":     {`{"a":{"type":"string","required":"yes"}}`, `parameters.a.required must be true or false when present: a list of names belongs to a schema with type: 'object' (got "yes")`},
		"required_list":     {`{"a":{"type":"string","required":["a"]}}`, `parameters.a.required must be true or false when present`},
		"required_json":     {`{"a":{"required":["a"]}}`, `parameters.a.required must be true or false when present`},
		"required_lowered":  {`{"a":{"type":["object","null"],"required":["x"]}}`, `parameters.a.required must be true or false when present`},
		"required_object":   {`{"a":{"type":"object","required":1}}`, `parameters.a.required must be an array of declared property names, or true or false for the property itself (got 1)`},
		"required_names":    {`{"a":{"type":"object","properties":{"b":{}},"required":["x",3]}}`, `parameters.a.required names undeclared property "x": declare it in properties; parameters.a.required must be an array of declared property names (got 3 in it)`},
		"required_clash":    {`{"type":"object","properties":{"a":{"required":false}},"required":["a"]}`, `parameters.properties.a.required is false, but the list of the object names "a"`},
		"required_root":     {`{"type":"object","required":true}`, `parameters.required belongs to a property of an object`},
		"required_items":    {`{"a":{"type":"array","items":{"type":"string","required":true}}}`, `parameters.a.items.required belongs to a property`},
		"additional":        {`{"a":{"type":"object","additionalProperties":{"type":"string"}}}`, `parameters.a.additionalProperties must be a boolean`},
		"additional_scalar": {`{"a":{"type":"string","additionalProperties":false}}`, `parameters.a.additionalProperties is for type 'object' only, and this schema's type is 'string'`},
		"properties_list":   {`{"a":{"type":"object","properties":[]}}`, `parameters.a.properties must be an object of schemas (got [])`},
		"properties_alone":  {`{"a":{"properties":{"b":{}}}}`, `parameters.a.properties requires type or oneOf: add type: 'object'`},
		"items_alone":       {`{"a":{"items":{}}}`, `parameters.a.items requires type or oneOf: add type: 'array'`},
		"items_scalar":      {`{"a":{"type":"string","items":{}}}`, `parameters.a.items is for type 'array' only`},
		"items_tuple":       {`{"a":{"type":"array","items":[{}]}}`, `parameters.a.items must be a schema object, such as {type: 'string'} (got [{}])`},
		"enum_empty":        {`{"a":{"type":"string","enum":[]}}`, `parameters.a.enum must be a non-empty array of string values (got [])`},
		"enum_empty_any":    {`{"a":{"enum":[]}}`, `parameters.a.enum must be a non-empty array`},
		"enum_mixed":        {`{"a":{"enum":["a",1]}}`, `parameters.a requires type or oneOf: enum and const have one scalar type`},
		"enum_type":         {`{"a":{"type":"integer","enum":[1,1.5]}}`, `parameters.a.enum[1] must be an integer value, like all of .enum (got 1.5)`},
		"enum_object":       {`{"a":{"type":"object","enum":[{}]}}`, `parameters.a.enum is for scalar types only`},
		"enum_json":         {`{"a":{"type":"json","enum":["x"]}}`, `parameters.a.enum is for scalar types only, and this schema's type is any JSON`},
		"const_type":        {`{"a":{"type":"string","const":1}}`, `parameters.a.const must be a string value (got 1)`},
		"const_enum":        {`{"a":{"type":"string","enum":["x"],"const":"y"}}`, `parameters.a.const is not one of .enum`},
		"union_one":         {`{"a":{"oneOf":[{}]}}`, `parameters.a.oneOf must contain at least two schemas`},
		"union_object":      {`{"a":{"oneOf":{}}}`, `parameters.a.oneOf must contain at least two schemas`},
		"union_type":        {`{"a":{"type":"string","oneOf":[{},{}]}}`, `parameters.a cannot declare both type and oneOf`},
		"union_enum":        {`{"a":{"oneOf":[{},{}],"enum":[1]}}`, `parameters.a.enum cannot stand beside oneOf`},
		"union_branch":      {`{"a":{"oneOf":[{},3]}}`, `parameters.a.oneOf[1] must be a schema object`},
		"type_list_enum":    {`{"a":{"type":["string","null"],"enum":["a",null]}}`, `parameters.a.type is a list beside other constraints: write oneOf: [{type: 'string', …}, {type: 'null', …}]`},
		"type_list_overlap": {`{"a":{"type":["integer","number"]}}`, `parameters.a.type is a list whose types overlap`},
		"type_list_empty":   {`{"a":{"type":[]}}`, `parameters.a.type is an empty list`},
		"type_list_bad":     {`{"a":{"type":["string","text"]}}`, `parameters.a.type is a list, which must hold different types`},
		"description":       {`{"a":{"description":5}}`, `parameters.a.description must be a string (got 5)`},
		"default_type":      {`{"a":{"type":"number","default":"x"}}`, `parameters.a.default does not match the schema that it stands in: "default" must be a number (got "x")`},
		"default_nested":    {`{"a":{"type":"array","items":{"type":"string"},"default":["x",2]}}`, `"default[1]" must be a string (got 2)`},
		"default_lossless":  {`{"a":{"default":{"x":[-0]}}}`, `parameters.a.default must be lossless JSON data: x[0]: -0 is negative zero`},
		"enum_lossless":     {`{"a":{"type":"integer","enum":[9007199254740993]}}`, `parameters.a.enum must be lossless JSON data: [0]: 9007199254740993 is an integer beyond 2^53`},
		"several":           {`{"a":{"type":"text"},"b":{"type":"string","pattern":"x"},"c":7}`, `parameters.a must declare a valid type: 'string' | 'number' | 'integer' | 'boolean' | 'null' | 'object' | 'array' | 'json' (got "text"); parameters.b.pattern is not a supported keyword`},
		"deep_path":         {`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"odd key":{"type":1}}}}}}`, `parameters.properties.a.items.properties["odd key"] must declare`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := schema.Parameters(parse(t, c[0]))
			if err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Fatalf("got  %v\nwant %s", err, c[1])
			}
			var e *schema.Error
			if !errors.As(fmt.Errorf("harness.defineTool %q %w", "x", err), &e) || len(e.Violations) == 0 {
				t.Errorf("%T holds no violations", err)
			}
		})
	}
}

func TestBadTypeIsReportedOnce(t *testing.T) {
	_, err := schema.Parameters(parse(t, `{"a":{"type":"dict","required":["x"],"properties":{"x":{"type":1}}}}`))
	if e := (*schema.Error)(nil); !errors.As(err, &e) || len(e.Violations) != 1 || e.Violations[0].Path != "parameters.a" {
		t.Errorf("got %v", err)
	}
}

func TestOutputRefusals(t *testing.T) {
	for name, c := range map[string][2]string{
		"not_an_object": {`"string"`, `output.schema must be a schema object, such as {type: 'string'} (got "string")`},
		"null":          {`null`, `output.schema must be a schema object`},
		"bad_type":      {`{"type":"text"}`, `output.schema must declare a valid type`},
		"map":           {`{"ok":{"type":"bool"}}`, `output.schema.ok must declare a valid type`},
		"no_type":       {`{"properties":{"ok":{"type":"boolean"}}}`, `output.schema.properties stands without a type`},
		"root_required": {`{"type":"string","required":true}`, `output.schema.required belongs to a property`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := schema.Output(parse(t, c[0])); err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Errorf("got  %v\nwant %s", err, c[1])
			}
		})
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&text, `"p%d":{"type":%q},`, i, strings.Repeat("x", 1000))
	}
	_, err := schema.Parameters(parse(t, "{"+text.String()+`"z":0}`))
	var e *schema.Error
	if !errors.As(err, &e) || len(e.Violations) != limits.Violations+1 || !strings.HasSuffix(err.Error(), "; and 981 more") {
		t.Fatalf("got %.300v", err)
	}
	for _, v := range e.Violations {
		if len(v.Message) > 400 {
			t.Errorf("too long: %s", v.Message)
		}
	}
	big := `{"type":"object","properties":{"a":{"oneOf":[` + strings.Repeat("{},", schema.MaxNodes) + `{}]}}}`
	if _, err := schema.Parameters(parse(t, big)); err == nil || !strings.Contains(err.Error(), "has more than 50000 schemas in it") {
		t.Errorf("got %.300v", err)
	}
}

func TestBuild(t *testing.T) {
	s := schema.Must(schema.Parameters(schema.Closed(schema.Object(
		schema.Prop("text", schema.String("what to say"), schema.Required),
		schema.Prop("mode", schema.Enum("", "a", "b"), schema.Default(lossless.Str("a"))),
		schema.Prop("list", schema.Array("", schema.OneOf("", schema.Integer(""), schema.Boolean("")))),
		schema.Prop("n", schema.Number("")),
		schema.Prop("data", schema.Any("what you like")),
	))))
	want := `{"type":"object","properties":{"text":{"type":"string","description":"what to say"},"mode":{"type":"string","enum":["a","b"],"default":"a"},` +
		`"list":{"type":"array","items":{"oneOf":[{"type":"integer"},{"type":"boolean"}]}},"n":{"type":"number"},"data":{"description":"what you like"}},"required":["text"],"additionalProperties":false}`
	if got := string(s.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.Value().String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	defer func() {
		if recover() == nil {
			t.Error("Must does not panic")
		}
	}()
	schema.Must(schema.Output(lossless.Int(1)))
}
