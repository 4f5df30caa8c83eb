package document

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/golden"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

const faulty = `# Everything that can be wrong with rows, each once.
- id: 5
  nam: x
- id: a b
  name: ../x.js
- id: inc:row
- id: a
  name: x.js
  disabled: yes
  inject: {required: [1], optional: x}
  isolate: {fs: false, "": true}
  intercept: [fs]
  guards: everything
- id: a
  name: [x]
  group: true
- {}
- text
- name: plugin
  config: [1]
- name: plugin
  config: text
- group: false
  name: x
- id: g
  group: true
  config: {a: 1}
- id: h
  group: true
  config:
    - {id: deep, nme: y}
    - id: a
- name: include
  config: {paht: ./x.yml, patches: 1}
- name: include
  config: {path: ./x.txt, patches: [{id: z, disabled: "${env:X}"}]}
- name: ./a/../../b.js
- id: null
  insert: []
- name: x
  insert: [{}]
- id: ins
  insert: {a: 1}
- name: x
  guards: [bash, "a b"]
  inject: 5
- name: x
  inject: {fs: false}
  guards: [all]
- name: ""
  apiKey: sk-secret-secret
`

// TestFaults: all faults of the rows of a document are told at once.
func TestFaults(t *testing.T) {
	d, faults := Parse(Layer{Name: "cordis.yml", Kind: User, Text: []byte(faulty)})
	if d != nil {
		t.Error("there is a document")
	}
	golden.Compare(t, "faults.golden", faults.Error()+"\n")
	if strings.Contains(faults.Error(), "sk-secret") {
		t.Error("a credential is shown")
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"empty", "", "f:1:1: the document is empty"},
		{"comments", "# a\n", "f:1:1: the document is empty"},
		{"map", "id: a\nname: b\n", "f:1:1: the document is a list of rows, not a map"},
		{"text", "# x\nhello\n", "f:2:1: the document is a list of rows, not text"},
		{"bom", "\ufeff- name: a\n", "f:1:1: a byte order mark"},
		{"crlf", "- name: a\r\n", "f:1:10: a carriage return"},
		{"tab", "- name: a\n\tid: b\n", "f:2:1: a tab"},
		{"notUTF8", "- name: \xff\n", "f:1:9: the bytes here are not UTF-8"},
		{"documents", "- name: a\n---\n- name: b\n", "f:2:1: a file has one document"},
		{"twice", "- name: a\n  name: b\n", "f:2:3: the key is there already, on line 1"},
		{"bomb", "- &a [x, x]\n- &b [*a, *a]\n", "f:1:3: anchors and aliases"},
		{"long", strings.Repeat("#", limits.DocumentBytes+1), "f:1:1: the document has 1048577 bytes"},
		{"rows", strings.Repeat("- name: a\n", limits.DocumentRows+1), "f:10001:3: a document has at most 10000 rows"},
		{"nested", strings.Repeat("- ", 100) + "a", "f:1:129: values are nested"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, faults := Parse(Layer{Name: "f", Text: []byte(c.text)})
			if d != nil || len(faults) != 1 || !strings.HasPrefix(faults.Error(), c.want) {
				t.Errorf("%.300v", faults)
			}
		})
	}
	t.Run("many", func(t *testing.T) {
		_, faults := Parse(Layer{Name: "f", Text: []byte(strings.Repeat("- {}\n", 500))})
		if len(faults) != limits.DocumentFaults+1 || faults[limits.DocumentFaults].Message != "and 400 more faults from here on" {
			t.Errorf("%d faults, the last is %v", len(faults), faults[len(faults)-1])
		}
	})
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "cordis.yml")
	if _, err := Read(path, User); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the file: %v", err)
	}
	if err := os.WriteFile(path, []byte("- name: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Read(path, User)
	if diff := cmp.Diff(Layer{Name: path, Kind: User, Dir: dir, Text: []byte("- name: a\n")}, l); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if err := os.Truncate(path, 50<<20); err != nil {
		t.Fatal(err)
	}
	var f Fault
	if _, err := Read(path, User); !errors.As(err, &f) || f.Line != 1 || !strings.Contains(f.Message, "52428800 bytes; at most 1048576") {
		t.Errorf("50 MiB: %v", err)
	}
	if _, err := Read(dir, User); err == nil {
		t.Error("a folder is read")
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for _, c := range []struct {
		name, line string
		column     int
		want       string
	}{
		{"plain", "a: b", 4, "a: b\n   ^"},
		{"end", "a", 2, "a\n ^"},
		{"safe", "a\x1b[31m\u202eb\u00a0c", 9, "a·[31m·b c\n        ^"},
		{"cutRight", "x" + long, 1, "x" + long[:2*159] + "…\n^"},
		{"cutLeft", long + "x", 1001, "…" + long[:2*80] + "x\n" + strings.Repeat(" ", 81) + "^"},
		{"secret", "  api_key: sk-1 # x", 3, "  api_key: …\n  ^"},
		{"secretFlow", `- {apiKey: "x", b: c}`, 17, "- {apiKey: …\n                ^"},
		{"secretFar", "token: " + long, 900, "……\n" + strings.Repeat(" ", 81) + "^"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []string
			for line := range strings.SplitSeq(excerpt(c.line, c.column), "\n") {
				lines = append(lines, strings.TrimPrefix(line, "    "))
			}
			if diff := cmp.Diff(c.want, strings.Join(lines, "\n")); diff != "" {
				t.Error(diff)
			}
			if n := utf8.RuneCountInString(lines[0]); n > limits.DocumentExcerpt+2 {
				t.Errorf("%d characters", n)
			}
		})
	}
}

func TestFields(t *testing.T) {
	got, faults := Compose(layers(t, `
- name: a
  inject: [fs, web]
- name: b
  inject: {fs: {}, web: {x: 1}}
  isolate: {fs: true, web: shared}
  intercept: {bash: {cwd: "${env:X}"}}
  guards: all
- name: c
  inject: {required: [fs], optional: [web]}
  guards: [bash, write]
- {name: d, inject: fs, disabled: false, config: null}
`), Options{})
	if faults != nil {
		t.Fatal(faults)
	}
	type fields struct {
		Inject    []cordis.Dependency
		Isolate   map[string]Realm
		Intercept map[string]lossless.Value
		Guards    Guards
	}
	want := []fields{
		{Inject: cordis.Require("fs", "web")},
		{
			Inject:    []cordis.Dependency{{Name: "fs"}, {Name: "web", Config: value(t, `{"x":1}`)}},
			Isolate:   map[string]Realm{"fs": {}, "web": {Label: "shared"}},
			Intercept: map[string]lossless.Value{"bash": value(t, `{"cwd":"${env:X}"}`)},
			Guards:    Guards{All: true},
		},
		{Inject: []cordis.Dependency{{Name: "fs"}, {Name: "web", Optional: true}}, Guards: Guards{Names: []string{"bash", "write"}}},
		{Inject: cordis.Require("fs")},
	}
	for i, r := range got.Rows {
		if diff := cmp.Diff(want[i], fields{r.Inject, r.Isolate, r.Intercept, r.Guards}, cmp.Comparer(lossless.Equal)); diff != "" {
			t.Errorf("row %s: %s", r.ID, diff)
		}
	}
}

func TestExplain(t *testing.T) {
	docs := layers(t, base, "- id: bash\n  config: {timeoutMs: 200, apiKey: sk-1, list: [a, b]}\n", "", "- {id: bash, disabled: false}\n")
	set, faults := ParseSet("bash.config.timeoutMs=300")
	if faults != nil {
		t.Fatal(faults)
	}
	flag := Flag("--key", "bash", []string{"config", "more"}, lossless.Str("${x}"))
	got, faults := Compose(append(docs, set, flag), Options{})
	if faults != nil {
		t.Fatal(faults)
	}
	bash, _ := got.Find("bash")
	if s := bash.Config.String(); s != `{"timeoutMs":300,"apiKey":"sk-1","list":["a","b"],"more":"${x}"}` {
		t.Error(s)
	}
	show := func(origins ...Origin) string {
		var parts []string
		for _, o := range origins {
			parts = append(parts, strings.Join([]string{o.Layer.Name, string(rune('0' + o.Line)), o.Value}, ":"))
		}
		return strings.Join(parts, " < ")
	}
	for _, c := range []struct{ path, at, explain string }{
		{"", "built-in:2:{id: bash, name: service-bash, config: {timeoutMs: 100, env: {A: \"1\"}}}", "same"},
		{"name", "built-in:2:service-bash", "same"},
		{"disabled", "config:1:false", "same"},
		{"config.timeoutMs", "--set:1:300", "--set:1:300 < user:2:200 < built-in:2:100"},
		{"config.apiKey", "user:2:…", "same"},
		{"config.list.1", "user:2:b", "same"},
		{"config.list.2", "user:2:[a, b]", ""},
		{"config.env", "user:2:{timeoutMs: 200, …", "built-in:2:{A: \"1\"}"},
		{"config.more", "--key:1:--key", "same"},
		{"guards", "built-in:2:{id: bash, name: service-bash, config: {timeoutMs: 100, env: {A: \"1\"}}}", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			var path []string
			if c.path != "" {
				path = strings.Split(c.path, ".")
			}
			if c.explain == "same" {
				c.explain = c.at
			}
			if c.path == "config.env" {
				c.at = "user:2:…"
			}
			if s := show(bash.At(path...)); s != c.at {
				t.Errorf("at %s", s)
			}
			if s := show(bash.Explain(path...)...); s != c.explain {
				t.Errorf("explained by %s", s)
			}
		})
	}
	f := ConfigFault(bash, []string{"list", "1"}, "no such thing")
	if f.Error() != "user:2:52: no such thing\n      config: {timeoutMs: 200, apiKey: …\n"+strings.Repeat(" ", 55)+"^" || f.Row != "bash" {
		t.Error(f)
	}
	if f := ConfigFault(Row{ID: "x"}, nil, "m"); f.Row != "x" || f.Line != 1 {
		t.Error(f)
	}
}

func TestParseSet(t *testing.T) {
	for _, c := range []struct{ name, arg, want string }{
		{"noEquals", "bash", "1:1: the argument has no \"=\"; --set is id.path=value"},
		{"empty", "", "1:1: the argument has no"},
		{"noEqualsPath", "bash.config", "1:12: the value is missing"},
		{"noID", "=1", "1:1: the argument begins with the id of a row"},
		{"noPath", "bash=1", "1:5: what of the row is set is missing"},
		{"emptyMember", "bash.config..a=1", "1:13: a member of the path is empty"},
		{"noField", "bash.confg.a=1", "1:6: confg cannot be set; did you mean config?"},
		{"below", "bash.vmTimeoutMs=1", "1:6: vmTimeoutMs cannot be set; fields that can be set are config, disabled, inject, isolate, intercept, guards; what a plugin is given is below config: bash.config.vmTimeoutMs"},
		{"name", "bash.name=x", "1:6: name cannot be set"},
		{"member", "bash.guards.x=1", "1:15: only config has members"},
		{"include", "inc:bash.disabled=true", "1:1: rows of an include"},
		{"quotes", "bash.config.\"a=1", "1:13: the quotes do not end"},
		{"afterQuotes", "bash.config.\"a\"b=1", "1:13: after the quotes"},
		{"noValue", "bash.config.a=", "1:15: the value is missing; \"\" is the empty text"},
		{"pathAlone", "bash.config.\"=\"", "1:16: the value is missing: \"=\""},
		{"value", "bash.config.a={b: 1", "1:15: the '{' does not end"},
		{"alias", "bash.config.a=*x", "1:15: anchors"},
		{"block", "bash.config.a=|", "1:15: text that begins with |"},
		{"lines", "bash.config.a=1\n2", "1:16: a value here has one line"},
		{"schema", "bash.disabled=yes", "1:15: disabled is true or false (in YAML 1.2 yes is text)"},
		{"list", "bash.config.a=- x", "1:15: '-' is not expected here"},
		{"long", "bash.config.a=" + strings.Repeat("x", limits.DocumentSet), "1:1: the argument has"},
		{"deep", "bash.config" + strings.Repeat(".a", 100) + "=1", "1:138: a path has at most 64 members"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, faults := ParseSet(c.arg)
			if d != nil || len(faults) != 1 || !strings.HasPrefix(faults.Error(), "--set:"+c.want) {
				t.Errorf("%.300v", faults)
			}
		})
	}
}

func TestCredential(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "token": true, "GH_TOKEN": true, "DSH_HOME": true, "AWS_REGION": true, "PGPASSWORD": true, "my_secret": true,
		"HOME": false, "PATH": false, "KEYBOARD": false, "TOKENIZER": false,
	} {
		if got := Credential(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
