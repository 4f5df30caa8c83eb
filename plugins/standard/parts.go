package standard

import (
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// serviceNames are the services that a person may leave out.
var serviceNames = []string{"bash", "fs", "kv", "log", "web"}

// ServiceNames are the services that may be chosen, sorted. The services tools and
// timer reach nothing outside and are always there.
func ServiceNames() []string { return append([]string(nil), serviceNames...) }

// Injectable are the services that plugins may inject, with default settings: for a
// runtime that is made for one plugin file and composed of no document.
func Injectable(g Given) []*cordis.Plugin {
	return parts(g, append([]string{"tools", "timer"}, serviceNames...)...)
}

// Shown are all tools of models, and what they inject, with default settings: for a
// runtime that only shows what is in a log.
func Shown(g Given) []*cordis.Plugin {
	return append(Injectable(g), parts(g, "tasks", "prompt", "tool-files", "tool-shell", "tool-web", "tool-todo", "tool-ask", "tool-cordis")...)
}

// parts are plugins with default settings, which are always right: the tests look at
// all of them.
func parts(g Given, names ...string) []*cordis.Plugin {
	c := Catalog(g)
	plugins := make([]*cordis.Plugin, len(names))
	for i, name := range names {
		spec, ok := c.Lookup(name)
		if !ok {
			panic(fmt.Sprintf("standard: there is no plugin %s", name))
		}
		var config any
		if spec.Settings != nil {
			config, _ = spec.Settings.Check(lossless.Value{})
		}
		var err error
		if plugins[i], err = spec.New(config); err != nil {
			panic(fmt.Sprintf("standard: make %s: %v", name, err))
		}
	}
	return plugins
}
