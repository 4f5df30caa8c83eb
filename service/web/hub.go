package web

import (
	"context"
	"errors"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
)

type hub struct{}

var _ Web = (*hub)(nil)

func newHub(*cordis.Context, Config) *hub { return &hub{} }

var errSoon = errors.New("web: not there yet")

func (h *hub) Fetch(context.Context, FetchRequest) (FetchResult, error) {
	return FetchResult{}, errSoon
}
func (h *hub) Search(context.Context, SearchRequest) (SearchResult, error) {
	return SearchResult{}, errSoon
}
func (h *hub) RegisterFetchProvider(*cordis.Context, FetchProvider) (*cordis.Handle, error) {
	return nil, errSoon
}
func (h *hub) RegisterSearchProvider(*cordis.Context, SearchProvider) (*cordis.Handle, error) {
	return nil, errSoon
}

type plugins struct {
	web Web
	c   *cordis.Context
}

var _ ForPlugins = (*plugins)(nil)

func (p *plugins) Fetch(context.Context, FetchTarget, *FetchOptions) (FetchResult, error) {
	return FetchResult{}, errSoon
}

func (p *plugins) Search(context.Context, SearchTarget, *SearchOptions) (SearchResult, error) {
	return SearchResult{}, errSoon
}

func (p *plugins) RegisterSearchProvider(string, func(context.Context, SearchRequest) (SearchResult, error)) (service.Dispose, error) {
	return nil, errSoon
}

func (p *plugins) RegisterFetchProvider(string, func(context.Context, FetchRequest) (FetchResult, error)) (service.Dispose, error) {
	return nil, errSoon
}
