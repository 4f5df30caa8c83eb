package tool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/cordis"
)

// TestUnmountWaitsForRunningCall unmounts a tool's owner while its body runs:
// the call keeps its true result, new calls are refused with what happened.
func TestUnmountWaitsForRunningCall(t *testing.T) {
	w := newWorld(t)
	started, finish := make(chan struct{}), make(chan struct{})
	mount := WithMount(w.root, Mount{Number: 1, ID: "dyn-1", Plugin: "holder"})
	f := w.owner(mount, "holder", def("x", body(func(context.Context, *Exec) (Outcome, error) {
		close(started)
		<-finish
		return Outcome{Value: str("true result")}, nil
	})))
	results, receipts := make(chan *Result, 1), make(chan cordis.Receipt, 1)
	go func() { results <- w.call("x", "") }()
	within(t, started, "start")
	unloading := make(chan struct{}, 1)
	_, err := cordis.StatusChanged.On(w.root, func(_ context.Context, s cordis.StatusChange) {
		if s.Fiber == f && s.New == cordis.Unloading {
			unloading <- struct{}{}
		}
	})
	w.must(err)
	go func() {
		receipt, err := f.Dispose(context.Background())
		if err != nil {
			t.Error(err)
		}
		receipts <- receipt
	}()
	within(t, unloading, "unloading")
	refused := w.call("x", "")
	if got, want := text(refused), `Error: tool "x" takes no calls now: its owner, temporary Plugin dyn-1 (holder), is unloading`; got != want || code(refused) != CodeUnavailable {
		t.Errorf("got %s %q", got, code(refused))
	}
	if m := w.r.ExecutionMode(w.ctx(), Call{Name: "x"}); m != Exclusive {
		t.Errorf("mode %s", m)
	}
	close(finish)
	if r := within(t, results, "result"); text(r) != "true result" {
		t.Errorf("got %s", text(r))
	}
	if receipt := within(t, receipts, "receipt"); receipt.Drained != 1 || len(receipt.Abandoned) != 0 {
		t.Errorf("got %+v", receipt)
	}
	if got := text(w.call("x", "")); got != `Error: unknown tool "x" — it went with temporary Plugin dyn-1 (unmounted)` {
		t.Errorf("got %s", got)
	}
}

// TestBodyUnmountsItsOwner must not wait for itself.
func TestBodyUnmountsItsOwner(t *testing.T) {
	w := newWorld(t)
	var f *cordis.Fiber
	var disposal error
	f = w.owner(w.root, "self", def("x", body(func(ctx context.Context, _ *Exec) (Outcome, error) {
		_, disposal = f.Dispose(ctx)
		return Outcome{Value: str("bye")}, nil
	})))
	results := make(chan *Result, 1)
	go func() { results <- w.call("x", "") }()
	if r := within(t, results, "result"); text(r) != "bye" {
		t.Errorf("got %s", text(r))
	}
	if !errors.Is(disposal, cordis.ErrSelf) {
		t.Errorf("got %v", disposal)
	}
	w.dispose(f)
	if _, ok := w.r.Get("x", nil); ok {
		t.Error("the tool is still there")
	}
}

// TestToolsUnmountEachOther runs two tools that dispose each other's owners.
func TestToolsUnmountEachOther(t *testing.T) {
	w := newWorld(t)
	var owners [2]*cordis.Fiber
	var ready sync.WaitGroup
	ready.Add(2)
	for i := range owners {
		owners[i] = w.owner(w.root, fmt.Sprintf("o%d", i), def(fmt.Sprintf("x%d", i), body(func(ctx context.Context, _ *Exec) (Outcome, error) {
			ready.Done()
			ready.Wait()
			_, _ = owners[1-i].Dispose(ctx)
			return Outcome{Value: str("done")}, nil
		})))
	}
	results := make(chan *Result, 2)
	for i := range owners {
		go func() { results <- w.call(fmt.Sprintf("x%d", i), "") }()
	}
	for range owners {
		if r := within(t, results, "result"); text(r) != "done" {
			t.Errorf("got %s", text(r))
		}
	}
	for _, f := range owners {
		w.dispose(f)
	}
	if got := w.names(nil); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

// TestGoneWhileDecided takes the tool away while a listener decides.
func TestGoneWhileDecided(t *testing.T) {
	w := newWorld(t)
	f := w.owner(w.root, "o", def("x"))
	_, err := PreExecute.On(w.root, func(ctx context.Context, _ *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
		w.dispose(f)
		return next(ctx)
	})
	w.must(err)
	if r := w.call("x", ""); code(r) != CodeUnknownTool || !strings.Contains(text(r), "it went with plugin o") {
		t.Errorf("got %s", text(r))
	}
}

// TestGoneBeforeItsValueIsReplaced renders nothing through an owner that went.
func TestGoneBeforeItsValueIsReplaced(t *testing.T) {
	w := newWorld(t)
	f := w.owner(w.root, "o", def("x"))
	_, err := PostExecute.On(w.root, func(context.Context, Finished, func(context.Context) (PostDecision, error)) (PostDecision, error) {
		w.dispose(f)
		return PostDecision{Kind: PostAccept, Value: str("late")}, nil
	})
	w.must(err)
	if r := w.call("x", ""); code(r) != CodeUnknownTool {
		t.Errorf("got %s", text(r))
	}
}

func TestGuardOfAnOwnerThatGoes(t *testing.T) {
	w := newWorld(t)
	w.owner(w.root, "o", def("x"))
	inBody, finish := make(chan struct{}), make(chan struct{})
	f := w.plugin(w.root, "guard", func(c *cordis.Context) error {
		if _, err := w.r.Guard(c, func(*Exec) string { return "" }); err != nil {
			return err
		}
		_, err := c.Defer("slow", func(context.Context) error { close(inBody); <-finish; return nil })
		return err
	})
	gone := make(chan struct{})
	go func() { w.dispose(f); close(gone) }()
	within(t, inBody, "disposer")
	if r := w.call("x", ""); code(r) != CodeDenied || !strings.Contains(text(r), "cannot decide") {
		t.Errorf("got %s", text(r))
	}
	close(finish)
	within(t, gone, "disposal")
	if r := w.call("x", ""); r.IsError {
		t.Errorf("got %s", text(r))
	}
}

// TestManyAtOnce registers, calls, lists and disposes from many goroutines.
func TestManyAtOnce(t *testing.T) {
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			name := fmt.Sprintf("t%d", i)
			for range 10 {
				f, err := w.root.Mount(&cordis.Plugin{Name: name, Apply: func(c *cordis.Context, _ any) error {
					_, err := w.r.Register(c, def(name))
					return err
				}}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := f.Await(w.ctx()); err != nil {
					t.Error(err)
				}
				if r := w.call(name, ""); r.IsError {
					t.Errorf("%s: %s", name, text(r))
				}
				w.call(fmt.Sprintf("t%d", (i+1)%20), "")
				w.r.List(nil)
				if _, err := f.Dispose(w.ctx()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := w.names(nil); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}
