package cordis

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// inTime runs a test of a plugin's fiber in a bubble of fake time. at waits until
// ms milliseconds after the start.
func inTime(t *testing.T, test func(t *testing.T, c *Context, tr *trace, at func(ms int))) {
	synctest.Test(t, func(t *testing.T) {
		root := world(t)
		f := mount(t, root, plugin("p", nil), nil)
		began := time.Now()
		test(t, f.Context(), &trace{}, func(ms int) {
			time.Sleep(time.Until(began.Add(time.Duration(ms) * time.Millisecond)))
			synctest.Wait()
		})
	})
}

func TestTimer133and134Timeout(t *testing.T) {
	inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
		call := func(ctx context.Context) {
			tr.add("called with %d effects, for %s", len(c.Fiber().Effects()), CallersIn(ctx)[0].Name())
		}
		must(c.Timeout(time.Second, call))
		h := must(c.Timeout(time.Second, call))
		wantEqual(t, labels(c.Fiber()), []string{"ctx.timeout()", "ctx.timeout()"})
		h.Dispose(limit(t))
		at(999)
		tr.want(t)
		at(5000)
		tr.want(t, "called with 0 effects, for p")
		must(c.Timeout(time.Second, call))
		dispose(t, c.Fiber())
		at(9000)
		tr.want(t)
		_, err := c.Timeout(time.Second, call)
		wantErr(t, err, ErrInactive)
		_, err = c.Timeout(time.Second, nil)
		wantErr(t, err, ErrArgument)
	})
}

func TestTimer135Sleep(t *testing.T) {
	inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
		if err := c.Sleep(limit(t), time.Second); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, len(c.Fiber().Effects()), 0)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		wantErr(t, c.Sleep(ctx, time.Hour), context.DeadlineExceeded)
		got := make(chan error)
		go func() { got <- c.Sleep(context.Background(), time.Hour) }()
		synctest.Wait()
		dispose(t, c.Fiber())
		err := <-got
		wantErr(t, err, ErrDisposed)
		wantEqual(t, err.Error(), "Context has been disposed")
		wantErr(t, c.Sleep(limit(t), 0), ErrInactive)
	})
}

func TestTimer136Interval(t *testing.T) {
	inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
		_, err := c.Interval(0, func(context.Context) {})
		wantErr(t, err, ErrArgument)
		h := must(c.Interval(time.Second, func(context.Context) { tr.add("tick"); panic("contained") }))
		at(3500)
		tr.want(t, "tick", "tick", "tick")
		h.Dispose(limit(t))
		at(9000)
		tr.want(t)
		must(c.Interval(time.Second, func(context.Context) { // slow: ticks are lost, not queued
			tr.add("slow")
			time.Sleep(1500 * time.Millisecond)
		}))
		at(14200) // at 10 and 12 and 14
		tr.want(t, "slow", "slow", "slow")
	})
}

func TestTimer137to141Ticks(t *testing.T) {
	inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
		n := 0
		for _, err := range c.Ticks(limit(t), time.Second) { // 137, 139
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 3 {
				break
			}
		}
		at(3000)
		wantEqual(t, len(c.Fiber().Effects()), 0)
		func() { // 140
			defer func() { recover() }()
			for range c.Ticks(limit(t), time.Second) {
				panic("in the loop")
			}
		}()
		wantEqual(t, len(c.Fiber().Effects()), 0)
		for _, err := range c.Ticks(limit(t), 0) {
			wantErr(t, err, ErrArgument)
		}
		var last error
		time.AfterFunc(2500*time.Millisecond, c.Fiber().RequestDispose)
		n = 0
		for _, err := range c.Ticks(limit(t), time.Second) { // 141
			n++
			last = err
		}
		if n != 3 || !errors.Is(last, ErrDisposed) {
			t.Fatal(n, last)
		}
	})
}

func TestTimer142to144Throttle(t *testing.T) {
	for _, trailing := range []bool{true, false} {
		inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
			call, h, err := c.Throttle(time.Second, trailing, func(context.Context) { tr.add("call") })
			if err != nil {
				t.Fatal(err)
			}
			call()
			at(600)
			call()
			call()
			tr.want(t, "call") // at once, and the others held
			at(1100)
			if trailing { // 143: once, at the end of the window
				tr.want(t, "call")
				call() // within the window of the trailing one
				at(2100)
				tr.want(t, "call")
			} else {
				tr.want(t)
			}
			at(4000)
			tr.want(t)
			call()
			call()
			h.Dispose(limit(t)) // 144
			at(6000)
			tr.want(t, "call")
			call()
			call()
			at(8000)
			tr.want(t, "call")
			dispose(t, c.Fiber())
			call()
			tr.want(t)
		})
	}
}

func TestTimer145and146Debounce(t *testing.T) {
	inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
		call, h, err := c.Debounce(time.Second, func(context.Context) { tr.add("call") })
		if err != nil {
			t.Fatal(err)
		}
		for _, ms := range []int{0, 400, 800} {
			at(ms)
			call()
		}
		at(1700)
		tr.want(t)
		at(1900)
		tr.want(t, "call")
		call()
		h.Dispose(limit(t))
		call()
		at(9000)
		tr.want(t)
		_, _, err = c.Debounce(0, nil)
		wantErr(t, err, ErrArgument)
		_, _, err = c.Throttle(0, true, nil)
		wantErr(t, err, ErrArgument)
	})
}

// Timers go on while a running call holds up the unload; then they are gone.
func TestTimerDuringDrain(t *testing.T) {
	inTime(t, func(t *testing.T, c *Context, tr *trace, at func(int)) {
		_, done, err := c.Fiber().Enter(context.Background(), "call")
		if err != nil {
			t.Fatal(err)
		}
		must(c.Interval(time.Second, func(ctx context.Context) { tr.add("tick %v", ctx.Err()) }))
		c.Fiber().RequestDispose()
		at(2500)
		tr.want(t, "tick context canceled", "tick context canceled")
		done()
		dispose(t, c.Fiber())
		at(9000)
		tr.want(t)
	})
}
