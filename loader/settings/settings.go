// Package settings describes the config of Go plugins by struct types: one source for
// validation, documentation and the schema that editors read.
//
// A field of a struct is an option if it has a json tag with a name. Its other tags:
//
//	doc       what it is, in a sentence or two; required
//	default   the value when it is absent: JSON, bare text of a string, the name of a limit
//	min, max  bounds of a number, of the characters of a string, of the items of a list:
//	          digits, or the name of a limit of package limits, so that no number
//	          stands in two places
//	enum      the values of a string, separated by commas
//	format    path, of a string or of the items of a list: ~/ is the home folder, else it
//	          is relative to the folder of the document that says it; the plugin gets it
//	          absolute
//	person    "true": no project may set it
//
// Types are bool, string, int, int64, float64, pointers to them (nil: not given), lists
// of strings or structs, maps of strings, and structs. Durations are integers of
// milliseconds, sizes of MiB, and say so by their names: …Ms, …MB.
//
// Texts with rules of their own have a type of their own, of the kind string, with a
// method that says what is wrong with one:
//
//	CheckText() error
//
// A struct whose fields depend on each other has a method that says what is wrong with
// one whose fields fit:
//
//	CheckSettings(fault func(path []string, message string))
//
// A struct that breaks these rules is a mistake of the program: [For] panics.
// Everything else is free of side effects and may be used from any goroutine.
package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/dsh-go/dsh/lossless"
)

// Type is the description of a config. It is immutable.
type Type struct {
	goType reflect.Type
	node   *node
}

// formatPath is the one format that there is.
const formatPath = "path"

// node describes one value.
type node struct {
	kind     reflect.Kind // Bool, String, Int, Float64, Slice, Map, Struct
	doc      string
	fallback *lossless.Value // nil: none
	min, max *float64
	enum     []string
	format   string
	person   bool
	names    []string // of a struct's fields, in their order
	fields   map[string]*node
	item     *node        // of a list or map
	text     reflect.Type // that of a string with rules of its own
}

// textual is a type of texts with rules of their own.
type textual interface{ CheckText() error }

// For describes T, a struct. It panics where T breaks the rules.
func For[T any]() *Type {
	t := reflect.TypeFor[T]()
	n, err := describe(t)
	if err == nil && n.kind != reflect.Struct {
		err = fmt.Errorf("it is no struct")
	}
	if err != nil {
		panic(fmt.Sprintf("settings: describe %v: %v", t, err))
	}
	return &Type{t, n}
}

func describe(t reflect.Type) (*node, error) {
	if t.Kind() == reflect.Pointer {
		if k := t.Elem().Kind(); k == reflect.Struct || k == reflect.Slice || k == reflect.Map || k == reflect.Pointer {
			return nil, fmt.Errorf("%v is no type of a setting", t)
		}
		return describe(t.Elem())
	}
	n := &node{kind: t.Kind()}
	if n.kind == reflect.Int64 {
		n.kind = reflect.Int
	}
	var err error
	switch t.Kind() {
	case reflect.String:
		if t.Implements(reflect.TypeFor[textual]()) {
			n.text = t
		}
	case reflect.Bool, reflect.Int, reflect.Int64, reflect.Float64:
	case reflect.Slice, reflect.Map:
		if t.Kind() == reflect.Map && t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("the keys of %v are no strings", t)
		}
		n.item, err = describe(t.Elem())
	case reflect.Struct:
		n.fields = map[string]*node{}
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name == "" || name == "-" {
				continue
			}
			if !f.IsExported() || n.fields[name] != nil {
				return nil, fmt.Errorf("field %s: it is not exported, or there is another %q", f.Name, name)
			}
			field, err := describeField(f)
			if err != nil {
				return nil, fmt.Errorf("field %s: %w", f.Name, err)
			}
			n.names = append(n.names, name)
			n.fields[name] = field
		}
	default:
		return nil, fmt.Errorf("%v is no type of a setting", t)
	}
	return n, err
}

func describeField(f reflect.StructField) (*node, error) {
	n, err := describe(f.Type)
	if err != nil {
		return nil, err
	}
	n.doc, n.format, n.person = f.Tag.Get("doc"), f.Tag.Get("format"), f.Tag.Get("person") == "true"
	if n.doc == "" {
		return nil, fmt.Errorf("it has no doc")
	}
	for _, b := range []struct {
		tag string
		to  **float64
	}{{"min", &n.min}, {"max", &n.max}} {
		text, ok := f.Tag.Lookup(b.tag)
		if !ok {
			continue
		}
		v, err := number(text)
		if err != nil {
			return nil, fmt.Errorf("its %s: %w", b.tag, err)
		}
		*b.to = &v
	}
	if text := f.Tag.Get("enum"); text != "" {
		n.enum = strings.Split(text, ",")
	}
	if err := n.fitting(); err != nil {
		return nil, err
	}
	if text, ok := f.Tag.Lookup("default"); ok {
		if v, ok := named[text]; ok && n.kind == reflect.Int {
			text = digits(v)
		}
		v, err := lossless.Parse([]byte(text))
		if n.kind == reflect.String && (err != nil || v.Kind() != lossless.String) {
			v, err = lossless.Str(text), nil
		}
		if err != nil {
			return nil, fmt.Errorf("its default is no JSON: %q", text)
		}
		c := checker{}
		if v = c.check(n, v, nil); len(c.faults) > 0 {
			return nil, fmt.Errorf("its default: %s", c.faults[0].Message)
		}
		n.fallback = &v
	}
	return n, nil
}

// fitting says which tag does not belong to the type, and hands a format on to items.
func (n *node) fitting() error {
	of := n
	if n.kind == reflect.Slice {
		of = n.item
	}
	switch {
	case n.format != "" && (n.format != formatPath || of.kind != reflect.String):
		return fmt.Errorf("the format is %q; there is path, of strings and lists of them", n.format)
	case n.enum != nil && n.kind != reflect.String:
		return errors.New("only strings have an enum")
	case (n.min != nil || n.max != nil) && (n.kind == reflect.Bool || n.kind == reflect.Struct):
		return errors.New("it can have no bounds")
	case n.min != nil && n.max != nil && *n.min > *n.max:
		return errors.New("its min is above its max")
	case n.kind == reflect.Int && (n.min == nil || n.max == nil):
		return errors.New("a whole number needs min and max")
	}
	of.format = n.format
	return nil
}

// read makes a T of a value that was checked.
func (t *Type) read(whole lossless.Value) (any, error) {
	v := reflect.New(t.goType)
	if err := json.Unmarshal(whole.Encode(), v.Interface()); err != nil {
		return nil, err
	}
	return v.Elem().Interface(), nil
}

// Field is an option, for documents.
type Field struct {
	Path    string // limits.steps; items of a list are limits[].steps
	Type    string // in words: string, list of strings, …
	Doc     string
	Default string // as JSON; "" for none
	Bounds  string // in words; "" for none
	Enum    []string
	Person  bool // no project may set it
}

// Fields are the options in the order of the struct, those of a struct after it.
func (t *Type) Fields() []Field { return t.node.list("") }

func (n *node) list(prefix string) []Field {
	var out []Field
	for _, name := range n.names {
		f := n.fields[name]
		field := Field{Path: prefix + name, Type: f.words(), Doc: f.doc, Bounds: f.bounds(), Enum: f.enum, Person: f.person}
		if f.fallback != nil {
			field.Default = string(f.fallback.Encode())
		}
		out = append(out, field)
		switch {
		case f.kind == reflect.Struct:
			out = append(out, f.list(field.Path+".")...)
		case f.item != nil && f.item.kind == reflect.Struct:
			out = append(out, f.item.list(field.Path+"[].")...)
		}
	}
	return out
}

// Personal says which options of a config, by their paths, no project may set.
func (t *Type) Personal(config lossless.Value) [][]string {
	var out [][]string
	var walk func(n *node, v lossless.Value, path []string)
	walk = func(n *node, v lossless.Value, path []string) {
		if n.kind != reflect.Struct || v.Kind() != lossless.Object {
			return
		}
		for name, member := range v.Members() {
			f := n.fields[name]
			if f == nil {
				continue
			}
			at := append(path[:len(path):len(path)], name)
			if f.person {
				out = append(out, at)
				continue
			}
			walk(f, member, at)
		}
	}
	walk(t.node, config, nil)
	return out
}
