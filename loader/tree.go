package loader

import (
	"context"
	"errors"
	"fmt"
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

	mu       sync.Mutex // guards what follows
	rows     []document.Row
	entries  map[string]*entry // by id: all rows but groups
	fibers   map[*cordis.Fiber]*entry
	leaving  []*cordis.Fiber // replaced, and not gone yet
	booted   bool
	guarding bool // some entry has a guard
}

// entry is a row as it is mounted.
type entry struct {
	row   wanted
	code  Code          // of a plugin file
	fiber *cordis.Fiber // nil: it is disabled or skipped
	fault error         // why it is skipped
	later bool
	guard *guard // nil: it guards nothing
}

// New returns an empty tree whose rows are mounted below c's fiber, which must run.
// They end with it.
func New(c *cordis.Context, o Options) (*Tree, error) {
	if o.Realms == nil {
		o.Realms = NewRealms()
	}
	if o.Patience <= 0 {
		o.Patience = limits.RowsStart
	}
	t := &Tree{c: c, o: o, turn: make(chan struct{}, 1), entries: map[string]*entry{}, fibers: map[*cordis.Fiber]*entry{}}
	t.turn <- struct{}{}
	if _, err := cordis.StatusChanged.On(c, t.statusChanged, cordis.Global(), cordis.Prepend()); err != nil {
		return nil, fmt.Errorf("follow rows: %w", err)
	}
	return t, nil
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
			if e, ok := entries[r.ID]; ok && !r.Group {
				e.tell(&info)
			}
			out = append(out, info)
			walk(r.Children, off || r.Disabled)
		}
	}
	walk(rows, false)
	return out
}

func infoOf(r document.Row, off bool) RowInfo {
	at := r.At()
	info := RowInfo{ID: r.ID, Name: r.Name, Layer: at.Layer.Name, Line: at.Line, State: "skipped"}
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
