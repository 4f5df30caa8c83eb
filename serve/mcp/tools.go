package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/tool"
)

// What a message puts around a schema in a list and around a value in a result,
// in levels of nesting: {"result":{"tools":[{"inputSchema":…
const (
	aroundSchema = 4
	aroundValue  = 2
)

// The list has one page, which has to fit into a message whatever plugins
// declare: most for one tool, and for all of them together.
const (
	mostTool = 1 << 20
	mostList = limits.MCPFrame - limits.MCPFrame/8
)

// split divides tools, in their order, into those of the list and the others,
// with the reasons by name.
func split(views []*tool.View) (shown []*tool.View, hidden map[string]string) {
	hidden = map[string]string{}
	total := 0
	for _, v := range views {
		why := hiddenWhy(v)
		if why == "" {
			size := listedSize(v)
			switch {
			case size > mostTool:
				why = fmt.Sprintf("its description and schemas take %d bytes there; at most %d are listed", size, mostTool)
			case total+size > mostList:
				why = fmt.Sprintf("the list is full: a message has at most %d bytes", limits.MCPFrame)
			default:
				total += size
			}
		}
		if why != "" {
			hidden[v.Name] = why
			continue
		}
		shown = append(shown, v)
	}
	return shown, hidden
}

// listedSize is how many bytes a tool takes in the list, at most.
func listedSize(v *tool.View) int {
	const around = 512 // names of members, annotations
	size := around + textSize(v.Name) + textSize(v.Title) + textSize(v.Description) + len(v.Parameters.JSON())
	if structured(v) {
		size += len(v.Output.JSON())
	}
	return size
}

// textSize is how many bytes a text takes as JSON, at most.
func textSize(s string) int {
	const short = 1 << 10
	if len(s) <= short {
		return 6*len(s) + 2
	}
	text, err := json.Marshal(s)
	if err != nil { // a string: cannot happen
		return 6 * len(s)
	}
	return len(text)
}

// hiddenWhy says why no client could read a tool's schemas, or "".
func hiddenWhy(v *tool.View) string {
	const most = limits.MCPDepth - aroundSchema
	if d := scan(v.Parameters.JSON()).depth; d > most {
		return fmt.Sprintf("its parameters are nested %d levels deep; MCP clients read at most %d", d, most)
	}
	if structured(v) {
		if d := scan(v.Output.JSON()).depth; d > most {
			return fmt.Sprintf("its output schema is nested %d levels deep; MCP clients read at most %d", d, most)
		}
	}
	return ""
}

// listed is a tool as a client sees it.
func listed(v *tool.View) *sdk.Tool {
	t := &sdk.Tool{
		Name:        v.Name,
		Description: v.Description,
		InputSchema: v.Parameters.JSON(),
		Annotations: annotations(v.Annotations),
	}
	if v.Title != v.Name {
		t.Title = v.Title
	}
	if structured(v) {
		t.OutputSchema = v.Output.JSON()
	}
	return t
}

// structured says whether results of a tool carry their value: clients refuse
// an output schema whose root is not an object.
func structured(v *tool.View) bool {
	return v.Output != nil && v.Output.RootType() == "object"
}

func annotations(a *tool.Annotations) *sdk.ToolAnnotations {
	if a == nil {
		return nil
	}
	return &sdk.ToolAnnotations{
		ReadOnlyHint:    a.ReadOnly != nil && *a.ReadOnly,
		IdempotentHint:  a.Idempotent != nil && *a.Idempotent,
		DestructiveHint: a.Destructive,
		OpenWorldHint:   a.OpenWorld,
	}
}

// result is what became of a call as a client sees it. A value that no client
// could read makes an error of it, which keeps the content: clients refuse a
// result without the value that the tool's output schema announces.
func result(r *tool.Result, withValue bool) *sdk.CallToolResult {
	const blockOverhead = 64 // of its members' names
	out := &sdk.CallToolResult{IsError: r.IsError, Content: make([]sdk.Content, 0, len(r.Content))}
	size := 0
	for _, b := range r.Content {
		out.Content = append(out.Content, content(b))
		size += len(b.Text) + len(b.Raw) + blockOverhead
	}
	if withValue && !r.IsError {
		const most = limits.MCPDepth - aroundValue
		if d := scan(r.Value).depth; d > most {
			out = failed(out.Content, fmt.Sprintf("the call succeeded, but its value is nested %d levels deep "+
				"and MCP clients read at most %d; what follows is its text", d, most))
		} else {
			out.StructuredContent = r.Value
			size += len(r.Value)
		}
	}
	if tooLong(out, size) {
		return failed(nil, fmt.Sprintf(
			"the call ended, but its result does not fit into one message of %d bytes; ask for less", limits.MCPFrame))
	}
	return out
}

// tooLong says whether a result exceeds a frame. Text grows at most sixfold as
// JSON, so most results need no second look.
func tooLong(r *sdk.CallToolResult, size int) bool {
	const envelope = 4 << 10
	if size < limits.MCPFrame/6-envelope {
		return false
	}
	data, err := json.Marshal(r)
	return err != nil || len(data) > limits.MCPFrame-envelope
}

func failed(content []sdk.Content, why string) *sdk.CallToolResult {
	first := &sdk.TextContent{Text: "Error: " + why}
	return &sdk.CallToolResult{IsError: true, Content: append([]sdk.Content{first}, content...)}
}

// content passes on a block whose type the protocol knows and whose members it
// would take, byte for byte; any other becomes the text of its JSON.
func content(b tool.Block) sdk.Content {
	switch {
	case b.Raw == nil && b.Type == "text":
		return &sdk.TextContent{Text: b.Text}
	case b.Raw != nil && known(b.Raw):
		return rawContent{&sdk.TextContent{}, b.Raw}
	}
	text, err := json.Marshal(b)
	if err != nil {
		return &sdk.TextContent{Text: fmt.Sprintf("(a block of type %q that is not JSON)", b.Type)}
	}
	return &sdk.TextContent{Text: string(text)}
}

// known says whether a block is one of the protocol's with what it requires.
func known(raw lossless.Text) bool {
	var b struct {
		Type, Text, Data, MIMEType, URI, Name *string
		Resource                              *struct{ URI, Text, Blob *string }
	}
	if scan(raw).depth > limits.MCPDepth-aroundSchema || json.Unmarshal(raw, &b) != nil || b.Type == nil {
		return false
	}
	switch *b.Type {
	case "text":
		return b.Text != nil
	case "image", "audio":
		return b.MIMEType != nil && isBase64(b.Data)
	case "resource_link":
		return b.URI != nil && b.Name != nil
	case "resource":
		r := b.Resource
		return r != nil && r.URI != nil && (r.Text != nil) != (r.Blob != nil && isBase64(r.Blob))
	}
	return false
}

func isBase64(s *string) bool {
	if s == nil {
		return false
	}
	_, err := base64.StdEncoding.DecodeString(*s)
	return err == nil
}

// rawContent is a block with its own JSON. The embedded block only lends the
// methods that the SDK keeps to itself; nothing reads it.
type rawContent struct {
	*sdk.TextContent
	raw lossless.Text
}

var _ sdk.Content = rawContent{}

// MarshalJSON returns the block as its author wrote it.
func (c rawContent) MarshalJSON() ([]byte, error) { return c.raw, nil }
