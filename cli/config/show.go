package config

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/lossless"
)

func newShow(s command.Streams, o Options) *cobra.Command {
	f := &flags{}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [ID]",
		Short: "Show the rows that the documents make together",
		Long: `Show the rows that the documents make together, or one of them: what each is, and the
layer, file and line that it comes from. Defaults that no document gives are not shown
(docs/reference/config.md has them).`,
		Args: atMostOne("id of a row"),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := f.read(cmd, o, false, asWritten)
			if err != nil {
				return err
			}
			rows := r.Rows
			if len(args) == 1 {
				row, err := rowOf(r, args[0])
				if err != nil {
					return err
				}
				rows = []document.Row{row}
			}
			if asJSON {
				return command.PrintJSON(s.Out, map[string]any{"rows": jsonRows(rows)})
			}
			var b strings.Builder
			writeRows(&b, rows, "")
			if err := command.PrintText(s.Out, b.String()); err != nil {
				return err
			}
			if r.Notice != "" {
				fmt.Fprintln(s.Err, "dsh: "+r.Notice)
			}
			if len(r.Faults) > 0 {
				fmt.Fprintf(s.Err, "dsh: %s; dsh config check tells them\n", counted(len(r.Faults), "fault"))
			}
			return nil
		},
	}
	f.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a JSON object: {"rows": […]}`)
	return cmd
}

func atMostOne(what string) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return command.Usagef("takes one %s, got %d", what, len(args))
		}
		return nil
	}
}

func rowOf(r *composition.Reading, id string) (document.Row, error) {
	if id == "" {
		return document.Row{}, command.Usagef("name a row; dsh config show lists them")
	}
	if row, ok := r.Find(id); ok {
		return row, nil
	}
	text := fmt.Sprintf("there is no row %q", plain.Name(id))
	if near := plain.Nearest(id, ids(r.Rows)); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return document.Row{}, command.Usagef("%s; dsh config show lists them", text)
}

func ids(rows []document.Row) (all []string) {
	for _, row := range rows {
		all = append(append(all, row.ID), ids(row.Children)...)
	}
	return all
}

// writeRows writes a line for each row, and one for each member of its config.
func writeRows(b *strings.Builder, rows []document.Row, indent string) {
	for _, row := range rows {
		at := row.At()
		state := ""
		if row.Disabled {
			state = ", disabled"
		}
		fmt.Fprintf(b, "%s%s: %s%s (%s:%d)\n", indent, plain.Name(row.ID), plain.Name(row.Name), state, short(at.Layer.Name), at.Line)
		if row.Group {
			writeRows(b, row.Children, indent+"  ")
			continue
		}
		for key, v := range row.Config.Members() {
			fmt.Fprintf(b, "%s  %s: %s\n", indent, plain.Name(key), plain.Line(hidden(key, v).String(), limits.Preview))
		}
	}
}

// secret stands for what is not shown.
const secret = "(not shown)"

// hidden is a value without what its name says is a credential.
func hidden(name string, v lossless.Value) lossless.Value {
	if document.Credential(snake(name)) && v.Kind() == lossless.String && !strings.HasPrefix(v.Str(), "${env:") {
		return lossless.Str(secret)
	}
	switch v.Kind() {
	case lossless.Object:
		members := make([]lossless.Member, 0, v.Len())
		for key, inner := range v.Members() {
			members = append(members, lossless.M(key, hidden(key, inner)))
		}
		return lossless.Obj(members...)
	case lossless.Array:
		items := make([]lossless.Value, 0, v.Len())
		for _, inner := range v.Items() {
			items = append(items, hidden(name, inner))
		}
		return lossless.Arr(items...)
	}
	return v
}

// snake is a member's name as a variable has it: apiKey is API_KEY.
func snake(name string) string {
	var b strings.Builder
	for i, c := range name {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToUpper(b.String())
}

// jsonRow is a row for programs.
type jsonRow struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Disabled bool           `json:"disabled,omitempty"`
	Config   lossless.Value `json:"config"`
	Rows     []jsonRow      `json:"rows,omitempty"`
	Layer    string         `json:"layer"`
	File     string         `json:"file"`
	Line     int            `json:"line"`
}

func jsonRows(rows []document.Row) []jsonRow {
	out := make([]jsonRow, 0, len(rows))
	for _, row := range rows {
		at := row.At()
		out = append(out, jsonRow{
			ID: row.ID, Name: row.Name, Disabled: row.Disabled, Config: hidden("", row.Config), Rows: jsonRows(row.Children),
			Layer: at.Layer.Kind.String(), File: at.Layer.Name, Line: at.Line,
		})
	}
	return out
}
