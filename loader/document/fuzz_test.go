package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{base, edited, faulty, "[]", "- {name: a}", "- id: a\n  config: {a: ${env:X}}\n", "- name: include\n  config: {path: ./a.yml, patches: [{id: a}]}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, faults := Parse(Layer{Name: "f", Kind: Project, Text: []byte(text)})
		if (d == nil) == (faults == nil) {
			t.Fatal("neither a document nor faults, or both")
		}
		lines := strings.Count(text, "\n") + 1
		for _, fault := range faults {
			if fault.Line < 1 || fault.Line > lines || fault.Column < 1 || fault.Message == "" || len(fault.Error()) > 16*limits.DocumentExcerpt+limits.DocumentName {
				t.Fatalf("%+v", fault)
			}
		}
	})
}

// FuzzCompose: two layers and a --set make a composition whose ids are unique and
// whose places are there, whatever they are.
func FuzzCompose(f *testing.F) {
	f.Add(base, "- {id: web, disabled: true}\n- name: include\n  config: {path: ./a.yml}\n", "bash.config.env.A=1")
	f.Add(edited, edited, "tools.disabled=true")
	f.Add(base, "- {id: 7, guards: [a]}\n- 8\n- {id: g, group: true, isolate: 9, config: [{name: x, guards: 1}]}\n- {id: bash, config: 7, guard: [a]}\n", "x.disabled=true")
	f.Add(base, "- id: tools\n  config: [{name: x}]\n  insert: [{name: y}]\n", "x.config={a: '${env:A}'}")
	f.Fuzz(func(t *testing.T, first, second, arg string) {
		one, _ := Partial(Layer{Name: "one", Kind: User, Text: []byte(first)})
		two, _ := Partial(Layer{Name: "two", Kind: Project, Text: []byte(second)})
		set, _ := ParseSet(arg)
		c, _ := Compose([]*Document{one, two, set}, Options{
			Env: func(name string) (string, bool) { return "value", name != "NONE" },
			Open: func(*Layer, string) (Layer, error) {
				return Layer{Name: "included", Text: []byte(first)}, nil
			},
			May: func(a Act) error {
				if len(a.Row.ID)%3 == 0 {
					return errors.New("no")
				}
				return nil
			},
		})
		seen := map[string]bool{}
		var walk func(rows []Row)
		walk = func(rows []Row) {
			for _, r := range rows {
				if r.ID == "" || r.Name == "" || seen[r.ID] {
					t.Fatalf("the row %q (%q)", r.ID, r.Name)
				}
				seen[r.ID] = true
				for _, path := range [][]string{nil, {"config"}, {"config", "a", "0"}, {"guards"}} {
					if o := r.At(path...); o.Layer == nil || o.Line < 1 {
						t.Fatalf("%s comes from %+v", r.ID, o)
					}
					r.Explain(path...)
				}
				if _, err := lossless.Parse(r.Config.Encode()); err != nil {
					t.Fatal(err)
				}
				walk(r.Children)
			}
		}
		walk(c.Rows)
	})
}

func FuzzParseSet(f *testing.F) {
	for _, s := range []string{"a.config.b=1", "a.disabled=true", "a.config.\"x.y\".'z'.0={a: [1, \"b\"]}", "a.config=", "=.", "a.\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, arg string) {
		if d, faults := ParseSet(arg); (d == nil) == (faults == nil) {
			t.Fatal("neither a document nor faults, or both")
		}
	})
}

// FuzzEdit: an edit of any text makes a document or is refused.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{edited, base, "[]", "- name: a", "# a\n", "- {name: a, # b\n config: {a: 1}}\n"} {
		for kind := range 4 {
			f.Add(s, "bash", "config.a", `{"a":[1,"x: y",{}]}`, kind)
		}
	}
	f.Fuzz(func(t *testing.T, text, id, path, v string, kind int) {
		parsed, err := lossless.Parse([]byte(v))
		if err != nil {
			parsed = lossless.Str(v)
		}
		var out []byte
		switch kind & 3 {
		case 0:
			out, err = SetDisabled([]byte(text), id, kind&4 == 0)
		case 1:
			out, err = Set([]byte(text), id, strings.Split(path, "."), parsed)
		case 2:
			out, err = Remove([]byte(text), id)
		default:
			out, err = Insert([]byte(text), Edited{ID: id, Name: path, Config: parsed})
		}
		if err != nil {
			return
		}
		if _, faults := Parse(Layer{Text: out}); faults != nil {
			t.Fatalf("%v\nof\n%s", faults, out)
		}
	})
}

// TestHostile: texts as long as they may be, made to be slow, take no time to speak of.
func TestHostile(t *testing.T) {
	fill := func(head, s string) string {
		return head + strings.Repeat(s, (limits.DocumentBytes-len(head))/len(s))
	}
	numbered := func(head, form, tail string, n int) string {
		var b strings.Builder
		b.WriteString(head)
		for i := range n {
			fmt.Fprintf(&b, form, i)
		}
		return b.String() + tail
	}
	for name, text := range map[string]string{
		"list":       fill("", "- "),
		"brackets":   fill("- ", "["),
		"items":      fill("- [", "1,"),
		"items2":     fill("- [", "... , "),
		"spaces":     fill("- a", " "),
		"colons":     fill("- ", "a:"),
		"keys":       fill("", "a: "),
		"lines":      fill("- \"", "a\n  "),
		"plainLines": fill("- a", "\n  b"),
		"escapes":    fill("- \"", "\\n"),
		"block":      fill("- |\n", "  a\n"),
		"folded":     fill("- >\n", "  a\n\n"),
		"empty":      fill("- |\n", "\n"),
		"comments":   fill("", "#\n"),
		"distinct":   numbered("- name: a\n  config:\n", "    k%d: 1\n", "", 60_000),
		"names":      numbered("", "- name: a\n", "", limits.DocumentRows),
		"unknown":    numbered("- id: x\n  name: a\n", "- id: x%d\n", "", limits.DocumentRows-1),
		"variables":  numbered("- name: a\n  config: [", "\"${env:A}${env:B%d}\",", "]", 30_000),
		"texts":      fill("- name: a\n  config: {k: \"", "${env:A}") + "\"}",
	} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			if d, _ := Parse(Layer{Text: []byte(text)}); d != nil {
				_, _ = Compose([]*Document{d, d}, Options{Env: func(string) (string, bool) { return "x", true }})
				_, _ = SetDisabled([]byte(text), "none", true)
			}
			if took := time.Since(begin); took > 10*time.Second {
				t.Errorf("it took %v", took)
			} else {
				t.Log(took)
			}
		})
	}
}

// rows2000 is a document as long as they get.
func rows2000() []byte {
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "# Row %d.\n- id: row-%d\n  name: tool-bash\n  config: {timeoutMs: %d, path: \"/tmp/x\", text: \"${env:A:-b}\"}\n", i, i, i)
	}
	return []byte(b.String())
}

func BenchmarkParse2000Rows(b *testing.B) {
	text := rows2000()
	for b.Loop() {
		if _, faults := Parse(Layer{Text: text}); faults != nil {
			b.Fatal(faults)
		}
	}
}

func BenchmarkCompose2000Rows(b *testing.B) {
	d, _ := Parse(Layer{Text: rows2000()})
	over, _ := Parse(Layer{Text: []byte("- {id: row-7, disabled: true}")})
	for b.Loop() {
		if c, faults := Compose([]*Document{d, over}, Options{}); faults != nil || len(c.Rows) != 2000 {
			b.Fatal(faults)
		}
	}
}

func BenchmarkEdit2000Rows(b *testing.B) {
	text := rows2000()
	for b.Loop() {
		if _, err := SetDisabled(text, "row-1999", true); err != nil {
			b.Fatal(err)
		}
	}
}
