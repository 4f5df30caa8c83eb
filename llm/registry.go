package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// Adapter speaks to one provider.
type Adapter interface {
	// Models returns the models that are known by name, in the order in which a
	// person should see them; the first is the default. It may be empty.
	Models() []Model
	// Model returns what is known of a model, or a Failure with UNKNOWN_MODEL
	// that names what there is. Where any name may exist it makes one up.
	Model(name string) (Model, error)
	// Encode returns the bytes that Stream sends for the request, or a Failure
	// (UNSUPPORTED_CONTENT, INVALID_REQUEST). It is pure.
	Encode(r *Request) ([]byte, error)
	// Stream sends the request and returns its answer, as the package comment
	// says. It does nothing before it is ranged over.
	Stream(ctx context.Context, r *Request) iter.Seq[Chunk]
}

// ErrRegistered is wrapped by the error for a provider that exists already.
var ErrRegistered = errors.New("provider is registered already")

// Registry knows the providers by name. The zero Registry is empty and ready.
type Registry struct {
	mu       sync.Mutex
	adapters map[string]Adapter
}

// Register adds a provider under a name of letters, digits, '-', '_' and '.', and
// returns what removes it. Calls that were prepared before keep their adapter.
func (g *Registry) Register(provider string, a Adapter) (remove func(), err error) {
	if a == nil || provider == "" || len(provider) > 64 || strings.ContainsFunc(provider, notNamed) {
		return nil, fmt.Errorf("register provider %q: a name has 1 to 64 letters, digits, '-', '_' or '.', and an adapter behind it", plain.Name(provider))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.adapters[provider]; ok {
		return nil, fmt.Errorf("register provider %q: %w", provider, ErrRegistered)
	}
	if len(g.adapters) >= limits.LLMProviders {
		return nil, fmt.Errorf("register provider %q: there are %d already, which is the limit", provider, limits.LLMProviders)
	}
	if g.adapters == nil {
		g.adapters = map[string]Adapter{}
	}
	g.adapters[provider] = a
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.adapters, provider)
	}), nil
}

func notNamed(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
}

// Providers returns the names of the providers, sorted.
func (g *Registry) Providers() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Sorted(maps.Keys(g.adapters))
}

// Models returns the known models of a provider, none for one that is not there.
func (g *Registry) Models(provider string) []Model {
	g.mu.Lock()
	a := g.adapters[provider]
	g.mu.Unlock()
	if a == nil {
		return nil
	}
	return a.Models()
}

// Prepare resolves the defaults of a config and pins the adapter for one call.
// The error is a Failure: NO_ADAPTER, UNKNOWN_MODEL, INVALID_REQUEST or
// UNSUPPORTED_REASONING_EFFORT.
func (g *Registry) Prepare(c Config) (*Call, error) {
	g.mu.Lock()
	a := g.adapters[c.Provider]
	g.mu.Unlock()
	if a == nil {
		return nil, Fail(CodeNoAdapter, "there is no provider %q; there are: %s", plain.Name(c.Provider), strings.Join(g.Providers(), ", "))
	}
	if c.Model == "" {
		if known := a.Models(); len(known) > 0 {
			c.Model = known[0].Name
		} else {
			return nil, Fail(CodeUnknownModel, "no model is named, and provider %q has no default", c.Provider)
		}
	}
	m, err := a.Model(c.Model)
	if err != nil {
		return nil, AsFailure(err, CodeUnknownModel)
	}
	if c.MaxTokens < 0 {
		return nil, Fail(CodeInvalidRequest, "maxTokens is %d; it must be positive, or 0 for the model's default", c.MaxTokens)
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = m.MaxTokens
	}
	if c.Effort != "" && len(m.Efforts) > 0 && !slices.Contains(m.Efforts, c.Effort) {
		return nil, Fail(CodeUnsupportedEffort, "model %s/%s has no effort %q; it has: %s", c.Provider, plain.Name(c.Model), plain.Name(c.Effort), strings.Join(m.Efforts, ", "))
	}
	return &Call{Config: c, Model: m, adapter: a}, nil
}

// Call is one prepared dispatch to a pinned adapter.
type Call struct {
	// Config is complete: the request that is streamed must have exactly this.
	Config Config
	Model  Model

	adapter Adapter
	used    atomic.Bool
}

// Encode returns the bytes that Stream sends for the request. It may be called
// any number of times, before or after.
func (c *Call) Encode(r *Request) ([]byte, error) {
	if f := c.check(r); f != nil {
		return nil, f
	}
	return c.adapter.Encode(r)
}

func (c *Call) check(r *Request) *Failure {
	a, b := r.Config, c.Config
	ta, tb := a.Temperature, b.Temperature
	a.Temperature, b.Temperature = nil, nil
	if a != b || (ta == nil) != (tb == nil) || (ta != nil && *ta != *tb) {
		return Fail(CodeInvalidRequest, "the request's config is not the one that was prepared")
	}
	return nil
}

// Stream sends the request and returns its answer. There is one finish whatever
// the adapter does: a panic (INTERNAL) and a missing finish (stop) become one,
// what follows a finish is dropped, and with ctx done an error is aborted. A
// second Stream of the same call answers with the failure INVALID_REQUEST.
func (c *Call) Stream(ctx context.Context, r *Request) iter.Seq[Chunk] {
	return func(yield func(Chunk) bool) {
		finish, left := Chunk{Type: Finish, Reason: Stop}, false
		f := c.check(r)
		if f == nil && c.used.Swap(true) {
			f = Fail(CodeInvalidRequest, "a prepared call is streamed once; prepare another one")
		}
		if f == nil {
			f = c.run(ctx, r, func(ch Chunk) bool {
				if ch.Type == Finish {
					finish = ch
					return false
				}
				left = !yield(ch)
				return !left
			})
		}
		if left {
			return
		}
		if f != nil {
			finish = Chunk{Type: Finish, Reason: Failed, Failure: f}
		}
		if ctx.Err() != nil && finish.Reason == Failed {
			finish.Reason = Aborted
			finish.Failure = AsFailure(ctx.Err(), CodeAborted)
		}
		yield(finish)
	}
}

// run ranges over the adapter's stream. A panic of the adapter becomes a
// failure; one of the reader, who runs inside yield, is passed on.
func (c *Call) run(ctx context.Context, r *Request, yield func(Chunk) bool) (f *Failure) {
	reading := false
	defer func() {
		if reading {
			return
		}
		if p := recover(); p != nil {
			f = Fail(CodeInternal, "the adapter of %s panicked: %v", c.Config.Provider, p)
		}
	}()
	for ch := range c.adapter.Stream(ctx, r) {
		reading = true
		more := yield(ch)
		reading = false
		if !more {
			break
		}
	}
	return nil
}
