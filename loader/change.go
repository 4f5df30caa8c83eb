package loader

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader/document"
)

// Errors of transactions; compare with errors.Is.
var (
	// ErrOver says that a Change was aborted before.
	ErrOver = errors.New("the change is over")
	// ErrEnded says that the fiber that a tree is on does not run, or unloaded during a
	// transaction; the tree is empty, and the next transaction is a boot.
	ErrEnded = errors.New("the plugin that the rows are mounted on has unloaded")
)

// Change is a transaction that is prepared. It ends with Commit or Abort; until then the
// tree takes no other. Changes that were joined are one transaction: what ends one ends
// all. They are for one goroutine.
type Change struct {
	t      *Tree
	joint  *joint
	life   int // of the tree, in which the change was prepared
	boot   bool
	ended  bool // it is no part of the transaction any more
	rows   []document.Row
	realms map[string]bool // keys of the realms that are used
	had    map[string]*entry
	next   map[string]*entry
	fresh  []*entry // of next: what is mounted by this change, in the order of the rows
	opened map[*entry]*cordis.Plugin
	going  []*cordis.Fiber
	report Report
}

// Prepare starts what changed beside what is there. On an error (of the rows, of a
// plugin that failed, of ctx) nothing has changed. At boot only ctx, and a fiber that
// does not run, fail it, and what it starts can be seen at once.
//
// A row that is down, skipped or failed, is tried again by every transaction; it does
// not refuse one that leaves it as it was.
func (t *Tree) Prepare(ctx context.Context, rows []document.Row) (*Change, error) {
	j := &joint{}
	j.stage = t.c.Runtime().NewStage(cordis.StageOptions{MayTake: j.mayTake})
	return t.prepare(ctx, j, rows)
}

// Join prepares a change of another tree of the same runtime as a part of this one:
// what the one mounts sees what the other does, and all of it is swapped in one step.
// On an error all of it is aborted, but with ErrEnded the others go on. Whoever joins several trees always takes them in
// one order, since each waits for its own transaction before.
func (c *Change) Join(ctx context.Context, t *Tree, rows []document.Row) (*Change, error) {
	if c.joint.over {
		return nil, ErrOver
	}
	return t.prepare(ctx, c.joint, rows)
}

func (t *Tree) prepare(ctx context.Context, j *joint, rows []document.Row) (_ *Change, err error) {
	defer func() {
		if err != nil && (len(j.changes) < 2 || !errors.Is(err, ErrEnded)) {
			j.abort(context.WithoutCancel(ctx))
		}
	}()
	if err := t.take(ctx); err != nil {
		return nil, err
	}
	c := &Change{t: t, joint: j, rows: rows, next: map[string]*entry{}, opened: map[*entry]*cordis.Plugin{}}
	j.changes = append(j.changes, c)
	if err := t.follow(); err != nil {
		c.ended = true
		return nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	t.mu.Lock()
	c.boot, c.life, c.had = !t.booted, t.life, t.entries
	t.gone()
	leaving := slices.Clone(t.leaving)
	t.mu.Unlock()
	j.stage.Replace(leaving...)
	wants, realms := t.flatten(rows)
	c.realms = realms
	if err := c.compare(wants); err != nil {
		return nil, err
	}
	if err := c.start(ctx); err != nil {
		if !t.runs(c.life) {
			c.ended = true
			err = fmt.Errorf("%w: %w", ErrEnded, err)
		}
		return nil, err
	}
	return c, nil
}

// compare finds what changed. Nothing of it runs yet.
func (c *Change) compare(wants []wanted) error {
	var wrong document.Faults
	var other []error
	for _, w := range wants {
		e, err := c.entry(w, c.had[w.ID])
		if c.next[w.ID] == nil {
			c.next[w.ID] = e
		}
		var faults document.Faults
		switch {
		case err == nil:
		case c.boot || e.tried:
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
	for id, e := range c.had {
		if c.next[id] == nil {
			c.leave(e)
		}
	}
	slices.Sort(c.report.Removed)
	slices.Sort(c.report.Later)
	return nil
}

// entry is what becomes of a row: what it is mounted as, or what is to be mounted.
func (c *Change) entry(w wanted, had *entry) (*entry, error) {
	e := &entry{row: w}
	if w.twice {
		return e, document.Faults{document.FieldFault(w.Row, []string{"id"}, fmt.Sprintf("there is another row with the id %s; an id names one row", w.ID))}
	}
	if w.off {
		if had != nil && c.holds(had) {
			return c.stays(had), nil
		}
		if had != nil && had.fiber != nil {
			c.going = append(c.going, had.fiber)
			c.report.Removed = append(c.report.Removed, w.ID)
		}
		return e, nil
	}
	e.guard = c.t.guardOf(w, had)
	spec, config, err := c.t.check(w)
	if err == nil && isFile(w.Name) {
		e.code, err = c.t.o.Opener.Read(w.path())
	}
	e.config = config
	unchanged := had != nil && !had.row.off && w.same(had.row) && sameCode(e.code, had.code) &&
		(err != nil || had.fault != nil || reflect.DeepEqual(config, had.config)) // a path has another folder in another layer
	e.tried = unchanged && had.down()
	switch {
	case err != nil:
	case unchanged && !e.tried:
		e.fiber = had.fiber
		return e, nil
	case had != nil && c.holds(had):
		return c.stays(had), nil
	case e.code == nil:
		var plugin *cordis.Plugin
		if plugin, err = made(spec, config); err == nil {
			c.opened[e] = plugin
		}
	}
	replaces := had != nil && had.fiber != nil
	if replaces {
		c.going = append(c.going, had.fiber)
	}
	switch {
	case err != nil:
		return e, err
	case replaces:
		c.report.Remounted = append(c.report.Remounted, w.ID)
	default:
		c.report.Mounted = append(c.report.Mounted, w.ID)
	}
	c.fresh = append(c.fresh, e)
	return e, nil
}

// made makes the plugin of a row. A panic is its error.
func made(spec Spec, config any) (p *cordis.Plugin, err error) {
	defer func() {
		if v := recover(); v != nil {
			p, err = nil, fmt.Errorf("make the plugin: panic: %v", v)
		}
	}()
	return spec.New(config)
}

// down says whether an entry is skipped or has failed.
func (e *entry) down() bool {
	return e.fault != nil || e.fiber != nil && e.fiber.State() == cordis.Failed
}

func sameCode(a, b Code) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Hash() == b.Hash()
}

// holds says whether what is mounted for a row stays until the next start.
func (c *Change) holds(had *entry) bool {
	spec, ok := c.t.o.Catalog.Lookup(had.row.Name)
	return ok && spec.Static && had.fiber != nil && !had.down() && had.fiber.State() != cordis.Disposed
}

// stays keeps a static plugin whose row says something else now, or has gone.
func (c *Change) stays(had *entry) *entry {
	e := *had
	e.later = true
	if !had.later {
		c.report.Later = append(c.report.Later, e.row.ID)
	}
	return &e
}

// leave lets go of an entry whose row has gone.
func (c *Change) leave(e *entry) {
	switch {
	case e.fiber == nil:
	case c.holds(e):
		c.next[e.row.ID] = c.stays(e)
	default:
		c.going = append(c.going, e.fiber)
		c.report.Removed = append(c.report.Removed, e.row.ID)
	}
}

// Report is what the change does, or has done.
func (c *Change) Report() Report { return c.report }

// Commit swaps what changed in, of all changes that are joined, and gives the report of
// this one; where that was done already it only reports. It does not wait for what goes:
// that drains, and dependents restart, by themselves; see Tree.Settle. Where it fails
// the change is aborted. A tree whose fiber has unloaded since (ErrEnded) does not keep the
// others from it.
func (c *Change) Commit(ctx context.Context) (Report, error) {
	if !c.joint.over {
		c.joint.commit(context.WithoutCancel(ctx))
	}
	if c.ended && c.joint.err == nil {
		return Report{}, fmt.Errorf("commit rows: %w", ErrEnded)
	}
	return c.report, c.joint.err
}

// Abort takes back what Prepare started, and waits for that for as long as a start may
// take. After Commit it does nothing; what a boot mounted stays.
func (c *Change) Abort(ctx context.Context) { c.joint.abort(ctx) }
