package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/serve/terminal"
	"github.com/dsh-go/dsh/trust"
)

// truster is one dsh trust.
type truster struct {
	s                 command.Streams
	yes, list, forget bool
}

func newTrust(s command.Streams) *cobra.Command {
	t := &truster{s: s}
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Look at the files that a project wants to be loaded, and trust them",
		Long: `Look at the files that a project wants to be loaded (.dsh/cordis.yml and what else of
YAML and code is in .dsh, and agent.cordis.yml), and trust them as they are. What they
say runs with your rights: read them first. Whatever changes in them is asked about
again, with a diff. The project is the nearest folder with a .dsh at or above DIR
(default the working folder).

Without a terminal nothing is asked: what there is is printed, and the status is 2;
--yes trusts it.`,
		Example: `  dsh trust
  dsh trust --yes ~/src/site
  dsh trust --list`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Usagef("takes one folder, got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return t.run(cmd.Context(), dir, len(args) == 1)
		},
	}
	cmd.Flags().BoolVar(&t.yes, "yes", false, "trust the files without a question")
	cmd.Flags().BoolVar(&t.list, "list", false, "list the projects of which something is trusted, and do nothing else")
	cmd.Flags().BoolVar(&t.forget, "forget", false, "trust nothing of the project any more")
	return cmd
}

func (t *truster) run(ctx context.Context, dir string, named bool) error {
	store, err := store()
	if err != nil {
		return err
	}
	switch {
	case t.list && (t.yes || t.forget || named):
		return command.Usagef("--list goes with nothing else")
	case t.yes && t.forget:
		return command.Usagef("--yes and --forget exclude each other")
	case t.list:
		return t.projects(store)
	case t.forget:
		return t.forgets(ctx, store, dir)
	}
	root, err := find(dir)
	if err != nil {
		return command.AsUsage(err)
	}
	if root == "" {
		return command.Usagef("there is no project at or above %s: a project is a folder with a .dsh folder", shown(absolute(dir)))
	}
	return t.project(ctx, store, root)
}

// project shows what there is to trust, and trusts the bytes that were shown.
func (t *truster) project(ctx context.Context, store *trust.Store, root string) error {
	files, faults := trust.Read(root)
	t.warn(faults)
	state, err := store.Check(root, files)
	if err != nil && !errors.Is(err, trust.ErrDamaged) {
		return err
	}
	t.warn(err)
	if err == nil && state.Complete() && len(state.Gone) == 0 {
		if len(state.Trusted) == 0 {
			fmt.Fprintf(t.s.Out, "There is nothing to trust in %s.\n", line(root))
		} else {
			fmt.Fprintf(t.s.Out, "Everything of %s is trusted already: %s.\n", line(root), counted(len(state.Trusted), "file"))
		}
		return unread(faults)
	}
	if err := command.PrintText(t.s.Out, fmt.Sprintf("The project %s:\n\n%s", line(root), state.Text())); err != nil {
		return err
	}
	if !state.Complete() {
		if err := t.ask(ctx, state); err != nil {
			return err
		}
	}
	if err := store.Trust(ctx, root, files); err != nil {
		return err
	}
	fmt.Fprintf(t.s.Out, "Trusted: %s of %s.\n", counted(len(files), "file"), line(root))
	return unread(faults)
}

// ask asks whether what was shown is to be trusted. nil means yes.
func (t *truster) ask(ctx context.Context, state trust.State) error {
	if t.yes {
		return nil
	}
	if !terminal.Is(t.s.In) {
		return command.Usagef("nothing was trusted, since nobody can be asked; to trust these files as they are: %s",
			strings.Replace(trust.Command(state.Root), "dsh trust", "dsh trust --yes", 1))
	}
	in := terminal.NewInput(t.s.In)
	n := counted(len(state.New)+len(state.Changed), "file")
	for {
		fmt.Fprintf(t.s.Err, "Trust what is shown, %s? It runs with your rights. [y]es, [n]o: ", n)
		text, err := in.Line(ctx)
		if errors.Is(err, terminal.ErrEnded) {
			err = errors.New("nothing was trusted: no answer came")
		}
		if err != nil {
			return err
		}
		switch strings.ToLower(strings.TrimSpace(text)) {
		case "y", "yes":
			return nil
		case "n", "no", "q":
			return errors.New("nothing was trusted")
		}
	}
}

// projects lists what is trusted.
func (t *truster) projects(store *trust.Store) error {
	list, err := store.Projects()
	for _, p := range list {
		if _, err := fmt.Fprintf(t.s.Out, "%s  %s  %s\n", p.Time.Local().Format("2006-01-02 15:04"), counted(p.Files, "file"), line(p.Root)); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	if len(list) == 0 && err == nil {
		fmt.Fprintln(t.s.Out, "Nothing of any project is trusted.")
	}
	return err
}

// forgets takes the trust in a project back. Its folder may be gone.
func (t *truster) forgets(ctx context.Context, store *trust.Store, dir string) error {
	root, err := find(dir)
	if err != nil || root == "" {
		root = absolute(dir)
	}
	was, err := store.Forget(ctx, root)
	if err != nil {
		return err
	}
	if !was {
		return command.Usagef("nothing of %s was trusted; dsh trust --list names the projects of which something is", line(root))
	}
	fmt.Fprintf(t.s.Out, "Nothing of %s is trusted any more.\n", line(root))
	return nil
}

// warn tells what is wrong, and goes on.
func (t *truster) warn(err error) { warn(t.s.Err, err) }

func warn(w io.Writer, err error) {
	if err == nil {
		return
	}
	for _, one := range strings.Split(err.Error(), "\n") {
		fmt.Fprintf(w, "dsh: %s\n", plain.Line(one, limits.ErrorText))
	}
}

// unread ends the command where files could not be read: they were told already.
func unread(faults error) error {
	if faults == nil {
		return nil
	}
	return &command.StatusError{Status: command.Failure, Err: faults, Told: true}
}

// line makes a path safe to print.
func line(path string) string { return plain.Line(plain.Visible(path), limits.SourceLine) }

func absolute(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}
