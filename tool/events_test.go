package tool

import (
	"context"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/google/go-cmp/cmp"
)

// listenAll registers listeners of c for every event of a call; they note the
// events they see.
func listenAll(c *cordis.Context, saw *[]string) error {
	note := func(s string) { *saw = append(*saw, s) }
	_, err := PreExecute.On(c, func(ctx context.Context, _ *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
		note("pre-execute")
		return next(ctx)
	})
	if err != nil {
		return err
	}
	_, err = AroundExecute.On(c, func(ctx context.Context, _ *Exec, next func(context.Context) (*Result, error)) (*Result, error) {
		note("execute")
		return next(ctx)
	})
	if err != nil {
		return err
	}
	_, err = PostExecute.On(c, func(ctx context.Context, _ Finished, next func(context.Context) (PostDecision, error)) (PostDecision, error) {
		note("post-execute")
		return next(ctx)
	})
	if err != nil {
		return err
	}
	_, err = Completed.On(c, func(context.Context, Finished) { note("result") })
	return err
}

// TestWhichCallsAnEventSees is the table of the package comment.
func TestWhichCallsAnEventSees(t *testing.T) {
	all := []string{"pre-execute", "execute", "post-execute", "result"}
	denied := []string{"pre-execute", "post-execute", "result"}
	only := []string{"result"}
	deny := func(w *world) {
		_, err := PreExecute.On(w.root, func(context.Context, *Exec, func(context.Context) (Decision, error)) (Decision, error) {
			return Deny("no"), nil
		})
		w.must(err)
	}
	tests := []struct {
		name  string
		setup func(w *world)
		call  Call
		ctx   func(context.Context) context.Context
		mount bool // the listeners belong to a mount
		want  []string
	}{
		{name: "invalid-arguments", call: Call{Name: "x", Arguments: []byte(`{"text":1}`)}, want: only},
		{name: "not-json", call: Call{Name: "x", Arguments: []byte(`{`)}, want: only},
		{name: "unknown", call: Call{Name: "y"}, want: only},
		{name: "gone", call: Call{Name: "z"}, want: only,
			setup: func(w *world) { w.dispose(w.owner(w.root, "z", def("z"))) }},
		{name: "cancelled-before", call: Call{Name: "x"}, want: only, ctx: func(ctx context.Context) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		}},
		{name: "denied-by-listener", call: Call{Name: "x"}, want: denied, setup: deny},
		{name: "denied-by-guard", call: Call{Name: "x"}, want: denied, setup: func(w *world) {
			_, err := w.r.Guard(w.root, func(*Exec) string { return "no" })
			w.must(err)
		}},
		{name: "denied-by-policy", call: Call{Name: "x"}, want: denied, setup: func(w *world) {
			_, err := w.r.SetPolicy(w.root, func(context.Context, *Exec, Decision) (Decision, error) { return Deny("no"), nil })
			w.must(err)
		}},
		{name: "pre-listener-fails", call: Call{Name: "x"}, want: []string{"pre-execute", "result"}, setup: func(w *world) {
			_, err := PreExecute.On(w.root, func(context.Context, *Exec, func(context.Context) (Decision, error)) (Decision, error) {
				return Allow(), errBoom
			})
			w.must(err)
		}},
		{name: "execute-listener-fails", call: Call{Name: "x"}, want: []string{"pre-execute", "execute", "result"}, setup: func(w *world) {
			_, err := AroundExecute.On(w.root, func(context.Context, *Exec, func(context.Context) (*Result, error)) (*Result, error) {
				return nil, errBoom
			})
			w.must(err)
		}},
		{name: "body-fails", call: Call{Name: "fails"}, want: all},
		{name: "succeeds", call: Call{Name: "x"}, want: all},
		{name: "succeeds-for-a-mount", call: Call{Name: "x"}, want: all, mount: true},
		{name: "unrouted-for-a-mount", call: Call{Name: "unrouted"}, want: only, mount: true},
		{name: "unrouted-for-the-program", call: Call{Name: "unrouted"}, want: all},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.owner(w.root, "o", def("x"), def("unrouted", func(d *Definition) { d.Unrouted = true }),
				def("fails", body(func(context.Context, *Exec) (Outcome, error) { return Outcome{}, errBoom })))
			saw := []string{}
			c := w.root
			if tt.mount {
				c = WithMount(c, Mount{Number: 1, ID: "dyn-1", Plugin: "listener"})
			}
			w.plugin(c, "listener", func(c *cordis.Context) error { return listenAll(c, &saw) })
			if tt.setup != nil {
				tt.setup(w)
				saw = saw[:0]
			}
			ctx := w.ctx()
			if tt.ctx != nil {
				ctx = tt.ctx(ctx)
			}
			w.r.Execute(ctx, tt.call)
			if diff := cmp.Diff(tt.want, saw); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestListenerOfARunningCall(t *testing.T) {
	w := newWorld(t)
	saw := []string{}
	w.owner(w.root, "o", def("mount", body(func(context.Context, *Exec) (Outcome, error) {
		w.plugin(w.root, "late", func(c *cordis.Context) error { return listenAll(c, &saw) })
		return Outcome{Value: str("mounted")}, nil
	})))
	w.call("mount", "")
	if diff := cmp.Diff([]string{"post-execute", "result"}, saw); diff != "" {
		t.Error(diff)
	}
}

func TestListenersOfScopes(t *testing.T) {
	w := newWorld(t)
	project := NewScope("project", nil)
	agent, sibling := NewScope("agent", project), NewScope("sibling", project)
	w.owner(w.root, "o", def("x"))
	heard := map[string]int{}
	for _, s := range []*Scope{nil, project, agent, sibling} {
		_, err := PreExecute.On(WithScope(w.root, s), func(ctx context.Context, _ *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
			heard[s.Name()]++
			return next(ctx)
		})
		w.must(err)
		_, err = Completed.On(WithScope(w.root, s), func(context.Context, Finished) { heard[s.Name()]++ })
		w.must(err)
	}
	for _, s := range []*Scope{nil, project, agent} {
		w.r.Execute(w.ctx(), Call{Name: "x", Scope: s})
	}
	if diff := cmp.Diff(map[string]int{"global": 6, "project": 4, "agent": 2}, heard); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAreDeclared(t *testing.T) {
	tests := []struct {
		name       string
		mode       cordis.Mode
		listenable bool
	}{
		{"tools/pre-execute", cordis.ModeWaterfall, true}, {"tools/execute", cordis.ModeWaterfall, true},
		{"tools/post-execute", cordis.ModeWaterfall, true}, {"tools/result", cordis.ModeEmit, true},
		{"tools/change", cordis.ModeEmit, true}, {"tools/progress", cordis.ModeEmit, false},
	}
	for _, tt := range tests {
		e, ok := cordis.LookupEvent(tt.name)
		if !ok || e.Mode() != tt.mode || e.Listenable() != tt.listenable {
			t.Errorf("%s: declared %v", tt.name, ok)
		}
	}
}
