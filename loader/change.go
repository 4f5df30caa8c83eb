package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/document"
)

// ErrOver says that a Change was committed or aborted before.
var ErrOver = errors.New("the change is over")

// Change is a transaction that is prepared. It ends with Commit or Abort, once; until
// then the tree takes no other. It is for one goroutine.
type Change struct {
	t      *Tree
	boot   bool
	over   bool
	stage  *cordis.Stage // nil at boot
	rows   []document.Row
	ids    map[string]bool
	next   map[string]*entry
	fresh  []*entry // of next: what is mounted by this change
	opened map[*entry]*cordis.Plugin
	going  []*cordis.Fiber
	report Report
}

// Prepare starts what changed beside what is there. On an error (of the rows, of a
// plugin that failed, of ctx) nothing has changed. At boot only ctx fails it, and what
// it starts can be seen at once.
func (t *Tree) Prepare(ctx context.Context, rows []document.Row) (_ *Change, err error) {
	select {
	case <-t.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the change before: %w", context.Cause(ctx))
	}
	c := &Change{t: t, rows: rows, next: map[string]*entry{}, opened: map[*entry]*cordis.Plugin{}}
	t.mu.Lock()
	c.boot = !t.booted
	t.gone()
	leaving := slices.Clone(t.leaving)
	t.mu.Unlock()
	if !c.boot {
		c.stage = t.c.Runtime().NewStage(cordis.StageOptions{Replaces: leaving, MayTake: c.mayTake})
	}
	defer func() {
		if err != nil {
			c.Abort(context.WithoutCancel(ctx))
		}
	}()
	wants, ids := t.flatten(rows)
	c.ids = ids
	if err := c.compare(wants); err != nil {
		return nil, err
	}
	return c, c.start(ctx)
}

// compare finds what changed. Nothing of it runs yet.
func (c *Change) compare(wants []wanted) error {
	t := c.t
	t.mu.Lock()
	had := t.entries
	t.mu.Unlock()
	var wrong document.Faults
	var other []error
	for _, w := range wants {
		e, err := c.entry(w, had[w.ID])
		c.next[w.ID] = e
		var faults document.Faults
		switch {
		case err == nil:
		case c.boot:
			e.fault = w.blame(err)
			c.report.Troubles = append(c.report.Troubles, Trouble{w.ID, e.fault})
		case errors.As(err, &faults):
			wrong = append(wrong, faults...)
		default:
			other = append(other, w.blame(err))
		}
	}
	if len(wrong) > 0 {
		other = append([]error{wrong}, other...)
	}
	if len(other) > 0 {
		return errors.Join(other...)
	}
	for id, e := range had {
		if c.next[id] == nil {
			c.leave(e)
		}
	}
	slices.Sort(c.report.Removed)
	return nil
}

// entry is what becomes of a row: the entry that it has, or one that is to be mounted.
func (c *Change) entry(w wanted, had *entry) (*entry, error) {
	e := &entry{row: w}
	if had != nil {
		e.guard = had.guard
	}
	e.guard = c.t.guardOf(w, e.guard)
	if w.off {
		if had != nil && had.fiber != nil {
			if c.static(had.row) {
				return c.stays(e, had), nil
			}
			c.going = append(c.going, had.fiber)
			c.report.Removed = append(c.report.Removed, w.ID)
		}
		e.guard = nil
		return e, nil
	}
	spec, config, err := c.t.check(w)
	if err != nil {
		return e, err
	}
	var plugin *cordis.Plugin
	if isFile(w.Name) {
		if e.code, err = c.t.o.Opener.Read(w.path()); err != nil {
			return e, err
		}
	}
	if had != nil && had.fiber != nil {
		if w.same(had.row) && (e.code == nil || had.code != nil && e.code.Hash() == had.code.Hash()) {
			e.fiber, e.code = had.fiber, had.code
			return e, nil
		}
		if c.static(had.row) {
			return c.stays(e, had), nil
		}
	}
	if e.code == nil {
		if plugin, err = spec.New(config); err != nil {
			return e, err
		}
		c.opened[e] = plugin
	}
	c.fresh = append(c.fresh, e)
	switch {
	case had == nil || had.fiber == nil:
		c.report.Mounted = append(c.report.Mounted, w.ID)
	default:
		c.going = append(c.going, had.fiber)
		c.report.Remounted = append(c.report.Remounted, w.ID)
	}
	return e, nil
}

// static says whether what is mounted for a row stays until the next start.
func (c *Change) static(w wanted) bool {
	spec, ok := c.t.o.Catalog.Lookup(w.Name)
	return ok && spec.Static
}

// stays keeps a static plugin whose row says something else now.
func (c *Change) stays(e, had *entry) *entry {
	e.row.Row.Name, e.fiber, e.code, e.guard = had.row.Name, had.fiber, had.code, had.guard
	e.row.Config, e.row.Inject, e.row.surroundings = had.row.Config, had.row.Inject, had.row.surroundings
	e.later = true
	c.report.Later = append(c.report.Later, e.row.ID)
	return e
}

// leave lets go of an entry whose row has gone.
func (c *Change) leave(e *entry) {
	switch {
	case e.fiber == nil:
	case c.static(e.row):
		e := c.stays(&entry{row: e.row}, e)
		c.next[e.row.ID] = e
	default:
		c.going = append(c.going, e.fiber)
		c.report.Removed = append(c.report.Removed, e.row.ID)
	}
}

// mayTake lets a plugin file take over the names of others.
func (c *Change) mayTake(owner *cordis.Fiber) bool {
	for _, e := range c.fresh {
		if e.code != nil && e.code.MayTake(owner) {
			return true
		}
	}
	return false
}

// start mounts what changed and waits until it has settled.
func (c *Change) start(ctx context.Context) error {
	if c.stage != nil {
		c.stage.Replace(c.going...)
	}
	ctx, cancel := context.WithTimeout(ctx, c.t.o.Patience)
	defer cancel()
	on := c.t.c
	if c.stage != nil {
		on = c.stage.On(on)
	} else {
		c.publish() // what it starts can be seen, and guards count, from the first
	}
	var errs []error
	for _, e := range c.fresh {
		if err := c.mount(ctx, on, e); err != nil {
			errs = append(errs, c.trouble(e, err))
		}
	}
	for _, e := range c.fresh {
		if e.fiber == nil {
			continue
		}
		if err := c.settle(ctx, e); err != nil {
			errs = append(errs, c.trouble(e, err))
		}
	}
	if !c.boot {
		return errors.Join(errs...)
	}
	return nil
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
		config = e.row.Config
	}
	if c.boot {
		e.guard.look(context.WithoutCancel(ctx)) // before there is anything that could be used
	}
	f, err := e.row.on(c.t, on).Mount(injecting(plugin, e.row.Inject), config)
	if err != nil {
		return err
	}
	delete(c.opened, e)
	c.t.mu.Lock()
	e.fiber = f
	if c.boot {
		c.t.fibers[f] = e
	}
	c.t.mu.Unlock()
	if c.boot {
		e.guard.watch(context.WithoutCancel(ctx), f)
	}
	return nil
}

// settle waits until an entry has started.
func (c *Change) settle(ctx context.Context, e *entry) error {
	switch err := e.fiber.Await(ctx); {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("it has not started within %s", c.t.o.Patience.Round(time.Millisecond))
	case err != nil:
		return err
	}
	if c.boot || e.fiber.State() != cordis.Pending || e.code == nil {
		return nil
	}
	for _, old := range c.going { // one that waits must not end one that serves
		if entry := c.t.entryOf(old); entry != nil && entry.row.ID == e.row.ID && old.State() == cordis.Active {
			return fmt.Errorf("its new version waits for %s", waiting(e.fiber))
		}
	}
	return nil
}

func waiting(f *cordis.Fiber) string {
	var names []string
	for _, m := range f.Waiting().Missing {
		names = append(names, fmt.Sprintf("the service %q (%s)", m.Name, m.Reason))
	}
	return joined(names)
}

func joined(names []string) string {
	out := ""
	for i, n := range names {
		if i > 0 {
			out += ", "
		}
		out += n
	}
	return out
}

func (t *Tree) entryOf(f *cordis.Fiber) *entry {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.fibers[f]
}

// trouble notes an error of an entry.
func (c *Change) trouble(e *entry, err error) error {
	err = e.row.blame(err)
	if c.boot {
		c.t.mu.Lock()
		if e.fiber == nil {
			e.fault = err
		}
		c.t.mu.Unlock()
		c.report.Troubles = append(c.report.Troubles, Trouble{e.row.ID, err})
	}
	return err
}

// publish makes the change what the tree has.
func (c *Change) publish() {
	t := c.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows, t.entries, t.booted = c.rows, c.next, true
	t.fibers = make(map[*cordis.Fiber]*entry, len(c.next))
	t.guarding = false
	for _, e := range c.next {
		if e.fiber != nil {
			t.fibers[e.fiber] = e
		}
		t.guarding = t.guarding || e.guard != nil
	}
	t.leaving = append(t.leaving, c.going...)
}

// Report is what the change does, or has done.
func (c *Change) Report() Report { return c.report }

// Commit swaps what changed in. It does not wait for what goes: that drains, and
// dependents restart, by themselves.
func (c *Change) Commit(ctx context.Context) (Report, error) {
	if c.over {
		return c.report, ErrOver
	}
	c.over = true
	defer func() { c.t.turn <- struct{}{} }()
	if c.boot {
		return c.report, nil
	}
	c.t.mu.Lock()
	before := c.t.entries
	c.t.mu.Unlock()
	for _, e := range c.next { // a new guard withholds before, an old one gives back after
		if e.guard != nil && (before[e.row.ID] == nil || before[e.row.ID].guard != e.guard) {
			e.guard.watch(ctx, e.fiber)
		}
	}
	c.publish()
	err := c.stage.Commit()
	for _, e := range c.next {
		e.guard.watch(ctx, e.fiber)
	}
	for id, e := range before {
		if e.guard != nil && (c.next[id] == nil || c.next[id].guard != e.guard) {
			e.guard.close(ctx)
		}
	}
	if claimed := c.stage.Claimed(); len(claimed) > 0 {
		for _, e := range c.fresh {
			if e.code != nil {
				e.code.Retired(claimed)
			}
		}
	}
	c.t.o.Realms.keep(c.t, c.ids)
	if err != nil {
		return c.report, fmt.Errorf("commit rows: %w", err)
	}
	return c.report, nil
}

// Abort takes back what Prepare started. After Commit it does nothing; what a boot
// mounted stays.
func (c *Change) Abort(ctx context.Context) {
	if c.over {
		return
	}
	c.over = true
	defer func() { c.t.turn <- struct{}{} }()
	for e, p := range c.opened {
		if e.code != nil {
			e.code.Discard(p)
		}
	}
	if c.stage != nil {
		_ = c.stage.Abort(ctx) // what could not end is logged by the runtime
	}
}
