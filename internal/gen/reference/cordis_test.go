package reference

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	reference "github.com/dsh-go/dsh/docs/reference"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/plugins/standard"
)

// compiled is the schema as a validator.
func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	text, err := cordisSchema(standard.Catalog(standard.Given{}))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("cordis.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("cordis.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate validates YAML.
func validate(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(asJSON)))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

// TestSchemaTakesBuiltin: the schema takes every built-in composition, and the example
// of every plugin.
func TestSchemaTakesBuiltin(t *testing.T) {
	s := compiled(t)
	for _, l := range []document.Layer{standard.Run(), standard.MCP(), standard.Demo(), standard.Self()} {
		if err := validate(t, s, string(l.Text)); err != nil {
			t.Errorf("%s: %v", l.Name, err)
		}
	}
	for _, name := range standard.Catalog(standard.Given{}).Names() {
		if err := validate(t, s, "- "+standard.Example(name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSchema: the schema takes what is right, and refuses what is wrong wherever it can
// know.
func TestSchema(t *testing.T) {
	s := compiled(t)
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"nothing":          {"", true},
		"empty":            {"[]", true},
		"file":             {"- ./plugins/hello.js", false},
		"file_row":         {"- {name: ./plugins/hello.js, config: {any: [1, {thing: true}]}}", true},
		"override":         {"- {id: bash, disabled: true}", true},
		"delete":           {"- {id: bash, config: null}", true},
		"variable":         {"- {id: agents, name: agents, config: {maxParallel: '${env:MANY:-3}'}}", true},
		"override_config":  {"- {id: tool-cordis, config: {vmTimeoutMs: 2000}}", true},
		"own_id":           {"- {id: mine, config: {vmTimeoutMs: x}}", true}, // whose row it is the schema cannot know
		"group":            {"- {group: true, id: g, config: [{name: kv, isolate: {kv: true}}, {name: group, config: []}]}", true},
		"include":          {"- {name: include, config: {path: ./more.yml, patches: [{id: a, disabled: true}]}}", true},
		"insert":           {"- {id: g, insert: [{name: ./a.js, guards: all, inject: [fs]}]}", true},
		"inject":           {"- {name: ./a.js, inject: {required: [fs], optional: [web]}}", true},
		"guards":           {"- {name: ./a.js, guards: [bash, write]}", true},
		"unknown_field":    {"- {name: bash, disable: true}", false},
		"no_name":          {"- {disabled: true}", false},
		"bad_id":           {"- {id: 'a b', name: bash}", false},
		"unknown_plugin":   {"- {name: bsh}", false},
		"unknown_option":   {"- {name: bash, config: {passenv: []}}", false},
		"takes_no_config":  {"- {name: timer, config: {a: 1}}", false},
		"out_of_range":     {"- {name: tool-cordis, config: {vmTimeoutMs: 100000}}", false},
		"override_range":   {"- {id: tool-cordis, config: {vmTimeoutMs: 100000}}", false},
		"wrong_type":       {"- {name: web, config: {allowPrivate: 'yes'}}", false},
		"bad_mode":         {"- {id: permission, config: {mode: all}}", false},
		"bad_guard":        {"- {name: ./a.js, guards: [a b]}", false},
		"deep":             {"- {group: true, config: [{group: true, config: [{name: bsh}]}]}", false},
		"group_config":     {"- {group: true, config: {a: 1}}", false},
		"include_config":   {"- {name: include, config: {file: a.yml}}", false},
		"insert_nowhere":   {"- {name: ./a.js, insert: []}", false},
		"config_no_object": {"- {name: ./a.js, config: 5}", false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate(t, s, c.text); (err == nil) != c.ok {
				t.Errorf("%s: %v", c.text, err)
			}
		})
	}
}

// TestSchemaIsCarried: the program prints what is in the documentation.
func TestSchemaIsCarried(t *testing.T) {
	text, err := cordisSchema(standard.Catalog(standard.Given{}))
	if err != nil {
		t.Fatal(err)
	}
	if reference.Schema != string(text) {
		t.Errorf("%v: run %s", ErrStale, Command)
	}
}
