package document

import (
	"regexp"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// services checks a map that has names of services for keys. It returns false where
// it is none.
func (r *reader) services(n *yaml.Node, what, example string) bool {
	if n.Kind != yaml.Map {
		r.fault(n, "%s is a map of services, not %s; for example %s", what, n.Kind, example)
		return false
	}
	for _, key := range n.Keys {
		r.service(key)
	}
	return r.few(n, what)
}

func (r *reader) few(n *yaml.Node, what string) bool {
	if len(n.Items) > limits.DocumentNames {
		r.fault(n, "%s names at most %d", what, limits.DocumentNames)
		return false
	}
	return true
}

func (r *reader) service(n *yaml.Node) bool {
	if n.Kind != yaml.String || n.Text == "" || plain.Line(n.Text, limits.Name) != n.Text {
		r.fault(n, "the name of a service is text of at most %d characters in one line", limits.Name)
		return false
	}
	return true
}

const injectForms = "inject is a list of service names ([fs, web]), one name (fs), a map of name to config ({fs: {}}), or {required: [...], optional: [...]}"

func (r *reader) inject(n *yaml.Node) []cordis.Dependency {
	switch n.Kind {
	case yaml.String:
		if r.service(n) {
			return []cordis.Dependency{{Name: n.Text}}
		}
	case yaml.List:
		return r.dependencies(n, false)
	case yaml.Map:
		if len(n.Keys) > 0 && halves(n) {
			var out []cordis.Dependency
			for i, key := range n.Keys {
				if n.Items[i].Kind != yaml.List {
					r.fault(n.Items[i], "%s is a list of service names, not %s", key.Text, n.Items[i].Kind)
					continue
				}
				out = append(out, r.dependencies(n.Items[i], key.Text == "optional")...)
			}
			return out
		}
		if r.services(n, "inject", "{fs: {}}") {
			var out []cordis.Dependency
			for i, key := range n.Keys {
				d := cordis.Dependency{Name: key.Text}
				switch value := n.Items[i]; {
				case value.Kind == yaml.Map && len(value.Keys) > 0:
					d.Config = literal(value)
				case value.Kind == yaml.Bool && value.Text == "false":
					r.fault(value, "a service that is not needed is left out; "+injectForms)
				}
				out = append(out, d)
			}
			return out
		}
	default:
		r.fault(n, injectForms)
	}
	return nil
}

// halves says whether a map is {required, optional}.
func halves(n *yaml.Node) bool {
	for i, key := range n.Keys {
		if key.Text != "required" && key.Text != "optional" || n.Items[i].Kind == yaml.Map {
			return false
		}
	}
	return true
}

func (r *reader) dependencies(list *yaml.Node, optional bool) []cordis.Dependency {
	if !r.few(list, "inject") {
		return nil
	}
	var out []cordis.Dependency
	for _, item := range list.Items {
		if r.service(item) {
			out = append(out, cordis.Dependency{Name: item.Text, Optional: optional})
		}
	}
	return out
}

func (r *reader) isolate(n *yaml.Node) map[string]Realm {
	if !r.services(n, "isolate", "{fs: true} for a realm of the row's own, {fs: NAME} for one that rows share") {
		return nil
	}
	out := make(map[string]Realm, len(n.Keys))
	for i, key := range n.Keys {
		switch value := n.Items[i]; {
		case value.Kind == yaml.Bool && value.Text == "true":
			out[key.Text] = Realm{}
		case value.Kind == yaml.String && value.Text != "" && plain.Line(value.Text, limits.Name) == value.Text:
			out[key.Text] = Realm{Label: value.Text}
		default:
			r.fault(value, "a service is isolated by true (a realm of the row's own) or by a label of at most %d characters that rows share", limits.Name)
		}
	}
	return out
}

var toolForm = regexp.MustCompile(limits.ToolName)

func (r *reader) guards(n *yaml.Node) Guards {
	if n.Kind == yaml.String && n.Text == "all" {
		return Guards{All: true}
	}
	if n.Kind != yaml.List {
		r.fault(n, "guards is all, or a list of tools: [bash, write]")
		return Guards{}
	}
	var g Guards
	if !r.few(n, "guards") {
		return g
	}
	for _, item := range n.Items {
		switch {
		case item.Kind != yaml.String || !toolForm.MatchString(item.Text):
			r.fault(item, "the name of a tool has letters, digits, - and _, and at most 64 of them")
		case item.Text == "all" && len(n.Items) == 1:
			r.fault(item, "guards: all guards every tool; [all] would be a tool with that name")
		default:
			g.Names = append(g.Names, item.Text)
		}
	}
	return g
}

// include checks the config of an include as far as it is written here.
func (r *reader) include(n *yaml.Node) (path *yaml.Node, patches []*entry) {
	for i, key := range n.Keys {
		value := n.Items[i]
		switch key.Text {
		case "path":
			switch {
			case value.Kind != yaml.String || value.Text == "" || strings.ContainsRune(value.Text, 0):
				r.fault(value, "path is the path of a file with rows, from the document's folder: ./more.yml")
			case !strings.HasSuffix(value.Text, ".yml") && !strings.HasSuffix(value.Text, ".yaml") && !strings.HasSuffix(value.Text, ".json") && !strings.HasSuffix(value.Text, "}"):
				r.fault(value, "an included file ends with .yml, .yaml or .json")
			default:
				path = value
			}
		case "patches":
			if value.Kind == yaml.Null {
				continue
			}
			if value.Kind != yaml.List {
				r.fault(value, "patches is a list of rows, as in a document that comes after the file")
				continue
			}
			// Their ids are those of the file, and have nothing to do with the document's.
			sub := &reader{doc: &Document{Layer: r.doc.Layer, ids: map[string]*entry{}}, count: r.count}
			patches = sub.entries(value)
			r.count, r.faults = sub.count, append(r.faults, sub.faults...)
		default:
			r.fault(key, "unknown member %s%s", plain.Line(key.Text, limits.Name), meant(key.Text, []string{"path", "patches"}, "an include has path and patches"))
		}
	}
	if n.Get("path") == nil {
		r.fault(n, "an include needs the path of a file: config: {path: ./more.yml}")
	}
	return path, patches
}

// literal is a node's value, with nothing put in.
func literal(n *yaml.Node) lossless.Value {
	v, _ := (&values{}).of(n)
	return v
}
