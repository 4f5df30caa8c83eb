package tool

import (
	stdcmp "cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestScope(t *testing.T) {
	project := NewScope("project", nil)
	agent := NewScope("agent", project)
	tests := []struct {
		name         string
		inner, outer *Scope
		want         bool
	}{
		{"itself", agent, agent, true}, {"parent", agent, project, true}, {"global", agent, nil, true},
		{"global-in-global", nil, nil, true}, {"not-downwards", project, agent, false}, {"global-in-scope", nil, agent, false},
	}
	for _, tt := range tests {
		if got := tt.inner.Within(tt.outer); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
	var global *Scope
	if global.Name() != "global" || global.Parent() != nil || agent.Parent() != project || agent.Name() != "agent" {
		t.Error("names or parents are wrong")
	}
}

func TestRestrictRefuses(t *testing.T) {
	w := newWorld(t)
	s := NewScope("s", nil)
	c := WithScope(w.root, s)
	w.owner(w.root, "global", def("a"), def("b"))
	w.owner(c, "local", def("mine"))
	tests := []struct {
		name   string
		c      *cordis.Context
		filter Filter
		want   string
	}{
		{"global-layer", w.root, Filter{Deny: []string{"a"}}, "only a scope can be restricted"},
		{"empty", c, Filter{}, "the filter is empty"},
		{"unknown", c, Filter{Allow: []string{"a", "x"}}, `"x" is not a global tool; global tools: a, b`},
		{"local", c, Filter{Deny: []string{"mine"}}, `"mine" belongs to a scope`},
		{"reserved", c, Filter{Deny: []string{"run_code"}}, `"run_code" is reserved`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := w.r.Restrict(tt.c, tt.filter); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRestrict(t *testing.T) {
	w := newWorld(t)
	preset := NewScope("preset", nil)
	agent := NewScope("agent", preset)
	w.owner(w.root, "global", def("a"), def("b"), def("c"))
	w.owner(WithScope(w.root, preset), "local", def("mine"))
	var hs handles
	f := w.plugin(w.root, "narrow", func(c *cordis.Context) error {
		hs.add(w.r.Restrict(WithScope(c, preset), Filter{Deny: []string{"a"}}))
		hs.add(w.r.Restrict(WithScope(c, agent), Filter{Allow: []string{"a", "b"}}))
		return nil
	})
	check := func(s *Scope, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, w.names(s)); diff != "" {
			t.Errorf("%s: %s", s.Name(), diff)
		}
	}
	check(nil, "a", "b", "c")
	check(preset, "b", "c", "mine")
	check(agent, "b", "mine")
	w.owner(w.root, "later", def("d"))
	check(preset, "b", "c", "d", "mine") // deny admits what comes later
	check(agent, "b", "mine")            // allow does not
	if got := text(w.r.Execute(w.ctx(), Call{Name: "a", Scope: agent})); got != `Error: unknown tool "a"` {
		t.Errorf("a masked tool can be called: %s", got)
	}
	for name, want := range map[string]string{
		"min":  `Error: unknown tool "min"; did you mean "mine"?`,
		"Mine": `Error: unknown tool "Mine"; did you mean "mine"?`,
		"mint": `Error: unknown tool "mint"; did you mean "mine"?`,
		"most": `Error: unknown tool "most"`,
	} {
		if got := text(w.r.Execute(w.ctx(), Call{Name: name, Scope: agent})); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	w.must(hs[1].Dispose(w.ctx()))
	check(agent, "b", "c", "d", "mine")
	w.dispose(f)
	check(agent, "a", "b", "c", "d", "mine")
}

func TestLayersGoWhenEmpty(t *testing.T) {
	w := newWorld(t)
	s := NewScope("s", nil)
	f := w.plugin(WithScope(w.root, s), "o", func(c *cordis.Context) error {
		if _, err := w.r.Register(c, def("a")); err != nil {
			return err
		}
		_, err := w.r.Guard(c, func(*Exec) string { return "" })
		return err
	})
	if w.r.layer(s) == nil {
		t.Fatal("no layer")
	}
	w.dispose(f)
	w.r.layers.Range(func(key, _ any) bool {
		t.Errorf("a layer is left: %v", key)
		return true
	})
}

// model is what the registry should know, written down plainly.
type model struct {
	tools []goneKey
	rules []rule
}

type rule struct {
	scope  *Scope
	filter Filter
}

func (m *model) has(k goneKey) bool { return slices.Contains(m.tools, k) }

func (m *model) admits(name string, s *Scope) bool {
	for _, x := range m.rules {
		if !s.Within(x.scope) {
			continue
		}
		if x.filter.Allow != nil && !slices.Contains(x.filter.Allow, name) || slices.Contains(x.filter.Deny, name) {
			return false
		}
	}
	return true
}

func (m *model) sees(s *Scope) []string {
	names := []string{}
	for _, k := range m.tools {
		if k.scope != nil && s.Within(k.scope) || k.scope == nil && m.admits(k.name, s) {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestVisibilityModel drives random registrations, restrictions and disposals
// and compares what each scope sees with the model.
func TestVisibilityModel(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		defer func() { _, _ = w.root.Fiber().Dispose(w.ctx()) }()
		scopes := []*Scope{nil}
		for i := range rapid.IntRange(1, 5).Draw(rt, "scopes") {
			parent := rapid.SampledFrom(scopes).Draw(rt, "parent")
			scopes = append(scopes, NewScope(fmt.Sprintf("s%d", i), parent))
		}
		var m model
		var undo []func()
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s := rapid.SampledFrom(scopes).Draw(rt, "scope")
			name := rapid.SampledFrom(names).Draw(rt, "name")
			switch rapid.IntRange(0, 3).Draw(rt, "action") {
			case 0, 1:
				k := goneKey{s, name}
				h, err := w.r.Register(WithScope(w.root, s), def(name))
				if m.has(k) != (err != nil) {
					rt.Fatalf("register %s in %s: %v", name, s.Name(), err)
				}
				if err == nil {
					m.tools = append(m.tools, k)
					undo = append(undo, func() { w.must(h.Dispose(w.ctx())); m.tools = remove(m.tools, k) })
				}
			case 2:
				x := rule{s, Filter{Deny: []string{name}}}
				if rapid.Bool().Draw(rt, "allow") {
					x.filter = Filter{Allow: []string{name}}
				}
				h, err := w.r.Restrict(WithScope(w.root, s), x.filter)
				if legal := s != nil && m.has(goneKey{nil, name}); legal != (err == nil) {
					rt.Fatalf("restrict %v in %s: %v", x.filter, s.Name(), err)
				}
				if err == nil {
					m.rules = append(m.rules, x)
					undo = append(undo, func() {
						w.must(h.Dispose(w.ctx()))
						i := slices.IndexFunc(m.rules, func(y rule) bool { return reflect.DeepEqual(x, y) })
						m.rules = slices.Delete(m.rules, i, i+1)
					})
				}
			case 3:
				if len(undo) > 0 {
					i := rapid.IntRange(0, len(undo)-1).Draw(rt, "which")
					undo[i]()
					undo = slices.Delete(undo, i, i+1)
				}
			}
			compareVisible(rt, w, &m, scopes, names)
		}
	})
}

func compareVisible(rt *rapid.T, w *world, m *model, scopes []*Scope, names []string) {
	for _, s := range scopes {
		want := m.sees(s)
		if diff := cmp.Diff(want, w.names(s)); diff != "" {
			rt.Fatalf("%s: %s", s.Name(), diff)
		}
		for _, n := range names {
			if _, ok := w.r.Get(n, s); ok != slices.Contains(want, n) {
				rt.Fatalf("%s: get %s: %v", s.Name(), n, ok)
			}
		}
	}
}

// TestOrderModel registers and takes back tools of the composition and of
// mounts at random and compares the lists with a plain sort.
func TestOrderModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		defer func() { _, _ = w.root.Fiber().Dispose(w.ctx()) }()
		contexts := []*cordis.Context{w.root}
		for _, n := range []int{7, 2, 11} {
			contexts = append(contexts, WithMount(w.root, Mount{Number: n, ID: fmt.Sprintf("dyn-%d", n)}))
		}
		numbers := []int{0, 7, 2, 11}
		type key struct{ mount, name int }
		first := map[key]int{} // when a mount first registered a name
		standing := map[key]*cordis.Handle{}
		for step := range rapid.IntRange(1, 40).Draw(rt, "steps") {
			i := rapid.IntRange(0, 3).Draw(rt, "owner")
			k := key{numbers[i], i*100 + rapid.IntRange(0, 5).Draw(rt, "name")}
			if h := standing[k]; h != nil {
				w.must(h.Dispose(w.ctx()))
				delete(standing, k)
			} else {
				h, err := w.r.Register(contexts[i], def(fmt.Sprintf("t%03d", k.name)))
				w.must(err)
				standing[k] = h
				if _, ok := first[k]; !ok && k.mount != 0 {
					first[k] = step
				}
			}
			keys := slices.SortedFunc(maps.Keys(standing), func(a, b key) int {
				return stdcmp.Or(stdcmp.Compare(a.mount, b.mount), stdcmp.Compare(first[a], first[b]), stdcmp.Compare(a.name, b.name))
			})
			want, own := []string{}, map[int]int{}
			for _, k := range keys {
				want = append(want, fmt.Sprintf("t%03d", k.name))
				own[k.mount]++
			}
			if diff := cmp.Diff(want, w.names(nil)); diff != "" {
				rt.Fatal(diff)
			}
			for i, c := range contexts[1:] {
				views := w.r.ListMount(c)
				if len(views) != own[numbers[i+1]] {
					rt.Fatalf("mount %d lists %d tools", numbers[i+1], len(views))
				}
				at := slices.Index(want, append(views, &View{Name: "none"})[0].Name)
				for j, v := range views {
					if want[at+j] != v.Name {
						rt.Fatalf("mount %d lists %s at %d", numbers[i+1], v.Name, j)
					}
				}
			}
		}
		if w.r.ListMount(w.root) != nil {
			rt.Fatal("the composition is no mount")
		}
	})
}
