package permission

import (
	"context"
	"errors"

	"github.com/dsh-go/dsh/cordis"
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
type Policy struct{}

// Service is the key of the service. Plugins do not get it.
var Service = cordis.NewService[*Policy]("permission")

var _ tool.Approver = (*Policy)(nil)

// Plugin returns the plugin that provides the policy as "permission" and as the
// approver ("approval"), and listens to the intents of fs, bash and web and to
// calls of tools. It needs the service tools. Mount it on the root context.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "permission",
		Inject: []cordis.Dependency{{Name: tool.Service.Name()}},
		Apply: func(c *cordis.Context, _ any) error {
			_, err := Service.Provide(c, &Policy{})
			return err
		},
	}
}

// Bind makes b the policy of scope and of the scopes below it that have none of
// their own, until release. It logs permission/mode where the log's last one is
// another. A scope has one binding at a time; a nil scope, an unknown mode and a
// session that cannot be written are errors.
func (p *Policy) Bind(scope *tool.Scope, b Binding) (release func(), err error) {
	if scope == nil {
		return nil, errors.New("bind policy: a scope is needed; the global layer is decided by the configuration")
	}
	return func() {}, nil
}

// SetMode changes the mode of the binding that decides for scope, and logs it with
// the source, such as user.
func (p *Policy) SetMode(scope *tool.Scope, m Mode, source string) error { return nil }

// Mode is the mode that decides for scope.
func (p *Policy) Mode(scope *tool.Scope) Mode { return Ask }

// Approve implements [tool.Approver].
func (p *Policy) Approve(ctx context.Context, exec *tool.Exec, reason string) (tool.ApprovalOutcome, error) {
	return tool.ApprovalUnavailable, nil
}
