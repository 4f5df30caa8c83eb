package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/serve/mcp"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/tool"
)

// graceForPlugins is what the plugins get of limits.Shutdown after the server
// has used its own part.
const graceForPlugins = 400 * time.Millisecond

// logNameWidth is the width of the column of names in the log.
const logNameWidth = 16

// mcpOptions are the flags of dsh mcp.
type mcpOptions struct {
	vmTimeout   durationFlag
	callTimeout durationFlag
	memory      mebibytes
	withCall    bool
	audit       string
}

func newMCP(s streams) *cobra.Command {
	o := &mcpOptions{
		vmTimeout:   durationFlag{limits.VMTimeout, limits.VMTimeoutMin, limits.VMTimeoutMax},
		callTimeout: durationFlag{limits.CallTimeout, limits.CallTimeoutMin, limits.CallTimeoutMax},
		memory:      mebibytes{limits.VMMemoryMB, limits.VMMemoryMBMin, limits.VMMemoryMBMax},
	}
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve the live runtime to an MCP client over standard input and output",
		Long: `Serve the live runtime to a Model Context Protocol client over standard input
and output: cordis_inspect, cordis_mount, cordis_unmount, and every tool that is
mounted with them. It ends when the client closes the input, or at SIGTERM or
SIGINT, within two seconds whatever hangs.

What a client may mount here acts for real through the services it injects.
Grant this server as deliberately as a shell.`,
		Example: `  dsh mcp
  dsh mcp --vm-timeout 2s --call-timeout 1m --audit mounts.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("audit") && o.audit == "" {
				return usageError{errors.New("--audit needs the name of a file, and got an empty one")}
			}
			return serveMCP(cmd.Context(), s, o)
		},
	}
	f := cmd.Flags()
	f.Var(&o.vmTimeout, "vm-timeout", "longest time of one entry into mounted code inside the engine")
	f.Var(&o.callTimeout, "call-timeout", "longest time of a whole entry, waiting included; mounting too")
	f.Var(&o.memory, "memory", "memory of one mount")
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
	root, err := compose(ctx, s, o, audit, server)
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), graceForPlugins)
		defer cancel()
		if _, failed := root.Fiber().Dispose(end); failed != nil {
			fmt.Fprintf(s.err, "dsh mcp: stop plugins: %v\n", failed)
		}
	}()
	err = server.Run(ctx, s.in, s.out)
	if ctx.Err() != nil {
		return nil // a signal asked for the end
	}
	return err
}

// compose builds the runtime that is served: the plugins of dsh mcp, all active.
func compose(ctx context.Context, s streams, o *mcpOptions, audit *auditLog, server *mcp.Server) (*cordis.Context, error) {
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
	plugins := standard(toolset, server)
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
func standard(toolset selfmod.Config, server *mcp.Server) []*cordis.Plugin {
	return []*cordis.Plugin{
		tool.Plugin(),
		timer.Plugin(),
		selfmod.Plugin(toolset),
		server.Plugin(),
	}
}
