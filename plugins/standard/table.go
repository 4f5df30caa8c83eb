package standard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/compact"
	"github.com/dsh-go/dsh/agent/repeat"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/prompt/workspace"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/notice"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/kv"
	"github.com/dsh-go/dsh/service/log"
	"github.com/dsh-go/dsh/service/tasks"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/toolbox/ask"
	"github.com/dsh-go/dsh/toolbox/file"
	"github.com/dsh-go/dsh/toolbox/shell"
	"github.com/dsh-go/dsh/toolbox/todo"
	toolweb "github.com/dsh-go/dsh/toolbox/web"
)

// table is every Go plugin, sorted by name. What lives on the host is shared by all
// projects, so that none of them may add or change it: all of it is PersonOnly.
var table = sorted(slices.Concat(
	on(loader.Host, injectable),
	on(loader.Host, core),
	on(loader.Agent, agents),
))

// injectable are the services that plugins may inject.
var injectable = []row{
	with(row{name: "bash", example: "passEnv: [GITHUB_TOKEN]", doc: "The service bash: shell commands, each with all that it starts under a supervisor. A change of its row ends running commands."},
		func(g Given, s bash.Settings) (*cordis.Plugin, error) {
			cfg := s.Config()
			cfg.Program = g.Program
			if cfg.Dir = cmp.Or(cfg.Dir, g.Cwd); cfg.Dir == "" && len(g.Roots) > 0 {
				cfg.Dir = g.Roots[0]
			}
			return bash.Plugin(cfg), nil
		}),
	with(row{name: "fs", example: "roots: [~/project], readOnlyRoots: [/usr/share/dict]", doc: "The service fs: files and folders within roots, which plugins and the file tools reach through it alone."},
		func(g Given, s fs.Settings) (*cordis.Plugin, error) {
			cfg := s.Config()
			if len(cfg.Roots)+len(cfg.ReadOnly) == 0 {
				cfg.Roots = g.Roots
			}
			return fs.Plugin(cfg), nil
		}),
	with(row{name: "kv", example: "dir: ~/.local/share/dsh-kv", doc: "The service kv: what plugins keep, each for itself.", static: true},
		func(_ Given, s kv.Settings) (*cordis.Plugin, error) { return kv.Plugin(s.Config()), nil }),
	bare(row{name: "log", doc: "The service log: lines of plugins in dsh's log."}, func(Given) *cordis.Plugin { return log.Plugin() }),
	bare(row{name: "timer", doc: "The service timer: timeouts, intervals, waiting."}, func(Given) *cordis.Plugin { return timer.Plugin() }),
	bare(row{name: "tools", doc: "The registry of tools. Everything that a model or a client calls is in it.", static: true}, func(Given) *cordis.Plugin { return tool.Plugin() }),
	with(row{name: "web", example: "allowPrivate: true", doc: "The service web: fetches pages of public addresses, and has the providers of searches."},
		func(_ Given, s web.Settings) (*cordis.Plugin, error) { return web.Plugin(s.Config()), nil }),
}

// core is what agents stand on.
var core = []row{
	with(row{name: "agents", example: "maxParallel: 4, maxSteps: 200", doc: "The agents: turns, steps, the inbox. They end with it.", static: true},
		func(_ Given, s agent.Settings) (*cordis.Plugin, error) { return agent.Plugin(s.Config()), nil }),
	bare(row{name: "models", doc: "The models that agents ask: the providers that dsh knows a key of. Keys and base URLs are no settings; see dsh auth.", static: true},
		func(g Given) *cordis.Plugin {
			if g.Models == nil {
				return missing("models", "no models")
			}
			return agent.ProvideModels(g.Models)
		}),
	with(row{name: "permission", example: "mode: read-only, deny: [mount]", doc: "The policy: what may happen without a question of what belongs to no session. What sessions may is said by their own plugin, session-permission.", static: true},
		func(g Given, s permission.Settings) (*cordis.Plugin, error) {
			cfg, err := s.Config()
			if err != nil {
				return nil, err
			}
			cfg.Allow, cfg.Deny = slices.Concat(cfg.Allow, g.Allow), slices.Concat(cfg.Deny, g.Deny)
			cfg.Trusted, cfg.Loads = g.Trusted, g.Loads
			return permission.Plugin(cfg), nil
		}),
	with(row{name: "prompt", example: "persona: You write and review Go.", doc: "The system prompt, of the sections that plugins contribute.", static: true},
		func(_ Given, s prompt.Settings) (*cordis.Plugin, error) {
			cfg := prompt.Config{Persona: persona}
			if s.Persona != nil {
				cfg.Persona = *s.Persona
			}
			return prompt.Plugin(cfg), nil
		}),
	bare(row{name: "questions", doc: "Who answers the questions of agents: the person at the terminal, where there is one.", static: true},
		func(g Given) *cordis.Plugin {
			if g.Questions == nil {
				return &cordis.Plugin{Name: "questions", Apply: func(*cordis.Context, any) error { return nil }}
			}
			return questions(g.Questions)
		}),
	bare(row{name: "sessions", doc: "The store of sessions, in $DSH_HOME.", static: true},
		func(g Given) *cordis.Plugin {
			if g.Sessions == nil {
				return missing("sessions", "no store of sessions")
			}
			return agent.ProvideSessions(g.Sessions)
		}),
	bare(row{name: "tasks", doc: "The service tasks: what runs in the background, such as commands.", static: true}, func(Given) *cordis.Plugin { return tasks.Plugin() }),
}

// agents are the plugins of an agent.
var agents = []row{
	bare(row{name: "compact", doc: "Makes a long conversation shorter when the model's window is full: long results first, then a summary."}, func(Given) *cordis.Plugin { return compact.Plugin() }),
	bare(row{name: "cordis-notice", doc: "Tells the model what became of its temporary plugins: when they end, lose what they have, or come back."}, func(Given) *cordis.Plugin { return notice.Plugin() }),
	bare(row{name: "repeat", doc: "Reminds a model that calls the same tool with the same arguments again and again."}, func(Given) *cordis.Plugin { return repeat.Plugin() }),
	with(row{name: "session-permission", example: `mode: auto-edit, allow: ["bash(go test *)"], deny: ["edit(go.mod)"]`, doc: "What the agent of a session may do without a question.", static: true, personOnly: true}, sessionPermission),
	bare(row{name: "tool-ask", doc: "The tool ask_user_question: the model asks the person."}, func(Given) *cordis.Plugin { return ask.Plugin() }),
	with(row{name: "tool-cordis", example: "vmTimeoutMs: 5000, memoryMB: 128", doc: "The toolset: cordis_inspect, cordis_mount and cordis_unmount, with which an agent sees and extends the runtime that it runs in. A change of its row ends every temporary plugin."},
		func(g Given, s selfmod.Settings) (*cordis.Plugin, error) {
			given := g.Toolset
			given.Worker = cmp.Or(given.Worker, g.Program)
			return selfmod.Plugin(s.Config(given)), nil
		}),
	with(row{name: "tool-files", example: "unread: true", doc: "The tools read, write, edit, glob and grep."},
		func(g Given, s file.Settings) (*cordis.Plugin, error) {
			return file.Plugin(file.Config{Cwd: g.Cwd, Unread: s.Unread}), nil
		}),
	bare(row{name: "tool-shell", doc: "The tools bash, task_output, task_list and task_kill."}, func(g Given) *cordis.Plugin { return shell.Plugin(shell.Config{Dir: g.Cwd}) }),
	bare(row{name: "tool-todo", doc: "The tool todo_write: the model's list of what is to be done."}, func(Given) *cordis.Plugin { return todo.Plugin() }),
	bare(row{name: "tool-web", doc: "The tool web_fetch, and web_search where there is a provider."}, func(Given) *cordis.Plugin { return toolweb.Plugin() }),
	bare(row{name: "workspace", doc: "Tells the model of the folder that it works in, the machine and the date, and what AGENTS.md files say."},
		func(g Given) *cordis.Plugin { return workspace.Plugin(workspace.Config{Cwd: g.Cwd}) }),
}

// sessionPermission binds the policy of an agent.
func sessionPermission(g Given, s permission.Settings) (*cordis.Plugin, error) {
	cfg, err := s.Config()
	if err != nil {
		return nil, err
	}
	return bind(permission.Binding{
		Mode: cmp.Or(g.Mode, cfg.Mode), Session: g.Session, Ask: g.Ask,
		Allow: slices.Concat(cfg.Allow, g.Allow), Deny: slices.Concat(cfg.Deny, g.Deny),
	}), nil
}

// missing is a plugin that fails, since the program does not give what it provides.
func missing(name, what string) *cordis.Plugin {
	return &cordis.Plugin{Name: name, Apply: func(*cordis.Context, any) error {
		return fmt.Errorf("start %s: this program has %s", name, what)
	}}
}

// on says on which plane rows live.
func on(p loader.Plane, rows []row) []row {
	for i := range rows {
		rows[i].plane = p
		rows[i].personOnly = rows[i].personOnly || p == loader.Host
	}
	return rows
}

func sorted(rows []row) []row {
	slices.SortFunc(rows, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return rows
}
