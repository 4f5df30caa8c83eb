package selfmod

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/tool"
)

//go:embed unmount.md
var unmountText string

// unmountValue is the canonical value of cordis_unmount.
type unmountValue struct {
	ID         string       `json:"id"`
	PluginName string       `json:"pluginName"`
	Undone     mount.Undone `json:"undone"`
	Gone       goneValue    `json:"gone"`
	Parked     []string     `json:"parked"`
	Drained    bool         `json:"drained"`
	Abandoned  int          `json:"abandoned"`
	Left       int          `json:"left"`
}

type goneValue struct {
	Tools    []string `json:"tools"`
	Services []string `json:"services"`
}

func (t *toolset) unmountTool() *tool.Definition {
	no, yes := false, true
	return &tool.Definition{
		Name: "cordis_unmount", Title: "Unmount temporary Cordis Plugin", Description: strings.TrimSpace(unmountText), Kind: tool.KindDelete, Unrouted: true,
		Annotations: &tool.Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &no},
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("id", schema.String("The id that cordis_mount gave, such as dyn-1."), schema.Required),
		)))),
		Output:      tool.Output{Render: t.renderUnmount, Schema: schema.Must(schema.Output(receiptNode()))},
		PresentCall: presentUnmount,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			var a struct {
				ID string `json:"id"`
			}
			if err := json.Unmarshal(exec.Arguments, &a); err != nil {
				return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
			}
			r, err := t.set.Unmount(ctx, a.ID)
			if err != nil {
				return tool.Outcome{}, t.notUnmounted(a.ID, exec.Scope, err)
			}
			return outcome(valueOfReceipt(r), receipt(r))
		},
	}
}

// receiptNode describes an unmountValue.
func receiptNode() lossless.Value {
	text, count := schema.String, schema.Integer
	return schema.Object(
		schema.Prop("id", text(""), schema.Required), schema.Prop("pluginName", text(""), schema.Required),
		schema.Prop("undone", schema.Object(
			schema.Prop("tools", count(""), schema.Required), schema.Prop("services", count(""), schema.Required),
			schema.Prop("listeners", count(""), schema.Required), schema.Prop("timers", count(""), schema.Required),
			schema.Prop("effects", count(""), schema.Required)), schema.Required),
		schema.Prop("gone", schema.Object(
			schema.Prop("tools", schema.Array("Tools that can no longer be called.", text("")), schema.Required),
			schema.Prop("services", schema.Array("Services that nobody provides any more.", text("")), schema.Required)), schema.Required),
		schema.Prop("parked", schema.Array("Plugins that now wait for a service.", text("")), schema.Required),
		schema.Prop("drained", schema.Boolean("Whether every running call ended within its limits."), schema.Required),
		schema.Prop("abandoned", count("Calls that did not end."), schema.Required),
		schema.Prop("left", count("Effects that could not be undone: 0."), schema.Required),
	)
}

func valueOfReceipt(r *mount.Receipt) unmountValue {
	return unmountValue{
		ID: r.ID, PluginName: r.Plugin, Undone: r.Undone, Gone: goneValue{orEmpty(r.GoneTools), orEmpty(r.GoneNames)},
		Parked: pluginNames(r.Parked), Drained: r.Drained, Abandoned: r.Abandoned, Left: r.Left,
	}
}

// notUnmounted adds to a refusal what was meant by an id that is none.
func (t *toolset) notUnmounted(id string, scope *tool.Scope, err error) error {
	if _, ok := t.set.Get(id); ok {
		return err
	}
	if m := t.file(id, scope); m != nil {
		path := plain.Name(m.ID)
		return fmt.Errorf("%s is a plugin file, %s, and no temporary Plugin: cordis_unmount cannot remove it. To change it, edit that file: what is saved is live by itself. To disable it, set disabled: true on its row in cordis.yml, or run dsh plugin disable", plain.Name(id), path)
	}
	if r, ok := t.row(id, scope); ok {
		return fmt.Errorf("%s is a row of the composition, %s (%s:%d), and no temporary Plugin: cordis_unmount cannot remove it. To disable it, set disabled: true on that row", plain.Name(id), plain.Name(r.Name), plain.Line(r.Layer, limits.Name), r.Line)
	}
	if called := t.called(id); called != "" {
		return fmt.Errorf("%w%s", err, called)
	}
	return err
}

// receiptList is how many characters of each list a receipt shows: what follows
// the lists must not be cut.
const receiptList = 150

// receipt is the canonical sentence and, below it, what was undone.
func receipt(r *mount.Receipt) string {
	if r.GoesOn {
		return fmt.Sprintf("Temporary Plugin %s is being unmounted: this call runs inside it, so the rest follows when the call has ended.", r.ID)
	}
	var b strings.Builder
	b.WriteString(removed(r.ID))
	b.WriteString(undone(r))
	return plain.Cut(b.String(), limits.Receipt)
}

// undone is what went with an unmounted plugin, a line for each kind.
func undone(r *mount.Receipt) string {
	var b strings.Builder
	u := r.Undone
	fmt.Fprintf(&b, "\nUndone: %s, %s, %s, %s, %s.", many(u.Tools, "tool"), many(u.Services, "service"), many(u.Listeners, "listener"), many(u.Timers, "timer"), many(u.Effects, "effect"))
	if len(r.GoneTools) > 0 {
		b.WriteString("\nGone tools: " + listed(r.GoneTools, receiptList) + ".")
	}
	if len(r.GoneNames) > 0 {
		b.WriteString("\nGone services: " + listed(r.GoneNames, receiptList) + ".")
	}
	if len(r.Parked) > 0 {
		b.WriteString("\nParked until a service comes back: " + listed(others(r.Parked), receiptList) + ".")
	}
	if r.Abandoned > 0 {
		fmt.Fprintf(&b, "\nAbandoned, because it did not end within its limit: %s. What it would have returned is lost.", many(r.Abandoned, "call"))
	}
	if r.Left > 0 {
		fmt.Fprintf(&b, "\n%s could not be undone.", many(r.Left, "effect"))
	}
	if r.Problem != "" {
		b.WriteString("\nA disposer failed: " + r.Problem)
	}
	return b.String()
}

func removed(id string) string {
	return fmt.Sprintf("Temporary Plugin %s was unmounted and removed.", id)
}

func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// renderUnmount shows a value that a listener replaced.
func (t *toolset) renderUnmount(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v unmountValue
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	return []tool.Block{tool.TextBlock(removed(plain.Name(v.ID)))}, nil
}

func presentUnmount(_ context.Context, args lossless.Text) (*tool.Card, error) {
	var a struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, fmt.Errorf("read arguments: %w", err)
	}
	return &tool.Card{Generic: &tool.GenericCard{Title: "Unmount temporary Cordis Plugin " + plain.Name(a.ID), Kind: tool.KindDelete}}, nil
}
