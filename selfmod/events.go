package selfmod

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/catalog"
)

// caution closes every list of events.
const caution = "waterfall listeners receive a trailing next() and MUST call it to delegate — returning without next() short-circuits the chain."

// events is the section of that name: what plugins may listen to, whoever runs.
type events struct {
	beside *api // has been written before, and its shapes are not repeated; nil: none
}

func (e events) text(max int) string {
	var p page
	p.add("## events")
	room := max - len(caution) - 1
	const note = 160 // for the line that says what is missing
	var signatures []string
	for i := range catalog.Events {
		event := &catalog.Events[i]
		line := eventLine(event)
		if need := len(line) + 1 + size(event.Signature); p.size+need+note+shapesNote > room {
			p.add(fmt.Sprintf("(cut: %d more of %d; cordis_inspect what:\"events\" shows this section alone)", len(catalog.Events)-i, len(catalog.Events)))
			break
		}
		p.add(line)
		p.indented(event.Signature)
		signatures = append(signatures, event.Signature)
	}
	types := catalog.Closure(signatures...)
	if e.beside != nil {
		types = slices.DeleteFunc(types, func(t catalog.Type) bool { return e.beside.shown[t.Name] })
	}
	shapes(&p, room-p.size, shortShape, types, `cordis_inspect what:"events" with the name of an event, or what:"api" with that of a type, shows them`)
	p.add(caution)
	return p.text(max)
}

func eventLine(e *catalog.Event) string {
	return fmt.Sprintf("- %s [%s] — %s", e.Name, e.Mode, e.Summary)
}

// eventOne is everything about one event.
func eventOne(name string, before seen) (string, error) {
	e, ok := catalog.LookupEvent(name)
	if !ok {
		names := make([]string, len(catalog.Events))
		for i := range catalog.Events {
			names[i] = catalog.Events[i].Name
		}
		near := didYouMean(name, names)
		if near == "" {
			near = "; there are " + listed(names, 150) + `, which cordis_inspect what:"events" shows`
		}
		return "", fmt.Errorf("no catalogued event named %q%s", plain.Name(name), near)
	}
	var p page
	p.add("## event: "+e.Name, eventLine(e))
	p.docs(restOf(e.Doc, e.Summary))
	p.indented(e.Signature)
	types := before.unseen(catalog.Closure(e.Signature))
	room := limits.ReportName - p.size - len(caution) - 1
	form := fullShape
	if shapesSize(form, types) > room {
		form = shortShape
	}
	maps.Copy(before, shapes(&p, room, form, types, typeByName))
	if e.Mode == "waterfall" {
		p.add(caution)
	}
	return p.text(limits.ReportName), nil
}
