package calls

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func text(s string) *string { return &s }

// readAll reads a script; a line that is no call becomes its message.
func readAll(t testing.TB, script string) (got []Call, faults []string) {
	r := NewReader(strings.NewReader(script))
	for {
		c, err := r.Next()
		fault := new(SyntaxError)
		switch {
		case err == nil:
			got = append(got, c)
		case errors.As(err, &fault):
			faults = append(faults, err.Error())
		case errors.Is(err, io.EOF):
			return got, faults
		default:
			t.Fatal(err)
		}
	}
}

func TestCalls(t *testing.T) {
	tests := []struct {
		name, script string
		want         []Call
	}{
		{"nothing", "\n  \n# a comment\n", nil},
		{"name", "cordis_inspect", []Call{{Line: 1, Name: "cordis_inspect"}}},
		{"byte_order_mark", "\ufeffa\n", []Call{{Line: 1, Name: "a"}}},
		{"name_in_space", "\r\n  tools/list \t\r\n", []Call{{Line: 2, Name: "tools/list"}}},
		{"arguments", `a {"x": [1.0, "}"]}  `, []Call{{Line: 1, Name: "a", Arguments: []byte(`{"x": [1.0, "}"]}`)}}},
		{"arguments_at_once", `a{}`, []Call{{Line: 1, Name: "a", Arguments: []byte(`{}`)}}},
		{"json", `{"name":"a","arguments":{"x":1}}`, []Call{{Line: 1, Name: "a", Arguments: []byte(`{"x":1}`)}}},
		{"json_without", `{"name":"a"}` + "\n" + `{"arguments":null,"name":"b"}`, []Call{{Line: 1, Name: "a"}, {Line: 2, Name: "b"}}},
		{"text", "a <<EOF\nreturn 1\n\n  # in it\nEOF\nb", []Call{{Line: 1, Name: "a", Text: text("return 1\n\n  # in it")}, {Line: 6, Name: "b"}}},
		{"text_moved", "  a <<EOF\n  b\n  EOF\n", []Call{{Line: 1, Name: "a", Text: text("  b")}}},
		{"text_empty", "a <<E\nE", []Call{{Line: 1, Name: "a", Text: text("")}}},
		{"text_quoted", "a << 'END'\n$x\nEOF\nEND \n", []Call{{Line: 1, Name: "a", Text: text("$x\nEOF")}}},
		{"text_for", "a {\"x\":1} body <<EOF\nb\nEOF", []Call{{Line: 1, Name: "a", Arguments: []byte(`{"x":1}`), Param: "body", Text: text("b")}}},
		{"text_below_json", "{\"name\":\"a\"} <<EOF\nb\nEOF", []Call{{Line: 1, Name: "a", Text: text("b")}}},
		{"text_at_once", "a<<EOF\nb\nEOF", []Call{{Line: 1, Name: "a", Text: text("b")}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, faults := readAll(t, tt.script)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSyntax(t *testing.T) {
	tests := []struct{ name, script, has string }{
		{"json_open", "\na {\"x\": 1", "line 2: the arguments of a are no JSON object on one line: it does not end; a text of several lines goes below NAME <<EOF"},
		{"json_bad", `a {x: 1}`, "line 1: the arguments of a are no JSON object"},
		{"json_list", `["a"]`, "there is no name of a tool"},
		{"json_other", `{"tool":"a"}`, `"name" and "arguments" only: unknown field "tool"`},
		{"json_name_number", `{"name":5}`, `"name" of a call as JSON must be a string, not a number`},
		{"json_no_name", `{"arguments":{}}`, `needs the "name"`},
		{"json_no_object", `{"name":"a","arguments":[1]}`, `"arguments" of a must be an object`},
		{"rest", `a {} b`, `"b" follows where the call has ended; a call is NAME,`},
		{"no_json", `a x=1`, `"x=1" follows where`},
		{"open_text", "a <<EOF\nb\nEOF;", "line 1: the text that begins here does not end: no line below is just EOF"},
		{"quote_open", "a <<'EOF\n", "follows where"},
		{"controls", "a \x1b[31mred", `"red" follows`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, faults := readAll(t, tt.script)
			if len(faults) != 1 || !strings.Contains(faults[0], tt.has) {
				t.Errorf("%q, want %q", faults, tt.has)
			}
		})
	}
}

// TestGoesOn: a line that is no call does not keep the next one from being read.
func TestGoesOn(t *testing.T) {
	got, faults := readAll(t, "a {\nb\n}\nc {}")
	if len(faults) != 2 || len(got) != 2 || got[1].Name != "c" || got[1].Line != 4 {
		t.Errorf("%v, %q", got, faults)
	}
}

func TestTooLong(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader("a {\"x\":\""), &endless{}))
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "line 1: has more than") {
		t.Error(err)
	}
	r = NewReader(io.MultiReader(strings.NewReader("a <<EOF\n"), strings.NewReader(strings.Repeat(strings.Repeat("x", 1<<20)+"\n", MaxLine>>20+1))))
	if _, err := r.Next(); err == nil || !strings.Contains(err.Error(), "line 1: the text that begins here has more than") {
		t.Error(err)
	}
}

type endless struct{}

func (*endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

func TestFill(t *testing.T) {
	tests := []struct {
		name       string
		call       Call
		candidates []string
		want, err  string
	}{
		{"none", Call{Name: "a"}, nil, "", ""},
		{"as_it_is", Call{Name: "a", Arguments: []byte(`{"x": 1.0}`)}, []string{"x"}, `{"x": 1.0}`, ""},
		{"text", Call{Name: "a", Text: text("b\n")}, []string{"code"}, `{"code":"b\n"}`, ""},
		{"beside", Call{Name: "a", Arguments: []byte(`{"path":"p","n":1.0}`), Text: text("b")}, []string{"path", "text"}, `{"n":1.0,"path":"p","text":"b"}`, ""},
		{"named", Call{Name: "a", Text: text("b"), Param: "c"}, nil, `{"c":"b"}`, ""},
		{"no_string", Call{Name: "a", Text: text("b")}, nil, "", "a has no string argument for the text below it; name one: a ARGUMENT <<EOF"},
		{"ambiguous", Call{Name: "a", Text: text("b")}, []string{"x", "y"}, "", "could be any of its string arguments x, y; name it: a x <<EOF"},
		{"twice", Call{Name: "a", Text: text("b"), Param: "c", Arguments: []byte(`{"c":1}`)}, nil, "", `"c" of a is given twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.call.Fill(tt.candidates)
			if string(got) != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s, %v; want %s, %q", got, err, tt.want, tt.err)
			}
		})
	}
}

// FuzzReader: whatever is read, every call has a name, and the reader ends.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{"a", "a {}", "a <<EOF\nx\nEOF", `{"name":"a","arguments":{"x":1}}`, "a {\"x\":1} y <<'E'\nE\n#\n\n{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, script string) {
		got, faults := readAll(t, script)
		if lines := strings.Count(script, "\n") + 1; len(got)+len(faults) > lines {
			t.Errorf("%d calls and %d faults in %d lines", len(got), len(faults), lines)
		}
		for _, c := range got {
			if c.Name == "" || c.Line < 1 || c.Param != "" && c.Text == nil {
				t.Errorf("%+v", c)
			}
		}
		for _, fault := range faults {
			if strings.ContainsAny(fault, "\n\x1b") {
				t.Errorf("%q", fault)
			}
		}
	})
}
