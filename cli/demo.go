package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// runDemo plays the demonstration and writes its transcript; the error is the
// first step that did not do what it said.
var runDemo func(ctx context.Context, out io.Writer) error

func newDemo() *cobra.Command {
	return &cobra.Command{
		Use:   "demo",
		Short: "Watch the live runtime being inspected, extended and repaired",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.Context(), cmd.OutOrStdout())
		},
	}
}
