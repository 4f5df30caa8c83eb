package files

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

// Options are what a [Host] needs beside its context.
type Options struct {
	// Sandbox bounds the machines and their worker, as for temporary plugins.
	Sandbox  sandbox.Config
	Registry *tool.Registry
	// Console takes every printed line, tagged [cordis:PATH] and made safe for a
	// terminal. It must not block. Nil: lines are only kept for inspect.
	Console func(line string)
}

// Host runs plugin files in one worker.
type Host struct {
	set   *mount.Set
	scope *tool.Scope

	mu     sync.Mutex
	deaths map[string]*deaths // by path
	opened map[*cordis.Plugin]*mount.Mount
}

// deaths counts how often one content of a file brought down its machine.
type deaths struct {
	hash string
	n    int
	last error
}

// New returns a Host that ends with c's fiber. Its worker starts with the first file.
// The scope of c is that of its plugins; mount them below c.
func New(c *cordis.Context, o Options) (*Host, error) {
	box, err := sandbox.New(o.Sandbox)
	if err != nil {
		return nil, fmt.Errorf("start a host of plugin files: %w", err)
	}
	h := &Host{scope: tool.ScopeOf(c), deaths: map[string]*deaths{}, opened: map[*cordis.Plugin]*mount.Mount{}}
	// Registered first, so undone last.
	if _, err := c.Defer("sandbox", func(context.Context) error {
		box.Close()
		if h.set != nil {
			h.set.Wait()
		}
		return nil
	}); err != nil {
		box.Close()
		return nil, err
	}
	h.set, err = mount.NewSet(c, mount.Config{Sandbox: box, Registry: o.Registry, Console: o.Console, Broke: h.broke})
	if err != nil {
		return nil, fmt.Errorf("start a host of plugin files: %w", err)
	}
	return h, nil
}

// Open loads the code in a new machine and gives the plugin that it exports, to be
// mounted once. Its Config takes nil or JSON (json.RawMessage, lossless.Value, or what
// lossless.From takes). A file that was skipped is refused as long as its content is
// the same.
func (h *Host) Open(ctx context.Context, f File) (*cordis.Plugin, error) {
	if err := h.skipped(f); err != nil {
		return nil, err
	}
	m, err := h.set.Open(ctx, mount.Code{Path: f.Path, Entry: f.Entry, Files: f.Files, Hash: f.Hash})
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for p, m := range h.opened { // what has ended meanwhile
		if m.Ended() {
			delete(h.opened, p)
		}
	}
	h.opened[m.Plugin()] = m
	return m.Plugin(), nil
}

// Discard ends the machine of a plugin that is not going to be mounted. It does
// nothing for one that is.
func (h *Host) Discard(p *cordis.Plugin) {
	h.mu.Lock()
	m := h.opened[p]
	delete(h.opened, p)
	h.mu.Unlock()
	if m != nil {
		m.Discard(context.Background())
	}
}

// broke counts a file that has brought down its machine or the worker, and says why
// it is not loaded again.
func (h *Host) broke(code *mount.Code, why error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.deaths[code.Path]
	if d == nil || d.hash != code.Hash {
		if len(h.deaths) >= limits.PluginFiles { // only that many are open
			clear(h.deaths)
		}
		d = &deaths{hash: code.Hash}
		h.deaths[code.Path] = d
	}
	d.n++
	d.last = why
	return d.verdict(code.Path)
}

// skipped says why a file is not loaded.
func (h *Host) skipped(f File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.deaths[f.Path]
	switch {
	case d == nil:
		return nil
	case d.hash != f.Hash:
		delete(h.deaths, f.Path)
		return nil
	}
	return d.verdict(f.Path)
}

// ErrSkipped says that a file is not loaded until it changes.
var ErrSkipped = errors.New("skipped until the file changes")

func (d *deaths) verdict(path string) error {
	if d.n < limits.FileDeaths {
		return nil
	}
	return fmt.Errorf("plugin file %s brought down its machine or its worker %d times and is %w; the last time: %w", path, d.n, ErrSkipped, d.last)
}

// MayTake says whether a plugin file may take the names that owner holds: those of
// a temporary plugin within the scope of the Host. It is for cordis.StageOptions.
func (h *Host) MayTake(owner *cordis.Fiber) bool {
	m := mount.Of(owner)
	return m != nil && m.Code() == nil && m.Scope().Within(h.scope)
}

// Retired does the bookkeeping of temporary plugins whose names a plugin file took
// over: claimed is what the stage claimed, by names who took them ("./plugins/x.js").
// Call it after the commit. It does not wait until they have ended. Other fibers are
// passed over, and so are those whose bookkeeping was done, as the plugin files that
// took over do it themselves when they know which they were.
func Retired(claimed []*cordis.Fiber, by string) {
	for _, f := range claimed {
		if m := mount.Of(f); m != nil && m.Code() == nil {
			m.Retire(by, func() {})
		}
	}
}
