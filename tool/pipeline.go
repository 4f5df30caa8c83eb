package tool

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
)

// maxNesting bounds how deep calls may nest through Call.Parent.
const maxNesting = 64

// Execute runs a call on the caller's goroutine and returns its one result.
// Every fault is a result; the package comment tells the stages.
func (r *Registry) Execute(ctx context.Context, call Call) *Result {
	e := r.expect(call.Name, call.Scope)
	x := r.newExec(ctx, call, e)
	defer x.arrive() // where it did not come as far as the body
	ctx = WithActor(ctx, Actor{Scope: call.Scope, Mount: ActorOf(ctx).Mount, Exec: x})
	result := r.stages(ctx, x, e, call)
	x.end() // of calls without a body
	result = r.finalize(ctx, x, e, result)
	Completed.Emit(ctx, r.ctx, Finished{Exec: x, Result: result}, r.hearing(x))
	return result
}

func (r *Registry) newExec(ctx context.Context, call Call, e *entry) *Exec {
	x := &Exec{
		Token: Token(lastToken.Add(1)), CallID: call.CallID, Name: call.Name, Arguments: null,
		Scope: call.Scope, registry: r, ctx: ctx, onProgress: call.OnProgress,
	}
	if x.CallID == "" {
		x.CallID = "call-" + strconv.FormatUint(uint64(x.Token), 10)
	}
	x.RootCallID = x.CallID
	if p := call.Parent; p != nil {
		x.Parent, x.RootCallID, x.depth = p.Token, p.RootCallID, p.depth+1
	}
	if e != nil {
		x.Tool, x.found = e.view, e
	}
	x.reach = r.reaching(x, x.Tool != nil && x.Tool.Unrouted)
	x.answer = x.reach
	if x.Tool != nil && x.Tool.Sealed {
		x.answer = r.reaching(x, true)
	}
	return x
}

var null = lossless.Text("null")

// stages runs a call up to the result that FinalizeContent gets.
func (r *Registry) stages(ctx context.Context, x *Exec, e *entry, call Call) *Result {
	args, err := parseArguments(call.Arguments)
	if err != nil {
		return errorResult(err)
	}
	switch {
	case ctx.Err() != nil:
		x.Arguments = args.Encode()
		return errorResult(abortedBeforeDispatch)
	case e == nil:
		x.Arguments = args.Encode()
		return errorResult(r.unknown(x.Name, x.Scope))
	case x.depth > maxNesting:
		x.Arguments = args.Encode()
		return errorResult(&Error{Name: "ToolNestingError", Code: CodeNesting, Message: fmt.Sprintf(
			"tool %q was not called: %d calls are nested already, the limit; a tool must not call itself without end", x.Name, maxNesting)})
	}
	valid, err := validArguments(e, args)
	x.Arguments = valid
	if err != nil {
		return errorResult(err)
	}

	denial, err := r.decide(ctx, x)
	if err != nil {
		return errorResult(err)
	}
	var result *Result
	if denial != nil {
		result = errorResult(denial)
	} else if result, err = r.around(ctx, x, e, call.Timeout); err != nil {
		return errorResult(err)
	}
	if result, err = r.postExecute(ctx, x, e, unlessAborted(ctx, result)); err != nil {
		return errorResult(err)
	}
	return unlessAborted(ctx, result)
}

// around runs the body within the wrappers of tools/execute.
func (r *Registry) around(ctx context.Context, x *Exec, e *entry, limit time.Duration) (*Result, error) {
	var produced *Result
	result, err := AroundExecute.Run(ctx, r.ctx, x, func(inner context.Context, _ *Exec) (*Result, error) {
		inner, stop := fuse(ctx, inner)
		defer stop()
		produced = r.body(inner, x, e, limit)
		return produced, nil
	}, x.answer)
	deferred, conclude := x.end()
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, fmt.Errorf("tools/execute: a listener returned no result; return what next returns, or a result of its own")
	}
	next := *result
	if result != produced {
		next = *r.adopt(ctx, x, e, result, produced)
	}
	next.Contexts = bound(slices.Concat(deferred, next.Contexts))
	next.ConcludeTurn = !next.IsError && (conclude || next.ConcludeTurn)
	return &next, nil
}

// adopt checks a result that a wrapper made. One that says what the body's own
// result says keeps that one's content, without asking the tool again.
func (r *Registry) adopt(ctx context.Context, x *Exec, e *entry, made, produced *Result) *Result {
	if _, err := checkedContexts(made.Contexts); err != nil {
		return errorResult(fmt.Errorf("tools/execute: %w", err))
	}
	var next Result
	switch {
	case made.IsError:
		next = *adoptFailure(x, made)
	case produced != nil && !produced.IsError && bytes.Equal(made.Value, produced.Value):
		next = *produced
	default:
		next = *r.project(ctx, x, e, made.Value)
	}
	next.Contexts, next.ConcludeTurn = made.Contexts, made.ConcludeTurn
	return &next
}

func adoptFailure(x *Exec, made *Result) *Result {
	failure := &Error{Message: fmt.Sprintf("tool %q failed", x.Name)}
	if made.Error != nil && made.Error.Message != "" {
		failure = &Error{Name: made.Error.Name, Code: made.Error.Code, Message: made.Error.Message}
	}
	next := errorResult(failure)
	if len(made.Content) > 0 && checkBlocks(made.Content) == nil {
		next.Content = made.Content
	}
	return next
}

func checkedContexts(contexts []Message) ([]Message, error) {
	for i, m := range contexts {
		if err := checkBlocks(m.Content); err != nil {
			return nil, fmt.Errorf("contexts[%d]: %w", i, err)
		}
	}
	return contexts, nil
}

// postExecute lets listeners accept, change or block a result.
func (r *Registry) postExecute(ctx context.Context, x *Exec, e *entry, result *Result) (*Result, error) {
	d, err := PostExecute.Run(ctx, r.ctx, Finished{Exec: x, Result: result},
		func(context.Context, Finished) (PostDecision, error) { return Accept(), nil }, x.answer)
	if err != nil {
		return nil, err
	}
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("tools/post-execute: %w", err)
	}
	if d.Kind == PostBlock {
		feedback := d.Feedback
		if feedback == "" {
			feedback = fmt.Sprintf("the result of tool %q was withheld", x.Name)
		}
		next := errorResult(&Error{Name: "ToolBlockedError", Code: CodeBlocked, Message: feedback})
		next.Contexts = bound(d.Contexts)
		return next, nil
	}
	next := *result
	switch {
	case d.Content != nil:
		next.Content = d.Content
	case d.Value != nil && result.IsError:
		return nil, fmt.Errorf("tools/post-execute: a listener replaced the value of a call that failed; only content can be replaced")
	case d.Value != nil && !bytes.Equal(d.Value, result.Value):
		next = *r.project(ctx, x, e, d.Value)
		next.Contexts = result.Contexts
		next.ConcludeTurn = result.ConcludeTurn && !next.IsError
	}
	next.Contexts = bound(slices.Concat(next.Contexts, d.Contexts))
	return &next, nil
}

// finalize gives the tool the last word on its content.
func (r *Registry) finalize(ctx context.Context, x *Exec, e *entry, result *Result) *Result {
	if e == nil || e.def.FinalizeContent == nil {
		return result
	}
	next := *result
	r.soft(context.WithoutCancel(ctx), e, x.Scope, "finalizeContent", func(ctx context.Context) {
		content, err := e.def.FinalizeContent(ctx, x, result)
		if err == nil && content != nil && checkBlocks(content) == nil {
			next.Content = content
		}
	})
	return &next
}

// reaching selects the waterfall listeners that a call meets: those of its
// scopes, and those of mounts unless the tool keeps them away.
func (r *Registry) reaching(x *Exec, unrouted bool) cordis.DispatchOption {
	return cordis.WithFilter(func(c *cordis.Context) bool {
		return x.Scope.Within(ScopeOf(c)) && !(unrouted && placesOf(c) != nil)
	})
}

// hearing selects the observers of a call: those of its scopes.
func (r *Registry) hearing(x *Exec) cordis.DispatchOption {
	return cordis.WithFilter(func(c *cordis.Context) bool { return x.Scope.Within(ScopeOf(c)) })
}

// parseArguments reads the text of a call's arguments; none is an empty object.
func parseArguments(text lossless.Text) (lossless.Value, error) {
	if len(text) == 0 {
		return lossless.Obj(), nil
	}
	if len(text) > limits.Arguments {
		return lossless.Value{}, invalidArguments(fmt.Sprintf("%d bytes, more than the limit of %d", len(text), limits.Arguments))
	}
	v, err := lossless.Parse(text)
	if err == nil {
		err = lossless.CheckNumbers("", v)
	}
	if err != nil {
		return v, invalidArguments(err.Error())
	}
	return v, nil
}

// validArguments returns the arguments with defaults filled in; of invalid
// ones the text as it came.
func validArguments(e *entry, v lossless.Value) (lossless.Text, error) {
	filled, err := e.def.Parameters.ApplyDefaults(v)
	if err != nil {
		return v.Encode(), invalidArguments(err.Error())
	}
	if violations := e.def.Parameters.Validate("", filled); len(violations) > 0 {
		return v.Encode(), invalidArguments(schema.Join(violations))
	}
	return filled.Encode(), nil
}

func invalidArguments(why string) error {
	return &Error{Name: "ToolArgsError", Code: CodeInvalidArgs, Message: "invalid arguments: " + why}
}

// unknown says that a name means nothing and, if it once did, what became of it.
func (r *Registry) unknown(name string, s *Scope) error {
	message := "unknown tool " + quote(name)
	if reason := r.absent(name, s); reason != "" {
		message += " — " + reason
	} else if note := r.gone.lookup(name, s); note != "" {
		message += " — " + note
	} else if near := r.nearest(name, s); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	return &Error{Name: "UnknownToolError", Code: CodeUnknownTool, Message: message}
}

// nearest is the tool that a scope sees and that a name was most likely meant to be.
func (r *Registry) nearest(name string, s *Scope) string {
	var names []string
	for _, v := range r.List(s) {
		names = append(names, v.Name)
	}
	return plain.Nearest(name, names)
}

var (
	abortedBeforeDispatch = &Error{Name: "AbortError", Code: CodeAbortedBeforeDispatch, Message: "tool call aborted before dispatch"}
	aborted               = &Error{Name: "AbortError", Code: CodeAborted, Message: "tool call aborted"}
)

// unlessAborted replaces a success of a cancelled call; failures keep their own error.
func unlessAborted(ctx context.Context, result *Result) *Result {
	if result.IsError || ctx.Err() == nil {
		return result
	}
	return errorResult(aborted)
}

// bound cuts contexts to the limit of one call.
func bound(contexts []Message) []Message {
	if len(contexts) > maxContexts {
		return contexts[:maxContexts]
	}
	return contexts
}
