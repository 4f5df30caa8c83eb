package document

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/loader/document/yaml"
	"github.com/dsh-go/dsh/lossless"
)

const edited = `# My plugins.

# The shell.
- id: bash # keep
  name: service-bash
  config:
    timeoutMs: 100   # short
    env: {A: 'one', "B": two}

    # About cwd.
    cwd: "/tmp"
    # The end of config.

# Off for now.
- {id: web, name: tool-web, disabled: true} # flow

- name: ./plugins/x.js
- id: tools
  group: true
  config:
    # Inside.
    - id: t1
      name: tool-one
      config:
        text: |
          line one
          line two
    - id: t2
      name: tool-two
# The end.
`

func value(t testing.TB, text string) lossless.Value {
	t.Helper()
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// change writes the lines that go (-) and come (+).
func change(before, after string) string {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	var out strings.Builder
	for _, line := range a {
		out.WriteString("-" + line + "\n")
	}
	for _, line := range b {
		out.WriteString("+" + line + "\n")
	}
	return out.String()
}

func TestEdit(t *testing.T) {
	set := func(id, path, v string) func(testing.TB, []byte) ([]byte, error) {
		return func(t testing.TB, text []byte) ([]byte, error) {
			return Set(text, id, strings.Split(path, "/"), value(t, v))
		}
	}
	disable := func(id string, on bool) func(testing.TB, []byte) ([]byte, error) {
		return func(_ testing.TB, text []byte) ([]byte, error) { return SetDisabled(text, id, on) }
	}
	remove := func(id string) func(testing.TB, []byte) ([]byte, error) {
		return func(_ testing.TB, text []byte) ([]byte, error) { return Remove(text, id) }
	}
	insert := func(row Edited) func(testing.TB, []byte) ([]byte, error) {
		return func(_ testing.TB, text []byte) ([]byte, error) { return Insert(text, row) }
	}
	for _, c := range []struct {
		name string
		do   func(testing.TB, []byte) ([]byte, error)
		want string
	}{
		{"disable", disable("bash", true), "+  disabled: true\n"},
		{"disableAgain", disable("web", true), ""},
		{"disableNested", disable("t2", true), "+      disabled: true\n"},
		{"disableUnnamed", disable("x", true), "+  disabled: true\n"},
		{"enable", disable("web", false), "-- {id: web, name: tool-web, disabled: true} # flow\n+- {id: web, name: tool-web} # flow\n"},
		{"enableAgain", disable("bash", false), ""},
		{"number", set("bash", "config/timeoutMs", "5"), "-    timeoutMs: 100   # short\n+    timeoutMs: 5   # short\n"},
		{"quotes", set("bash", "config/cwd", `"/home"`), "-    cwd: \"/tmp\"\n+    cwd: \"/home\"\n"},
		{"singleQuotes", set("bash", "config/env/A", `"it's"`), "-    env: {A: 'one', \"B\": two}\n+    env: {A: 'it''s', \"B\": two}\n"},
		{"flowMember", set("bash", "config/env/C", `[1,"x y",{"a":null}]`), "-    env: {A: 'one', \"B\": two}\n+    env: {A: 'one', \"B\": two, C: [1, x y, {a: null}]}\n"},
		{"member", set("bash", "config/more", `"yes"`), "+    more: \"yes\"\n"},
		{"deepMember", set("bash", "config/more/a/b", `true`), "+    more: {a: {b: true}}\n"},
		{"configFlowRow", set("web", "config/a", `1`), "-- {id: web, name: tool-web, disabled: true} # flow\n+- {id: web, name: tool-web, disabled: true, config: {a: 1}} # flow\n"},
		{"object", set("bash", "config", `{"timeoutMs":100,"env":{"B":"two","D":false},"cwd":"/"}`),
			"-    env: {A: 'one', \"B\": two}\n-\n-    # About cwd.\n-    cwd: \"/tmp\"\n+    env: {\"B\": two, D: false}\n+\n+    # About cwd.\n+    cwd: \"/\"\n"},
		{"blockText", set("t1", "config/text", `"one\n\n  two\n"`), "-          line one\n-          line two\n+          one\n+\n+            two\n"},
		{"blockTextToLine", set("t1", "config/text", `"one"`), "-        text: |\n-          line one\n-          line two\n+        text: |-\n+          one\n"},
		{"blockTextToNumber", set("t1", "config/text", `1`), "-        text: |\n-          line one\n-          line two\n+        text: 1\n"},
		{"wholeBlock", set("t1", "config", `null`), "-      config:\n-        text: |\n-          line one\n-          line two\n+      config: null\n"},
		{"removeFirst", remove("bash"), "-# The shell.\n-- id: bash # keep\n-  name: service-bash\n-  config:\n-    timeoutMs: 100   # short\n-    env: {A: 'one', \"B\": two}\n-\n-    # About cwd.\n-    cwd: \"/tmp\"\n-    # The end of config.\n-\n"},
		{"removeFlow", remove("web"), "-# Off for now.\n-- {id: web, name: tool-web, disabled: true} # flow\n-\n"},
		{"removeNested", remove("t1"), "-    # Inside.\n-    - id: t1\n-      name: tool-one\n-      config:\n-        text: |\n-          line one\n-          line two\n"},
		{"removeGroup", remove("tools"), "-- id: tools\n-  group: true\n-  config:\n-    # Inside.\n-    - id: t1\n-      name: tool-one\n-      config:\n-        text: |\n-          line one\n-          line two\n-    - id: t2\n-      name: tool-two\n"},
		{"insert", insert(Edited{ID: "new", Name: "./n.js", Disabled: true, Config: lossless.Obj(lossless.M("a", lossless.Str("x: y")))}),
			"+- id: new\n+  name: ./n.js\n+  disabled: true\n+  config: {a: \"x: y\"}\n"},
		{"insertOverride", insert(Edited{ID: "other", Disabled: true}), "+- id: other\n+  disabled: true\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := c.do(t, []byte(edited))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, change(edited, string(out))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEditSmall(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"insertEmpty", "", "- id: m\n  name: x\n"},
		{"insertComments", "# a\n", "# a\n- id: m\n  name: x\n"},
		{"insertNone", "[]\n", "- id: m\n  name: x\n"},
		{"insertFlow", "[{name: a}]", "[{name: a}, {id: m, name: x}]"},
		{"insertNoNewline", "- name: a", "- name: a\n- id: m\n  name: x"},
		{"insertBlankLines", "- name: a\n\n- name: b\n", "- name: a\n\n- name: b\n\n- id: m\n  name: x\n"},
		{"insertIndented", "  - name: a\n", "  - name: a\n  - id: m\n    name: x\n"},
		{"insertOwnComment", "- name: a\n  # of a\n# end\n", "- name: a\n  # of a\n- id: m\n  name: x\n# end\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, err := Insert([]byte(c.text), Edited{ID: "m", Name: "x"})
			if err != nil || string(out) != c.want {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
	t.Run("removeLast", func(t *testing.T) {
		out, err := Remove([]byte("# a\n\n- id: m\n"), "m")
		if err != nil || string(out) != "# a\n\n[]\n" {
			t.Errorf("%q, %v", out, err)
		}
		if out, err = Insert(out, Edited{ID: "m"}); err != nil || string(out) != "# a\n\n- id: m\n" {
			t.Errorf("%q, %v", out, err)
		}
	})
}

func TestEditRefused(t *testing.T) {
	_, unknown := SetDisabled([]byte(edited), "bsh", true)
	_, text := SetDisabled([]byte("- {"), "bsh", true)
	_, twice := Insert([]byte(edited), Edited{ID: "t1", Name: "x"})
	_, wrong := Set([]byte(edited), "bash", []string{"guards"}, lossless.Int(1))
	_, field := Set([]byte(edited), "bash", []string{"nam"}, lossless.Int(1))
	_, scalar := Set([]byte(edited), "bash", []string{"config", "cwd", "x"}, lossless.Int(1))
	_, comments := Set([]byte(edited), "bash", []string{"config"}, lossless.Value{})
	_, keep := SetDisabled([]byte("- config: {}\n  id: a\n  name: |+\n    b\n\n\n# c\n"), "a", true)
	_, flow := Remove([]byte("- id: g\n  group: true\n  config: [{id: a, name: b}, # why\n   {id: c, name: d}]\n"), "c")
	for _, c := range []struct {
		name    string
		err     error
		is      error
		message string
	}{
		{"unknown", unknown, ErrNoRow, "did you mean bash?"},
		{"text", text, nil, "cordis.yml:1:3"},
		{"twice", twice, nil, "line 22"},
		{"wrong", wrong, nil, "guards is all"},
		{"field", field, nil, "a row has id, name"},
		{"scalar", scalar, nil, "config.cwd.x of the row bash: cwd, line 11, is text"},
		{"comments", comments, ErrByHand, "in the row bash, line 4, set config to null"},
		{"keep", keep, nil, "a name is one line"},
		{"flow", flow, ErrByHand, "remove the row c, line 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.err == nil || c.is != nil && !errors.Is(c.err, c.is) || !strings.Contains(c.err.Error(), c.message) {
				t.Errorf("%v", c.err)
			}
		})
	}
}

// drawValue draws something that a config may have.
func drawValue(t *rapid.T, depth int) lossless.Value {
	kinds := 5
	if depth > 0 {
		kinds = 7
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return lossless.Value{}
	case 1:
		return lossless.Boolean(rapid.Bool().Draw(t, "bool"))
	case 2:
		return lossless.Int(int64(rapid.IntRange(-5, 5000).Draw(t, "int")))
	case 3:
		return lossless.Str(rapid.SampledFrom([]string{"", "a", "a b", "yes", "1", "x: y", "# no", "it's", "\"q\"", "- a", "{x", "a\nb\n", "é", "\t", "\u202e", "~", "a #b", "010", "a:", "${env:X}"}).Draw(t, "text"))
	case 4:
		return lossless.Str(rapid.StringN(0, 12, 40).Draw(t, "any"))
	case 5:
		var items []lossless.Value
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawValue(t, depth-1))
		}
		return lossless.Arr(items...)
	}
	var members []lossless.Member
	for i := range rapid.IntRange(0, 3).Draw(t, "members") {
		members = append(members, lossless.M(rapid.SampledFrom([]string{"a", "b c", "d", "yes", "1"}).Draw(t, "key")+fmt.Sprint(i%2), drawValue(t, depth-1)))
	}
	return lossless.Obj(members...)
}

// drawDocument draws a text of rows in many styles, with comments.
func drawDocument(t *rapid.T) string {
	var b strings.Builder
	notes := 0
	comment := func(indent string) {
		switch rapid.IntRange(0, 5).Draw(t, "comment") {
		case 0:
			notes++
			fmt.Fprintf(&b, "%s# note %d\n", indent, notes)
		case 1:
			b.WriteString("\n")
		}
	}
	end := func() {
		b.WriteString(rapid.SampledFrom([]string{"\n", "\n", "\n", " # tail\n", "  \n"}).Draw(t, "end"))
	}
	var row func(id int, indent string, group bool)
	row = func(id int, indent string, group bool) {
		comment(indent)
		if rapid.IntRange(0, 4).Draw(t, "flow") == 0 {
			fmt.Fprintf(&b, "%s- {id: r%d, name: n", indent, id)
			if rapid.Bool().Draw(t, "config") {
				b.WriteString(", config: " + inline(lossless.Obj(lossless.M("k", drawValue(t, 2))), yaml.Plain))
			}
			b.WriteString("}")
			end()
			return
		}
		fmt.Fprintf(&b, "%s- id: r%d", indent, id)
		end()
		comment(indent + "  ")
		if group {
			b.WriteString(indent + "  group: true\n" + indent + "  config:\n")
			for i := range rapid.IntRange(1, 3).Draw(t, "children") {
				row(id*10+i, indent+"    ", false)
			}
			return
		}
		b.WriteString(indent + "  name: n")
		end()
		if rapid.Bool().Draw(t, "off") {
			b.WriteString(indent + "  disabled: true\n")
			comment(indent + "  ")
		}
		if rapid.Bool().Draw(t, "config") {
			b.WriteString(indent + "  config:\n")
			for i := range rapid.IntRange(1, 3).Draw(t, "members") {
				comment(indent + "    ")
				if rapid.IntRange(0, 3).Draw(t, "block") == 0 {
					fmt.Fprintf(&b, "%s    k%d: |\n%s      text\n%s      more\n", indent, i, indent, indent)
					continue
				}
				b.WriteString(indent + "    " + blockMember(fmt.Sprintf("k%d", i), drawValue(t, 2), len(indent)+4))
				end()
			}
		}
	}
	comment("")
	for i := range rapid.IntRange(1, 5).Draw(t, "rows") {
		row(i+1, "", rapid.IntRange(0, 3).Draw(t, "group") == 0)
	}
	comment("")
	return b.String()
}

// drawEdit draws an edit of the row that is at a path, what the document is to be after
// it, and whether it adds lines alone.
func drawEdit(t *rapid.T, id string, path []string, model lossless.Value) (do func([]byte) ([]byte, error), want lossless.Value, added bool) {
	switch rapid.IntRange(0, 3).Draw(t, "edit") {
	case 0:
		on := rapid.Bool().Draw(t, "on")
		do = func(b []byte) ([]byte, error) { return SetDisabled(b, id, on) }
		flag := lossless.Boolean(true)
		if on {
			return do, alter(model, append(path, "disabled"), &flag), false
		}
		return do, alter(model, append(path, "disabled"), nil), false
	case 1:
		way := rapid.SampledFrom([][]string{{"config", "k"}, {"config", "k0"}, {"config", "k1"}, {"config", "k0", "a0"}, {"config", "new"}, {"config"}}).Draw(t, "path")
		v := drawValue(t, 2)
		if len(way) == 1 {
			v = lossless.Obj(lossless.M("k0", v), lossless.M("x", lossless.Int(1)))
		}
		do = func(b []byte) ([]byte, error) { return Set(b, id, way, v) }
		return do, alter(model, append(path, way...), &v), false
	case 2:
		do = func(b []byte) ([]byte, error) {
			out, err := Remove(b, id)
			if errors.Is(err, ErrNoRow) {
				return b, nil
			}
			return out, err
		}
		return do, alter(model, path, nil), false
	}
	row := Edited{ID: "fresh", Name: "n", Config: drawValue(t, 1)}
	fresh := lossless.Obj(lossless.M("id", lossless.Str("fresh")), lossless.M("name", lossless.Str("n")))
	if row.Config.Kind() != lossless.Object {
		row.Config = lossless.Value{}
	} else {
		fresh = fresh.With("config", row.Config)
	}
	do = func(b []byte) ([]byte, error) {
		if _, err := SetDisabled(b, "fresh", false); err == nil {
			return b, nil
		}
		return Insert(b, row)
	}
	var items []lossless.Value
	for _, item := range model.Items() {
		items = append(items, item)
	}
	return do, lossless.Arr(append(items, fresh)...), true
}

// TestEdits: after any edit the document is the one before with the change, lines of
// other rows are as they were, and making it again changes nothing.
func TestEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := []byte(drawDocument(t))
		e, err := open(text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		id := rapid.SampledFrom([]string{"r1", "r2", "r10", "r20", "r31", "r5"}).Draw(t, "id")
		_, path, err := e.row(id)
		if err != nil {
			return
		}
		do, want, added := drawEdit(t, id, path, e.model)
		out, err := do(text)
		if errors.Is(err, ErrByHand) || err != nil && (strings.Contains(err.Error(), "has no members") || strings.Contains(err.Error(), "the config of a group")) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		file, fault := yaml.Parse(out)
		if fault != nil || !lossless.Equal(literal(file.Root), want) {
			t.Fatalf("%v\n%s\nwanted %s", fault, out, want)
		}
		again, err := do(out)
		if err != nil || string(again) != string(out) {
			t.Fatalf("again: %v\n%s\nwas\n%s", err, again, out)
		}
		outside(t, e, path, string(text), string(out), added)
	})
}

// outside checks that the lines that changed are a row's, its comments above among
// them and an empty line beside.
func outside(t *rapid.T, e *editor, path []string, before, after string, added bool) {
	if before == after {
		return
	}
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	head := 0
	for head < min(len(old), len(now)) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < min(len(old), len(now))-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	if added {
		if head+tail < len(old) {
			t.Fatalf("lines changed besides:\n%s", change(before, after))
		}
		return
	}
	row, _ := below(e.file.Root, path)
	from, _ := e.file.Position(row.Start)
	to, _ := e.file.Position(e.comments(e.lineEnd(row.End), 1))
	for from > 1 && strings.HasPrefix(strings.TrimSpace(old[from-2]), "#") {
		from--
	}
	if head < from-2 || len(old)-tail > to+1 {
		t.Fatalf("of the lines %d to %d these changed, from %d on:\n%s\nof\n%s", from, to, head+1, change(before, after), before)
	}
}
