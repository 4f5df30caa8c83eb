package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
)

func output(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Output(parse(t, text))
	if err != nil {
		t.Fatalf("Output(%.80s): %.300v", text, err)
	}
	return s
}

func TestValidate(t *testing.T) {
	const closed = `{"type":"object","properties":{"a":{"type":"string","required":true},"b":{"type":"array","items":{"type":"integer"}}},"additionalProperties":false}`
	const misspelt = `{"type":"object","properties":{"file_path":{"type":"string","required":true},"offset":{"type":"integer"},"limit":{"type":"integer"}},"additionalProperties":false}`
	const tagged = `{"oneOf":[{"type":"object","properties":{"kind":{"const":"x","required":true},"n":{"type":"number","required":true}}},{"type":"object","properties":{"kind":{"const":"y","required":true}}}]}`
	for name, c := range map[string][3]string{
		"string":            {`{"type":"string"}`, `"a"`, ``},
		"string_bad":        {`{"type":"string"}`, `1`, `"value" must be a string (got 1)`},
		"number_bad":        {`{"type":"number"}`, `"1"`, `"value" must be a number (got "1")`},
		"number_infinite":   {`{"type":"number"}`, `1e999`, `"value" must be a finite JSON number (got 1e999)`},
		"integer":           {`{"type":"integer"}`, `2.0`, ``},
		"integer_exponent":  {`{"type":"integer"}`, `1e3`, ``},
		"integer_bad":       {`{"type":"integer"}`, `2.5`, `"value" must be an integer (got 2.5)`},
		"boolean_bad":       {`{"type":"boolean"}`, `null`, `"value" must be a boolean (got null)`},
		"null_bad":          {`{"type":"null"}`, `false`, `"value" must be null (got false)`},
		"array_bad":         {`{"type":"array"}`, `{}`, `"value" must be an array (got {})`},
		"object_bad":        {`{"type":"object"}`, `[1, 2]`, `"value" must be an object (got [1,2])`},
		"any":               {`{}`, `[{"x":null}]`, ``},
		"any_items":         {`{"type":"array"}`, `[1,"a",{}]`, ``},
		"open":              {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"z":1}`, ``},
		"closed_ok":         {closed, `{"a":"x","b":[1]}`, ``},
		"every_violation":   {closed, `{"z":1,"b":[1,"x",2.5]}`, `missing required property "value.a"; unknown property "value.z"; allowed: a, b; "value.b[1]" must be an integer (got "x"); "value.b[2]" must be an integer (got 2.5)`},
		"closed_empty":      {`{"type":"object","additionalProperties":false}`, `{"z":1}`, `unknown property "value.z"; allowed: none`},
		"misspelt":          {misspelt, `{"path":"x","ofset":1}`, `unknown property "value.path"; did you mean "file_path", which is required and missing? allowed: file_path, offset, limit; unknown property "value.ofset"; did you mean "offset"? allowed: file_path, offset, limit`},
		"misspelt_twice":    {misspelt, `{"file_pth":"x","file_pat":1}`, `unknown property "value.file_pth"; did you mean "file_path", which is required and missing? allowed: file_path, offset, limit; unknown property "value.file_pat"; did you mean "file_path", which is required and missing? allowed: file_path, offset, limit`},
		"given_already":     {misspelt, `{"file_path":"x","path":"y"}`, `unknown property "value.path"; allowed: file_path, offset, limit`},
		"missing_and_other": {misspelt, `{"limits":1}`, `missing required property "value.file_path"; unknown property "value.limits"; did you mean "limit"? allowed: file_path, offset, limit`},
		"filled_in":         {`{"type":"object","properties":{"offset":{"type":"integer","default":1}},"additionalProperties":false}`, `{"ofset":7,"offset":1}`, `unknown property "value.ofset"; did you mean "offset"? allowed: offset`},
		"misspelt_branch":   {`{"oneOf":[` + misspelt + `,{"type":"null"}]}`, `{"path":"x"}`, `"value" must match exactly one oneOf branch (matched 0): object | null (got {"path":"x"})`},
		"enum":              {`{"enum":["a","b"]}`, `"b"`, ``},
		"enum_bad":          {`{"enum":["a","b"]}`, `"c"`, `"value" must be one of ["a","b"] (got "c")`},
		"enum_number":       {`{"type":"number","enum":[1,2]}`, `2.0`, ``},
		"const_bad":         {`{"const":true}`, `false`, `"value" must be true (got false)`},
		"union_first":       {`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `null`, ``},
		"union_none":        {`{"oneOf":[{"type":"string"},{"type":"null"}]}`, `5`, `"value" must match exactly one oneOf branch (matched 0): string | null (got 5)`},
		"union_two":         {`{"oneOf":[{"type":"number"},{"type":"integer"}]}`, `5`, `"value" must match exactly one oneOf branch (matched 2): number | integer (got 5)`},
		"union_tagged":      {tagged, `{"kind":"y"}`, ``},
		"union_tagged_none": {tagged, `{"kind":"x"}`, `"value" must match exactly one oneOf branch (matched 0): object {kind: "x"} | object {kind: "y"} (got {"kind":"x"})`},
		"union_in_union":    {`{"oneOf":[{"oneOf":[{"const":1},{"const":2}]},{"oneOf":[{"const":2},{"const":3}]},{"type":"string"}]}`, `3`, ``},
		"union_inner_clash": {`{"oneOf":[{"oneOf":[{"const":1},{"type":"number"}]},{"const":1}]}`, `1`, ``},
		"union_in_array":    {`{"type":"array","items":{"oneOf":[{"const":1},{"const":2}]}}`, `[1,3,2,4]`, `"value[1]" must match exactly one oneOf branch (matched 0): 1 | 2 (got 3); "value[3]" must match exactly one oneOf branch (matched 0): 1 | 2 (got 4)`},
		"after_union":       {`{"type":"object","properties":{"u":{"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]},"s":{"type":"string"}}}`, `{"u":["a"],"s":1}`, `"value.s" must be a string (got 1)`},
		"empty_name":        {`{"type":"object","properties":{"":{"required":true}}}`, `{}`, `missing required property "value[""]"`},
		"proto":             {`{"type":"object","properties":{"__proto__":{"type":"string","required":true}}}`, `{"__proto__":1}`, `"value.__proto__" must be a string (got 1)`},
		"echo_bounded":      {`{"type":"number"}`, `"` + strings.Repeat("é", 5000) + `"`, `"value" must be a number (got "` + strings.Repeat("é", 119) + `…)`},
		"echo_safe":         {`{"type":"number"}`, "\"a\u202e\\u001b\"", `"value" must be a number (got "a\u202e\u001b")`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := schema.Join(output(t, c[0]).Validate("value", parse(t, c[1]))); got != c[2] {
				t.Errorf("got  %s\nwant %s", got, c[2])
			}
		})
	}
}

func TestValidateArguments(t *testing.T) {
	s, err := schema.Parameters(parse(t, `{"cfg":{"type":"object","required":true,"properties":{"items":{"type":"array","items":{"type":"object","properties":{"label":{"type":"string"}},"required":["label"]}}}},"n":{"type":"number"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"cfg":{"items":[{"label":"a"}]},"extra":1}`: ``,
		`{}`: `missing required property "cfg"`,
		`{"cfg":{"items":[{},{"label":2}]},"n":"x"}`: `missing required property "cfg.items[0].label"; "cfg.items[1].label" must be a string (got 2); "n" must be a number (got "x")`,
		`[]`: `"arguments" must be an object (got [])`,
	} {
		if got := schema.Join(s.Validate("", parse(t, text))); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestViolationsAreBounded(t *testing.T) {
	s := output(t, `{"type":"array","items":{"type":"string"}}`)
	big := `"` + strings.Repeat("x", 10_000) + `"`
	found := s.Validate("value", parse(t, "["+strings.Repeat("["+big+"],", 999)+"1]"))
	if len(found) != limits.Violations+1 || found[limits.Violations].Message != "and 980 more" {
		t.Fatalf("%d violations, the last %q", len(found), found[len(found)-1].Message)
	}
	if n := len(schema.Join(found)); n > limits.Violations*200 {
		t.Errorf("%d bytes", n)
	}
}

func TestChecksAreBounded(t *testing.T) {
	branches := strings.Repeat(`{"type":"object","properties":{"a":{"const":"x","required":true}}},`, 2000)
	s := output(t, `{"type":"array","items":{"oneOf":[`+branches+`{}]}}`)
	v := parse(t, "["+strings.Repeat(`{"a":1},`, 100_000)+"0]")
	began := time.Now()
	got := schema.Join(s.Validate("value", v))
	if want := `"value" takes more than 20000000 checks`; !strings.HasPrefix(got, want) {
		t.Errorf("got %.200s after %v", got, time.Since(began))
	}
	digits := strings.Repeat("7", 1_000_000)
	s = output(t, `{"type":"number","enum":[`+strings.Repeat("1,", 1000)+`2]}`)
	if got := schema.Join(s.Validate("value", parse(t, digits+"e-999999"))); !strings.HasPrefix(got, `"value" takes more than`) {
		t.Errorf("got %.200s", got)
	}
}

func TestApplyDefaults(t *testing.T) {
	const nested = `{"type":"object","properties":{"n":{"type":"integer","default":5},"cfg":{"type":"object","properties":{"deep":{"type":"boolean","default":true},"name":{"type":"string"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"x":{"type":"number","default":1.50}}}},"u":{"oneOf":[{"type":"object","properties":{"q":{"type":"string","default":"no"}}},{"type":"null"}]},
		"whole":{"type":"object","properties":{"in":{"type":"string","default":"d"}},"default":{}},"r":{"type":"string","default":"r","required":true}}}`
	for name, c := range map[string][2]string{
		"absent":        {`{}`, `{"n":5,"whole":{},"r":"r"}`},
		"present":       {`{"r":"","n":null,"whole":{"in":1}}`, `{"r":"","n":null,"whole":{"in":1}}`},
		"nested":        {`{"n":1,"r":"x","whole":{},"cfg":{"name":"a"}}`, `{"n":1,"r":"x","whole":{"in":"d"},"cfg":{"name":"a","deep":true}}`},
		"in_items":      {`{"r":"x","n":1,"list":[{},{"x":2},{"y":3}],"whole":{"in":"w"}}`, `{"r":"x","n":1,"list":[{"x":1.50},{"x":2},{"y":3,"x":1.50}],"whole":{"in":"w"}}`},
		"in_union":      {`{"r":"x","n":1,"u":{},"whole":{"in":"w"}}`, `{"r":"x","n":1,"u":{},"whole":{"in":"w"}}`},
		"wrong_types":   {`{"r":"x","n":1,"cfg":[],"list":{"x":1},"whole":7}`, `{"r":"x","n":1,"cfg":[],"list":{"x":1},"whole":7}`},
		"not_an_object": {`[1]`, `[1]`},
	} {
		t.Run(name, func(t *testing.T) {
			s := output(t, nested)
			v := parse(t, c[0])
			got, err := s.ApplyDefaults(v)
			if err != nil || got.String() != c[1] {
				t.Errorf("got  %s, %v\nwant %s", got, err, c[1])
			}
			if v.String() != c[0] {
				t.Error("the value given has changed")
			}
		})
	}
}

func TestDefaultsAreBounded(t *testing.T) {
	big := strings.Repeat("x", 20_000)
	s := output(t, `{"type":"array","items":{"type":"object","properties":{"a":{"type":"string","default":"`+big+`"}}}}`)
	_, err := s.ApplyDefaults(parse(t, "["+strings.Repeat("{},", 2000)+"{}]"))
	if !errors.Is(err, schema.ErrDefaults) {
		t.Errorf("got %v", err)
	}
	if v, err := s.ApplyDefaults(parse(t, `[{}]`)); err != nil || v.At(0).Len() != 1 {
		t.Errorf("got %v", err)
	}
	s = output(t, `{"type":"object","properties":{"a":{"type":"string","default":"`+strings.Repeat("x", limits.Arguments)+`"}}}`)
	if _, err := s.ApplyDefaults(parse(t, `{}`)); !errors.Is(err, schema.ErrDefaults) {
		t.Errorf("got %v", err)
	}
}

// deep returns a schema n nodes deep and a value that it takes, and one that it does not.
func deep(kind string, n int) (text, good, bad string) {
	switch kind {
	case "array":
		return strings.Repeat(`{"type":"array","items":`, n) + `{"type":"string"}` + strings.Repeat("}", n),
			strings.Repeat("[", n) + `"x"` + strings.Repeat("]", n), strings.Repeat("[", n) + `1` + strings.Repeat("]", n)
	case "union":
		return strings.Repeat(`{"oneOf":[{"type":"null"},`, n) + `{"type":"string"}` + strings.Repeat("]}", n), `"x"`, `1`
	default:
		return strings.Repeat(`{"type":"object","properties":{"a":`, n) + `{"type":"string","required":true,"default":"d"}` + strings.Repeat("}}", n),
			strings.Repeat(`{"a":`, n) + `"x"` + strings.Repeat("}", n), strings.Repeat(`{"a":`, n) + `1` + strings.Repeat("}", n)
	}
}

func TestDeep(t *testing.T) {
	for kind, n := range map[string]int{"array": limits.DepthWorks, "union": limits.DepthWorks - 1, "object": limits.DepthWorks - 1} {
		t.Run(kind, func(t *testing.T) {
			text, good, bad := deep(kind, n)
			s := output(t, text)
			if s.Depth() != n+1 {
				t.Errorf("depth %d, want %d", s.Depth(), n+1)
			}
			if found := s.Validate("value", parse(t, good)); len(found) > 0 {
				t.Errorf("%.300s", schema.Join(found))
			}
			if found := s.Validate("value", parse(t, bad)); len(found) != 1 || len(found[0].Message) > 600 {
				t.Errorf("%d: %.300s", len(found), schema.Join(found))
			}
			again, err := schema.Output(s.Value())
			if err != nil || string(again.JSON()) != string(s.JSON()) {
				t.Errorf("the canonical form is no fixed point: %.300v", err)
			}
			if kind == "object" {
				filled, err := s.ApplyDefaults(parse(t, strings.Repeat(`{"a":`, n-1)+`{}`+strings.Repeat("}", n-1)))
				if err != nil || !strings.Contains(filled.String(), `{"a":"d"}`) {
					t.Errorf("%.100s, %v", filled, err)
				}
			}
			if _, err := schema.Parameters(lossless.Obj(lossless.M("p", parse(t, text)))); err != nil && !strings.Contains(err.Error(), "nested deeper than JSON text may be") {
				t.Errorf("%.300v", err)
			}
		})
	}
}

// TestVeryDeep builds what Parse refuses, so that only this package can overflow.
func TestVeryDeep(t *testing.T) {
	const n = 40_000
	node, value := lossless.Obj(lossless.M("type", lossless.Str("string"))), lossless.Str("x")
	for range n {
		node = lossless.Obj(lossless.M("type", lossless.Str("array")), lossless.M("items", node))
		value = lossless.Arr(value)
	}
	_, err := schema.Output(node)
	if err == nil || !strings.Contains(err.Error(), "output.schema its canonical form is nested deeper than JSON text may be") {
		t.Errorf("%.300v", err)
	}
	for range 60_000 {
		value = lossless.Arr(value)
	}
	s := output(t, `{"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"array","items":{"type":"array"}}]}`)
	if found := s.Validate("value", value); len(found) > 0 {
		t.Errorf("%.300s", schema.Join(found))
	}
	s = output(t, `{"type":"string"}`)
	if got := schema.Join(s.Validate("value", value)); len(got) > 300 {
		t.Errorf("%.300s", got)
	}
}

func BenchmarkValidate(b *testing.B) {
	s := output(b, `{"path":{"type":"string","required":true},"offset":{"type":"integer"},"limit":{"type":"integer","default":400},"flags":{"type":"array","items":{"enum":["a","b"]}},"options":{"type":"object","properties":{"hidden":{"type":"boolean"},"depth":{"type":"number"}}}}`)
	v := parse(b, `{"path":"/home/me/project/main.go","offset":120,"flags":["a","b"],"options":{"hidden":true,"depth":3.5,"glob":"**/*.go"},"none":null}`)
	b.Run("op=validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if len(s.Validate("", v)) > 0 {
				b.Fatal("invalid")
			}
		}
	})
	b.Run("op=defaults", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.ApplyDefaults(v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("op=compile", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := schema.Output(s.Value()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func ExampleParameters() {
	v, _ := lossless.Parse([]byte(`{"text": {"type": "string", "required": true}, "times": {"type": "integer", "default": 1}}`))
	s, err := schema.Parameters(v)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(s.JSON()))
	call, _ := lossless.Parse([]byte(`{"times": "two"}`))
	fmt.Println(schema.Join(s.Validate("", call)))
	// Output:
	// {"type":"object","properties":{"text":{"type":"string"},"times":{"type":"integer","default":1}},"required":["text"]}
	// missing required property "text"; "times" must be an integer (got "two")
}
