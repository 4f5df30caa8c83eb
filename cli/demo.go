package cli

import (
	"bytes"
	"context"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/demo"
)

func newDemo(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Watch the live runtime being inspected, extended and repaired",
		Long: `Watch the live runtime being inspected, extended and repaired: an MCP client
drives the server of dsh mcp over a pipe, and what happens is printed. It needs
no key, no network and no files, and takes about a second. The status is 0 only
if every step did what it says.`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemo(cmd.Context(), s) },
	}
}

// runDemo plays the demonstration against what dsh mcp serves, with the
// defaults of its flags but for a short limit, and no services. What is logged meanwhile, the
// mistakes of the script among it, is shown only if the demonstration fails.
func runDemo(ctx context.Context, s command.Streams) error {
	o := &mcpOptions{MountOptions: command.NewMountOptions()}
	o.VMTimeout.Value = demo.VMTimeout
	log := new(logBuffer)
	err := demo.Run(ctx, s.Out, func(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
		return serveMCP(ctx, command.Streams{In: in, Out: out, Err: log}, o)
	})
	if err != nil {
		log.writeTo(s.Err)
	}
	return err
}

// logBuffer keeps what is logged.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

var _ io.WriteCloser = (*logBuffer)(nil)

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) Close() error { return nil }

func (b *logBuffer) writeTo(w io.Writer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, _ = w.Write(b.text.Bytes()) // nobody can be told
}
