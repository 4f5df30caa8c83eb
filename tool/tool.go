// Package tool holds the tools of a runtime and runs them: the registry with
// its scope layers, the pipeline of a call with its events, and the cards by
// which people see calls.
//
// A plugin registers a [Definition] through [Registry.Register]; the tool is
// there as long as the plugin's effect stands. Whoever wants it run hands a
// [Call] to [Registry.Execute] and gets one [Result]; faults are results too,
// with content "Error: <message>". Others see a [View], which cannot be run.
//
// # Layers
//
// A context registers into the scope that it carries ([WithScope]), else into
// the global layer. A scope sees the tools of its whole chain, the nearest
// first; of the global ones those that every [Registry.Restrict] on the chain
// admits. Temporary plugins ([WithMount]) never take a name that is visible
// where they register. Layers come with the first registration and go with the
// last.
//
// [Registry.List] has a fixed order: the composition by name, then mounts by
// number, each with its tools in the order of their first registration. A
// plugin that parks or restarts finds its tools in their old places.
//
// # Staging
//
// What a fiber of a [cordis.Stage] registers is held back until that is committed.
// Then all of it is there and what the stage replaces is not, in one section of the
// registry's lock: who lists or calls meanwhile finds each name once. A tool may take
// the name of one whose owner the stage takes; a plugin file so takes over the tools
// of temporary plugins in its scope and below. Calls that had found an old tool run
// on it, if they come as far as its body within the drain limit of the runtime.
// [Changed] tells of each name once. Guards, restrictions, withholdings and the
// policy of a stage follow at the runtime's own swap.
//
// # The stages of a call
//
//  1. The arguments are copied as lossless JSON (limits.Arguments,
//     limits.Depth), then the call's cancellation, its name, its nesting and its
//     arguments are checked, in this order; defaults are filled in.
//  2. tools/pre-execute, then the guards, then the policy; a decision to ask
//     goes to the service "approval", once. What was denied stays denied.
//  3. tools/execute around the body; in it: the owner is entered, Execute runs,
//     its value is validated, Render and Meta make content and meta of it.
//  4. tools/post-execute, of denials and failures too.
//  5. FinalizeContent, then tools/result.
//
// An error that a listener returns in 2, 3 or 4 is the result; the rest of
// these stages is skipped, 5 is not. So policy decides only about calls that
// could run, on the very arguments that the body gets:
//
//	a call …                              pre-execute  execute  post-execute  result
//	with arguments that are not valid     -            -        -             sees it
//	of a tool that is unknown or has gone -            -        -             sees it
//	cancelled before it began             -            -        -             sees it
//	denied by a listener or an approval   sees it      -        sees it       sees it
//	denied by a guard or the policy       sees it      -        sees it       sees it
//	whose listener returned an error      sees it      maybe    -             sees it
//	whose body failed or was cancelled    sees it      sees it  sees it       sees it
//	that succeeded                        sees it      sees it  sees it       sees it
//	running when the listener came        -            -        sees it       sees it
//	of an Unrouted tool, by a mount       -            -        -             sees it
//	of a Sealed tool, by a mount          sees it      -        -             sees it
//
// A listener hears the calls of its context's scope and of the scopes above
// it; one without a scope hears all. Listeners of mounts are those whose
// context carries a mount; they must not be registered as global listeners of
// cordis, which no filter reaches.
//
// # Time and cancellation
//
// The context of Execute cancels a call. A body that has started is always
// awaited. Cancelled before the body: code [CodeAbortedBeforeDispatch]. Later:
// a success is replaced by [CodeAborted], a failure keeps its own error unless
// it is the context's. When the limit (Definition.Timeout or Call.Timeout, the
// smaller) passes, the result is [CodeTimeout], whatever the body made of it.
//
// A running body is a tracked call of its owner's fiber: an unmount waits for
// it, and refuses new ones. A call of a tool that has gone says with whom it
// went, for the last limits.RememberedGone tools.
//
// # Concurrency and ownership
//
// Everything may be called from everywhere, from tools and listeners too. The
// package starts no goroutine: a call runs on its caller's. Lookups and dispatch
// wait for nobody; a list is a snapshot, made by the first who asks after a
// change. Writers take Registry.mu, and within it the locks of the remembered
// tools and of a mount's places; no lock is held while a function of a tool, a
// listener, a guard or a disposer runs. Panics in them are their errors.
package tool

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
)

// A Definition is what a plugin registers: one tool. Registry.Register copies
// it, so later changes to the struct have no effect.
//
// Each function of a definition is user code: it runs as a tracked call of the
// fiber that registered the tool, without any lock held, and a panic in it is
// that tool's error. Argument and value texts are snapshots; they must not be
// written to.
type Definition struct {
	// Name is what the model calls; it matches limits.ToolName.
	Name string
	// Description is what the model reads.
	Description string
	// Title is what a person reads; empty means Name.
	Title string
	// Kind says what the tool does. It is the kind of the generic card and
	// decides Annotations where those are nil. Empty means KindOther.
	Kind Kind
	// Parameters describes the arguments; its root is an object. Arguments
	// that reach any function of the definition are valid under it and have
	// its defaults filled in.
	Parameters *schema.Schema
	// Output describes the value and how it becomes content.
	Output Output
	// Execute is the body. It is started at most once for a call and always
	// awaited; cancellation and the time limit arrive through ctx.
	Execute func(ctx context.Context, exec *Exec) (Outcome, error)
	// Refused is told why an outcome of Execute is an error after all: its value is
	// not valid, or its projection failed. Optional.
	Refused func(err error)
	// FinalizeContent has the last word on the content of each outcome of a
	// call of this tool, errors included. Nil blocks keep the content, and so
	// do an error and a panic. Optional.
	FinalizeContent func(ctx context.Context, exec *Exec, r *Result) ([]Block, error)
	// Timeout bounds the body and its rendering through ctx; what comes later
	// is an error with CodeTimeout. 0 means no limit of its own.
	Timeout time.Duration
	// ConcurrencySafe says whether a call with these arguments may overlap
	// with others; nil, invalid arguments and a panic mean no. Optional.
	ConcurrencySafe func(ctx context.Context, args lossless.Text) bool
	// PresentCall and PresentResult build the cards that a person sees. A nil
	// card, an invalid one, an error and a panic mean the generic card. Optional.
	PresentCall   func(ctx context.Context, args lossless.Text) (*Card, error)
	PresentResult func(ctx context.Context, args lossless.Text, r *Result) (*Card, error)
	// Annotations are hints for clients; nil means that Kind decides.
	Annotations *Annotations
	// Unrouted keeps calls of this tool away from the waterfall listeners of
	// mounted plugins, so that no mount can refuse, wrap or rewrite them.
	Unrouted bool
	// Sealed keeps only those of tools/execute and tools/post-execute away: a
	// mount may refuse a call, but not replace its answer. For tools whose body
	// has consequences that the caller must learn of.
	Sealed bool
}

// Output describes the canonical value of a tool and its projections.
type Output struct {
	// Schema describes the value.
	Schema *schema.Schema
	// Render turns a valid value into the content that the model reads.
	Render func(ctx context.Context, args, value lossless.Text) ([]Block, error)
	// Meta computes presentation data, which only people see. It is asked only
	// for calls without a parent. Optional.
	Meta func(ctx context.Context, args, value lossless.Text) (lossless.Text, error)
}

// An Outcome is what a body returns.
type Outcome struct {
	// Value is the canonical value; it must be valid under Output.Schema.
	Value lossless.Text
	// Rendered is what Render and Meta would return for exactly this value,
	// when the body knows it already. It saves asking them; they are asked all
	// the same when a listener replaces the value.
	Rendered *Rendered
}

// Rendered is a projection that was computed together with the value.
type Rendered struct {
	Content []Block
	Meta    lossless.Text
	// Err, if any, is why the rendering failed.
	Err error
}

// Annotations are the hints of the Model Context Protocol; nil means unsaid.
type Annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// A Mode says whether a call may overlap with others.
type Mode string

// The modes of a call.
const (
	Parallel  Mode = "parallel"
	Exclusive Mode = "exclusive"
)

// AnnotationsFor returns what the kind of a tool says about it, or nil where
// the kind says nothing.
func AnnotationsFor(k Kind) *Annotations {
	yes, no := true, false
	switch k {
	case KindRead, KindSearch:
		return &Annotations{ReadOnly: &yes, OpenWorld: &no}
	case KindFetch:
		return &Annotations{ReadOnly: &yes, OpenWorld: &yes}
	case KindEdit, KindMove, KindDelete:
		return &Annotations{ReadOnly: &no, Destructive: &yes, OpenWorld: &no}
	case KindExecute:
		return &Annotations{ReadOnly: &no, Destructive: &yes, OpenWorld: &yes}
	}
	return nil
}

var toolName = regexp.MustCompile(limits.ToolName)

// reservedName is kept for a tool that composes others.
const reservedName = "run_code"

// check says what is wrong with a definition, naming the tool and the fix.
func (d *Definition) check() error {
	if d == nil {
		return fmt.Errorf("register tool: the definition is nil")
	}
	if !toolName.MatchString(d.Name) {
		return fmt.Errorf("tool name %s is not allowed: a name matches %s (letters, digits, _ and -, at most 64)",
			quote(d.Name), limits.ToolName)
	}
	if d.Name == reservedName {
		return fmt.Errorf("tool name %q is reserved: choose another name", d.Name)
	}
	if d.Kind != "" && !d.Kind.valid() {
		return fmt.Errorf("tool %q has the unknown kind %s; allowed: %s", d.Name, quote(string(d.Kind)), kindList)
	}
	if d.Parameters == nil {
		return fmt.Errorf("tool %q must declare parameters; for none, declare an object without properties", d.Name)
	}
	if t := d.Parameters.RootType(); t != "object" {
		return fmt.Errorf("tool %q parameters must have an object at the root, not %s", d.Name, quote(t))
	}
	if d.Output.Schema == nil || d.Output.Render == nil {
		return fmt.Errorf("tool %q must declare output { schema, render, presentationMeta? }", d.Name)
	}
	if d.Execute == nil {
		return fmt.Errorf("tool %q must declare execute", d.Name)
	}
	if d.Timeout < 0 {
		return fmt.Errorf("tool %q timeoutMs must be a positive finite number (leave it out for no limit), got %s", d.Name, d.Timeout)
	}
	return nil
}
