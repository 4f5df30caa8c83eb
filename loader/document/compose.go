package document

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
)

// Options are what Compose asks others.
type Options struct {
	// Env returns an environment variable. nil: none is set.
	Env func(name string) (string, bool)
	// Secret says which variables a project layer may not read; nil means Credential.
	Secret func(name string) bool
	// Open reads an included file; path is as the row says, from.Dir is what it is
	// relative to. Compose sets the Kind of what it returns: that of the layer that
	// wrote the path, but Project where the row is a project's. nil: no file is found.
	Open func(from *Layer, path string) (Layer, error)
	// May decides whether a project layer may do what it asks for: add the row, or set
	// the field of a row that another layer inserted. An error says why it may not, and
	// becomes a fault. It is not asked about rows that project layers inserted. nil: it
	// may do everything.
	May func(a Act) error
	// Elsewhere says whether another composition has a row with the id: that a document
	// overrides it is no fault here, and does nothing. nil: there is no other.
	Elsewhere func(id string) bool
}

// Act is what a project layer asks for.
type Act struct {
	Layer *Layer
	Add   bool   // it adds the row; else it sets or deletes Field of it
	Row   Row    // as far as it is known: ID, Name, Layer, Group
	Field string // disabled, config, insert …
}

// Compose lays the documents over each other in their order; those that are nil are
// left out. The composition is never nil: where there are faults it is what is left
// without the rows and fields that they concern. Who must not start with less does
// not use it then.
func Compose(docs []*Document, o Options) (*Composition, Faults) {
	if o.Env == nil {
		o.Env = func(string) (string, bool) { return "", false }
	}
	if o.Secret == nil {
		o.Secret = Credential
	}
	if o.Open == nil {
		o.Open = func(*Layer, string) (Layer, error) { return Layer{}, fmt.Errorf("files cannot be included here") }
	}
	w := &shared{options: o, out: &Composition{}, budget: limits.DocumentBytes}
	c := &composer{shared: w, index: map[string]*record{}, next: map[string]int{}}
	for _, d := range docs {
		if d != nil {
			c.layer(d)
		}
	}
	for _, e := range c.elsewhere {
		if c.index[e.id] != nil {
			w.out.Unused = append(w.out.Unused, originOf(e.node, ""))
		}
	}
	w.out.Rows = c.rows(c.root, false, nil)
	return w.out, w.faults.bounded()
}

// shared is what a composition and the files that it includes have in common.
type shared struct {
	options Options
	out     *Composition
	faults  Faults
	count   int // of rows
	budget  int // see values
}

func (w *shared) fault(n *yaml.Node, format string, args ...any) {
	w.faults = append(w.faults, faultOf(n, format, args...))
}

// composer joins layers to one list of rows: those of the composition, or those of
// an included file and its patches.
type composer struct {
	*shared
	prefix string // of ids: "include:"
	index  map[string]*record
	next   map[string]int // of ids that are made of names, see freeID
	root   []*record

	elsewhere []*entry // that override rows of other compositions
}

// record is a row with its history.
type record struct {
	id, name string
	layer    *Layer // that inserted it
	node     *yaml.Node
	group    bool
	parent   *record
	children []*record
	history  [fields][]given // the oldest first
	faults   Faults          // were told already
}

// given is what one layer gave for a field. node is null where it deleted it.
type given struct {
	node  *yaml.Node
	entry *entry
}

// now returns what holds for a field; its node is nil where nobody gave it.
func (r *record) now(f field) given {
	h := r.history[f]
	if len(h) == 0 || h[len(h)-1].node.Kind == yaml.Null {
		return given{}
	}
	return h[len(h)-1]
}

func (c *composer) layer(d *Document) {
	if d.set != nil {
		c.assign(d.set, d.Layer)
		return
	}
	for _, e := range d.rows {
		switch known := c.index[e.id]; {
		case e.id != "" && known != nil:
			c.override(known, e)
		case e.name != "" || e.group:
			c.insert(nil, e, d)
		case d.Layer.Kind != Flags && c.options.Elsewhere != nil && c.options.Elsewhere(e.id):
			c.elsewhere = append(c.elsewhere, e)
		default:
			c.unknown(e)
		}
	}
}

// unknown tells that no row has an id.
func (c *composer) unknown(e *entry) {
	n := e.value[fieldID]
	f := faultAt(n.In, n.Start, c.noRow(e.id))
	f.Guards = guardsIn(e.node)
	c.faults = append(c.faults, f)
}

func (c *composer) noRow(id string) string {
	var ids []string
	if len(c.faults) < 10 { // looking at thousands takes its time
		for known := range c.index {
			ids = append(ids, known)
		}
	}
	return fmt.Sprintf("no row before has the id %s%s", plain.Line(id, limits.Name),
		meant(id, ids, "a row that is new needs a name; dsh config show lists the rows"))
}

// insert adds a row at the end of a group, or of the list where parent is nil.
func (c *composer) insert(parent *record, e *entry, d *Document) {
	place := e.node
	for _, f := range [...]field{fieldName, fieldID} {
		if e.gives(f) {
			place = e.value[f]
		}
	}
	if e.name == "" && !e.group {
		c.fault(place, "a row that is inserted here is new and needs a name")
		return
	}
	if c.count++; c.count > limits.DocumentRows {
		if c.count == limits.DocumentRows+1 {
			c.fault(place, "a composition has at most %d rows", limits.DocumentRows)
		}
		return
	}
	r := &record{id: e.id, name: e.name, layer: e.layer, node: e.node, group: e.group, parent: parent}
	if r.group {
		r.name = groupName
	}
	if known := c.index[r.id]; r.id != "" && known != nil {
		line, _ := known.node.In.Position(known.node.Start)
		c.fault(place, "the id %s is that of a row of %s, line %d, already", r.id, known.layer.Name, line)
		c.unguarded(e)
		return
	}
	if r.id == "" {
		r.id = freeID(nameID(r.name), c.next, func(id string) bool { return c.index[id] != nil || d.ids[id] != nil })
	}
	r.faults = e.faults
	if parent != nil { // what a group lays on its rows may be what is wrong
		r.faults = append(r.faults[:len(r.faults):len(r.faults)], parent.faults...)
	}
	if problem := c.refused(r, e.layer, true, ""); problem != "" {
		c.fault(place, "%s", problem)
		if !e.gives(fieldGuards) {
			return
		}
		r.faults = append(r.faults[:len(r.faults):len(r.faults)], c.faults[len(c.faults)-1]) // it is there for its guards
	}
	c.index[r.id] = r
	for f := field(0); f < fields; f++ {
		if e.gives(f) {
			r.history[f] = append(r.history[f], given{e.value[f], e})
		}
	}
	if parent == nil {
		c.root = append(c.root, r)
	} else {
		parent.children = append(parent.children, r)
	}
	if len(e.insert) > 0 && !r.group {
		c.fault(e.key[fieldInsert], "%s is no group, and only groups have rows", r.id)
		return
	}
	for _, rows := range [...][]*entry{e.rows, e.insert} {
		for _, child := range rows {
			c.insert(r, child, d)
		}
	}
}

// refused asks whether a project may do something, and returns why not.
func (c *composer) refused(r *record, l *Layer, add bool, f string) string {
	if l.Kind != Project || c.options.May == nil || !add && r.layer.Kind == Project {
		return ""
	}
	err := c.options.May(Act{Layer: l, Add: add, Field: f, Row: Row{ID: c.prefix + r.id, Name: r.name, Layer: r.layer, Group: r.group}})
	if err == nil {
		return ""
	}
	return err.Error()
}

// overridable are the fields that a later row replaces.
var overridable = [...]field{fieldDisabled, fieldInject, fieldIsolate, fieldIntercept, fieldGuards, fieldConfig, fieldInsert}

// override lays a row over a known one.
func (c *composer) override(r *record, e *entry) {
	switch {
	case e.name != "" && e.name != r.name:
		c.fault(e.value[fieldName], "the row %s is %s (%s), not %s; leave the name out, or give the new row an id of its own",
			r.id, plain.Line(r.name, limits.Name), c.where(r), plain.Line(e.name, limits.Name))
		c.unguarded(e)
		return
	case e.group && !r.group:
		c.fault(e.key[fieldGroup], "the row %s is %s (%s), and no group", r.id, plain.Line(r.name, limits.Name), c.where(r))
		c.unguarded(e)
		return
	}
	if r.layer.Kind == Project { // it does not run as somebody half said
		r.faults = append(r.faults[:len(r.faults):len(r.faults)], e.faults...)
	}
	for _, f := range overridable {
		if !e.gives(f) {
			continue
		}
		if problem := c.refused(r, e.layer, false, fieldNames[f]); problem != "" {
			c.fault(e.key[f], "%s", problem)
			continue
		}
		c.field(r, f, given{e.value[f], e})
	}
}

// unguarded notes that the fault told last keeps the guards of a row away.
func (c *composer) unguarded(e *entry) {
	c.faults[len(c.faults)-1].Guards = guardsIn(e.node)
}

// where says where a row comes from.
func (c *composer) where(r *record) string {
	line, _ := r.node.In.Position(r.node.Start)
	return fmt.Sprintf("%s, line %d", r.layer.Name, line)
}

// field lays one field over a row.
func (c *composer) field(r *record, f field, g given) {
	d := &Document{ids: map[string]*entry{}} // ids are in the index by now
	switch {
	case f == fieldInsert && !r.group:
		c.fault(g.entry.key[f], "%s is no group (%s), and only groups have rows", r.id, c.where(r))
		return
	case f == fieldInsert:
		for _, child := range g.entry.insert {
			c.insert(r, child, d)
		}
	case f == fieldConfig && r.group:
		if g.node.Kind != yaml.List && g.node.Kind != yaml.Null {
			c.fault(g.node, "%s is a group (%s): its config is a list of rows, not %s", r.id, c.where(r), g.node.Kind)
			return
		}
		c.drop(r.children)
		r.children = nil
		for _, child := range g.entry.rows {
			c.insert(r, child, d)
		}
	case f == fieldConfig && g.node.Kind == yaml.List:
		c.fault(g.node, "%s is no group (%s): its config is a map, not a list", r.id, c.where(r))
		return
	}
	r.history[f] = append(r.history[f], g)
}

// drop forgets rows that are replaced.
func (c *composer) drop(rows []*record) {
	clear(c.next)
	for _, r := range rows {
		delete(c.index, r.id)
		c.count--
		c.drop(r.children)
	}
}

// assign does what --set says.
func (c *composer) assign(a *assignment, l *Layer) {
	file := a.value.In
	r := c.index[a.id]
	if r == nil {
		c.faults = append(c.faults, faultAt(file, a.at, c.noRow(a.id)))
		return
	}
	if problem := c.refused(r, l, false, a.path[0]); problem != "" {
		c.faults = append(c.faults, faultAt(file, a.at, problem))
		return
	}
	f := fieldOf(a.path[0])
	if a.entry != nil {
		c.field(r, f, given{a.value, a.entry})
		return
	}
	if r.group {
		c.faults = append(c.faults, faultAt(file, a.at, fmt.Sprintf("%s is a group: set fields of its rows by their own ids", r.id)))
		return
	}
	node, problem := with(r.now(fieldConfig).node, a.path[1:], a.value)
	if problem != "" {
		c.faults = append(c.faults, faultAt(file, a.at, fmt.Sprintf("%s.%s: %s", a.id, plain.Line(strings.Join(a.path, "."), limits.Name), problem)))
		return
	}
	e := &entry{layer: l}
	e.key[f], e.value[f] = node, node
	c.field(r, f, given{node, e})
}
