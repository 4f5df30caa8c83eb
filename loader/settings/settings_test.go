package settings

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/lossless"
)

type inner struct {
	Steps int    `json:"steps" doc:"How many." default:"3" min:"1" max:"10"`
	Mode  string `json:"mode" doc:"Which." enum:"fast,slow" default:"fast"`
}

type sample struct {
	Name   string            `json:"name" doc:"A name." min:"1" max:"5"`
	On     bool              `json:"on" doc:"Whether." default:"true"`
	Rate   float64           `json:"rate" doc:"How fast." max:"2.5"`
	Roots  []string          `json:"roots" doc:"Folders." max:"2" person:"true"`
	Vars   map[string]string `json:"vars" doc:"Variables."`
	Inner  inner             `json:"inner" doc:"Inside."`
	Many   []inner           `json:"many" doc:"Several."`
	hidden int               //nolint:unused // it is no option
}

func check(t *testing.T, config string) (any, []string) {
	t.Helper()
	v, err := lossless.Parse([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	value, faults := For[sample]().Check(v)
	var texts []string
	for _, f := range faults {
		texts = append(texts, strings.Join(f.Path, ".")+": "+f.Message)
	}
	return value, texts
}

func TestCheck(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   sample
	}{
		"null":  {"null", sample{On: true, Inner: inner{3, "fast"}}},
		"empty": {"{}", sample{On: true, Inner: inner{3, "fast"}}},
		"all": {`{"name":"né","on":false,"rate":2.5,"roots":["a","b"],"vars":{"A":"1"},"inner":{"steps":10,"mode":"slow"},"many":[{"steps":1},{}]}`,
			sample{Name: "né", Rate: 2.5, Roots: []string{"a", "b"}, Vars: map[string]string{"A": "1"}, Inner: inner{10, "slow"}, Many: []inner{{1, "fast"}, {3, "fast"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, faults := check(t, c.config)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(sample{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFaults(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		want   []string
	}{
		"every_fault": {`{"nam":"x","on":1,"rate":3,"inner":{"steps":0.5,"mode":"fats"},"many":[{"steps":11}]}`, []string{
			`nam: there is no option "nam"; did you mean "name"?`,
			`on: on must be true or false, and is 1`,
			`rate: rate must be at most 2.5, and is 3`,
			`inner.steps: steps must be a whole number, and is 0.5`,
			`inner.mode: mode must be one of fast, slow, and is "fats"`,
			`many.0.steps: steps must be from 1 to 10, and is 11`,
		}},
		"no_object": {`[]`, []string{`: the config must be an object, and is a list`}},
		"a_string":  {`{"roots":"a"}`, []string{`roots: roots must be a list of texts, and is the text "a"`}},
		"length":    {`{"name":"","roots":["a","b","c"]}`, []string{`name: name must have 1 to 5 characters, and has 0`, `roots: roots must have 0 to 2 items, and has 3`}},
		"unlike":    {`{"zzzzzzzz":1}`, []string{`zzzzzzzz: there is no option "zzzzzzzz"; there are: name, on, rate, roots, vars, inner, many`}},
		"item":      {`{"vars":{"A":1},"roots":[null]}`, []string{`roots.0: item 0 must be a text, and is null`, `vars.A: A must be a text, and is 1`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := check(t, c.config)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBadStructs(t *testing.T) {
	for name, describe := range map[string]func(){
		"no_doc": func() {
			For[struct {
				A int `json:"a" min:"1" max:"2"`
			}]()
		},
		"bad_default": func() {
			For[struct {
				A int `json:"a" doc:"x" min:"1" max:"9" default:"x"`
			}]()
		},
		"beyond_default": func() {
			For[struct {
				A int `json:"a" doc:"x" default:"5" min:"1" max:"4"`
			}]()
		},
		"bad_bound": func() {
			For[struct {
				A int `json:"a" doc:"x" min:"1" max:"many"`
			}]()
		},
		"bad_type": func() {
			For[struct {
				A chan int `json:"a" doc:"x"`
			}]()
		},
		"no_struct": func() { For[string]() },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			describe()
		})
	}
}

func TestSchema(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal(For[sample]().Schema(), &got); err != nil {
		t.Fatal(err)
	}
	steps := got["properties"].(map[string]any)["inner"].(map[string]any)["properties"].(map[string]any)["steps"]
	want := map[string]any{"description": "How many.", "type": "integer", "default": 3.0, "minimum": 1.0, "maximum": 10.0}
	if diff := cmp.Diff(want, steps); diff != "" || got["additionalProperties"] != false {
		t.Error(diff, got["additionalProperties"])
	}
}

func TestFieldsAndPersonal(t *testing.T) {
	typ := For[sample]()
	var paths []string
	for _, f := range typ.Fields() {
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "name on rate roots vars inner inner.steps inner.mode many many[].steps many[].mode" {
		t.Error(got)
	}
	v, _ := lossless.Parse([]byte(`{"roots":[],"inner":{"steps":1}}`))
	if got := typ.Personal(v); len(got) != 1 || got[0][0] != "roots" {
		t.Error(got)
	}
}
