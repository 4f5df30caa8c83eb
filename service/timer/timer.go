// Package timer is the service that lets a plugin wait: with it injected, a
// mounted plugin has the timer verbs on its ctx (setTimeout, setInterval,
// timeout, interval, throttle, debounce).
//
// Timers themselves are effects of the fiber that starts them, made by package
// cordis: they end with it, and nothing here needs to be undone. The service
// says that they may be used.
package timer

import (
	"fmt"

	"github.com/dsh-go/dsh/cordis"
)

// Timer marks that timers may be used.
type Timer struct{}

// ForPlugins is the service as mounted plugins see it; the façade of their
// context implements it.
type ForPlugins interface{}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[*Timer]("timer", cordis.PluginInterface[*Timer, ForPlugins](nil))

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "timer",
		Apply: func(c *cordis.Context, _ any) error {
			if _, err := Service.Provide(c, new(Timer)); err != nil {
				return fmt.Errorf("provide timer: %w", err)
			}
			return nil
		},
	}
}
