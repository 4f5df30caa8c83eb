package web

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// FetchFormat is what becomes of a page before it is returned. Only HTML is
// changed, and HTML over 2 MiB is refused unless the format is raw.
type FetchFormat string

// The formats.
const (
	FormatRaw      FetchFormat = "raw"      // as it came
	FormatMarkdown FetchFormat = "markdown" // HTML becomes Markdown
	FormatText     FetchFormat = "text"     // HTML becomes its visible text
)

// FetchMethod is an HTTP method that only reads.
type FetchMethod string

// The methods.
const (
	MethodGet  FetchMethod = "GET"
	MethodHead FetchMethod = "HEAD"
)

// FetchRequest is what to fetch, and how.
type FetchRequest struct {
	// URL is an absolute http or https URL without user name and password.
	URL string `json:"url"`
	// Format is what becomes of HTML; the default is raw, as it came.
	Format FetchFormat `json:"format,omitempty"`
	// Method is GET, the default, or HEAD.
	Method FetchMethod `json:"method,omitempty"`
	// Headers are further request headers, such as Accept or Authorization.
	Headers map[string]string `json:"headers,omitempty"`
	// MaxBytes is the most bytes of the body, unpacked; a larger one is refused
	// with WEB_FETCH_TOO_LARGE. The default, and the most, is 5 MiB.
	MaxBytes int `json:"maxBytes,omitempty"`
	// MaxChars is the most characters of content; more is cut and truncated is
	// true. The default, and the most, is 100,000.
	MaxChars int `json:"maxChars,omitempty"`
	// TimeoutMs is the time for everything, in milliseconds. The default, and
	// the most, is 30,000.
	TimeoutMs int `json:"timeoutMs,omitempty"`
	// Provider is the id of the provider to use where there is more than one.
	Provider string `json:"provider,omitempty"`
}

// FetchTarget is a URL, or a whole request.
//
//dsh:ts string | FetchRequest
type FetchTarget struct{ FetchRequest }

// UnmarshalJSON reads a URL or a request.
func (t *FetchTarget) UnmarshalJSON(text []byte) error {
	return either(text, &t.URL, &t.FetchRequest)
}

// either reads text into s if it is a string, else strictly into whole.
func either(text []byte, s *string, whole any) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, s)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(whole)
	if mistaken := new(json.UnmarshalTypeError); errors.As(err, &mistaken) {
		return fmt.Errorf("%s cannot be %s", cmp.Or(mistaken.Field, "it"), mistaken.Value)
	}
	if err == nil {
		return nil
	}
	name, unknown := strings.CutPrefix(err.Error(), "json: unknown field ")
	switch {
	case unknown && name == `"signal"`:
		return errors.New("signal goes into the options, the second argument")
	case unknown:
		return fmt.Errorf("it has no member %s", name)
	}
	return fmt.Errorf("read request: %w", err)
}

// FetchOptions are the parts of a request beside its URL.
type FetchOptions struct {
	// Format is what becomes of HTML; the default is raw, as it came.
	Format FetchFormat `json:"format,omitempty"`
	// Method is GET, the default, or HEAD.
	Method FetchMethod `json:"method,omitempty"`
	// Headers are further request headers, such as Accept or Authorization.
	Headers map[string]string `json:"headers,omitempty"`
	// MaxBytes is the most bytes of the body: see FetchRequest.
	MaxBytes int `json:"maxBytes,omitempty"`
	// MaxChars is the most characters of content: see FetchRequest.
	MaxChars int `json:"maxChars,omitempty"`
	// TimeoutMs is the time for everything, in milliseconds, at most 30,000.
	TimeoutMs int `json:"timeoutMs,omitempty"`
	// Provider is the id of the provider to use where there is more than one.
	Provider string `json:"provider,omitempty"`
	// Signal ends the fetch with WEB_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// BodyKind tells what content is.
type BodyKind string

// The kinds of body.
const (
	BodyHTML BodyKind = "html" // HTML as it came
	BodyText BodyKind = "text" // any other text, Markdown made of HTML too
)

// FetchBody is the body of a page.
type FetchBody struct {
	// Kind is html, or text for everything else.
	Kind BodyKind `json:"kind"`
	// Content is the text; "" for HEAD and where there is no body.
	Content string `json:"content"`
}

// FetchResult is a page.
type FetchResult struct {
	// URL is the final URL, after redirects.
	URL string `json:"url"`
	// StatusCode is the HTTP status, such as 200 or 404.
	StatusCode int `json:"statusCode"`
	// ContentType is the media type that the server declared, such as
	// application/json; absent where it declared none.
	ContentType string `json:"contentType,omitempty"`
	// Body is the body, decoded to text.
	Body FetchBody `json:"body"`
	// Truncated tells that content was cut at maxChars.
	Truncated bool `json:"truncated,omitempty"`
}

// SearchRequest is what to search for.
type SearchRequest struct {
	// Query is the words to search for, at most 2,000 characters.
	Query string `json:"query"`
	// MaxResults is the most sources, 1 to 50; the default is 10.
	MaxResults int `json:"maxResults,omitempty"`
	// Provider is the id of the provider to use where there is more than one.
	Provider string `json:"provider,omitempty"`
}

// SearchTarget is the words to search for, or a whole request.
//
//dsh:ts string | SearchRequest
type SearchTarget struct{ SearchRequest }

// UnmarshalJSON reads words or a request.
func (t *SearchTarget) UnmarshalJSON(text []byte) error {
	return either(text, &t.Query, &t.SearchRequest)
}

// SearchOptions are the parts of a request beside its query.
type SearchOptions struct {
	// MaxResults is the most sources, 1 to 50; the default is 10.
	MaxResults int `json:"maxResults,omitempty"`
	// Provider is the id of the provider to use where there is more than one.
	Provider string `json:"provider,omitempty"`
	// Signal ends the search with WEB_ABORTED.
	Signal service.Signal `json:"signal,omitzero"`
}

// SearchResult is what a search provider found.
type SearchResult struct {
	// Content is an answer in words, where the provider gives one.
	Content string `json:"content,omitempty"`
	// Sources are the pages found, the best first.
	Sources []SearchSource `json:"sources"`
	// Truncated tells that sources or texts were left out.
	Truncated bool `json:"truncated,omitempty"`
}

// SearchSource is one page that was found.
type SearchSource struct {
	// URL is the page's address.
	URL string `json:"url"`
	// Title is the page's title.
	Title string `json:"title,omitempty"`
	// Snippet is a part of the page that fits the query.
	Snippet string `json:"snippet,omitempty"`
	// PublishedAt is when the page was published, as the provider writes it.
	PublishedAt string `json:"publishedAt,omitempty"`
}

// PendingFetch is a fetch that is about to happen, or a redirect that is about to be
// followed.
type PendingFetch struct {
	// URL is the whole URL.
	URL string `json:"url"`
	// Method is GET or HEAD.
	Method FetchMethod `json:"method"`
	// By is the id of the temporary plugin that fetches, such as dyn-3; "" for
	// the program itself.
	By string `json:"by"`
}

// PendingSearch is a search that is about to happen.
type PendingSearch struct {
	// Query is the words to search for.
	Query string `json:"query"`
	// By is the id of the temporary plugin that searches, such as dyn-3; "" for
	// the program itself.
	By string `json:"by"`
}

// The events that decide what may be done.
var (
	// FetchIntent decides whether a URL may be fetched; it is asked for each
	// redirect again. The innermost decision is to allow.
	FetchIntent = cordis.NewWaterfall[PendingFetch, tool.Decision]("web/fetch-intent", cordis.ForPlugins())
	// SearchIntent decides whether a search may be made. The innermost decision
	// is to allow.
	SearchIntent = cordis.NewWaterfall[PendingSearch, tool.Decision]("web/search-intent", cordis.ForPlugins())
)
