package tool

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

func TestAbort(t *testing.T) {
	type steps struct {
		listener, body, post func(cancel context.CancelFunc)
		bodyErr              func(ctx context.Context) error
		decision             Decision
	}
	cancelNow := func(cancel context.CancelFunc) { cancel() }
	tests := []struct {
		name string
		steps
		wantText, wantCode string
		ran                bool
	}{
		{"in-a-listener", steps{listener: cancelNow}, "Error: tool call aborted before dispatch", CodeAbortedBeforeDispatch, false},
		{"denied-and-aborted", steps{listener: cancelNow, decision: Deny("no")}, "Error: no", CodeDenied, false},
		{"body-succeeds-anyway", steps{body: cancelNow}, "Error: tool call aborted", CodeAborted, true},
		{"body-returns-the-context-error", steps{body: cancelNow, bodyErr: func(ctx context.Context) error { return ctx.Err() }},
			"Error: tool call aborted", CodeAborted, true},
		{"body-fails-on-its-own", steps{body: cancelNow, bodyErr: func(context.Context) error { return errBoom }}, "Error: boom", "", true},
		{"after-the-body", steps{post: cancelNow}, "Error: tool call aborted", CodeAborted, true},
		{"never", steps{}, "done", "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			ctx, cancel := context.WithCancel(w.ctx())
			defer cancel()
			ran := false
			w.owner(w.root, "o", def("x", body(func(ctx context.Context, _ *Exec) (Outcome, error) {
				ran = true
				if tt.body != nil {
					tt.body(cancel)
				}
				if tt.bodyErr != nil {
					return Outcome{}, tt.bodyErr(ctx)
				}
				return Outcome{Value: str("done")}, nil
			})))
			_, err := PreExecute.On(w.root, func(ctx context.Context, _ *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
				if tt.listener != nil {
					tt.listener(cancel)
				}
				if tt.decision.Kind != "" {
					return tt.decision, nil
				}
				return next(ctx)
			})
			w.must(err)
			_, err = PostExecute.On(w.root, func(ctx context.Context, _ Finished, next func(context.Context) (PostDecision, error)) (PostDecision, error) {
				if tt.post != nil {
					tt.post(cancel)
				}
				return next(ctx)
			})
			w.must(err)
			r := w.r.Execute(ctx, Call{Name: "x"})
			if text(r) != tt.wantText || code(r) != tt.wantCode || ran != tt.ran {
				t.Errorf("got %s %+v, ran %v", text(r), r.Error, ran)
			}
		})
	}
}

func TestAbortBeforeDispatchRunsNoPolicy(t *testing.T) {
	w := newWorld(t)
	w.owner(w.root, "o", def("x"))
	_, err := w.r.Guard(w.root, func(*Exec) string { t.Error("a guard ran"); return "" })
	w.must(err)
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	if r := w.r.Execute(ctx, Call{Name: "x"}); code(r) != CodeAbortedBeforeDispatch || r.Error.Name != "AbortError" {
		t.Errorf("got %+v", r.Error)
	}
	if r := w.r.Execute(ctx, Call{Name: "x", Arguments: []byte("{")}); code(r) != CodeInvalidArgs {
		t.Errorf("bad arguments: got %+v", r.Error)
	}
}

// TestWrapperCannotHideCancellation gives the body a context that a wrapper
// made from nothing: the caller's cancellation still reaches it, and the chain
// of calls is still known.
func TestWrapperCannotHideCancellation(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(w.ctx())
	defer cancel()
	callers := 0
	w.owner(w.root, "o", def("x", body(func(ctx context.Context, _ *Exec) (Outcome, error) {
		callers = len(cordis.CallersIn(ctx))
		cancel()
		within(t, ctx.Done(), "cancellation")
		return Outcome{}, ctx.Err()
	})))
	_, err := AroundExecute.On(w.root, func(_ context.Context, _ *Exec, next func(context.Context) (*Result, error)) (*Result, error) {
		own, stop := context.WithCancel(context.Background())
		defer stop()
		return next(own)
	})
	w.must(err)
	if r := w.r.Execute(ctx, Call{Name: "x"}); code(r) != CodeAborted {
		t.Errorf("got %+v", r.Error)
	}
	if callers == 0 {
		t.Error("the chain of calls is lost")
	}
}

func TestTimeout(t *testing.T) {
	until := func(ctx context.Context, d time.Duration) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
			return nil
		}
	}
	type run func(ctx context.Context, exec *Exec) (Outcome, error)
	done := Outcome{Value: str("done")}
	tests := []struct {
		name      string
		own, call time.Duration
		body      run
		wantText  string
		wantCode  string
		took      time.Duration
	}{
		{"in-time", time.Second, 0, func(ctx context.Context, _ *Exec) (Outcome, error) { return done, until(ctx, 900*time.Millisecond) },
			"done", "", 900 * time.Millisecond},
		{"late", 300 * time.Millisecond, 0, func(ctx context.Context, _ *Exec) (Outcome, error) { return done, until(ctx, time.Hour) },
			`Error: tool "x" timed out after 300 ms`, CodeTimeout, 300 * time.Millisecond},
		{"deaf-body-is-awaited", 300 * time.Millisecond, 0, func(context.Context, *Exec) (Outcome, error) { time.Sleep(2 * time.Second); return done, nil },
			`Error: tool "x" timed out after 300 ms`, CodeTimeout, 2 * time.Second},
		{"late-with-its-own-error", 300 * time.Millisecond, 0, func(ctx context.Context, _ *Exec) (Outcome, error) {
			_ = until(ctx, time.Hour)
			return Outcome{}, errors.New("signal: killed")
		}, `Error: tool "x" timed out after 300 ms: signal: killed`, CodeTimeout, 300 * time.Millisecond},
		{"failed-in-time", time.Second, 0, func(context.Context, *Exec) (Outcome, error) { return Outcome{}, errBoom }, "Error: boom", "", 0},
		{"the-call's-limit", 0, 50 * time.Millisecond, func(ctx context.Context, _ *Exec) (Outcome, error) { return done, until(ctx, time.Hour) },
			`Error: tool "x" timed out after 50 ms`, CodeTimeout, 50 * time.Millisecond},
		{"the-smaller-limit", time.Hour, 50 * time.Millisecond, func(ctx context.Context, _ *Exec) (Outcome, error) { return done, until(ctx, 2*time.Hour) },
			`Error: tool "x" timed out after 50 ms`, CodeTimeout, 50 * time.Millisecond},
		{"no-limit", 0, 0, func(ctx context.Context, _ *Exec) (Outcome, error) { return done, until(ctx, time.Hour) }, "done", "", time.Hour},
	}
	for _, tt := range tests {
		t.Run(strings.ReplaceAll(tt.name, "'", ""), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.owner(w.root, "o", def("x", func(d *Definition) { d.Timeout = tt.own }, body(tt.body)))
				start := time.Now()
				r := w.r.Execute(t.Context(), Call{Name: "x", Timeout: tt.call})
				if text(r) != tt.wantText || code(r) != tt.wantCode || time.Since(start) != tt.took {
					t.Errorf("got %s %+v after %v", text(r), r.Error, time.Since(start))
				}
			})
		})
	}
}

func TestTimeoutOfAnOuterCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var inner *Result
		w.owner(w.root, "o",
			def("slow", body(func(ctx context.Context, _ *Exec) (Outcome, error) { <-ctx.Done(); return Outcome{}, ctx.Err() })),
			def("outer", func(d *Definition) { d.Timeout = time.Second }, body(func(ctx context.Context, exec *Exec) (Outcome, error) {
				inner = w.r.Execute(ctx, Call{Name: "slow", Parent: exec, Timeout: time.Minute})
				return Outcome{Value: str("")}, nil
			})))
		outer := w.call("outer", "")
		if code(inner) != CodeAborted || code(outer) != CodeTimeout {
			t.Errorf("inner %+v, outer %+v", inner.Error, outer.Error)
		}
	})
}

func TestTimeoutCoversRendering(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.owner(w.root, "o", def("x", func(d *Definition) {
			d.Timeout = time.Second
			d.Output.Render = func(ctx context.Context, _, _ lossless.Text) ([]Block, error) { <-ctx.Done(); return nil, ctx.Err() }
		}))
		if r := w.call("x", ""); code(r) != CodeTimeout {
			t.Errorf("got %+v", r.Error)
		}
	})
}
