package prompt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/tool"
)

func golden(t *testing.T, name, got string) {
	t.Helper()
	want, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("testdata/%s (-want +got):\n%s", name, diff)
	}
}

func TestGolden(t *testing.T) {
	w := newWorld(t, prompt.Config{Persona: "You help in {{cwd}}.\n"})
	c := w.child(w.root, "shell")
	w.section(c, prompt.Section{Name: "tool:bash", Order: 105, Text: "Run commands with bash.\n\nPrefer short ones.\n"})
	w.section(c, prompt.Section{Name: "nothing", Order: 1, Text: " \n\n"})
	w.section(c, prompt.Section{Name: "model", Order: 200, Text: "{{provider}}/{{model}}"})
	v := prompt.View{Values: map[string]string{"cwd": "/home/a", "provider": "p", "model": "m"}}
	text, err := w.System(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "system.txt", text+"\n")
	if _, err := w.Context(c, prompt.Section{Name: "b", Text: "The branch is main."}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Context(c, prompt.Section{Name: "a", Func: says("2 files changed.\n")}); err != nil {
		t.Fatal(err)
	}
	contexts, err := w.Contexts(t.Context(), v)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "snapshot.txt", prompt.Snapshot(contexts)+"\n")
	golden(t, "nosnapshot.txt", prompt.Snapshot("")+"\n")
}

func TestOrder(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	two, one := w.mounted(w.root, 2), w.mounted(w.root, 1)
	w.section(two, prompt.Section{Name: "a", Order: 5, Text: "two"})
	w.section(one, prompt.Section{Name: "z", Order: 5, Text: "one z"})
	w.section(one, prompt.Section{Name: "y", Order: 5, Text: "one y"})
	w.section(w.root, prompt.Section{Name: "m", Order: 5, Text: "m"})
	w.section(w.root, prompt.Section{Name: "b", Order: 5, Text: "b"})
	w.section(one, prompt.Section{Name: "first", Order: -200, Text: "first"})
	w.section(w.root, prompt.Section{Name: "last", Order: 5.5, Text: "last"})
	text, err := w.System(t.Context(), prompt.View{})
	want := strings.Join([]string{"first", prompt.Identity, "b", "m", "one y", "one z", "two", "last"}, "\n\n")
	if err != nil || text != want {
		t.Errorf("error %v\n%s", err, cmp.Diff(want, text))
	}
}

func TestLayers(t *testing.T) {
	w := newWorld(t, prompt.Config{Persona: "a person"})
	outer := tool.NewScope("outer", nil)
	inner := tool.NewScope("inner", outer)
	beside := tool.NewScope("beside", outer)
	w.section(tool.WithScope(w.root, outer), prompt.Section{Name: "deployment:persona", Text: "outer {{who}}"})
	h := w.section(tool.WithScope(w.root, inner), prompt.Section{Name: "deployment:persona", Text: "inner {{who}}"})
	w.section(tool.WithScope(w.root, inner), prompt.Section{Name: "more", Text: "more"})
	w.variable(w.root, "who", says("all"))
	w.variable(tool.WithScope(w.root, inner), "who", says("me"))
	for _, tt := range []struct {
		scope *tool.Scope
		want  string
	}{{nil, "a person"}, {outer, "outer all"}, {beside, "outer all"}, {inner, "inner me\n\nmore"}} {
		if got := w.system(prompt.View{Scope: tt.scope}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.scope.Name(), got, tt.want)
		}
	}
	if err := h.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.system(prompt.View{Scope: inner}); got != "outer me\n\nmore" {
		t.Error(got)
	}
}

func TestRegistrationErrors(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	c := w.child(w.root, "shell")
	scope := tool.NewScope("session", nil)
	w.section(c, prompt.Section{Name: "taken", Text: "x"})
	w.section(w.mounted(tool.WithScope(w.root, scope), 3), prompt.Section{Name: "temporary", Text: "x"})
	m := w.mounted(tool.WithScope(w.root, scope), 4)
	long := strings.Repeat("x", limits.PromptText+1)
	for _, tt := range []struct {
		name  string
		c     *cordis.Context
		s     prompt.Section
		is    error
		parts []string
	}{
		{"taken", c, prompt.Section{Name: "taken"}, prompt.ErrDuplicate, []string{`section "taken"`, "the composition (shell)", `"global"`}},
		{"taken_by_mount", tool.WithScope(c, scope), prompt.Section{Name: "temporary"}, prompt.ErrDuplicate, []string{"temporary Plugin dyn-3 (temporary)", `"session"`}},
		{"mount_never_shadows", m, prompt.Section{Name: "harness:identity"}, prompt.ErrDuplicate, []string{"the composition (prompt)"}},
		{"no_name", c, prompt.Section{}, prompt.ErrInvalid, []string{"1 to 80 characters"}},
		{"long_name", c, prompt.Section{Name: strings.Repeat("n", 81)}, prompt.ErrInvalid, []string{"1 to 80 characters"}},
		{"name_of_controls", c, prompt.Section{Name: "a\x1bb"}, prompt.ErrInvalid, []string{"1 to 80 characters"}},
		{"infinite", c, prompt.Section{Name: "x", Order: math.Inf(1)}, prompt.ErrInvalid, []string{"+Inf", "finite"}},
		{"not_a_number", c, prompt.Section{Name: "x", Order: math.NaN()}, prompt.ErrInvalid, []string{"NaN", "finite"}},
		{"both", c, prompt.Section{Name: "x", Text: "x", Func: says("x")}, prompt.ErrInvalid, []string{"a text and a function"}},
		{"long", c, prompt.Section{Name: "x", Text: long}, prompt.ErrInvalid, []string{"65537", "65536"}},
		{"not_text", c, prompt.Section{Name: "x", Text: "\xff"}, prompt.ErrInvalid, []string{"UTF-8"}},
		{"malformed", c, prompt.Section{Name: "x", Text: "{{ x }}"}, prompt.ErrInvalid, []string{"{{ x }}", "without spaces"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := w.root.Runtime().Digest()
			_, err := w.Section(tt.c, tt.s)
			refused(t, err, tt.is, tt.parts...)
			if now := w.root.Runtime().Digest(); now != before {
				t.Errorf("it left something:\n%s", cmp.Diff(before, now))
			}
		})
	}
	_, err := w.Variable(c, "X", says("x"))
	refused(t, err, prompt.ErrInvalid, `variable "X"`, "[a-z][a-z0-9_]*")
	_, err = w.Variable(c, "x", nil)
	refused(t, err, prompt.ErrInvalid, "needs a function")
	w.variable(c, "x", says("x"))
	_, err = w.Variable(c, "x", says("x"))
	refused(t, err, prompt.ErrDuplicate, "the composition (shell)")
	// The three kinds have names of their own.
	if _, err := w.Context(c, prompt.Section{Name: "taken", Text: "x"}); err != nil {
		t.Error(err)
	}
	f, err := w.root.Mount(prompt.Plugin(prompt.Config{Persona: "{{ x }}"}), nil)
	if err == nil {
		err = f.Await(t.Context())
	}
	refused(t, err, prompt.ErrInvalid, `section "deployment:persona"`, "{{ x }}")
}

func TestOwned(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	c := w.mounted(w.root, 1)
	var last *cordis.Handle
	for n := range limits.PromptOwned {
		last = w.section(c, prompt.Section{Name: fmt.Sprint("s", n), Text: "x"})
	}
	_, err := w.Context(c, prompt.Section{Name: "more", Text: "x"})
	refused(t, err, prompt.ErrLimit, "dyn-1", "100")
	if err := last.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.section(c, prompt.Section{Name: "more", Text: "x"})
}

func TestComposition(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	c := w.child(w.root, "shell")
	v := prompt.View{Values: map[string]string{"cwd": "/", "model": ""}}
	w.variable(c, "branch", says(""))
	for _, tt := range []struct {
		name  string
		s     prompt.Section
		parts []string
	}{
		{"unknown", prompt.Section{Text: "{{nobody}}"}, []string{"{{nobody}}", "branch, cwd, model"}},
		{"without_value", prompt.Section{Text: "{{model}}"}, []string{"{{model}} has no value"}},
		{"variable_without_value", prompt.Section{Text: "{{branch}}"}, []string{"{{branch}} has no value"}},
		{"error", prompt.Section{Func: broken}, []string{"it broke"}},
		{"panic", prompt.Section{Func: func(context.Context, prompt.View) (string, error) { panic("ouch") }}, []string{"panic: ouch"}},
		{"long", prompt.Section{Func: says(strings.Repeat("x", limits.PromptText+1))}, []string{"at most 65536"}},
		{"not_text", prompt.Section{Func: says("\xff")}, []string{"UTF-8"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.s.Name = "bad"
			h := w.section(c, tt.s)
			w.fails(v, nil, append(tt.parts, `section "bad" of the composition (shell)`)...)
			if err := h.Dispose(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	// What a function gives is no template, and its view is its own.
	w.section(c, prompt.Section{Name: "f", Func: func(_ context.Context, v prompt.View) (string, error) {
		v.Values["cwd"] = "changed"
		return "{{ as it is }}", nil
	}})
	w.section(c, prompt.Section{Name: "g", Text: "{{cwd}}"})
	if got := w.system(v); got != "{{ as it is }}\n\n/" {
		t.Error(got)
	}
	if len(w.warnings()) > 0 {
		t.Error(w.warnings())
	}
}

func TestVariableIsAskedOnce(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	asked := 0
	w.variable(w.root, "n", func(context.Context, prompt.View) (string, error) { asked++; return fmt.Sprint(asked), nil })
	w.variable(w.root, "cwd", says("registered"))
	w.section(w.root, prompt.Section{Name: "a", Text: "{{n}} {{n}}"})
	w.section(w.root, prompt.Section{Name: "b", Text: "{{n}} {{cwd}}"})
	if got := w.system(prompt.View{Values: map[string]string{"cwd": "given"}}); got != "1 1\n\n1 given" {
		t.Error(got)
	}
}

func TestTemporaryPartsAreLeftOut(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	c := w.mounted(w.root, 1)
	fail := true
	w.section(c, prompt.Section{Name: "sometimes", Func: func(context.Context, prompt.View) (string, error) {
		if fail {
			return "", errors.New("it broke")
		}
		return "works", nil
	}})
	w.section(c, prompt.Section{Name: "unknown", Order: 1, Text: "{{nobody}}"})
	w.section(c, prompt.Section{Name: "panics", Order: 1, Func: func(context.Context, prompt.View) (string, error) { panic("ouch") }})
	w.section(c, prompt.Section{Name: "good", Order: 2, Text: "good"})
	w.variable(c, "broken", broken)
	w.section(w.root, prompt.Section{Name: "uses", Order: 3, Text: "{{broken}}"}) // of the composition
	for range 3 {
		if got := w.system(prompt.View{}); got != "good" {
			t.Error(got)
		}
	}
	all := w.warnings()
	if len(all) != 4 {
		t.Errorf("%d warnings: %q", len(all), all)
	}
	for _, part := range []string{`section "sometimes" of temporary Plugin dyn-1 (temporary): it broke`, `{{nobody}}`, "panic: ouch",
		`section "uses" of the composition (root): variable "broken" of temporary Plugin dyn-1`} {
		if !strings.Contains(strings.Join(all, "\n"), part) {
			t.Errorf("no warning with %q: %q", part, all)
		}
	}
	fail = false
	if got := w.system(prompt.View{}); got != "works\n\ngood" {
		t.Error(got)
	}
	fail = true
	w.system(prompt.View{})
	if now := w.warnings(); len(now) != 5 {
		t.Errorf("after it had worked there are %d warnings: %q", len(now), now)
	}
}

func TestSlowTemporaryParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, prompt.Config{})
		c := w.mounted(w.root, 1)
		asked := 0
		hangs := func(ctx context.Context, _ prompt.View) (string, error) { asked++; <-ctx.Done(); return "", ctx.Err() }
		for n := range 4 {
			w.section(c, prompt.Section{Name: fmt.Sprint("s", n), Func: hangs})
		}
		w.section(c, prompt.Section{Name: "good", Text: "good"})
		began := time.Now()
		if got := w.system(prompt.View{}); got != "good" {
			t.Error(got)
		}
		if took := time.Since(began); took != limits.PromptParts || asked != 2 {
			t.Errorf("it took %v, %d were asked", took, asked)
		}
		for range 3 { // the others, then none
			w.system(prompt.View{})
		}
		if took := time.Since(began); took != 2*limits.PromptParts || asked != 4 {
			t.Errorf("it took %v, %d were asked", took, asked)
		}
		if all := w.warnings(); len(all) != 4 || !strings.Contains(all[0], "no text within 3s") {
			t.Errorf("%q", all)
		}
		// The caller's own end is not the plugin's fault.
		w.section(c, prompt.Section{Name: "late", Func: hangs})
		ctx, cancel := context.WithTimeout(t.Context(), limits.PromptPart/2)
		defer cancel()
		if _, err := w.System(ctx, prompt.View{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if len(w.warnings()) != 4 {
			t.Errorf("%q", w.warnings())
		}
	})
}

func TestAll(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	c, m := w.child(w.root, "big"), w.mounted(w.root, 1)
	full := strings.Repeat("x", limits.PromptText)
	w.section(m, prompt.Section{Name: "mounted", Order: -500, Text: full})
	w.section(m, prompt.Section{Name: "small", Order: -500, Text: "small"})
	n := limits.PromptAll/limits.PromptText - 1
	for i := range n {
		w.section(c, prompt.Section{Name: fmt.Sprint("s", i), Text: full})
	}
	text, err := w.System(t.Context(), prompt.View{})
	if err != nil || len(text) > limits.PromptAll || !strings.HasPrefix(text, "small\n\n") {
		t.Errorf("error %v, %d bytes", err, len(text))
	}
	if all := w.warnings(); len(all) != 1 || !strings.Contains(all[0], "524288") {
		t.Errorf("%q", all)
	}
	w.section(c, prompt.Section{Name: "one more", Order: 1000, Text: full})
	w.fails(prompt.View{}, prompt.ErrLimit, `section "one more" of the composition (big)`, "524288")
}

func TestAssemble(t *testing.T) {
	w := newWorld(t, prompt.Config{Persona: "{{cwd}}"})
	scope := tool.NewScope("session", nil)
	var heard prompt.Draft
	answer := func(text string, err error) func(context.Context, prompt.Draft, func(context.Context) (string, error)) (string, error) {
		return func(_ context.Context, d prompt.Draft, _ func(context.Context) (string, error)) (string, error) {
			heard = d
			return text, err
		}
	}
	v := prompt.View{Scope: scope, Values: map[string]string{"cwd": "/"}}
	for _, tt := range []struct {
		name, text, fault string
		err               error
	}{
		{name: "own", text: "my own"},
		{name: "empty"},
		{name: "error", err: errors.New("no prompt"), fault: "no prompt"},
		{name: "long", text: strings.Repeat("x", limits.PromptAll+1), fault: "at most 524288"},
		{name: "not_text", text: "\xff", fault: "UTF-8"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, err := prompt.Assemble.On(tool.WithScope(w.root, scope), answer(tt.text, tt.err))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = h.Dispose(t.Context()) }()
			text, err := w.System(t.Context(), v)
			if tt.fault != "" {
				refused(t, err, nil, tt.fault)
			} else if err != nil || text != tt.text {
				t.Errorf("%q, error %v", text, err)
			}
			want := []prompt.Part{{Name: "harness:identity", Text: prompt.Identity}, {Name: "deployment:persona", Text: "/"}}
			if diff := cmp.Diff(want, heard.Sections); diff != "" || heard.Values["cwd"] != "/" {
				t.Error(diff)
			}
			if other := w.system(prompt.View{Values: v.Values}); other != "/" {
				t.Errorf("a listener of a scope was heard outside of it: %q", other)
			}
		})
	}
}

func TestGoesWithItsPlugin(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	before := w.system(prompt.View{})
	entered, leave := make(chan struct{}), make(chan struct{})
	f := w.plugin(w.root, &cordis.Plugin{Name: "p", Apply: func(c *cordis.Context, _ any) error {
		w.section(c, prompt.Section{Name: "p", Func: func(context.Context, prompt.View) (string, error) {
			close(entered)
			<-leave
			return "p", nil
		}})
		return nil
	}})
	text := make(chan string)
	go func() { text <- w.system(prompt.View{}) }()
	<-entered
	done := make(chan error)
	go func() { _, err := f.Dispose(context.Background()); done <- err }()
	select {
	case err := <-done:
		t.Fatalf("the plugin ended while its function ran: %v", err)
	default:
	}
	close(leave)
	if got := <-text; got != "p" {
		t.Error(got)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if got := w.system(prompt.View{}); got != before {
		t.Error(got)
	}
}
