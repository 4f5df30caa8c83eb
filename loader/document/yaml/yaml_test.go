package yaml

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	goccy "github.com/goccy/go-yaml"
)

// show writes a node as a flow text, so that tables can compare it.
func show(n *Node) string {
	if n == nil {
		return "nothing"
	}
	var b strings.Builder
	var walk func(n *Node)
	walk = func(n *Node) {
		switch n.Kind {
		case Null:
			b.WriteString("null")
		case Bool, Number:
			b.WriteString(n.Text)
		case String:
			b.WriteString("'" + strings.NewReplacer("\n", "⏎", "\t", "⇥").Replace(n.Text) + "'")
		case List:
			b.WriteByte('[')
			for i, item := range n.Items {
				if i > 0 {
					b.WriteByte(' ')
				}
				walk(item)
			}
			b.WriteByte(']')
		case Map:
			b.WriteByte('{')
			for i, item := range n.Items {
				if i > 0 {
					b.WriteByte(' ')
				}
				b.WriteString(n.Keys[i].Text + ":")
				walk(item)
			}
			b.WriteByte('}')
		}
	}
	walk(n)
	return b.String()
}

var parsed = []struct{ name, text, want string }{
	{"empty", "", "nothing"},
	{"comments", "# a\n\n  # b\n", "nothing"},
	{"marker", "# x\n---\n- a\n", "['a']"},
	{"list", "- a\n- 1\n-\n- true\n- ~\n", "['a' 1 null true null]"},
	{"nestedList", "- - a\n  - b\n-\n  - c\n", "[['a' 'b'] ['c']]"},
	{"map", "a: 1\nb:\n  c: 2\n  d:\ne: x y\n", "{a:1 b:{c:2 d:null} e:'x y'}"},
	{"listUnderKey", "a:\n- 1\n- 2\nb:\n  - 3\n", "{a:[1 2] b:[3]}"},
	{"rows", "- id: a # first\n  name: x\n\n# between\n- id: b\n", "[{id:'a' name:'x'} {id:'b'}]"},
	{"dashAlone", "-\n  id: a\n-   id: b\n    name: c\n", "[{id:'a'} {id:'b' name:'c'}]"},
	{"flow", "- {a: 1, b: [x, \"y z\", ], 'c d': {}, e: , f: [ ]}\n", "[{a:1 b:['x' 'y z'] c d:{} e:null f:[]}]"},
	{"flowLines", "- {a: 1, # one\n   b: [\n   2,\n 3\n] }\n- z\n", "[{a:1 b:[2 3]} 'z']"},
	{"json", `[{"a":1,"b":[true,null,"x\n\u00e9\ud83d\ude00"]}]`, "[{a:1 b:[true null 'x⏎é😀']}]"},
	{"quotes", "- 'it''s'\n- \"a\\tb\\x41\\\\\"\n- \"\"\n", "['it's' 'a⇥bA\\' '']"},
	{"quotesLines", "- \"a  \n   b\n\n   c\\\n   d \\\n   e\"\n- 'x\n\n\n  y'\n", "['a b⏎cd e' 'x⏎⏎y']"},
	{"plainLines", "- a b\n  c\n\n  d # e\n- http://x/#y\n- a:b\n", "['a b c⏎d' 'http://x/#y' 'a:b']"},
	{"literal", "- |\n  a\n   b\n\n  c\n\n- x\n", "['a⏎ b⏎⏎c⏎' 'x']"},
	{"literalChomp", "- |-\n  a\n\n- |+\n  b\n\n- |2\n    c\n", "['a' 'b⏎⏎' '  c⏎']"},
	{"literalTab", "a: |\n  x:\n  \ty\n", "{a:'x:⏎⇥y⏎'}"},
	{"literalNoNewline", "a: |\n  b", "{a:'b'}"},
	{"folded", "a: >\n  b\n  c\n\n  d\n   e\n  f\n", "{a:'b c⏎d⏎ e⏎f⏎'}"},
	{"numbers", "[1, -2, +3, 1e3, 1.50, .5, 5., 0x1F, 0o17, 0, -0, 1E-2]", "[1 -2 3 1e3 1.50 0.5 5 31 15 0 -0 1E-2]"},
	{"texts", "[1_000, 1.2.3, yes, on, 2026-01-02, 1:30, -x, ., 0x, 12a]", "['1_000' '1.2.3' 'yes' 'on' '2026-01-02' '1:30' '-x' '.' '0x' '12a']"},
	{"keys", "1: a\ntrue: b\n\"x: y\": c\n'z' : d\n/path: e\n", "{1:'a' true:'b' x: y:'c' z:'d' /path:'e'}"},
	{"unicode", "é: ü # ö\n", "{é:'ü'}"},
}

func TestParse(t *testing.T) {
	for _, c := range parsed {
		t.Run(c.name, func(t *testing.T) {
			f, fault := Parse([]byte(c.text))
			if fault != nil {
				line, column := f.Position(fault.Offset)
				t.Fatalf("%d:%d: %s", line, column, fault.Message)
			}
			if got := show(f.Root); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		line, column int
		message      string
	}{
		{"bom", "\ufeff- a\n", 1, 1, "byte order mark"},
		{"crlf", "- a\r\n- b\r\n", 1, 4, "LF, not CRLF"},
		{"utf8", "- a\n- \xff\n", 2, 3, "not UTF-8"},
		{"control", "- \"a\x00\"\n", 1, 5, "U+0000"},
		{"separator", "- a\u2028b\n", 1, 4, "U+2028"},
		{"tabIndent", "- a:\n\tb: 1\n", 2, 1, "a tab"},
		{"tabBetween", "- a:\tb\n", 1, 5, "a tab"},
		{"tabQuoted", "- \"a\tb\"\n", 1, 5, "a tab"},
		{"documents", "- a\n---\n- b\n", 2, 1, "one document"},
		{"end", "- a\n...\n", 2, 1, "one document"},
		{"directive", "%YAML 1.1\n---\n- a\n", 1, 1, "directives"},
		{"anchor", "- &x a\n", 1, 3, "anchors and aliases"},
		{"alias", "- a: *x\n", 1, 6, "anchors and aliases"},
		{"aliasKey", "- *x : a\n", 1, 3, "anchors and aliases"},
		{"merge", "- <<: {a: 1}\n", 1, 3, "merge keys"},
		{"tag", "- !!js x\n", 1, 3, "tags"},
		{"complex", "? a\n: b\n", 1, 1, "complex keys"},
		{"twice", "- a: 1\n  b: 2\n  a: 3\n", 3, 3, "on line 1"},
		{"twiceFlow", "- {a: 1, \"a\": 2}\n", 1, 10, "on line 1"},
		{"twiceMany", "a1: 1\na2: 1\na3: 1\na4: 1\na5: 1\na6: 1\na7: 1\na8: 1\na9: 1\na2: 1\n", 10, 1, "on line 2"},
		{"flowOpen", "- {a: 1\n- b\n", 2, 1, "is expected"},
		{"flowEnd", "- [a\n", 1, 3, "does not end"},
		{"flowNoValue", "- {a, b}\n", 1, 4, `"a: null"`},
		{"flowPair", "- [a: b]\n", 1, 5, "{key: value}"},
		{"flowEmpty", "- [a, , b]\n", 1, 7, "not expected"},
		{"flowNoSpace", "- {a:1}\n", 1, 5, "a space is missing"},
		{"quoteEnd", "- \"a\n- b\n", 1, 3, "does not end"},
		{"singleEnd", "- 'a\n", 1, 3, "does not end"},
		{"escape", "- \"\\q\"\n", 1, 4, "no escape"},
		{"surrogate", "- \"\\ud800\"\n", 1, 4, "hexadecimal"},
		{"behindQuote", "- \"a\" b\n", 1, 7, "behind a value"},
		{"colonInValue", "- a: b: c\n", 1, 6, "in quotes"},
		{"colonLater", "- a: b\n   c: d\n", 2, 5, "cannot stand inside"},
		{"indent", "- a: 1\n   b: 2\n", 2, 5, "cannot stand inside"},
		{"indentQuoted", "- a: \"1\"\n   b: 2\n", 2, 4, "indented by 3"},
		{"outdent", "-   a: 1\n  b: 2\n", 2, 3, "indented"},
		{"itemAfterValue", "a: 1\n- b\n", 2, 1, "an item of a list"},
		{"itemInValue", "a: b\n  - c\n", 2, 3, "an item of a list"},
		{"noKey", "a: 1\nb\n", 2, 1, "a key and"},
		{"octal", "- 010\n", 1, 3, "zeros"},
		{"infinity", "- .inf\n", 1, 3, "no such number"},
		{"big", "- 0x1ffffffffffffffff\n", 1, 3, "64 bits"},
		{"at", "- @x\n", 1, 3, "in quotes"},
		{"percent", "- %x\n", 1, 3, "in quotes"},
		{"blockHeader", "- | x\n  a\n", 1, 5, "block text"},
		{"leadingSpaces", "- |\n     \n  a\n", 1, 3, "empty lines"},
		{"comment", "- \"a\"#b\n", 1, 6, "a space before its #"},
		{"depth", strings.Repeat("[", 1000), 1, 64, "nested"},
		{"depthBlock", strings.Repeat("- ", 1000) + "a", 1, 129, "nested"},
		{"values", "[" + strings.Repeat("1,", 300_000) + "]", 1, 400_000, "at most"},
		{"column", "- é: ü: b\n", 1, 6, "in quotes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, fault := Parse([]byte(c.text))
			if fault == nil {
				t.Fatalf("it is read: %s", show(f.Root))
			}
			if line, column := f.Position(fault.Offset); line != c.line || column != c.column || !strings.Contains(fault.Message, c.message) {
				t.Errorf("%d:%d: %s", line, column, fault.Message)
			}
		})
	}
}

// TestSame: another reader of YAML reads the same, but for what it is known to read
// in its own way.
func TestSame(t *testing.T) {
	own := map[string]string{
		"numbers": "1e3 is text to it",
		"texts":   "1_000 is a number to it",
	}
	for _, c := range parsed {
		t.Run(c.name, func(t *testing.T) {
			var other any
			if err := goccy.UnmarshalWithOptions([]byte(c.text), &other, goccy.UseOrderedMap()); err != nil && !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			got := show(fromAny(other))
			if got == "null" {
				got = "nothing"
			}
			if same := got == c.want; !same && own[c.name] == "" {
				t.Errorf("here %s\nthere %s", c.want, got)
			} else if same && own[c.name] != "" {
				t.Errorf("it reads the same by now: %s", own[c.name])
			}
		})
	}
}

func fromAny(v any) *Node {
	switch v := v.(type) {
	case nil:
		return &Node{}
	case bool:
		return &Node{Kind: Bool, Text: fmt.Sprint(v)}
	case string:
		return &Node{Kind: String, Text: v}
	case []any:
		list := &Node{Kind: List}
		for _, item := range v {
			list.Items = append(list.Items, fromAny(item))
		}
		return list
	case goccy.MapSlice:
		m := &Node{Kind: Map}
		for _, item := range v {
			m.Keys = append(m.Keys, &Node{Text: fmt.Sprint(item.Key)})
			m.Items = append(m.Items, fromAny(item.Value))
		}
		return m
	}
	return &Node{Kind: Number, Text: fmt.Sprint(v)}
}
