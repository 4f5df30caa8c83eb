package loader

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/lossless"
)

// 160, 161: rows run, disabled ones keep their record; one that is kept is not touched.
func TestRows(t *testing.T) {
	w := newWorld(t)
	w.must(`
- {id: a, name: p, config: {value: a}}
- id: g
  group: true
  config:
  - {id: b, name: p, config: {value: b}}
  - {id: c, name: p, disabled: true, config: {value: c}}
`)
	w.expect("+a +b")
	w.states("a g b c", "running", "group", "running", "disabled")
	a := w.fiber("a")
	r := w.must(`
- {id: a, name: p, config: {value: a}}
- {id: c, name: p, config: {value: c}}
`)
	w.expect("+c -b")
	w.states("a g b c", "running", "absent", "absent", "running")
	if w.fiber("a") != a {
		t.Error("a row that did not change has another fiber")
	}
	if diff := cmp.Diff(Report{Mounted: []string{"c"}, Removed: []string{"b"}}, r); diff != "" {
		t.Error(diff)
	}
	if r := w.must("- {id: a, name: p, config: {value: a}}\n- {id: c, name: p, config: {value: c}}\n"); r.Changed() {
		t.Errorf("the same rows changed something: %+v", r)
	}
}

// 165-169, 200: nested groups.
func TestNestedGroups(t *testing.T) {
	w := newWorld(t)
	doc := func(outer, inner string) string {
		return `
- id: outer
  group: true
  disabled: ` + outer + `
  config:
  - {id: a, name: p, config: {value: a}}
  - id: inner
    group: true
    disabled: ` + inner + `
    config:
    - {id: b, name: p, config: {value: b}}
`
	}
	for _, step := range []struct{ outer, inner, did, a, b string }{
		{"false", "false", "+a +b", "running", "running"},
		{"false", "true", "-b", "running", "disabled"},
		{"true", "true", "-a", "disabled", "disabled"},
		{"true", "false", "", "disabled", "disabled"},
		{"false", "false", "+a +b", "running", "running"},
	} {
		w.must(doc(step.outer, step.inner))
		w.expect(step.did)
		w.states("a b", step.a, step.b)
	}
	if n := len(w.tree.Rows()); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
}

// 170-173: moves. Between groups that lay the same nothing restarts.
func TestMove(t *testing.T) {
	const row = "{id: a, name: p, config: {value: a}}"
	w := newWorld(t)
	w.must("- {id: g, group: true, config: [" + row + "]}\n- {id: h, group: true, config: []}\n")
	w.expect("+a")
	f := w.fiber("a")
	w.must("- {id: g, group: true, config: []}\n- {id: h, group: true, config: [" + row + "]}\n")
	w.must("- " + row + "\n- {id: h, group: true, config: []}\n")
	w.expect("")
	if w.fiber("a") != f {
		t.Error("a move mounted the row anew")
	}
	w.must("- {id: g, group: true, disabled: true, config: [" + row + "]}\n")
	w.expect("-a")
	w.must("- {id: g, group: true, disabled: true, config: [{id: h, group: true, config: [" + row + "]}]}\n")
	w.expect("")
	w.must("- " + row + "\n")
	w.expect("+a")
	w.must("- {id: g, group: true, isolate: {x: true}, config: [" + row + "]}\n") // it lays something
	w.expect("+a -a")
}

// 174: interceptions along groups, the nearest last.
func TestIntercept(t *testing.T) {
	w := newWorld(t)
	w.must(`
- id: outer
  group: true
  intercept: {svc: {n: 1}}
  config:
  - id: inner
    group: true
    intercept: {svc: {n: 2}}
    config:
    - {id: a, name: plain, intercept: {svc: {n: 3}}, inject: {svc: {n: 4}}}
`)
	var got []string
	for _, v := range w.fiber("a").Context().Interceptions("svc") {
		got = append(got, v.(lossless.Value).String())
	}
	if want := `{"n":1} {"n":2} {"n":3} {"n":4}`; strings.Join(got, " ") != want {
		t.Errorf("interceptions %v, want %s", got, want)
	}
}

// What a row and the groups around it inject is merged into what the plugin injects.
func TestInject(t *testing.T) {
	w := newWorld(t)
	const row = "- id: g\n  group: true\n  inject: [one]\n  config:\n  - {id: a, name: p, inject: {required: [two]}, config: {value: a, needs: [three]}}\n"
	w.must(row)
	w.states("a", "pending for three,one,two")
	for _, name := range []string{"one", "two"} {
		must(w.root.Provide(name, name))
	}
	w.states("a", "pending for three")
	w.must(row + "- {id: t, name: p, config: {value: '3', provides: [three]}}\n")
	w.states("a", "running")
	w.expect("+3 +a three=3")
	r := w.must("- {id: a, name: p, config: {value: a, needs: [three]}}\n- {id: t, name: p, config: {value: '3', provides: [three]}}\n")
	if diff := cmp.Diff([]string{"a"}, r.Remounted); diff != "" {
		t.Errorf("injections that changed: %s", diff)
	}
}

const (
	provider = "{id: p, name: p%s, config: {value: P, provides: [svc]}}"
	consumer = "{id: c, name: p%s, config: {value: C, needs: [svc]}}"
)

func row(form, more string) string { return strings.Replace(form, "%s", more, 1) }

// 175-182: isolations of the one who injects, and of the one who provides. One that does
// not concern them mounts the row anew all the same: a plugin may read any service, so
// nobody knows what does.
func TestIsolate(t *testing.T) {
	for _, side := range []string{"injector", "provider"} {
		t.Run(side, func(t *testing.T) {
			w := newWorld(t)
			doc := func(more string) string {
				if side == "injector" {
					return "- " + row(provider, "") + "\n- " + row(consumer, more) + "\n"
				}
				return "- " + row(provider, more) + "\n- " + row(consumer, "") + "\n"
			}
			w.must(doc(""))
			w.states("p c", "running", "running")
			w.must(doc(", isolate: {svc: true}"))
			w.states("p c", "running", "pending for svc")
			w.must(doc(", isolate: {svc: true, other: true}"))
			w.states("p c", "running", "pending for svc")
			w.must(doc(", isolate: {other: true}"))
			w.states("p c", "running", "running")
			w.must(doc(""))
			w.states("p c", "running", "running")
			f, g := w.fiber("p"), w.fiber("c")
			w.must(doc("")) // 184
			if w.fiber("p") != f || w.fiber("c") != g {
				t.Error("equal isolations mounted a row anew")
			}
		})
	}
}

// 183, 185, 202: private realms and labels keep providers of one name apart.
func TestRealms(t *testing.T) {
	w := newWorld(t)
	w.must(`
- {id: x, group: true, isolate: {svc: true}, config: [
    {id: px, name: p, config: {value: X, provides: [svc]}},
    {id: cx, name: p, config: {value: cx, needs: [svc]}},
    {id: cy, name: p, isolate: {svc: label}, config: {value: cy, needs: [svc]}},
    {id: cz, name: p, isolate: {svc: true}, config: {value: cz, needs: [svc]}}]}
- {id: y, group: true, isolate: {svc: label}, config: [{id: py, name: p, config: {value: Y, provides: [svc]}}]}
- {id: root, name: p, config: {value: root, needs: [svc]}}
`)
	w.states("px cx cy cz py root", "running", "running", "running", "pending for svc", "running", "pending for svc")
	if log := w.took(); strings.Count(log, "svc=X") != 1 || strings.Count(log, "svc=Y") != 1 {
		t.Errorf("the bodies did %s", log)
	}
	w.must("[]\n") // close looks whether realms are left
}

// 186: what comes to the same realm touches nothing.
func TestSameLabel(t *testing.T) {
	w := newWorld(t)
	doc := func(outer string) string {
		return "- {id: o, group: true" + outer + ", config: [{id: g, group: true, isolate: {svc: l}, config: [" + row(provider, "") + ", " + row(consumer, "") + "]}]}\n"
	}
	w.must(doc(""))
	w.took()
	w.must(doc(", isolate: {svc: l}"))
	w.must(doc(""))
	w.expect("")
}

// 187: a consumer whose group changes between two providers starts once more.
func TestSwitchConsumer(t *testing.T) {
	w := newWorld(t)
	doc := func(label string) string {
		return `
- {id: a, name: p, isolate: {svc: one}, config: {value: '1', provides: [svc]}}
- {id: b, name: p, isolate: {svc: two}, config: {value: '2', provides: [svc]}}
- {id: g, group: true, isolate: {svc: ` + label + `}, config: [{id: c, name: p, config: {value: c, needs: [svc]}}]}
`
	}
	w.must(doc("one"))
	w.expect("+1 +2 +c svc=1")
	w.must(doc("two"))
	w.expect("+c -c svc=2")
}

// 188: a provider whose label changes moves its service.
func TestSwitchProvider(t *testing.T) {
	w := newWorld(t)
	doc := func(label string) string {
		return `
- {id: g, group: true, isolate: {svc: ` + label + `}, config: [{id: p, name: p, config: {value: p, provides: [svc]}}]}
- {id: a, name: p, isolate: {svc: one}, config: {value: a, needs: [svc]}}
- {id: b, name: p, isolate: {svc: two}, config: {value: b, needs: [svc]}}
`
	}
	w.must(doc("one"))
	w.states("a b", "running", "pending for svc")
	w.must(doc("two"))
	w.states("a b", "pending for svc", "running")
}

// 189-192: moves of either side in and out of an isolated group.
func TestTransfer(t *testing.T) {
	w := newWorld(t)
	p, c := row(provider, ""), row(consumer, "")
	doc := func(in, out string) string {
		return "- {id: g, group: true, isolate: {svc: true}, config: [" + in + "]}\n" + out
	}
	w.must(doc("", "- "+p+"\n- "+c+"\n"))
	w.states("c", "running")
	w.must(doc(c, "- "+p+"\n"))
	w.states("c", "pending for svc")
	w.must(doc(p+", "+c, ""))
	w.states("c", "running")
	w.must(doc(p, "- "+c+"\n"))
	w.states("c", "pending for svc")
	w.must(doc("", "- "+p+"\n- "+c+"\n"))
	w.states("c", "running")
}

// A label is one realm for trees that share a set; it goes with its last user.
func TestSharedLabels(t *testing.T) {
	realms := NewRealms()
	w := newWorld(t, func(o *Options) { o.Realms = realms })
	other := must(New(w.root, Options{Catalog: w.shop, Realms: realms}))
	w.must("- {id: p, name: p, isolate: {svc: l}, config: {value: P, provides: [svc]}}\n")
	rows := must(rowsOf("- {id: c, name: p, isolate: {svc: l}, config: {value: C, needs: [svc]}}\n"))
	must(other.Apply(w.ctx, rows))
	if err := other.Settle(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.expect("+C +P svc=P")
	w.must("[]\n")
	if len(realms.realms) != 1 {
		t.Errorf("%d realms, want the one that the other tree uses", len(realms.realms))
	}
	if err := other.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	if len(realms.realms) != 0 || len(realms.uses) != 0 {
		t.Error("realms outlive their users")
	}
}
