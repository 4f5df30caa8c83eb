package cli

import (
	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/cli/config"
	"github.com/dsh-go/dsh/docs/reference"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/plugins/standard"
)

func newConfig(s command.Streams) *cobra.Command {
	return config.New(s, config.Options{
		Catalog: standard.Catalog(standard.Given{}),
		Builtin: map[string]document.Layer{"run": standard.Run(), "mcp": standard.MCP()},
		Schema:  []byte(reference.Schema),
	})
}
