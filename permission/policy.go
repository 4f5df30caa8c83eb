package permission

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// Config decides for scopes without a binding.
type Config struct {
	// Mode is the mode; "" is Full.
	Mode Mode
	// Allow and Deny are rules; see the package comment.
	Allow, Deny []Rule
	// Roots are the folders that relative patterns of rules start at and within which
	// auto-edit allows edits; none: those of the service fs that can be written.
	Roots []string
	// Trusted is told what a person allowed of changes of what plugins are loaded from,
	// in any scope: the file, absolute with links resolved, the very bytes that were
	// written, and what an edit found before, of which the person saw a part. See
	// [trust.Store.Wrote]. It is called after the write, before the one who wrote goes
	// on, with the values of the write's context but not its end: whoever implements it
	// bounds itself. Never for what mode full allowed. Nil: nothing is trusted.
	Trusted func(ctx context.Context, path string, before *string, content string)
	// Loads says of more files, absolute with links resolved, that plugins are loaded from
	// them, so that a change is as good as a mount. It must not block. Nil: of none.
	Loads func(path string) bool
}

// Binding is the policy of one scope, a session's.
type Binding struct {
	// Mode is the mode; "" is [Ask].
	Mode Mode
	// Allow and Deny are rules; see the package comment.
	Allow, Deny []Rule
	// Roots are as in [Config].
	Roots []string
	// Session gets approval/… and permission/mode; what a person remembered earlier is
	// read from it. Nil: nothing is logged or remembered beyond the binding.
	Session *session.Session
	// Ask asks a person. Nil: there is nobody (headless); what would be asked is denied.
	Ask Asker
}

// Policy decides. It is the value of [Service], and the approver of the runtime.
type Policy struct {
	c        *cordis.Context
	registry *tool.Registry
	config   *binding
	trusted  func(ctx context.Context, path string, before *string, content string)
	loads    func(path string) bool

	mu       sync.Mutex
	bindings map[*tool.Scope]*binding
}

// Service is the key of the service. Plugins do not get it.
var Service = cordis.NewService[*Policy]("permission")

var _ tool.Approver = (*Policy)(nil)

// Plugin returns the plugin that provides the policy as "permission" and as the
// approver ("approval"), listens to the intents of fs, bash and web, and is the
// registry's policy. It needs the service tools. Mount it on the root context,
// before what it decides about.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:     "permission",
		Inject:   cordis.Require(tool.Service.Name()),
		Provides: []string{Service.Name(), tool.Approval.Name()},
		Apply: func(c *cordis.Context, _ any) error {
			p, err := newPolicy(c, cfg)
			if err != nil {
				return err
			}
			return p.start()
		},
	}
}

func newPolicy(c *cordis.Context, cfg Config) (*Policy, error) {
	registry, err := tool.Service.Use(c)
	if err != nil {
		return nil, fmt.Errorf("start policy: %w", err)
	}
	b := Binding{Mode: cmp.Or(cfg.Mode, Full), Allow: cfg.Allow, Deny: cfg.Deny, Roots: cfg.Roots}
	config, err := newBinding(b)
	if err != nil {
		return nil, err
	}
	return &Policy{c: c, registry: registry, config: config, trusted: cfg.Trusted, loads: cfg.Loads, bindings: map[*tool.Scope]*binding{}}, nil
}

// start registers everything that the policy does.
func (p *Policy) start() error {
	for _, listen := range []func() error{
		func() error { return listen(p, fs.ReadIntent) },
		func() error { return listen(p, fs.WriteIntent) },
		func() error { return listen(p, fs.EditIntent) },
		func() error { return listen(p, fs.RemoveIntent) },
		func() error { return listen(p, fs.MkdirIntent) },
		func() error { return listen(p, bash.RunIntent) },
		func() error { return listen(p, web.FetchIntent) },
		func() error { return listen(p, web.SearchIntent) },
		func() error { _, err := p.registry.SetPolicy(p.c, p.decideCall); return err },
		func() error { _, err := Service.Provide(p.c, p); return err },
		func() error { _, err := tool.Approval.Provide(p.c, p); return err },
	} {
		if err := listen(); err != nil {
			return fmt.Errorf("start policy: %w", err)
		}
	}
	return nil
}

// listen decides an intent. What listeners further in decided is heard first, so
// that nobody is asked about what they refuse; those further out are mounts, which
// can only tighten.
func listen[T any](p *Policy, ev *cordis.Waterfall[T, tool.Decision]) error {
	_, err := ev.On(p.c, func(ctx context.Context, payload T, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		theirs, err := next(ctx)
		if err != nil || theirs.Kind == tool.DecisionDeny {
			return theirs, err
		}
		return tool.Stricter(theirs, p.decide(ctx, p.intent(ctx, payload))), nil
	}, cordis.Prepend())
	return err
}

// decideCall is the registry's policy: only the calls of mounted tools and of
// cordis_mount are acts by themselves; what other tools do is decided where they do
// it. Rules may deny any.
func (p *Policy) decideCall(ctx context.Context, exec *tool.Exec, _ tool.Decision) (tool.Decision, error) {
	a := call(ctx, exec)
	if exec.Tool != nil && (exec.Tool.Mount != nil || exec.Name == mountTool) {
		return p.decide(ctx, a), nil
	}
	b := p.of(a.actor.Scope)
	if by, v := a.denied(b.deny, b.roots(p)); v == yes {
		return p.deny(a, b, sourcePolicy, byRule(a, by)), nil
	}
	return tool.Allow(), nil
}

// binding is a Binding in use.
type binding struct {
	allow, deny []Rule
	given       []string // roots, canonical
	session     *session.Session
	ask         Asker
	asking      chan struct{} // the token of who asks

	mu         sync.Mutex
	mode       Mode
	remembered []remembered
	waiting    int
	denials    int // of mounts, logged
}

// remembered is a rule that a person allowed for the session.
type remembered struct {
	rule Rule
	hash string // of the source that it is bound to
}

func newBinding(b Binding) (*binding, error) {
	if _, err := ParseMode(string(b.Mode)); err != nil {
		return nil, fmt.Errorf("bind policy: %w", err)
	}
	if n := max(len(b.Allow), len(b.Deny)); n > limits.PermissionRules {
		return nil, fmt.Errorf("bind policy: %d rules, more than the limit of %d", n, limits.PermissionRules)
	}
	next := &binding{
		allow: slices.Clone(b.Allow), deny: slices.Clone(b.Deny), session: b.Session, ask: b.Ask, mode: b.Mode,
		asking: make(chan struct{}, 1),
	}
	for _, root := range b.Roots {
		abs, err := filepath.Abs(root)
		if err != nil {
			return nil, fmt.Errorf("bind policy: root %q: %w", plain.Preview(root), err)
		}
		next.given = append(next.given, fs.Canonical(abs))
	}
	return next, nil
}

// roots are the folders within which edits are allowed, and at which relative
// patterns start.
func (b *binding) roots(p *Policy) []string {
	if len(b.given) > 0 {
		return b.given
	}
	service, ok := fs.Service.Get(p.c)
	if !ok {
		return nil
	}
	var roots []string
	for _, r := range service.Roots() {
		if !r.ReadOnly {
			roots = append(roots, r.Path)
		}
	}
	return roots
}

// Bind makes b the policy of scope and of the scopes below it that have none of
// their own, until release. It logs permission/mode where the log's last one is
// another, and takes over what was remembered in the log. A scope has one binding at
// a time; a nil scope, an unknown mode and a session that takes no events are errors.
func (p *Policy) Bind(scope *tool.Scope, b Binding) (release func(), err error) {
	if scope == nil {
		return nil, errors.New("bind policy: a scope is needed; the global layer is decided by the configuration")
	}
	b.Mode = cmp.Or(b.Mode, Ask)
	next, err := newBinding(b)
	if err != nil {
		return nil, err
	}
	if err := next.restore(); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bindings[scope] != nil {
		return nil, fmt.Errorf("bind policy: scope %s has a binding; release it first", plain.Name(scope.Name()))
	}
	p.bindings[scope] = next
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.bindings, scope)
	}), nil
}

// restore reads what the session remembers, and logs the mode.
func (b *binding) restore() error {
	if b.session == nil {
		return nil
	}
	for _, e := range b.session.Events(0) {
		if e.Type != session.TypeApprovalRule {
			continue
		}
		var logged session.ApprovalRule
		if json.Unmarshal([]byte(e.Data()), &logged) != nil || logged.Decision != decisionAllow {
			continue
		}
		if r, err := ParseRule(logged.Rule); err == nil { // else a later version wrote it: the person is asked again
			b.remember(remembered{r, logged.SourceHash})
		}
	}
	if b.session.PermissionMode() == string(b.mode) {
		return nil
	}
	if _, err := b.session.Append(session.PermissionMode{Mode: string(b.mode)}); err != nil {
		return fmt.Errorf("bind policy: log the mode: %w", err)
	}
	return nil
}

// remember keeps a rule; the oldest goes when there are too many.
func (b *binding) remember(r remembered) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remembered = append(b.remembered, r)
	if over := len(b.remembered) - limits.PermissionRules; over > 0 {
		b.remembered = slices.Delete(b.remembered, 0, over)
	}
}

// recalls says whether a person allowed the like of the act for the session.
func (b *binding) recalls(a *act, roots []string) bool {
	b.mu.Lock()
	var rules []Rule
	for _, r := range b.remembered {
		if r.hash == a.hash && (len(r.rule.words) == 0 || a.line == nil || a.ordinary()) {
			rules = append(rules, r.rule)
		}
	}
	b.mu.Unlock()
	return a.allowed(rules, roots)
}

// of is the binding that decides for a scope.
func (p *Policy) of(scope *tool.Scope) *binding {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := scope; s != nil; s = s.Parent() {
		if b := p.bindings[s]; b != nil {
			return b
		}
	}
	return p.config
}

// SetMode changes the mode of the binding that decides for scope, and logs it with
// the source, such as user.
func (p *Policy) SetMode(scope *tool.Scope, m Mode, source string) error {
	if _, err := ParseMode(string(m)); err != nil {
		return fmt.Errorf("set permission mode: %w", err)
	}
	b := p.of(scope)
	if b.session != nil {
		if _, err := b.session.Append(session.PermissionMode{Mode: string(m), Source: source}); err != nil {
			return fmt.Errorf("set permission mode: %w", err)
		}
	}
	b.mu.Lock()
	b.mode = m
	b.mu.Unlock()
	return nil
}

// Mode is the mode that decides for scope.
func (p *Policy) Mode(scope *tool.Scope) Mode { return p.of(scope).now() }

func (b *binding) now() Mode {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mode
}
