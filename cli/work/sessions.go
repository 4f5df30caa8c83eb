package work

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
)

func newSessions(s command.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        "sessions",
		SuggestionsMinimumDistance: 2,
		Short:                      "List, show, export, fork, rename and remove sessions",
		Long: `List, show, export, fork, rename and remove the sessions that dsh run keeps
below $DSH_HOME (default ~/.dsh). In all of them ` + idForms + `.`,
		Example: `  dsh sessions list
  dsh sessions show latest
  dsh sessions export latest > session.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("say which command: list, show, export, fork, rename or rm")
			}
			return command.Unknown(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	cmd.AddCommand(newList(s), newShow(s), newExport(s), newFork(s), newRename(s), newRemove(s))
	return cmd
}

// withSession finds a session and does something with it.
func withSession(ctx context.Context, name string, do func(store *jsonl.Store, id string) error) error {
	st, err := store()
	if err != nil {
		return err
	}
	cwd, err := here()
	if err != nil {
		return err
	}
	id, err := find(ctx, st, name, cwd)
	if err != nil {
		return err
	}
	return wayOut(ctx, st, id, do(st, id))
}

func newList(s command.Streams) *cobra.Command {
	var all, asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the sessions of this folder, the latest first",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			st, err := store()
			if err != nil {
				return err
			}
			var filter session.Filter
			if !all {
				if filter.Cwd, err = here(); err != nil {
					return err
				}
			}
			list, err := st.List(cmd.Context(), filter)
			if err != nil {
				return err
			}
			if asJSON {
				return listJSON(s.Out, list)
			}
			if len(list) == 0 && !all {
				fmt.Fprintln(s.Err, "dsh: there is no session of this folder; --all lists those of others")
			}
			return listText(s.Out, list, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "list those of all folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a JSON object a line: {"id", "title", "cwd", "created", "updated", "bytes", "parent", "process", "error"}`)
	return cmd
}

func listText(out io.Writer, list []session.Summary, all bool) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, one := range list {
		title := plain.Line(one.Title, limits.Preview)
		if title == "" && one.Meta.ParentSession != "" {
			title = "(forked from " + plain.Name(one.Meta.ParentSession) + ")"
		}
		switch {
		case one.Err != nil:
			title = "(cannot be read: " + plain.Line(one.Err.Error(), limits.ErrorText) + ")"
		case one.Holder != nil:
			title = strings.TrimSpace(running(one.Holder) + " " + title)
		}
		where := ""
		if all {
			where = plain.Line(one.Meta.Cwd, limits.Preview) + "\t"
		}
		fmt.Fprintf(w, "%s\t%s\t%s%s\n", one.Meta.ID, one.Updated.Local().Format("2006-01-02 15:04"), where, title)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// running says who has a session that is in use.
func running(h *session.LockedError) string { return fmt.Sprintf("[running: process %d]", h.PID) }

func listJSON(out io.Writer, list []session.Summary) error {
	for _, one := range list {
		row := struct {
			ID      string    `json:"id"`
			Title   string    `json:"title"`
			Cwd     string    `json:"cwd"`
			Created time.Time `json:"created"`
			Updated time.Time `json:"updated"`
			Bytes   int64     `json:"bytes"`
			Parent  string    `json:"parent,omitempty"`
			Process int       `json:"process,omitempty"` // that has it open
			Error   string    `json:"error,omitempty"`
		}{one.Meta.ID, one.Title, one.Meta.Cwd, time.UnixMilli(one.Meta.CreatedAt).UTC(), one.Updated.UTC(), one.Bytes, one.Meta.ParentSession, 0, ""}
		if one.Holder != nil {
			row.Process = one.Holder.PID
		}
		if one.Err != nil {
			row.Error = one.Err.Error()
		}
		if err := command.PrintJSON(out, row); err != nil {
			return err
		}
	}
	return nil
}

func newExport(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "export SESSION",
		Short: "Write a session as JSON lines: header, events, attachments",
		Args:  sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), args[0], func(st *jsonl.Store, id string) error {
				return st.Export(cmd.Context(), id, s.Out)
			})
		},
	}
}

func newFork(s command.Streams) *cobra.Command {
	at := number{value: -1, rule: "is the number of an event (seq), from 0; dsh sessions show --json shows them"}
	var newID string
	cmd := &cobra.Command{
		Use:   "fork SESSION",
		Short: "Make a new session of the events of another, and print its id",
		Long: `Make a new session of the events of another up to and including one of them,
which must not lie inside of a turn, and print its id. dsh sessions show --json
shows the events with their numbers (seq); a turn ends with a turn/end. Of a damaged
session what comes before the damage can be had in this way. Nothing of the other
changes; dsh run --resume --session ID goes on with the new one.`,
		Example: `  dsh sessions fork latest
  dsh sessions fork latest --at 41 --session second-try`,
		Args: sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			if newID == "" && cmd.Flags().Changed("session") {
				return command.Usagef("--session: the id is empty")
			}
			id := newID
			if id == "" {
				id = freshID()
			}
			if err := checkID(id); err != nil {
				return err
			}
			return withSession(cmd.Context(), args[0], func(st *jsonl.Store, from string) error {
				meta, err := st.Fork(cmd.Context(), from, at.value, id)
				if errors.Is(err, session.ErrOpenTurn) || errors.Is(err, session.ErrBoundary) || errors.Is(err, session.ErrExists) {
					return command.AsUsage(err)
				}
				if err != nil {
					return err
				}
				return command.PrintText(s.Out, meta.ID)
			})
		},
	}
	cmd.Flags().Var(&at, "at", "the last `event` of the new session, by its seq (default all of them)")
	cmd.Flags().Lookup("at").DefValue = "" // help says it in words
	cmd.Flags().StringVar(&newID, "session", "", "the `id` of the new session (default a new one)")
	return cmd
}

// checkID refuses what is no id of a new session.
func checkID(id string) error {
	if id == latest {
		return command.Usagef("--session: %q stands for the latest session; choose another id", latest)
	}
	if err := session.CheckID(id); err != nil {
		return command.Usagef("--session: %w", err)
	}
	return nil
}

// freshID is the id of a new session.
func freshID() string { return strings.ToLower(rand.Text()[:10]) }

func newRename(command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "rename SESSION TITLE",
		Short: "Give a session another title",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return command.Usagef("takes a session and a title (in quotes), got %s", count(len(args), "argument"))
			}
			if session.CleanTitle(args[1]) == "" {
				return command.Usagef("the title is empty")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), args[0], func(st *jsonl.Store, id string) error {
				return session.Rename(cmd.Context(), st, id, args[1])
			})
		},
	}
}

func newRemove(command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "rm SESSION",
		Short: "Remove a session with its attachments",
		Args:  sessionArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			return withSession(cmd.Context(), args[0], func(st *jsonl.Store, id string) error {
				return st.Delete(cmd.Context(), id)
			})
		},
	}
}
