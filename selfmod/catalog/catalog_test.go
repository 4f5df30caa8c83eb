package catalog

import (
	"slices"
	"strings"
	"testing"
)

// TestSorted: lookups search by halves.
func TestSorted(t *testing.T) {
	if !slices.IsSortedFunc(Services, func(a, b Service) int { return strings.Compare(a.Key, b.Key) }) {
		t.Error("services are not sorted")
	}
	if !slices.IsSortedFunc(Events, func(a, b Event) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("events are not sorted")
	}
	if !slices.IsSortedFunc(Types, func(a, b Type) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("types are not sorted")
	}
}

func TestLookup(t *testing.T) {
	s, ok := LookupService("timer")
	if !ok || s.Key != "timer" || !s.Facade {
		t.Fatalf("timer: %+v, %v", s, ok)
	}
	if m, ok := s.Method("setTimeout"); !ok || m.Name != "setTimeout" {
		t.Errorf("timer.setTimeout: %+v, %v", m, ok)
	}
	if _, ok := s.Method("missing"); ok {
		t.Error("timer has a method missing")
	}
	if e, ok := LookupEvent("tools/result"); !ok || e.Mode != "emit" {
		t.Errorf("tools/result: %+v, %v", e, ok)
	}
	if v, ok := LookupType("Decision"); !ok || v.Name != "Decision" {
		t.Errorf("Decision: %+v, %v", v, ok)
	}
	for _, name := range []string{"", "missing", "zzz"} {
		_, service := LookupService(name)
		_, event := LookupEvent(name)
		_, typ := LookupType(name)
		if service || event || typ {
			t.Errorf("%q is found: %v %v %v", name, service, event, typ)
		}
	}
}

func TestClosure(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"through_fields", "x(r: PostDecision): void", []string{"ContentBlock", "ContextMessage", "PostDecision"}},
		{"whole_words_only", "x(r: PostDecisions, q: MyPostDecision): void", nil},
		{"several_at_once", "Decision|ToolView", []string{"Decision", "ToolView"}},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, v := range Closure(c.text) {
				got = append(got, v.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
	if got := Closure("Decision", "ToolView", "Decision"); len(got) != 2 {
		t.Errorf("of several texts: %d types, want 2", len(got))
	}
}

func BenchmarkClosure(b *testing.B) {
	var texts []string
	for _, s := range Services {
		for _, m := range s.Methods {
			texts = append(texts, m.Signature)
		}
	}
	for b.Loop() {
		Closure(texts...)
	}
}
