// Package web is the service through which plugins read the web: pages and other
// texts with fetch, and what a search provider finds with search.
//
// # Providers
//
// Both go through a provider that is chosen when a call is made: the one that the
// request names, else the one that [Config] names, else the only one that is
// available. For fetches there is [Local]. For searches there is none that works
// without a key, so one has to be registered, by Go code or by a plugin. A
// registration is an effect of the context that made it, and is seen from the
// scope of that context and those below it, as its tools are. A call sees what its
// plugin's scope sees, else that of the call that it belongs to (tool.ActorOf). It
// runs in the fiber of the provider's owner, which waits for it when it unloads.
// [ProvidersChanged] tells when a provider comes or goes. A provider of a
// [cordis.Stage] is used when that is committed, in the place of one that it takes.
//
// # Policy
//
// Before anything is sent [FetchIntent] or [SearchIntent] is asked, and
// FetchIntent again for each redirect. The URL that listeners see is in its
// canonical form: the host in lower-case ASCII, no default port, no fragment.
//
// # What Local reads
//
// http and https, GET and HEAD, text only. Only public unicast addresses are
// dialled, unless [Config] says otherwise; the rule looks at the address that is
// really dialled, of every connection, so a name that resolves to another address
// the second time gains nothing. There are no cookies, and the environment's
// proxies are not used. A redirect is followed to the same origin, or from http
// to https of the same host, [limits.WebRedirects] times.
//
// The body is unpacked (gzip) and decoded to UTF-8: by its byte order mark, the
// header, or what the page declares; what cannot be decoded becomes U+FFFD.
//
// # Errors
//
// All errors are *[service.Error] with one of the codes Code…; an error of a
// foreign provider that has a code keeps it.
//
// # Bounds
//
// Time, bytes, characters, redirects, headers, URLs, queries and providers are
// bounded by the constants Web… of package limits. The time is for everything,
// however slowly a body drips, but for the question to policy before it.
// HTML is turned into Markdown or text only up to limits.WebConvert bytes, since
// not all of that work can be interrupted; what would make it take more than its
// size deserves is left out (see tame).
//
// # Concurrency
//
// Everything is safe for concurrent use. Nothing here owns a goroutine; those of
// a connection end with the request. When the service unloads, running fetches end
// with CodeAborted, but for those of dependents that are unwinding.
package web

import (
	"context"
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// Web fetches and searches through whichever provider is registered.
type Web interface {
	// Fetch reads one page. A status that is not 2xx is a result; errors are
	// *service.Error with the codes of the package comment.
	Fetch(ctx context.Context, request FetchRequest) (FetchResult, error)
	// Search asks a search provider.
	Search(ctx context.Context, request SearchRequest) (SearchResult, error)
	// RegisterFetchProvider offers p as an effect of c's fiber.
	RegisterFetchProvider(c *cordis.Context, p FetchProvider) (*cordis.Handle, error)
	// RegisterSearchProvider offers p as an effect of c's fiber.
	RegisterSearchProvider(c *cordis.Context, p SearchProvider) (*cordis.Handle, error)
	// SearchProviders gives the ids of the search providers that a scope sees,
	// sorted, whether or not they are available now. It does not wait.
	SearchProviders(from *tool.Scope) []string
}

// The kinds of providers.
const (
	KindFetch  = "fetch"
	KindSearch = "search"
)

// ProviderChange is a provider that came or went.
type ProviderChange struct {
	Kind    string // KindFetch or KindSearch
	ID      string
	Scope   *tool.Scope // from which it is seen; nil: from everywhere
	Present bool        // it came
}

// ProvidersChanged tells that a provider came or went, when the service shows it
// already. It is not coalesced, and reaches listeners of every scope.
var ProvidersChanged = cordis.NewEmit[ProviderChange]("web/providers")

// A FetchProvider reads pages. Its methods may be called from any goroutine.
type FetchProvider interface {
	// ID names the provider in requests, the configuration and errors.
	ID() string
	// Available tells whether the provider could be used now. It must not wait.
	Available() bool
	// Fetch reads the page of a request whose defaults are filled in.
	Fetch(ctx context.Context, request FetchRequest) (FetchResult, error)
}

// A SearchProvider searches. Its methods may be called from any goroutine.
type SearchProvider interface {
	// ID names the provider in requests, the configuration and errors.
	ID() string
	// Available tells whether the provider could be used now. It must not wait.
	Available() bool
	// Search answers a query whose defaults are filled in.
	Search(ctx context.Context, request SearchRequest) (SearchResult, error)
}

// ForPlugins reads pages and searches. Addresses must be public unless the host
// was started otherwise, and policy is asked first (web/fetch-intent,
// web/search-intent).
type ForPlugins interface {
	// Fetch reads a web page or another text, such as JSON, over http or https.
	// A status that is not 2xx is a result like any other: look at statusCode. A
	// redirect to another origin is not followed, but the error
	// WEB_REDIRECT_BLOCKED names its target, which you can fetch instead. What is
	// not text is refused with WEB_UNSUPPORTED_CONTENT_TYPE. Other codes:
	// WEB_INVALID_URL, WEB_INVALID_REQUEST, WEB_BLOCKED_URL (the address is not
	// public), WEB_FETCH_TOO_LARGE, WEB_FETCH_TIMEOUT, WEB_FETCH_FAILED,
	// WEB_DENIED, WEB_ABORTED, and WEB_PROVIDER_… for the choice of the provider.
	//
	//   - request: the URL, or the whole request.
	//   - options: go before what the request says.
	Fetch(ctx context.Context, request FetchTarget, options *FetchOptions) (FetchResult, error)
	// Search searches the web. There is a provider only if the configuration or
	// a plugin registered one; without one the error WEB_PROVIDER_UNAVAILABLE
	// says so. Other codes: WEB_INVALID_REQUEST, WEB_DENIED, WEB_ABORTED,
	// WEB_SEARCH_FAILED, WEB_PROVIDER_….
	//
	//   - query: the words to search for, or the whole request.
	//   - options: go before what the request says.
	Search(ctx context.Context, query SearchTarget, options *SearchOptions) (SearchResult, error)
	// RegisterSearchProvider offers a search provider under an id, until it is
	// disposed or the plugin ends. WEB_DUPLICATE_PROVIDER: the id is taken.
	//
	//   - id: 1 to 64 letters, digits, - and _.
	//   - search: answers one query.
	RegisterSearchProvider(id string, search func(ctx context.Context, request SearchRequest) (SearchResult, error)) (service.Dispose, error)
	// RegisterFetchProvider offers a fetch provider under an id, until it is
	// disposed or the plugin ends. Beside the built-in one, "local", requests
	// must then name the one they want. WEB_DUPLICATE_PROVIDER: the id is taken.
	//
	//   - id: 1 to 64 letters, digits, - and _.
	//   - fetch: reads one page.
	RegisterFetchProvider(id string, fetch func(ctx context.Context, request FetchRequest) (FetchResult, error)) (service.Dispose, error)
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[Web]("web", cordis.PluginInterface(func(w Web, c *cordis.Context) ForPlugins {
	return &plugins{web: w, c: c}
}))

// Config is what the local provider may do.
type Config struct {
	// AllowPrivate lifts the rule that only public addresses may be fetched.
	AllowPrivate bool
	// Proxy is the URL of a proxy for all fetches; "" uses none, whatever the
	// environment says. With a proxy, names are resolved there, so that only
	// addresses that stand in the URL are checked here.
	Proxy string
	// FetchProvider and SearchProvider are the ids of the providers to use
	// where a request names none; "" is the only one that is available.
	FetchProvider, SearchProvider string
}

// Plugin returns the plugin that provides the service with the local fetch
// provider, whose id is [Local]. A Proxy that is not usable fails it.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "web",
		Apply: func(c *cordis.Context, _ any) error {
			h := newHub(c, cfg)
			l, err := newLocal(cfg, h.askFetch)
			if err != nil {
				return err
			}
			if _, err := h.RegisterFetchProvider(c, l); err != nil {
				return err
			}
			if _, err := Service.Provide(c, h); err != nil {
				return fmt.Errorf("provide web: %w", err)
			}
			return nil
		},
	}
}

// Settings are the service's config in a cordis.yml document.
type Settings struct {
	AllowPrivate   bool     `json:"allowPrivate" default:"false" doc:"Fetch private, loopback and link-local addresses, too."`
	Proxy          ProxyURL `json:"proxy" max:"WebURL" doc:"The URL of a proxy for all fetches; none where it is not given, whatever the environment says."`
	FetchProvider  string   `json:"fetchProvider" max:"Name" doc:"The id of the provider that fetches where a request names none; needed where there are several."`
	SearchProvider string   `json:"searchProvider" max:"Name" doc:"The id of the provider that searches where a request names none; needed where there are several."`
}

// ProxyURL is the URL of a proxy, or empty.
type ProxyURL string

// CheckText says what is wrong with it.
func (u ProxyURL) CheckText() error {
	if u == "" {
		return nil
	}
	_, err := proxyURL(string(u))
	return err
}

// Config is what the settings say.
func (s Settings) Config() Config {
	return Config{AllowPrivate: s.AllowPrivate, Proxy: string(s.Proxy), FetchProvider: s.FetchProvider, SearchProvider: s.SearchProvider}
}
