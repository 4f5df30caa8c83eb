package mount

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
	"github.com/dsh-go/dsh/tool"
)

// toolSpec is a tool as the prelude describes it.
type toolSpec struct {
	Fn          uint32        `json:"fn"`
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Title       string        `json:"title"`
	Parameters  lossless.Text `json:"parameters"`
	Output      lossless.Text `json:"output"`
	TimeoutMs   float64       `json:"timeoutMs"`
	Has         toolParts     `json:"has"`
}

// toolParts are the functions that a tool has beside execute.
type toolParts struct {
	Render, Meta, Finalize, Safe, PresentCall, PresentResult bool
}

func (p *toolParts) member(key string) any {
	switch key {
	case "render":
		return &p.Render
	case "meta":
		return &p.Meta
	case "finalize":
		return &p.Finalize
	case "safe":
		return &p.Safe
	case "presentCall":
		return &p.PresentCall
	case "presentResult":
		return &p.PresentResult
	}
	return nil
}

func (s *toolSpec) member(key string) any {
	switch key {
	case "fn":
		return &s.Fn
	case "name":
		return &s.Name
	case "description":
		return &s.Description
	case "title":
		return &s.Title
	case "parameters":
		return &s.Parameters
	case "output":
		return &s.Output
	case "timeoutMs":
		return &s.TimeoutMs
	case "has":
		return func(part []byte) bool { return wire.Read(part, &s.Has, (*toolParts).member) == nil }
	}
	return nil
}

// maxDescription bounds a tool's description and title, in bytes.
const maxDescription = 64 << 10

func (r *run) registerTool(_ context.Context, payload json.RawMessage) (any, error) {
	var spec toolSpec
	if err := wire.Read(payload, &spec, (*toolSpec).member); err != nil {
		return nil, fmt.Errorf("read tool: %w", err)
	}
	d, err := r.definition(spec)
	if err != nil {
		return nil, err
	}
	return r.register(kindTool, func(uint32, func()) (*cordis.Handle, error) {
		h, err := r.m.set.cfg.Registry.Register(r.c, d)
		if err == nil {
			r.mu.Lock()
			r.tools = keepLast(append(r.tools, d.Name), limits.Tools)
			r.mu.Unlock()
		}
		return h, err
	})
}

func (r *run) definition(spec toolSpec) (*tool.Definition, error) {
	who := fmt.Sprintf("harness.defineTool %q", plain.Line(spec.Name, limits.Name))
	if len(spec.Description) > maxDescription || len(spec.Title) > maxDescription {
		return nil, fmt.Errorf("%s: description and title may have %d bytes each", who, maxDescription)
	}
	parameters, err := r.m.set.parameters.compile(spec.Parameters, schema.Parameters)
	if err != nil {
		return nil, fmt.Errorf("%s %w", who, err)
	}
	output, err := r.m.set.outputs.compile(spec.Output, schema.Output)
	if err != nil {
		return nil, fmt.Errorf("%s %w", who, err)
	}
	t := &mountedTool{r: r, spec: spec, entry: fmt.Sprintf("tool %q", spec.Name)}
	d := &tool.Definition{
		Name: spec.Name, Title: spec.Title, Description: spec.Description, Kind: tool.KindExecute,
		Parameters: parameters, Execute: t.execute, Refused: t.refused,
		Output: tool.Output{Schema: output, Render: t.render},
	}
	if spec.Has.Meta {
		d.Output.Meta = t.meta
	}
	if spec.Has.Finalize {
		d.FinalizeContent = t.finalize
	}
	if spec.Has.Safe {
		d.ConcurrencySafe = t.safe
	}
	if spec.Has.PresentCall {
		d.PresentCall = t.presentCall
	}
	if spec.Has.PresentResult {
		d.PresentResult = t.presentResult
	}
	return d, nil
}

// compiled are schemas by their text, as many as keptSchemas: while a plugin is
// written it is mounted again and again, with the same ones.
type compiled struct {
	mu   sync.Mutex
	kept map[string]*schema.Schema
}

const (
	keptSchemas = 64
	keptSchema  = 4 << 10 // bytes of a text
)

func (c *compiled) compile(text lossless.Text, with func(lossless.Value) (*schema.Schema, error)) (*schema.Schema, error) {
	c.mu.Lock()
	s := c.kept[string(text)]
	c.mu.Unlock()
	if s != nil {
		return s, nil
	}
	v, err := lossless.Parse(text)
	if err != nil {
		return nil, err
	}
	if s, err = with(v); err != nil || len(text) > keptSchema {
		return s, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil || len(c.kept) >= keptSchemas {
		c.kept = map[string]*schema.Schema{}
	}
	c.kept[string(text)] = s
	return s, nil
}

// mountedTool enters one tool of a run.
type mountedTool struct {
	r     *run
	spec  toolSpec
	entry string
}

// output is what one call brings back: the value and, computed for exactly
// that value, its projections.
type output struct {
	Value        lossless.Text   `json:"value"`
	Content      json.RawMessage `json:"content"`
	ContentError string          `json:"contentError"`
	Meta         lossless.Text   `json:"meta"`
	MetaError    string          `json:"metaError"`
}

func (t *mountedTool) execute(ctx context.Context, exec *tool.Exec) (tool.Outcome, error) {
	args := make([]byte, 0, len(exec.Arguments)+192)
	args = append(append(args, `{"args":`...), exec.Arguments...)
	args = append(appendExec(append(args, `,"exec":`...), exec), '}')
	raw, err := t.r.vm.Invoke(ctx, sandbox.Call{
		Kind: "tool", Run: t.r.id, Fn: t.spec.Fn, Args: args, Entry: t.entry,
		Limit: time.Duration(t.spec.TimeoutMs * float64(time.Millisecond)),
		Started: func(id uint64) func() {
			t.r.mu.Lock()
			t.r.execs[id] = exec
			t.r.mu.Unlock()
			return func() {
				t.r.mu.Lock()
				delete(t.r.execs, id)
				t.r.mu.Unlock()
			}
		},
	})
	if err != nil {
		t.r.m.faults.add(plain.Error(t.entry + ": " + err.Error()))
		return tool.Outcome{}, toolError(err)
	}
	out, err := readOutput(raw)
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("%s: %s answered what cannot be read", t.r.m.who(), t.entry)
	}
	return tool.Outcome{Value: out.Value, Rendered: out.rendered()}, nil
}

// refused keeps and counts the error of a call that ended well for the machine.
func (t *mountedTool) refused(err error) {
	m := t.r.m
	m.faults.add(plain.Error(t.entry + ": " + err.Error()))
	m.mu.Lock()
	m.earlier.Errors++
	m.mu.Unlock()
}

// readOutput takes apart what a tool's call brought back, without reading it: each
// part is parsed, and refused, by who uses it. Text that is not written as the
// prelude writes it is left to package json.
func readOutput(raw json.RawMessage) (output, error) {
	var out output
	plain := wire.CutObject(raw, func(key, part []byte) bool {
		switch string(key) {
		case "value":
			out.Value = part
		case "content":
			out.Content = part
		case "meta":
			out.Meta = part
		default:
			return false
		}
		return true
	})
	if plain {
		return out, nil
	}
	out = output{}
	err := json.Unmarshal(raw, &out)
	return out, err
}

// readBlocks reads a list of blocks.
func readBlocks(raw json.RawMessage) ([]tool.Block, error) {
	blocks := make([]tool.Block, 0, 1)
	var wrong error
	plain := wire.CutArray(raw, func(part []byte) bool {
		b, ok := plainBlock(part)
		if !ok {
			wrong = b.UnmarshalJSON(part)
		}
		blocks = append(blocks, b)
		return wrong == nil
	})
	if plain {
		return blocks, nil
	}
	if wrong != nil {
		return nil, wrong
	}
	blocks = nil
	err := json.Unmarshal(raw, &blocks)
	return blocks, err
}

// plainBlock reads a text block as most are written, without escapes.
func plainBlock(text []byte) (b tool.Block, ok bool) {
	const head, tail = `{"type":"text","text":"`, `"}`
	if len(text) < len(head)+len(tail) || string(text[:len(head)]) != head || string(text[len(text)-len(tail):]) != tail {
		return b, false
	}
	text = text[len(head) : len(text)-len(tail)]
	for _, c := range text {
		if c < ' ' || c == '"' || c == '\\' {
			return b, false
		}
	}
	if !utf8.Valid(text) {
		return b, false
	}
	return tool.TextBlock(string(text)), true
}

func (o *output) rendered() *tool.Rendered {
	r := &tool.Rendered{Meta: o.Meta}
	switch {
	case o.ContentError != "":
		r.Err = errors.New(o.ContentError)
	case o.MetaError != "":
		r.Err = errors.New(o.MetaError)
	default:
		r.Content, r.Err = readBlocks(o.Content)
	}
	return r
}

// appendExec appends what a body sees of its call beside the arguments.
func appendExec(b []byte, e *tool.Exec) []byte {
	text := func(s string) { b = lossless.Str(strings.ToValidUTF8(s, "\uFFFD")).AppendTo(b) }
	b = append(b, `{"callId":`...)
	text(e.CallID)
	b = append(b, `,"rootCallId":`...)
	text(e.RootCallID)
	b = append(b, `,"name":`...)
	text(e.Name)
	b = append(b, `,"nested":`...)
	return append(strconv.AppendBool(b, e.Parent != 0), '}')
}

// sandboxError is the name of errors of the boundary itself: passed limits, dead
// machines. Nothing that a plugin throws carries it.
const sandboxError = "SandboxError"

// member enters another function of the tool with JSON arguments.
func (t *mountedTool) member(ctx context.Context, kind, what string, args any) (json.RawMessage, error) {
	text, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("write arguments of %s: %w", what, err)
	}
	raw, err := t.r.vm.Invoke(ctx, sandbox.Call{Kind: kind, Run: t.r.id, Fn: t.spec.Fn, Args: text, Entry: what + " of " + t.entry})
	if err != nil {
		return nil, toolError(err)
	}
	return raw, nil
}

// projection is member for a function whose failure has no consequence but its
// absence: only inspect tells of it.
func (t *mountedTool) projection(ctx context.Context, kind, what string, args any) (json.RawMessage, error) {
	raw, err := t.member(ctx, kind, what, args)
	if err != nil && ctx.Err() == nil && t.r.vm.Dead() == nil {
		t.r.m.fault(err)
	}
	return raw, err
}

type argsAndValue struct {
	Args  lossless.Text `json:"args"`
	Value lossless.Text `json:"value"`
}

func (t *mountedTool) render(ctx context.Context, args, value lossless.Text) ([]tool.Block, error) {
	raw, err := t.member(ctx, "render", "output.render", argsAndValue{args, value})
	if err != nil {
		return nil, err
	}
	return readBlocks(raw)
}

func (t *mountedTool) meta(ctx context.Context, args, value lossless.Text) (lossless.Text, error) {
	return t.member(ctx, "meta", "output.presentationMeta", argsAndValue{args, value})
}

func (t *mountedTool) finalize(ctx context.Context, exec *tool.Exec, res *tool.Result) ([]tool.Block, error) {
	raw, err := t.projection(ctx, "finalize", "finalizeContent", struct {
		Exec   *tool.Exec   `json:"exec"`
		Result *tool.Result `json:"result"`
	}{exec, res})
	if err != nil || absent(raw) {
		return nil, err
	}
	return readBlocks(raw)
}

func (t *mountedTool) safe(ctx context.Context, args lossless.Text) bool {
	raw, err := t.projection(ctx, "safe", "isConcurrencySafe", struct {
		Args lossless.Text `json:"args"`
	}{args})
	return err == nil && string(raw) == "true"
}

func (t *mountedTool) presentCall(ctx context.Context, args lossless.Text) (*tool.Card, error) {
	return card(t.projection(ctx, "presentCall", "presentCall", struct {
		Args lossless.Text `json:"args"`
	}{args}))
}

func (t *mountedTool) presentResult(ctx context.Context, args lossless.Text, res *tool.Result) (*tool.Card, error) {
	return card(t.projection(ctx, "presentResult", "presentResult", struct {
		Args   lossless.Text `json:"args"`
		Result *tool.Result  `json:"result"`
	}{args, res}))
}

func card(raw json.RawMessage, err error) (*tool.Card, error) {
	if err != nil || absent(raw) {
		return nil, err
	}
	c := new(tool.Card)
	return c, json.Unmarshal(raw, c)
}

// absent says whether a function returned nothing.
func absent(raw json.RawMessage) bool {
	return len(raw) == 0 || bytes.Equal(raw, null)
}

// view is what a façade shows of a tool.
type view struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Parameters  lossless.Text `json:"parameters"`
}

func viewOf(v *tool.View) view {
	return view{v.Name, v.Description, v.Parameters.JSON()}
}

func (r *run) schemas(context.Context, json.RawMessage) (any, error) {
	views := []view{}
	for _, v := range r.m.set.cfg.Registry.List(tool.ScopeOf(r.c)) {
		views = append(views, viewOf(v))
	}
	return views, nil
}

func (r *run) schema(_ context.Context, payload json.RawMessage) (any, error) {
	var p struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return nil, fmt.Errorf("read name: %w", err)
	}
	v, ok := r.m.set.cfg.Registry.Get(p.Name, tool.ScopeOf(r.c))
	if !ok {
		return nil, nil
	}
	return viewOf(v), nil
}

// exec is the running call that a message names.
func (r *run) exec(payload json.RawMessage) *tool.Exec {
	id, err := callOf(payload)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.execs[id]
}

// progress reports live output. The report runs on a goroutine of its own: the
// registry drops what comes too fast.
func (r *run) progress(payload json.RawMessage) {
	exec := r.exec(payload)
	var p tool.Progress
	if exec == nil || json.Unmarshal(payload, &p) != nil {
		return
	}
	r.m.set.spawn(func() { exec.Progress(p) })
}

func (r *run) deferContext(payload json.RawMessage) {
	exec := r.exec(payload)
	var p struct {
		Message json.RawMessage `json:"message"`
	}
	if exec == nil || json.Unmarshal(payload, &p) != nil {
		return
	}
	var text string
	if json.Unmarshal(p.Message, &text) == nil {
		exec.DeferContext(tool.Message{Content: []tool.Block{tool.TextBlock(text)}})
		return
	}
	var m tool.Message
	if json.Unmarshal(p.Message, &m) == nil {
		exec.DeferContext(m)
	}
}

func (r *run) conclude(payload json.RawMessage) {
	if exec := r.exec(payload); exec != nil {
		exec.ConcludeTurn()
	}
}
