package schema_test

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
)

var scalarTypes = []string{"string", "number", "integer", "boolean", "null"}

var names = rapid.SampledFrom([]string{"a", "b", "type", "properties", "__proto__", ""})

// drawScalar draws from few values, so that enum and const match now and then.
func drawScalar(t *rapid.T, typ string) lossless.Value {
	text := map[string][]string{
		"string": {`"a"`, `"b"`, `""`}, "number": {"1", "1.0", "1.5", "-2e3"}, "integer": {"1", "2.0", "1e2"},
		"boolean": {"true", "false"}, "null": {"null"},
	}[typ]
	return parseRapid(t, rapid.SampledFrom(text).Draw(t, "scalar"))
}

func parseRapid(t *rapid.T, text string) lossless.Value {
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func drawValue(t *rapid.T, depth int) lossless.Value {
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	switch {
	case depth == 0 || kind < 5:
		return drawScalar(t, scalarTypes[kind%5])
	case kind == 5:
		items := make([]lossless.Value, rapid.IntRange(0, 3).Draw(t, "len"))
		for i := range items {
			items[i] = drawValue(t, depth-1)
		}
		return lossless.Arr(items...)
	}
	var members []lossless.Member
	for range rapid.IntRange(0, 3).Draw(t, "len") {
		members = append(members, lossless.M(names.Draw(t, "name"), drawValue(t, depth-1)))
	}
	return lossless.Obj(members...)
}

// drawNode draws a node in a mixture of both dialects.
func drawNode(t *rapid.T, depth int, property bool) lossless.Value {
	var members []lossless.Member
	add := func(key string, v lossless.Value) { members = append(members, lossless.M(key, v)) }
	kind := rapid.IntRange(0, 8).Draw(t, "node")
	if depth == 0 && kind > 5 {
		kind -= 4
	}
	object := false
	switch kind {
	case 0:
		if rapid.Bool().Draw(t, "json") {
			add("type", lossless.Str("json"))
		}
	case 1, 2, 3:
		typ := rapid.SampledFrom(scalarTypes).Draw(t, "type")
		add("type", lossless.Str(typ))
		if rapid.Bool().Draw(t, "enum") {
			add("enum", lossless.Arr(drawScalar(t, typ), drawScalar(t, typ)))
		} else if rapid.Bool().Draw(t, "const") {
			add("const", drawScalar(t, typ))
		}
	case 4:
		add("enum", lossless.Arr(lossless.Str("a"), lossless.Str("c")))
	case 5:
		add("type", lossless.Arr(lossless.Str("integer"), lossless.Str("null")))
	case 6:
		add("type", lossless.Str("array"))
		add("items", drawNode(t, depth-1, false))
	case 7:
		add("oneOf", lossless.Arr(drawNode(t, depth-1, false), drawNode(t, depth-1, false)))
	default:
		object = true
		add("type", lossless.Str("object"))
		properties := lossless.Obj()
		var required []lossless.Value
		for range rapid.IntRange(0, 3).Draw(t, "len") {
			name := names.Draw(t, "name")
			node := drawNode(t, depth-1, true)
			if _, twice := properties.Get(name); twice {
				continue
			}
			properties = properties.With(name, node)
			if own, said := node.Get("required"); rapid.Bool().Draw(t, "listed") && (!said || own.Bool() || own.Kind() == lossless.Array) {
				required = append(required, lossless.Str(name))
			}
		}
		add("properties", properties)
		add("required", lossless.Arr(required...))
		if rapid.Bool().Draw(t, "openness") {
			add("additionalProperties", lossless.Boolean(rapid.Bool().Draw(t, "open")))
		}
	}
	if property && !object && rapid.Bool().Draw(t, "required") {
		add("required", lossless.Boolean(rapid.Bool().Draw(t, "required")))
	}
	if rapid.Bool().Draw(t, "title") {
		add("title", lossless.Str("t"))
	}
	return lossless.Obj(members...)
}

// TestAgreesWithJSONSchema compares with an independent validator of JSON Schema:
// what is advertised is what is enforced.
func TestAgreesWithJSONSchema(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw := drawNode(t, 3, false)
		s, err := schema.Output(raw)
		if err != nil {
			if !strings.Contains(err.Error(), "nothing matches") && !strings.Contains(err.Error(), "requires type") {
				t.Fatalf("%s: %v", raw, err)
			}
			return
		}
		document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(s.JSON())))
		if err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("mem:///s.json", document); err != nil {
			t.Fatal(err)
		}
		oracle, err := compiler.Compile("mem:///s.json")
		if err != nil {
			t.Fatalf("%s: %v", s.JSON(), err)
		}
		for range 10 {
			v := drawValue(t, 3)
			instance, err := jsonschema.UnmarshalJSON(strings.NewReader(v.String()))
			if err != nil {
				t.Fatal(err)
			}
			found := s.Validate("value", v)
			if err := oracle.Validate(instance); (err == nil) != (len(found) == 0) {
				t.Fatalf("schema %s\nvalue %s\nwe say %q\nthe other says %v", s.JSON(), v, schema.Join(found), err)
			}
			filled, err := s.ApplyDefaults(v)
			if err != nil || !lossless.Equal(filled, v) {
				t.Fatalf("without defaults %s became %s (%v)", v, filled, err)
			}
		}
	})
}

// FuzzCompile: nothing panics, the canonical form is a fixed point, its own
// defaults are valid, and errors are bounded.
func FuzzCompile(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"text":{"type":"string","required":true,"default":"x"}}`, `{"text":1}`},
		{`{"type":"object","properties":{"a":{"oneOf":[{"type":"string"},{"type":"null"}]}},"required":["a"],"additionalProperties":false}`, `{"a":null,"b":[]}`},
		{`{"a":{"type":"array","items":{"type":["integer","null"]},"default":[1,null]}}`, `{"a":[1.5]}`},
		{`{"type":"number","enum":[1,2.0],"const":2}`, `2`},
		{`{"default":{},"examples":{}}`, `[]`},
		{`{"a":{"anyOf":[]},"required":["a"]}`, `{}`},
		{`{"type":"text","properties":[],"items":{},"enum":{}}`, `{}`},
	} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, text, data []byte) {
		raw, err := lossless.Parse(text)
		if err != nil {
			return
		}
		value, err := lossless.Parse(data)
		if err != nil {
			return
		}
		for place, compile := range both {
			s, err := compile(raw)
			if err != nil {
				if len(err.Error()) > 40_000 {
					t.Fatalf("%s: an error of %d bytes", place, len(err.Error()))
				}
				continue
			}
			again, err := compile(s.Value())
			if err != nil || string(again.JSON()) != string(s.JSON()) {
				t.Fatalf("%s: %s is no fixed point: %v", place, s.JSON(), err)
			}
			if parsed, err := lossless.Parse(s.JSON()); err != nil || parsed.String() != string(s.JSON()) {
				t.Fatalf("%s: %s cannot be read: %v", place, s.JSON(), err)
			}
			if len(schema.Join(s.Validate("", value))) > 40_000 {
				t.Fatal("unbounded violations")
			}
			filled, err := s.ApplyDefaults(value)
			if err != nil {
				t.Fatal(err)
			}
			if twice, err := s.ApplyDefaults(filled); err != nil || len(s.Validate("", value)) == 0 && len(s.Validate("", filled)) > 0 {
				t.Fatalf("%s: %s was valid, with defaults %s it is not (%s, %v)", s.JSON(), value, filled, twice, err)
			}
		}
	})
}
