package kv

import (
	"context"
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// KV gives each plugin its store.
type KV interface {
	// Store is the store of c's plugin. It is opened by the first call on it.
	Store(c *cordis.Context) ForPlugins
}

// ForPlugins is a small store of the plugin's own, gone when it is unmounted:
// nobody else sees it. It keeps its values while the plugin is parked and runs
// again; a new mount begins empty.
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

// The codes of errors.
const (
	CodeInvalidKey   = "KV_INVALID_KEY"
	CodeInvalidValue = "KV_INVALID_VALUE" // not JSON
	CodeTooLarge     = "KV_TOO_LARGE"
	CodeIO           = "KV_IO_ERROR" // the file cannot be read or written
	CodeCorrupt      = "KV_CORRUPT"  // the file is not what was written
	CodeGone         = "KV_GONE"     // the plugin was unmounted
)

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[KV]("kv", cordis.PluginInterface(func(v KV, c *cordis.Context) ForPlugins {
	return v.Store(c)
}))

// Config is where the stores are kept.
type Config struct {
	// Dir is a folder with a file for each plugin, made if it is not there; ""
	// keeps everything in memory.
	Dir string
	// Session is the id of the session that temporary plugins belong to. With
	// "" they are kept in memory, whatever Dir says: nobody could find their
	// files again.
	Session string
}

// Plugin returns the plugin that provides the service. A Dir that cannot be made
// fails it.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "kv",
		Apply: func(c *cordis.Context, _ any) error {
			s, err := newStores(c, cfg)
			if err != nil {
				return err
			}
			if _, err := Service.Provide(c, s); err != nil {
				return fmt.Errorf("provide kv: %w", err)
			}
			return nil
		},
	}
}
