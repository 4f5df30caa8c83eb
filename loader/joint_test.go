package loader

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
)

// trees are a host's and another one that depends on it.
func trees(t *testing.T) (w *world, other *Tree) {
	w = newWorld(t)
	other = must(New(w.root, Options{Catalog: w.shop, Opener: w.shop, Realms: w.tree.o.Realms}))
	w.files["f.js"] = `{"value":"f1","tools":["t"]}`
	w.must("- {id: a, name: p, config: {value: a1, provides: [svc]}}\n")
	must(other.Apply(w.ctx, must(rowsOf("- {id: f, name: ./f.js}\n- {id: c, name: p, config: {value: c, needs: [svc]}}\n"))))
	if err := other.Settle(w.ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Close(w.ctx); err != nil {
			t.Error(err)
		}
	})
	w.took()
	return w, other
}

// One edit over two trees: the second sees what the first is about to have, and both are
// swapped in one step.
func TestJoin(t *testing.T) {
	w, other := trees(t)
	w.files["f.js"] = `{"value":"f2","tools":["t"],"needs":["new"]}` // which waits, were it not for the first tree
	first := must(w.tree.Prepare(w.ctx, must(rowsOf("- {id: a, name: p, config: {value: a2, provides: [svc, new]}}\n"))))
	second := must(first.Join(w.ctx, other, must(rowsOf("- {id: f, name: ./f.js}\n- {id: c, name: p, config: {value: c, needs: [svc]}}\n"))))
	if v, _ := w.root.Get("svc"); v != "a1" {
		t.Errorf("svc is %v before the commit", v)
	}
	if _, ok := w.root.Get("new"); ok {
		t.Error("what is staged can be seen")
	}
	seen := []any{}
	must(cordis.Committing.On(w.root, func(context.Context, *cordis.Stage) {
		v, _ := w.root.Get("svc")
		d, _ := w.tools.Get("t", nil)
		seen = append(seen, v, d.Description)
	}))
	for i, change := range []*Change{first, second, first} {
		r, err := change.Commit(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{[]string{"a", "f", "a"}[i]}, r.Remounted); diff != "" {
			t.Error(diff)
		}
	}
	if len(seen) != 4 { // one swap: once before, once after
		t.Errorf("seen %v", seen)
	}
	if err := errors.Join(w.tree.Settle(w.ctx), other.Settle(w.ctx)); err != nil {
		t.Fatal(err)
	}
	w.expect("+a2 +c +f2 -a1 -c -f1 new=a2 open:f.js svc=a2")
}

// A failure in the second tree leaves the first as it was.
func TestJoinRefused(t *testing.T) {
	w, other := trees(t)
	before := w.digest(true)
	for _, late := range []bool{false, true} {
		first := must(w.tree.Prepare(w.ctx, must(rowsOf("- {id: a, name: p, config: {value: a2, provides: [svc]}}\n"))))
		text := "- {id: f, name: ./f.js}\n- {id: c, name: p, config: {value: c, needs: [svc]}}\n"
		if late {
			second := must(first.Join(w.ctx, other, must(rowsOf(text))))
			second.Abort(w.ctx)
		} else if _, err := first.Join(w.ctx, other, must(rowsOf(text+"- {id: x, name: p, config: {fail: true}}\n"))); err == nil || !strings.Contains(err.Error(), "row x") {
			t.Errorf("error %v", err)
		}
		if _, err := first.Commit(w.ctx); !errors.Is(err, ErrOver) {
			t.Errorf("commit of the first: %v", err)
		}
		if _, err := first.Join(w.ctx, other, nil); !errors.Is(err, ErrOver) {
			t.Errorf("join of what is over: %v", err)
		}
		first.Abort(w.ctx)
		if diff := cmp.Diff(before, w.digest(true)); diff != "" {
			t.Error(diff)
		}
	}
}

// A tree that ends while the edit is made, as that of an agent may, is left out of it.
func TestJoinEnded(t *testing.T) {
	const rows = "- {id: b, name: p, config: {value: b}}\n"
	for _, when := range []string{"before", "after"} {
		t.Run(when, func(t *testing.T) {
			w := newWorld(t)
			w.must("- {id: a, name: p, config: {value: a1}}\n")
			agent := must(w.root.Mount(&cordis.Plugin{Name: "agent", Apply: func(*cordis.Context, any) error { return nil }}, nil))
			if err := agent.Await(w.ctx); err != nil {
				t.Fatal(err)
			}
			tree := must(New(agent.Context(), Options{Catalog: w.shop}))
			must(tree.Apply(w.ctx, must(rowsOf(rows))))
			end := func() {
				if _, err := agent.Dispose(w.ctx); err != nil {
					t.Fatal(err)
				}
			}
			first := must(w.tree.Prepare(w.ctx, must(rowsOf("- {id: a, name: p, config: {value: a2}}\n"))))
			if when == "before" {
				end()
			}
			second, err := first.Join(w.ctx, tree, must(rowsOf(strings.ReplaceAll(rows, "value: b", "value: b2"))))
			if when == "before" {
				if !errors.Is(err, ErrEnded) {
					t.Errorf("join: %v", err)
				}
			} else {
				end()
			}
			if r, err := first.Commit(w.ctx); err != nil || len(r.Remounted) != 1 {
				t.Errorf("commit of the first: %+v, %v", r, err)
			}
			if second != nil {
				if _, err := second.Commit(w.ctx); !errors.Is(err, ErrEnded) {
					t.Errorf("commit of the second: %v", err)
				}
			}
			if err := w.tree.Settle(w.ctx); err != nil {
				t.Fatal(err)
			}
			if v := w.fiber("a").State(); v != cordis.Active {
				t.Errorf("a is %s", v)
			}
		})
	}
}
