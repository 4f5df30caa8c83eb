package selfmod

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/catalog"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/tool"
)

//go:embed mount.md
var mountText string

// mountValue is the canonical value of cordis_mount.
type mountValue struct {
	ID         string         `json:"id"`
	PluginName string         `json:"pluginName"`
	State      string         `json:"state"`
	Provides   []string       `json:"provides"`
	WaitingFor []string       `json:"waitingFor"`
	Tools      []mountedTool  `json:"tools"`
	Activated  []string       `json:"activated"`
	Failed     []mount.Failed `json:"failed"`
	Replaced   *unmountValue  `json:"replaced,omitempty"`
}

type mountedTool struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Parameters  lossless.Text `json:"parameters"`
}

func (t *toolset) mountTool() *tool.Definition {
	no, yes := false, true
	text := schema.String
	return &tool.Definition{
		Name: "cordis_mount", Title: "Mount temporary Cordis Plugin", Description: t.mountDescription(), Kind: tool.KindExecute, Sealed: true,
		Annotations: &tool.Annotations{ReadOnly: &no, Destructive: &no, Idempotent: &no, OpenWorld: &yes},
		Parameters: schema.Must(schema.Parameters(schema.Closed(schema.Object(
			schema.Prop("code", text("The body of an async JavaScript (or TypeScript) function that returns the plugin."), schema.Required),
			schema.Prop("replaces", text("The id of a temporary Plugin (dyn-3) that the new one takes the place of, in one step.")),
		)))),
		Output: tool.Output{Render: t.renderMount, Schema: schema.Must(schema.Output(schema.Object(
			schema.Prop("id", text("The id to inspect and unmount it by."), schema.Required),
			schema.Prop("pluginName", text("Its name; <anonymous> if it has none."), schema.Required),
			schema.Prop("state", text("active, or pending while services are missing."), schema.Required),
			schema.Prop("provides", schema.Array("Services that it provides.", text("")), schema.Required),
			schema.Prop("waitingFor", schema.Array("Services that it waits for.", text("")), schema.Required),
			schema.Prop("tools", schema.Array("Tools that came, callable from the next step on.", schema.Object(
				schema.Prop("name", text(""), schema.Required), schema.Prop("description", text(""), schema.Required),
				schema.Prop("parameters", schema.Any("JSON Schema of the arguments."), schema.Required))), schema.Required),
			schema.Prop("activated", schema.Array("Other plugins that became active.", text("")), schema.Required),
			schema.Prop("failed", schema.Array("Other plugins that failed.", schema.Object(
				schema.Prop("name", text(""), schema.Required), schema.Prop("error", text(""), schema.Required))), schema.Required),
			schema.Prop("replaced", schema.Describe(receiptNode(), "What the replaced plugin took with it.")),
		)))},
		PresentCall: presentMount,
		Execute: func(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
			var a struct {
				Code     string  `json:"code"`
				Replaces *string `json:"replaces"`
			}
			if err := json.Unmarshal(exec.Arguments, &a); err != nil {
				return tool.Outcome{}, fmt.Errorf("read arguments: %w", err)
			}
			var m *mount.Mounted
			var err error
			if a.Replaces == nil {
				m, err = t.set.Mount(ctx, a.Code)
			} else {
				m, err = t.replace(ctx, *a.Replaces, a.Code, exec.Scope)
			}
			if err != nil {
				return tool.Outcome{}, err
			}
			return outcome(valueOf(m), t.mountAnswer(m))
		},
	}
}

// replace mounts code in the place of a temporary plugin.
func (t *toolset) replace(ctx context.Context, id, code string, scope *tool.Scope) (*mount.Mounted, error) {
	m, err := t.set.Replace(ctx, id, code)
	if err == nil {
		return m, nil
	}
	if _, ok := t.set.Get(id); ok {
		return nil, err
	}
	if f := t.file(id, scope); f != nil {
		return nil, fmt.Errorf("replaces takes the id of a temporary Plugin, and %s is a plugin file: to change it, edit that file, %s; what is saved is live by itself. (Nothing is mounted.)", plain.Name(id), plain.Name(f.ID))
	}
	return nil, fmt.Errorf("replaces: %w%s. (Nothing is mounted. Leave replaces out to mount it beside what there is.)", err, t.called(id))
}

// mountDescription is the text with the limits that are in force.
func (t *toolset) mountDescription() string {
	c := t.sandbox.Config()
	return strings.TrimSpace(strings.NewReplacer(
		"{vmTimeout}", sandbox.Millis(c.VMTimeout), "{callTimeout}", sandbox.Millis(c.CallTimeout),
		"{maxCallTimeout}", sandbox.Millis(c.MaxCallTimeout), "{memoryMB}", strconv.Itoa(c.MemoryMB),
	).Replace(mountText))
}

// outcome is a value with the text that the model reads of it.
func outcome(value any, text string) (tool.Outcome, error) {
	v, err := json.Marshal(value) // the registry parses it and writes it as it writes all
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("write answer: %w", err)
	}
	return tool.Outcome{Value: v, Rendered: &tool.Rendered{Content: []tool.Block{tool.TextBlock(text)}}}, nil
}

func valueOf(m *mount.Mounted) mountValue {
	state := "active"
	if s := m.Mount.StateText(); s != "running" {
		state = s
	}
	v := mountValue{
		ID: m.Mount.ID, PluginName: m.Mount.Name(), State: state, Provides: m.Mount.Provides(), WaitingFor: m.Mount.Waiting(),
		Tools: []mountedTool{}, Activated: pluginNames(m.Activated), Failed: m.Failed,
	}
	if m.Replaced != nil {
		r := valueOfReceipt(m.Replaced)
		v.Replaced = &r
	}
	if v.Failed == nil {
		v.Failed = []mount.Failed{}
	}
	room := answerSchemas
	for _, view := range m.Tools {
		text, why := shownSchema(view, &room)
		if why != "" {
			text = lossless.Str(why).Encode()
		}
		v.Tools = append(v.Tools, mountedTool{view.Name, plain.Cut(view.Description, answerDescription), text})
	}
	return v
}

// Bounds on the schemas in an answer: of each and of all together, in bytes, and
// the nesting that clients can read.
const (
	answerSchema  = 64 << 10
	answerSchemas = 1 << 20
	answerNesting = 500

	answerDescription = 2000 // characters
)

// shownSchema is the schema of a tool's parameters, or why it is left out; room
// is what is left for schemas.
func shownSchema(v *tool.View, room *int) (text lossless.Text, why string) {
	text = v.Parameters.JSON()
	switch {
	case len(text) > min(answerSchema, *room):
		return nil, fmt.Sprintf("(left out: the schema has %d bytes)", len(text))
	case nesting(text) > answerNesting:
		return nil, fmt.Sprintf("(left out: the schema is nested %d levels deep)", nesting(text))
	}
	*room -= len(text)
	return text, ""
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// nesting is how deep a JSON text is nested.
func nesting(text lossless.Text) (deepest int) {
	depth, inString := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{', c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}', c == ']':
			depth--
		}
	}
	return deepest
}

// answerList is how many characters of each list an answer shows.
const answerList = 400

// mountAnswer is the canonical sentence and, below it, the consequences.
func (t *toolset) mountAnswer(m *mount.Mounted) string {
	var b strings.Builder
	b.WriteString(canonical(m.Mount.ID, m.Mount.Name(), m.Mount.Waiting()))
	b.WriteString(t.misspelt(m.Mount.Waiting()))
	if m.Mount.TypeScript() {
		b.WriteString("\nThe code is TypeScript: its types were erased.")
	}
	b.WriteString(replaced(m))
	if p := m.Mount.Provides(); len(p) > 0 {
		b.WriteString("\nProvides: " + listed(p, answerList) + ".")
	}
	for _, part := range []struct {
		what string
		n    int
	}{{"Listeners", m.Came.Listeners}, {"Timers", m.Came.Timers}, {"Effects", m.Came.Effects}} {
		if part.n > 0 {
			fmt.Fprintf(&b, "\n%s: %d.", part.what, part.n)
		}
	}
	if len(m.Restarted) > 0 {
		b.WriteString("\nRestarted once, with the new service: " + listed(others(m.Restarted), answerList) + ".")
	}
	if len(m.Activated) > 0 {
		b.WriteString("\nBecame active: " + listed(others(m.Activated), answerList) + ".")
	}
	for _, f := range m.Failed {
		b.WriteString("\nFailed: " + f.Name + ": " + f.Error)
	}
	head := plain.Cut(b.String(), limits.MountAnswer)
	if len(m.Tools) == 0 {
		return head
	}
	b.Reset()
	b.WriteString(head + "\nTools, callable from your next step on:")
	room := answerSchemas
	for _, v := range m.Tools {
		text, why := shownSchema(v, &room)
		b.WriteString("\n- " + v.Name + " " + plain.Escape(string(text)) + why)
	}
	return b.String()
}

// replaced tells what became of the plugin whose place the new one has.
func replaced(m *mount.Mounted) string {
	r := m.Replaced
	switch {
	case r == nil && !m.Replaces:
		return ""
	case r == nil:
		return "\nWhat it was to replace was unmounted meanwhile."
	case r.GoesOn:
		return fmt.Sprintf("\nReplaces %s (plugin %q), which is being unmounted: this call runs inside it, so the rest follows when the call has ended.", r.ID, r.Plugin)
	}
	return fmt.Sprintf("\nReplaces %s (plugin %q), which was unmounted and removed.", r.ID, r.Plugin) + undone(r)
}

// misspelt says which missing services nobody provides that have nearly the name of
// one that is live or in the catalog; "": none has.
func (t *toolset) misspelt(missing []string) string {
	live := t.provided()
	var known []string
	for i := range catalog.Services {
		known = append(known, catalog.Services[i].Key)
	}
	for name := range live {
		known = append(known, plain.Name(name))
	}
	var b strings.Builder
	for _, name := range missing {
		if near := didYouMean(name, known); near != "" && !slices.Contains(known, name) {
			fmt.Fprintf(&b, "\nNothing provides %q%s", plain.Name(name), near)
		}
	}
	return b.String()
}

func pluginNames(list []mount.Other) []string {
	out := make([]string, len(list))
	for i, o := range list {
		out[i] = o.Name
	}
	return out
}

// others names plugins with their ids and the tools that they have now.
func others(list []mount.Other) []string {
	out := make([]string, len(list))
	for i, o := range list {
		out[i] = o.Name
		switch {
		case len(o.Tools) > 0:
			out[i] += " (" + o.ID + "; tools: " + strings.Join(o.Tools, ", ") + ")"
		case o.ID != "":
			out[i] += " (" + o.ID + ")"
		}
	}
	return out
}

func canonical(id, name string, waiting []string) string {
	if len(waiting) > 0 {
		return fmt.Sprintf("Temporary Plugin %s is pending (plugin %q; missing services: %s; available until unmounted or DSH restarts).", id, name, listed(waiting, answerList))
	}
	return fmt.Sprintf("Temporary Plugin %s is running (plugin %q; available until unmounted or DSH restarts).", id, name)
}

// renderMount shows a value that a listener replaced.
func (t *toolset) renderMount(_ context.Context, _, value lossless.Text) ([]tool.Block, error) {
	var v mountValue
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("read value: %w", err)
	}
	return []tool.Block{tool.TextBlock(canonical(plain.Name(v.ID), plain.Name(v.PluginName), names(v.WaitingFor)))}, nil
}

func presentMount(_ context.Context, args lossless.Text) (*tool.Card, error) {
	return &tool.Card{Generic: &tool.GenericCard{Title: "Mount temporary Cordis Plugin", Kind: tool.KindExecute, RawInput: args}}, nil
}
