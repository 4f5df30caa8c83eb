package document

import (
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// rows makes the rows of records. chain are the files that are being included.
func (c *composer) rows(records []*record, off bool, chain []string) []Row {
	if len(records) == 0 {
		return nil
	}
	out := make([]Row, len(records))
	for i, r := range records {
		out[i] = c.row(r, off, chain)
	}
	return out
}

// row makes the row of a record. off says that a group above is disabled.
func (c *composer) row(r *record, off bool, chain []string) Row {
	out := Row{ID: c.prefix + r.id, Name: r.name, Layer: r.layer, Group: r.group, origin: r}
	if g := r.now(fieldDisabled); g.node != nil {
		out.Disabled = g.entry.disabled
	}
	if g := r.now(fieldInject); g.node != nil {
		out.Inject = g.entry.inject
	}
	if g := r.now(fieldIsolate); g.node != nil {
		out.Isolate = g.entry.isolate
	}
	if g := r.now(fieldIntercept); g.node != nil {
		out.Intercept = g.entry.intercept
	}
	if g := r.now(fieldGuards); g.node != nil {
		out.Guards = g.entry.guards
	}
	off = off || out.Disabled
	switch config := r.now(fieldConfig); {
	case r.group:
		out.Children = c.rows(r.children, off, chain)
		return out
	case r.name == includeName:
		out.Group = true
		if !off {
			out.Children, out.Faults = c.include(r, config.node, chain)
		}
	case config.node == nil:
	case off:
		out.Config = literal(config.node)
	default:
		v := values{env: c.options.Env, secret: c.options.Secret, budget: &c.budget}
		out.Config, _ = v.of(config.node)
		out.Faults = v.faults
	}
	if len(r.faults) > 0 {
		out.Faults = slices.Clone(r.faults)
		for i := range out.Faults {
			out.Faults[i].Row = out.ID
		}
		out.Disabled, out.Config, out.Children = true, lossless.Value{}, nil
		return out
	}
	if len(out.Faults) > 0 {
		for i := range out.Faults {
			out.Faults[i].Row = out.ID
		}
		c.faults = append(c.faults, out.Faults...)
		out.Disabled, out.Config, out.Children = true, lossless.Value{}, nil
	}
	return out
}

// include reads the file of an include, and returns its rows.
func (c *composer) include(r *record, config *yaml.Node, chain []string) ([]Row, Faults) {
	if config == nil {
		return nil, Faults{faultOf(r.node, "an include needs the path of a file: config: {path: ./more.yml}")}
	}
	check := &reader{doc: &Document{Layer: ownerOf(config, r.layer), ids: map[string]*entry{}}}
	at, patches := check.include(config)
	if len(check.faults) > 0 {
		return nil, check.faults
	}
	v := values{env: c.options.Env, secret: c.options.Secret, budget: &c.budget}
	path, ok := v.of(at)
	if !ok {
		return nil, v.faults
	}
	from := ownerOf(at, r.layer)
	if len(c.out.Included) >= limits.DocumentIncludes {
		return nil, Faults{faultOf(at, "a composition includes at most %d files", limits.DocumentIncludes)}
	}
	file, err := c.options.Open(from, path.Str())
	if err != nil {
		return nil, Faults{faultOf(at, "the file cannot be included: %s", plain.Error(err.Error()))}
	}
	file.Kind = from.Kind
	if r.layer.Kind == Project {
		file.Kind = Project
	}
	self := file.Dir + "\x00" + file.Name
	for i, open := range chain {
		if open == self {
			return nil, Faults{faultOf(at, "the file includes itself%s", through(chain[i+1:]))}
		}
	}
	if len(chain) >= limits.DocumentNested {
		return nil, Faults{faultOf(at, "files include each other at most %d deep", limits.DocumentNested)}
	}
	d, faults := Partial(file)
	if len(faults) > 0 && (d == nil || file.Kind != Project) {
		return nil, faults
	}
	c.faults = append(c.faults, faults...)
	c.out.Included = append(c.out.Included, d.Layer)
	sub := &composer{shared: c.shared, prefix: c.prefix + r.id + ":", index: map[string]*record{}, next: map[string]int{}}
	sub.layer(d)
	sub.layer(&Document{Layer: check.doc.Layer, rows: patches})
	return sub.rows(sub.root, false, append(chain[:len(chain):len(chain)], self)), nil
}

// through names the files between a file and its inclusion by itself.
func through(chain []string) string {
	var names []string
	for _, c := range chain {
		_, name, _ := strings.Cut(c, "\x00")
		names = append(names, plain.Line(name, limits.Name))
	}
	if len(names) == 0 {
		return ""
	}
	return ", through " + strings.Join(names, ", ")
}

// ownerOf returns the layer that wrote a node.
func ownerOf(n *yaml.Node, otherwise *Layer) *Layer {
	if l, ok := n.In.Owner.(*Layer); ok {
		return l
	}
	return otherwise
}
