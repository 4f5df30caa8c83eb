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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/selfmod/sandbox/worker"
)

// The exit statuses.
const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// workerCommand starts a worker; only dsh itself uses it. The supervisor of a shell
// command is the other such process: package supervise recognizes it before Main.
const workerCommand = "__worker"

// workerProgram is the executable of workers; empty means this program. Tests
// name another one, since a test binary is a poor worker.
var workerProgram string

// runWorker is the process in which mounted code runs. It knows no command line
// for people: what it is to do comes over its standard input.
func runWorker() int { return worker.Main(os.Args[2:]) }

// usageError is a request for something that does not exist.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// streams are what a command reads and writes.
type streams struct {
	in       io.ReadCloser
	out, err io.WriteCloser
}

// Main runs the program with its arguments and returns its exit status. The
// first SIGINT or SIGTERM ends the command in order, the second at once.
func Main() int {
	if len(os.Args) > 1 && os.Args[1] == workerCommand {
		return runWorker() // before anything that a worker has no use for
	}
	// A client that has gone is an error of a write, not the end of the process.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	messages := newLossyWriter(os.Stderr)
	defer func() { _ = messages.Close() }()
	return run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, messages})
}

// run executes one command line.
func run(ctx context.Context, args []string, s streams) int {
	root := newRoot(s)
	root.SetArgs(args)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintf(s.err, "%s: %v\n", cmd.CommandPath(), err)
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintf(s.err, "Run '%s --help' to see what there is.\n", cmd.CommandPath())
		return exitUsage
	}
	return exitFailure
}

func newRoot(s streams) *cobra.Command {
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
				return usageError{errors.New("say which command")}
			}
			return usageError{unknownCommand(cmd, args[0])}
		},
		RunE: func(*cobra.Command, []string) error { return nil },
	}
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newDemo(s), newInspect(s), newMCP(s), newTool(s), newVersion())
	return root
}

func unknownCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return fmt.Errorf("%s; did you mean %q?", text, near[0])
	}
	var names string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names += " " + c.Name()
		}
	}
	return fmt.Errorf("%s; the commands are:%s", text, names)
}

// noArgs refuses arguments beside flags.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError{fmt.Errorf("takes no arguments, got %q", args[0])}
	}
	return nil
}
