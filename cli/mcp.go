package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/serve/mcp"
)

// mcpOptions are the flags of dsh mcp.
type mcpOptions struct {
	command.MountOptions
	permission command.PermissionOptions
	withCall   bool
	audit      string
}

func newMCP(s command.Streams) *cobra.Command {
	o := &mcpOptions{MountOptions: command.NewMountOptions()}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the live runtime to an MCP client over standard input and output",
		Long: `Serve the live runtime to a Model Context Protocol client over standard input
and output: cordis_inspect, cordis_mount, cordis_unmount, and every tool that is
mounted with them. It ends when the client closes the input, or at SIGTERM or
SIGINT, within two seconds whatever hangs.

What a client may mount here acts for real through the services it injects:
files below --root, shell commands, the web. The roots bind fs, not bash: a
command may do what you may. Grant this server as deliberately as a shell, or
leave bash out of --services. --permission and rules bind what plugins do; the
client, not this server, asks you about calls.`,
		Example: `  dsh mcp
  dsh mcp --root ~/project --read-only-root /usr/share/dict --services fs,web
  dsh mcp --permission auto-edit --allow 'bash(go test *)' --deny 'edit(go.mod)'
  dsh mcp --vm-timeout 2s --call-timeout 1m --audit mounts.jsonl`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("audit") && o.audit == "" {
				return command.Usagef("--audit needs the name of a file, and got an empty one")
			}
			if err := o.Check(); err != nil {
				return err
			}
			policy, err := o.permission.Plugin()
			if err != nil {
				return err
			}
			o.Warn(s.Err)
			return serveMCP(cmd.Context(), s, o, policy)
		},
	}
	f := cmd.Flags()
	o.Flags(f)
	o.permission.Flags(f, "full")
	f.BoolVar(&o.withCall, "with-call", false, "add cordis_call {name, args}, for clients that ignore list changes")
	f.StringVar(&o.audit, "audit", "", "append every mounted source with its SHA-256 to this `file` (JSON lines, created with mode 0600)")
	return cmd
}

// serveMCP runs the composition for one client. It takes at most
// limits.Shutdown to return once it has been told to.
func serveMCP(ctx context.Context, s command.Streams, o *mcpOptions, policy *cordis.Plugin) (err error) {
	audit, err := openAudit(o.audit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Close()) }()

	server := mcp.New(mcp.Config{Version: command.Version(), WithCall: o.withCall})
	root, err := compose(ctx, s, &o.MountOptions, audit, server, policy)
	if err != nil {
		return err
	}
	defer command.Stop(root, s.Err)
	err = server.Run(ctx, s.In, s.Out)
	if ctx.Err() != nil {
		return nil // a signal asked for the end
	}
	return err
}

// compose builds the runtime that is served: the plugins of dsh mcp, all active.
// The policy, if there is one, comes first and outlives what it decides about. Where
// that fails, nothing of it goes on.
func compose(ctx context.Context, s command.Streams, o *command.MountOptions, audit *auditLog, server *mcp.Server, policy ...*cordis.Plugin) (*cordis.Context, error) {
	toolset := selfmod.Config{
		VMTimeout:   o.VMTimeout.Value,
		CallTimeout: o.CallTimeout.Value,
		MemoryMB:    o.Memory.Value,
		Audit:       audit,
		Console:     s.Err,
		Hidden:      server.Hidden,
		Worker:      command.Program,
	}
	plugins := append(policy, append(standard.Served(o.Chosen(), toolset), server.Plugin())...)
	return command.Compose(ctx, s.Err, toolset.DrainLimit(), plugins)
}
