package web

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
)

// TestStage: a staged provider is not used before the commit, and takes the place of
// the replaced one then. Who follows the providers is told of it once.
func TestStage(t *testing.T) {
	w := newWorld(t, Config{})
	var told []string
	if _, err := ProvidersChanged.On(w.root, func(_ context.Context, c ProviderChange) {
		told = append(told, fmt.Sprintf("%s %v", c.ID, c.Present))
	}); err != nil {
		t.Fatal(err)
	}
	mount := func(c *cordis.Context, ids ...string) *cordis.Fiber {
		f, err := c.Mount(&cordis.Plugin{Name: ids[0], Apply: func(c *cordis.Context, _ any) error {
			for _, id := range ids[1:] {
				p := saying(id)
				p.search = func(context.Context, SearchRequest) (SearchResult, error) { return SearchResult{Content: ids[0]}, nil }
				if _, err := w.web.RegisterSearchProvider(c, p); err != nil {
					return err
				}
			}
			return nil
		}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	await := func(f *cordis.Fiber) {
		t.Helper()
		if err := f.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	found := func(want string) {
		t.Helper()
		r, err := w.web.Search(t.Context(), SearchRequest{Query: "q", Provider: "a"})
		if err != nil || r.Content != want {
			t.Fatalf("found %+v, %v; want %s", r, err, want)
		}
	}
	old := mount(w.root, "old", "a", "gone")
	await(old)
	told = nil
	s := w.root.Runtime().NewStage(cordis.StageOptions{Replaces: []*cordis.Fiber{old}})
	fresh := mount(s.On(w.root), "new", "a", "b")
	await(fresh)
	wantCode(t, mount(w.root, "other", "b").Await(t.Context()), CodeDuplicateProvider)
	found("old")
	if len(told) != 0 {
		t.Fatal(told)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	found("new")
	if _, err := old.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	found("new")
	got := map[string]int{}
	for _, line := range told {
		got[line]++
	}
	if diff := cmp.Diff(map[string]int{"a true": 1, "b true": 1, "gone false": 1}, got); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, w.web.SearchProviders(nil)); diff != "" {
		t.Fatal(diff)
	}
}
