package agenttest

import (
	"context"
	"iter"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

// Func is a model that is a Go function: it answers a request through the Emitter,
// which it finishes. Its wire format is [llm.Request.JSON]; every model's name goes.
type Func func(ctx context.Context, r *llm.Request, out *llm.Emitter)

var _ llm.Adapter = Func(nil)

// Models returns none.
func (Func) Models() []llm.Model { return nil }

// Model takes any name.
func (Func) Model(name string) (llm.Model, error) {
	return llm.Model{Name: name, Images: true, ContextWindow: 100_000}, nil
}

// Encode returns the request as JSON.
func (Func) Encode(r *llm.Request) ([]byte, error) { return r.JSON() }

// Stream calls the function.
func (f Func) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) { f(ctx, r, llm.NewEmitter(yield)) }
}

// Say emits a text block and finishes.
func Say(out *llm.Emitter, text string) {
	out.Append(out.Open(llm.TextBlock), text)
	out.Finish(llm.Stop, lossless.Value{})
}

// A Called is a tool call that Calls emits.
type Called struct{ ID, Name, Arguments string }

// Calls emits tool calls and finishes.
func Calls(out *llm.Emitter, calls ...Called) {
	for _, c := range calls {
		out.Call(out.Open(llm.CallBlock), c.ID, c.Name, c.Arguments)
	}
	out.Finish(llm.ToolCalls, lossless.Value{})
}
