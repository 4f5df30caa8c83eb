package project

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	fsservice "github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/trust"
)

//go:embed new.ts
var templateTS string

//go:embed new.js
var templateJS string

// goodName is what a plugin file may be named by dsh plugin new.
var goodName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// nameMax leaves room for a tool's name that begins with it.
const nameMax = 50

func newNew(s command.Streams) *cobra.Command {
	var ts, js, user bool
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write a new plugin file to begin with",
		Long: `Write a new plugin file to begin with: .dsh/plugins/NAME.ts of the project, or of the
working folder where there is none; with --user $DSH_HOME/plugins/NAME.ts, for every
project. It is trusted as it is written. What is there is never overwritten.`,
		Example: `  dsh plugin new word-count
  dsh plugin new greet --js --user`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Usagef("takes one name, got %d", len(args))
			}
			if len(args[0]) > nameMax || !goodName.MatchString(args[0]) {
				return command.Usagef("%q is no good name: lower-case letters and digits, with - between words, at most %d characters, such as word-count", plain.Name(args[0]), nameMax)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if ts && js {
				return command.Usagef("--ts and --js exclude each other")
			}
			ext, text := ".ts", templateTS
			if js {
				ext, text = ".js", templateJS
			}
			return create(cmd.Context(), s, args[0], ext, text, user)
		},
	}
	cmd.Flags().BoolVar(&ts, "ts", false, "TypeScript (the default)")
	cmd.Flags().BoolVar(&js, "js", false, "JavaScript")
	cmd.Flags().BoolVar(&user, "user", false, "for every project")
	return cmd
}

// create writes the file, and trusts it where it is of a project.
func create(ctx context.Context, s command.Streams, name, ext, text string, user bool) error {
	root, dir, err := newPlace(user)
	if err != nil {
		return err
	}
	if err := free(dir, name); err != nil {
		return err
	}
	mode := fs.FileMode(0o755)
	if user {
		mode = 0o700 // as everything in dsh's own folder
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return fmt.Errorf("write plugin: %w", err)
	}
	// What is tested is what is written: through a link it would be somewhere else.
	if real, err := filepath.EvalSymlinks(dir); err != nil || real != dir {
		return fmt.Errorf("write plugin: %s is a link; plugin files are not loaded through one", shown(dir))
	}
	content := []byte(strings.NewReplacer("__NAME__", name, "__TOOL__", strings.ReplaceAll(name, "-", "_")).Replace(text))
	path := filepath.Join(dir, name+ext)
	if err := atomicfile.Create(path, content, 0o644); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return command.Usagef("%s is there already, and was not changed", shown(path))
		}
		return fmt.Errorf("write plugin: %w", err)
	}
	fmt.Fprintf(s.Out, "%s\n", shown(path))
	if root != "" {
		store, err := store()
		if err == nil {
			err = store.Add(ctx, root, trust.File{Path: dshName + "/" + pluginsName + "/" + name + ext, Content: content})
		}
		if err != nil {
			return fmt.Errorf("%w; the file is written, and has to be trusted: %s", err, trust.Command(root))
		}
	}
	fmt.Fprintf(s.Err, "dsh: edit it, then say what it registers: dsh plugin check %s\n", name)
	return nil
}

// newPlace is the project and the folder that a new plugin goes to. root is "" for the
// person's own.
func newPlace(user bool) (root, dir string, err error) {
	home := fsservice.Home()
	if home == "" {
		return "", "", errNoHome
	}
	if user {
		home, err = filepath.Abs(home)
		if err == nil {
			home = fsservice.Canonical(home)
		}
		return "", filepath.Join(home, pluginsName), err
	}
	root, err = here()
	if err == nil && root == "" {
		root, err = os.Getwd()
	}
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return "", "", fmt.Errorf("find the working folder: %w", err)
	}
	dir = filepath.Join(root, dshName)
	if own, err := os.Stat(home); err == nil {
		if info, err := os.Stat(dir); err == nil && os.SameFile(own, info) {
			return "", "", command.Usagef("%s is dsh's own folder: give --user for a plugin of every project, or go to the folder of one", shown(dir))
		}
	}
	return root, filepath.Join(dir, pluginsName), nil
}

// free refuses a name that a plugin has, in whatever form.
func free(dir, name string) error {
	for _, taken := range []string{name + ".ts", name + ".js", name} {
		path := filepath.Join(dir, taken)
		if _, err := os.Lstat(path); err == nil {
			return command.Usagef("%s is there already, and was not changed; choose another name", shown(path))
		} else if errors.Is(err, syscall.ENOTDIR) {
			return command.Usagef("%s, or what it is in, is a file, and has to be a folder: move it away", shown(dir))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write plugin: %s", plain.Line(err.Error(), limits.ErrorText))
		}
	}
	return nil
}
