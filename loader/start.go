package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
)

// ErrStarting is the trouble of a row that was mounted at boot, but is not there in its
// time: it will be when it has started.
var ErrStarting = errors.New("it goes on starting")

// start mounts what changed, waits until it has settled, and says what is wrong then.
func (c *Change) start(ctx context.Context) error {
	late := fmt.Errorf("it has not started within %s", c.t.o.Patience.Round(time.Millisecond))
	ctx, cancel := context.WithTimeoutCause(ctx, c.t.o.Patience, late)
	defer cancel()
	on := c.t.c
	if !c.boot {
		c.joint.stage.Replace(c.going...)
		on = c.joint.stage.On(on)
	} else {
		c.publish() // what it starts can be seen, and guards count, from the first
		for _, e := range c.next {
			e.guard.look(context.WithoutCancel(ctx)) // before there is anything that could be used
		}
	}
	var errs []error
	for _, e := range c.fresh {
		if err := c.mount(ctx, on, e); err != nil {
			errs = append(errs, c.trouble(e, err))
		}
	}
	var fibers []*cordis.Fiber
	for _, e := range c.fresh {
		if e.fiber != nil {
			fibers = append(fibers, e.fiber)
		}
	}
	settle(ctx, fibers)
	for _, e := range c.fresh {
		if e.fiber == nil {
			continue
		}
		if err := c.judge(ctx, e); err != nil {
			errs = append(errs, c.trouble(e, err))
		}
	}
	return errors.Join(errs...)
}

// mount mounts one entry.
func (c *Change) mount(ctx context.Context, on *cordis.Context, e *entry) error {
	plugin := c.opened[e]
	var config any
	if e.code != nil {
		var err error
		if plugin, err = e.code.Open(ctx); err != nil {
			return err
		}
		c.opened[e] = plugin
		c.joint.opens(e.code)
		config = e.row.Config
	}
	if plugin != nil {
		plugin.Inject = merge(plugin.Inject, e.row.inject)
	}
	f, err := e.row.on(c.t, on).Mount(plugin, config)
	if err != nil {
		return err
	}
	delete(c.opened, e)
	c.t.mu.Lock()
	e.fiber = f
	if c.boot && c.life == c.t.life {
		c.t.fibers[f] = e
	}
	c.t.mu.Unlock()
	if c.boot {
		e.guard.watch(context.WithoutCancel(ctx), f)
	}
	return nil
}

// settle waits until fibers have nothing to do, or ctx ends. What one provides may set
// another going that had settled: only a pass in which no state changed is the last.
func settle(ctx context.Context, fibers []*cordis.Fiber) {
	states := func() (all []cordis.State) {
		for _, f := range fibers {
			all = append(all, f.State())
		}
		return all
	}
	for before := states(); ctx.Err() == nil; {
		for _, f := range fibers {
			_ = f.Await(ctx) // its state is what counts
		}
		now := states()
		if slices.Equal(before, now) {
			return
		}
		before = now
	}
}

// judge says what is wrong with a fiber that was mounted; one that waits is right, but
// must not end a plugin file that serves.
func (c *Change) judge(ctx context.Context, e *entry) error {
	switch state := e.fiber.State(); state {
	case cordis.Active:
		return nil
	case cordis.Failed:
		return e.fiber.Err()
	case cordis.Disposed:
		return errors.New("it ended itself while it started")
	case cordis.Pending:
		had := c.had[e.row.ID]
		if c.boot || e.code == nil || had == nil || had.fiber == nil || had.fiber.State() != cordis.Active {
			return nil
		}
		return fmt.Errorf("its new version waits for %s", waiting(e.fiber))
	default:
		if err := context.Cause(ctx); err != nil {
			if c.boot {
				err = fmt.Errorf("%w; %w", err, ErrStarting)
			}
			return err
		}
		return fmt.Errorf("it is still %s", state)
	}
}

func waiting(f *cordis.Fiber) string {
	var names []string
	for _, m := range f.Waiting().Missing {
		names = append(names, fmt.Sprintf("the service %s (%s)", plain.Name(m.Name), m.Reason))
	}
	return strings.Join(names, ", ")
}

// trouble notes an error of an entry; it gives it where it refuses the change.
func (c *Change) trouble(e *entry, err error) error {
	err = e.row.blame(err)
	if !c.boot && !e.tried {
		return err
	}
	c.t.mu.Lock()
	if e.fiber == nil {
		e.fault = err
	}
	c.t.mu.Unlock()
	c.report.Troubles = append(c.report.Troubles, Trouble{e.row.ID, err})
	return nil
}

// publish makes the change what the tree has, and gives what it had; false: the tree's
// fiber has unloaded meanwhile, or it is closed.
func (c *Change) publish() (before holding, ok bool) {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.life != t.life {
		return before, false
	}
	before = t.holding
	t.holding = holding{rows: c.rows, entries: c.next, realms: c.realms, booted: true, fibers: make(map[*cordis.Fiber]*entry, len(c.next))}
	for _, e := range c.next {
		if e.fiber != nil {
			t.fibers[e.fiber] = e
		}
		t.guarding = t.guarding || e.guard != nil
	}
	t.leaving = append(slices.Clip(before.leaving), c.going...)
	return before, true
}

// restore takes a publication back, since the swap was refused.
func (c *Change) restore(ctx context.Context, before holding) {
	t := c.t
	t.mu.Lock()
	if c.life == t.life {
		t.holding = before
	}
	t.mu.Unlock()
	for id, e := range c.had {
		e.guard.watch(ctx, e.fiber)
		if n := c.next[id]; n != nil && n.guard != e.guard {
			n.guard.close(ctx)
		}
	}
	for id, e := range c.next {
		if c.had[id] == nil {
			e.guard.close(ctx)
		}
	}
}
