package loader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
)

// ErrNoFiles says that a tree without an opener was given a plugin file.
var ErrNoFiles = errors.New("plugin files cannot be mounted here")

// Options are what a tree is made of.
type Options struct {
	Catalog Catalog
	// Opener opens plugin files; nil: there are none.
	Opener Opener
	// Realms are shared by trees whose rows share realms by their labels; nil: the tree
	// has its own.
	Realms *Realms
	// Patience bounds how long the plugins of one transaction may take to start, all
	// together; 0 is limits.RowsStart. What starts longer refuses a transaction; at boot
	// it is reported and goes on starting.
	Patience time.Duration
}

// Tree holds the rows of one place.
type Tree struct {
	c    *cordis.Context
	o    Options
	turn chan struct{} // has a token while no transaction is under way

	mu sync.Mutex // guards what follows
	holding
	life     int            // counts the unloads of c's fiber
	closed   bool           // for good
	followed *cordis.Handle // the listener; nil: c's fiber has unloaded since
	stage    *cordis.Stage  // that was committed last
}

// holding is what a transaction gives a tree.
type holding struct {
	rows     []document.Row
	entries  map[string]*entry // by id: all rows but groups
	fibers   map[*cordis.Fiber]*entry
	leaving  []*cordis.Fiber // replaced, and not gone yet
	realms   map[string]bool // keys of those that are used
	booted   bool
	guarding bool // some entry has a guard
}

// entry is a row as it is mounted.
type entry struct {
	row    wanted
	config any           // as Settings.CheckFrom gave it
	code   Code          // of a plugin file
	fiber  *cordis.Fiber // nil: it is disabled or skipped
	fault  error         // why it is skipped
	tried  bool          // its failure is no news: it was down, and nothing of it changed
	later  bool
	guard  *guard // nil: it guards nothing
}

// New returns an empty tree whose rows are mounted below c's fiber, which must run.
// They end with it: where it unloads, the tree is empty, and the next transaction is a
// boot.
func New(c *cordis.Context, o Options) (*Tree, error) {
	if o.Realms == nil {
		o.Realms = NewRealms()
	}
	if o.Patience <= 0 {
		o.Patience = limits.RowsStart
	}
	t := &Tree{c: c, o: o, turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	return t, t.follow()
}

// follow listens to the states of rows.
func (t *Tree) follow() error {
	t.mu.Lock()
	followed := t.followed != nil
	t.mu.Unlock()
	if followed {
		return nil
	}
	h, err := t.c.Effect("rows", func(s *cordis.Setup) error {
		s.Collect(func(context.Context) error { t.unloaded(); return nil })
		h, err := cordis.StatusChanged.On(t.c, t.statusChanged, cordis.Global(), cordis.Prepend())
		s.Adopt(h)
		return err
	})
	if err != nil {
		return fmt.Errorf("follow rows: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.followed = h
	return nil
}

// take waits until no transaction is under way.
func (t *Tree) take(ctx context.Context) error {
	select {
	case <-t.turn:
	case <-ctx.Done():
		return fmt.Errorf("wait for the change before: %w", context.Cause(ctx))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		t.turn <- struct{}{}
		return ErrClosed
	}
	return nil
}

// unloaded forgets everything: c's fiber disposes it.
func (t *Tree) unloaded() {
	t.mu.Lock()
	t.life++
	t.holding, t.followed, t.stage = holding{}, nil, nil
	t.mu.Unlock()
	t.keepRealms()
}

// runs says whether c's fiber has run since a life of the tree began.
func (t *Tree) runs(life int) bool {
	state := t.c.Fiber().State()
	t.mu.Lock()
	defer t.mu.Unlock()
	return life == t.life && (state == cordis.Active || state == cordis.Loading)
}

// keepRealms forgets realms that nobody uses.
func (t *Tree) keepRealms() {
	t.mu.Lock()
	realms := t.realms
	t.mu.Unlock()
	t.o.Realms.keep(t, realms)
}

// Close unmounts all rows, the last first, and waits until they are quiescent. Nothing
// can be mounted afterwards. The error is that of the wait, or of calls that were
// abandoned; what has not ended goes on to end.
func (t *Tree) Close(ctx context.Context) error {
	if err := t.take(ctx); err != nil {
		if errors.Is(err, ErrClosed) {
			return nil
		}
		return err
	}
	t.mu.Lock()
	fibers, entries, followed := t.standing(), t.entries, t.followed
	t.closed = true
	t.life++
	t.holding, t.followed = holding{}, nil
	t.mu.Unlock()
	var errs []error
	for _, f := range slices.Backward(fibers) {
		f.RequestDispose()
	}
	for _, f := range slices.Backward(fibers) {
		_, err := f.Dispose(ctx)
		errs = append(errs, err)
	}
	for _, e := range entries {
		e.guard.close(context.WithoutCancel(ctx))
	}
	if followed != nil {
		errs = append(errs, followed.Dispose(ctx))
	}
	t.keepRealms()
	t.turn <- struct{}{}
	return errors.Join(errs...)
}

// standing gives the fibers of the rows and of what they replaced, in the order in
// which they were mounted. The caller holds mu.
func (t *Tree) standing() []*cordis.Fiber {
	fibers := slices.Clone(t.leaving)
	for f := range t.fibers {
		fibers = append(fibers, f)
	}
	slices.SortFunc(fibers, func(a, b *cordis.Fiber) int { return cmp.Compare(a.ID(), b.ID()) })
	return fibers
}

// Settle waits until what the last transaction replaced has gone and no row has
// anything to do. Rows that wait or failed have settled.
func (t *Tree) Settle(ctx context.Context) error {
	t.mu.Lock()
	stage, leaving := t.stage, slices.Clone(t.leaving)
	t.mu.Unlock()
	if stage != nil { // first what lingers: to dispose cuts it short
		if err := stage.Wait(ctx); err != nil {
			return fmt.Errorf("settle rows: %w", err)
		}
	}
	for _, f := range leaving {
		if _, err := f.Dispose(ctx); err != nil {
			return fmt.Errorf("settle rows: %w", err)
		}
	}
	t.mu.Lock()
	t.gone()
	fibers := t.standing()
	t.mu.Unlock()
	settle(ctx, fibers)
	if ctx.Err() != nil {
		return fmt.Errorf("settle rows: %w", context.Cause(ctx))
	}
	return nil
}

// Apply is Prepare and Commit. Where it fails nothing has changed, but at boot, which
// fails only with ctx.
func (t *Tree) Apply(ctx context.Context, rows []document.Row) (Report, error) {
	change, err := t.Prepare(ctx, rows)
	if err != nil {
		return Report{}, err
	}
	return change.Commit(ctx)
}

// ErrClosed says that a tree takes no more rows.
var ErrClosed = errors.New("the rows are closed")

// Fiber returns the fiber of a row.
func (t *Tree) Fiber(id string) (*cordis.Fiber, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.entries[id]
	if e == nil || e.fiber == nil {
		return nil, false
	}
	return e.fiber, true
}

// Rows tells of the rows in their order, those of a group after it.
func (t *Tree) Rows() []RowInfo {
	t.mu.Lock()
	rows := t.rows
	entries := make(map[string]entry, len(t.entries))
	for id, e := range t.entries {
		entries[id] = *e
	}
	t.mu.Unlock()
	var out []RowInfo
	var walk func(rows []document.Row, off bool)
	walk = func(rows []document.Row, off bool) {
		for _, r := range rows {
			info := infoOf(r, off || r.Disabled)
			if e, ok := entries[r.ID]; ok {
				e.tell(&info)
				delete(entries, r.ID)
			}
			out = append(out, info)
			walk(r.Children, off || r.Disabled)
		}
	}
	walk(rows, false)
	for _, id := range slices.Sorted(maps.Keys(entries)) { // static ones whose row has gone
		e := entries[id]
		info := infoOf(e.row.Row, e.row.off)
		e.tell(&info)
		out = append(out, info)
	}
	return out
}

func infoOf(r document.Row, off bool) RowInfo {
	info := RowInfo{ID: r.ID, Name: r.Name, State: "skipped"}
	info.Layer, info.Line = placeOf(r)
	if r.Group {
		info.State = "group"
	}
	if off {
		info.State = "disabled"
	}
	info.Guards = slices.Clone(r.Guards.Names)
	if r.Guards.All {
		info.Guards = []string{"all"}
	}
	return info
}

// tell adds what is known of the entry now.
func (e *entry) tell(info *RowInfo) {
	info.Later = e.later
	info.Withheld = e.guard.withholding()
	if e.fault != nil {
		info.State, info.Reason = "skipped", plain.Error(e.fault.Error())
		return
	}
	f := e.fiber
	if f == nil {
		return
	}
	info.Plugin = plain.Name(f.Name())
	switch state := f.State(); state {
	case cordis.Active:
		info.State = "running"
	case cordis.Pending:
		info.State = state.String()
		for _, m := range f.Waiting().Missing {
			info.Waiting = append(info.Waiting, plain.Name(m.Name))
		}
	case cordis.Failed:
		info.State = state.String()
		if err := f.Err(); err != nil {
			info.Reason = plain.Error(err.Error())
		}
	case cordis.Disposed:
		info.State, info.Reason = state.String(), "it ended itself"
	default:
		info.State = state.String()
	}
}

// gone forgets the replaced fibers that have ended. The caller holds mu.
func (t *Tree) gone() {
	t.leaving = slices.DeleteFunc(t.leaving, func(f *cordis.Fiber) bool { return f.State() == cordis.Disposed })
}

// prefix begins the keys of the tree's private realms.
func (t *Tree) prefix() string { return fmt.Sprintf("%p/", t) }

// isFile says whether a row's name is that of a plugin file.
func isFile(name string) bool { return strings.HasPrefix(name, "./") || strings.HasPrefix(name, "../") }
