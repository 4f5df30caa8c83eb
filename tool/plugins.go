package tool

// ForPlugins is the view that a plugin has of the tools: it adds its own and
// reads what there is. It cannot call tools. ctx.tools is always there, without
// inject.
type ForPlugins interface {
	// Register adds the tool that harness.defineTool returned, and gives a function
	// that removes it; harness.registerTool(ctx, tool) does the same. It throws
	// where the name is taken, and says by whom.
	//
	//dsh:ts register(tool: DefinedTool): () => Promise<void>
	Register()
	// Schemas gives the tools that can be called.
	//
	//dsh:ts schemas(): ToolView[]
	Schemas()
	// Get gives one tool by its name, undefined where there is none.
	//
	//dsh:ts get(name: string): ToolView | undefined
	Get()
}

// ToolView is what can be known of a tool.
type ToolView struct {
	// Name is what callers call it.
	Name string `json:"name"`
	// Description tells the model what it does.
	Description string `json:"description"`
	// Parameters is the JSON Schema of its arguments.
	Parameters any `json:"parameters"`
}

// ToolCall is a call as listeners of plugins see it.
type ToolCall struct {
	// Token identifies the call while this process runs.
	Token Token `json:"token"`
	// CallID is the caller's id of the call.
	CallID string `json:"callId"`
	// RootCallID is the callId of the outermost call around this one.
	RootCallID string `json:"rootCallId"`
	// Name is the tool's name.
	Name string `json:"name"`
	// Arguments are valid under the tool's parameters, with defaults filled in;
	// of a refused call they are what the caller sent.
	Arguments any `json:"arguments"`
	// Parent is the token of the call within which this one was made.
	Parent Token `json:"parent,omitempty"`
}
