package tool

import (
	"context"
	"testing"

	"github.com/dsh-go/dsh/lossless"
)

// TestActor: the body, the projections and the presenters of a tool act as its
// owner in the scope of the call, whoever calls, and listeners hear who calls.
func TestActor(t *testing.T) {
	w := newWorld(t)
	scope := NewScope("session", nil)
	mount := Mount{Number: 1, ID: "dyn-1", Plugin: "p", Source: "hash"}
	got := map[string]Actor{}
	note := func(ctx context.Context, part string) { got[part] = ActorOf(ctx) }
	w.owner(WithMount(WithScope(w.root, scope), mount), "o", def("x", func(d *Definition) {
		d.Output.Render = func(ctx context.Context, _, _ lossless.Text) ([]Block, error) {
			note(ctx, "render")
			return nil, nil
		}
		d.PresentCall = func(ctx context.Context, _ lossless.Text) (*Card, error) { note(ctx, "present"); return nil, nil }
		d.FinalizeContent = func(ctx context.Context, _ *Exec, _ *Result) ([]Block, error) { note(ctx, "finalize"); return nil, nil }
		d.Execute = func(ctx context.Context, _ *Exec) (Outcome, error) {
			note(ctx, "body")
			return Outcome{Value: str("v")}, nil
		}
	}))
	_, err := PreExecute.On(w.root, func(ctx context.Context, _ *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
		note(ctx, "listener")
		return next(ctx)
	})
	w.must(err)
	caller := Mount{ID: "dyn-7"}
	ctx := WithActor(w.ctx(), Actor{Mount: &caller})
	if r := w.r.Execute(ctx, Call{Name: "x", CallID: "c", Scope: scope}); r.IsError {
		t.Fatal(r.Error)
	}
	w.r.PresentCall(w.ctx(), "x", scope, nil)
	for part, want := range map[string]struct{ mount, call string }{
		"listener": {"dyn-7", "c"}, "body": {"dyn-1", "c"}, "render": {"dyn-1", "c"}, "finalize": {"dyn-1", "c"}, "present": {"dyn-1", ""},
	} {
		a, ok := got[part]
		call := ""
		if a.Exec != nil {
			call = a.Exec.CallID
		}
		if !ok || a.Scope != scope || a.Mount == nil || a.Mount.ID != want.mount || call != want.call {
			t.Errorf("%s: got %+v, call %q; want mount %s, call %q", part, a, call, want.mount, want.call)
		}
	}
	if a := ActorOf(context.Background()); a != (Actor{}) {
		t.Errorf("outside of everything: got %+v", a)
	}
}
