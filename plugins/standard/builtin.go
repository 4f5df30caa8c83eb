package standard

import (
	_ "embed"

	"github.com/dsh-go/dsh/loader/document"
)

var (
	//go:embed run.cordis.yml
	runRows []byte
	//go:embed mcp.cordis.yml
	mcpRows []byte
	//go:embed demo.cordis.yml
	demoRows []byte
)

// Run is the built-in composition of dsh run. It has no toolset; see [Self].
func Run() document.Layer { return builtin("built-in run", runRows) }

// MCP is the built-in composition of dsh mcp: services and the toolset.
func MCP() document.Layer { return builtin("built-in mcp", mcpRows) }

// Demo is the built-in composition of dsh demo.
func Demo() document.Layer { return builtin("built-in demo", demoRows) }

// Self is the layer of the flag --self: the row of the toolset, where no document has
// it already.
func Self() document.Layer {
	return document.Layer{Name: "--self", Kind: document.Flags, Text: []byte("- {id: tool-cordis, name: tool-cordis}\n")}
}

func builtin(name string, text []byte) document.Layer {
	return document.Layer{Name: name, Kind: document.Builtin, Text: text}
}
