package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

type word string

func (w word) CheckText() error {
	if strings.Contains(string(w), " ") {
		return errors.New("there is a space in it")
	}
	return nil
}

type placed struct {
	Words []word   `json:"words,omitempty" doc:"Words."`
	Dir   string   `json:"dir" doc:"A folder." format:"path"`
	Roots []string `json:"roots" doc:"Folders." format:"path" max:"FSRoots" person:"true"`
	Wait  *int     `json:"waitMs" doc:"A time." min:"CallTimeoutMin" max:"CallTimeoutMax"`
	Many  int64    `json:"many" doc:"How many." min:"0" max:"AgentTokensMax" default:"AgentParallel"`
}

func (p placed) CheckSettings(fault func(path []string, message string)) {
	if p.Dir == "/forbidden" {
		fault([]string{"dir"}, "it is forbidden")
	}
}

func value(t *testing.T, text string) lossless.Value {
	t.Helper()
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func texts(faults []Fault) (all []string) {
	for _, f := range faults {
		all = append(all, strings.Join(f.Path, ".")+": "+f.Message)
	}
	return all
}

// TestPaths: a path is the one that the document means which says it.
func TestPaths(t *testing.T) {
	t.Setenv("HOME", "/home/someone")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	from := func(path ...string) Source {
		switch strings.Join(path, ".") {
		case "roots.0":
			return Source{Dir: "/own"}
		case "roots.1":
			return Source{Dir: "/other/deep"}
		}
		return Source{}
	}
	for name, c := range map[string]struct{ config, want string }{
		"relative":  {`{"roots":["a","../b"]}`, `{"dir":"","roots":["/own/a","/other/b"],"waitMs":null,"many":10}`},
		"home":      {`{"roots":["~","~/x/"],"waitMs":5}`, `{"dir":"","roots":["/home/someone","/home/someone/x"],"waitMs":5,"many":10}`},
		"absolute":  {`{"dir":"/a/../b"}`, `{"dir":"/b","roots":null,"waitMs":null,"many":10}`},
		"no_folder": {`{"dir":"x"}`, `{"dir":"` + filepath.Join(here, "x") + `","roots":null,"waitMs":null,"many":10}`},
		"no_home":   {`{"dir":"~user"}`, `{"dir":"` + filepath.Join(here, "~user") + `","roots":null,"waitMs":null,"many":10}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := For[placed]().CheckFrom(value(t, c.config), from)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			text, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(text)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestCheckFrom: what the source has to do with it, beside what is wrong anyway.
func TestCheckFrom(t *testing.T) {
	project := func(path ...string) Source { return Source{Dir: "/p", Project: true} }
	for name, c := range map[string]struct {
		config string
		from   func(path ...string) Source
		want   []string
	}{
		"nobody_knows": {`{"dir":"x"}`, nil, []string{`dir: "x" must be absolute, or begin with ~/`}},
		"project":      {`{"roots":[],"dir":"a"}`, project, []string{"roots: a project may not set roots; set it in your own cordis.yml (in $DSH_HOME), or with --config or --set"}},
		"all_at_once": {`{"roots":["a"],"waitMs":0,"some":1}`, project, []string{
			`some: there is no option "some"; there are: words, dir, roots, waitMs, many`,
			"waitMs: waitMs must be from 1 to 600000, and is 0",
			"roots: a project may not set roots; set it in your own cordis.yml (in $DSH_HOME), or with --config or --set",
		}},
		"own_rules": {`{"dir":"/forbidden"}`, nil, []string{"dir: it is forbidden"}},
		"word":      {`{"words":["a","b c"],"many":-1}`, nil, []string{"words.1: item 1: there is a space in it", "many: many must be from 0 to 1000000000000, and is -1"}},
		"fraction":  {`{"many":1.5}`, nil, []string{"many: many must be a whole number, and is 1.5"}},
		"empty":     {`{"dir":""}`, nil, []string{"dir: dir must be a path"}},
		"nul":       {`{"dir":"a\u0000b"}`, nil, []string{"dir: dir must be a path"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := For[placed]().CheckFrom(value(t, c.config), c.from)
			if got != nil {
				t.Errorf("it gave %v", got)
			}
			if diff := cmp.Diff(c.want, texts(faults)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestBounded: lists, texts and the faults themselves have an end.
func TestBounded(t *testing.T) {
	type free struct {
		List []string `json:"list" doc:"Texts."`
		Text string   `json:"text" doc:"A text."`
	}
	long := `{"list":[` + strings.Repeat(`"",`, limits.SettingsItems) + `""],"text":"` + strings.Repeat("é", limits.SettingsText+1) + `"}`
	_, faults := For[free]().Check(value(t, long))
	want := []string{"list: list must have 0 to 1000 items, and has 1001", "text: text must have 0 to 4096 characters, and has 4097"}
	if diff := cmp.Diff(want, texts(faults)); diff != "" {
		t.Error(diff)
	}
	var many strings.Builder
	for i := range limits.DocumentFaults + 50 {
		fmt.Fprintf(&many, `"x%d":1,`, i)
	}
	_, faults = For[free]().Check(value(t, "{"+many.String()+`"text":""}`))
	if len(faults) != limits.DocumentFaults {
		t.Errorf("%d faults, want %d", len(faults), limits.DocumentFaults)
	}
}

// TestNames: each name in the table is that of its limit.
func TestNames(t *testing.T) {
	source, err := os.ReadFile("names.go")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`"(\w+)":\s+(millis\()?limits\.(\w+)\)?,`).FindAllStringSubmatch(string(source), -1)
	if len(lines) != len(named) {
		t.Fatalf("%d lines, %d names", len(lines), len(named))
	}
	for _, l := range lines {
		if l[1] != l[3] {
			t.Errorf("the name %s is for limits.%s", l[1], l[3])
		}
	}
}

// FuzzCheck: whatever the config, Check ends without a panic, says yes or why not, and
// agrees with the JSON Schema about every config without paths.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`null`, `{}`, `[]`, `{"name":"x","on":false,"rate":1.5,"inner":{"steps":3,"mode":"slow"},"many":[{}]}`,
		`{"name":"","rate":3,"roots":["a","b","c"],"vars":{"a":1},"many":[{"steps":1e1}]}`, `{"inner":{"steps":10.0}}`, `{"rate":1e999}`,
	} {
		f.Add(seed)
	}
	typ := For[sample]()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(typ.Schema())))
	if err != nil {
		f.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("s.json", doc); err != nil {
		f.Fatal(err)
	}
	s, err := c.Compile("s.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := lossless.Parse([]byte(text))
		if err != nil {
			return
		}
		got, faults := typ.Check(v)
		if (got == nil) != (len(faults) > 0) {
			t.Fatalf("%v, %v", got, faults)
		}
		whole, err := jsonschema.UnmarshalJSON(strings.NewReader(string(v.Encode())))
		if err != nil || v.IsNull() || hard(v) {
			return
		}
		if err := s.Validate(whole); (err == nil) != (len(faults) == 0) {
			t.Errorf("%s: the schema says %v, Check %v", text, err, faults)
		}
	})
}

// hard says whether there is a number that the two take differently: one that is too
// large to be kept.
func hard(v lossless.Value) bool {
	if v.Kind() == lossless.Number && len(v.Literal()) > 6 {
		return true
	}
	for i := range v.Len() {
		if hard(v.At(i)) {
			return true
		}
	}
	return false
}
