package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/tool"
)

// Config configures the plugin.
type Config struct {
	// Dir is the absolute folder in which commands run, and which a relative workdir
	// is meant from; empty: the default of the service bash.
	Dir string
}

// Plugin returns the plugin that registers the tools, in the scope of the context
// that it is mounted on. A Dir that is not absolute fails it.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name:   "toolbox/shell",
		Inject: cordis.Require(tool.Service.Name(), bash.Service.Name(), tasks.Service.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			if cfg.Dir != "" && !filepath.IsAbs(cfg.Dir) {
				return fmt.Errorf("configure shell: the folder %q is not absolute", cfg.Dir)
			}
			s := &shell{c: c, dir: cfg.Dir, scope: tool.ScopeOf(c), watched: map[string]int{}}
			tools, err := tool.Service.Use(c)
			if err != nil {
				return err
			}
			if s.bash, err = bash.Service.Use(c); err != nil {
				return err
			}
			if s.tasks, err = tasks.Service.Use(c); err != nil {
				return err
			}
			for _, d := range []*tool.Definition{s.bashTool(), s.outputTool(), s.listTool(), s.killTool()} {
				if _, err := tools.Register(c, d); err != nil {
					return fmt.Errorf("register %s: %w", d.Name, err)
				}
			}
			return nil
		},
	}
}

// shell is the plugin in one scope.
type shell struct {
	c     *cordis.Context
	dir   string
	scope *tool.Scope
	bash  bash.Bash
	tasks *tasks.Tasks

	mu      sync.Mutex
	watched map[string]int // tasks that calls wait for, whose end they will tell
}

// watch says that a call will tell the end of a task.
func (s *shell) watch(id string) {
	s.mu.Lock()
	s.watched[id]++
	s.mu.Unlock()
}

// unwatch ends watch. What has ended before it, the call has to tell.
func (s *shell) unwatch(id string) {
	s.mu.Lock()
	if s.watched[id]--; s.watched[id] == 0 {
		delete(s.watched, id)
	}
	s.mu.Unlock()
}

// agentOf is the agent whose call this is, if there is one.
func (s *shell) agentOf(ctx context.Context) *agent.Agent {
	if agents, ok := agent.Service.Get(s.c); ok {
		if a, ok := agents.For(ctx); ok {
			return a
		}
	}
	return nil
}

// ended tells an agent that a task of it has ended, unless a call does.
func (s *shell) ended(a *agent.Agent, info tasks.Info) {
	s.mu.Lock()
	told := s.watched[info.ID] > 0
	s.mu.Unlock()
	if !told {
		s.notify(a, info)
	}
}

func (s *shell) notify(a *agent.Agent, info tasks.Info) {
	if a == nil {
		return
	}
	err := a.Inject("tasks", notice(info))
	if err != nil && !errors.Is(err, agent.ErrClosed) { // an agent that has gone needs no telling
		s.c.Logger("shell").Warn("an agent could not be told of the end of its task", "task", info.ID, "error", err)
	}
}

// outcome is what a body returns for its value.
func outcome(value any) (tool.Outcome, error) {
	v, err := lossless.From(value)
	if err != nil {
		return tool.Outcome{}, fmt.Errorf("write value: %w", err)
	}
	return tool.Outcome{Value: v.Encode()}, nil
}
