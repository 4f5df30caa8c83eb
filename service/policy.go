package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// Ask asks policy whether a service may do what payload describes, and returns
// nil if it may. It dispatches ev on c, the provider's own context; where no
// listener decides, the act is allowed.
//
// A denial is an [*Error] with the given code whose message is the listener's
// reason. A decision of kind ask goes to the [tool.Approval] service; without
// one it denies. Policy fails closed: a listener's error, a panic and a decision
// that is not valid deny as well. An [*Error] that a listener returns is passed on
// with its own code, so that a policy in Go can refuse with FS_NOT_OBSERVED.
//
// Only listeners on the scope chain of the actor ([tool.ActorOf]) hear it: of another
// session's none does, global ones always.
//
// When ctx has ended, its error is returned as it is.
//
// Listeners run on the caller's goroutine: hold no lock.
func Ask[T any](ctx context.Context, c *cordis.Context, ev *cordis.Waterfall[T, tool.Decision], code string, payload T) error {
	scope := tool.ActorOf(ctx).Scope
	d, err := ev.Run(ctx, c, payload, func(context.Context, T) (tool.Decision, error) { return tool.Allow(), nil },
		cordis.WithFilter(func(listener *cordis.Context) bool { return scope.Within(tool.ScopeOf(listener)) }))
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if err == nil {
		err = d.Validate()
	}
	if e := new(Error); errors.As(err, &e) {
		return e
	}
	if err != nil {
		text := plain.Cut(err.Error(), limits.ErrorText)
		return &Error{Code: code, Message: fmt.Sprintf("%s was denied, because its policy failed: %s", ev.Name(), text), Err: err}
	}
	switch d.Kind {
	case tool.DecisionAllow:
		return nil
	case tool.DecisionAsk:
		return approve(ctx, c, ev.Name(), code, payload, d.Reason)
	}
	return denial(code, d.Reason, ev.Name()+" was denied by policy")
}

// approve puts the act to a person.
func approve(ctx context.Context, c *cordis.Context, name, code string, payload any, reason string) error {
	approver, ok := tool.Approval.Get(c)
	if !ok {
		return denial(code, reason, name+" requires approval, and there is nobody to ask")
	}
	args, err := json.Marshal(payload)
	if err != nil {
		return denial(code, "", fmt.Sprintf("%s was denied, because it cannot be shown for approval: %v", name, err))
	}
	outcome, refusal := contained(func() (tool.ApprovalOutcome, error) {
		exec := &tool.Exec{CallID: name, RootCallID: name, Name: name, Arguments: args, Scope: tool.ActorOf(ctx).Scope}
		return approver.Approve(context.WithValue(ctx, intentKey{}, payload), exec, reason)
	})
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if refusal != "" {
		return denial(code, refusal, "")
	}
	switch outcome {
	case tool.AllowedOnce:
		return nil
	case tool.ApprovalRejected:
		return denial(code, "", "the user rejected "+name)
	case tool.ApprovalCancelled:
		return denial(code, "", "approval for "+name+" was cancelled")
	case tool.ApprovalNoAgent:
		return denial(code, "", name+" requires approval, but it has no agent to route it through")
	}
	return denial(code, "", name+" requires approval, but no approval channel is available")
}

// contained takes a panic of an approver, and an error that is no refusal, for no
// answer.
func contained(fn func() (tool.ApprovalOutcome, error)) (outcome tool.ApprovalOutcome, refusal string) {
	defer func() {
		if recover() != nil {
			outcome = tool.ApprovalUnavailable
		}
	}()
	outcome, err := fn()
	if r := new(tool.Refusal); errors.As(err, &r) {
		return tool.ApprovalRejected, r.Reason
	}
	if err != nil {
		return tool.ApprovalUnavailable, ""
	}
	return outcome, ""
}

type intentKey struct{}

// IntentOf gives what an approver is asked about in ctx: the payload of the event
// that [Ask] dispatched. It is false where the approver is asked about a tool.
func IntentOf(ctx context.Context) (payload any, ok bool) {
	payload = ctx.Value(intentKey{})
	return payload, payload != nil
}

func denial(code, reason, otherwise string) error {
	if strings.TrimSpace(reason) == "" {
		reason = otherwise
	}
	return &Error{Code: code, Message: plain.Cut(reason, limits.ErrorText)}
}
