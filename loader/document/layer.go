package document

import (
	"github.com/dsh-go/dsh/cordis"
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
