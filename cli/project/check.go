package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/selfmod/files"
)

func newCheck(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "check [NAME…]",
		Short: "Say what plugin files would register, without registering it",
		Long: `Say what plugin files would register: tools with their schemas, services, listeners,
timers, and what Config takes. NAME is what dsh plugin list shows, or any path of a
file or of a folder with an index.ts or index.js; without one, all that are listed are
checked.

Each file is loaded in a worker process and mounted on a runtime of its own, with the
services of dsh mcp, which refuse every act meanwhile: nothing is read, written, run or
fetched. A service that another plugin would provide is there, and does nothing. Then
all of it is disposed. Where tsc is on PATH the types are checked too.`,
		Example: `  dsh plugin check
  dsh plugin check word-count
  dsh plugin check ./drafts/new.ts`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.Context(), s, args)
		},
	}
}

// target is a file that is to be checked.
type target struct {
	path   string
	config any // of its row; nil: none
}

func check(ctx context.Context, s command.Streams, args []string) error {
	targets, err := targets(args)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		fmt.Fprintln(s.Err, "dsh: there are no plugin files to check; dsh plugin new NAME writes one to begin with")
		return nil
	}
	bad := 0
	for i, t := range targets {
		if i > 0 {
			fmt.Fprintln(s.Out)
		}
		if err := checkOne(ctx, s, t); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			bad++
			fmt.Fprintf(s.Out, "  broken: %s\n", strings.ReplaceAll(plain.Visible(plain.Cut(err.Error(), limits.ErrorText)), "\n", "\n  "))
		}
	}
	if bad > 0 {
		return fmt.Errorf("%d of %s would not load", bad, counted(len(targets), "plugin file"))
	}
	return nil
}

// targets are the files that are meant by the arguments.
func targets(args []string) ([]target, error) {
	store, err := store()
	if err != nil {
		return nil, err
	}
	all, err := layers(store)
	if err != nil {
		return nil, err
	}
	var list []target
	if len(args) == 0 {
		for _, l := range all {
			for _, f := range l.rows {
				if f.path != "" {
					list = append(list, target{f.path, f.config})
				}
			}
		}
	}
	for _, arg := range args {
		t, err := targetOf(all, arg)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	if len(list) > limits.PluginFiles {
		return nil, command.Usagef("%d plugin files are more than the limit of %d; name some", len(list), limits.PluginFiles)
	}
	return list, nil
}

func targetOf(all []*layer, arg string) (target, error) {
	var names []string
	for _, l := range all {
		for _, f := range l.rows {
			if f.path == "" {
				continue
			}
			if f.matches(arg) {
				return target{f.path, f.config}, nil
			}
			names = append(names, f.id)
		}
	}
	if path, err := filepath.Abs(arg); err == nil {
		if _, err := filepath.EvalSymlinks(path); err == nil {
			return target{path: path}, nil
		}
	}
	near := plain.Nearest(arg, names)
	if near != "" {
		near = fmt.Sprintf("; did you mean %q", plain.Name(near))
	}
	return target{}, command.Usagef("there is no plugin file %q%s; dsh plugin list shows what there is", plain.Name(arg), near)
}

// rowConfig is the config of a row, as a plugin file takes it.
func rowConfig(r document.Row) any {
	if r.Config.IsNull() {
		return nil
	}
	return r.Config
}

// checkTime bounds the check of one file, beyond the limits of its engine.
const checkTime = 2 * time.Minute

// checkOne checks one file; what it prints ends at the first thing that is wrong.
func checkOne(ctx context.Context, s command.Streams, t target) (err error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	name := shown(t.path)
	fmt.Fprintf(s.Out, "%s\n", name)
	f, err := files.Read(t.path)
	if err != nil {
		return err
	}
	f.Path = name
	types := checkTypes(ctx, f)
	err = dryMount(ctx, s, f, t.config)
	switch {
	case types.skipped != "":
		fmt.Fprintf(s.Out, "  types: not checked: %s\n", types.skipped)
	case types.err != nil:
		fmt.Fprintf(s.Out, "  types: %s\n", types.err)
		err = errors.Join(err, errors.New("its types do not fit"))
	default:
		fmt.Fprintln(s.Out, "  types: checked by tsc")
	}
	return err
}

// section prints a heading with its lines, or that there is nothing.
func section(out io.Writer, heading string, lines []string) {
	if len(lines) == 0 {
		fmt.Fprintf(out, "  %s: none\n", heading)
		return
	}
	fmt.Fprintf(out, "  %s:\n", heading)
	for _, l := range lines {
		fmt.Fprintf(out, "    %s\n", l)
	}
}
