package tool

import (
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// The events of a call, in the order in which it meets them. The package
// comment has the table of which calls each one sees. A Go listener of
// AroundExecute may also pass another context on.
var (
	// PreExecute decides whether a call may run, before its body. A plugin's
	// listener sees calls of known tools with valid arguments, cordis_mount too, but
	// not cordis_inspect and cordis_unmount. Return next(), or a stricter decision;
	// one that throws, or answers anything else, denies the call.
	PreExecute = cordis.NewWaterfall[*Exec, Decision]("tools/pre-execute", cordis.ForPlugins())
	// AroundExecute wraps the body of a call that was allowed. A plugin's listener
	// does not see the cordis tools. Return await next(), or a result of your own,
	// whose value is validated and rendered again; what a listener throws is the
	// result.
	AroundExecute = cordis.NewWaterfall[*Exec, *Result]("tools/execute", cordis.ForPlugins())
	// PostExecute decides what the model gets to see of a result, also of calls that
	// were refused, failed or were cancelled; not of unknown tools or with invalid
	// arguments. A plugin's listener does not see the cordis tools. Return next(), or
	// a decision.
	PostExecute = cordis.NewWaterfall[Finished, PostDecision]("tools/post-execute", cordis.ForPlugins())
	// Completed tells of every result, when nothing can change it any more: also of
	// calls that were refused, failed or cancelled, of unknown tools, of the cordis
	// tools, and of calls that ran already when the listener came.
	Completed = cordis.NewEmit[Finished]("tools/result", cordis.ForPlugins())
	// Changed tells that a tool came or went. It is not coalesced, and it reaches
	// listeners of every scope.
	Changed = cordis.NewEmit[Change]("tools/change", cordis.ForPlugins())
	// Progressed tells of live output. Only the program itself listens.
	Progressed = cordis.NewEmit[ProgressReport]("tools/progress")
)

// Finished is a call with its result. A plugin's listener gets the two as
// arguments.
//
//dsh:args
type Finished struct {
	// Exec is the call.
	Exec *Exec `json:"exec"`
	// Result is what became of it.
	Result *Result `json:"result"`
}

// A Change is one registration or disposal of a tool.
//
//dsh:name ToolChange
type Change struct {
	// Action says whether the tool came or went.
	Action ChangeAction `json:"action"`
	// Name is the tool's.
	Name  string `json:"name"`
	Scope *Scope `json:"-"`
	Mount *Mount `json:"-"`
}

// ChangeAction is what became of a tool.
type ChangeAction string

// The actions of a Change.
const (
	ChangeRegistered ChangeAction = "registered"
	ChangeDisposed   ChangeAction = "disposed"
)

// ProgressReport is one piece of live output of a call.
type ProgressReport struct {
	Exec     *Exec
	Progress Progress
}

// DecisionKind is what a pre-execute listener decides.
type DecisionKind string

// The decisions about a call, from the loosest to the strictest.
const (
	DecisionAllow DecisionKind = "allow"
	DecisionAsk   DecisionKind = "ask"
	DecisionDeny  DecisionKind = "deny"
)

// A Decision says whether a call may run.
type Decision struct {
	// Kind is allow, ask (a person is asked) or deny.
	Kind DecisionKind `json:"kind"`
	// Reason is what the model reads when the call does not run.
	Reason string `json:"reason,omitempty"`
}

// Allow lets a call run.
func Allow() Decision { return Decision{Kind: DecisionAllow} }

// Deny refuses a call; the model reads the reason.
func Deny(reason string) Decision { return Decision{Kind: DecisionDeny, Reason: reason} }

// Ask makes a call wait for a person's approval.
func Ask(reason string) Decision { return Decision{Kind: DecisionAsk, Reason: reason} }

// Validate says what is wrong with a decision.
func (d Decision) Validate() error {
	if d.strictness() < 0 {
		return fmt.Errorf("a decision is { kind: 'allow' }, { kind: 'ask', reason? } or { kind: 'deny', reason }, not kind %s",
			quote(string(d.Kind)))
	}
	return nil
}

func (d Decision) strictness() int {
	switch d.Kind {
	case DecisionAllow:
		return 0
	case DecisionAsk:
		return 1
	case DecisionDeny:
		return 2
	}
	return -1
}

// Stricter returns the stricter of two valid decisions, the first where they
// are equally strict. It is how a listener that may only tighten combines its
// own decision with what next returned.
func Stricter(a, b Decision) Decision {
	if b.strictness() > a.strictness() {
		return b
	}
	return a
}

// PostKind is what a post-execute listener decides.
type PostKind string

// The decisions about a result.
const (
	PostAccept PostKind = "accept"
	PostBlock  PostKind = "block"
)

// A PostDecision says what becomes of a result.
type PostDecision struct {
	// Kind is accept, or block: the model reads Feedback as an error instead.
	Kind PostKind `json:"kind"`
	// Content replaces the content and keeps value and meta.
	Content []Block `json:"content,omitempty"`
	// Value replaces the value of a success, which is validated and rendered
	// again. Content and Value exclude each other.
	Value lossless.Text `json:"value,omitempty"`
	// Feedback is what the model reads of a blocked result.
	Feedback string `json:"feedback,omitempty"`
	// Contexts follow the result; at most 64 count.
	Contexts []Message `json:"contexts,omitempty"`
}

// Accept keeps a result as it is.
func Accept() PostDecision { return PostDecision{Kind: PostAccept} }

// Validate says what is wrong with a decision, whatever the result is.
func (d PostDecision) Validate() error {
	switch {
	case d.Kind != PostAccept && d.Kind != PostBlock:
		return fmt.Errorf("a decision is { kind: 'accept', content? or value?, contexts? } or { kind: 'block', feedback, contexts? }, not kind %s",
			quote(string(d.Kind)))
	case d.Kind == PostBlock && (d.Content != nil || d.Value != nil):
		return fmt.Errorf("a decision of kind 'block' takes feedback, not content or value")
	case d.Content != nil && d.Value != nil:
		return fmt.Errorf("a decision takes content or value, not both: a value is rendered again")
	}
	if err := checkBlocks(d.Content); err != nil {
		return err
	}
	for i, m := range d.Contexts {
		if err := checkBlocks(m.Content); err != nil {
			return fmt.Errorf("contexts[%d]: %w", i, err)
		}
	}
	return nil
}
