package cordis

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"time"
)

// timer is a timer effect. Its callbacks are tracked calls of the fiber; their
// context extends the fiber's own, so it is cancelled when the unload begins.
type timer struct {
	handle Handle
	ctx    *Context
	fn     func(context.Context)
	period time.Duration // 0: once
	next   time.Time
	t      *time.Timer
	gone   chan struct{} // closed by undo, if set
}

var _ inverse = (*timer)(nil)

func (t *timer) undo() {
	if t.t != nil {
		t.t.Stop()
	}
	if t.gone != nil {
		close(t.gone)
	}
}

// start registers t and lets it fire after d; a negative d registers only.
func (t *timer) start(d time.Duration, label string) error {
	f := t.ctx.fiber
	t.handle = Handle{site: site{f, label}, inverse: t}
	f.rt.mu.Lock()
	defer f.rt.mu.Unlock()
	if err := f.accepts("create effect"); err != nil {
		return err
	}
	f.list(&t.handle)
	if d >= 0 {
		t.next = time.Now().Add(d)
		t.t = time.AfterFunc(d, t.fire)
	}
	return nil
}

// end removes the effect; it is false if it was removed before.
func (t *timer) end() bool {
	r := t.ctx.fiber.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.handle.phase != handleLive {
		return false
	}
	t.handle.begin()
	return true
}

func (t *timer) live() bool {
	r := t.ctx.fiber.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	return t.handle.phase == handleLive
}

// fire runs the callback; one of a period is due again when it has returned.
func (t *timer) fire() {
	if t.period == 0 && !t.end() {
		return
	}
	t.call()
	if t.period == 0 {
		return
	}
	now := time.Now()
	for t.next = t.next.Add(t.period); !t.next.After(now); {
		t.next = t.next.Add(t.period * max(1, now.Sub(t.next)/t.period)) // ticks that were missed are lost
	}
	r := t.ctx.fiber.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.handle.phase == handleLive {
		t.t.Reset(t.next.Sub(now))
	}
}

// call runs the callback as a call of the fiber, if it admits one. While the
// fiber drains, timers go on as long as the calls do that may have set them.
func (t *timer) call() {
	f := t.ctx.fiber
	fr := newFrame(t.ctx.Context(), f, t.handle.label)
	fr.in.up = nil // its own chain, not the body's
	if !f.admit(fr) && !f.admitLate(fr, func(*frame) bool { return len(f.calls.running()) > 0 }) {
		return
	}
	defer f.leave(fr)
	err := guard(func() error { t.fn(fr); return nil })
	if err != nil {
		f.report("timer callback failed", err, "timer", t.handle.label)
	}
}

// Timeout calls fn after d, once, unless the effect is undone before. The
// effect is gone when fn is called.
func (c *Context) Timeout(d time.Duration, fn func(context.Context)) (*Handle, error) {
	if fn == nil {
		return nil, fmt.Errorf("%w: the callback is nil", ErrArgument)
	}
	t := &timer{ctx: c, fn: fn}
	if err := t.start(max(0, d), "ctx.timeout()"); err != nil {
		return nil, err
	}
	return &t.handle, nil
}

// Interval calls fn every d until the effect is undone. Calls do not overlap:
// ticks that come while fn runs are lost. d must be positive.
func (c *Context) Interval(d time.Duration, fn func(context.Context)) (*Handle, error) {
	if d <= 0 || fn == nil {
		return nil, fmt.Errorf("%w: an interval needs a positive duration (not %s) and a callback", ErrArgument, d)
	}
	t := &timer{ctx: c, fn: fn, period: d}
	if err := t.start(d, "ctx.interval()"); err != nil {
		return nil, err
	}
	return &t.handle, nil
}

// Sleep waits for d. It returns early with ErrDisposed when the fiber undoes
// its effects, and with the cause when ctx ends.
func (c *Context) Sleep(ctx context.Context, d time.Duration) error {
	t := &timer{ctx: c, gone: make(chan struct{})}
	if err := t.start(-1, "ctx.timeout()"); err != nil {
		return err
	}
	defer t.end()
	return t.wait(ctx, time.NewTimer(max(0, d)))
}

// wait waits for the tick, the end of the effect or that of ctx.
func (t *timer) wait(ctx context.Context, tick *time.Timer) error {
	defer tick.Stop()
	select {
	case <-tick.C:
		return nil
	default:
	}
	select {
	case <-tick.C:
		return nil
	case <-t.gone:
		return ErrDisposed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Ticks gives a tick every d to a range loop, with the time. Ticks that come
// while the loop's body runs are lost. The effect lasts as long as the loop. When
// the fiber undoes its effects the last round gets ErrDisposed, when ctx ends
// its cause.
func (c *Context) Ticks(ctx context.Context, d time.Duration) iter.Seq2[time.Time, error] {
	return func(yield func(time.Time, error) bool) {
		if d <= 0 {
			yield(time.Time{}, fmt.Errorf("%w: ticks need a positive duration, not %s", ErrArgument, d))
			return
		}
		t := &timer{ctx: c, gone: make(chan struct{})}
		if err := t.start(-1, "ctx.interval()"); err != nil {
			yield(time.Time{}, err)
			return
		}
		defer t.end()
		next := time.Now()
		for {
			now := time.Now()
			for next = next.Add(d); !next.After(now); {
				next = next.Add(d * max(1, now.Sub(next)/d))
			}
			if err := t.wait(ctx, time.NewTimer(next.Sub(now))); err != nil {
				yield(time.Time{}, err)
				return
			}
			if !yield(time.Now(), nil) {
				return
			}
		}
	}
}

// Throttle gives a function that calls fn at most once in d: at once when it
// was quiet, and, if trailing is set, once more at the end of the window for
// calls that came within it. The first kind runs on the caller's goroutine, and
// still runs when the effect has been undone, as long as the fiber admits calls.
func (c *Context) Throttle(d time.Duration, trailing bool, fn func(context.Context)) (call func(), h *Handle, err error) {
	if d <= 0 || fn == nil {
		return nil, nil, fmt.Errorf("%w: throttle needs a positive duration (not %s) and a function", ErrArgument, d)
	}
	var mu sync.Mutex
	var last time.Time // of the last call of fn
	due := false
	t := &timer{ctx: c}
	t.fn = fn
	if err := t.start(-1, "ctx.throttle()"); err != nil {
		return nil, nil, err
	}
	fire := func() {
		mu.Lock()
		due, last = false, time.Now()
		mu.Unlock()
		t.call()
	}
	call = func() {
		mu.Lock()
		now := time.Now()
		wait := d - now.Sub(last)
		if last.IsZero() || wait <= 0 && (!due || !t.live()) {
			last, due = now, false
			mu.Unlock()
			t.call()
			return
		}
		arm := trailing && !due
		due = due || trailing
		mu.Unlock()
		if arm && !t.arm(wait, fire) {
			mu.Lock()
			due = false
			mu.Unlock()
		}
	}
	return call, &t.handle, nil
}

// Debounce gives a function that has fn called when it was not called for d.
// Once the effect is undone, nothing is.
func (c *Context) Debounce(d time.Duration, fn func(context.Context)) (call func(), h *Handle, err error) {
	if d <= 0 || fn == nil {
		return nil, nil, fmt.Errorf("%w: debounce needs a positive duration (not %s) and a function", ErrArgument, d)
	}
	t := &timer{ctx: c, fn: fn}
	if err := t.start(-1, "ctx.debounce()"); err != nil {
		return nil, nil, err
	}
	return func() { t.arm(d, t.call) }, &t.handle, nil
}

// arm lets fire run after d, instead of what was armed before. It is false when
// the effect has been undone.
func (t *timer) arm(d time.Duration, fire func()) bool {
	r := t.ctx.fiber.rt
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.handle.phase != handleLive {
		return false
	}
	if t.t == nil {
		t.t = time.AfterFunc(d, fire)
	} else {
		t.t.Reset(d)
	}
	return true
}
