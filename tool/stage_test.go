package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/google/go-cmp/cmp"
)

// answering is a tool that answers text.
func answering(name, text string) *Definition {
	return def(name, body(func(context.Context, *Exec) (Outcome, error) { return Outcome{Value: str(text)}, nil }))
}

// stage opens a stage that replaces fibers.
func (w *world) stage(fibers ...*cordis.Fiber) *cordis.Stage {
	return w.root.Runtime().NewStage(cordis.StageOptions{Replaces: fibers})
}

// fails mounts a plugin that registers d, and returns why it failed.
func (w *world) fails(c *cordis.Context, d *Definition) error {
	w.t.Helper()
	f, err := c.Mount(&cordis.Plugin{Name: "refused", Apply: func(c *cordis.Context, _ any) error {
		_, err := w.r.Register(c, d)
		return err
	}}, nil)
	w.must(err)
	err = f.Await(w.ctx())
	w.dispose(f)
	return err
}

func (w *world) want(what string, got, want any) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

// TestStagedTools: nothing is seen before the commit, then everything at once, told
// once by name; the order is that of a fresh start.
func TestStagedTools(t *testing.T) {
	w := newWorld(t)
	var told []string
	_, err := Changed.On(w.root, func(_ context.Context, c Change) { told = append(told, string(c.Action)+" "+c.Name) })
	w.must(err)
	old := w.owner(w.root, "old", answering("b", "old"), answering("gone", "old"))
	told = nil
	s := w.stage(old)
	fresh := w.owner(s.On(w.root), "new", answering("b", "new"), answering("a", "new"))
	w.want("before", w.names(nil), []string{"b", "gone"})
	w.want("told before", told, []string(nil))
	w.want("b", text(w.call("b", "")), "old")
	w.must(s.Commit())
	w.want("after", w.names(nil), []string{"a", "b"})
	w.want("b", text(w.call("b", "")), "new")
	w.must(s.Wait(w.ctx()))
	w.dispose(old)
	w.want("told", told, []string{"registered b", "registered a", "disposed gone"})
	w.want("gone", text(w.call("gone", "")), `Error: unknown tool "gone" — it went with plugin old of the composition (unmounted)`)
	// It is like any other from here on.
	told = nil
	w.must(fresh.Restart(w.ctx()))
	w.want("after a restart", w.names(nil), []string{"a", "b"})
	w.want("told of it", len(told), 4)
	w.dispose(fresh)
	w.want("at last", w.names(nil), []string{})
}

// TestStagedToolsAborted leaves nothing.
func TestStagedToolsAborted(t *testing.T) {
	w := newWorld(t)
	old := w.owner(w.root, "old", answering("x", "old"))
	before := w.root.Runtime().Digest()
	s := w.stage(old)
	w.owner(s.On(w.root), "new", answering("x", "new"), answering("y", "new"))
	w.must(s.Abort(w.ctx()))
	w.want("digest", w.root.Runtime().Digest(), before)
	w.want("tools", w.names(nil), []string{"x"})
	if len(w.r.staging) != 0 {
		t.Error("the registry holds something back")
	}
	w.owner(w.root, "free", answering("y", "free"))
}

// TestStageNames holds who may take which name.
func TestStageNames(t *testing.T) {
	w := newWorld(t)
	old := w.owner(w.root, "old", answering("x", "old"))
	s := w.stage(old)
	w.owner(s.On(w.root), "new", answering("x", "new"), answering("y", "new"))
	other := w.stage(old)
	for name, c := range map[string]*cordis.Context{
		"another stage": other.On(w.root), "outside": w.root,
		"a mount below": WithMount(WithScope(w.root, NewScope("s", nil)), Mount{Number: 1, ID: "dyn-1"}),
	} {
		if err := w.fails(c, answering("y", "")); err == nil || !strings.Contains(err.Error(), "by another change; try again") {
			t.Errorf("%s: %v", name, err)
		}
	}
	dup := new(DuplicateError)
	if err := w.fails(s.On(w.root), answering("y", "")); !errors.As(err, &dup) {
		t.Errorf("twice in one stage: %v", err)
	}
	w.must(old.Restart(w.ctx())) // it takes its own name again
	w.want("x", text(w.call("x", "")), "old")
	w.must(other.Abort(w.ctx()))
	w.must(s.Commit())
	third := w.stage()
	if err := w.fails(third.On(w.root), answering("y", "")); !errors.As(err, &dup) {
		t.Errorf("a name that the stage does not take: %v", err)
	}
	w.must(third.Abort(w.ctx()))
}

// TestStageTakesMounts: a plugin file takes over the names of temporary plugins in the
// scopes below it, where the stage may take them.
func TestStageTakesMounts(t *testing.T) {
	w := newWorld(t)
	project := NewScope("project", nil)
	agent, elsewhere := NewScope("agent", project), NewScope("elsewhere", nil)
	mounts := map[*Scope]*cordis.Fiber{}
	for i, s := range []*Scope{agent, elsewhere} {
		c := WithMount(WithScope(w.root, s), Mount{Number: i + 1, ID: fmt.Sprint("dyn-", i+1), Plugin: "p"})
		mounts[s] = w.owner(c, "p", answering("x", "mount"))
	}
	for _, may := range []bool{false, true} {
		var asked []*cordis.Fiber
		s := w.root.Runtime().NewStage(cordis.StageOptions{MayTake: func(f *cordis.Fiber) bool {
			asked = append(asked, f)
			w.names(nil) // no lock is held
			return may
		}})
		c := WithMount(WithScope(s.On(w.root), project), Mount{ID: "./x.js", Plugin: "x", File: true})
		w.owner(c, "x", answering("x", "file"))
		if len(asked) != 1 || asked[0] != mounts[agent] {
			t.Fatalf("asked for %v", asked)
		}
		if !may {
			w.must(s.Abort(w.ctx()))
			continue
		}
		w.want("claimed", len(s.Claimed()), 1)
		w.must(s.Commit())
	}
	w.must(mounts[agent].Await(w.ctx()))
	for s, want := range map[*Scope]string{project: "file", agent: "file", elsewhere: "mount"} {
		if got := text(w.r.Execute(w.ctx(), Call{Name: "x", Scope: s})); got != want {
			t.Errorf("in %s: %s", s.Name(), got)
		}
	}
	v, _ := w.r.Get("x", agent)
	w.want("owner", v.Ownership(), "plugin file ./x.js (x)")
}

// TestStageIsOneStep: who lists and calls in a loop never finds a tool missing or
// doubled, wherever it moves.
func TestStageIsOneStep(t *testing.T) {
	w := newWorld(t)
	outer := NewScope("outer", nil)
	inner := NewScope("inner", outer)
	at := []*Scope{inner, outer, nil}
	now := w.owner(WithScope(w.root, inner), "0", answering("x", "0"), answering("y", "0"))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	loop := func(read func() error) {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if err := read(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	loop(func() error {
		if got := w.names(inner); !slices.Equal(got, []string{"x", "y"}) {
			return fmt.Errorf("listed %v", got)
		}
		return nil
	})
	loop(func() error {
		if r := w.r.Execute(context.Background(), Call{Name: "x", Scope: inner}); r.IsError {
			return fmt.Errorf("called: %s", text(r))
		}
		return nil
	})
	for i := range 150 {
		s := w.stage(now)
		fresh := w.owner(WithScope(s.On(w.root), at[(i+1)%3]), fmt.Sprint(i+1), answering("y", "n"), answering("x", "n"))
		w.must(s.Commit())
		w.must(s.Wait(w.ctx()))
		w.dispose(now)
		now = fresh
	}
	close(stop)
	readers.Wait()
}

// TestStageCallsUnderWay: a call that waits for a decision runs on the tool that it
// found, also on one that is only taken away, and the old plugin goes after it.
func TestStageCallsUnderWay(t *testing.T) {
	for _, name := range []string{"x", "renamed"} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			asked, answer := make(chan struct{}), make(chan struct{})
			_, err := PreExecute.On(w.root, func(ctx context.Context, x *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
				if string(x.Arguments) == `{"text":"wait"}` {
					close(asked)
					<-answer
				}
				return next(ctx)
			})
			w.must(err)
			old := w.owner(w.root, "old", answering(name, "old"))
			result := make(chan *Result, 1)
			go func() { result <- w.call(name, `{"text":"wait"}`) }()
			within(t, asked, "the question")
			s := w.stage(old)
			w.owner(s.On(w.root), "new", answering("x", "new"))
			w.must(s.Commit())
			w.want("a new call", text(w.call("x", "")), "new")
			if old.State() != cordis.Active {
				t.Fatalf("the old one is %s while a call is expected", old.State())
			}
			// What it still registers is not seen, and in nobody's way.
			_, err = w.r.Register(old.Context(), answering("late", "old"))
			w.must(err)
			w.want("tools", w.names(nil), []string{"x"})
			w.owner(w.root, "other", answering("late", "other"))
			close(answer)
			w.want("the call", text(within(t, result, "result")), "old")
			w.must(s.Wait(w.ctx()))
			w.dispose(old)
			w.want("tools at last", w.names(nil), []string{"late", "x"})
		})
	}
}

// TestStagePolicies: guards, restrictions, withholdings and the policy of a stage
// decide nothing before it is committed, and those of what it replaces nothing after.
func TestStagePolicies(t *testing.T) {
	w := newWorld(t)
	scope := NewScope("s", nil)
	w.owner(w.root, "tools", answering("x", "x"), answering("y", "y"))
	decides := func(name string, deny string) func(c *cordis.Context) error {
		return func(c *cordis.Context) error {
			if _, err := w.r.SetPolicy(c, func(_ context.Context, x *Exec, d Decision) (Decision, error) {
				if x.Name == deny {
					return Deny("policy of " + name), nil
				}
				return d, nil
			}); err != nil {
				return err
			}
			if _, err := w.r.Guard(c, func(x *Exec) string {
				if string(x.Arguments) == `{"text":"`+name+`"}` {
					return "guard of " + name
				}
				return ""
			}); err != nil {
				return err
			}
			_, err := w.r.Restrict(WithScope(c, scope), Filter{Deny: []string{deny}})
			return err
		}
	}
	old := w.plugin(w.root, "old", decides("old", "x"))
	check := func(when, ruling, denied, open string) {
		t.Helper()
		w.want(when+": policy", strings.Contains(text(w.call(denied, "")), "policy of "+ruling), true)
		w.want(when+": guard", strings.Contains(text(w.call(open, `{"text":"`+ruling+`"}`)), "guard of "+ruling), true)
		w.want(when+": other guard", text(w.call(open, `{"text":"neither"}`)), open)
		w.want(when+": restriction", w.names(scope), []string{open})
	}
	check("before", "old", "x", "y")
	refused := w.stage()
	f, err := refused.On(w.root).Mount(&cordis.Plugin{Name: "refused", Apply: func(c *cordis.Context, _ any) error { return decides("z", "y")(c) }}, nil)
	w.must(err)
	if err := f.Await(w.ctx()); err == nil || !strings.Contains(err.Error(), "there is one already, set by old") {
		t.Error(err)
	}
	w.must(refused.Abort(w.ctx()))
	s := w.stage(old)
	w.plugin(s.On(w.root), "new", decides("new", "y"))
	check("staged", "old", "x", "y")
	w.must(s.Commit())
	check("committed", "new", "y", "x")
	w.dispose(old)
	check("disposed", "new", "y", "x")
}

// TestWithhold: what is withheld is not there for a scope and those below it, a call
// says why, and it comes back.
func TestWithhold(t *testing.T) {
	w := newWorld(t)
	scope := NewScope("s", nil)
	below := NewScope("below", scope)
	w.owner(w.root, "tools", answering("x", "x"), answering("y", "y"), def("free", func(d *Definition) { d.Unrouted = true }))
	var told []string
	_, err := Changed.On(w.root, func(_ context.Context, c Change) { told = append(told, string(c.Action)+" "+c.Name) })
	w.must(err)
	h, err := w.r.Withhold(WithScope(w.root, scope), []string{"x", "later"}, "its guard ./g.js is parked")
	w.must(err)
	w.want("told", told, []string{"disposed x"})
	w.want("below", w.names(below), []string{"free", "y"})
	w.want("outside", w.names(nil), []string{"free", "x", "y"})
	r := w.r.Execute(w.ctx(), Call{Name: "x", Scope: below})
	w.want("a call", text(r), `Error: unknown tool "x" — its guard ./g.js is parked`)
	w.owner(w.root, "late", answering("later", "l"))
	w.want("registered later", w.names(scope), []string{"free", "y"})
	w.want("withheld", w.r.Withheld(below), []Withheld{{"later", "its guard ./g.js is parked"}, {"x", "its guard ./g.js is parked"}})
	all, err := w.r.Withhold(w.root, nil, "boot")
	w.must(err)
	w.want("all", w.names(below), []string{"free"})
	w.want("all, outside", w.names(nil), []string{"free"})
	w.must(all.Dispose(w.ctx()))
	w.must(h.Dispose(w.ctx()))
	w.want("back", w.names(below), []string{"free", "later", "x", "y"})
	w.want("none", w.r.Withheld(below), []Withheld(nil))
	// A guard's row is replaced: the new version's withholding waits for the commit.
	s := w.stage()
	w.plugin(s.On(w.root), "guard", func(c *cordis.Context) error {
		_, err := w.r.Withhold(c, []string{"x"}, "staged")
		return err
	})
	w.want("staged", len(w.names(nil)), 4)
	w.must(s.Commit())
	w.want("committed", w.names(nil), []string{"free", "later", "y"})
}
