package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
)

// A Filter narrows which global tools a scope sees.
type Filter struct {
	// Allow admits only these, so not what is registered later; nil admits all.
	Allow []string
	// Deny admits all but these, what is registered later included.
	Deny []string
}

// Restrict narrows which global tools the scope of c and the scopes above it
// see. Several restrictions intersect; tools of scopes are never masked. Only
// the names of global tools of this moment are taken.
func (r *Registry) Restrict(c *cordis.Context, f Filter) (*cordis.Handle, error) {
	s := ScopeOf(c)
	if s == nil {
		return nil, errors.New("restrict tools: only a scope can be restricted, and this context registers into the global layer")
	}
	if f.Allow == nil && len(f.Deny) == 0 {
		return nil, errors.New("restrict tools: the filter is empty; name tools to allow or to deny")
	}
	x := &restriction{fiber: c.Fiber()}
	for _, name := range slices.Concat(f.Allow, f.Deny) {
		if err := r.checkGlobal(name, s); err != nil {
			return nil, err
		}
	}
	if f.Allow != nil {
		x.allow = set(f.Allow)
	}
	x.deny = set(f.Deny)
	return c.Effect("tools.restrict()", func(setup *cordis.Setup) error {
		r.change(s, func(l *layer) { replace(&l.narrowed, append(slices.Clip(load(&l.narrowed)), x)) })
		setup.Collect(func(context.Context) error {
			r.change(s, func(l *layer) { replace(&l.narrowed, remove(load(&l.narrowed), x)) })
			return nil
		})
		return nil
	})
}

func set(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

func (r *Registry) checkGlobal(name string, s *Scope) error {
	global := r.layer(nil)
	if global.get(name) != nil {
		return nil
	}
	why := "is not a global tool"
	if name == reservedName {
		why = "is reserved"
	}
	for l := s; l != nil; l = l.parent {
		if r.layer(l).get(name) != nil {
			why = "belongs to a scope, which restrictions never mask"
		}
	}
	known := "none"
	var names []string
	for _, e := range r.listed(global) {
		names = append(names, e.def.Name)
	}
	if len(names) > 0 {
		known = strings.Join(names, ", ")
	}
	return fmt.Errorf("restrict tools: %s %s; global tools: %s", quote(name), why, cutLine(known))
}

// change edits a layer.
func (r *Registry) change(s *Scope, edit func(*layer)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.edit(s, edit)
}

// guard is a registered refusal.
type guard struct {
	fn    func(*Exec) string
	owner string
	fiber *cordis.Fiber
}

// Guard adds a refusal for calls in the scope of c: a text that is not empty
// denies the call with that reason, and nothing overrides it. Guards run after
// all pre-execute listeners: the global ones, then those of the call's scopes,
// the farthest first; in each, in the order of registration. A guard that
// panics, or whose owner is going away, denies.
func (r *Registry) Guard(c *cordis.Context, fn func(*Exec) string) (*cordis.Handle, error) {
	if fn == nil {
		return nil, errors.New("guard tools: the function is nil")
	}
	g := &guard{fn: fn, fiber: c.Fiber()}
	var m *Mount
	if p := placesOf(c); p != nil {
		m = &p.mount
	}
	g.owner = ownership(m, g.fiber)
	s := ScopeOf(c)
	return c.Effect("tools.guard()", func(setup *cordis.Setup) error {
		r.change(s, func(l *layer) { replace(&l.guards, append(slices.Clip(load(&l.guards)), g)) })
		setup.Collect(func(context.Context) error {
			r.change(s, func(l *layer) { replace(&l.guards, remove(load(&l.guards), g)) })
			return nil
		})
		return nil
	})
}

// run returns the reason of a denial, or "".
func (g *guard) run(ctx context.Context, e *Exec) (reason string) {
	_, done, err := g.fiber.Enter(ctx, "tools.guard()")
	if err != nil {
		return fmt.Sprintf("tool %q was denied: the guard of %s cannot decide: %s", e.Name, g.owner, errorText(err))
	}
	defer done()
	defer func() {
		if v := recover(); v != nil {
			reason = fmt.Sprintf("tool %q was denied: the guard of %s failed: %s", e.Name, g.owner, errorText(&panicError{value: v}))
		}
	}()
	return g.fn(e)
}

// standing leaves out the guards of fibers that a stage holds back or has replaced.
func standing(guards []*guard) []*guard {
	if !slices.ContainsFunc(guards, func(g *guard) bool { return g.fiber.Hidden() }) {
		return guards
	}
	return slices.DeleteFunc(slices.Clone(guards), func(g *guard) bool { return g.fiber.Hidden() })
}

// guardsFor returns the guards of a call in their order.
func (r *Registry) guardsFor(s *Scope) []*guard {
	var chain [][]*guard // nearest first
	for {
		if l := r.layer(s); l != nil {
			if held := standing(load(&l.guards)); len(held) > 0 {
				chain = append(chain, held)
			}
		}
		if s == nil {
			break
		}
		s = s.parent
	}
	slices.Reverse(chain)
	return slices.Concat(chain...)
}

// A Policy is the host's last word on a call. It runs after every listener and
// guard that could allow the call, with what they decided; of its decision and
// theirs the stricter counts. An error or a panic denies.
type Policy func(ctx context.Context, exec *Exec, d Decision) (Decision, error)

type policy struct {
	decide Policy
	fiber  *cordis.Fiber
}

// SetPolicy makes p the registry's policy for the life of c's fiber. There is
// one at a time; the error for a second names the owner of the first. A fiber of a
// stage may set one beside that of a fiber that the stage takes.
func (r *Registry) SetPolicy(c *cordis.Context, p Policy) (*cordis.Handle, error) {
	if p == nil {
		return nil, errors.New("set tool policy: the function is nil")
	}
	next := &policy{decide: p, fiber: c.Fiber()}
	return c.Effect("tools.setPolicy()", func(setup *cordis.Setup) error {
		if stage := cordis.StageOf(c); stage != nil {
			for _, had := range load(&r.policies) {
				stage.Takes(had.fiber) // asks, without the lock
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, had := range load(&r.policies) {
			if c.Clashes(had.fiber) {
				return fmt.Errorf("set tool policy: there is one already, set by %s", had.fiber.Name())
			}
		}
		replace(&r.policies, append(slices.Clip(load(&r.policies)), next))
		setup.Collect(func(context.Context) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			replace(&r.policies, remove(load(&r.policies), next))
			return nil
		})
		return nil
	})
}

// standingPolicy returns the policy that decides now: the newest that no stage hides.
func (r *Registry) standingPolicy() *policy {
	for _, p := range slices.Backward(load(&r.policies)) {
		if !p.fiber.Hidden() {
			return p
		}
	}
	return nil
}

// ApprovalOutcome is what became of a request for approval.
type ApprovalOutcome string

// The outcomes of a request for approval; only the first lets the call run.
const (
	AllowedOnce         ApprovalOutcome = "allowed-once"
	ApprovalRejected    ApprovalOutcome = "rejected"
	ApprovalCancelled   ApprovalOutcome = "cancelled"
	ApprovalUnavailable ApprovalOutcome = "unavailable"
	ApprovalNoAgent     ApprovalOutcome = "no-agent"
)

// An Approver asks a person about a call. Approve waits for the answer or for
// the end of ctx. A [*Refusal] denies with its own words; any other error counts as
// ApprovalUnavailable.
//
// Package service asks it about acts too: exec is then made up, with the name of the
// event for a name and the intent for arguments.
type Approver interface {
	Approve(ctx context.Context, exec *Exec, reason string) (ApprovalOutcome, error)
}

// A Refusal is the error of an Approver that says in its own words why a call may
// not run.
type Refusal struct{ Reason string }

// Error gives the reason.
func (r *Refusal) Error() string { return r.Reason }

var _ error = (*Refusal)(nil)

type pauseKey struct{}

// WithPause returns a context in which [Pause] calls pause, which stops the time
// limits of whoever waits for what happens in it until resume is called.
func WithPause(ctx context.Context, pause func() (resume func())) context.Context {
	return context.WithValue(ctx, pauseKey{}, pause)
}

// Pause stops the time limits of the plugins that wait for what happens in ctx,
// until resume is called: an approver pauses while it waits for a person. The limits
// of [Definition] and [Call] go on.
func Pause(ctx context.Context) (resume func()) {
	if pause, ok := ctx.Value(pauseKey{}).(func() func()); ok {
		return pause()
	}
	return func() {}
}

// Approval is the service that answers decisions of kind ask. Without it they
// deny.
var Approval = cordis.NewService[Approver]("approval")

// decide runs everything that may refuse a call. It returns the denial, if
// any; err is the failure of a listener.
func (r *Registry) decide(ctx context.Context, e *Exec) (denial, err error) {
	d, err := r.preExecute(ctx, e)
	if err != nil {
		return nil, err
	}
	if d.Kind == DecisionDeny {
		return deniedBy(e, d.Reason), nil
	}
	for _, g := range r.guardsFor(e.Scope) {
		if reason := g.run(ctx, e); reason != "" {
			return deniedBy(e, reason), nil
		}
	}
	if p := r.standingPolicy(); p != nil {
		d = Stricter(d, p.run(ctx, e, d))
	}
	switch d.Kind {
	case DecisionDeny:
		return deniedBy(e, d.Reason), nil
	case DecisionAsk:
		return r.ask(ctx, e, d.Reason), nil
	}
	return nil, nil
}

func (r *Registry) preExecute(ctx context.Context, e *Exec) (d Decision, err error) {
	d, err = PreExecute.Run(ctx, r.ctx, e, func(context.Context, *Exec) (Decision, error) { return Allow(), nil }, e.reach)
	if err != nil {
		return d, err
	}
	if err := d.Validate(); err != nil {
		return d, fmt.Errorf("tools/pre-execute: %w", err)
	}
	return d, nil
}

func (p *policy) run(ctx context.Context, e *Exec, d Decision) (result Decision) {
	deny := func(err error) Decision {
		return Deny(fmt.Sprintf("tool %q was denied: the policy of %s failed: %s", e.Name, p.fiber.Name(), errorText(err)))
	}
	defer func() {
		if v := recover(); v != nil {
			result = deny(&panicError{value: v})
		}
	}()
	result, err := p.decide(ctx, e, d)
	if err == nil {
		err = result.Validate()
	}
	if err != nil {
		return deny(err)
	}
	return result
}

func deniedBy(e *Exec, reason string) error {
	if strings.TrimSpace(reason) == "" {
		reason = fmt.Sprintf("tool %q was denied", e.Name)
	}
	return &Error{Name: "ToolDeniedError", Code: CodeDenied, Message: reason}
}

// ask puts a call to a person and returns the denial, if any.
func (r *Registry) ask(ctx context.Context, e *Exec, reason string) error {
	approver, ok := Approval.Get(r.ctx)
	if !ok {
		if strings.TrimSpace(reason) == "" {
			reason = fmt.Sprintf("tool %q requires approval (not yet supported)", e.Name)
		}
		return deniedBy(e, reason)
	}
	outcome := ApprovalUnavailable
	refusal := new(Refusal)
	r.contain("approval service", func() {
		o, err := approver.Approve(ctx, e, reason)
		if err == nil {
			outcome = o
		} else {
			errors.As(err, &refusal)
		}
	})
	if refusal.Reason != "" {
		return deniedBy(e, refusal.Reason)
	}
	switch outcome {
	case AllowedOnce:
		return nil
	case ApprovalRejected:
		return deniedBy(e, fmt.Sprintf("the user rejected tool %q", e.Name))
	case ApprovalCancelled:
		return deniedBy(e, fmt.Sprintf("approval for tool %q was cancelled", e.Name))
	case ApprovalNoAgent:
		return deniedBy(e, fmt.Sprintf("tool %q requires approval, but the call has no agent to route it through", e.Name))
	default:
		return deniedBy(e, fmt.Sprintf("tool %q requires approval, but no approval channel is available", e.Name))
	}
}

// cutLine bounds a list in a message.
func cutLine(s string) string {
	if len(s) <= limits.ErrorText {
		return s
	}
	return s[:limits.ErrorText] + "…"
}
