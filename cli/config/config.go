// Package config holds the commands that look at cordis.yml documents and run
// nothing of them: what is wrong (check), what they make together (show), where a
// value comes from (explain), and the schema for editors.
//
// No secret is printed: a value that comes from the environment is shown as it is
// written, ${env:NAME}, and one whose name is that of a credential is left out.
package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
)

// Options are what the commands need to know of the program.
type Options struct {
	Catalog loader.Catalog
	// Builtin are the built-in compositions by the commands that start from them.
	Builtin map[string]document.Layer
	// Schema is the JSON Schema of cordis.yml.
	Schema []byte
}

// New returns the command with those below it.
func New(s command.Streams, o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "config",
		SuggestionsMinimumDistance: 2,
		Short:                      "Look at what dsh is composed of: check, show, explain cordis.yml documents",
		Long: `Look at what dsh is composed of, without starting it. The layers are, in this order:
the built-in composition, $DSH_HOME/cordis.yml (~/.dsh), the project's .dsh/cordis.yml
and .dsh/plugins, the files of --config, --set. Later ones override earlier ones by id.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("say which command")
			}
			return command.Unknown(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newCheck(s, o), newShow(s, o), newExplain(s, o), newSchema(s, o))
	return cmd
}

// flags are what all of the commands take.
type flags struct {
	command.LayerOptions
	of, cwd string
}

func (f *flags) add(cmd *cobra.Command) {
	f.LayerOptions.Flags(cmd.Flags())
	cmd.Flags().StringVar(&f.of, "of", "run", "the `command` whose built-in composition it is: run or mcp")
	cmd.Flags().StringVar(&f.cwd, "cwd", ".", "the `folder` whose project it is")
}

// read reads what the flags say. shown is what a variable of the environment is shown
// as; nil: as what it is.
func (f *flags) read(cmd *cobra.Command, o Options, all bool, env func(string) (string, bool)) (*composition.Reading, error) {
	builtin, ok := o.Builtin[f.of]
	if !ok {
		return nil, command.Usagef("--of: there is no built-in composition of %q; there are those of run and mcp", f.of)
	}
	if err := f.Check(); err != nil {
		return nil, err
	}
	cwd, err := command.Folder(f.cwd)
	if err != nil {
		return nil, command.Usagef("--cwd: %w", err)
	}
	return composition.Read(cmd.Context(), f.Sources(builtin), composition.ReadOptions{
		Catalog: o.Catalog, Env: env, Cwd: cwd, All: all || f.TrustsProject(),
	})
}

func newCheck(s command.Streams, o Options) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "check [FILE…]",
		Short: "Say everything that is wrong with the documents",
		Long: `Say everything that is wrong with the documents, each fault with file, line, column, an
excerpt and a caret. FILEs are checked as --config would take them. What of a project
is not trusted is checked, too: nothing of it runs. What plugin files do when they are
loaded is for dsh plugin check. The status is 1 if there are faults.`,
		Example: "  dsh config check\n  dsh config check overlay.yml",
		RunE: func(cmd *cobra.Command, args []string) error {
			f.AddConfig(args...)
			r, err := f.read(cmd, o, true, os.LookupEnv)
			if err != nil {
				return err
			}
			if len(r.Faults) == 0 {
				return command.PrintText(s.Out, "no faults")
			}
			if err := command.PrintText(s.Out, r.Faults.Error()); err != nil {
				return err
			}
			return fmt.Errorf("%s", counted(len(r.Faults), "fault"))
		},
	}
	f.add(cmd)
	return cmd
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func newSchema(s command.Streams, o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of cordis.yml, for editors",
		Long: `Print the JSON Schema of cordis.yml, for editors. Many take it from the first line of a
document:

  # yaml-language-server: $schema=cordis.schema.json`,
		Example: "  dsh config schema > .dsh/cordis.schema.json",
		Args:    command.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return command.PrintText(s.Out, string(o.Schema))
		},
	}
}

// asWritten is an environment whose variables are shown by their names.
func asWritten(name string) (string, bool) {
	if _, ok := os.LookupEnv(name); !ok {
		return "", false
	}
	return "${env:" + name + "}", true
}

// short is a file's name as a person writes it.
func short(name string) string {
	if !filepath.IsAbs(name) {
		return plain.Visible(name)
	}
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, name); err == nil && len(rel) < len(name) && !strings.HasPrefix(rel, "../..") {
			return plain.Visible(rel)
		}
	}
	return plain.Visible(name)
}
