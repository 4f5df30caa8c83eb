// Package work holds the commands that do work for a person: run, and what
// belongs to it: sessions, models, auth. It wires the loop, the store, the
// providers and the terminal together; none of them knows another.
//
// Sessions are kept below $DSH_HOME (default ~/.dsh). A key is looked up for each
// request and is in no session, no output and no child's environment.
package work

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
)

// The exit statuses of dsh run beside those of every command.
const (
	exitDenied      = 3
	exitInterrupted = 4
)

// Commands are the commands of this package.
func Commands(s command.Streams) []*cobra.Command {
	return []*cobra.Command{newDemo(s), newRun(s), newSessions(s), newModels(s), newAuth(s)}
}

// errNoHome says that there is no place for sessions and keys.
var errNoHome = errors.New("there is no home folder to keep sessions and keys in: set DSH_HOME to a folder")

// store is where sessions are kept.
func store() (*jsonl.Store, error) {
	home := fs.Home()
	if home == "" {
		return nil, errNoHome
	}
	s, err := jsonl.New(filepath.Join(home, "sessions"))
	if err != nil {
		return nil, fmt.Errorf("open sessions: %w", err)
	}
	return s, nil
}

// keyStore is where keys are found.
func keyStore() keys.Store { return keys.Store{Home: fs.Home()} }

// folder is the absolute name of a folder, with links resolved, so that a
// session's folder compares.
func folder(name string) (string, error) {
	abs, err := command.Folder(name)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return "", fmt.Errorf("find folder: %w", err)
	}
	return real, nil
}

// latest stands for the latest session of a folder.
const latest = "latest"

// idForms says how a session may be named.
const idForms = "a session is named by its id, by a beginning of it that no other has, or by the word latest for the latest one of this folder"

// find is the id of the session that a person means.
func find(ctx context.Context, s session.Store, name, cwd string) (string, error) {
	if name == latest {
		for _, limit := range []int{1, 0} { // all of them only where the first is damaged
			list, err := s.List(ctx, session.Filter{Cwd: cwd, Limit: limit})
			if err != nil {
				return "", err
			}
			for _, one := range list {
				if one.Meta.Cwd == cwd && !errors.Is(one.Err, jsonl.ErrCopied) {
					return one.Meta.ID, nil
				}
			}
		}
		return "", command.Usagef("there is no session of the folder %s; dsh sessions list --all shows those of others", cwd)
	}
	if name == "" {
		return "", command.Usagef("the id is empty: %s", idForms)
	}
	list, err := s.List(ctx, session.Filter{})
	if err != nil {
		return "", err
	}
	var near []string
	for _, one := range list {
		if one.Meta.ID == name {
			return name, nil
		}
		if strings.HasPrefix(one.Meta.ID, name) {
			near = append(near, one.Meta.ID)
		}
	}
	switch len(near) {
	case 1:
		return near[0], nil
	case 0:
		return "", command.Usagef("there is no session %s; dsh sessions list --all shows what there is (%s)", quoted(name), idForms)
	}
	slices.Sort(near)
	return "", command.Usagef("%s is the beginning of %d sessions: %s", quoted(name), len(near), strings.Join(near[:min(len(near), 10)], ", "))
}

// quoted shows what a person wrote.
func quoted(text string) string { return `"` + plain.Line(plain.Visible(text), limits.Name) + `"` }

// wayOut adds to the error of a damaged session what can be done.
func wayOut(ctx context.Context, s *jsonl.Store, id string, err error) error {
	if !errors.Is(err, session.ErrCorrupt) {
		return err
	}
	if _, read := s.Read(ctx, id); !errors.Is(read, session.ErrCorrupt) {
		return err // an attachment alone
	}
	if at := s.Sound(ctx, id); at >= 0 {
		return fmt.Errorf("%w; what comes before that is whole: dsh sessions fork %s --at %d makes a session of it", err, id, at)
	}
	return fmt.Errorf("%w; dsh sessions rm %s removes it", err, id)
}

// here is the folder that commands on sessions look at.
func here() (string, error) { return folder(".") }

// sessionArg takes one argument, the session.
func sessionArg(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return command.Usagef("takes one session, got %s: %s", count(len(args), "argument"), idForms)
	}
	return nil
}
