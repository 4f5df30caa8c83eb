// Package workspace tells a session about the place it works in: a plugin for the
// plane of an agent, which adds two parts to the runtime context of its scope.
//
// workspace:environment has the working folder, the platform and the date: the day
// only, so that what was told stays true while a provider's cache of it lives.
//
// workspace:agents has the AGENTS.md files from the outermost folder down to the
// working folder. The outermost is the nearest folder up that has a .git, file or
// folder, else the outermost that the roots of the service fs reach. Everything is
// read through that service, so nothing outside of the roots is, and its policy
// applies.
//
// # What is shown of a file
//
// Only regular files of UTF-8 text are shown, links to them too, with what they
// are. Of one file with two names, that is shown once. At most
// limits.WorkspaceFile bytes of a file are, and limits.WorkspaceAll of all: the
// files that are nearest to the working folder come first into the room that there
// is. What is cut, or cannot be shown, is said where it would stand, with the
// reason; it is no error of the session.
//
// # When it is read
//
// Each time that the context is made, which is before each step, the names are
// looked up; a file is read only if it changed since. The parts may be asked from
// several goroutines; nothing is started.
package workspace

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/service/fs"
)

// What models read.
var (
	//go:embed environment.md
	environmentText string
	//go:embed agents.md
	agentsText string
)

// Config says which place it is.
type Config struct {
	// Cwd is the working folder; "" is the first root of the service fs.
	Cwd string
	// Platform is what is told of the machine; "" is that of the program: linux/amd64.
	Platform string
	// Now is the clock; nil is time.Now. The date is of its time's zone.
	Now func() time.Time
}

// Plugin returns the plugin. It injects prompt and fs.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "workspace",
		Inject: cordis.Require(prompt.Service.Name(), fs.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			parts, err := prompt.Service.Use(c)
			if err != nil {
				return err
			}
			files, err := fs.Service.Use(c)
			if err != nil {
				return err
			}
			w := newWorkspace(c, cfg, files)
			if _, err := parts.Context(c, prompt.Section{Name: "workspace:environment", Order: -50, Func: w.environment}); err != nil {
				return err
			}
			_, err = parts.Context(c, prompt.Section{Name: "workspace:agents", Order: -40, Func: w.agents})
			return err
		},
	}
}

func newWorkspace(c *cordis.Context, cfg Config, files fs.FS) *workspace {
	if roots := files.Roots(); cfg.Cwd == "" && len(roots) > 0 {
		cfg.Cwd = roots[0].Path
	}
	if cfg.Platform == "" {
		cfg.Platform = runtime.GOOS + "/" + runtime.GOARCH
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &workspace{cfg: cfg, fs: files.For(c), roots: files.Roots()}
}

// environment is the context workspace:environment.
func (w *workspace) environment(context.Context, prompt.View) (string, error) {
	cwd := "none"
	if w.cfg.Cwd != "" {
		cwd = fmt.Sprintf("%q", w.cfg.Cwd)
		if plain := strings.Trim(cwd, `"`); plain == w.cfg.Cwd {
			cwd = plain
		}
	}
	return strings.NewReplacer("{{cwd}}", cwd, "{{platform}}", w.cfg.Platform, "{{date}}", w.cfg.Now().Format(time.DateOnly)).
		Replace(environmentText), nil
}
