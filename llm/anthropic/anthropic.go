package anthropic

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/sse"
)

// URL is the base URL of Anthropic's own API.
const URL = "https://api.anthropic.com"

// version is that of the API that this package speaks.
const version = "2023-06-01"

// maxTokens is sent where neither the request nor the model says; the API needs one.
const maxTokens = 32_000

// Options say which server an Adapter speaks to.
type Options struct {
	// BaseURL is what /v1/messages is appended to; "" is URL. A /v1 at its end
	// is not doubled.
	BaseURL string
	// Key returns the key; it is asked for every request. nil, or "", sends none.
	// Its error becomes the failure, MISSING_CREDENTIAL unless it is one itself.
	Key func() (string, error)
	// Known are the models that are known by name; others go too, unless Closed.
	Known  []llm.Model
	Closed bool
	// Idle ends a stream that sends nothing; 0 is limits.LLMIdle.
	Idle time.Duration
	// Client is used when set. The default follows no redirects.
	Client *http.Client
	// UserAgent is sent with every request; "" is dsh.
	UserAgent string
}

// KnownModels are models of Anthropic's own API; others are taken by name too.
func KnownModels() []llm.Model {
	return []llm.Model{made("claude-sonnet-4-6"), made("claude-opus-4-6"), made("claude-haiku-4-5")}
}

func made(name string) llm.Model {
	return llm.Model{Name: name, ContextWindow: 200_000, MaxTokens: maxTokens, Images: true, Efforts: []string{llm.EffortOff, "low", "medium", "high", "max"}}
}

// Adapter speaks to one server. It may be used from any goroutine.
type Adapter struct {
	opt Options
	url string
}

var _ llm.Adapter = (*Adapter)(nil)

// New returns an adapter. The error says what is wrong with the base URL.
func New(opt Options) (*Adapter, error) {
	if opt.BaseURL == "" {
		opt.BaseURL = URL
	}
	u, err := url.Parse(opt.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return nil, llm.Fail(llm.CodeInvalidRequest, "the base URL is not usable; it must look like %s, without a name or a password in it", URL)
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/v1") + "/v1/messages"
	return &Adapter{opt: opt, url: u.String()}, nil
}

// Models returns the known models.
func (a *Adapter) Models() []llm.Model { return slices.Clone(a.opt.Known) }

// Model returns what is known of a model.
func (a *Adapter) Model(name string) (llm.Model, error) {
	if m, ok, err := llm.Find(a.opt.Known, a.opt.Closed, name); ok || err != nil {
		return m, err
	}
	return made(name), nil
}

// Stream sends the request.
func (a *Adapter) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		out := llm.NewEmitter(yield)
		body, err := a.Encode(r)
		if err != nil {
			out.Fail(llm.AsFailure(err, llm.CodeInvalidRequest))
			return
		}
		key := ""
		if a.opt.Key != nil {
			if key, err = a.opt.Key(); err != nil {
				out.Fail(llm.AsFailure(err, llm.CodeMissingCredential))
				return
			}
		}
		h := http.Header{"Accept": {"text/event-stream"}, "User-Agent": {"dsh"}, "Anthropic-Version": {version}}
		if a.opt.UserAgent != "" {
			h.Set("User-Agent", a.opt.UserAgent)
		}
		if key != "" {
			h.Set("X-Api-Key", key)
		}
		out.Hide(key)
		d := newDecoder(out)
		post := sse.Post{URL: a.url, Header: h, Body: body, Client: a.opt.Client, Idle: a.opt.Idle}
		d.end(post.Do(ctx, d.event))
	}
}
