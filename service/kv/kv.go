// Package kv is the service that gives each plugin a small store of JSON values.
package kv

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// KV gives each plugin its store.
type KV interface {
	// Store is the store of c's plugin.
	Store(c *cordis.Context) ForPlugins
}

// ForPlugins is a small store of the plugin's own: nobody else sees it. It
// keeps its values while the plugin is parked and runs again; when the plugin
// is unmounted they are gone, and a new mount begins empty.
type ForPlugins interface {
	// Get gives the value of a key, null if there is none.
	//
	//   - key: 1 to 512 bytes.
	Get(ctx context.Context, key string) (lossless.Text, error)
	// Set keeps a value under a key, in place of the one before. KV_INVALID_KEY:
	// the key is empty or too long. KV_TOO_LARGE: the value is larger than 1 MiB,
	// or the store would hold more than 4 MiB or 10,000 keys; nothing is changed
	// then. KV_IO_ERROR: the store's file could not be written.
	//
	//   - key: 1 to 512 bytes.
	//   - value: any JSON value.
	Set(ctx context.Context, key string, value lossless.Text) error
	// Delete removes a key and tells whether it was there.
	//
	//   - key: 1 to 512 bytes.
	Delete(ctx context.Context, key string) (bool, error)
	// Keys gives the keys, sorted.
	//
	//   - prefix: only keys that begin with it.
	Keys(ctx context.Context, prefix *string) ([]string, error)
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[KV]("kv", cordis.PluginInterface(func(v KV, c *cordis.Context) ForPlugins {
	return v.Store(c)
}))

// Config is where the stores are kept.
type Config struct {
	// Dir is a folder with a file for each plugin; "" keeps everything in memory.
	Dir string
	// Session is the id of the session that temporary plugins belong to. With
	// "" they are kept in memory, whatever Dir says: nobody could find their
	// files again.
	Session string
}

// Plugin returns the plugin that provides the service.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "kv",
		Apply: func(c *cordis.Context, _ any) error {
			if _, err := Service.Provide(c, KV(stores{})); err != nil {
				return fmt.Errorf("provide kv: %w", err)
			}
			return nil
		},
	}
}

type stores struct{}

func (stores) Store(*cordis.Context) ForPlugins { return store{} }

type store struct{}

var errSoon = errors.New("kv: not there yet")

func (store) Get(context.Context, string) (lossless.Text, error)    { return nil, errSoon }
func (store) Set(context.Context, string, lossless.Text) error      { return errSoon }
func (store) Delete(context.Context, string) (bool, error)          { return false, errSoon }
func (store) Keys(ctx context.Context, p *string) ([]string, error) { return nil, errSoon }
