package yaml

import (
	"strings"
	"testing"
)

var seeds = []string{
	"- id: a\n  name: b\n  config: {x: 1, y: [a, 'b', \"c\\n\"]}\n# c\n- id: d\n  config:\n    t: |\n      x\n       y\n\n    u: >-\n      a\n      b\n",
	"a:\n- b\n-  c: d\n   e:\n", "{a: [1, {b: c}], \"d\":e}", "- 'a\n  b'\n- \"c\\\n  d\"\n- e\n  f\n\n  g\n", "--- # x\n- 1e3\n- 0x1f\n- ~\n",
	"- |+2\n    a\n\n- >1\n a\n\n  b\n c\n", "- &a b\n- *a\n", "? a\n: b\n", "a: b: c\n", "\t", "\ufeff- a", "- a\r\n", "- [a: b]", "- - - x\n", "'a': b\n\"c d\" : e\n",
}

// FuzzParse: whatever the text is, the reader does not panic, spans are within the
// text and in each other, and what a scalar's span says is the scalar.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, fault := Parse([]byte(text))
		if fault != nil {
			if fault.Offset < 0 || fault.Offset > len(text) || fault.Message == "" {
				t.Fatalf("fault %+v", fault)
			}
			file.Position(fault.Offset)
			return
		}
		if file.Root != nil {
			spans(t, file.Root, 0, len(text))
		}
	})
}

func spans(t *testing.T, n *Node, from, to int) {
	if n.Start < from || n.End > to || n.Start > n.End {
		t.Fatalf("the span %d to %d of a %v is not within %d to %d", n.Start, n.End, n.Kind, from, to)
	}
	text := n.In.Text[n.Start:n.End]
	if n.Style == Flow || n.Style == Single || n.Style == Double || n.Style == Plain && !strings.Contains(text, "\n") {
		again, fault := NewFile(strings.ReplaceAll(text, "\n", " ")).Value(0)
		switch {
		case strings.Contains(text, "\n"):
		case fault != nil && !strings.Contains(text, ": "):
			t.Fatalf("%q is no value: %v", text, fault)
		case fault == nil && n.Kind != String && show(again) != show(n):
			t.Fatalf("%q is %s, not %s", text, show(again), show(n))
		}
	}
	at := n.Start
	for i, item := range n.Items {
		if n.Kind == Map {
			if k := n.Keys[i]; k.Start < at || k.Start > k.End {
				t.Fatalf("the key at %d to %d follows %d", k.Start, k.End, at)
			}
			at = n.Keys[i].End
		}
		spans(t, item, at, n.End)
		at = item.End
	}
}
