package standard

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/compact"
	"github.com/dsh-go/dsh/agent/repeat"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/prompt/workspace"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/notice"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/toolbox/ask"
	"github.com/dsh-go/dsh/toolbox/file"
	"github.com/dsh-go/dsh/toolbox/shell"
	"github.com/dsh-go/dsh/toolbox/todo"
	"github.com/dsh-go/dsh/toolbox/web"
)

// persona is what the model is told of its work, beside what its tools say.
//
//go:embed persona.md
var persona string

// permissionOrder puts what may happen after the environment, and before what
// AGENTS.md says.
const permissionOrder = -45

// Options are what agents that work for a person are made of.
type Options struct {
	Services   Services
	Models     *llm.Registry
	Sessions   session.Store
	Agents     agent.Config
	Permission permission.Config // of scopes without a binding
	Binding    permission.Binding
	Questions  ask.Asker // who answers ask_user_question; nil: nobody
	Cwd        string    // absolute; where the agent works
	// Self gives the agent the three tools of the toolset, as Toolset says.
	Self    bool
	Toolset selfmod.Config
}

// Host are the rows of the runtime that agents share. Mount them on the root
// context, in order.
func Host(o Options) []*cordis.Plugin {
	// The policy outlives what it decides about.
	plugins := append([]*cordis.Plugin{permission.Plugin(o.Permission)}, o.Services.Plugins()...)
	plugins = append(plugins,
		tasks.Plugin(),
		prompt.Plugin(prompt.Config{Persona: persona}),
		agent.ProvideModels(o.Models),
		agent.ProvideSessions(o.Sessions),
		agent.Plugin(o.Agents),
	)
	if o.Questions != nil {
		plugins = append(plugins, questions(o.Questions))
	}
	return plugins
}

// Agent are the rows of one agent: for agent.Options.Plugins.
func Agent(o Options) []*cordis.Plugin {
	plugins := append([]*cordis.Plugin{bind(o.Binding), workspace.Plugin(workspace.Config{Cwd: o.Cwd})}, Tools(o)...)
	if o.Self {
		plugins = append(plugins, notice.Plugin())
	}
	return append(plugins, compact.Plugin(), repeat.Plugin())
}

// Tools are those rows of an agent that a model calls. On a context without a
// scope they show what is in a log.
func Tools(o Options) []*cordis.Plugin {
	plugins := []*cordis.Plugin{
		file.Plugin(file.Config{Cwd: o.Cwd}),
		shell.Plugin(shell.Config{Dir: o.Cwd}),
		web.Plugin(),
		todo.Plugin(),
		ask.Plugin(),
	}
	if o.Self {
		plugins = append(plugins, selfmod.Plugin(o.Toolset))
	}
	return plugins
}

// Shown are the rows of a runtime that only shows what is in a log: the tools, and
// what they inject.
func Shown(o Options) []*cordis.Plugin {
	plugins := append(o.Services.Plugins(), tasks.Plugin(), prompt.Plugin(prompt.Config{}))
	return append(plugins, Tools(o)...)
}

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
