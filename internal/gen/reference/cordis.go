package reference

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/plugins/standard"
)

// dialect is the draft of JSON Schema that the schema is written in.
const dialect = "https://json-schema.org/draft/2020-12/schema"

type object = map[string]any

// cordisSchema is docs/reference/cordis.schema.json: the format of cordis.yml, with
// the config of every Go plugin by its name.
func cordisSchema(catalog loader.Catalog) ([]byte, error) {
	rows := object{"type": "array", "maxItems": limits.DocumentRows, "items": object{"$ref": "#/$defs/row"}}
	defs := object{
		"rows":     rows,
		"variable": object{"description": "A variable of the environment: ${env:NAME} or ${env:NAME:-default}.", "type": "string", "pattern": `\$\{env:[A-Za-z_][A-Za-z0-9_]*(:-.*)?\}`},
		"services": object{"type": "array", "maxItems": limits.DocumentNames, "items": object{"$ref": "#/$defs/service"}},
		"service":  object{"type": "string", "minLength": 1, "maxLength": limits.Name},
		"include": object{
			"type": "object", "additionalProperties": false, "required": []string{"path"},
			"properties": object{
				"path":    object{"type": "string", "minLength": 1, "description": "A file of rows, from the document's folder: ./more.yml."},
				"patches": object{"$ref": "#/$defs/rows", "description": "Rows that change those of the file, as in a document that comes after it."},
			},
		},
	}
	configs := []any{
		when(object{"name": object{"const": "include"}}, "include"),
		object{
			"if":   object{"anyOf": []any{has("group"), hasConst("name", "group")}},
			"then": object{"properties": object{"config": orNull(object{"$ref": "#/$defs/rows"})}},
		},
	}
	names := []any{
		object{"const": "include", "description": "A group whose rows come from a file: config: {path: ./more.yml}."},
		object{"const": "group", "description": "A group: its config is a list of rows."},
		object{"pattern": `^\./`, "description": "A plugin file or folder, from the document's folder: ./plugins/hello.js."},
	}
	for _, name := range catalog.Names() {
		spec, _ := catalog.Lookup(name)
		names = append(names, object{"const": name, "description": spec.Doc})
		config := any(object{"type": "object", "maxProperties": 0, "description": "The plugin " + name + " takes no config."})
		if spec.Settings != nil {
			if err := json.Unmarshal(spec.Settings.Schema(), &config); err != nil {
				return nil, fmt.Errorf("read schema of %s: %w", name, err)
			}
			config = withVariables(config)
		}
		defs["config."+name] = config
		configs = append(configs, when(object{"name": object{"const": name}}, "config."+name))
	}
	known, err := builtinIDs()
	if err != nil {
		return nil, err
	}
	for _, one := range known {
		c := when(object{"id": object{"const": one.id}}, "config."+one.plugin).(object)
		c["if"].(object)["not"] = object{"required": []string{"name"}}
		configs = append(configs, c)
	}
	row := rowSchema(names)
	row["allOf"] = configs
	defs["row"] = row
	text, err := encode(object{
		"$schema": dialect, "title": "cordis.yml",
		"description": "The plugins that dsh is composed of. See docs/reference/config.md. Generated; run " + Command + ".",
		"type":        []string{"array", "null"}, "maxItems": limits.DocumentRows, "items": object{"$ref": "#/$defs/row"},
		"$defs": defs,
	})
	return text, err
}

// encode writes a schema. Its keys are sorted, and < and > stay what they are.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write schema: %w", err)
	}
	return b.Bytes(), nil
}

// rowSchema is a row's fields, but for what their config is.
func rowSchema(names []any) object {
	text := func(doc string, more object) object {
		more["description"] = doc
		return more
	}
	return object{
		"type": "object", "additionalProperties": false,
		"anyOf": []any{object{"required": []string{"id"}}, object{"required": []string{"name"}}, object{"required": []string{"group"}}},
		"properties": object{
			"id":   text("What other layers change the row by; without it a row has one from its name.", object{"type": "string", "pattern": fmt.Sprintf(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,%d}$`, limits.DocumentID-1)}),
			"name": text("The plugin: a Go plugin, ./file.js, ./file.ts or ./folder, include. Beside the id of another layer's row it is a guard: another plugin there is a fault.", object{"type": "string", "maxLength": limits.DocumentName, "anyOf": names}),
			"config": text("What the plugin is given; in a group, its rows. It replaces the config of the row that it changes as a whole.",
				object{"type": []string{"object", "array", "null"}}),
			"disabled": text("The row, and what is below it, is not mounted.", object{"type": []string{"boolean", "null"}}),
			"group":    text("The row is a group: it has no plugin, and its config is a list of rows.", object{"const": true}),
			"inject": text("Services that the row waits for beside its plugin's own.", object{"anyOf": []any{
				object{"$ref": "#/$defs/service"}, object{"$ref": "#/$defs/services"},
				object{"type": "object", "maxProperties": limits.DocumentNames}, object{"type": "null"},
			}}),
			"isolate": text("Services of which the row has its own: true for a realm of the row's own, a label for one that rows share.", object{
				"type": []string{"object", "null"}, "maxProperties": limits.DocumentNames,
				"additionalProperties": object{"anyOf": []any{object{"const": true}, object{"$ref": "#/$defs/service"}}},
			}),
			"intercept": text("What services are told when they are used from here, by their names.", object{"type": []string{"object", "null"}, "maxProperties": limits.DocumentNames}),
			"guards": text("Tools that are absent while the row's plugin is not active: a list of names, or all.", object{"anyOf": []any{
				object{"const": "all"}, object{"type": "null"},
				object{"type": "array", "maxItems": limits.DocumentNames, "items": object{"type": "string", "pattern": limits.ToolName}},
			}}),
			"insert": text("Rows that are appended to the group with this id.", object{"$ref": "#/$defs/rows"}),
		},
		"dependentRequired": object{"insert": []string{"id"}},
	}
}

// when says of which definition the config of rows is that have the properties.
func when(properties object, definition string) any {
	var names []string
	for name := range properties {
		names = append(names, name)
	}
	return object{
		"if":   object{"properties": properties, "required": names},
		"then": object{"properties": object{"config": orNull(object{"$ref": "#/$defs/" + definition})}},
	}
}

func has(field string) object { return object{"required": []string{field}} }

func hasConst(field, value string) object {
	return object{"required": []string{field}, "properties": object{field: object{"const": value}}}
}

func orNull(s object) object { return object{"anyOf": []any{s, object{"type": "null"}}} }

// withVariables lets every value that is no text be a variable, too: a document is
// looked at before they are read.
func withVariables(v any) any {
	s, ok := v.(object)
	if !ok {
		return v
	}
	if properties, ok := s["properties"].(object); ok {
		for name, p := range properties {
			properties[name] = withVariables(p)
		}
	}
	if items, ok := s["items"]; ok {
		s["items"] = withVariables(items)
	}
	_, enum := s["enum"]
	_, short := s["minLength"]
	switch s["type"] {
	case "boolean", "integer", "number":
	case "string":
		if !enum && !short {
			return s
		}
	default:
		return s
	}
	// Editors show the description, and offer the default, from the outer schema.
	outer := object{"anyOf": []any{s, object{"$ref": "#/$defs/variable"}}}
	for _, key := range []string{"description", "default"} {
		if value, ok := s[key]; ok {
			outer[key] = value
			delete(s, key)
		}
	}
	return outer
}

// builtinID is a row that a person can change by its id alone.
type builtinID struct{ id, plugin string }

// builtinIDs are the ids of built-in rows, sorted. Where two compositions have one id
// for two plugins these have the same settings.
func builtinIDs() ([]builtinID, error) {
	var out []builtinID
	for _, layer := range []document.Layer{standard.Run(), standard.MCP()} {
		d, faults := document.Parse(layer)
		if len(faults) > 0 {
			return nil, faults
		}
		c, faults := document.Compose([]*document.Document{d}, document.Options{})
		if len(faults) > 0 {
			return nil, faults
		}
		for _, row := range c.Rows {
			if !slices.ContainsFunc(out, func(o builtinID) bool { return o.id == row.ID }) {
				out = append(out, builtinID{row.ID, row.Name})
			}
		}
	}
	slices.SortFunc(out, func(a, b builtinID) int { return strings.Compare(a.id, b.id) })
	return out, nil
}

//go:embed cordis.txt
var cordisText string

// pluginsSection tells of cordis.yml and of every Go plugin.
func pluginsSection(catalog loader.Catalog) string {
	var b strings.Builder
	b.WriteString("\n" + strings.TrimSpace(cordisText) + "\n")
	for _, name := range catalog.Names() {
		spec, _ := catalog.Lookup(name)
		lives := "Once for each agent"
		if spec.Plane == loader.Host {
			lives = "Once in a process"
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n%s.", name, spec.Doc, lives)
		if spec.PersonOnly {
			b.WriteString(" No project may add or change it.")
		}
		if spec.Static {
			b.WriteString(" A change of its row counts from the next start.")
		}
		b.WriteString("\n\n```yaml\n- " + standard.Example(name) + "\n```\n")
		if spec.Settings == nil {
			continue
		}
		b.WriteString("\n| Field | Type | Default | Limits | Meaning |\n|---|---|---|---|---|\n")
		for _, f := range spec.Settings.Fields() {
			doc := f.Doc
			if f.Person {
				doc += " No project may set it."
			}
			bounds := f.Bounds
			if len(f.Enum) > 0 {
				bounds = strings.Join(f.Enum, ", ")
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", f.Path, cell(f.Type), cell(f.Default), cell(bounds), cell(doc))
		}
	}
	return b.String()
}
