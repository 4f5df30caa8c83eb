package cordis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
)

// everywhere runs fn on n goroutines and waits.
func everywhere(n int, fn func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { fn(i) })
	}
	wg.Wait()
}

// quiesce waits until nothing moves in the world.
func quiesce(t testing.TB, root *Context) {
	t.Helper()
	r := root.Runtime()
	for {
		moving := (*Fiber)(nil)
		r.mu.Lock()
		for _, f := range r.root.descendants([]*Fiber{r.root}) {
			if !f.settled() {
				moving = f
			}
		}
		r.mu.Unlock()
		if moving == nil {
			return
		}
		settle(t, moving)
	}
}

func TestRace24aEffectsAgainstDispose(t *testing.T) {
	root := world(t)
	var standing atomic.Int64
	for range 40 {
		f := mount(t, root, plugin("p", nil), nil)
		everywhere(5, func(i int) {
			if i == 0 {
				f.RequestDispose()
				return
			}
			for range 25 {
				_, err := f.Context().Effect("e", func(s *Setup) error {
					standing.Add(1)
					s.Collect(func(context.Context) error { standing.Add(-1); return nil })
					return nil
				})
				if err != nil && !errors.Is(err, ErrInactive) {
					t.Error(err)
				}
			}
		})
		dispose(t, f)
		if n := standing.Load(); n != 0 {
			t.Fatalf("%d effects leaked", n)
		}
	}
}

func TestRace24bDisposeFromManyGoroutines(t *testing.T) {
	root := world(t)
	for range 50 {
		var n atomic.Int64
		f := mount(t, root, plugin("p", func(c *Context) error {
			_, err := c.Defer("e", func(context.Context) error { n.Add(1); return errTest })
			return err
		}), nil)
		everywhere(8, func(int) {
			rec := dispose(t, f)
			if n.Load() != 1 || f.State() != Disposed || rec.Left != 1 || !errors.Is(rec.Err, errTest) {
				t.Errorf("returned early or with another receipt: %d, %s, %+v", n.Load(), f.State(), rec)
			}
		})
	}
}

func TestRace24cFlapping(t *testing.T) {
	root := world(t)
	var runs, undone atomic.Int64
	var fibers []*Fiber
	for i := range 100 {
		fibers = append(fibers, must(root.Mount(plugin("d", func(c *Context) error {
			runs.Add(1)
			_, err := c.Defer("e", func(context.Context) error {
				if _, err := c.Use(fmt.Sprint("s", i%2)); err != nil {
					t.Error(err)
				}
				undone.Add(1)
				return nil
			})
			return err
		}, fmt.Sprint("s", i%2)), nil)))
	}
	everywhere(4, func(g int) {
		for i := range 25 {
			h, err := root.Provide(fmt.Sprint("s", g%2), g)
			if err != nil {
				continue // the other goroutine has it
			}
			if i%2 == 0 {
				settle(t, fibers[50+g])
			}
			h.Dispose(context.Background())
		}
	})
	quiesce(t, root)
	for _, f := range fibers {
		wantState(t, f, Pending)
	}
	if runs.Load() != undone.Load() || runs.Load() == 0 {
		t.Fatalf("%d runs, %d undone", runs.Load(), undone.Load())
	}
	must(root.Provide("s0", 1))
	quiesce(t, root)
	wantState(t, fibers[0], Active)
	wantState(t, fibers[1], Pending)
}

func TestRace24dEmitAgainstOnOffDispose(t *testing.T) {
	root := world(t)
	for range 20 {
		var gone atomic.Bool
		f := mount(t, root, plugin("p", nil), nil)
		everywhere(4, func(i int) {
			for range 50 {
				switch i {
				case 0, 1:
					evEmit.Emit(context.Background(), root, 1)
				case 2:
					h, err := evEmit.On(f.Context(), func(context.Context, int) {
						if gone.Load() {
							t.Error("called after the disposal")
						}
					}, Prepend(), Once())
					if err == nil {
						h.Dispose(context.Background())
					}
					evEmit.On(f.Context(), func(context.Context, int) {
						if gone.Load() {
							t.Error("called after the disposal")
						}
					})
				case 3:
					dispose(t, f)
					gone.Store(true)
				}
			}
		})
	}
	wantEqual(t, len(root.Runtime().listeners(&evEmit.event)), 0)
}

func TestRace24eUpdateLossDispose(t *testing.T) {
	root := world(t)
	for range 30 {
		var up atomic.Int64
		h := must(root.Provide("dep", 1))
		f := must(root.Mount(plugin("p", func(c *Context) error {
			if up.Add(1) != 1 {
				t.Error("two runs at a time")
			}
			_, err := c.Defer("e", func(context.Context) error { up.Add(-1); return nil })
			if err != nil { // disposed meanwhile
				up.Add(-1)
			}
			return err
		}, "dep"), 0))
		everywhere(4, func(i int) {
			switch i {
			case 0:
				for n := range 10 {
					f.Update(context.Background(), n)
				}
			case 1:
				for range 10 {
					h.Dispose(context.Background())
					h = must(root.Provide("dep", 1))
				}
			case 2:
				for range 10 {
					f.Restart(context.Background())
				}
			case 3:
				dispose(t, f)
			}
		})
		h.Dispose(context.Background())
		wantState(t, f, Disposed)
		wantEqual(t, up.Load(), int64(0))
	}
}

// Random mounts, losses and disposals of a tree from many goroutines leave
// nothing behind.
func TestRaceTree(t *testing.T) {
	root := world(t)
	everywhere(4, func(g int) {
		for i := range 30 {
			name := fmt.Sprint("t", (g+i)%3)
			f, err := root.Mount(plugin(name, func(c *Context) error {
				if _, err := c.Mount(plugin("child", func(c *Context) error {
					_, err := evEmit.On(c, func(context.Context, int) {})
					return err
				}, name), nil); err != nil {
					return err
				}
				_, err := c.Provide(name, g)
				return err
			}), nil)
			if err != nil {
				t.Error(err)
				continue
			}
			evEmit.Emit(context.Background(), root, i)
			if i%3 == 0 {
				root.Runtime().Remove(f.Plugin())
			}
			f.Restart(context.Background())
			f.RequestDispose()
		}
	})
	quiesce(t, root)
	wantEqual(t, len(root.Runtime().Fibers()), 0)
}
