package prompt_test

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/tool"
)

// TestLayersProperty holds the registry against a model of it: which registrations
// are refused, and what each scope sees in which order, also after some have gone.
func TestLayersProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, prompt.Config{})
		scopes := []*tool.Scope{nil}
		for n := range rapid.IntRange(0, 4).Draw(rt, "scopes") {
			scopes = append(scopes, tool.NewScope(fmt.Sprint("s", n), rapid.SampledFrom(scopes).Draw(rt, "parent")))
		}
		type entry struct {
			scope  *tool.Scope
			name   string
			order  float64
			number int // of its mount; -1: none
			text   string
			h      *cordis.Handle
		}
		var all []entry
		taken := func(s *tool.Scope, name string, chain bool) bool {
			return slices.ContainsFunc(all, func(e entry) bool {
				return e.name == name && (e.scope == s || chain && s.Within(e.scope))
			})
		}
		mounts := map[string]*cordis.Context{}
		for n := range rapid.IntRange(1, 20).Draw(rt, "parts") {
			e := entry{
				scope:  rapid.SampledFrom(scopes).Draw(rt, "scope"),
				name:   rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "name"),
				order:  float64(rapid.IntRange(-1, 1).Draw(rt, "order")),
				number: rapid.IntRange(-1, 2).Draw(rt, "mount"),
				text:   fmt.Sprint("text ", n),
			}
			c := tool.WithScope(w.root, e.scope)
			if e.number >= 0 {
				key := fmt.Sprint(e.scope.Name(), e.number)
				if mounts[key] == nil {
					mounts[key] = w.mounted(c, e.number)
				}
				c = mounts[key]
			}
			h, err := w.Registry.Section(c, prompt.Section{Name: e.name, Order: e.order, Text: e.text})
			if refused := taken(e.scope, e.name, e.number >= 0); refused != (err != nil) {
				rt.Fatalf("%+v: error %v, want refused %t", e, err, refused)
			}
			if err == nil {
				e.h = h
				all = append(all, e)
			}
		}
		check := func() {
			for _, s := range scopes {
				nearest := map[string]entry{}
				for _, e := range all {
					had, ok := nearest[e.name]
					if s.Within(e.scope) && (!ok || e.scope.Within(had.scope)) {
						nearest[e.name] = e
					}
				}
				var seen []entry
				for _, e := range nearest {
					seen = append(seen, e)
				}
				slices.SortFunc(seen, func(a, b entry) int {
					return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.number, b.number), cmp.Compare(a.name, b.name))
				})
				texts := []string{prompt.Identity}
				for _, e := range seen {
					texts = append(texts, e.text)
				}
				want := strings.Join(texts, "\n\n")
				for range 2 {
					if got, err := w.System(t.Context(), prompt.View{Scope: s}); err != nil || got != want {
						rt.Fatalf("%s: error %v\n%s\nwant\n%s", s.Name(), err, got, want)
					}
				}
			}
		}
		check()
		rand.New(rand.NewSource(int64(rapid.Int().Draw(rt, "seed")))).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		for gone := len(all) / 2; gone > 0; gone-- {
			if err := all[0].h.Dispose(t.Context()); err != nil {
				rt.Fatal(err)
			}
			all = all[1:]
		}
		check()
	})
}

func BenchmarkSystem(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprintf("sections=%d", n), func(b *testing.B) {
			w := newWorld(b, prompt.Config{})
			for i := range n {
				w.section(w.root, prompt.Section{Name: fmt.Sprint("s", i), Text: strings.Repeat("Some guidance of a tool. ", 20) + "{{cwd}}"})
			}
			v := prompt.View{Values: map[string]string{"cwd": "/home/a"}}
			for b.Loop() {
				if _, err := w.System(b.Context(), v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
