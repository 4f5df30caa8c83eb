package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox"
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
			allow, deny, err := o.permission.Put(&o.Layers, cmd.Flags())
			if err != nil {
				return err
			}
			o.Warn(s.Err)
			return serveMCP(cmd.Context(), s, o, standard.Given{Allow: allow, Deny: deny})
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
func serveMCP(ctx context.Context, s command.Streams, o *mcpOptions, given standard.Given) (err error) {
	audit, err := openAudit(o.audit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Close()) }()

	server := mcp.New(mcp.Config{Version: command.Version(), WithCall: o.withCall})
	given.Toolset.Audit = audit
	r, err := compose(ctx, s, &o.MountOptions, given, server, true)
	if err != nil {
		return err
	}
	defer r.Stop()
	err = server.Run(ctx, s.In, s.Out)
	r.Still()
	if ctx.Err() != nil {
		return nil // a signal asked for the end
	}
	return err
}

// compose builds the runtime that is served, of the documents of dsh mcp: those of the
// process's folder, since a client starts it where it works. follow says whether edits
// are followed. Where it fails, nothing of it goes on.
func compose(ctx context.Context, s command.Streams, o *command.MountOptions, given standard.Given, server *mcp.Server, follow bool) (_ *command.Running, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find working directory: %w", err)
	}
	given.Program, given.Cwd, given.Roots = command.Program, dir, command.ImpliedRoots(dir)
	given.Toolset.Console, given.Toolset.Hidden, given.Toolset.Memory = s.Err, server.Hidden, selfmod.NewMemory()
	var late command.Late
	given.Trusted, given.Loads = late.Trusted, late.Loads
	catalog := standard.Catalog(given)
	drain := selfmod.Config{CallTimeout: o.CallTimeout.Value}.DrainLimit()
	r, err := o.Layers.Start(ctx, s.Err, drain, composition.Options{
		Sources: o.Layers.Sources(standard.MCP()), Catalog: catalog, Global: true, Watch: follow,
		Sandbox: sandbox.Config{Exe: command.Program, Stderr: s.Err},
		Console: func(line string) { fmt.Fprintln(s.Err, line) },
	})
	if err != nil {
		return nil, err
	}
	late.Set(r)
	defer func() {
		if err != nil {
			r.Stop()
		}
	}()
	place, err := r.Place(ctx, dir)
	if err != nil {
		return nil, err
	}
	for _, p := range []*cordis.Plugin{place.Plugin(catalog), server.Plugin()} {
		f, err := r.Root.Mount(p, nil)
		if err == nil {
			err = f.Await(ctx)
		}
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Name, err)
		}
	}
	return r, nil
}
