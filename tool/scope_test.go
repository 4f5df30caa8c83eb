package tool

import (
	"fmt"
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

// TestVisibilityModel drives random registrations, restrictions and disposals
// and compares what each scope sees with the algorithm written down plainly.
func TestVisibilityModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		defer func() { _, _ = w.root.Fiber().Dispose(w.ctx()) }()
		scopes := []*Scope{nil}
		for i := range rapid.IntRange(1, 5).Draw(rt, "scopes") {
			parent := rapid.SampledFrom(scopes).Draw(rt, "parent")
			scopes = append(scopes, NewScope(fmt.Sprintf("s%d", i), parent))
		}
		type rule struct {
			scope  *Scope
			filter Filter
		}
		type standing struct {
			fiber *cordis.Fiber
			tool  *goneKey
			rule  *rule
		}
		var all []standing
		sees := func(s *Scope) []string {
			seen := map[string]bool{}
			for _, st := range all {
				switch {
				case st.tool == nil:
				case st.tool.scope != nil:
					if s.Within(st.tool.scope) {
						seen[st.tool.name] = true
					}
				default:
					admitted := true
					for _, other := range all {
						if x := other.rule; x != nil && s.Within(x.scope) {
							admitted = admitted && (x.filter.Allow == nil || slices.Contains(x.filter.Allow, st.tool.name)) &&
								!slices.Contains(x.filter.Deny, st.tool.name)
						}
					}
					if admitted {
						seen[st.tool.name] = true
					}
				}
			}
			names := []string{}
			for n := range seen {
				names = append(names, n)
			}
			slices.Sort(names)
			return names
		}
		has := func(k goneKey) bool {
			return slices.ContainsFunc(all, func(st standing) bool { return st.tool != nil && *st.tool == k })
		}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			s := rapid.SampledFrom(scopes).Draw(rt, "scope")
			name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "name")
			switch rapid.IntRange(0, 3).Draw(rt, "action") {
			case 0, 1:
				taken := has(goneKey{s, name})
				var err error
				f := w.plugin(WithScope(w.root, s), "o", func(c *cordis.Context) error { _, err = w.r.Register(c, def(name)); return nil })
				if taken != (err != nil) {
					rt.Fatalf("register %s in %s: taken %v, error %v", name, s.Name(), taken, err)
				}
				if err == nil {
					all = append(all, standing{fiber: f, tool: &goneKey{s, name}})
				}
			case 2:
				filter := Filter{Deny: []string{name}}
				if rapid.Bool().Draw(rt, "allow") {
					filter = Filter{Allow: []string{name}}
				}
				legal := s != nil && has(goneKey{nil, name})
				var err error
				f := w.plugin(WithScope(w.root, s), "o", func(c *cordis.Context) error { _, err = w.r.Restrict(c, filter); return nil })
				if legal != (err == nil) {
					rt.Fatalf("restrict %v in %s: legal %v, error %v", filter, s.Name(), legal, err)
				}
				if err == nil {
					all = append(all, standing{fiber: f, rule: &rule{s, filter}})
				}
			case 3:
				if len(all) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "which")
				w.dispose(all[i].fiber)
				all = slices.Delete(all, i, i+1)
			}
			for _, s := range scopes {
				want := sees(s)
				if diff := cmp.Diff(want, w.names(s)); diff != "" {
					rt.Fatalf("%s: %s", s.Name(), diff)
				}
				for _, n := range []string{"a", "b", "c", "d"} {
					if _, ok := w.r.Get(n, s); ok != slices.Contains(want, n) {
						rt.Fatalf("%s: get %s: %v", s.Name(), n, ok)
					}
				}
			}
		}
	})
}
