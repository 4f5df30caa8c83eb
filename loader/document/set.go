package document

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// assignment is what --set says.
type assignment struct {
	id    string
	path  []string // the field, and of config what is below it
	at    int      // where the id begins in the argument
	value *yaml.Node
	entry *entry // with the field alone; nil where path goes on
}

const setForm = "--set is id.path=value, for example tool-cordis.config.vmTimeoutMs=5000"

// ParseSet reads the argument of --set, "id.path=value": the id of a row, the fields
// and members down to the value (quoted where they have dots, numbers for items of
// lists), and a YAML scalar or flow collection. Unlike a row it replaces what it
// names alone: "tool-cordis.config.vmTimeoutMs=100" leaves the rest of the config.
// null deletes what it names. Paths of includes are relative to the layer's Dir,
// which the caller sets.
func ParseSet(arg string) (*Document, Faults) {
	l := &Layer{Name: "--set", Kind: Flags, Text: []byte(arg)}
	if len(arg) > limits.DocumentSet {
		return nil, Faults{{File: l.Name, Line: 1, Column: 1, Message: fmt.Sprintf("the argument has %d bytes; at most %d are read", len(arg), limits.DocumentSet)}}
	}
	file := yaml.NewFile(arg)
	file.Owner = l
	a, at, problem := target(arg)
	if problem != "" {
		return nil, Faults{faultAt(file, at, problem)}
	}
	value, fault := file.Value(at)
	if fault != nil {
		return nil, Faults{faultAt(file, fault.Offset, fault.Message)}
	}
	if value.Style == yaml.Missing {
		return nil, Faults{faultAt(file, at, `the value is missing; "" is the empty text, and null deletes what is named`)}
	}
	a.value = value
	return a.document(l)
}

// Flag is ParseSet of a flag that is no --set: name is shown as the layer's. Nothing
// is put into the value where it has "${". It panics where path is empty, has no
// field of a row first, or the value is wrong for it, since that is an error of the
// program.
func Flag(name, id string, path []string, value lossless.Value) *Document {
	l := &Layer{Name: name, Kind: Flags, Text: []byte(name)}
	file := yaml.NewFile(name)
	file.Owner = l
	d, faults := (&assignment{id: id, path: path, value: nodeOf(file, value)}).document(l)
	if len(faults) > 0 {
		panic("document: flag " + faults.Error())
	}
	return d
}

// document makes a document of one assignment, after checking what can be checked
// without knowing the row.
func (a *assignment) document(l *Layer) (*Document, Faults) {
	d := &Document{Layer: l, set: a}
	if len(a.path) == 0 {
		return nil, Faults{faultOf(a.value, "%s", setForm)}
	}
	f := fieldOf(a.path[0])
	switch f {
	case fieldConfig, fieldDisabled, fieldInject, fieldIsolate, fieldIntercept, fieldGuards:
	default:
		settable := []string{"config", "disabled", "inject", "isolate", "intercept", "guards"}
		near := meant(a.path[0], settable, "fields that can be set are "+strings.Join(settable, ", "))
		if f < 0 && plain.Nearest(a.path[0], settable) == "" {
			near += fmt.Sprintf("; what a plugin is given is below config: %s.config.%s", a.id, plain.Line(a.path[0], limits.Name))
		}
		return nil, Faults{faultAt(a.value.In, a.at+len(a.id)+1, fmt.Sprintf("%s cannot be set%s", plain.Line(a.path[0], limits.Name), near))}
	}
	if len(a.path) > 1 {
		if f != fieldConfig {
			return nil, Faults{faultOf(a.value, "only config has members; %s is set as a whole, for example %s.%s={…}", fieldNames[f], a.id, fieldNames[f])}
		}
		return d, nil
	}
	a.entry = &entry{layer: l}
	a.entry.key[f], a.entry.value[f] = a.value, a.value
	r := &reader{doc: &Document{Layer: l, ids: map[string]*entry{}}}
	r.field(a.entry, f, a.value)
	if len(r.faults) > 0 {
		return nil, r.faults
	}
	return d, nil
}

// target reads "id.path=", and returns where the value begins.
func target(arg string) (a *assignment, at int, problem string) {
	a = &assignment{}
	for at < len(arg) && arg[at] == ' ' {
		at++
	}
	a.at = at
	for at < len(arg) && arg[at] != '.' && arg[at] != '=' {
		at++
	}
	a.id = arg[a.at:at]
	switch {
	case at == len(arg):
		return nil, a.at, "the argument has no \"=\"; " + setForm
	case strings.Contains(a.id, ":"):
		return nil, a.at, "rows of an include are changed by the patches in the include's config"
	case !idForm.MatchString(a.id):
		return nil, a.at, "the argument begins with the id of a row; " + setForm
	case arg[at] == '=':
		return nil, at, "what of the row is set is missing; " + setForm
	}
	for arg[at] == '.' {
		if len(a.path) == limits.DocumentPath {
			return nil, at, fmt.Sprintf("a path has at most %d members", limits.DocumentPath)
		}
		at++
		member, end, problem := member(arg, at)
		if problem != "" {
			return nil, at, problem
		}
		a.path, at = append(a.path, member), end
		if at == len(arg) {
			return nil, at, "the value is missing: \"=\" and a value come after the path"
		}
	}
	return a, at + 1, ""
}

// member reads one member of a path, up to the . or = after it.
func member(arg string, at int) (name string, end int, problem string) {
	if at < len(arg) && (arg[at] == '"' || arg[at] == '\'') {
		quote := arg[at]
		for end = at + 1; end < len(arg) && arg[end] != quote; end++ {
			if quote == '"' && arg[end] == '\\' {
				end++
			}
		}
		if end >= len(arg) {
			return "", at, "the quotes do not end"
		}
		end++
		n, fault := yaml.NewFile(arg[at:end]).Value(0)
		if fault != nil {
			return "", at, fault.Message
		}
		if end < len(arg) && arg[end] != '.' && arg[end] != '=' {
			return "", at, "after the quotes \".\" or \"=\" is expected"
		}
		return n.Text, end, ""
	}
	for end = at; end < len(arg) && arg[end] != '.' && arg[end] != '='; end++ {
	}
	if end == at {
		return "", at, "a member of the path is empty; one with dots is put in quotes: id.config.\"a.b\"=1"
	}
	return arg[at:end], end, ""
}

// with returns a node in which the value at a path is another; null deletes. The
// nodes on the way are copies. problem says what is in the way, at bad.
func with(n *yaml.Node, path []string, value *yaml.Node) (out *yaml.Node, problem string) {
	if len(path) == 0 {
		return value, ""
	}
	if n == nil || n.Kind == yaml.Null {
		n = &yaml.Node{Kind: yaml.Map, Style: yaml.Flow, Start: value.Start, End: value.End, In: value.In}
	}
	c := *n
	c.Keys, c.Items = append([]*yaml.Node(nil), n.Keys...), append([]*yaml.Node(nil), n.Items...)
	name := plain.Line(path[0], limits.Name)
	place := -1
	switch n.Kind {
	case yaml.List:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(n.Items) {
			return nil, fmt.Sprintf("%s is no item: the list has %d, from 0", name, len(n.Items))
		}
		place = i
	case yaml.Map:
		for i, key := range n.Keys {
			if key.Text == path[0] {
				place = i
			}
		}
	default:
		return nil, fmt.Sprintf("%s cannot be set: what is above it is %s", name, n.Kind)
	}
	if value.Kind == yaml.Null && (len(path) == 1 || place < 0) {
		if place >= 0 {
			c.Items = append(c.Items[:place], c.Items[place+1:]...)
			if n.Kind == yaml.Map {
				c.Keys = append(c.Keys[:place], c.Keys[place+1:]...)
			}
		}
		return &c, ""
	}
	var before *yaml.Node
	if place >= 0 {
		before = n.Items[place]
	}
	below, problem := with(before, path[1:], value)
	if problem != "" {
		return nil, problem
	}
	if place >= 0 {
		c.Items[place] = below
	} else {
		c.Keys = append(c.Keys, &yaml.Node{Kind: yaml.String, Text: path[0], Start: value.Start, End: value.End, In: value.In})
		c.Items = append(c.Items, below)
	}
	return &c, ""
}

// nodeOf makes a node of a value that no text has.
func nodeOf(file *yaml.File, v lossless.Value) *yaml.Node {
	n := &yaml.Node{In: file, End: len(file.Text), Style: yaml.Flow}
	switch v.Kind() {
	case lossless.Bool:
		n.Kind, n.Text = yaml.Bool, strconv.FormatBool(v.Bool())
	case lossless.Number:
		n.Kind, n.Text = yaml.Number, v.Literal()
	case lossless.String:
		n.Kind, n.Style, n.Text = yaml.String, yaml.Double, strings.ReplaceAll(v.Str(), "${", "$${")
	case lossless.Array:
		n.Kind = yaml.List
		for _, item := range v.Items() {
			n.Items = append(n.Items, nodeOf(file, item))
		}
	case lossless.Object:
		n.Kind = yaml.Map
		for key, item := range v.Members() {
			n.Keys = append(n.Keys, &yaml.Node{Kind: yaml.String, Text: key, In: file, End: len(file.Text)})
			n.Items = append(n.Items, nodeOf(file, item))
		}
	}
	return n
}
