package service_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

type act struct {
	Path string `json:"path"`
}

var actIntent = cordis.NewWaterfall[act, tool.Decision]("policytest/act-intent", cordis.ForPlugins())

type listener func(context.Context, act, func(context.Context) (tool.Decision, error)) (tool.Decision, error)

type approver func(*tool.Exec, string) (tool.ApprovalOutcome, error)

func (a approver) Approve(_ context.Context, e *tool.Exec, reason string) (tool.ApprovalOutcome, error) {
	return a(e, reason)
}

func decided(d tool.Decision) listener {
	return func(context.Context, act, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		return d, nil
	}
}

func answered(o tool.ApprovalOutcome) approver {
	return func(*tool.Exec, string) (tool.ApprovalOutcome, error) { return o, nil }
}

func TestAsk(t *testing.T) {
	tests := []struct {
		name     string
		listener listener
		approver approver
		code     string // "" is allowed
		text     string // a part of the message
	}{
		{name: "no_listener"},
		{name: "allow", listener: decided(tool.Allow())},
		{name: "deny", listener: decided(tool.Deny("not here")), code: "TEST_DENIED", text: "not here"},
		{name: "deny_without_reason", listener: decided(tool.Deny(" ")), code: "TEST_DENIED", text: "policytest/act-intent was denied by policy"},
		{name: "ask_nobody", listener: decided(tool.Ask("is it fine?")), code: "TEST_DENIED", text: "is it fine?"},
		{name: "ask_nobody_without_reason", listener: decided(tool.Ask("")), code: "TEST_DENIED", text: "nobody to ask"},
		{name: "ask_allowed", listener: decided(tool.Ask("?")), approver: answered(tool.AllowedOnce)},
		{name: "ask_rejected", listener: decided(tool.Ask("?")), approver: answered(tool.ApprovalRejected), code: "TEST_DENIED", text: "the user rejected"},
		{name: "ask_cancelled", listener: decided(tool.Ask("?")), approver: answered(tool.ApprovalCancelled), code: "TEST_DENIED", text: "was cancelled"},
		{name: "ask_no_agent", listener: decided(tool.Ask("?")), approver: answered(tool.ApprovalNoAgent), code: "TEST_DENIED", text: "no agent"},
		{name: "ask_error", listener: decided(tool.Ask("?")), approver: func(*tool.Exec, string) (tool.ApprovalOutcome, error) {
			return tool.AllowedOnce, errors.New("gone")
		}, code: "TEST_DENIED", text: "no approval channel"},
		{name: "ask_panic", listener: decided(tool.Ask("?")), approver: func(*tool.Exec, string) (tool.ApprovalOutcome, error) {
			panic("gone")
		}, code: "TEST_DENIED", text: "no approval channel"},
		{name: "nonsense", listener: decided(tool.Decision{Kind: "maybe"}), code: "TEST_DENIED", text: "policy failed"},
		{name: "error", listener: func(context.Context, act, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			return tool.Allow(), errors.New("broken")
		}, code: "TEST_DENIED", text: "broken"},
		{name: "panic", listener: func(context.Context, act, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			panic("broken")
		}, code: "TEST_DENIED", text: "broken"},
		{name: "own_code", listener: func(context.Context, act, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			return tool.Decision{}, &service.Error{Code: "OTHER", Message: "read it first"}
		}, code: "OTHER", text: "read it first"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := cordis.New()
			if tt.listener != nil {
				if _, err := actIntent.On(root, tt.listener); err != nil {
					t.Fatal(err)
				}
			}
			if tt.approver != nil {
				if _, err := tool.Approval.Provide(root, tt.approver); err != nil {
					t.Fatal(err)
				}
			}
			err := service.Ask(t.Context(), root, actIntent, "TEST_DENIED", act{"x"})
			if got := service.CodeOf(err); got != tt.code || (err == nil) != (tt.code == "") {
				t.Fatalf("got %v with code %q, want code %q", err, got, tt.code)
			}
			if err != nil && !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %q, want a text with %q", err, tt.text)
			}
		})
	}
}

// TestAskShows: the approver sees what is to be done.
func TestAskShows(t *testing.T) {
	root := cordis.New()
	_, _ = actIntent.On(root, decided(tool.Ask("why")))
	var name, args, reason string
	_, err := tool.Approval.Provide(root, approver(func(e *tool.Exec, r string) (tool.ApprovalOutcome, error) {
		name, args, reason = e.Name, string(e.Arguments), r
		return tool.AllowedOnce, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Ask(t.Context(), root, actIntent, "TEST_DENIED", act{"/a"}); err != nil {
		t.Fatal(err)
	}
	if name != "policytest/act-intent" || args != `{"path":"/a"}` || reason != "why" {
		t.Errorf("the approver saw %q %s %q", name, args, reason)
	}
}

// TestAskEnded: the end of the caller is not a denial.
func TestAskEnded(t *testing.T) {
	root := cordis.New()
	ctx, cancel := context.WithCancel(t.Context())
	_, _ = actIntent.On(root, func(context.Context, act, func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		cancel()
		return tool.Deny("late"), nil
	})
	if err := service.Ask(ctx, root, actIntent, "TEST_DENIED", act{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
}
