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

// Elsewhere says whether a built-in composition has a row with the id, so that one
// cordis.yml can be for all of them.
func Elsewhere(id string) bool {
	for _, l := range []document.Layer{Run(), MCP(), Demo()} {
		doc, _ := document.Parse(l) // tested
		if doc == nil {
			continue
		}
		c, _ := document.Compose([]*document.Document{doc}, document.Options{})
		if _, ok := c.Find(id); ok {
			return true
		}
	}
	return false
}

func builtin(name string, text []byte) document.Layer {
	return document.Layer{Name: name, Kind: document.Builtin, Text: text}
}
