package loader

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// node is a row of a random document.
type node struct {
	id, body string
	group    bool
	off      bool
	isolate  string
	children []*node
}

// write appends the node as YAML.
func (n *node) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s- id: %s\n", indent, n.id)
	if n.off {
		fmt.Fprintf(b, "%s  disabled: true\n", indent)
	}
	if n.isolate != "" {
		fmt.Fprintf(b, "%s  isolate: {s0: %s, s1: %s}\n", indent, n.isolate, n.isolate)
	}
	if !n.group {
		fmt.Fprintf(b, "%s  %s\n", indent, n.body)
		return
	}
	fmt.Fprintf(b, "%s  group: true\n%s  config:", indent, indent)
	if len(n.children) == 0 {
		b.WriteString(" []\n")
		return
	}
	b.WriteString("\n")
	for _, c := range n.children {
		c.write(b, indent+"  ")
	}
}

func text(rows []*node) string {
	if len(rows) == 0 {
		return "[]\n"
	}
	var b strings.Builder
	for _, n := range rows {
		n.write(&b, "")
	}
	return b.String()
}

func clone(rows []*node) []*node {
	out := make([]*node, len(rows))
	for i, n := range rows {
		c := *n
		c.children = clone(n.children)
		out[i] = &c
	}
	return out
}

// bodies are what rows may be. Providers and users meet; tools collide; those at the end
// are always refused. %d is any number.
var bodies = []string{
	"name: p\n  config: {value: v%d}",
	"name: p\n  config: {value: v%d, provides: [s0]}",
	"name: p\n  config: {value: v%d, provides: [s1]}",
	"name: p\n  config: {value: v%d, needs: [s0]}",
	"name: p\n  config: {value: v%d, needs: [s0, s1]}\n  guards: [t0]",
	"name: p\n  config: {value: v%d, tools: [t0]}",
	"name: p\n  config: {value: v%d, tools: [t1, t2]}",
	"name: p\n  config: {value: v%d, needs: [s1]}\n  guards: [t1]",
	"name: ./f%d.js",
	"name: plain\n  inject: [s0]",
	"name: p\n  config: {value: v%d, fail: true}",
	"name: nope%d",
}

// lists gives the place of every list of rows: the document's, and those of groups.
func lists(rows *[]*node) []*[]*node {
	out := []*[]*node{rows}
	for _, n := range *rows {
		if n.group {
			out = append(out, lists(&n.children)...)
		}
	}
	return out
}

func count(rows []*node) int {
	n := len(rows)
	for _, r := range rows {
		n += count(r.children)
	}
	return n
}

// edit makes one random change of a document.
func edit(t *rapid.T, rows *[]*node) {
	all := lists(rows)
	from := all[rapid.IntRange(0, len(all)-1).Draw(t, "list")]
	what := rapid.SampledFrom([]string{"add", "add", "group", "drop", "move", "swap", "rename", "off", "isolate", "body"}).Draw(t, "edit")
	if what == "add" || what == "group" || len(*from) == 0 {
		n := &node{id: fmt.Sprintf("r%d", rapid.IntRange(0, 11).Draw(t, "id")), group: what == "group"} // at times one that is there
		n.body = bodyOf(t)
		i := rapid.IntRange(0, len(*from)).Draw(t, "at")
		if count(*rows) < 10 {
			*from = slices.Insert(*from, i, n)
		}
		return
	}
	i := rapid.IntRange(0, len(*from)-1).Draw(t, "row")
	n := (*from)[i]
	switch what {
	case "drop":
		*from = slices.Delete(*from, i, i+1)
	case "move":
		*from = slices.Delete(*from, i, i+1)
		all = lists(rows)
		to := all[rapid.IntRange(0, len(all)-1).Draw(t, "to")]
		*to = append(*to, n)
	case "swap":
		j := rapid.IntRange(0, len(*from)-1).Draw(t, "with")
		(*from)[i], (*from)[j] = (*from)[j], n
	case "rename":
		n.id = fmt.Sprintf("r%d", rapid.IntRange(0, 11).Draw(t, "id"))
	case "off":
		n.off = !n.off
	case "isolate":
		n.isolate = rapid.SampledFrom([]string{"", "true", "one", "two"}).Draw(t, "realm")
	case "body":
		n.body = bodyOf(t)
	}
}

func bodyOf(t *rapid.T) string {
	body := rapid.SampledFrom(bodies).Draw(t, "body")
	if strings.Contains(body, "%d") {
		return fmt.Sprintf(body, rapid.IntRange(0, 2).Draw(t, "number"))
	}
	return body
}

// fill gives a world its plugin files; that of number 2 is broken.
func fill(w *world) {
	w.files["f0.js"], w.files["f1.js"], w.files["f2.js"] = `{"value":"f0"}`, `{"value":"f1","tools":["t3"]}`, "nonsense"
}

// Random sequences of edits: after one that is taken, what is live is what a fresh start
// of the same rows gives; after one that is refused, it is what it was.
func TestRandomEdits(t *testing.T) {
	rounds := 10 // of 100 sequences
	if testing.Short() {
		rounds = 1
	}
	taken, refused := 0, 0
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := openWorld()
				defer w.close()
				fill(w)
				if _, err := w.apply("[]\n"); err != nil {
					t.Fatal(err)
				}
				var rows []*node
				for range rapid.IntRange(1, 8).Draw(t, "edits") {
					next := clone(rows)
					for range rapid.IntRange(1, 3).Draw(t, "changes") {
						edit(t, &next)
					}
					before := w.digest(true)
					_, err := w.apply(text(next))
					if err != nil {
						refused++
						if diff := cmp.Diff(before, w.digest(true)); diff != "" {
							t.Fatalf("refused:\n%s\n%v\n%s", text(next), err, diff)
						}
						continue
					}
					taken++
					rows = next
					if diff := cmp.Diff(fresh(t, text(rows)), w.digest(false)); diff != "" {
						t.Fatalf("not as a fresh start of\n%s\n%s", text(rows), diff)
					}
				}
			})
		})
	}
	t.Logf("%d edits were taken, %d refused", taken, refused)
	if taken < 20*rounds || refused < 10*rounds {
		t.Error("the edits are too much of one kind")
	}
}

// fresh is the digest of a fresh start of rows that were taken.
func fresh(t *rapid.T, text string) string {
	w := openWorld()
	defer w.close()
	fill(w)
	r, err := w.apply(text)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Troubles) > 0 {
		t.Fatalf("an edit was taken that does not start:\n%s\n%v", text, r.Troubles[0].Err)
	}
	return w.digest(false)
}
