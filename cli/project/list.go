package project

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/trust"
)

func newList(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List plugin files and rows, and how things are with them",
		Long: `List what the cordis.yml and the folder of plugins of the project, and the person's own,
have: its state, its id, its file or name, and what is to be said of it. The states:

  trusted   of the project, and loaded
  enabled   of the person, and loaded
  new       not trusted yet, and not loaded
  changed   trusted with another content, and not loaded as it is
  disabled  not loaded, because a row says so
  broken    it cannot be loaded`,
		Args: command.NoArgs,
		RunE: func(*cobra.Command, []string) error { return list(s) },
	}
}

func list(s command.Streams) error {
	store, err := store()
	if err != nil {
		return err
	}
	all, err := layers(store)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.Out, 0, 0, 2, ' ', 0)
	n := 0
	var faults error
	for _, l := range all {
		warn(s.Err, l.unread)
		if l.broken {
			fmt.Fprintf(w, "broken\t\t%s\t%s\n", shown(l.rowsPath()), "why is said on the standard error")
			n++
		}
		if l.faults != nil {
			for one := range strings.SplitSeq(l.faults.Error(), "\n") {
				fmt.Fprintln(s.Err, "dsh: "+plain.Cut(plain.Visible(one), limits.ErrorText))
			}
		}
		if l.faults != nil {
			faults = l.faults
		}
		if l.root != "" && l.text != nil && l.faults == nil {
			if state := l.trust(rel(l.root, l.rowsPath()), false); state != "trusted" {
				fmt.Fprintf(w, "%s\t\t%s\t%s\n", state, shown(l.rowsPath()), trust.Command(l.root))
				n++
			}
		}
		for _, f := range l.rows {
			if f.builtin {
				continue
			}
			state, note := l.state(f)
			name := f.name
			if f.path != "" {
				name = shown(f.path)
			}
			row := fmt.Sprintf("%s\t%s\t%s", state, line(f.id), line(name))
			if note != "" {
				row += "\t" + line(note)
			}
			fmt.Fprintln(w, row)
			n++
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	if n == 0 && faults == nil {
		fmt.Fprintln(s.Err, "dsh: there are no plugin files; dsh plugin new NAME writes one to begin with")
	}
	return unread(faults)
}
