package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/serve/mcp"
)

// graceForPlugins is what the plugins get of limits.Shutdown after the server
// has used its own part.
const graceForPlugins = 400 * time.Millisecond

// logNameWidth is the width of the column of names in the log.
const logNameWidth = 16

// mcpOptions are the flags of dsh mcp.
type mcpOptions struct {
	mountOptions
	withCall bool
	audit    string
}

func newMCP(s streams) *cobra.Command {
	o := &mcpOptions{mountOptions: newMountOptions()}
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
leave bash out of --services.`,
		Example: `  dsh mcp
  dsh mcp --root ~/project --read-only-root /usr/share/dict --services fs,web
  dsh mcp --vm-timeout 2s --call-timeout 1m --audit mounts.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("audit") && o.audit == "" {
				return usageError{errors.New("--audit needs the name of a file, and got an empty one")}
			}
			if err := o.check(); err != nil {
				return err
			}
			o.warn(s.err)
			return serveMCP(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	o.flags(f)
	f.BoolVar(&o.withCall, "with-call", false, "add cordis_call {name, args}, for clients that ignore list changes")
	f.StringVar(&o.audit, "audit", "", "append every mounted source with its SHA-256 to this `file` (JSON lines, created with mode 0600)")
	return cmd
}

// serveMCP runs the composition for one client. It takes at most
// limits.Shutdown to return once it has been told to.
func serveMCP(ctx context.Context, s streams, o *mcpOptions) (err error) {
	audit, err := openAudit(o.audit)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, audit.Close()) }()

	server := mcp.New(mcp.Config{Version: version(), WithCall: o.withCall})
	root, err := compose(ctx, s, &o.mountOptions, audit, server)
	if err != nil {
		return err
	}
	defer stop(root, s.err)
	err = server.Run(ctx, s.in, s.out)
	if ctx.Err() != nil {
		return nil // a signal asked for the end
	}
	return err
}

// stop ends the plugins of a composition.
func stop(root *cordis.Context, messages io.Writer) {
	end, cancel := context.WithTimeout(context.Background(), graceForPlugins)
	defer cancel()
	if _, failed := root.Fiber().Dispose(end); failed != nil {
		fmt.Fprintf(messages, "dsh: stop plugins: %v\n", failed)
	}
}

// compose builds the runtime that is served: the plugins of dsh mcp, all active.
// Where that fails, nothing of it goes on.
func compose(ctx context.Context, s streams, o *mountOptions, audit *auditLog, server *mcp.Server) (_ *cordis.Context, err error) {
	toolset := selfmod.Config{
		VMTimeout:   o.vmTimeout.value,
		CallTimeout: o.callTimeout.value,
		MemoryMB:    o.memory.value,
		Audit:       audit,
		Console:     s.err,
		Hidden:      server.Hidden,
		Worker:      workerProgram,
	}
	root := cordis.New(cordis.WithDrainLimit(toolset.DrainLimit()))
	if _, err := root.Export(cordis.Exporter{Level: slog.LevelWarn, Export: cordis.NewConsole(s.err, logNameWidth)}); err != nil {
		return nil, fmt.Errorf("start log: %w", err)
	}
	defer func() {
		if err != nil {
			stop(root, s.err)
		}
	}()
	plugins := standard(o, toolset, server)
	fibers := make([]*cordis.Fiber, len(plugins))
	for i, p := range plugins {
		fiber, err := root.Mount(p, nil)
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", p.Name, err)
		}
		fibers[i] = fiber
	}
	for _, f := range fibers {
		if err := f.Await(ctx); err != nil {
			return nil, fmt.Errorf("start %s: %w", f.Name(), err)
		}
	}
	return root, nil
}

// standard is the one list of the plugins that dsh mcp is made of.
func standard(o *mountOptions, toolset selfmod.Config, server *mcp.Server) []*cordis.Plugin {
	return append(o.plugins(),
		selfmod.Plugin(toolset),
		server.Plugin(),
	)
}
