package tool

import (
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
)

// The events of a call, in the order in which it meets them. The package
// comment says which calls each one sees.
var (
	// PreExecute decides whether a call may run; the innermost decision is to
	// allow. An error of a listener is the result of the call.
	PreExecute = cordis.NewWaterfall[*Exec, Decision]("tools/pre-execute", cordis.ForPlugins())
	// AroundExecute wraps the body. A wrapper may pass another context on,
	// return another result, or return without running the body. A success
	// that it makes itself is validated and rendered again.
	AroundExecute = cordis.NewWaterfall[*Exec, *Result]("tools/execute", cordis.ForPlugins())
	// PostExecute decides what the model gets to see of a result; the
	// innermost decision is to accept it as it is.
	PostExecute = cordis.NewWaterfall[Finished, PostDecision]("tools/post-execute", cordis.ForPlugins())
	// Completed tells of every result, after nothing can change it any more.
	Completed = cordis.NewEmit[Finished]("tools/result", cordis.ForPlugins())
	// Changed tells that a tool came or went. It is not coalesced, and it
	// reaches listeners of every scope.
	Changed = cordis.NewEmit[Change]("tools/change", cordis.ForPlugins())
	// Progressed tells of live output. Only the program itself listens.
	Progressed = cordis.NewEmit[ProgressReport]("tools/progress")
)

// Finished is a call with its result.
type Finished struct {
	Exec   *Exec   `json:"exec"`
	Result *Result `json:"result"`
}

// A Change is one registration or disposal of a tool.
type Change struct {
	// Action is ChangeRegistered or ChangeDisposed.
	Action string `json:"action"`
	Name   string `json:"name"`
	Scope  *Scope `json:"-"`
	Mount  *Mount `json:"-"`
}

// The actions of a Change.
const (
	ChangeRegistered = "registered"
	ChangeDisposed   = "disposed"
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
	// Content replaces the content and keeps value and meta; nil keeps it.
	Content []Block `json:"content,omitempty"`
	// Value replaces the value of a success, which is validated and rendered
	// again; nil keeps it. Content and Value exclude each other.
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
