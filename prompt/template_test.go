package prompt

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/limits"
)

func TestTemplate(t *testing.T) {
	values := map[string]string{"a": "1", "cwd": "/home/{{a}}", "x_2": "two"}
	value := func(name string) (string, error) {
		if v, ok := values[name]; ok {
			return v, nil
		}
		return "", errors.New("no " + name)
	}
	tests := []struct {
		name, text, want, fault string
	}{
		{name: "plain", text: "no braces } { here", want: "no braces } { here"},
		{name: "empty"},
		{name: "one", text: "{{a}}", want: "1"},
		{name: "between", text: "in {{cwd}}, {{x_2}}!", want: "in /home/{{a}}, two!"},
		{name: "adjacent", text: "{{a}}{{a}}", want: "11"},
		{name: "lone_open", text: "a {{ b", want: "a {{ b"},
		{name: "lone_close", text: "a }} b", want: "a }} b"},
		{name: "open_after_reference", text: "{{a}} {{", want: "1 {{"},
		{name: "close_before_open", text: "}} {{a", want: "}} {{a"},
		{name: "third_brace", text: "{{a}}}", want: "1}"},
		{name: "spaces", text: "{{ a }}", fault: "{{ a }}"},
		{name: "empty_name", text: "{{}}", fault: "{{}}"},
		{name: "upper", text: "{{A}}", fault: "{{A}}"},
		{name: "digit_first", text: "{{1a}}", fault: "{{1a}}"},
		{name: "underscore_first", text: "{{_a}}", fault: "{{_a}}"},
		{name: "open_inside", text: "{{ b {{a}}", fault: "{{ b {{a}}"},
		{name: "three_braces", text: "{{{a}}}", fault: "{{{a}}"},
		{name: "letter_of_another_script", text: "{{ä}}", fault: "{{ä}}"},
		{name: "new_line", text: "{{a\n}}", fault: "not of the form"},
		{name: "long_name", text: "{{" + strings.Repeat("a", limits.Name+1) + "}}", fault: "not of the form"},
		{name: "unknown", text: "{{nobody}}", fault: "no nobody"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := parseTemplate(tt.text)
			got := ""
			if err == nil {
				got, err = tmpl.render(value)
			}
			if tt.fault != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fault) {
					t.Errorf("got %q, error %v, want an error with %q", got, err, tt.fault)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got %q, error %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestTemplateBound(t *testing.T) {
	tmpl, err := parseTemplate(strings.Repeat("{{a}}", limits.PromptText/5))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	_, err = tmpl.render(func(string) (string, error) { asked++; return strings.Repeat("x", 1000), nil })
	if err == nil || !strings.Contains(err.Error(), "at most 65536") {
		t.Error(err)
	}
	if asked > limits.PromptText/1000+1 {
		t.Errorf("%d values were put in before the end", asked)
	}
}

// TestTemplateProperty: what was put together of text and references is taken
// apart the same way.
func TestTemplateProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "reference") {
				name := rapid.StringMatching(`[a-z][a-z0-9_]{0,10}`).Draw(t, "name")
				text.WriteString("{{" + name + "}}")
				want.WriteString("<" + name + ">")
			} else {
				s := rapid.StringMatching(`([^{}]|\{[^{}]|[^{}]\})*`).Draw(t, "text")
				text.WriteString(s + " ")
				want.WriteString(s + " ")
			}
		}
		tmpl, err := parseTemplate(text.String())
		if err != nil {
			t.Fatal(err)
		}
		got, err := tmpl.render(func(name string) (string, error) { return "<" + name + ">", nil })
		if err != nil || got != want.String() {
			t.Fatalf("%q became %q, error %v, want %q", text.String(), got, err, want.String())
		}
	})
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"", "{{", "}}", "{{a}}", "{{ a }}", "a{{b}}c{{", "{{{a}}}", "{{a}}{{b_1}}\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := parseTemplate(text)
		if err != nil {
			if !strings.Contains(text, "{{") || !strings.Contains(text, "}}") {
				t.Fatalf("%q has no reference and was refused: %v", text, err)
			}
			return
		}
		if len(text) > limits.PromptText {
			return
		}
		// Each reference put back as it was gives the text.
		got, err := tmpl.render(func(name string) (string, error) {
			if !variableName(name) {
				t.Fatalf("%q has the variable %q", text, name)
			}
			return "{{" + name + "}}", nil
		})
		if err != nil || got != text {
			t.Fatalf("%q came back as %q, error %v", text, got, err)
		}
	})
}
