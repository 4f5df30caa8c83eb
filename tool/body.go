package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
)

func (e *entry) label(part string) string { return fmt.Sprintf("tool %q %s", e.def.Name, part) }

// enter begins a tracked call of the tool's owner, which acts in the scope s.
func (r *Registry) enter(ctx context.Context, e *entry, s *Scope, label string) (context.Context, func(), error) {
	inner, done, err := e.fiber.Enter(ctx, label)
	if err == nil && e.gone.Load() {
		done()
		err = cordis.ErrInactive
	}
	switch {
	case err == nil:
		return e.within(inner, s), done, nil
	case e.gone.Load():
		return nil, nil, r.unknown(e.def.Name, e.scope)
	default:
		return nil, nil, &Error{Name: "ToolUnavailableError", Code: CodeUnavailable, Err: err, Message: fmt.Sprintf(
			"tool %q takes no calls now: its owner, %s, is %s", e.def.Name, e.view.Ownership(), e.fiber.State())}
	}
}

// body runs a tool once and makes its outcome a result.
func (r *Registry) body(ctx context.Context, x *Exec, e *entry, limit time.Duration) *Result {
	if ctx.Err() != nil {
		return errorResult(abortedBeforeDispatch)
	}
	if own := e.def.Timeout; own > 0 && (limit <= 0 || own < limit) {
		limit = own
	}
	var late *Error
	if limit > 0 {
		late = &Error{Name: "ToolTimeoutError", Code: CodeTimeout,
			Message: fmt.Sprintf("tool %q timed out after %s", x.Name, milliseconds(limit))}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, late)
		defer cancel()
	}
	ctx, done, err := r.enter(ctx, e, x.Scope, e.execLabel)
	if err != nil {
		return errorResult(err)
	}
	defer done()
	x.arrive()
	x.began(ctx)
	outcome, err := r.attempt(e, "execute", func() (Outcome, error) { return e.def.Execute(ctx, x) })
	x.end()
	var result *Result
	if err == nil {
		if result, err = r.result(ctx, x, e, outcome); err == nil && ctx.Err() == nil {
			return result
		}
		if err != nil && e.def.Refused != nil {
			e.def.Refused(err)
		}
	}
	switch {
	case late != nil && errors.Is(context.Cause(ctx), late):
		if err == nil || isContextError(err) {
			return errorResult(late)
		}
		return errorResult(&Error{Name: late.Name, Code: late.Code, Err: err, Message: late.Message + ": " + errorText(err)})
	case err == nil: // cancelled; the caller of body replaces the success
		return result
	case ctx.Err() != nil && isContextError(err):
		return errorResult(aborted)
	}
	return errorResult(err)
}

func isContextError(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// milliseconds prints a limit as whole milliseconds where it is some.
func milliseconds(d time.Duration) string {
	if d >= time.Millisecond {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return d.String()
}

// attempt calls a function of a tool; a panic is that tool's error, and logged.
func (r *Registry) attempt(e *entry, part string, fn func() (Outcome, error)) (out Outcome, err error) {
	defer func() {
		if v := recover(); v != nil {
			failure := &panicError{value: v}
			r.ctx.Logger("tools").Error(fmt.Sprintf("%s of %s: %v\n%s", e.label(part), e.view.Ownership(), failure, debug.Stack()))
			err = fmt.Errorf("%s failed: %w", e.label(part), failure)
		}
	}()
	return fn()
}

// project makes a result of a value that a listener chose: validated and
// rendered again, as a tracked call of the tool's owner.
func (r *Registry) project(ctx context.Context, x *Exec, e *entry, value lossless.Text) *Result {
	ctx, done, err := r.enter(ctx, e, x.Scope, e.label("output.render"))
	if err != nil {
		return errorResult(err)
	}
	defer done()
	result, err := r.result(ctx, x, e, Outcome{Value: value})
	if err != nil {
		return errorResult(err)
	}
	return result
}

// result validates an outcome's value and renders it.
func (r *Registry) result(ctx context.Context, x *Exec, e *entry, outcome Outcome) (*Result, error) {
	value, err := checkedValue(e, outcome.Value)
	if err != nil {
		return nil, &Error{Name: "ToolOutputError", Code: CodeInvalidOutput, Err: err,
			Message: fmt.Sprintf("tool %q returned invalid output: %s", e.def.Name, err)}
	}
	rendered := outcome.Rendered
	if rendered == nil {
		rendered = r.render(ctx, x, e, value)
	}
	if rendered.Err != nil {
		return nil, rendered.Err
	}
	if err := checkBlocks(rendered.Content); err != nil {
		return nil, fmt.Errorf("output.render returned non-lossless JSON: %w", err)
	}
	result := &Result{Value: value, Content: rendered.Content}
	if result.Content == nil {
		result.Content = []Block{}
	}
	if rendered.Meta != nil && x.Parent == 0 {
		meta, err := checkedMeta(rendered.Meta)
		if err != nil {
			return nil, fmt.Errorf("output.presentationMeta returned non-lossless JSON: %w", err)
		}
		result.Meta = meta
	}
	return result, nil
}

// checkedValue returns a private copy of a value that is valid.
func checkedValue(e *entry, text lossless.Text) (lossless.Text, error) {
	if len(text) == 0 {
		return nil, errors.New("value is missing: execute must return a value")
	}
	if len(text) > limits.Result {
		return nil, fmt.Errorf("value has %d bytes, more than the limit of %d", len(text), limits.Result)
	}
	v, err := lossless.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("value is not lossless JSON: %w", err)
	}
	if err := lossless.CheckNumbers("value", v); err != nil {
		return nil, err
	}
	if violations := e.def.Output.Schema.Validate("value", v); len(violations) > 0 {
		return nil, errors.New(schema.Join(violations))
	}
	return v.Encode(), nil
}

func checkedMeta(text lossless.Text) (lossless.Text, error) {
	if len(text) > limits.Result {
		return nil, fmt.Errorf("%d bytes, more than the limit of %d", len(text), limits.Result)
	}
	v, err := lossless.Parse(text)
	if err != nil {
		return nil, err
	}
	return v.Encode(), nil
}

// render asks the tool for its projections.
func (r *Registry) render(ctx context.Context, x *Exec, e *entry, value lossless.Text) *Rendered {
	out := &Rendered{}
	_, err := r.attempt(e, "output.render", func() (_ Outcome, err error) {
		out.Content, err = e.def.Output.Render(ctx, x.Arguments, value)
		return
	})
	if err != nil {
		out.Err = fmt.Errorf("output.render failed: %w", err)
		return out
	}
	if e.def.Output.Meta == nil || x.Parent != 0 {
		return out
	}
	_, err = r.attempt(e, "output.presentationMeta", func() (_ Outcome, err error) {
		out.Meta, err = e.def.Output.Meta(ctx, x.Arguments, value)
		return
	})
	if err != nil {
		out.Err = fmt.Errorf("output.presentationMeta failed: %w", err)
	}
	return out
}

// fuse returns inner, which a wrapper may have replaced, so that it ends with
// outer too and still knows the chain of calls that outer carries.
func fuse(outer, inner context.Context) (context.Context, func()) {
	if inner.Done() == outer.Done() {
		if inner.Done() == nil { // neither ends, so inner need not come from outer
			return &chained{Context: inner, outer: outer}, func() {}
		}
		return inner, func() {}
	}
	ctx, cancel := context.WithCancelCause(&chained{Context: inner, outer: outer})
	stop := context.AfterFunc(outer, func() { cancel(context.Cause(outer)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// chained is a context with the values of another behind its own.
type chained struct {
	context.Context
	outer context.Context
}

func (c *chained) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.outer.Value(key)
}
