// Package cli holds the commands of dsh and wires the parts of the program
// together. Main is the whole program; a program of your own with other plugins
// starts from a copy of this package, which is the only one that knows them all.
//
// Standard output belongs to what a command is asked for: dsh mcp writes nothing
// but protocol there. Everything else goes to standard error.
//
// Exit status: 0 when the command did what it was asked, 2 when it was asked for
// something that does not exist (an unknown command, a bad flag), 1 for any other
// failure. Ending a server, by a signal or by its client, is no failure.
package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/cli/project"
	"github.com/dsh-go/dsh/cli/work"
	"github.com/dsh-go/dsh/selfmod/sandbox/worker"
)

// workerCommand starts a worker; only dsh itself uses it. The supervisor of a shell
// command is the other such process: package supervise recognizes it before Main.
const workerCommand = "__worker"

// runWorker is the process in which mounted code runs. It knows no command line
// for people: what it is to do comes over its standard input.
func runWorker() int { return worker.Main(os.Args[2:]) }

// Main runs the program with its arguments and returns its exit status. The
// first SIGINT or SIGTERM ends the command in order, the second at once, by that
// signal: a shell says 130 or 143.
func Main() int {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		return runWorker() // before anything that a worker has no use for
	}
	hideEnviron()
	// A client that has gone is an error of a write, not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	messages := command.NewLossyWriter(os.Stderr)
	defer func() { _ = messages.Close() }()
	parting := &command.Parting{}
	ctx, stop := untilSignal(func() {
		_, _ = io.WriteString(messages, parting.Text()) // it never fails
		_ = messages.Close()
	})
	defer stop()
	ctx = command.WithParting(ctx, parting)
	return run(ctx, os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: messages})
}

// run executes one command line.
func run(ctx context.Context, args []string, s command.Streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return command.OK
	}
	if !command.Told(err) {
		fmt.Fprintf(s.Err, "%s: %v\n", cmd.CommandPath(), err)
	}
	status := command.Status(err)
	if status == command.Usage {
		fmt.Fprintf(s.Err, "Run '%s --help' to see what there is.\n", cmd.CommandPath())
	}
	return status
}

func newRoot(s command.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "dsh",
		Short: "An agent harness in which everything is a plugin",
		Long: `dsh is an agent harness in which everything is a plugin, and in which the
agent can see, extend and repair the live runtime it runs in.`,
		SilenceErrors:              true,
		SuggestionsMinimumDistance: 2,
		SilenceUsage:               true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usagef("say which command")
			}
			return command.Unknown(cmd, args[0])
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.AsUsage(err) })
	root.AddCommand(newConfig(s), newInspect(s), newMCP(s), newTool(s), newVersion())
	root.AddCommand(work.Commands(s)...)
	root.AddCommand(project.Commands(s)...)
	return root
}
