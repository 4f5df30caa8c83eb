package loader

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

const guardBase = "- {id: base, name: p, config: {value: v, tools: [bash, read]}}\n"

// sees compares the tools that are there.
func (w *world) sees(want string) {
	w.t.Helper()
	if got := w.toolNames(); got != want {
		w.t.Errorf("tools %q, want %q", got, want)
	}
}

// While a plugin that guards is not active, for whatever reason, its tools are absent:
// a guard that does not come up never leaves things as if it were not wanted.
func TestGuards(t *testing.T) {
	for _, c := range []struct{ name, row, state, tools string }{
		{"active", "name: p, config: {value: g}", "running", "bash read"},
		{"failed", "name: p, config: {fail: true}", "failed withholds", "read"},
		{"panicked", "name: p, config: {panic: true}", "failed withholds", "read"},
		{"parked", "name: p, config: {needs: [nothing]}", "pending for nothing withholds", "read"},
		{"hangs", "name: p, config: {hang: true}", "loading withholds", "read"},
		{"no_such_plugin", "name: nope", "skipped withholds", "read"},
		{"wrong_config", "name: p, config: {number: 10}", "skipped withholds", "read"},
		{"no_file", "name: ./no.js", "skipped withholds", "read"},
		{"broken_file", "name: ./bad.js", "skipped withholds", "read"},
		{"broken_constructor", "name: broken", "skipped withholds", "read"},
		{"ended_itself", "name: p, config: {end: true}", "disposed withholds", "read"},
		{"disabled", "name: p, disabled: true", "disabled", "bash read"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, func(o *Options) {
				if c.name == "hangs" {
					o.Patience = time.Second
				}
			})
			w.files["bad.js"] = "nonsense"
			must(w.tree.Apply(w.ctx, must(rowsOf(guardBase+"- {id: g, "+c.row+", guards: [bash]}\n"))))
			w.states("g", c.state)
			w.sees(c.tools)
			close(w.hang)
			w.must(guardBase) // without the row
			w.sees("bash read")
		})
	}
}

// A row that composing found a fault in guards, too: it is no row that a person disabled.
func TestGuardsFaulty(t *testing.T) {
	w := newWorld(t)
	rows, err := rowsOf(guardBase + "- {id: g, name: p, config: {value: '${env:NO_SUCH}'}, guards: all}\n")
	if err == nil {
		t.Fatal("there is no fault")
	}
	r := must(w.tree.Apply(w.ctx, rows))
	w.states("g", "skipped withholds")
	w.sees("")
	if len(r.Troubles) != 1 || !strings.Contains(r.Troubles[0].Err.Error(), "NO_SUCH") {
		t.Errorf("troubles %v", r.Troubles)
	}
}

// The tools are away before the first step of any plugin, and a call says why.
func TestGuardsBefore(t *testing.T) {
	for name, row := range map[string]string{
		"starting": "name: p, config: {needs: [svc]}",
		"skipped":  "name: nope",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			done := make(chan struct{})
			go func() {
				defer close(done)
				must(w.tree.Apply(w.ctx, must(rowsOf(guardBase+"- {id: slow, name: p, config: {value: slow, hang: true}}\n- {id: g, "+row+", guards: all}\n"))))
			}()
			for v := range w.begun {
				if v == "slow" {
					break
				}
			}
			if err := w.fiber("base").Await(w.ctx); err != nil {
				t.Fatal(err)
			}
			w.sees("")
			r := w.tools.Execute(w.ctx, tool.Call{Name: "bash", Arguments: lossless.Obj().Encode()})
			if text := r.Content[0].Text; !r.IsError || !strings.Contains(text, "the row g, which guards it, is not active") {
				t.Errorf("a call of a withheld tool: %s", text)
			}
			close(w.hang)
			<-done
			w.sees("")
		})
	}
}

// When the plugin leaves ACTIVE the tools go before it unwinds, and come back with it.
func TestGuardsFollow(t *testing.T) {
	w := newWorld(t)
	svc := must(w.root.Provide("svc", 1))
	w.must(guardBase + "- {id: g, name: p, config: {needs: [svc]}, guards: [bash]}\n")
	w.sees("bash read")
	during := ""
	must(w.fiber("g").Context().Defer("look", func(context.Context) error { during = w.toolNames(); return nil }))
	if err := svc.Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.states("g", "pending for svc withholds")
	w.sees("read")
	if during != "read" {
		t.Errorf("while it unwound there were %q", during)
	}
	must(w.root.Provide("svc", 2))
	if err := w.tree.Settle(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.sees("bash read")
	if err := w.fiber("g").Restart(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.sees("bash read")
	if _, err := w.fiber("g").Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.states("g", "disposed withholds")
	w.sees("read")
}

// An edit of the guard that is refused leaves the old one, and its tools; one that
// replaces it lets no tool go for a moment, one that makes it wait withholds.
func TestGuardsEdited(t *testing.T) {
	w := newWorld(t)
	doc := func(config, guards string) string {
		return guardBase + "- {id: g, name: p, config: {" + config + "}, guards: " + guards + "}\n"
	}
	var moves []string
	must(tool.Changed.On(w.root, func(_ context.Context, c tool.Change) {
		moves = append(moves, string(c.Action)+" "+c.Name)
	}))
	w.must(doc("value: v1", "[bash]"))
	moves = nil
	w.refused(doc("value: v1, fail: true", "[bash]"), "row g")
	w.must(doc("value: v2", "[bash]"))
	w.must(doc("value: v2", "all"))
	w.must(doc("value: v2", "[read]"))
	if len(moves) > 0 {
		t.Errorf("tools moved: %v", moves)
	}
	w.must(doc("value: v3, needs: [svc]", "[read]"))
	w.states("g", "pending for svc withholds")
	w.sees("bash")
	w.must(doc("value: v3, needs: [svc]", "all"))
	w.sees("")
	w.must(doc("value: v3, needs: [svc]", "[bash, read]"))
	w.sees("")
	w.must(guardBase + "- {id: g, name: p, disabled: true, guards: all}\n")
	w.sees("bash read")
	w.must(doc("needs: [svc]", "[bash]")) // a new one that waits
	w.sees("read")
	w.must(doc("needs: [svc]", "[]"))
	w.sees("bash read")
}

// A registry that comes later, with a row, is withheld from as well.
func TestGuardsLateRegistry(t *testing.T) {
	w := newWorld(t)
	w.must("- {id: g, name: p, config: {needs: [svc]}, guards: [bash]}\n" + guardBase)
	w.sees("read")
	if _, err := w.root.Runtime().Fibers()[0].Dispose(w.ctx); err != nil { // the registry's
		t.Fatal(err)
	}
	w.states("g", "pending for svc withholds")
	f := must(w.root.Mount(tool.Plugin(), nil))
	if err := f.Await(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.tools, _ = tool.Service.Get(w.root)
	if err := w.fiber("base").Restart(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.sees("read")
}

// Rows that are mounted in the body of the plugin that they are on.
func TestGuardsInBody(t *testing.T) {
	w := newWorld(t)
	var tree *Tree
	agent := must(w.root.Mount(&cordis.Plugin{Name: "agent", Apply: func(c *cordis.Context, _ any) (err error) {
		c = tool.WithScope(c, tool.NewScope("agent", nil))
		if tree, err = New(c, Options{Catalog: w.shop}); err != nil {
			return err
		}
		_, err = tree.Apply(c.Context(), must(rowsOf(guardBase+"- {id: g, name: p, config: {needs: [svc]}, guards: all}\n")))
		return err
	}}, nil))
	if err := agent.Await(w.ctx); err != nil {
		t.Fatal(err)
	}
	f, _ := tree.Fiber("base")
	scope := tool.ScopeOf(f.Context())
	if n := len(w.tools.List(scope)); n != 0 {
		t.Errorf("%d tools", n)
	}
	svc := must(w.root.Provide("svc", 1))
	if err := tree.Settle(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(w.tools.List(scope)); n != 2 {
		t.Errorf("%d tools, want 2", n)
	}
	if err := svc.Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(w.tools.List(scope)); n != 0 {
		t.Errorf("%d tools", n)
	}
	if _, err := agent.Dispose(w.ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(tree.Rows()); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}
