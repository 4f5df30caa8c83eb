// Package standard is the one visible list of the plugins that dsh is made of.
// Every command mounts its rows from here; a program of your own with other
// plugins starts from a copy of this package.
//
// The functions make values: nothing starts before a row is mounted. A row
// mounts once; ask again for another runtime.
package standard

import (
	"slices"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/kv"
	"github.com/dsh-go/dsh/service/log"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
)

// Services are the services that plugins may inject, and what they may reach.
type Services struct {
	// Names are those of ServiceNames that are there. The services tools and timer
	// reach nothing outside and are always there.
	Names        []string
	Roots        []string // absolute folders that fs may read and write
	ReadOnly     []string // absolute folders that fs may only read
	PassEnv      []string // variables that commands get although they look like secrets
	AllowPrivate bool     // web fetches private addresses too
	Dir          string   // in which commands start; empty: the first of Roots, else the working directory
	Program      string   // the executable of supervisors; empty: this program
}

// services are the rows of the services, by name.
var services = []struct {
	name   string
	plugin func(Services) *cordis.Plugin
}{
	{"bash", func(s Services) *cordis.Plugin {
		cfg := bash.Config{PassEnv: s.PassEnv, Program: s.Program, Dir: s.Dir}
		if cfg.Dir == "" && len(s.Roots) > 0 {
			cfg.Dir = s.Roots[0]
		}
		return bash.Plugin(cfg)
	}},
	{"fs", func(s Services) *cordis.Plugin {
		return fs.Plugin(fs.Config{Roots: s.Roots, ReadOnly: s.ReadOnly})
	}},
	{"kv", func(Services) *cordis.Plugin { return kv.Plugin(kv.Config{}) }},
	{"log", func(Services) *cordis.Plugin { return log.Plugin() }},
	{"web", func(s Services) *cordis.Plugin { return web.Plugin(web.Config{AllowPrivate: s.AllowPrivate}) }},
}

// ServiceNames are the services that may be chosen, sorted.
func ServiceNames() []string {
	names := make([]string, len(services))
	for i, s := range services {
		names[i] = s.name
	}
	return names
}

// Plugins are the rows of the services that were chosen.
func (s Services) Plugins() []*cordis.Plugin {
	plugins := []*cordis.Plugin{tool.Plugin(), timer.Plugin()}
	for _, row := range services {
		if slices.Contains(s.Names, row.name) {
			plugins = append(plugins, row.plugin(s))
		}
	}
	return plugins
}

// Served are the rows of a runtime that an MCP client drives: the services, and
// the toolset. The front door is a row of whoever serves.
func Served(s Services, toolset selfmod.Config) []*cordis.Plugin {
	return append(s.Plugins(), selfmod.Plugin(toolset))
}
