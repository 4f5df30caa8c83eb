package cordis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// Everything that registers is refused on a disposed fiber, with its state.
func TestRefusedWhenDisposed(t *testing.T) {
	root := world(t)
	f := mount(t, root, plugin("gone", nil), nil)
	dispose(t, f)
	c, ctx := f.Context(), limit(t)
	nop := func(context.Context) {}
	var errs []error
	keep := func(_ *Handle, err error) { errs = append(errs, err) }
	keep(c.Effect("e", func(*Setup) error { t.Error("ran"); return nil }))
	keep(c.EffectAsync("e", func(context.Context, *Setup) error { t.Error("ran"); return nil }))
	keep(c.Defer("e", func(context.Context) error { return nil }))
	keep(c.Provide("s", 1))
	keep(evEmit.On(c, func(context.Context, int) {}))
	keep(c.Timeout(0, nop))
	keep(c.Interval(time.Second, nop))
	keep(c.Export(Exporter{Export: func(Message) {}}))
	_, h, err := c.Throttle(time.Second, true, nop)
	keep(h, err)
	_, h, err = c.Debounce(time.Second, nop)
	keep(h, err)
	_, err = c.Mount(plugin("p", nil), nil)
	errs = append(errs, err, c.Sleep(ctx, 0), f.Restart(ctx), f.Update(ctx, nil))
	for _, err := range c.Ticks(ctx, time.Second) {
		errs = append(errs, err)
	}
	_, _, err = f.Enter(ctx, "call")
	for i, err := range append(errs, err) {
		if !errors.Is(err, ErrInactive) || !strings.HasSuffix(err.Error(), `on inactive context: fiber "gone" (#1) is disposed`) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func TestRefusedArguments(t *testing.T) {
	root := world(t)
	_, err := root.Defer("e", nil)
	wantErr(t, err, ErrArgument)
	must(PluginChanged.On(root, func(_ context.Context, ch PluginChange) {
		if ch.Mounted {
			wantErr(t, ch.Fiber.AddInject(Dependency{}), ErrArgument)
		}
	}))
	mount(t, root, plugin("p", nil), nil)
	release := make(chan struct{})
	h := must(root.EffectAsync("slow", func(context.Context, *Setup) error { <-release; return nil }))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err = h.Wait(ctx)
	wantErr(t, err, context.Canceled)
	if !strings.Contains(err.Error(), `"slow"`) {
		t.Error(err)
	}
	close(release)
}

// The digest sees every kind of thing that can be left behind.
func TestDigest(t *testing.T) {
	root := world(t)
	r := root.Runtime()
	empty := r.Digest()
	for name, leave := range map[string]func() func(){
		"effect": func() func() {
			h := must(root.Defer("e", func(context.Context) error { return nil }))
			return func() { h.Dispose(limit(t)) }
		},
		"service": func() func() { h := must(root.Provide("s", 1)); return func() { h.Dispose(limit(t)) } },
		"listener": func() func() {
			h := must(evEmit.On(root, func(context.Context, int) {}))
			return func() { h.Dispose(limit(t)) }
		},
		"fiber": func() func() { f := mount(t, root, plugin("p", nil, "never"), nil); return func() { dispose(t, f) } },
		"call":  func() func() { _, done, _ := root.Fiber().Enter(limit(t), "call"); return done },
	} {
		undo := leave()
		if r.Digest() == empty {
			t.Errorf("%s is not in the digest", name)
		}
		undo()
		wantEqual(t, r.Digest(), empty)
	}
}

func TestStepperTellsWhatIsLeft(t *testing.T) {
	s := NewStepper(1)
	root := New(WithStepper(s))
	must(root.Mount(plugin("p", nil), nil))
	if s.Run(1) || !s.Run(100) || s.Step() {
		t.Fatal("run")
	}
}

// A service whose provider is on its way tells so.
func TestWaitingReasons(t *testing.T) {
	root := world(t)
	release, provided := make(chan struct{}), make(chan struct{})
	must(root.Mount(plugin("provider", func(c *Context) error {
		must(c.Provide("s", 1))
		close(provided)
		<-release
		return nil
	}), nil))
	f := must(root.Mount(plugin("d", nil, "s", "t"), nil))
	<-provided
	wantEqual(t, f.Waiting().Missing, []Missing{{"s", `its provider "provider" (#1) is loading`}, {"t", "not provided"}})
	close(release)
	dispose(t, f)
	wantEqual(t, f.Waiting(), Waiting{})
}
