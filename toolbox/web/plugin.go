package web

import (
	"context"
	"fmt"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

// Plugin returns the plugin that registers the tools, in the scope of the context
// that it is mounted on.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "toolbox/web",
		Inject: cordis.Require(tool.Service.Name(), web.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			tools, err := tool.Service.Use(c)
			if err != nil {
				return err
			}
			w, err := web.Service.Use(c)
			if err != nil {
				return err
			}
			if _, err := tools.Register(c, fetchTool(w)); err != nil {
				return fmt.Errorf("register web_fetch: %w", err)
			}
			s := &searching{c: c, tools: tools, web: w}
			if _, err := web.ProvidersChanged.On(c, s.changed); err != nil {
				return fmt.Errorf("listen for search providers: %w", err)
			}
			return s.settle(c.Context())
		},
	}
}

// searching keeps web_search registered while there is a provider.
type searching struct {
	c     *cordis.Context
	tools *tool.Registry
	web   web.Web

	mu    sync.Mutex
	busy  bool // somebody settles
	again bool // and has to look once more

	handle *cordis.Handle // of who settles; nil: not registered
}

// changed hears of a provider.
func (s *searching) changed(ctx context.Context, ch web.ProviderChange) {
	if ch.Kind != web.KindSearch || !tool.ScopeOf(s.c).Within(ch.Scope) {
		return
	}
	if err := s.settle(ctx); err != nil {
		s.c.Logger("web").Warn("web_search could not follow its providers", "error", err)
	}
}

// settle makes the registration fit the providers. No lock is held while it
// changes; who comes meanwhile has it looked at once more.
func (s *searching) settle(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.again = true
	if s.busy {
		return nil
	}
	s.busy = true
	defer func() { s.busy = false }()
	for s.again {
		s.again = false
		if err := s.once(ctx); err != nil {
			return err
		}
	}
	return nil
}

// once registers or takes back, where that is needed. The lock is held, but not
// meanwhile.
func (s *searching) once(ctx context.Context) error {
	s.mu.Unlock()
	defer s.mu.Lock()
	wanted := len(s.web.SearchProviders(tool.ScopeOf(s.c))) > 0
	switch {
	case wanted && s.handle == nil:
		h, err := s.tools.Register(s.c, searchTool(s.web))
		if err != nil {
			return fmt.Errorf("register web_search: %w", err)
		}
		s.handle = h
	case !wanted && s.handle != nil:
		h := s.handle
		s.handle = nil
		if err := h.Dispose(ctx); err != nil {
			return fmt.Errorf("take web_search back: %w", err)
		}
	}
	return nil
}

// outcome is what a body returns for its value.
func outcome(value any) (tool.Outcome, error) {
	v, err := lossless.From(value)
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("write value: %w", err)
	}
	return tool.Outcome{Value: v.Encode()}, nil
}

func parallel(context.Context, lossless.Text) bool { return true }
