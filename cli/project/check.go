package project

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
)

func newCheck(s command.Streams) *cobra.Command {
	return &cobra.Command{Use: "check [PATH…]", Short: "Say what plugin files would register, without registering it", RunE: func(*cobra.Command, []string) error { return errors.ErrUnsupported }}
}
