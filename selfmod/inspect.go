package selfmod

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/tool"
)

//go:embed inspect.md
var inspectText string

// sections are the values of what, in the order of the whole report.
var sections = []string{"services", "plugins", "tools", "temporary"}

// oldTemporary is accepted for "temporary"; it is not advertised.
const oldTemporary = "dynamic"

type inspectArgs struct {
	What string `json:"what"`
	Name string `json:"name"`
}

func (t *toolset) inspectTool() *tool.Definition {
	return &tool.Definition{
		Name: "cordis_inspect", Title: "Inspect cordis runtime", Description: strings.TrimSpace(inspectText), Kind: tool.KindRead, Unrouted: true,
		Parameters: schema.Must(schema.Parameters(schema.Object(
			schema.Prop("what", schema.String("One section: "+strings.Join(sections, ", ")+". Leave it out for all of them.")),
			schema.Prop("name", schema.String(`With what:"temporary": the exact id of one temporary Plugin, such as dyn-3, for its whole source and state.`)),
		))),
		Output:          tool.Output{Schema: schema.Must(schema.Output(schema.String("The report, in Markdown."))), Render: renderText},
		ConcurrencySafe: func(context.Context, lossless.Text) bool { return true },
		PresentCall:     presentInspect,
		Execute: func(_ context.Context, exec *tool.Exec) (tool.Outcome, error) {
			var a inspectArgs
			if err := json.Unmarshal(exec.Arguments, &a); err != nil {
				return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
			}
			text, err := t.inspect(a, exec.Scope)
			if err != nil {
				return tool.Outcome{}, err
			}
			return tool.Outcome{Value: lossless.Str(text).Encode()}, nil
		},
	}
}

// renderText shows a value that is a string.
func renderText(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	return []tool.Block{tool.TextBlock(text)}, nil
}

func presentInspect(_ context.Context, args lossless.Text) (*tool.Card, error) {
	var a inspectArgs
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	title := "Inspect cordis runtime"
	for _, part := range []string{a.What, a.Name} {
		if part != "" {
			title += ": " + plain.Name(part)
		}
	}
	return &tool.Card{Generic: &tool.GenericCard{Title: title, Kind: tool.KindRead}}, nil
}

// inspect writes the report that is asked for.
func (t *toolset) inspect(a inspectArgs, scope *tool.Scope) (string, error) {
	if a.What == oldTemporary {
		a.What = "temporary"
	}
	if a.What != "" && !slices.Contains(sections, a.What) {
		return "", fmt.Errorf("what must be one of %s, or left out for all, not %q", strings.Join(sections, ", "), plain.Name(a.What))
	}
	if a.Name != "" {
		if a.What != "temporary" {
			return "", fmt.Errorf("name is valid only with what:\"temporary\": the id of a temporary Plugin, such as dyn-1")
		}
		return t.reportOne(a.Name)
	}
	if a.What != "" {
		return t.section(a.What, scope).text(limits.ReportAll), nil
	}
	texts := make([]string, len(sections))
	for i, what := range sections {
		texts[i] = t.section(what, scope).text(limits.ReportAll / len(sections))
	}
	return strings.Join(texts, "\n\n"), nil
}
