package document

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// layers parses texts as layers of the kinds in their order: built-in, user, project,
// config.
func layers(t testing.TB, texts ...string) []*Document {
	t.Helper()
	var docs []*Document
	for i, text := range texts {
		if text == "" {
			continue
		}
		d, faults := Parse(Layer{Name: Kind(i).String(), Kind: Kind(i), Text: []byte(text), Dir: "/" + Kind(i).String()})
		if faults != nil {
			t.Fatal(faults)
		}
		docs = append(docs, d)
	}
	return docs
}

// brief writes rows in a line: id=name{config} with ! where they are disabled.
func brief(rows []Row) string {
	var parts []string
	for _, r := range rows {
		s := r.ID
		if r.Name != r.ID {
			s += "=" + r.Name
		}
		if r.Disabled {
			s = "!" + s
		}
		if !r.Config.IsNull() {
			s += r.Config.String()
		}
		if r.Group {
			s += "[" + brief(r.Children) + "]"
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, " ")
}

func env(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, p := range pairs {
			if n, v, _ := strings.Cut(p, "="); n == name {
				return v, true
			}
		}
		return "", false
	}
}

const base = `
- {id: bash, name: service-bash, config: {timeoutMs: 100, env: {A: "1"}}}
- id: tools
  group: true
  config:
    - name: tool-bash
    - id: web
      name: tool-web
- name: agent
`

func TestCompose(t *testing.T) {
	const rows = `bash=service-bash{"timeoutMs":100,"env":{"A":"1"}} tools=group[tool-bash web=tool-web] agent`
	for _, c := range []struct {
		name   string
		layers []string
		sets   []string
		want   string
	}{
		{"alone", []string{base}, nil, rows},
		{"none", nil, nil, ""},
		{"config", []string{base, "- {id: bash, config: {x: 1}}"}, nil, strings.Replace(rows, `{"timeoutMs":100,"env":{"A":"1"}}`, `{"x":1}`, 1)},
		{"deleted", []string{base, "- {id: bash, config: null}"}, nil, strings.Replace(rows, `{"timeoutMs":100,"env":{"A":"1"}}`, ``, 1)},
		{"guardedByName", []string{base, "- {id: bash, name: service-bash, config: null}"}, nil, strings.Replace(rows, `{"timeoutMs":100,"env":{"A":"1"}}`, ``, 1)},
		{"disabled", []string{base, "- {id: web, disabled: true}\n- {id: tools, disabled: true}"}, nil, strings.Replace(strings.Replace(rows, "web", "!web", 1), "tools", "!tools", 1)},
		{"enabledAgain", []string{base, "- {id: web, disabled: true}", "- {id: web, disabled: false}"}, nil, rows},
		{"inserted", []string{base, "- {id: x, name: y}\n- name: agent\n"}, nil, rows + " x=y agent-2=agent"},
		{"insertedInGroup", []string{base, "- id: tools\n  insert:\n    - name: more\n"}, nil, strings.Replace(rows, "tool-web]", "tool-web more]", 1)},
		{"laterSeesEarlier", []string{base, "- id: tools\n  insert:\n    - {id: m, name: more}\n", "- {id: m, disabled: true}\n"}, nil, strings.Replace(rows, "tool-web]", "tool-web !m=more]", 1)},
		{"withoutID", []string{base, "- {id: tool-bash, disabled: true}"}, nil, strings.Replace(rows, "[tool-bash", "[!tool-bash", 1)},
		{"groupReplaced", []string{base, "- id: tools\n  config:\n    - {id: web, name: other}\n"}, nil, strings.Replace(rows, "[tool-bash web=tool-web]", "[web=other]", 1)},
		{"newGroup", []string{base, "- id: g\n  group: true\n  config: [{name: a}, {id: h, group: true, config: [{name: a}]}]\n"}, nil, rows + " g=group[a h=group[a-2=a]]"},
		{"names", []string{"- name: ./plugins/my file.js\n- name: ./x/\n- name: a\n- {id: a, name: b}\n- name: group\n"}, nil, "my-file=./plugins/my file.js x=./x/ a-2=a a=b group[]"},
		{"set", []string{base}, []string{"bash.config.env.B=two", "bash.config.timeoutMs=5", "web.disabled=true"},
			strings.Replace(strings.Replace(rows, `100,"env":{"A":"1"}`, `5,"env":{"A":"1","B":"two"}`, 1), "web", "!web", 1)},
		{"setDeletes", []string{base}, []string{"bash.config.env=null", "bash.config.none.deep=null"}, strings.Replace(rows, `,"env":{"A":"1"}`, "", 1)},
		{"setMakes", []string{base}, []string{`agent.config.a."b.c"=[1, {d: e}]`, "agent.config.a.'b.c'.1.d=f"}, rows + `{"a":{"b.c":[1,{"d":"f"}]}}`},
		{"setWhole", []string{base}, []string{"bash.config={x: ''}", "bash.config.y=~"}, strings.Replace(rows, `{"timeoutMs":100,"env":{"A":"1"}}`, `{"x":""}`, 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := layers(t, c.layers...)
			for _, s := range c.sets {
				d, faults := ParseSet(s)
				if faults != nil {
					t.Fatal(faults)
				}
				docs = append(docs, d)
			}
			got, faults := Compose(docs, Options{})
			if faults != nil {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(c.want, brief(got.Rows)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestComposeFaults(t *testing.T) {
	for _, c := range []struct {
		name, text, set string
		place, message  string
		want            string // what is left, where it is not the base
	}{
		{name: "unknown", text: "- {id: bsh, disabled: true}", place: "user:1:8", message: "did you mean bash?"},
		{name: "otherName", text: "- {id: bash, name: tool-bash, config: {x: 1}}", place: "user:1:20", message: "the row bash is service-bash (built-in, line 2), not tool-bash"},
		{name: "noGroup", text: "- {id: bash, group: true}", place: "user:1:14", message: "no group"},
		{name: "insertNoGroup", text: "- id: bash\n  insert: [{name: a}]", place: "user:2:3", message: "no group"},
		{name: "listConfig", text: "- id: bash\n  config: [{name: a}]", place: "user:2:11", message: "not a list"},
		{name: "mapConfig", text: "- id: tools\n  config: {a: 1}", place: "user:2:11", message: "list of rows, not a map"},
		{name: "insertKnown", text: "- id: tools\n  insert: [{id: bash, name: a}]", place: "user:2:17", message: "built-in, line 2, already"},
		{name: "insertUnnamed", text: "- id: tools\n  insert: [{id: web}]", place: "user:2:17", message: "needs a name"},
		{name: "setUnknown", set: "tols.disabled=true", place: "--set:1:1", message: "did you mean tools?"},
		{name: "setGroup", set: "tools.config.a=1", place: "--set:1:1", message: "rows by their own ids"},
		{name: "setScalar", set: "bash.config.timeoutMs.a=1", place: "--set:1:1", message: "what is above it is a number"},
		{name: "setItem", set: "bash.config.list.0=1", place: "", message: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := layers(t, base, c.text)
			if c.set != "" {
				d, faults := ParseSet(c.set)
				if faults != nil {
					t.Fatal(faults)
				}
				docs = append(docs, d)
			}
			got, faults := Compose(docs, Options{})
			if c.place == "" {
				if faults != nil {
					t.Fatal(faults)
				}
				return
			}
			if len(faults) != 1 || !strings.HasPrefix(faults[0].Error(), c.place+": ") || !strings.Contains(faults[0].Message, c.message) {
				t.Errorf("faults: %v", faults)
			}
			if s := brief(got.Rows); !strings.HasPrefix(s, "bash=service-bash{\"timeoutMs\":100") || !strings.Contains(s, "[tool-bash web=tool-web]") {
				t.Errorf("what is left: %s", s)
			}
		})
	}
}

// TestProject: a project adds and overrides what it is allowed to, and its own rows
// in any case.
func TestProject(t *testing.T) {
	docs := layers(t, base, "- {id: mine, name: x}", `
- {id: bash, config: {}}
- {id: mine, disabled: true}
- {name: ./plugins/a.js}
- {name: evil}
- id: tools
  insert: [{id: own, group: true, config: [{id: deep, name: y}]}]
- {id: web, disabled: true}
`)
	again, faults := Parse(Layer{Name: "second", Kind: Project, Text: []byte("- {id: deep, disabled: true}\n- {id: agent, guards: all}\n")})
	if faults != nil {
		t.Fatal(faults)
	}
	var asked []string
	got, faults := Compose(append(docs, again), Options{May: func(a Act) error {
		asked = append(asked, fmt.Sprintf("%v %s %s of %v", a.Add, a.Row.ID, a.Field, a.Row.Layer.Kind))
		if a.Row.Name == "evil" || a.Row.ID == "bash" || a.Row.ID == "mine" {
			return errors.New("not yours")
		}
		return nil
	}})
	want := []string{
		"false bash config of built-in", "false mine disabled of user", "true a  of project", "true evil  of project", "false tools insert of built-in",
		"true own  of project", "true deep  of project", "false web disabled of built-in", "false agent guards of built-in",
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
	var places []string
	for _, f := range faults {
		places = append(places, fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Message))
	}
	if diff := cmp.Diff([]string{"2:14 not yours", "3:14 not yours", "5:10 not yours"}, places); diff != "" {
		t.Error(diff)
	}
	if s := brief(got.Rows); s != `bash=service-bash{"timeoutMs":100,"env":{"A":"1"}} tools=group[tool-bash !web=tool-web own=group[!deep=y]] agent mine=x a=./plugins/a.js` {
		t.Error(s)
	}
}

// TestElsewhere: a document that is read by several programs may override rows that
// this one does not have; a flag may not.
func TestElsewhere(t *testing.T) {
	o := Options{Elsewhere: func(id string) bool { return id == "web-search" }}
	set, _ := ParseSet("web-search.disabled=true")
	_, faults := Compose(append(layers(t, base, "- {id: web-search, disabled: true}\n- {id: web-serch, disabled: true}\n"), set), o)
	if len(faults) != 2 || faults[0].Line != 2 || faults[1].File != "--set" {
		t.Error(faults)
	}
}

func TestInclude(t *testing.T) {
	files := map[string]string{
		"./a.yml":     "- {id: x, name: one, config: {v: \"${env:V:-d}\"}}\n- name: two\n- id: g\n  group: true\n",
		"./bad.yml":   "- {id: x, nam: one}\n- {}\n",
		"./self.yml":  "- {id: again, name: include, config: {path: ./self.yml}}\n",
		"./outer.yml": "- {id: in, name: include, config: {path: ./a.yml, patches: [{id: two, disabled: true}]}}\n",
	}
	open := func(from *Layer, path string) (Layer, error) {
		text, ok := files[path]
		if !ok {
			return Layer{}, fs.ErrNotExist
		}
		return Layer{Name: from.Dir + path[1:], Dir: from.Dir, Text: []byte(text)}, nil
	}
	for _, c := range []struct{ name, config, want, fault string }{
		{"plain", "{path: ./a.yml}", `inc=include[inc:x=one{"v":"d"} inc:two=two inc:g=group[]] after`, ""},
		{"patched", "{path: \"./${env:FILE:-a}.yml\", patches: [{id: x, config: {v: 2}}, {id: g, insert: [{name: three}]}, {id: three, disabled: true}]}",
			`inc=include[inc:x=one{"v":2} inc:two=two inc:g=group[!inc:three=three]] after`, ""},
		{"nested", "{path: ./outer.yml}", `inc=include[inc:in=include[inc:in:x=one{"v":"d"} !inc:in:two=two inc:in:g=group[]]] after`, ""},
		{"missing", "{path: ./none.yml}", `!inc=include[] after`, "built-in:1:43: the file cannot be included: file does not exist"},
		{"broken", "{path: ./bad.yml}", `!inc=include[] after`, "/built-in/bad.yml:1:11: unknown field nam; did you mean name?"},
		{"cycle", "{path: ./self.yml}", `inc=include[!inc:again=include[]] after`, "/built-in/self.yml:1:45: the file includes itself"},
		{"badPatch", "{path: ./a.yml, patches: [{id: y, disabled: true}]}", `inc=include[inc:x=one{"v":"d"} inc:two=two inc:g=group[]] after`, "built-in:1:67: no row before has the id y"},
	} {
		t.Run(c.name, func(t *testing.T) {
			docs := layers(t, "- {id: inc, name: include, config: "+c.config+"}\n- {id: after, name: after}\n")
			got, faults := Compose(docs, Options{Open: open})
			if s := brief(got.Rows); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
			if c.fault == "" && faults != nil || c.fault != "" && !strings.HasPrefix(faults.Error(), c.fault) {
				t.Errorf("faults: %v", faults)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	vars := env("A=1", "T=true", "S=a: b", "E=", "O=010", "MY_TOKEN=x", "L=x\ny")
	for _, c := range []struct{ name, value, want, fault string }{
		{"number", "${env:A}", `1`, ""},
		{"bool", "${env:T}", `true`, ""},
		{"text", "${env:S}", `"a: b"`, ""},
		{"lines", "${env:L}", `"x\ny"`, ""},
		{"quoted", `"${env:A}"`, `"1"`, ""},
		{"single", `'${env:A}'`, `"1"`, ""},
		{"inside", "x${env:A}y${env:T}", `"x1ytrue"`, ""},
		{"two", "${env:A}${env:A}", `"11"`, ""},
		{"default", "${env:NONE:-5}", `5`, ""},
		{"defaultText", `"${env:NONE:-http://x}/y"`, `"http://x/y"`, ""},
		{"emptyDefault", "${env:E:-5}", `5`, ""},
		{"empty", `"${env:E}"`, `""`, ""},
		{"emptyPlain", "${env:E}", `null`, ""},
		{"literal", "$${env:A}", `"${env:A}"`, ""},
		{"literalAfter", "$${A} ${env:A} $$", `"${A} 1 $$"`, ""},
		{"missing", "${env:NONE}", "", "7: the variable NONE is not set"},
		{"missingInside", `"é ${env:A} ${env:NONE}"`, "", "19: the variable NONE is not set"},
		{"scheme", "${file:x}", "", `7: "${file:x}" is not known`},
		{"shell", "echo ${HOME}", "", `12: "${HOME}" is not known`},
		{"open", "a ${env:A", "", `9: "${" without`},
		{"octal", "${env:O}", "", "7: the variable's value is a number with zeros"},
		{"credential", "${env:MY_TOKEN}", `"x"`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "- id: a\n  name: a\n  config:\n   k: " + c.value + "\n- name: b\n"
			got, faults := Compose(layers(t, text), Options{Env: vars})
			value, _ := got.Rows[0].Config.Get("k")
			if c.fault == "" && (faults != nil || value.String() != c.want) {
				t.Fatalf("got %v, faults %v", value, faults)
			}
			if c.fault != "" {
				if len(faults) != 1 || faults[0].Row != "a" || faults[0].Line != 4 || !strings.HasPrefix(fmt.Sprintf("%d: %s", faults[0].Column, faults[0].Message), c.fault) {
					t.Errorf("faults %v", faults)
				}
				if a := got.Rows[0]; !a.Disabled || !a.Config.IsNull() || len(a.Faults) != 1 || got.Rows[1].Disabled {
					t.Errorf("rows %s", brief(got.Rows))
				}
			}
		})
	}
	t.Run("disabled", func(t *testing.T) {
		got, faults := Compose(layers(t, "- id: g\n  group: true\n  disabled: true\n  config: [{name: a, config: {k: \"${env:NONE}\"}}]\n"), Options{Env: vars})
		if faults != nil || brief(got.Rows) != `!g=group[a{"k":"${env:NONE}"}]` {
			t.Errorf("%s, %v", brief(got.Rows), faults)
		}
	})
	t.Run("project", func(t *testing.T) {
		_, faults := Compose(layers(t, "", "", "- {name: a, config: {k: \"${env:A} ${env:MY_TOKEN}\"}}\n"), Options{Env: vars})
		if len(faults) != 1 || faults[0].Column != 35 || !strings.Contains(faults[0].Message, "looks like a credential") {
			t.Error(faults)
		}
	})
	t.Run("much", func(t *testing.T) {
		big := strings.Repeat("x", 100_000)
		_, faults := Compose(layers(t, "- {name: a, config: {k: \""+strings.Repeat("${env:B}", 100)+"\"}}\n"), Options{Env: env("B=" + big)})
		if faults == nil || !strings.Contains(faults[0].Message, "together") {
			t.Error(faults)
		}
	})
	t.Run("onlyConfig", func(t *testing.T) {
		if _, faults := Parse(Layer{Text: []byte("- {name: a, disabled: \"${env:A}\"}")}); faults == nil || !strings.Contains(faults[0].Message, "in config only") {
			t.Error(faults)
		}
	})
}
