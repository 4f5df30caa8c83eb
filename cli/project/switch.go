package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	fsservice "github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/trust"
)

// newSwitch is dsh plugin enable, or disable.
func newSwitch(s command.Streams, on bool) *cobra.Command {
	var user bool
	word, short := "disable", "Have a plugin file, or a row, not loaded"
	long := `Have a plugin file, or a row, not loaded: its row in cordis.yml gets disabled: true; a
file without a row gets one. Comments, order and blank lines of the file stay.`
	if on {
		word, short = "enable", "Have what was disabled loaded again"
		long = `Have a plugin file, or a row, that was disabled loaded again: disabled is taken from its
row in cordis.yml. Comments, order and blank lines of the file stay.`
	}
	cmd := &cobra.Command{
		Use:   word + " NAME",
		Short: short,
		Long: long + `

NAME is what dsh plugin list shows: an id, or a file. The project goes first; --user
means the person's own cordis.yml alone. The id of a row of the built-in composition, as
dsh config show has it, is switched there. Where dsh runs it is live at once.`,
		Example: "  dsh plugin " + word + " word-count\n  dsh plugin " + word + " .dsh/plugins/word-count.ts",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return command.Usagef("takes one name of a plugin file or a row, got %d; dsh plugin list shows them", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return turn(cmd.Context(), s, args[0], on, user)
		},
	}
	cmd.Flags().BoolVar(&user, "user", false, "of the person's own, not of the project")
	return cmd
}

// turn enables or disables what a person means by arg.
func turn(ctx context.Context, s command.Streams, arg string, on, user bool) error {
	store, err := store()
	if err != nil {
		return err
	}
	home := fsservice.Home()
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("edit rows: %w", err)
	}
	release, err := atomicfile.Lock(ctx, filepath.Join(home, "edit.lock"), limits.TrustLock)
	if err != nil {
		return fmt.Errorf("edit rows: %w", err)
	}
	defer release()
	all, err := layers(store)
	if err != nil {
		return err
	}
	l, f, err := pick(all, arg, user)
	if err != nil {
		return err
	}
	word := "disabled"
	if on {
		word = "enabled"
	}
	if f.disabled != on && f.broken == "" {
		fmt.Fprintf(s.Out, "%s is %s already\n", line(f.id), word)
		return nil
	}
	text, err := edited(l, f, on)
	if err != nil {
		return fmt.Errorf("edit %s: %w", shown(l.rowsPath()), err)
	}
	if bytes.Equal(text, l.text) {
		fmt.Fprintf(s.Out, "%s is %s already\n", line(f.id), word)
		return nil
	}
	known, err := l.write(ctx, store, text)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.Out, "%s: %s (%s)\n", word, line(f.id), shown(l.rowsPath()))
	if !known {
		fmt.Fprintf(s.Err, "dsh: %s was not trusted before, so it is not now: %s\n", shown(l.rowsPath()), trust.Command(l.root))
	}
	return nil
}

// pick finds the one that is meant.
func pick(all []*layer, arg string, user bool) (*layer, found, error) {
	var names []string
	for _, l := range all {
		if user && l.root != "" {
			continue
		}
		if l.faults != nil {
			return nil, found{}, fmt.Errorf("%s has to be mended first: %w", shown(l.rowsPath()), l.faults)
		}
		var hits []found
		for _, f := range l.rows {
			names = append(names, f.id)
			if f.builtin && (l.root != "" || f.id != arg) {
				continue // it is switched in the person's own rows, by its id
			}
			if f.matches(arg) {
				hits = append(hits, f)
			}
		}
		if len(hits) > 1 {
			return nil, found{}, command.Usagef("%q may be %s, or %s; name it as dsh plugin list shows it", plain.Name(arg), line(hits[0].id), line(hits[1].id))
		}
		if len(hits) == 1 && hits[0].included != "" {
			return nil, found{}, command.Usagef("the row %s is in %s, which is included; edit it there, or by a patch of the row that includes it", line(hits[0].id), line(hits[0].included))
		}
		if len(hits) == 1 {
			return l, hits[0], nil
		}
	}
	near := plain.Nearest(arg, names)
	if near != "" {
		near = fmt.Sprintf("; did you mean %q", plain.Name(near))
	}
	return nil, found{}, command.Usagef("there is no plugin file and no row %q%s; dsh plugin list shows what there is", plain.Name(arg), near)
}

// edited is the text of the rows as it should be.
func edited(l *layer, f found, on bool) ([]byte, error) {
	switch {
	case f.row:
		return document.SetDisabled(l.text, f.id, !on)
	case on:
		return l.text, nil // it is loaded unless a row says that it is not
	}
	row := document.Edited{ID: f.id, Name: f.name, Disabled: true}
	if f.builtin {
		row.Name = "" // it overrides
	}
	return document.Insert(l.text, row)
}

// write puts the text in its place, if that is as it was read, and trusts it where
// what was there was trusted. It says whether the text will be loaded.
func (l *layer) write(ctx context.Context, store *trust.Store, text []byte) (bool, error) {
	path, mode := l.rowsPath(), fs.FileMode(0o644)
	now, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && l.text == nil:
	case err != nil:
		return false, fmt.Errorf("edit rows: %w", err)
	case l.text == nil || !bytes.Equal(now, l.text):
		return false, fmt.Errorf("edit rows: %s was changed at this moment; try again", shown(path))
	default:
		if info, err := os.Stat(path); err == nil {
			mode = info.Mode().Perm()
		}
	}
	if err := atomicfile.Write(path, text, mode); err != nil {
		return false, err
	}
	if l.root == "" {
		return true, nil
	}
	var before *string
	if l.text != nil {
		was := string(l.text)
		before = &was
	}
	return store.Wrote(ctx, path, before, string(text))
}
