package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of dsh and of Go",
		Args:  command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "dsh %s (%s, %s/%s)\n", command.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil {
				return fmt.Errorf("print version: %w", err)
			}
			return nil
		},
	}
}
