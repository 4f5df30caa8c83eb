package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/serve/mcp"
	"github.com/dsh-go/dsh/serve/terminal"
	"github.com/dsh-go/dsh/tool"
)

// listCall lists the tools within a script; no tool can have its name.
const listCall = "tools/list"

// callForms is the help on how calls are written.
const callForms = `One call a line; blank lines and lines that begin with # are skipped:

  # a tool without arguments, and the tools that there are now
  cordis_inspect
  tools/list

  # arguments as a JSON object, on one line
  cordis_inspect {"what": "api", "name": "fs.readText"}

  # a text of several lines for the tool's one string argument
  cordis_mount <<EOF
  return {
    name: 'hello',
    apply(ctx) {
      harness.registerTool(ctx, harness.defineTool({
        name: 'hello', description: 'Greet.',
        parameters: { who: { type: 'string', required: true } },
        output: { schema: { type: 'string' }, render: (args, value) => [{ type: 'text', text: value }] },
        execute: (args) => 'hello ' + args.who,
      }))
    },
  }
  EOF
  hello {"who": "world"}
  cordis_unmount {"id": "dyn-1"}

The word EOF may be another; the text ends at the line that is just that word.
NAME ARGUMENT <<EOF gives the text to that argument, and JSON before
it the others. {"name": "hello", "arguments": {"who": "world"}} is a call, too.

Each answer begins with a line "> call" and ends with a line "< ok" or "< error"
and an empty one. With --json it is one line instead:
{"line", "name", "isError", "text", "value", "ms"}; value is there where the tool
has one.`

// toolOptions are the flags of dsh tool and its commands.
type toolOptions struct {
	command.MountOptions
	asJSON   bool
	failFast bool
}

func newTool(s command.Streams) *cobra.Command {
	o := &toolOptions{MountOptions: command.NewMountOptions()}
	cmd := &cobra.Command{
		Use:                        "tool",
		SuggestionsMinimumDistance: 2,
		Short:                      "Call tools by hand: list them, run a script of calls, or type calls",
		Long: `Call the tools of a fresh start of dsh mcp. Without a command below, calls are
read from standard input and answered at once, one after the other, until the
input ends; what is mounted stays until then. The status is 1 if a call failed.

` + callForms,
		Example: `  dsh tool list
  dsh tool run calls.txt --json
  echo 'cordis_inspect {"what":"api"}' | dsh tool`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Unknown(cmd, args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRegistry(cmd.Context(), s, &o.MountOptions, func(r *tool.Registry, server *mcp.Server) error {
				o.Warn(s.Err)
				if terminal.Is(s.In) {
					fmt.Fprintln(s.Err, "dsh tool: type calls, such as tools/list; dsh tool --help shows how")
				}
				return o.caller(r, server, s).follow(cmd.Context(), s.In)
			})
		},
	}
	o.toolFlags(cmd)
	cmd.AddCommand(newToolList(s), newToolRun(s))
	return cmd
}

func (o *toolOptions) toolFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object a line")
	f.BoolVar(&o.failFast, "fail-fast", false, "stop at the first call that fails")
	o.Flags(f)
}

func (o *toolOptions) caller(r *tool.Registry, server *mcp.Server, s command.Streams) *caller {
	return &caller{registry: r, server: server, out: s.Out, asJSON: o.asJSON, failFast: o.failFast}
}

func newToolList(s command.Streams) *cobra.Command {
	o := command.NewMountOptions()
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tools with their descriptions and schemas, as a client sees them",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRegistry(cmd.Context(), s, &o, func(_ *tool.Registry, server *mcp.Server) error {
				list, err := server.List()
				if err != nil {
					return fmt.Errorf("list tools: %w", err)
				}
				if asJSON {
					return command.PrintJSON(s.Out, list)
				}
				text, err := listText(list)
				if err != nil {
					return err
				}
				return command.PrintText(s.Out, text)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, `print a JSON object: {"tools": […]}, as tools/list of MCP has it`)
	o.ServiceFlags(cmd.Flags())
	return cmd
}

func newToolRun(s command.Streams) *cobra.Command {
	o := &toolOptions{MountOptions: command.NewMountOptions()}
	cmd := &cobra.Command{
		Use:   "run SCRIPT",
		Short: "Run a script of calls against a fresh start",
		Long: `Run a script of calls against a fresh start of dsh mcp, and print the answers.
SCRIPT is a file, or - for standard input. It is read to its end before the
first call. All calls are made, whether or not one fails, unless --fail-fast is
given. The status is 1 if a call failed, and 2 if a line is no call.

` + callForms,
		Example: `  dsh tool run calls.txt
  dsh tool run --json --root ~/project - < calls.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return command.Usagef("takes one SCRIPT (a file, or - for standard input), got %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := readScript(args[0], s.In)
			if err != nil {
				return err
			}
			return withRegistry(cmd.Context(), s, &o.MountOptions, func(r *tool.Registry, server *mcp.Server) error {
				o.Warn(s.Err)
				return o.caller(r, server, s).play(cmd.Context(), script)
			})
		},
	}
	o.toolFlags(cmd)
	return cmd
}
