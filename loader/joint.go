package loader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dsh-go/dsh/cordis"
)

// joint is one transaction over one or several trees.
type joint struct {
	stage   *cordis.Stage
	changes []*Change
	over    bool
	err     error // that Commit gives when it is over

	mu    sync.Mutex
	codes []Code // that are mounted by it; guarded by mu
}

// opens notes code that a change mounts.
func (j *joint) opens(c Code) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.codes = append(j.codes, c)
}

// mayTake lets plugin files take over the names of others.
func (j *joint) mayTake(owner *cordis.Fiber) bool {
	j.mu.Lock()
	codes := j.codes[:len(j.codes):len(j.codes)]
	j.mu.Unlock()
	for _, c := range codes {
		if c.MayTake(owner) {
			return true
		}
	}
	return false
}

// commit makes the changes what their trees have, and swaps.
func (j *joint) commit(ctx context.Context) {
	var undo []func()
	refuse := func(err error) {
		for _, fn := range undo {
			fn()
		}
		j.abort(ctx)
		for _, c := range j.changes {
			c.report = Report{}
		}
		j.err = fmt.Errorf("commit rows: %w", err)
	}
	for _, c := range j.changes {
		if c.boot || c.ended {
			continue
		}
		before, ok := c.publish()
		if !ok {
			c.ended = true
			continue
		}
		undo = append(undo, func() { c.restore(ctx, before) })
	}
	standing := slices.DeleteFunc(slices.Clone(j.changes), func(c *Change) bool { return c.ended })
	for _, c := range standing { // guards that are not active withhold before
		for _, e := range c.next {
			e.guard.watch(ctx, e.fiber)
		}
	}
	if err := j.stage.Commit(); err != nil {
		refuse(err)
		return
	}
	claimed := j.stage.Claimed()
	for _, c := range standing {
		for id, e := range c.had { // and who guards no more gives back after
			if e.guard != nil && (c.next[id] == nil || c.next[id].guard != e.guard) {
				e.guard.close(ctx)
			}
		}
		for _, e := range c.fresh {
			if e.code != nil && len(claimed) > 0 {
				e.code.Retired(claimed)
			}
		}
		c.t.mu.Lock()
		c.t.stage = j.stage
		c.t.mu.Unlock()
	}
	j.end(nil)
}

// abort takes back what was started.
func (j *joint) abort(ctx context.Context) {
	if j.over {
		return
	}
	if len(j.changes) > 0 {
		t := j.changes[0].t
		ctx, cancel := context.WithTimeout(ctx, t.o.Patience)
		defer cancel()
		if err := j.stage.Abort(ctx); err != nil && !errors.Is(err, cordis.ErrStage) {
			t.c.Logger("loader").Warn("what a refused change started has not ended well", "error", err)
		}
	}
	j.end(ErrOver)
}

// end gives the turns back.
func (j *joint) end(err error) {
	j.over, j.err = true, err
	for _, c := range j.changes {
		for e, p := range c.opened { // that are not mounted
			if e.code != nil {
				e.code.Discard(p)
			}
		}
		c.t.keepRealms()
		c.t.turn <- struct{}{}
	}
}
