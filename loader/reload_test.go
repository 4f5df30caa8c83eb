package loader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

// 193-199, 201, 229, 239: what cannot be mounted refuses the whole edit; what was there
// is what it was, the very same fibers. A corrected document then applies whole.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	w.files["f.js"] = `{"value":"f","tools":["tf"]}`
	good := "- {id: a, name: p, config: {value: a, tools: [t]}}\n- {id: f, name: ./f.js}\n"
	w.must(good)
	w.took()
	for _, bad := range []struct{ name, doc, want string }{
		{"yaml", "- {id: a, name", "cordis.yml:1"},
		{"empty", "", "cordis.yml:1"},
		{"duplicate_id", good + "- {id: a, name: p}\n", "the id a is there already"},
		{"name", good + "- {id: b, name: plan}\n", `cordis.yml:3:17: there is no plugin "plan"; did you mean "plain"?`},
		{"no_config", good + "- {id: b, name: plain, config: {x: 1}}\n", "cordis.yml:3:"},
		{"config", "- {id: a, name: p, config: {values: a, number: 10}}\n", `did you mean "value"`},
		{"fails", good + "- {id: b, name: p, config: {value: b, fail: true}}\n", "row b (plugin p, cordis.yml:3): plugin \"p\": as it was told"},
		{"panics", good + "- {id: b, name: p, config: {panic: true}}\n", "row b (plugin p, cordis.yml:3): plugin \"p\": panic: as it was told"},
		{"constructor", good + "- {id: b, name: broken}\n", "make the plugin: panic: no such luck"},
		{"ends_itself", good + "- {id: b, name: p, config: {end: true}}\n", "it ended itself while it started"},
		{"changed_fails", "- {id: a, name: p, config: {value: a, fail: true}}\n- {id: f, name: ./f.js}\n", "row a (plugin p, cordis.yml:1): plugin \"p\": as it was told"},
		{"changed_name", "- {id: a, name: broken, config: {value: a}}\n- {id: f, name: ./f.js}\n", "row a (plugin broken"},
		{"no_file", good + "- {id: b, name: ./no.js}\n", "row b (plugin ./no.js, cordis.yml:3): file does not exist"},
		{"file_config", "- {id: a, name: p, config: {value: new}}\n- {id: f, name: ./g.js}\n", "file does not exist"},
		{"tool_twice", good + "- {id: b, name: p, config: {tools: [t]}}\n", "row b (plugin p, cordis.yml:3)"},
		{"service_twice", good + "- {id: b, name: p, config: {provides: [s]}}\n- {id: c, name: p, config: {provides: [s]}}\n", "has been registered"},
		{"later_row", "- {id: a, name: p, config: {value: new, tools: [t]}}\n- {id: n, name: plain}\n- {id: b, name: p, config: {fail: true}}\n", "row b"},
		{"move_and_fail", "- {id: g, group: true, isolate: {x: true}, config: [{id: a, name: p, config: {value: a, fail: true}}]}\n- {id: f, name: ./f.js}\n", "row a"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			w.t = t
			w.refused(bad.doc, bad.want)
		})
	}
	w.t = t
	w.files["f.js"] = `{"value":`
	w.refused(good, "row f (plugin ./f.js, cordis.yml:2): syntax error")
	w.files["f.js"] = `{"value":"f2","tools":["tf"]}`
	w.took()
	r := w.must(good + "- {id: b, name: p, config: {value: b}}\n")
	if diff := cmp.Diff(Report{Mounted: []string{"b"}, Remounted: []string{"f"}}, r); diff != "" {
		t.Error(diff)
	}
	w.expect("+b +f2 -f open:f.js")
}

// Every fault of the rows is told at once.
func TestAllFaults(t *testing.T) {
	w := newWorld(t)
	w.must("- {id: a, name: p}\n")
	w.refused("- {id: a, name: nope}\n- {id: b, name: p, config: {number: 11}}\n- {id: c, name: plain, config: {}}\n- {id: d, name: ./no.js}\n", "nope", "number", "row d")
}

// Twice the same id, by a caller that did not compose.
func TestSameID(t *testing.T) {
	w := newWorld(t)
	a := document.Row{ID: "a", Name: "plain", Layer: &document.Layer{}}
	r := must(w.tree.Apply(w.ctx, []document.Row{a, a}))
	if len(r.Troubles) != 1 || !strings.Contains(r.Troubles[0].Err.Error(), "another row with the id a") {
		t.Errorf("troubles %v", r.Troubles)
	}
	if _, err := w.tree.Apply(w.ctx, []document.Row{a, a}); err == nil {
		t.Error("not refused")
	}
}

// 204, and what users reported: a boot does not end with a row, nor wait for one that hangs.
func TestBoot(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Patience = time.Second })
	w.files["bad.js"] = "nonsense"
	rows := must(rowsOf(`
- {id: good, name: p, config: {value: good}}
- {id: fails, name: p, config: {fail: true}}
- {id: hangs, name: p, config: {value: hangs, hang: true}}
- {id: unknown, name: unknown}
- {id: config, name: p, config: {number: 10}}
- {id: broken, name: broken}
- {id: file, name: ./bad.js}
- {id: waits, name: p, config: {needs: [nothing]}}
- {id: last, name: p, config: {value: last}}
`))
	r := must(w.tree.Apply(w.ctx, rows))
	w.states("good fails hangs unknown config broken file waits last",
		"running", "failed", "loading", "skipped", "skipped", "skipped", "skipped", "pending for nothing", "running")
	var ids []string
	for _, trouble := range r.Troubles {
		ids = append(ids, trouble.ID)
		if !strings.Contains(trouble.Err.Error(), "cordis.yml:") {
			t.Errorf("the trouble of %s has no place: %v", trouble.ID, trouble.Err)
		}
		if got := errors.Is(trouble.Err, ErrStarting); got != (trouble.ID == "hangs") {
			t.Errorf("%s goes on starting: %t, %v", trouble.ID, got, trouble.Err)
		}
	}
	if diff := cmp.Diff("unknown config broken file fails hangs", strings.Join(ids, " ")); diff != "" {
		t.Error(diff)
	}
	for _, info := range w.tree.Rows() {
		if (info.State == "failed" || info.State == "skipped") == (info.Reason == "") {
			t.Errorf("row %s is %s for %q", info.ID, info.State, info.Reason)
		}
	}
	close(w.hang) // it starts late
	if err := w.fiber("hangs").Await(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.states("hangs", "running")
}

// What is down is tried again by each transaction, and refuses none that leaves it.
func TestTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.files["bad.js"] = "nonsense"
	doc := "- {id: bad, name: ./bad.js}\n- {id: a, name: p, config: {tools: [t]}}\n- {id: b, name: p, config: {needs: [s], tools: [t]}}\n"
	w.must(doc)
	w.states("bad a b", "skipped", "running", "pending for s")
	s := must(w.root.Provide("s", 1)) // b starts, and finds the name taken
	if err := w.tree.Settle(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.states("b", "failed")
	r := w.must(doc + "- {id: c, name: p}\n")
	if len(r.Troubles) != 2 {
		t.Errorf("troubles: %v", r.Troubles)
	}
	w.states("bad a b c", "skipped", "running", "failed", "running")
	w.refused(doc+"- {id: c, name: p, config: {fail: true}}\n", "row c")
	w.files["bad.js"] = "other nonsense"
	w.refused(doc, "row bad")
	w.files["bad.js"] = "{}"
	w.must(strings.ReplaceAll(doc, "- {id: a, name: p, config: {tools: [t]}}\n", ""))
	w.states("bad b", "running", "running")
	if err := s.Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
}

// A body that hangs refuses an edit after its time, even if it does not end.
func TestHangs(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Patience = time.Second })
	w.must("- {id: a, name: p}\n")
	_, err := w.apply("- {id: a, name: p, config: {hang: true}}\n")
	if err == nil || !strings.Contains(err.Error(), "row a (plugin p, cordis.yml:1): it has not started within 1s") {
		t.Errorf("error %v", err)
	}
	w.states("a", "running")
	w.must("- {id: a, name: p, config: {number: 2}}\n")
	close(w.hang)
	for _, f := range w.root.Runtime().Fibers() { // the one that hung ends when it can
		if f.State() != cordis.Active {
			_, _ = f.Dispose(w.ctx)
		}
	}
}

// 203: a plugin that ends itself is told, and is not mounted again by an edit elsewhere.
// One that fails later is told, too.
func TestEndsItself(t *testing.T) {
	w := newWorld(t)
	doc := "- {id: a, name: p, config: {value: a}}\n- {id: b, name: p}\n"
	w.must(doc)
	child := must(w.fiber("b").Context().Mount(&cordis.Plugin{Name: "child", Apply: func(*cordis.Context, any) error { return nil }}, nil))
	if _, err := child.Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := w.fiber("a").Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.states("a b", "disposed", "running")
	w.must(doc + "- {id: c, name: p}\n")
	w.states("a", "disposed")
	w.expect("+a -a")
	w.must("- {id: a, name: p, config: {value: again}}\n")
	w.states("a", "running")
}

// A plugin file whose new version waits does not end one that serves; Go plugins may.
func TestWaitingFile(t *testing.T) {
	w := newWorld(t)
	doc := "- {id: f, name: ./f.js}\n- {id: a, name: p, config: {value: a}}\n"
	w.files["f.js"] = `{"value":"1","tools":["t"]}`
	w.must(doc)
	w.files["f.js"] = `{"value":"2","needs":["svc"]}`
	w.refused(doc, "row f", "its new version waits for the service svc")
	w.took()
	w.must(doc + "- {id: p, name: p, config: {value: P, provides: [svc]}}\n") // it comes with the edit
	w.expect("+2 +P -1 open:f.js svc=P")
	w.must(doc) // and goes again: what did not change may wait
	w.states("f", "pending for svc")
	w.files["f.js"] = `{"value":"3","needs":["other"]}`
	w.must(doc)
	w.states("f", "pending for other")
	w.must(strings.Replace(doc, "value: a", "value: a, needs: [svc]", 1))
	w.states("a", "pending for svc")
}

// 220-228, 232-236, 240: files, edited any number of times; the others are not touched.
func TestFiles(t *testing.T) {
	w := newWorld(t)
	doc := "- {id: f, name: ./f.js}\n- {id: g, name: ./g.js, config: {x: 1}}\n"
	w.files["f.js"], w.files["g.js"] = `{"value":"f0","tools":["tf"]}`, `{"value":"g0","provides":["svc"]}`
	w.must(doc)
	g := w.fiber("g")
	w.took()
	for i := range 5 {
		w.files["f.js"] = fmt.Sprintf(`{"value":"f%d","tools":["tf"]}`, i+1)
		w.must(doc)
		w.expect(fmt.Sprintf("+f%d -f%d open:f.js", i+1, i))
		if names := w.toolNames(); names != "tf" {
			t.Errorf("tools %q", names)
		}
	}
	if w.fiber("g") != g {
		t.Error("the other file was touched")
	}
	w.files["f.js"], w.files["g.js"] = `{"value":"f9"}`, `{"value":"g9","provides":["svc"]}`
	r := w.must(doc)
	if diff := cmp.Diff([]string{"f", "g"}, r.Remounted); diff != "" {
		t.Error(diff)
	}
	if names := w.toolNames(); names != "" {
		t.Errorf("tools %q are left", names)
	}
	w.must(strings.Replace(doc, "name: ./f.js", "name: ./f.js, disabled: true", 1))
	w.states("f", "disabled")
}

// A file takes over what its opener lets it, and tells whom it replaced.
func TestTakesOver(t *testing.T) {
	w := newWorld(t)
	w.must("[]\n")
	temporary := must(w.root.Mount(&cordis.Plugin{Name: "temporary", Apply: func(c *cordis.Context, _ any) error {
		_, err := w.tools.Register(c, toolOf("greet", "old"))
		return err
	}}, nil))
	if err := temporary.Await(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.refused("- {id: a, name: p, config: {value: new, tools: [greet]}}\n", "greet") // no file
	w.files["greet.js"] = `{"value":"new","tools":["greet"]}`
	w.took()
	w.must("- {id: greet, name: ./greet.js}\n")
	w.expect("+new open:greet.js retired:temporary")
	if v, _ := w.tools.Get("greet", nil); v == nil || v.Description != "new" {
		t.Errorf("greet is %+v", v)
	}
	if _, err := temporary.Dispose(w.ctx); err != nil || temporary.State() != cordis.Disposed {
		t.Errorf("the temporary plugin is %s, %v", temporary.State(), err)
	}
}

// No moment in which a tool is missing or doubled, and every call is answered by one of
// the two versions.
func TestNoGap(t *testing.T) {
	w := newWorld(t)
	doc := "- {id: f, name: ./f.js}\n- {id: p, name: p, config: {provides: [svc]}}\n"
	w.files["f.js"] = `{"value":"0","tools":["t"],"needs":["svc"]}`
	w.must(doc)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got := w.toolNames(); got != "t" {
					t.Errorf("tools %q", got)
					return
				}
				if r := w.tools.Execute(w.ctx, tool.Call{Name: "t", Arguments: lossless.Obj().Encode()}); r.IsError {
					t.Errorf("a call failed: %v", r.Content)
					return
				}
			}
		})
	}
	for i := range 20 {
		w.files["f.js"] = fmt.Sprintf(`{"value":"%d","tools":["t"],"needs":["svc"]}`, i+1)
		if _, err := w.apply(doc); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	wg.Wait()
}

// 221, 227, 233: who depends on what changed starts once more, and nobody else.
func TestDependents(t *testing.T) {
	w := newWorld(t)
	doc := `
- {id: p, name: p, config: {value: %s, provides: [svc]}}
- {id: a, name: p, config: {value: a, needs: [svc]}}
- {id: b, name: p, config: {value: b, needs: [svc]}}
- {id: other, name: p, config: {value: other}}
`
	w.must(strings.Replace(doc, "%s", "one", 1))
	w.took()
	w.must(strings.Replace(doc, "%s", "two", 1))
	w.expect("+a +b +two -a -b -one svc=two svc=two")
}

// A row of a static plugin changes at the next start.
func TestStatic(t *testing.T) {
	w := newWorld(t)
	w.must("- {id: s, name: static, config: {value: s}}\n- {id: a, name: p}\n")
	f := w.fiber("s")
	for _, edit := range []struct{ doc, state string }{
		{"- {id: s, name: static, config: {value: other}}\n", "running later"},
		{"- {id: s, name: static, disabled: true, config: {value: s}}\n", "running later"},
		{"- {id: s, name: p, config: {value: s}}\n", "running later"},
		{"[]\n", "running later"},
		{"- {id: s, name: static, config: {value: s}}\n", "running"},
	} {
		r := w.must(edit.doc)
		w.states("s", edit.state)
		if w.fiber("s") != f {
			t.Fatalf("%s mounted it anew", edit.doc)
		}
		if r.Changed() && len(r.Removed) != 1 {
			t.Errorf("%s: %+v", edit.doc, r)
		}
	}
	w.expect("+s")
	w.refused("- {id: s, name: static, config: {number: 10}}\n", "number")
}

// 24h, 152: edits during a reload are made one after the other; the last one holds.
func TestEditsDuringReload(t *testing.T) {
	w := newWorld(t)
	w.must("- {id: a, name: p, config: {value: a0}}\n")
	first := make(chan error, 1)
	go func() {
		_, err := w.tree.Apply(w.ctx, must(rowsOf("- {id: a, name: p, config: {value: a1, hang: true}}\n")))
		first <- err
	}()
	for v := range w.begun { // until the first reload is under way
		if v == "a1" {
			break
		}
	}
	gone, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.tree.Apply(gone, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("an edit that does not wait: %v", err)
	}
	second := make(chan error, 1)
	go func() {
		_, err := w.tree.Apply(w.ctx, must(rowsOf("- {id: a, name: p, config: {value: a2}}\n- {id: b, name: p}\n")))
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(w.hang)
	if err := errors.Join(<-first, <-second, w.tree.Settle(w.ctx)); err != nil {
		t.Fatal(err)
	}
	w.states("a b", "running", "running")
	w.expect("+a0 +a1 +a2 -a0 -a1")
}

// Prepare changes nothing, and Abort leaves nothing.
func TestPrepare(t *testing.T) {
	w := newWorld(t)
	w.must("- {id: a, name: p, config: {value: a, tools: [t], provides: [svc]}}\n")
	before := w.digest(true)
	rows := must(rowsOf("- {id: a, name: p, config: {value: b, tools: [t, u], provides: [svc]}}\n"))
	change := must(w.tree.Prepare(w.ctx, rows))
	if v, _ := w.root.Get("svc"); v != "a" || w.toolNames() != "t" {
		t.Errorf("prepared: svc %v, tools %s", v, w.toolNames())
	}
	change.Abort(w.ctx)
	change.Abort(w.ctx)
	if _, err := change.Commit(w.ctx); !errors.Is(err, ErrOver) {
		t.Errorf("commit of what is over: %v", err)
	}
	if diff := cmp.Diff(before, w.digest(true)); diff != "" {
		t.Error(diff)
	}
	change = must(w.tree.Prepare(w.ctx, rows))
	if _, err := change.Commit(w.ctx); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.root.Get("svc"); v != "b" || w.toolNames() != "t u" {
		t.Errorf("committed: svc %v, tools %s", v, w.toolNames())
	}
}

// The rows end with the fiber that they are on; what comes then is a boot.
func TestFiberUnloads(t *testing.T) {
	w := newWorld(t)
	place := must(w.root.Mount(&cordis.Plugin{Name: "place", Apply: func(*cordis.Context, any) error { return nil }}, nil))
	if err := place.Await(w.ctx); err != nil {
		t.Fatal(err)
	}
	realms := NewRealms()
	tree := must(New(place.Context(), Options{Catalog: w.shop, Realms: realms}))
	rows := must(rowsOf("- {id: a, name: p, isolate: {x: l}, config: {value: a}}\n"))
	must(tree.Apply(w.ctx, rows))
	change := must(tree.Prepare(w.ctx, must(rowsOf("- {id: a, name: p, config: {value: b}}\n"))))
	if err := place.Restart(w.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := change.Commit(w.ctx); !errors.Is(err, ErrEnded) {
		t.Errorf("commit: %v", err)
	}
	if n := len(tree.Rows()); n != 0 || len(realms.realms) != 0 {
		t.Errorf("%d rows and %d realms are left", n, len(realms.realms))
	}
	must(tree.Apply(w.ctx, rows))
	if f, ok := tree.Fiber("a"); !ok || f.State() != cordis.Active {
		t.Error("the row is not mounted again")
	}
	if err := tree.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := tree.Apply(w.ctx, rows); !errors.Is(err, ErrClosed) {
		t.Errorf("apply after close: %v", err)
	}
	if _, err := place.Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := New(place.Context(), Options{Catalog: w.shop}); !errors.Is(err, cordis.ErrInactive) {
		t.Errorf("a tree on a fiber that is gone: %v", err)
	}
}

// 206-208, 211, 212, 214-217: what later layers and an included file say of rows is one
// composition for the tree: each edit applies all of it anew.
func TestLayers(t *testing.T) {
	w := newWorld(t)
	base := "- {id: a, name: p, config: {value: a}}\n- {id: g, group: true, config: []}\n- {id: i, name: include, config: {path: ./more.yml, patches: [{id: x, config: {value: patched}}]}}\n"
	more := "- {id: x, name: p, config: {value: x}}\n- {id: y, name: p, config: {value: y}}\n"
	apply := func(over, last string) {
		t.Helper()
		var docs []*document.Document
		for _, l := range []document.Layer{{Name: "built-in", Text: []byte(base)}, {Name: "cordis.yml", Kind: document.User, Text: []byte(over)}, {Name: "last.yml", Kind: document.Config, Text: []byte(last)}} {
			d, faults := document.Parse(l)
			if err := faults.Err(); err != nil {
				t.Fatal(err)
			}
			docs = append(docs, d)
		}
		c, faults := document.Compose(docs, document.Options{Open: func(*document.Layer, string) (document.Layer, error) {
			return document.Layer{Name: "more.yml", Text: []byte(more)}, nil
		}})
		if err := faults.Err(); err != nil {
			t.Fatal(err)
		}
		must(w.tree.Apply(w.ctx, c.Rows))
		if err := w.tree.Settle(w.ctx); err != nil {
			t.Fatal(err)
		}
	}
	apply("[]\n", "[]\n")
	w.expect("+a +patched +y")
	apply("- {id: a, disabled: true}\n", "[]\n")
	w.expect("-a")
	apply("- {id: a, config: {value: b}}\n- {id: g, insert: [{id: n, name: p, config: {value: n}}]}\n", "- {id: n, config: {value: m}}\n- {id: new, name: p, config: {value: new}}\n")
	w.expect("+b +m +new")
	w.states("a g n i i:x i:y new", "running", "group", "running", "group", "running", "running", "running")
	more = "- {id: x, name: p, config: {value: x2}}\n- {id: z, name: p, config: {value: z}}\n"
	apply("[]\n", "[]\n")
	w.expect("+a +z -b -m -new -y") // x is patched as before
}
