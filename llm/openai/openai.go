package openai

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/sse"
)

// Dialect says what a server wants that others do not.
type Dialect int

// The dialects. Auto is DeepSeek or OpenAI by the host of the base URL and the
// name of the model, else Compatible.
const (
	Auto Dialect = iota
	Compatible
	DeepSeek
	OpenAI
)

// Options say which server an Adapter speaks to.
type Options struct {
	// BaseURL is what /chat/completions is appended to, such as
	// https://api.deepseek.com or http://127.0.0.1:11434/v1.
	BaseURL string
	// Key returns the key; it is asked for every request. nil, or "", sends none.
	// Its error becomes the failure, MISSING_CREDENTIAL unless it is one itself.
	Key func() (string, error)
	// Dialect is Auto unless set.
	Dialect Dialect
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

// DeepSeekURL and OpenAIURL are the base URLs of the two services.
const (
	DeepSeekURL = "https://api.deepseek.com"
	OpenAIURL   = "https://api.openai.com/v1"
)

// DeepSeekModels are the models of DeepSeek's own API.
func DeepSeekModels() []llm.Model {
	efforts := []string{llm.EffortOff, "high", "max"}
	return []llm.Model{
		{Name: "deepseek-v4-flash", ContextWindow: 1_000_000, MaxTokens: 256_000, Efforts: efforts},
		{Name: "deepseek-v4-pro", ContextWindow: 1_000_000, MaxTokens: 256_000, Efforts: efforts},
	}
}

// Models are models of OpenAI's own API; others are taken by name too.
func Models() []llm.Model {
	efforts := []string{llm.EffortOff, "low", "medium", "high"}
	return []llm.Model{
		{Name: "gpt-5.2", ContextWindow: 400_000, Images: true, Efforts: efforts},
		{Name: "gpt-5-mini", ContextWindow: 400_000, Images: true},
		{Name: "gpt-4.1", ContextWindow: 1_000_000, Images: true},
	}
}

// Adapter speaks to one server. It may be used from any goroutine.
type Adapter struct {
	opt     Options
	dialect Dialect
	url     string
}

var _ llm.Adapter = (*Adapter)(nil)

// New returns an adapter. The error says what is wrong with the base URL.
func New(opt Options) (*Adapter, error) {
	u, err := url.Parse(opt.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") || u.User != nil {
		return nil, llm.Fail(llm.CodeInvalidRequest, "the base URL is not usable; it must look like https://host/v1, without a name or a password in it")
	}
	a := &Adapter{opt: opt, dialect: opt.Dialect}
	if a.dialect == Auto {
		switch host := u.Hostname(); {
		case host == "deepseek.com" || strings.HasSuffix(host, ".deepseek.com"):
			a.dialect = DeepSeek
		case host == "openai.com" || strings.HasSuffix(host, ".openai.com") || strings.HasSuffix(host, ".openai.azure.com"):
			a.dialect = OpenAI
		default:
			a.dialect = Compatible
		}
	}
	u.Path = strings.TrimRight(u.Path, "/") + "/chat/completions"
	a.url = u.String()
	return a, nil
}

// Models returns the known models.
func (a *Adapter) Models() []llm.Model { return slices.Clone(a.opt.Known) }

// Model returns what is known of a model.
func (a *Adapter) Model(name string) (llm.Model, error) {
	if m, ok, err := llm.Find(a.opt.Known, a.opt.Closed, name); ok || err != nil {
		return m, err
	}
	return llm.Model{Name: name, Images: a.dialect != DeepSeek}, nil
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
		out.Hide(key)
		d := newDecoder(out)
		post := sse.Post{URL: a.url, Header: a.header(r, key), Body: body, Client: a.opt.Client, Idle: a.opt.Idle}
		d.end(post.Do(ctx, d.event))
	}
}

func (a *Adapter) header(r *llm.Request, key string) http.Header {
	h := http.Header{"Accept": {"text/event-stream"}, "User-Agent": {"dsh"}}
	if a.opt.UserAgent != "" {
		h.Set("User-Agent", a.opt.UserAgent)
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	if a.dialect == DeepSeek {
		if r.Session != "" {
			h.Set("X-Deepseek-Harness-Session-Id", plain.Line(r.Session, 100))
		}
		if r.Purpose == llm.PurposeCompact {
			h.Set("X-Deepseek-Harness-Compact", "1")
		}
	}
	return h
}
