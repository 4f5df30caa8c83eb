package composition

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/loader/watch"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/trust"
)

// Options are what a composition is made of.
type Options struct {
	Sources
	// Catalog has the Go plugins of the host.
	Catalog loader.Catalog
	// Sandbox bounds plugin files and their workers, Console takes what they print.
	Sandbox sandbox.Config
	Console func(line string)
	// Env returns an environment variable; nil: none is set.
	Env func(name string) (string, bool)
	// Tell says one thing to the person, of one or more lines. It must not block.
	Tell func(text string)
	// Confirm asks the person whether they trust a project's files as State shows them.
	// Nil: nobody can be asked.
	Confirm func(ctx context.Context, s trust.State) (bool, error)
	// TrustProject trusts every file of every project, and its edits, for this run.
	TrustProject bool
	// Global says that the process is one session: what belongs to its project, and to
	// its agent, is mounted in the global scope.
	Global bool
	// Watch follows the files.
	Watch bool
}

// ErrClosed says that the composition has ended.
var ErrClosed = errors.New("the composition is closed")

// Composition is what runs of the documents.
type Composition struct {
	root   *cordis.Context
	o      Options
	warden warden
	log    *cordis.Logger
	host   *loader.Tree
	realms *loader.Realms // of labels, in all trees
	turn   chan struct{}  // has a token while nobody changes or reads what runs

	// What follows is guarded by the turn.
	docs    documents
	own     *space            // of the person's plugin files; nil: there is none
	spaces  map[string]*space // of projects, by root
	watcher *watch.Watcher

	mu      sync.Mutex // guards what follows
	agents  []*crew
	known   []*space // that rows are told of
	notices []string // what is wrong now, for inspect
	closed  bool
	loaded  []string // see Loads
}

// Start mounts the rows of the host. Rows that cannot be mounted are told and left
// out. The error is document.Faults where a document that the person named is wrong:
// then nothing is mounted.
func Start(ctx context.Context, root *cordis.Context, o Options) (*Composition, error) {
	c := &Composition{root: root, o: o, log: root.Logger("composition"), realms: loader.NewRealms(), turn: make(chan struct{}, 1), spaces: map[string]*space{}}
	c.warden = warden{all: o.TrustProject, confirm: o.Confirm}
	if o.Home != "" {
		store, err := trust.Open(o.Home)
		if err != nil {
			return nil, err
		}
		c.warden.store = store
	}
	docs, err := o.Sources.read()
	if err != nil {
		return nil, err
	}
	whole, faults := docs.compose(nil, c.composing(nil))
	faults = append(append(docs.faults, faults...), check(whole.Rows, c.o.Catalog, false)...)
	if len(faults) > 0 {
		return nil, faults
	}
	for _, o := range whole.Unused {
		c.tell(fmt.Sprintf("%s:%d: this row changes nothing, since a later layer adds the row of that id (--self, or a --config): %s", plain.Visible(o.Layer.Name), o.Line, o.Value))
	}
	docs.noteFiles(whole)
	c.count(docs)
	if err := c.provide(); err != nil {
		return nil, err
	}
	if c.host, err = loader.New(root, loader.Options{Catalog: o.Catalog, Realms: c.realms}); err != nil {
		return nil, fmt.Errorf("compose: %w", err)
	}
	p := divide(whole.Rows, o.Catalog)
	if err := c.boot(ctx, c.host, p.host); err != nil {
		return nil, err
	}
	if len(p.own) > 0 {
		if err := c.openOwn(ctx, p.own); err != nil {
			return nil, err
		}
	}
	if o.Watch {
		if c.watcher, err = watch.New(watch.Options{Changed: c.changed}); err != nil {
			c.tell(fmt.Sprintf("edits are not followed, kill -HUP is: %v", err))
		} else {
			c.follow()
		}
	}
	c.turn <- struct{}{}
	return c, nil
}

// Close ends the following of files, and waits for a reload that runs until ctx ends.
// What is mounted ends with the root context.
func (c *Composition) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.watcher == nil {
		return nil
	}
	return c.watcher.Close(ctx)
}

// take waits for the turn; the function gives it back.
func (c *Composition) take(ctx context.Context) (func(), error) {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the composition: %w", context.Cause(ctx))
	}
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	give := func() { c.turn <- struct{}{} }
	if closed {
		give()
		return nil, ErrClosed
	}
	return give, nil
}

// boot mounts rows for the first time, and tells of those that are left out.
func (c *Composition) boot(ctx context.Context, tree *loader.Tree, rows []document.Row) error {
	report, err := tree.Apply(ctx, rows)
	if err != nil {
		return fmt.Errorf("compose: %w", err)
	}
	for _, trouble := range report.Troubles {
		if errors.Is(trouble.Err, loader.ErrStarting) {
			c.tell(trouble.Err.Error())
		} else {
			c.tell("left out: " + trouble.Err.Error())
		}
	}
	for _, row := range tree.Rows() {
		if row.State == cordis.Pending.String() {
			c.tell(fmt.Sprintf("%s waits for %s", plain.Name(row.ID), strings.Join(row.Waiting, ", ")))
		}
	}
	return nil
}

// tell says something to the person and in the log.
func (c *Composition) tell(text string) {
	c.log.Info(text)
	if c.o.Tell != nil {
		c.o.Tell(text)
	}
}
