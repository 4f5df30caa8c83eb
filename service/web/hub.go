package web

import (
	"context"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// hub is the service: the providers and the way to them.
type hub struct {
	c        *cordis.Context
	cfg      Config
	fetches  registry
	searches registry
}

var _ Web = (*hub)(nil)

func newHub(c *cordis.Context, cfg Config) *hub {
	h := &hub{c: c, cfg: cfg, fetches: newRegistry(c, KindFetch), searches: newRegistry(c, KindSearch)}
	_, _ = cordis.Committing.On(c, func(ctx context.Context, s *cordis.Stage) { // refused by a fiber that ends
		h.fetches.committed(ctx, s)
		h.searches.committed(ctx, s)
	})
	return h
}

// Describe says which addresses can be fetched.
func (h *hub) Describe() string {
	if h.cfg.AllowPrivate {
		return "private, loopback and link-local addresses may be fetched here, too"
	}
	return "public addresses only; `--allow-private-web` at the start lifts that"
}

// byKey is where a context carries the plugin that acts.
type byKey struct{}

// acting is a plugin that acts: its mount's id, if it is one, and its scope.
type acting struct {
	id    string
	scope *tool.Scope
}

func by(ctx context.Context) string {
	a, _ := ctx.Value(byKey{}).(acting)
	return a.id
}

// scope is where a call comes from.
func scope(ctx context.Context) *tool.Scope {
	if a, ok := ctx.Value(byKey{}).(acting); ok {
		return a.scope
	}
	return tool.ActorOf(ctx).Scope
}

// SearchProviders implements Web.
func (h *hub) SearchProviders(from *tool.Scope) []string {
	all := h.searches.list(from)
	names := make([]string, len(all))
	for i, e := range all {
		names[i] = e.id
	}
	return names
}

// Fetch implements Web.
func (h *hub) Fetch(ctx context.Context, r FetchRequest) (FetchResult, error) {
	r, err := r.complete()
	if err != nil {
		return FetchResult{}, err
	}
	what := "the fetch of " + shown(r.URL)
	ctx, done, err := h.enter(ctx, "web.fetch")
	if err != nil {
		return FetchResult{}, err
	}
	defer done()
	if err := h.askFetch(ctx, r.URL, r.Method); err != nil {
		return FetchResult{}, err
	}
	p, err := h.fetches.choose(scope(ctx), r.Provider, h.cfg.FetchProvider)
	if err != nil {
		return FetchResult{}, err
	}
	var result FetchResult
	limit := time.Duration(r.TimeoutMs) * time.Millisecond
	err = p.call(ctx, limit, CodeTimeout, CodeFetchFailed, what, func(ctx context.Context) (err error) {
		result, err = p.provider.(FetchProvider).Fetch(ctx, r)
		return err
	})
	if err != nil {
		return FetchResult{}, err
	}
	return result.bounded(r), nil
}

// Search implements Web.
func (h *hub) Search(ctx context.Context, r SearchRequest) (SearchResult, error) {
	r, err := r.complete()
	if err != nil {
		return SearchResult{}, err
	}
	ctx, done, err := h.enter(ctx, "web.search")
	if err != nil {
		return SearchResult{}, err
	}
	defer done()
	if err := service.Ask(ctx, h.c, SearchIntent, CodeDenied, PendingSearch{Query: r.Query, By: by(ctx)}); err != nil {
		return SearchResult{}, orAborted(ctx, err, "the search")
	}
	p, err := h.searches.choose(scope(ctx), r.Provider, h.cfg.SearchProvider)
	if err != nil {
		return SearchResult{}, err
	}
	var result SearchResult
	err = p.call(ctx, limits.WebTime, CodeSearchTimeout, CodeSearchFailed, "the search", func(ctx context.Context) (err error) {
		result, err = p.provider.(SearchProvider).Search(ctx, r)
		return err
	})
	if err != nil {
		return SearchResult{}, err
	}
	return result.bounded(r), nil
}

// askFetch asks policy for a fetch, or a redirect of it.
func (h *hub) askFetch(ctx context.Context, url string, method FetchMethod) error {
	err := service.Ask(ctx, h.c, FetchIntent, CodeDenied, PendingFetch{URL: url, Method: method, By: by(ctx)})
	return orAborted(ctx, err, "the fetch of "+shown(url))
}

// orAborted gives an error a code if it is the end of ctx.
func orAborted(ctx context.Context, err error, what string) error {
	if err != nil && service.CodeOf(err) == "" {
		if over := ended(ctx, CodeTimeout, what); over != nil {
			return over
		}
	}
	return err
}

// enter begins a call. It ends when the service unloads, but for calls that come
// later, of dependents that unwind.
func (h *hub) enter(ctx context.Context, label string) (context.Context, func(), error) {
	ctx, leave, err := h.c.Fiber().Enter(ctx, label)
	if err != nil {
		return nil, nil, fail(CodeUnavailable, "the web service is not running: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	stop := func() bool { return true }
	if run := h.c.Context(); run.Err() == nil {
		stop = context.AfterFunc(run, cancel)
	}
	return ctx, func() {
		stop()
		cancel()
		leave()
	}, nil
}

// RegisterFetchProvider implements Web.
func (h *hub) RegisterFetchProvider(c *cordis.Context, p FetchProvider) (*cordis.Handle, error) {
	if p == nil {
		return nil, fail(CodeInvalidRequest, "the fetch provider is nil")
	}
	return h.fetches.register(c, p)
}

// RegisterSearchProvider implements Web.
func (h *hub) RegisterSearchProvider(c *cordis.Context, p SearchProvider) (*cordis.Handle, error) {
	if p == nil {
		return nil, fail(CodeInvalidRequest, "the search provider is nil")
	}
	return h.searches.register(c, p)
}
