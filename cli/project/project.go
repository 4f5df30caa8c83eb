// Package project holds the commands for the files of a project and for a person's
// own plugin files: dsh trust, and dsh plugin with new, check, list, enable and
// disable. The work is done by trust, loader/document and selfmod/files; here are the
// words.
//
// A project is the nearest folder with a .dsh at or above the working folder. What a
// person writes by these commands is trusted as they wrote it; what was there before
// and is not trusted stays so. Every file is written whole. Nothing here runs the code
// of a plugin but check, and that with every act refused.
package project

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/trust"
)

// The names of what plugins are loaded from.
const (
	dshName     = ".dsh"
	pluginsName = "plugins"
	rowsName    = "cordis.yml"
)

// Commands are the commands of this package.
func Commands(s command.Streams) []*cobra.Command {
	return []*cobra.Command{newTrust(s), newPlugin(s)}
}

func newPlugin(s command.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "plugin",
		SuggestionsMinimumDistance: 2,
		Short:                      "Make, check, list, enable and disable plugin files",
		Long: `Make, check, list, enable and disable plugin files: JavaScript or TypeScript in
.dsh/plugins of a project, or in $DSH_HOME/plugins (default ~/.dsh/plugins) for every
project. A file that is there is loaded, unless a row of cordis.yml disables it; one of
a project once it is trusted.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("say which command: new, check, list, enable or disable")
			}
			return command.Unknown(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newNew(s), newCheck(s), newList(s), newSwitch(s, true), newSwitch(s, false))
	return cmd
}

// errNoHome says that there is no place for what dsh keeps.
var errNoHome = errors.New("there is no home folder for what dsh keeps: set DSH_HOME to a folder")

// store is what is trusted.
func store() (*trust.Store, error) {
	home := fs.Home()
	if home == "" {
		return nil, errNoHome
	}
	if info, err := os.Stat(home); err == nil && !info.IsDir() {
		return nil, command.Usagef("DSH_HOME: %s is no folder; name one, or a path where one can be made", shown(absolute(home)))
	}
	return trust.Open(home)
}

// find is the project of a folder; "" where there is none.
func find(dir string) (string, error) {
	dir, err := command.Folder(dir)
	if err != nil {
		return "", err
	}
	root, _ := trust.Find(dir, fs.Home())
	return root, nil
}

// here is the project of the working folder; "" where there is none.
func here() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the working folder: %w", err)
	}
	return find(cwd)
}

// shown is a path as it is shown: relative to the working folder where it is below it.
func shown(path string) string {
	if cwd, err := os.Getwd(); err == nil {
		if real, err := filepath.EvalSymlinks(cwd); err == nil {
			cwd = real
		}
		if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
	}
	return plain.Line(plain.Visible(path), limits.SourceLine)
}

// counted is a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}
