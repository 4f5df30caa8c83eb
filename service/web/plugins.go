package web

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// plugins is the service for the plugin of one context.
type plugins struct {
	web Web
	c   *cordis.Context
}

var _ ForPlugins = (*plugins)(nil)

// acting gives ctx with the plugin that acts.
func (p *plugins) acting(ctx context.Context) context.Context {
	m, _ := tool.MountOf(p.c) // its ID is empty for others
	return context.WithValue(ctx, byKey{}, acting{m.ID, tool.ScopeOf(p.c)})
}

// Fetch implements ForPlugins.
func (p *plugins) Fetch(ctx context.Context, request FetchTarget, options *FetchOptions) (FetchResult, error) {
	return p.web.Fetch(p.acting(ctx), request.with(options))
}

// Search implements ForPlugins.
func (p *plugins) Search(ctx context.Context, query SearchTarget, options *SearchOptions) (SearchResult, error) {
	return p.web.Search(p.acting(ctx), query.with(options))
}

// RegisterSearchProvider implements ForPlugins.
func (p *plugins) RegisterSearchProvider(id string, search func(ctx context.Context, request SearchRequest) (SearchResult, error)) (service.Dispose, error) {
	if search == nil {
		return nil, fail(CodeInvalidRequest, "a search provider needs a function that searches")
	}
	return disposer(p.web.RegisterSearchProvider(p.c, &mountedSearch{id, search}))
}

// RegisterFetchProvider implements ForPlugins.
func (p *plugins) RegisterFetchProvider(id string, fetch func(ctx context.Context, request FetchRequest) (FetchResult, error)) (service.Dispose, error) {
	if fetch == nil {
		return nil, fail(CodeInvalidRequest, "a fetch provider needs a function that fetches")
	}
	return disposer(p.web.RegisterFetchProvider(p.c, &mountedFetch{id, fetch}))
}

func disposer(h *cordis.Handle, err error) (service.Dispose, error) {
	if err != nil {
		return nil, err
	}
	return h.Dispose, nil
}

// mountedSearch is a search provider of a plugin.
type mountedSearch struct {
	id     string
	search func(context.Context, SearchRequest) (SearchResult, error)
}

var _ SearchProvider = (*mountedSearch)(nil)

// ID implements SearchProvider.
func (s *mountedSearch) ID() string { return s.id }

// Available is true: what is registered can be used.
func (s *mountedSearch) Available() bool { return true }

// Search implements SearchProvider.
func (s *mountedSearch) Search(ctx context.Context, r SearchRequest) (SearchResult, error) {
	return s.search(ctx, r)
}

// mountedFetch is a fetch provider of a plugin.
type mountedFetch struct {
	id    string
	fetch func(context.Context, FetchRequest) (FetchResult, error)
}

var _ FetchProvider = (*mountedFetch)(nil)

// ID implements FetchProvider.
func (f *mountedFetch) ID() string { return f.id }

// Available is true: what is registered can be used.
func (f *mountedFetch) Available() bool { return true }

// Fetch implements FetchProvider.
func (f *mountedFetch) Fetch(ctx context.Context, r FetchRequest) (FetchResult, error) {
	return f.fetch(ctx, r)
}

// bounded gives a provider's result within the bounds of the request and of the type.
func (f FetchResult) bounded(r FetchRequest) FetchResult {
	if f.URL == "" || len(f.URL) > limits.WebURL {
		f.URL = r.URL
	}
	if f.Body.Kind != BodyHTML {
		f.Body.Kind = BodyText
	}
	content, less := cut(f.Body.Content, r.MaxChars)
	f.Body.Content = strings.ToValidUTF8(content, "\ufffd")
	f.URL = strings.ToValidUTF8(f.URL, "\ufffd")
	f.ContentType = shown(f.ContentType)
	f.Truncated = f.Truncated || less
	return f
}

// bounded gives a provider's result within the bounds of the request and of the type.
func (s SearchResult) bounded(r SearchRequest) SearchResult {
	less := s.Truncated
	sources := []SearchSource{}
	for _, src := range s.Sources {
		if len(sources) == r.MaxResults || src.URL == "" || len(src.URL) > limits.WebURL || !utf8.ValidString(src.URL) {
			less = true
			continue
		}
		src.Title = bound(src.Title, limits.WebTitle, &less)
		src.Snippet = bound(src.Snippet, limits.WebSnippet, &less)
		src.PublishedAt = bound(src.PublishedAt, limits.Name, &less)
		sources = append(sources, src)
	}
	return SearchResult{Content: bound(s.Content, limits.WebContent, &less), Sources: sources, Truncated: less}
}

// bound cuts s at most characters, and says so in less.
func bound(s string, most int, less *bool) string {
	s, shorter := cut(strings.ToValidUTF8(s, "\ufffd"), most)
	*less = *less || shorter
	return s
}
