package kv

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// stores are all stores of one run of the service.
type stores struct {
	cfg Config

	mu     sync.Mutex
	named  map[string]*store // of plugins, by name
	mounts map[uint64]*store // of temporary plugins, by fiber
}

var _ KV = (*stores)(nil)

func newStores(c *cordis.Context, cfg Config) (*stores, error) {
	s := &stores{cfg: cfg, named: map[string]*store{}, mounts: map[uint64]*store{}}
	if cfg.Dir != "" {
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the folder of kv: %w", err)
		}
	}
	_, err := cordis.StatusChanged.On(c, func(_ context.Context, ch cordis.StatusChange) {
		if ch.New == cordis.Disposed {
			s.unmounted(c, ch.Fiber)
		}
	})
	return s, err
}

// unmounted removes the store of a temporary plugin that has ended for good. Its
// file stays if the program stops, which disposes the plugins' parent too.
func (s *stores) unmounted(c *cordis.Context, f *cordis.Fiber) {
	s.mu.Lock()
	st := s.mounts[f.ID()]
	delete(s.mounts, f.ID())
	s.mu.Unlock()
	parent := f.Parent().State()
	stops := parent != cordis.Active && parent != cordis.Loading
	if st == nil {
		m, ok := tool.MountOf(f.Context())
		if !ok {
			return
		}
		st = &store{path: s.path(m, true, "")} // not opened since the service runs
	}
	if err := st.end(!stops); err != nil {
		c.Logger().Error("the store of an unmounted plugin could not be removed", "plugin", f.Name(), "error", err)
	}
}

// Store implements KV.
func (s *stores) Store(c *cordis.Context) ForPlugins { return &handle{s, c} }

// of gives the store of c's plugin.
func (s *stores) of(c *cordis.Context) (*store, error) {
	f := c.Fiber()
	m, temporary := tool.MountOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !temporary {
		st := s.named[f.Name()]
		if st == nil {
			st = &store{path: s.path(m, false, f.Name())}
			s.named[f.Name()] = st
		}
		return st, nil
	}
	// Under the lock, so that unmounted, which is told after the state has
	// changed, finds what is put here.
	if f.State() == cordis.Disposed {
		return nil, gone()
	}
	st := s.mounts[f.ID()]
	if st == nil {
		st = &store{path: s.path(m, true, "")}
		s.mounts[f.ID()] = st
	}
	return st, nil
}

func gone() error {
	return &service.Error{Code: CodeGone, Message: "the plugin was unmounted, and its store with it"}
}

// path is where a store is kept; "" is in memory.
func (s *stores) path(m tool.Mount, temporary bool, plugin string) string {
	switch {
	case s.cfg.Dir == "" || temporary && s.cfg.Session == "":
		return ""
	case temporary:
		return s.cfg.Dir + string(os.PathSeparator) + "session-" + fileName(s.cfg.Session) + "." + fileName(m.ID) + ".json"
	}
	return s.cfg.Dir + string(os.PathSeparator) + "plugin-" + fileName(plugin) + ".json"
}

// fileName writes a name so that different names are different files everywhere,
// also where case does not count.
func fileName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02x", c)
		}
	}
	if b.Len() <= 100 {
		return b.String()
	}
	return fmt.Sprintf("%s%%%x", b.String()[:30], sha256.Sum256([]byte(name)))
}

// handle is the store as one plugin has it.
type handle struct {
	stores *stores
	c      *cordis.Context
}

var _ ForPlugins = (*handle)(nil)

// begin gives the store for one call.
func (h *handle) begin(ctx context.Context) (*store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h.stores.of(h.c)
}

// Get implements ForPlugins.
func (h *handle) Get(ctx context.Context, key string) (lossless.Text, error) {
	if err := checkKey(key); err != nil {
		return nil, err
	}
	st, err := h.begin(ctx)
	if err != nil {
		return nil, err
	}
	return st.get(key)
}

// Set implements ForPlugins.
func (h *handle) Set(ctx context.Context, key string, value lossless.Text) error {
	if err := checkKey(key); err != nil {
		return err
	}
	value, err := checkValue(key, value)
	if err != nil {
		return err
	}
	st, err := h.begin(ctx)
	if err != nil {
		return err
	}
	return st.set(key, value)
}

// Delete implements ForPlugins.
func (h *handle) Delete(ctx context.Context, key string) (bool, error) {
	if err := checkKey(key); err != nil {
		return false, err
	}
	st, err := h.begin(ctx)
	if err != nil {
		return false, err
	}
	return st.remove(key)
}

// Keys implements ForPlugins.
func (h *handle) Keys(ctx context.Context, prefix *string) ([]string, error) {
	st, err := h.begin(ctx)
	if err != nil {
		return nil, err
	}
	if prefix == nil {
		return st.keys("")
	}
	return st.keys(*prefix)
}
