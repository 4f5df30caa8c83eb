// Package providers makes the adapters that dsh has without a plugin: deepseek,
// openai, anthropic, and script and manual, which need no key.
package providers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/anthropic"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/manual"
	"github.com/dsh-go/dsh/llm/openai"
	"github.com/dsh-go/dsh/llm/script"
)

// The names of the providers.
const (
	DeepSeek  = "deepseek"
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Script    = "script"
	Manual    = "manual"
)

// Names are the names of all providers, those with a key first, in the order in
// which Default looks for one.
func Names() []string { return []string{DeepSeek, OpenAI, Anthropic, Script, Manual} }

// WithKey are the names of the providers that have a key.
func WithKey() []string { return Names()[:3] }

// Options are what the adapters need of the program.
type Options struct {
	Keys      keys.Store
	ScriptDir string // to which the names of scripts are relative
	In        io.Reader
	Out       io.Writer // for the person who plays the model
	Idle      time.Duration
	UserAgent string
}

// New returns the adapter of a provider. Its key is looked up for every request;
// its base URL is read once, here. A server that is named by a base URL needs no
// key: one that runs at home has none. The error says what is wrong with the
// base URL or the name.
func New(provider string, opt Options) (llm.Adapter, error) {
	var baseURL, from string
	if slices.Contains(WithKey(), provider) {
		c, err := opt.Keys.Find(provider)
		var f *llm.Failure
		if err != nil && (!errors.As(err, &f) || f.Code != llm.CodeMissingCredential) {
			// A bad key is told with the request that needs it.
			c = keys.Credential{}
		}
		baseURL, from = c.BaseURL, c.URLFrom
	}
	key := func() (string, error) {
		c, err := opt.Keys.Find(provider)
		var f *llm.Failure
		if baseURL != "" && errors.As(err, &f) && f.Code == llm.CodeMissingCredential {
			return "", nil
		}
		return c.Key.Reveal(), err
	}
	var a llm.Adapter
	var err error
	switch provider {
	case DeepSeek:
		a, err = openai.New(openai.Options{BaseURL: or(baseURL, openai.DeepSeekURL), Dialect: openai.DeepSeek, Key: key,
			Known: openai.DeepSeekModels(), Idle: opt.Idle, UserAgent: opt.UserAgent})
	case OpenAI:
		a, err = openai.New(openai.Options{BaseURL: or(baseURL, openai.OpenAIURL), Key: key, Known: openai.Models(), Idle: opt.Idle, UserAgent: opt.UserAgent})
	case Anthropic:
		a, err = anthropic.New(anthropic.Options{BaseURL: baseURL, Key: key, Known: anthropic.KnownModels(), Idle: opt.Idle, UserAgent: opt.UserAgent})
	case Script:
		return script.Files(opt.ScriptDir), nil
	case Manual:
		return manual.New(opt.In, opt.Out), nil
	default:
		return nil, llm.Fail(llm.CodeNoAdapter, "there is no provider %q; there are: %s", plain.Name(provider), strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, fmt.Errorf("provider %s, %s: %w", provider, from, err)
	}
	return &advised{a, func() string { return advice(provider, opt.Keys) }}, nil
}

// CheckURL says what New would say of a base URL.
func CheckURL(provider, baseURL string) error {
	_, err := New(provider, Options{Keys: keys.Store{Env: func(name string) (string, bool) {
		if name == keys.URLVariable(provider) {
			return baseURL, true
		}
		return "", false
	}}})
	var f *llm.Failure
	if errors.As(err, &f) {
		return errors.New(f.Message)
	}
	return err
}

// advised adds to a refusal of the key where it came from, and how to change it.
type advised struct {
	llm.Adapter
	advice func() string
}

// Stream sends the request.
func (a *advised) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		for c := range a.Adapter.Stream(ctx, r) {
			if c.Failure != nil && c.Failure.Code == llm.CodeAuth {
				f := *c.Failure
				f.Message += "; " + a.advice()
				c.Failure = &f
			}
			if !yield(c) {
				return
			}
		}
	}
}

func advice(provider string, store keys.Store) string {
	c, err := store.Find(provider)
	switch {
	case err != nil:
		return fmt.Sprintf("no key was sent: set %s, or keep one with `dsh auth set %s`", keys.Variable(provider), provider)
	case c.From == keys.Variable(provider):
		return fmt.Sprintf("the key is that of %s, which goes before one that `dsh auth set %s` keeps", c.From, provider)
	}
	return fmt.Sprintf("the key is that of %s; `dsh auth set %s` replaces it", c.From, provider)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Default returns the first provider that has a key, "" when none has.
func Default(store keys.Store) string {
	for _, p := range WithKey() {
		if _, err := store.Find(p); err == nil {
			return p
		}
	}
	return ""
}
