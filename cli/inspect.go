package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/serve/mcp"
	"github.com/dsh-go/dsh/tool"
)

// withRegistry runs do with the tools of a fresh composition, as dsh mcp serves
// them, and stops it.
func withRegistry(ctx context.Context, s command.Streams, o *command.MountOptions, do func(*tool.Registry, *mcp.Server) error) error {
	if err := o.Check(); err != nil {
		return err
	}
	server := mcp.New(mcp.Config{Version: command.Version()})
	r, err := compose(ctx, s, o, standard.Given{}, server, false)
	if err != nil {
		return err
	}
	defer r.Stop()
	registry, err := tool.Service.Use(r.Root)
	if err != nil {
		return fmt.Errorf("find tools: %w", err)
	}
	return do(registry, server)
}

func newInspect(s command.Streams) *cobra.Command {
	o := command.NewMountOptions()
	var name string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect [section]",
		Short: "Print what cordis_inspect reports of a fresh start",
		Long: `Print what cordis_inspect reports of a fresh start of dsh mcp with the same
flags: what is provided, what plugins can call and hear. The sections are
` + strings.Join(selfmod.Sections(), ", ") + `; without one, all are printed.`,
		Example: `  dsh inspect api
  dsh inspect api --name fs.readText
  dsh inspect events --name tools/pre-execute`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return command.Usagef("takes one section, got %q besides", args[1])
			case len(args) == 1 && !slices.Contains(selfmod.Sections(), args[0]):
				return command.Usagef("there is no section %q; the sections are %s", args[0], strings.Join(selfmod.Sections(), ", "))
			case len(args) == 0 && name != "":
				return command.Usagef("--name goes with a section: dsh inspect api --name %s", name)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			report := inspectCall{Name: name}
			if len(args) == 1 {
				report.What = args[0]
			}
			return withRegistry(cmd.Context(), s, &o, func(r *tool.Registry, _ *mcp.Server) error {
				return report.print(cmd.Context(), r, s.Out, asJSON)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "one `thing` in full: a service, fs.readText, a type or ctx of api; an event of events")
	f.BoolVar(&asJSON, "json", false, `print a JSON object: {"what", "name", "report"}`)
	o.ServiceFlags(f)
	return cmd
}

// inspectCall is what cordis_inspect is asked, and its answer.
type inspectCall struct {
	What   string `json:"what,omitempty"`
	Name   string `json:"name,omitempty"`
	Report string `json:"report,omitempty"`
}

func (c inspectCall) print(ctx context.Context, r *tool.Registry, out io.Writer, asJSON bool) error {
	args, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("write arguments: %w", err)
	}
	res := r.Execute(ctx, tool.Call{Name: selfmod.InspectName, Arguments: args})
	c.Report = textOf(res.Content)
	if res.IsError {
		return fmt.Errorf("%s", strings.TrimPrefix(plain.Terminal(c.Report), "Error: "))
	}
	if asJSON {
		return command.PrintJSON(out, c)
	}
	return command.PrintText(out, c.Report)
}

// textOf is what a model reads of a result.
func textOf(content []tool.Block) string {
	texts := make([]string, len(content))
	for i, b := range content {
		texts[i] = b.Text
		if b.Raw != nil || b.Type != "text" {
			raw, err := json.Marshal(b)
			if err != nil {
				raw = fmt.Appendf(nil, "(a block of type %q that is not JSON)", b.Type)
			}
			texts[i] = string(raw)
		}
	}
	return strings.Join(texts, "\n")
}
