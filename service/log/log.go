// Package log is the service through which plugins write to the log of the
// program.
package log

import (
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// Log gives each plugin its way to the log.
type Log interface {
	// For is the log of c's plugin: lines bear its name.
	For(c *cordis.Context) ForPlugins
}

// ForPlugins writes lines to the log of the program, which a person reads;
// console.log is for what you want to read yourself with cordis_inspect. A
// message is cut at 2,000 characters; beyond 50 lines a second lines are
// dropped, and their number is logged.
type ForPlugins interface {
	// Debug logs what helps to find a fault. It is usually not shown.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value is shown as value.
	Debug(message string, fields *lossless.Text)
	// Info logs what is worth to know.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value is shown as value.
	Info(message string, fields *lossless.Text)
	// Warn logs what may need attention.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value is shown as value.
	Warn(message string, fields *lossless.Text)
	// Error logs what went wrong.
	//
	//   - message: what happened.
	//   - fields: an object whose members are shown behind the message; another
	//     value is shown as value.
	Error(message string, fields *lossless.Text)
}

// Service is the service's key; mounted plugins may inject it.
var Service = cordis.NewService[Log]("log", cordis.PluginInterface(func(v Log, c *cordis.Context) ForPlugins {
	return v.For(c)
}))

// Plugin returns the plugin that provides the service.
func Plugin() *cordis.Plugin {
	return &cordis.Plugin{
		Name: "log",
		Apply: func(c *cordis.Context, _ any) error {
			if _, err := Service.Provide(c, Log(logs{})); err != nil {
				return fmt.Errorf("provide log: %w", err)
			}
			return nil
		},
	}
}

type logs struct{}

func (logs) For(*cordis.Context) ForPlugins { return lines{} }

type lines struct{}

func (lines) Debug(string, *lossless.Text) {}
func (lines) Info(string, *lossless.Text)  {}
func (lines) Warn(string, *lossless.Text)  {}
func (lines) Error(string, *lossless.Text) {}
