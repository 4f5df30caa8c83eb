package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// fake is a provider of both kinds.
type fake struct {
	id        string
	available func() bool
	search    func(context.Context, SearchRequest) (SearchResult, error)
	fetch     func(context.Context, FetchRequest) (FetchResult, error)
}

func (f *fake) ID() string      { return f.id }
func (f *fake) Available() bool { return f.available == nil || f.available() }
func (f *fake) Search(ctx context.Context, r SearchRequest) (SearchResult, error) {
	return f.search(ctx, r)
}
func (f *fake) Fetch(ctx context.Context, r FetchRequest) (FetchResult, error) {
	return f.fetch(ctx, r)
}

func saying(id string) *fake {
	return &fake{
		id:     id,
		search: func(context.Context, SearchRequest) (SearchResult, error) { return SearchResult{Content: id}, nil },
		fetch: func(context.Context, FetchRequest) (FetchResult, error) {
			return FetchResult{StatusCode: 200, Body: FetchBody{Content: id}}, nil
		},
	}
}

func TestSelection(t *testing.T) {
	never := func() bool { return false }
	for name, c := range map[string]struct {
		providers        []*fake
		configured, want string
		got, code, says  string
	}{
		"none":                   {nil, "", "", "", CodeUnavailable, "registerSearchProvider"},
		"only":                   {[]*fake{saying("a")}, "", "", "a", "", ""},
		"several":                {[]*fake{saying("a"), saying("b")}, "", "", "", CodeAmbiguous, "2 search providers (a, b)"},
		"one-is-usable":          {[]*fake{{id: "a", available: never}, saying("b")}, "", "", "b", "", ""},
		"none-is-usable":         {[]*fake{{id: "a", available: never}}, "", "", "", CodeUnavailable, "available now: a"},
		"panic-is-not-usable":    {[]*fake{{id: "a", available: func() bool { panic("x") }}}, "", "", "", CodeUnavailable, "available now: a"},
		"configured":             {[]*fake{saying("a"), saying("b")}, "b", "", "b", "", ""},
		"configured-missing":     {[]*fake{saying("a")}, "x", "", "", CodeConfiguredMissing, `the configuration names the search provider "x", which is not registered; registered: a`},
		"configured-unavailable": {[]*fake{{id: "a", available: never}, saying("b")}, "a", "", "", CodeConfiguredUnavailable, "not available now"},
		"asked-for":              {[]*fake{saying("a"), saying("b")}, "b", "a", "a", "", ""},
		"asked-for-missing":      {nil, "", "x", "", CodeConfiguredMissing, `the request names the search provider "x", which is not registered; registered: none`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{SearchProvider: c.configured})
			for _, p := range c.providers {
				if _, err := w.web.RegisterSearchProvider(w.hub.c, p); err != nil {
					t.Fatal(err)
				}
			}
			got, err := w.web.Search(t.Context(), SearchRequest{Query: "q", Provider: c.want})
			if c.code != "" {
				if msg := wantCode(t, err, c.code); !strings.Contains(msg, c.says) {
					t.Errorf("%q does not say %q", msg, c.says)
				}
			} else if err != nil || got.Content != c.got {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

func TestFetchProviders(t *testing.T) {
	w := newWorld(t, Config{})
	h, err := w.web.RegisterFetchProvider(w.hub.c, saying("mine"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: "http://a.test"})
	if msg := wantCode(t, err, CodeAmbiguous); !strings.Contains(msg, "(local, mine)") {
		t.Error(msg)
	}
	got, err := w.web.Fetch(t.Context(), FetchRequest{URL: "http://A.test", Provider: "mine"})
	want := FetchResult{URL: "http://a.test", StatusCode: 200, Body: FetchBody{BodyText, "mine"}}
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Error(err, d)
	}
	if err := h.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: "http://127.0.0.1"}) // local again
	wantCode(t, err, CodeBlockedURL)
}

func TestRegistration(t *testing.T) {
	w := newWorld(t, Config{})
	_, err := w.web.RegisterFetchProvider(w.hub.c, saying(Local))
	if msg := wantCode(t, err, CodeDuplicateProvider); !strings.Contains(msg, `"local" already, of plugin web`) {
		t.Error(msg)
	}
	for _, id := range []string{"", "a b", "ü", strings.Repeat("x", 65), "a\n"} {
		_, err := w.web.RegisterSearchProvider(w.hub.c, saying(id))
		wantCode(t, err, CodeInvalidRequest)
	}
	_, err = w.web.RegisterSearchProvider(w.hub.c, nil)
	wantCode(t, err, CodeInvalidRequest)
	_, err = w.web.RegisterFetchProvider(w.hub.c, nil)
	wantCode(t, err, CodeInvalidRequest)
	for i := range limits.WebProviders {
		if _, err := w.web.RegisterSearchProvider(w.hub.c, saying(fmt.Sprint("p", i))); err != nil {
			t.Fatal(err)
		}
	}
	_, err = w.web.RegisterSearchProvider(w.hub.c, saying("more"))
	wantCode(t, err, CodeTooManyProviders)
}

func TestForeignResultsAreBounded(t *testing.T) {
	w := newWorld(t, Config{})
	p := saying("p")
	long := strings.Repeat("é", limits.WebContent+1)
	p.fetch = func(_ context.Context, r FetchRequest) (FetchResult, error) {
		return FetchResult{URL: strings.Repeat("u", limits.WebURL+1), ContentType: long, Body: FetchBody{"exe", long + "\xff"}}, nil
	}
	p.search = func(_ context.Context, r SearchRequest) (SearchResult, error) {
		if r.MaxResults != limits.WebSourcesIf {
			t.Errorf("the default is not filled in: %+v", r)
		}
		return SearchResult{Content: long, Sources: append([]SearchSource{{}, {URL: strings.Repeat("u", limits.WebURL+1)}, {URL: "http://a/", Title: long, Snippet: long, PublishedAt: long}},
			make([]SearchSource, 100)...)}, nil
	}
	for _, reg := range []func() (*cordis.Handle, error){
		func() (*cordis.Handle, error) { return w.web.RegisterFetchProvider(w.hub.c, p) },
		func() (*cordis.Handle, error) { return w.web.RegisterSearchProvider(w.hub.c, p) },
	} {
		if _, err := reg(); err != nil {
			t.Fatal(err)
		}
	}
	page, err := w.web.Fetch(t.Context(), FetchRequest{URL: "http://a.test", Provider: "p", MaxChars: 5})
	if err != nil || page.URL != "http://a.test" || page.Body != (FetchBody{BodyText, "ééééé"}) || !page.Truncated || len(page.ContentType) > 1000 {
		t.Errorf("%v, %+v", err, page)
	}
	found, err := w.web.Search(t.Context(), SearchRequest{Query: "q"})
	want := SearchResult{Content: strings.Repeat("é", limits.WebContent), Truncated: true, Sources: []SearchSource{{
		URL: "http://a/", Title: strings.Repeat("é", limits.WebTitle), Snippet: strings.Repeat("é", limits.WebSnippet), PublishedAt: strings.Repeat("é", limits.Name)}}}
	if d := cmp.Diff(want, found); d != "" || err != nil {
		t.Error(err, d)
	}
	p.search = func(context.Context, SearchRequest) (SearchResult, error) { return SearchResult{}, nil }
	if found, err := w.web.Search(t.Context(), SearchRequest{Query: "q"}); err != nil || found.Sources == nil || found.Truncated {
		t.Errorf("%v, %+v", err, found)
	}
}

func TestForeignErrors(t *testing.T) {
	w := newWorld(t, Config{})
	p := saying("p")
	if _, err := w.web.RegisterSearchProvider(w.hub.c, p); err != nil {
		t.Fatal(err)
	}
	if _, err := w.web.RegisterFetchProvider(w.hub.c, p); err != nil {
		t.Fatal(err)
	}
	search := func(fn func(ctx context.Context) error) error {
		p.search = func(ctx context.Context, _ SearchRequest) (SearchResult, error) { return SearchResult{}, fn(ctx) }
		_, err := w.web.Search(t.Context(), SearchRequest{Query: "q"})
		return err
	}
	msg := wantCode(t, search(func(context.Context) error { return errors.New("quota used up") }), CodeSearchFailed)
	if msg != `the search provider "p" failed: quota used up` {
		t.Error(msg)
	}
	wantCode(t, search(func(context.Context) error { return &service.Error{Code: "QUOTA", Message: "m"} }), "QUOTA")
	wantCode(t, search(func(context.Context) error { panic("boom") }), CodeSearchFailed)
	p.fetch = func(ctx context.Context, _ FetchRequest) (FetchResult, error) {
		<-ctx.Done()
		return FetchResult{}, ctx.Err()
	}
	_, err := w.web.Fetch(t.Context(), FetchRequest{URL: "http://a", Provider: "p", TimeoutMs: 1})
	wantCode(t, err, CodeTimeout)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.web.Fetch(ctx, FetchRequest{URL: "http://a", Provider: "p"})
	wantCode(t, err, CodeAborted)
}

func TestProvidersOfPlugins(t *testing.T) {
	w := newWorld(t, Config{})
	var dispose service.Dispose
	f := w.mount(t, "dyn-7", func(p ForPlugins, c *cordis.Context) (err error) {
		dispose, err = p.RegisterSearchProvider("a", func(_ context.Context, r SearchRequest) (SearchResult, error) {
			return SearchResult{Content: "a: " + r.Query}, nil
		})
		if err != nil {
			return err
		}
		_, err = p.RegisterSearchProvider("b", func(_ context.Context, r SearchRequest) (SearchResult, error) {
			return SearchResult{Content: "b: " + r.Query}, nil
		})
		if err != nil {
			return err
		}
		_, err = p.RegisterFetchProvider("f", func(_ context.Context, r FetchRequest) (FetchResult, error) {
			return FetchResult{Body: FetchBody{Content: r.URL}}, nil
		})
		if err != nil {
			return err
		}
		_, err = p.RegisterFetchProvider("g", nil)
		wantCode(t, err, CodeInvalidRequest)
		_, err = p.RegisterSearchProvider("g", nil)
		wantCode(t, err, CodeInvalidRequest)
		_, err = p.RegisterSearchProvider("a", func(context.Context, SearchRequest) (r SearchResult, err error) { return })
		if msg := wantCode(t, err, CodeDuplicateProvider); !strings.Contains(msg, "(dyn-7)") {
			t.Error(msg)
		}
		return nil
	})
	if err := dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	var got SearchResult
	var page FetchResult
	w.mount(t, "dyn-8", func(p ForPlugins, c *cordis.Context) (err error) {
		got, err = p.Search(c.Context(), SearchTarget{SearchRequest{Query: "x"}}, nil)
		if err == nil {
			page, err = p.Fetch(c.Context(), FetchTarget{FetchRequest{URL: "http://x/"}}, &FetchOptions{Provider: "f"})
		}
		return err
	})
	if got.Content != "b: x" || page.Body.Content != "http://x/" {
		t.Error(got, page)
	}
	// The registrations end with their plugin.
	if _, err := f.Dispose(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := w.web.Search(t.Context(), SearchRequest{Query: "x"})
	wantCode(t, err, CodeUnavailable)
}

func TestPolicy(t *testing.T) {
	asked := 0
	site := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/secret", http.StatusFound)
		}
		io.WriteString(w, "ok")
	})
	w := newWorld(t, Config{AllowPrivate: true})
	var seen []any
	_, err := FetchIntent.On(w.root, func(ctx context.Context, f PendingFetch, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		seen = append(seen, f)
		if strings.HasSuffix(f.URL, "/secret") {
			return tool.Deny("not the secret"), nil
		}
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = SearchIntent.On(w.root, func(ctx context.Context, s PendingSearch, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		seen = append(seen, s)
		return tool.Ask("may I"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.web.Fetch(t.Context(), FetchRequest{URL: strings.Replace(site, "http", "HTTP", 1) + "/secret#x"})
	if msg := wantCode(t, err, CodeDenied); msg != "not the secret" || asked != 0 {
		t.Error(msg, asked)
	}
	w.mount(t, "dyn-3", func(p ForPlugins, c *cordis.Context) error {
		_, err := p.Fetch(c.Context(), FetchTarget{FetchRequest{URL: site + "/old"}}, &FetchOptions{Method: MethodHead})
		wantCode(t, err, CodeDenied)
		_, err = p.Search(c.Context(), SearchTarget{SearchRequest{Query: "x"}}, nil)
		if msg := wantCode(t, err, CodeDenied); msg != "may I" {
			t.Error(msg)
		}
		return nil
	})
	want := []any{
		PendingFetch{site + "/secret", MethodGet, ""},
		PendingFetch{site + "/old", MethodHead, "dyn-3"},
		PendingFetch{site + "/secret", MethodHead, "dyn-3"},
		PendingSearch{"x", "dyn-3"},
	}
	if d := cmp.Diff(want, seen); d != "" || asked != 1 {
		t.Error(asked, d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = w.web.Fetch(ctx, FetchRequest{URL: site})
	wantCode(t, err, CodeAborted)
	_, err = w.web.Search(ctx, SearchRequest{Query: "q"})
	wantCode(t, err, CodeAborted)
}

func TestBadProxyFailsThePlugin(t *testing.T) {
	f, err := cordis.New().Mount(Plugin(Config{Proxy: "nonsense"}), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(t.Context()); err == nil || !strings.Contains(err.Error(), "http, https or socks5") {
		t.Error(err)
	}
}
