package standard

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/toolbox/ask"
)

// persona is what the model is told of its work, beside what its tools say.
//
//go:embed persona.md
var persona string

// permissionOrder puts what may happen after the environment, and before what
// AGENTS.md says.
const permissionOrder = -45

// bind makes b the policy of the agent that it is mounted on, and tells its model
// of it.
func bind(b permission.Binding) *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "permission-binding",
		Inject: cordis.Require(permission.Service.Name(), prompt.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			policy, err := permission.Service.Use(c)
			if err != nil {
				return err
			}
			release, err := policy.Bind(tool.ScopeOf(c), b)
			if err != nil {
				return fmt.Errorf("bind policy: %w", err)
			}
			if _, err = c.Defer("binding", func(context.Context) error { release(); return nil }); err != nil {
				return err
			}
			parts, err := prompt.Service.Use(c)
			if err != nil {
				return err
			}
			_, err = parts.Context(c, prompt.Section{Name: "permission", Order: permissionOrder, Func: func(_ context.Context, v prompt.View) (string, error) {
				return policy.Describe(v.Scope), nil
			}})
			return err
		},
	}
}

// questions provides whoever answers.
func questions(a ask.Asker) *cordis.Plugin {
	return &cordis.Plugin{Name: "questions", Provides: []string{ask.Service.Name()}, Apply: func(c *cordis.Context, _ any) error {
		_, err := ask.Service.Provide(c, a)
		return err
	}}
}
