package document

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// field is one of the fields of a row.
type field int

const (
	fieldID field = iota
	fieldName
	fieldConfig
	fieldDisabled
	fieldGroup
	fieldInject
	fieldIsolate
	fieldIntercept
	fieldGuards
	fieldInsert
	fields
)

var fieldNames = []string{"id", "name", "config", "disabled", "group", "inject", "isolate", "intercept", "guards", "insert"}

// fieldOf returns the field with a name, -1 where there is none.
func fieldOf(name string) field {
	for i, n := range fieldNames {
		if n == name {
			return field(i)
		}
	}
	return -1
}

// The names of rows that are no plugins.
const (
	groupName   = "group"
	includeName = "include"
)

// entry is a row as it is written.
type entry struct {
	layer *Layer
	node  *yaml.Node         // the map; nil for --set
	key   [fields]*yaml.Node // of the fields that are given
	value [fields]*yaml.Node

	id, name  string
	group     bool
	disabled  bool
	inject    []cordis.Dependency
	isolate   map[string]Realm
	intercept map[string]lossless.Value
	guards    Guards
	rows      []*entry // of a config that is a list
	insert    []*entry

	faults Faults // of the row and its fields, without those of rows in it
	lost   bool   // what row it is cannot be read
}

// gives says whether the row has a field, null among it.
func (e *entry) gives(f field) bool { return e.value[f] != nil }

// reader makes entries of nodes, and collects what is wrong with them.
type reader struct {
	doc    *Document
	count  int
	faults Faults
}

func (r *reader) fault(n *yaml.Node, format string, args ...any) {
	r.faults = append(r.faults, faultOf(n, format, args...))
}

func (r *reader) entries(list *yaml.Node) []*entry {
	out := make([]*entry, 0, len(list.Items))
	for _, item := range list.Items {
		if r.count++; r.count > limits.DocumentRows {
			if r.count == limits.DocumentRows+1 {
				r.fault(item, "a document has at most %d rows", limits.DocumentRows)
			}
			return out
		}
		if item.Kind != yaml.Map {
			r.fault(item, "a row is a map of fields, not %s; the shortest one is {name: PLUGIN}", item.Kind)
			r.faults[len(r.faults)-1].Guards = guardsIn(item)
			continue
		}
		if e := r.entry(item); !e.lost {
			out = append(out, e)
		}
	}
	return out
}

func (r *reader) entry(n *yaml.Node) *entry {
	e := &entry{layer: r.doc.Layer, node: n}
	for i, key := range n.Keys {
		f := fieldOf(key.Text)
		if f < 0 {
			otherwise := "a row has " + strings.Join(fieldNames, ", ")
			if n.Get("config") != nil {
				otherwise += "; what its plugin is given is indented below config"
			}
			r.fault(key, "unknown field %s%s", plain.Line(key.Text, limits.Name), meant(key.Text, fieldNames, otherwise))
			r.faults[len(r.faults)-1].Guards = plain.Nearest(key.Text, fieldNames) == fieldNames[fieldGuards]
			e.faults = append(e.faults, r.faults[len(r.faults)-1])
			continue
		}
		e.key[f], e.value[f] = key, n.Items[i]
	}
	for _, f := range [...]field{fieldID, fieldName, fieldGroup, fieldDisabled, fieldInject, fieldIsolate, fieldIntercept, fieldGuards, fieldConfig, fieldInsert} {
		if e.gives(f) {
			before := len(r.faults)
			r.field(e, f, e.value[f])
			r.spoiled(e, f, before)
		}
	}
	if !e.lost && !e.gives(fieldID) && !e.gives(fieldName) && !e.group {
		r.fault(n, "a row needs a name (of a plugin, ./file.js, ./folder, include), or the id of a row to change, or group: true")
		r.faults[len(r.faults)-1].Guards = guardsIn(n)
		e.lost = true
	}
	return e
}

// spoiled leaves a field out that has faults, which are those since before; rows in it
// stand for themselves.
func (r *reader) spoiled(e *entry, f field, before int) {
	n := e.value[f]
	if len(r.faults) == before || n.Kind == yaml.List && (len(e.rows) > 0 && f == fieldConfig || len(e.insert) > 0 && f == fieldInsert) {
		return
	}
	guards := false
	switch f {
	case fieldID, fieldName, fieldGroup:
		e.lost = true
		guards = guardsIn(e.node)
	case fieldGuards:
		guards = true
	case fieldConfig, fieldInsert:
		guards = guardsIn(n)
	}
	for i := range r.faults[before:] {
		r.faults[before+i].Guards = r.faults[before+i].Guards || guards
	}
	e.faults = append(e.faults, r.faults[before:]...)
	if !e.lost {
		e.key[f], e.value[f] = nil, nil
	}
}

// guardsIn says whether guards may be among what a node has.
func guardsIn(n *yaml.Node) bool {
	return n == nil || strings.Contains(n.In.Text[n.Start:n.End], fieldNames[fieldGuards])
}

// field reads one field. Its faults are noted.
func (r *reader) field(e *entry, f field, n *yaml.Node) {
	if n.Kind == yaml.Null {
		switch f {
		case fieldID, fieldName, fieldGroup, fieldInsert:
			r.fault(n, "%s cannot be deleted; leave the line out", fieldNames[f])
		}
		return
	}
	switch f {
	case fieldID:
		e.id = r.id(e, n)
	case fieldName:
		if e.name = r.name(n); e.name == groupName {
			e.group = true
		}
	case fieldGroup:
		if e.group = r.boolean(n, "group"); !e.group {
			r.fault(n, "group is true, or the line is left out")
		} else if e.name != "" && e.name != groupName {
			r.fault(n, "a group has no plugin: leave the name out, or group")
		}
	case fieldDisabled:
		e.disabled = r.boolean(n, "disabled")
	case fieldInject:
		e.inject = r.inject(n)
	case fieldIsolate:
		e.isolate = r.isolate(n)
	case fieldIntercept:
		if r.services(n, "intercept", "{bash: {timeoutMs: 1000}}") {
			e.intercept = map[string]lossless.Value{}
			for i, key := range n.Keys {
				e.intercept[key.Text] = literal(n.Items[i])
			}
		}
	case fieldGuards:
		e.guards = r.guards(n)
	case fieldConfig:
		r.config(e, n)
	case fieldInsert:
		if n.Kind != yaml.List {
			r.fault(n, "insert is a list of rows, not %s", n.Kind)
		} else if !e.gives(fieldID) {
			r.fault(e.key[f], "insert needs the id of the group that gets the rows")
		} else {
			e.insert = r.entries(n)
		}
	}
}

var idForm = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,%d}$`, limits.DocumentID-1))

func (r *reader) id(e *entry, n *yaml.Node) string {
	switch {
	case n.Kind == yaml.Number || n.Kind == yaml.Bool:
		r.fault(n, "an id is text, not %s; put it in quotes: \"%s\"", n.Kind, plain.Line(n.In.Text[n.Start:n.End], 20))
		return ""
	case n.Kind != yaml.String:
		r.fault(n, "an id is text, not %s", n.Kind)
		return ""
	case strings.Contains(n.Text, ":"):
		r.fault(n, "rows of an include are changed by the patches in the include's config")
		return ""
	case !idForm.MatchString(n.Text):
		r.fault(n, "an id has letters, digits, - and _, does not begin with -, and has at most %d characters", limits.DocumentID)
		return ""
	}
	if before := r.doc.ids[n.Text]; before != nil {
		line, _ := n.In.Position(before.value[fieldID].Start)
		r.fault(n, "the id %s is there already, on line %d; a document has one row with an id", n.Text, line)
		return ""
	}
	r.doc.ids[n.Text] = e
	return n.Text
}

func (r *reader) name(n *yaml.Node) string {
	name := n.Text
	switch {
	case n.Kind != yaml.String:
		r.fault(n, "a name is text, not %s", n.Kind)
	case name == "" || len(name) > limits.DocumentName:
		r.fault(n, "a name has 1 to %d bytes", limits.DocumentName)
	case plain.Line(name, limits.DocumentName) != name:
		r.fault(n, "a name is one line of visible characters, without spaces around")
	case strings.HasPrefix(name, "./"):
		if clean := path.Clean(name); clean == "." || strings.HasPrefix(clean, "../") || clean == ".." || strings.Contains(name, `\`) {
			r.fault(n, "a plugin file is below the document's folder: ./plugins/NAME.js")
		}
	case strings.HasPrefix(name, "../") || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") || strings.Contains(name, `\`):
		r.fault(n, "a plugin file is named from the document's folder, and is below it: ./plugins/NAME.js")
	case strings.HasSuffix(name, ".js") || strings.HasSuffix(name, ".ts"):
		r.fault(n, "a plugin file is named from the document's folder: ./%s", plain.Line(name, limits.Name))
	default:
		return name
	}
	return name
}

func (r *reader) boolean(n *yaml.Node, what string) bool {
	if n.Kind == yaml.Bool {
		return n.Text == "true"
	}
	hint := ""
	if n.Kind == yaml.String {
		switch strings.ToLower(n.Text) {
		case "yes", "on", "y", "no", "off", "n":
			hint = " (in YAML 1.2 " + n.Text + " is text)"
		}
		if strings.Contains(n.Text, "${") {
			hint = " (variables are read in config only)"
		}
	}
	r.fault(n, "%s is true or false%s", what, hint)
	return false
}

// config reads what can be told of a config before it is known whose it is.
func (r *reader) config(e *entry, n *yaml.Node) {
	switch {
	case n.Kind == yaml.List && (e.group || e.name == ""):
		e.rows = r.entries(n)
	case n.Kind == yaml.List:
		r.fault(n, "the config of a plugin is a map, not a list; only that of a group is a list of rows, and a group says group: true and has no other name")
	case n.Kind != yaml.Map && e.group:
		r.fault(n, "the config of a group is a list of rows, not %s", n.Kind)
	case n.Kind != yaml.Map:
		r.fault(n, "a config is a map, not %s", n.Kind)
	case e.group:
		r.fault(n, "the config of a group is a list of rows, not a map")
	case e.name == includeName:
		r.include(n)
	}
}

// meant names the nearest of some valid names, or says what is valid.
func meant(name string, among []string, otherwise string) string {
	if near := plain.Nearest(name, among); near != "" {
		return "; did you mean " + near + "?"
	}
	if otherwise == "" {
		return ""
	}
	return "; " + otherwise
}
