package document

import (
	"regexp"
	"strconv"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

// Kind says whose a layer is. What a layer may do depends on it.
type Kind int

// The kinds of layers, in the order in which they are composed.
const (
	Builtin Kind = iota // part of the program
	User                // ~/.dsh/cordis.yml
	Project             // <project>/.dsh/cordis.yml; it may not do everything, see Options.May
	Config              // --config FILE
	Flags               // --set and other flags
)

var kindNames = [...]string{"built-in", "user", "project", "config", "flags"}

// String returns the kind's name: built-in, user, project, config, flags.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return "unknown"
	}
	return kindNames[k]
}

// Layer is one source of rows.
type Layer struct {
	Name string // shown in faults and by explain: the path of the file, "built-in", "--set"
	Kind Kind
	Text []byte
	Dir  string // what ./ in names and in the paths of includes is relative to
}

// Row is one row after all layers. Its slices, maps and values are shared and must
// not be changed.
type Row struct {
	ID   string
	Name string // "group" for groups, "include" for includes
	// Layer inserted the row; ./ in Name is relative to Layer.Dir. For the rows of an
	// include it is the included file, of the kind of the layer that has the include.
	Layer *Layer

	// Config is the row's config with its variables put in; null where it has none.
	// Of a disabled row variables are not read and stay as they are written.
	Config lossless.Value
	// Disabled is the row's own flag. What is below a disabled row is not mounted
	// either, but has a flag of its own.
	Disabled bool
	// Group says that Children are the row's config, in their order.
	Group    bool
	Children []Row

	Inject    []cordis.Dependency       // configs are lossless.Value or nil
	Isolate   map[string]Realm          // by service
	Intercept map[string]lossless.Value // by service
	Guards    Guards

	// Faults are what is wrong with this row alone (a variable that is not set): the
	// rest of the composition is what it would be without them. Such a row is Disabled,
	// its Config null, so that it is safe to show and to leave out.
	Faults Faults

	origin *record
}

// Realm is where a service is isolated to.
type Realm struct {
	Label string // "": a realm of the row's own; else the realm of all rows with the label
}

// Guards are the tools that are absent while a row's plugin is not active.
type Guards struct {
	All   bool
	Names []string
}

// Composition is what several layers make together.
type Composition struct {
	Rows []Row
	// Included are the files that includes name, in the order in which they were
	// read. Those that could not be read are not among them.
	Included []*Layer
	// Unused are rows that change nothing, since the row of their id comes only later,
	// by a later layer.
	Unused []Origin
}

// Origin says where a value comes from.
type Origin struct {
	Layer        *Layer
	Line, Column int    // from 1
	Value        string // as it is written there, in one line, bounded and safe to show
}

// Find returns the row with the id, at any depth.
func (c *Composition) Find(id string) (Row, bool) { return find(c.Rows, id) }

func find(rows []Row, id string) (Row, bool) {
	for i := range rows {
		if rows[i].ID == id {
			return rows[i], true
		}
		if r, ok := find(rows[i].Children, id); ok {
			return r, true
		}
	}
	return Row{}, false
}

// At returns where a value of the row comes from: a field and what is below it
// ("config", "limits", "0"), or nothing for the row itself. Where nobody gave the
// value it is the place of the nearest above it that somebody gave. The zero Origin is
// that of a row that Compose did not make.
func (r Row) At(path ...string) Origin {
	if r.origin == nil {
		return Origin{}
	}
	n, all := r.origin.nearest(path)
	if !all || len(path) == 0 {
		return originOf(n, "")
	}
	return originOf(n, path[len(path)-1])
}

// Explain returns where a value comes from and what it shadowed, the newest first;
// nothing where nobody gave it.
func (r Row) Explain(path ...string) []Origin {
	if r.origin == nil {
		return nil
	}
	if len(path) == 0 {
		return []Origin{originOf(r.origin.node, "")}
	}
	f := fieldOf(path[0])
	if f < 0 {
		return nil
	}
	var out []Origin
	var last *yaml.Node
	history := r.origin.history[f]
	for i := len(history) - 1; i >= 0; i-- {
		n, whole := below(history[i].node, path[1:])
		if whole && n != last { // --set leaves what is beside it as it was
			out = append(out, originOf(n, path[len(path)-1]))
			last = n
		}
	}
	return out
}

// ConfigFault is a fault of the row's config, with its place. path is the way from
// the config to the value. It is also for values that are missing.
func ConfigFault(r Row, path []string, message string) Fault {
	return FieldFault(r, append([]string{"config"}, path...), message)
}

// FieldFault is a fault of a field of the row, or of what is below it; path is the way
// from the row, as for At.
func FieldFault(r Row, path []string, message string) Fault {
	if r.origin == nil {
		return Fault{File: "?", Line: 1, Column: 1, Row: r.ID, Message: message}
	}
	n, _ := r.origin.nearest(path)
	f := faultAt(n.In, n.Start, message)
	f.Row = r.ID
	return f
}

// nearest returns what stands at a path, or what is nearest above it, and whether it
// is the former.
func (r *record) nearest(path []string) (n *yaml.Node, all bool) {
	if len(path) > 0 {
		if f := fieldOf(path[0]); f >= 0 && len(r.history[f]) > 0 {
			return below(r.history[f][len(r.history[f])-1].node, path[1:])
		}
	}
	return r.node, len(path) == 0
}

// below goes down from a node as far as it can, and says whether that was all.
func below(n *yaml.Node, path []string) (*yaml.Node, bool) {
	for _, step := range path {
		var next *yaml.Node
		switch n.Kind {
		case yaml.Map:
			next = n.Get(step)
		case yaml.List:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Items) {
				next = n.Items[i]
			}
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}

var secretName = regexp.MustCompile(`(?i)(key|token|secret|password|passwd|authorization)$`)

// originOf tells the place of a node. The value of what has a name like that of a
// credential is left out.
func originOf(n *yaml.Node, name string) Origin {
	var o Origin
	o.Layer = ownerOf(n, nil)
	o.Line, o.Column = n.In.Position(n.Start)
	switch {
	case n.Style == yaml.Missing:
		o.Value = "null"
	case secretName.MatchString(name) || n.Kind >= yaml.List && secretLine.MatchString(n.In.Text[n.Start:min(n.End, n.Start+8*limits.Preview)]):
		o.Value = "…"
	default:
		o.Value = plain.Line(n.In.Text[n.Start:n.End], limits.Preview)
	}
	return o
}
