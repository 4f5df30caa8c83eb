package mcp

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/tool"
)

//go:embed call.md
var callDescription string

// callName is the tool that --with-call adds.
const callName = "cordis_call"

// registerCall adds a tool that runs another by its name, for clients that
// ignore changes of the list. It has no rights of its own: the inner call takes
// the whole way through the registry, as a call within this one.
func registerCall(c *cordis.Context, r *tool.Registry) error {
	parameters, err := schema.Parameters(schema.Object(
		schema.Prop("name", schema.String("The tool's name, exactly as it is listed."), schema.Required),
		schema.Prop("args", schema.Describe(schema.Object(), "The tool's arguments; leave it out for none."),
			schema.Default(lossless.Obj())),
	))
	if err != nil {
		return fmt.Errorf("describe %s: %w", callName, err)
	}
	output, err := schema.Output(schema.Any("What the called tool returned."))
	if err != nil {
		return fmt.Errorf("describe %s: %w", callName, err)
	}
	_, err = r.Register(c, &tool.Definition{
		Name:        callName,
		Title:       "Call a tool by name",
		Description: strings.TrimSpace(callDescription),
		Kind:        tool.KindExecute,
		Unrouted:    true, // the inner call is asked about, or is unrouted itself
		Parameters:  parameters,
		Output:      tool.Output{Schema: output, Render: renderCall},
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			return runCall(ctx, r, exec)
		},
	})
	if err != nil {
		return fmt.Errorf("register %s: %w", callName, err)
	}
	return nil
}

func runCall(ctx context.Context, r *tool.Registry, exec *tool.Exec) (tool.Outcome, error) {
	args, err := lossless.Parse(exec.Arguments)
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
	}
	name, _ := args.Get("name")
	if name.Str() == callName {
		return tool.Outcome{}, fmt.Errorf("%s does not call itself; name the tool that you mean", callName)
	}
	inner, _ := args.Get("args")
	got := r.Execute(ctx, tool.Call{
		Name:       name.Str(),
		Arguments:  inner.Encode(),
		Scope:      exec.Scope,
		Parent:     exec,
		OnProgress: func(p tool.Progress) { exec.Progress(p) },
	})
	if got.IsError {
		return tool.Outcome{}, &tool.Error{Name: got.Error.Name, Code: got.Error.Code, Message: got.Error.Message}
	}
	return tool.Outcome{Value: got.Value, Rendered: &tool.Rendered{Content: got.Content}}, nil
}

// renderCall is asked only when a listener replaced the value.
func renderCall(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	return []tool.Block{tool.TextBlock(string(value))}, nil
}
