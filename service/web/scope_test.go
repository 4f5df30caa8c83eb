package web

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/tool"
)

func TestProvidersAreSeenInTheirScope(t *testing.T) {
	w := newWorld(t, Config{})
	outer := tool.NewScope("preset", nil)
	mine, other := tool.NewScope("mine", outer), tool.NewScope("other", outer)
	register := func(s *tool.Scope, id string) *cordis.Handle {
		t.Helper()
		h, err := w.web.RegisterSearchProvider(tool.WithScope(w.hub.c, s), saying(id))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	search := func(s *tool.Scope) (string, error) {
		r, err := w.web.Search(tool.WithActor(t.Context(), tool.Actor{Scope: s}), SearchRequest{Query: "q"})
		return r.Content, err
	}
	register(mine, "a")
	for name, c := range map[string]struct {
		from *tool.Scope
		want []string
	}{
		"own":    {mine, []string{"a"}},
		"beside": {other, []string{}},
		"above":  {outer, []string{}},
		"global": {nil, []string{}},
		"below":  {tool.NewScope("child", mine), []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, w.web.SearchProviders(c.from)); diff != "" {
				t.Error(diff)
			}
			got, err := search(c.from)
			if len(c.want) == 0 {
				wantCode(t, err, CodeUnavailable)
			} else if err != nil || got != "a" {
				t.Errorf("search: %q, %v", got, err)
			}
		})
	}
	if _, err := w.web.RegisterSearchProvider(tool.WithScope(w.hub.c, tool.NewScope("child", mine)), saying("a")); err == nil {
		t.Error("an id that is seen from above was taken again")
	} else {
		wantCode(t, err, CodeDuplicateProvider)
	}
	register(other, "a") // nobody sees both
	register(outer, "a") // the nearer wins
	if got := w.web.SearchProviders(mine); len(got) != 1 {
		t.Errorf("two of one id are seen: %v", got)
	}
	if got, err := search(outer); err != nil || got != "a" {
		t.Errorf("search above: %q, %v", got, err)
	}
}

// TestPluginSearchesFromItsScope: what a plugin sees does not depend on who calls it.
func TestPluginSearchesFromItsScope(t *testing.T) {
	w := newWorld(t, Config{})
	s := tool.NewScope("s", nil)
	if _, err := w.web.RegisterSearchProvider(tool.WithScope(w.hub.c, s), saying("a")); err != nil {
		t.Fatal(err)
	}
	in := &plugins{w.web, tool.WithScope(w.hub.c, s)}
	out := &plugins{w.web, w.hub.c}
	if _, err := in.Search(t.Context(), SearchTarget{SearchRequest{Query: "q"}}, nil); err != nil {
		t.Error(err)
	}
	_, err := out.Search(tool.WithActor(t.Context(), tool.Actor{Scope: s}), SearchTarget{SearchRequest{Query: "q"}}, nil)
	wantCode(t, err, CodeUnavailable)
}

func TestProvidersChanged(t *testing.T) {
	w := newWorld(t, Config{})
	var got []string
	if _, err := ProvidersChanged.On(w.root, func(_ context.Context, c ProviderChange) {
		got = append(got, fmt.Sprintf("%s %s %s %t %v", c.Kind, c.ID, c.Scope.Name(), c.Present, w.web.SearchProviders(c.Scope)))
	}); err != nil {
		t.Fatal(err)
	}
	s := tool.NewScope("s", nil)
	h, err := w.web.RegisterSearchProvider(tool.WithScope(w.hub.c, s), saying("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.web.RegisterFetchProvider(w.hub.c, saying("b")); err != nil {
		t.Fatal(err)
	}
	if err := h.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"search a s true [a]", "fetch b global true []", "search a s false []"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
