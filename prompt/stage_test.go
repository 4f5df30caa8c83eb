package prompt_test

import (
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/prompt"
)

// TestStage: a staged part is not seen before the commit and takes the place of the
// replaced one then; nobody else can have its name meanwhile.
func TestStage(t *testing.T) {
	w := newWorld(t, prompt.Config{})
	stage := func(old *cordis.Context) *cordis.Stage {
		o := cordis.StageOptions{}
		if old != nil {
			o.Replaces = []*cordis.Fiber{old.Fiber()}
		}
		return w.root.Runtime().NewStage(o)
	}
	v := prompt.View{}
	old := w.child(w.root, "old")
	w.section(old, prompt.Section{Name: "s", Text: "old {{who}}"})
	w.variable(old, "who", says("one"))
	s := stage(old)
	fresh := w.child(s.On(w.root), "new")
	w.section(fresh, prompt.Section{Name: "s", Text: "new {{who}}"})
	w.section(fresh, prompt.Section{Name: "t", Order: 1, Text: "more"})
	w.variable(fresh, "who", says("two"))
	_, err := w.Registry.Section(w.child(w.root, "other"), prompt.Section{Name: "t", Text: "x"})
	refused(t, err, prompt.ErrDuplicate)
	third := stage(nil)
	_, err = w.Registry.Section(w.child(third.On(w.root), "third"), prompt.Section{Name: "s", Text: "x"})
	refused(t, err, prompt.ErrDuplicate)
	if got := w.system(v); got != "old one" {
		t.Fatalf("before: %q", got)
	}
	if err := third.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := w.system(v); got != "new two\n\nmore" {
		t.Fatalf("after: %q", got)
	}
	if _, err := old.Fiber().Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.system(v); got != "new two\n\nmore" {
		t.Fatalf("at last: %q", got)
	}
	aborted := stage(fresh)
	w.section(w.child(aborted.On(w.root), "never"), prompt.Section{Name: "s", Text: "never"})
	if err := aborted.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := w.system(v); got != "new two\n\nmore" {
		t.Fatalf("after an abort: %q", got)
	}
}
