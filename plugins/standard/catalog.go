// Package standard is the one visible list of the Go plugins that dsh is made of, and
// of the compositions that its commands start from.
//
// [Catalog] has every plugin that a row of a cordis.yml document can name: what it is
// for, on which plane it lives, its settings, and how it is made of them and of what a
// program gives. [Run], [MCP] and [Demo] are the built-in compositions: cordis.yml
// documents as everybody writes them. A program of your own with other plugins starts
// from a copy of this package.
//
// The functions make values: nothing starts before a plugin is mounted, and each
// mounts once. Everything may be called from any goroutine.
package standard

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/settings"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/toolbox/ask"
)

// Given is what a program gives to the plugins beside their settings. Every field may
// be left out: a plugin that cannot do without one says so when it starts.
type Given struct {
	// Program is the executable of workers and supervisors; "" is this program.
	Program string
	// Cwd is the absolute folder that dsh works in: commands start there, relative paths
	// of the file tools begin there, the prompt names it.
	Cwd string
	// Roots are the folders that fs may read and write where its settings name none.
	Roots []string

	Models    *llm.Registry
	Sessions  session.Store
	Questions ask.Asker // who answers ask_user_question; nil: nobody

	// Allow and Deny are rules beside those of the settings, of sessions and of what
	// belongs to none.
	Allow, Deny []permission.Rule

	// What follows is of one agent.

	// Session gets what is decided about permissions, and says what was remembered.
	Session *session.Session
	// Mode is what the person said of this session, or the session of itself; it beats
	// the mode of the settings. "": neither did.
	Mode permission.Mode
	// Ask asks a person for permission; nil: there is nobody.
	Ask permission.Asker
	// Trusted is told what a person allowed of changes of what plugins are loaded from;
	// see [permission.Config].
	Trusted func(ctx context.Context, path string, before *string, content string)
	// Loads says which files beside those of projects are loaded; see
	// [permission.Config].
	Loads func(path string) bool
	// Toolset is what of the toolset is no setting: Audit, Console, Memory, Hidden,
	// Worker. An empty Worker is Program.
	Toolset selfmod.Config
}

// Catalog has every Go plugin that a row of a cordis.yml document can name, of both
// planes. It makes its plugins of what is given: for an agent of its own, take a
// catalog with what is given to that agent.
func Catalog(g Given) loader.Catalog { return catalog{g} }

type catalog struct{ given Given }

var _ loader.Catalog = catalog{}

// Lookup returns a plugin's description.
func (c catalog) Lookup(name string) (loader.Spec, bool) {
	i, ok := slices.BinarySearchFunc(table, name, func(r row, name string) int { return strings.Compare(r.name, name) })
	if !ok {
		return loader.Spec{}, false
	}
	r := table[i]
	return loader.Spec{
		Name: r.name, Doc: r.doc, Plane: r.plane, Settings: r.settings, Static: r.static, PersonOnly: r.personOnly,
		New: func(config any) (*cordis.Plugin, error) { return r.plugin(c.given, config) },
	}, true
}

// Names are the names of all plugins, sorted.
func (catalog) Names() []string {
	names := make([]string, len(table))
	for i, r := range table {
		names[i] = r.name
	}
	return names
}

// Example is a row that names a plugin, as YAML in one line; "" for a name that is none.
func Example(name string) string {
	i, ok := slices.BinarySearchFunc(table, name, func(r row, name string) int { return strings.Compare(r.name, name) })
	if !ok {
		return ""
	}
	id := name
	switch name { // as the composition of dsh run has them
	case "permission":
		id = "policy"
	case "session-permission":
		id = "permission"
	}
	if table[i].example == "" {
		return "{id: " + id + ", name: " + name + "}"
	}
	return "{id: " + id + ", name: " + name + ", config: {" + table[i].example + "}}"
}

// row is a row of the table.
type row struct {
	name       string
	example    string // of a config, without braces
	doc        string
	plane      loader.Plane
	settings   *settings.Type // nil: it takes no config
	static     bool
	personOnly bool
	plugin     func(g Given, config any) (*cordis.Plugin, error)
}

// with is the part of a row whose plugin has settings of the type S.
func with[S any](r row, plugin func(Given, S) (*cordis.Plugin, error)) row {
	r.settings = settings.For[S]()
	r.plugin = func(g Given, config any) (*cordis.Plugin, error) {
		s, ok := config.(S)
		if !ok {
			return nil, fmt.Errorf("make %s: its settings are %T", r.name, config)
		}
		return plugin(g, s)
	}
	return r
}

// bare is the part of a row whose plugin takes no config.
func bare(r row, plugin func(Given) *cordis.Plugin) row {
	r.plugin = func(g Given, _ any) (*cordis.Plugin, error) { return plugin(g), nil }
	return r
}
