package web

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// provider is what providers of both kinds have in common.
type provider interface {
	ID() string
	Available() bool
}

// registry holds the providers of one kind.
type registry struct {
	what string          // "fetch" or "search"
	from *cordis.Context // the service's, from which changes are told

	mu      sync.Mutex
	entries map[providerKey][]*entry // oldest first, one of them used
}

type providerKey struct {
	scope *tool.Scope
	id    string
}

type entry struct {
	providerKey
	provider provider
	what     string
	ctx      *cordis.Context
	fiber    *cordis.Fiber
	owner    string
	quiet    bool // nobody is told that it goes; guarded by the registry's mu
}

func newRegistry(c *cordis.Context, what string) registry {
	return registry{what: what, from: c, entries: map[providerKey][]*entry{}}
}

var idRule = regexp.MustCompile(limits.ToolName)

func (g *registry) register(c *cordis.Context, p provider) (*cordis.Handle, error) {
	id := p.ID()
	if !idRule.MatchString(id) {
		return nil, fail(CodeInvalidRequest, "%q cannot be the id of a provider: use 1 to 64 letters, digits, - and _", shown(id))
	}
	key := providerKey{tool.ScopeOf(c), id}
	e := &entry{providerKey: key, provider: p, what: g.what, ctx: c, fiber: c.Fiber(), owner: "plugin " + shown(c.Fiber().Name())}
	if m, ok := tool.MountOf(c); ok {
		e.owner += " (" + m.ID + ")"
	}
	h, err := c.Effect(fmt.Sprintf("web.%s provider %q", g.what, id), func(s *cordis.Setup) error {
		g.take(e)
		if err := g.add(e); err != nil {
			return err
		}
		s.Collect(func(ctx context.Context) error {
			if g.drop(e) {
				g.changed(ctx, e, false)
			}
			return nil
		})
		if !e.fiber.Hidden() {
			g.changed(s.Context(), e, true)
		}
		return nil
	})
	if coded := new(service.Error); errors.As(err, &coded) {
		return nil, coded
	}
	return h, err
}

// take asks the stage of e's fiber for the ids that are in its way.
func (g *registry) take(e *entry) {
	stage := cordis.StageOf(e.ctx)
	if stage == nil {
		return
	}
	g.mu.Lock()
	others := g.namesakes(e)
	g.mu.Unlock()
	for _, had := range others {
		stage.Takes(had.fiber)
	}
}

// committed tells of what a commit has shown and hidden.
func (g *registry) committed(ctx context.Context, s *cordis.Stage) {
	g.mu.Lock()
	var came, went []*entry
	for _, all := range g.entries {
		for _, e := range all {
			switch hidden := e.fiber.Hidden(); {
			case e.quiet && !hidden:
				e.quiet = false
				came = append(came, e)
			case !e.quiet && hidden && s.Replaces(e.fiber):
				e.quiet = true
				went = append(went, e)
			}
		}
	}
	g.mu.Unlock()
	for _, e := range went {
		if !slices.ContainsFunc(came, func(other *entry) bool { return other.providerKey == e.providerKey }) {
			g.changed(ctx, e, false)
		}
	}
	for _, e := range came {
		g.changed(ctx, e, true)
	}
}

// namesakes gives the providers of e's id that are seen from its scope. The caller
// holds mu.
func (g *registry) namesakes(e *entry) (out []*entry) {
	for key, all := range g.entries {
		if key.id == e.id && e.scope.Within(key.scope) {
			out = append(out, all...)
		}
	}
	return out
}

func (g *registry) changed(ctx context.Context, e *entry, present bool) {
	ProvidersChanged.Emit(ctx, g.from, ProviderChange{Kind: g.what, ID: e.id, Scope: e.scope, Present: present})
}

func (g *registry) add(e *entry) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, had := range g.namesakes(e) {
		if e.ctx.Clashes(had.fiber) {
			return fail(CodeDuplicateProvider, "there is a %s provider %q already, of %s: choose another id", g.what, e.id, had.owner)
		}
	}
	n := 0
	for key := range g.entries {
		if key.scope == e.scope && key.id != e.id {
			n++
		}
	}
	if n >= limits.WebProviders {
		return fail(CodeTooManyProviders, "there are %d %s providers already, the most that can be: dispose one first", n, g.what)
	}
	e.quiet = e.fiber.Hidden()
	g.entries[e.providerKey] = append(g.entries[e.providerKey], e)
	return nil
}

// drop takes a provider out, and tells whether it was seen.
func (g *registry) drop(e *entry) (seen bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left := slices.DeleteFunc(g.entries[e.providerKey], func(had *entry) bool { return had == e })
	if g.entries[e.providerKey] = left; len(left) == 0 {
		delete(g.entries, e.providerKey)
	}
	return !e.quiet
}

// list gives the providers that are seen from a scope, by id: its own and those
// of the scopes above it. Of two with one id, the nearer.
func (g *registry) list(from *tool.Scope) []*entry {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[string]*entry{}
	for key, all := range g.entries {
		for _, e := range slices.Backward(all) { // at a commit the new one is shown first
			if e.fiber.Hidden() {
				continue
			}
			if had := seen[key.id]; from.Within(key.scope) && (had == nil || key.scope.Within(had.scope)) {
				seen[key.id] = e
			}
			break
		}
	}
	return slices.SortedFunc(maps.Values(seen), func(a, b *entry) int { return strings.Compare(a.id, b.id) })
}

// choose gives the provider for a call from a scope: the wanted one, else the configured one,
// else the only one that is available.
func (g *registry) choose(from *tool.Scope, wanted, configured string) (*entry, error) {
	all := g.list(from)
	id, who := wanted, "the request"
	if id == "" {
		id, who = configured, "the configuration"
	}
	if id != "" {
		i := slices.IndexFunc(all, func(e *entry) bool { return e.id == id })
		switch {
		case i < 0:
			return nil, fail(CodeConfiguredMissing, "%s names the %s provider %q, which is not registered; registered: %s", who, g.what, shown(id), ids(all))
		case !all[i].available():
			return nil, fail(CodeConfiguredUnavailable, "%s names the %s provider %q, which is not available now; registered: %s", who, g.what, id, ids(all))
		}
		return all[i], nil
	}
	usable := slices.DeleteFunc(slices.Clone(all), func(e *entry) bool { return !e.available() })
	switch {
	case len(usable) == 1:
		return usable[0], nil
	case len(usable) > 1:
		return nil, fail(CodeAmbiguous, "there are %d %s providers (%s): name the one to use in the option provider", len(usable), g.what, ids(usable))
	case len(all) > 0:
		return nil, fail(CodeUnavailable, "none of the %s providers is available now: %s", g.what, ids(all))
	case g.what == "search":
		return nil, fail(CodeUnavailable, "there is no search provider, and none that works without a key. To add one, register it in a plugin that injects web: "+
			"ctx.web.registerSearchProvider('my-search', async ({ query, maxResults }) => ({ sources: [{ url, title, snippet }] })), "+
			"which asks a search API, with its key in the headers of ctx.web.fetch")
	}
	return nil, fail(CodeUnavailable, "there is no %s provider", g.what)
}

func ids(entries []*entry) string {
	if len(entries) == 0 {
		return "none"
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.id)
	}
	return strings.Join(names, ", ")
}

// available tells whether the provider and its owner can be used. A panic counts as no.
func (e *entry) available() (ok bool) {
	if e.fiber.State() != cordis.Active && e.fiber.State() != cordis.Loading {
		return false
	}
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return e.provider.Available()
}

// call runs fn as a call into the provider's owner, for at most limit.
func (e *entry) call(ctx context.Context, limit time.Duration, timeout, failed, what string, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, expired{fmt.Errorf("%d ms", limit.Milliseconds())})
	defer cancel()
	in, done, err := e.fiber.Enter(ctx, fmt.Sprintf("web.%s provider %q", e.what, e.id))
	if err != nil {
		return fail(CodeUnavailable, "the %s provider %q is going away: %w", e.what, e.id, err)
	}
	defer done()
	err = guarded(func() error { return fn(in) })
	code := service.CodeOf(err)
	if err == nil || strings.HasPrefix(code, "WEB_") {
		return err
	}
	if over := ended(ctx, timeout, what); over != nil {
		return over
	}
	if code != "" {
		return err
	}
	// Not wrapped: to the caller this is an error of web, whatever was thrown.
	return fail(failed, "the %s provider %q failed: %s", e.what, e.id, err.Error())
}

func guarded(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &cordis.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return fn()
}
