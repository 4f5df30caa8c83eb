package composition

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/loader/document"
)

const throws = "export default { name: 'one', apply() { throw new Error('no') } }"

// TestPlaceGuards: a guard of a project holds, whatever else is wrong with its document.
func TestPlaceGuards(t *testing.T) {
	const one = "- {id: one, guards: [victim], name: ./plugins/one.js}\n"
	for _, tt := range []struct{ name, rows string }{
		{"alone", one},
		{"may_not", one + "- {id: timer, disabled: true}\n"},
		{"unknown_field", one + "- {id: x, name: ./plugins/x.js, colour: red}\n"},
		{"unknown_field_of_it", "- {id: one, guards: [victim], name: ./plugins/one.js, colour: red}\n"},
		{"wrong_config", "- {id: one, guards: [victim], name: ./plugins/one.js, config: 7}\n"},
		{"no_row", one + "- {id: nobody, disabled: true}\n"},
		{"no_plugin", one + "- {name: helpers}\n"},
		{"no_map", one + "- 7\n"},
		{"not_allowed", "- {id: x, name: secret, guards: [victim]}\n"},
		{"in_a_group", "- {id: g, isolate: 7, config: [{id: one, guards: [victim], name: ./plugins/one.js}], group: true}\n"},
		{"variable", one + "- {id: x, name: helper, config: {a: \"${env:NOBODY}\"}}\n"},
		{"include", "- {id: x, name: include, config: {path: ./more.yml}}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.o.TrustProject = true
			r.inProject("plugins/one.js", throws)
			r.inProject("plugins/victim.js", says("victim", "offered"))
			r.inProject("plugins/ours.js", says("ours", "one"))
			r.inProject("more.yml", one+"- {id: y, colour: red}\n")
			r.inProject("cordis.yml", tt.rows)
			r.must(r.start())
			p, err := r.Place(r.ctx(), r.project)
			r.must(err)
			if got := r.answer(p.Scope(), "ours"); got != "one" {
				t.Error(got)
			}
			if got := r.answer(p.Scope(), "victim"); got == "offered" {
				t.Error("it is not guarded", r.told)
			}
		})
	}
}

// TestPlaceGuardsUnread: where guards may be among what cannot be read nothing starts,
// however often it is asked.
func TestPlaceGuardsUnread(t *testing.T) {
	for _, tt := range []struct{ name, rows string }{
		{"syntax", "- {id: one, guards: [victim]\n- [\n"},
		{"no_list", "id: one\nguards: [victim]\n"},
		{"guards", "- {id: one, guards: 7, name: ./plugins/one.js}\n"},
		{"mistyped", "- {id: one, guard: [victim], name: ./plugins/one.js}\n"},
		{"id", "- {id: 7, guards: [victim], name: ./plugins/one.js}\n"},
		{"no_row", "- {id: nobody, guards: [victim]}\n"},
		{"include", "- {id: x, name: include, config: {path: ./more.yml}}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.o.TrustProject = true
			r.inProject("plugins/one.js", throws)
			r.inProject("more.yml", "- {guards: [victim]\n- [\n")
			r.inProject("cordis.yml", tt.rows)
			r.must(r.start())
			for range 2 {
				var faults document.Faults
				if _, err := r.Place(r.ctx(), r.project); !errors.As(err, &faults) || !strings.Contains(err.Error(), "--safe") {
					t.Fatalf("%v", err)
				}
			}
			r.inProject("cordis.yml", "- {id: one, guards: [victim], name: ./plugins/one.js}\n")
			p, err := r.Place(r.ctx(), r.project)
			r.must(err)
			if len((told{r.Composition}).Rows(p.Scope())) == 0 {
				t.Error("nothing is there")
			}
		})
	}
}

// TestReloadGuardsUnread: an edit that keeps guards from being read is refused, and they
// go on to hold.
func TestReloadGuardsUnread(t *testing.T) {
	r := newRig(t)
	r.o.TrustProject = true
	r.inProject("plugins/one.js", throws)
	r.inProject("plugins/victim.js", says("victim", "offered"))
	r.inProject("cordis.yml", "- {id: one, guards: [victim], name: ./plugins/one.js}\n")
	r.must(r.start())
	p, err := r.Place(r.ctx(), r.project)
	r.must(err)
	r.inProject("cordis.yml", "- {id: one, guards: [victim], name: ./plugins/one.js}\n- {id: timer, disabled: true}\n- [\n")
	if err := r.Reload(r.ctx()); !errors.Is(err, ErrRefused) {
		t.Error(err)
	}
	if got := r.answer(p.Scope(), "victim"); got == "offered" || !slices.Contains([]string{"failed", "waiting", "faulty"}, r.states(p.Scope())["one"]) {
		t.Error(got, r.states(p.Scope()))
	}
}

// TestProjectGuardsItsOwnRows: a project guards with rows of its own, and lifts no guard
// of others.
func TestProjectGuardsItsOwnRows(t *testing.T) {
	ask := may(testCatalog{})
	row := document.Row{ID: "crew", Name: "crew"}
	if err := ask(document.Act{Row: row, Field: "config"}); err != nil {
		t.Errorf("a field of an agent's row: %v", err)
	}
	if err := ask(document.Act{Row: row, Field: "guards"}); err == nil {
		t.Error("it may change what the row of another guards")
	}
	if err := ask(document.Act{Row: document.Row{ID: "x", Name: "./plugins/x.js"}, Add: true, Field: "guards"}); err != nil {
		t.Errorf("a row of its own: %v", err)
	}
}
