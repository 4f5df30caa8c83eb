package composition

import (
	"fmt"

	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
)

// planes are the rows of a composition by where they live.
type planes struct {
	host    []document.Row // Go plugins of the host
	own     []document.Row // plugin files of the person's layers
	project []document.Row // what a project added, but for what belongs to agents
	agent   []document.Row
}

// plane says where a row lives.
type plane int

const (
	onHost plane = iota
	inOwn
	inProject
	onAgent
)

// divide sorts rows. A group is there in each plane in which it has something; an
// empty one is the host's.
func divide(rows []document.Row, catalog loader.Catalog) planes {
	var p planes
	p.host = pick(rows, catalog, onHost)
	p.own = pick(rows, catalog, inOwn)
	p.project = pick(rows, catalog, inProject)
	p.agent = pick(rows, catalog, onAgent)
	return p
}

func pick(rows []document.Row, catalog loader.Catalog, want plane) []document.Row {
	var out []document.Row
	for _, r := range rows {
		if !r.Group {
			if planeOf(r, catalog) == want {
				out = append(out, r)
			}
			continue
		}
		if children := pick(r.Children, catalog, want); len(children) > 0 {
			r.Children = children // the row is a copy
			out = append(out, r)
		} else if len(r.Children) == 0 && want == home(r) {
			out = append(out, r)
		}
	}
	return out
}

// home is where a row lives of which nothing else is known.
func home(r document.Row) plane {
	if r.Layer.Kind == document.Project {
		return inProject
	}
	return onHost
}

func planeOf(r document.Row, catalog loader.Catalog) plane {
	if spec, ok := catalog.Lookup(r.Name); ok && spec.Plane == loader.Agent {
		return onAgent
	}
	if home(r) == onHost && isFile(r.Name) {
		return inOwn
	}
	return home(r)
}

// may says what a project's layer may do.
func may(catalog loader.Catalog) func(document.Act) error {
	return func(a document.Act) error {
		spec, known := catalog.Lookup(a.Row.Name)
		switch {
		case isFile(a.Row.Name) && a.Add, a.Row.Group && a.Add:
			return nil
		case a.Add && known && spec.PersonOnly:
			return fmt.Errorf("a project may not add the plugin %s; put the row into your own cordis.yml (in $DSH_HOME), or give it with --config", a.Row.Name)
		case a.Add:
			return nil
		case a.Field == "guards":
			return fmt.Errorf("a project may not change what the row %s guards; it may guard with rows of its own", a.Row.ID)
		case known && spec.Plane == loader.Agent && !spec.PersonOnly:
			return nil
		case a.Row.Group && a.Field == "insert":
			return nil // what is inserted is asked about by itself
		case known && spec.Plane == loader.Agent:
			return fmt.Errorf("a project may not change the row %s, which is for you to set: in your own cordis.yml (in $DSH_HOME), or with --config or --set", a.Row.ID)
		}
		return fmt.Errorf("a project may change only what belongs to agents, and the row %s does not; change it in your own cordis.yml (in $DSH_HOME), or with --config or --set", a.Row.ID)
	}
}
