package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// The services of this package.
var (
	// Service is the agents of a runtime.
	Service = cordis.NewService[*Agents]("agents", cordis.PluginInterface(agentsForPlugins))
	// Sessions is the store of sessions.
	Sessions = cordis.NewService[session.Store]("sessions", cordis.PluginInterface(sessionsForPlugins))
	// Models are the model providers.
	Models = cordis.NewService[*llm.Registry]("llm", cordis.PluginInterface(modelsForPlugins))
)

// Errors; compare with errors.Is.
var (
	// ErrClosed says that the agent has gone.
	ErrClosed = errors.New("the agent is closed")
	// ErrBusy says that a wait for the end of a turn was refused because it was asked
	// for within that turn.
	ErrBusy = errors.New("the turn cannot wait for itself")
	// ErrFull says that the inbox has no room.
	ErrFull = errors.New("the inbox is full")
	// ErrLimit says that the session has used its tokens.
	ErrLimit = errors.New("the session has used the tokens that it may")
	// ErrOptions marks options that no agent can be started with.
	ErrOptions = errors.New("invalid options")
	// ErrStarted says that the session has an agent already.
	ErrStarted = errors.New("the session has an agent already")
)

// Config configures the plugin.
type Config struct {
	// MaxParallel is how many tool calls of one answer run at the same time; 0 is
	// limits.AgentParallel.
	MaxParallel int
	// Retry is the policy for requests that fail; the zero value is
	// llm.DefaultRetry. One with Max -1 never retries.
	Retry llm.Retry
	// MaxSteps and MaxTokens are those of agents whose Options have none; 0 is no limit.
	MaxSteps  int
	MaxTokens int64
}

// Options are what an agent is started with.
type Options struct {
	// Session is the session, open for writing. The agent does not close it, and
	// nobody else appends turns or steps to it.
	Session *session.Session
	// Model is asked, unless agent/request says otherwise. It needs a provider. An
	// empty Effort is that of the session's last request, where that went to the
	// same provider and model.
	Model llm.Config
	// Cwd is the folder that the prompt names; "" is that of the session.
	Cwd string
	// Parent is the scope above that of the agent; nil is the global one.
	Parent *tool.Scope
	// Plugins are mounted on the agent's context, in order, and have to become active.
	Plugins []*cordis.Plugin
	// MaxSteps ends a turn that would have more steps (EndLimit); 0 is that of [Config].
	MaxSteps int
	// MaxTokens is how many tokens the session may use in all its requests, one-shots
	// too; see Agent.Usage. Beyond them a turn ends (EndLimit); 0 is that of [Config].
	MaxTokens int64
}

// Plugin returns the plugin that provides the agents. It injects tools, prompt and
// llm; its agents end with it.
func Plugin(cfg Config) *cordis.Plugin {
	return &cordis.Plugin{
		Name: "agents", Provides: []string{Service.Name()},
		Inject: cordis.Require(tool.Service.Name(), prompt.Service.Name(), Models.Name()),
		Apply: func(c *cordis.Context, _ any) error {
			g, err := newAgents(c, cfg)
			if err != nil {
				return err
			}
			if _, err := Service.Provide(c, g); err != nil {
				return fmt.Errorf("provide agents: %w", err)
			}
			return nil
		},
	}
}

// ProvideModels returns a plugin that provides a registry of models as [Models].
func ProvideModels(r *llm.Registry) *cordis.Plugin {
	return &cordis.Plugin{Name: "llm", Provides: []string{Models.Name()}, Apply: func(c *cordis.Context, _ any) error {
		_, err := Models.Provide(c, r)
		return err
	}}
}

// ProvideSessions returns a plugin that provides a store as [Sessions].
func ProvideSessions(s session.Store) *cordis.Plugin {
	return &cordis.Plugin{Name: "sessions", Provides: []string{Sessions.Name()}, Apply: func(c *cordis.Context, _ any) error {
		_, err := Sessions.Provide(c, s)
		return err
	}}
}

// Agents starts agents and knows those that are there.
type Agents struct {
	c      *cordis.Context
	cfg    Config
	tools  *tool.Registry
	prompt *prompt.Registry
	models *llm.Registry

	mu     sync.Mutex // guards what follows
	scopes map[*tool.Scope]*Agent
	ids    map[string]*Agent // those that are starting too
	order  []*Agent          // those that are published
}

func newAgents(c *cordis.Context, cfg Config) (*Agents, error) {
	if cfg.MaxParallel < 0 {
		return nil, fmt.Errorf("configure agents: %w: MaxParallel is %d; it is at least 1, or 0 for %d", ErrOptions, cfg.MaxParallel, limits.AgentParallel)
	}
	if cfg.MaxSteps < 0 || cfg.MaxTokens < 0 {
		return nil, fmt.Errorf("configure agents: %w: MaxSteps is %d, MaxTokens is %d; they are positive, or 0 for no limit", ErrOptions, cfg.MaxSteps, cfg.MaxTokens)
	}
	if cfg.MaxParallel == 0 {
		cfg.MaxParallel = limits.AgentParallel
	}
	if r := cfg.Retry; r.Max == 0 && r.Base == 0 && r.Limit == 0 && !r.Always {
		cfg.Retry = llm.DefaultRetry()
		cfg.Retry.Rand = r.Rand
	}
	g := &Agents{c: c, cfg: cfg, scopes: map[*tool.Scope]*Agent{}, ids: map[string]*Agent{}}
	var err error
	if g.tools, err = tool.Service.Use(c); err != nil {
		return nil, err
	}
	if g.prompt, err = prompt.Service.Use(c); err != nil {
		return nil, err
	}
	if g.models, err = Models.Use(c); err != nil {
		return nil, err
	}
	_, err = tool.AroundExecute.On(c, aroundBody, cordis.Prepend())
	return g, err
}

// Get returns the agent of a session.
func (g *Agents) Get(id string) (*Agent, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.IndexFunc(g.order, func(a *Agent) bool { return a.id == id })
	if i < 0 {
		return nil, false
	}
	return g.order[i], true
}

// List returns the agents in the order in which they were started.
func (g *Agents) List() []*Agent {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.order)
}

// Of returns the agent that a scope belongs to: the nearest on its chain. One that
// is just being started is found too, so its plugins can ask for it in their Apply.
func (g *Agents) Of(s *tool.Scope) (*Agent, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for ; s != nil; s = s.Parent() {
		if a := g.scopes[s]; a != nil {
			return a, true
		}
	}
	return nil, false
}

// For returns the agent on whose behalf ctx acts: Of the scope of [tool.ActorOf].
func (g *Agents) For(ctx context.Context) (*Agent, bool) { return g.Of(tool.ActorOf(ctx).Scope) }

// check says what is wrong with options.
func (o Options) check() error {
	switch {
	case o.Session == nil:
		return fmt.Errorf("%w: there is no session", ErrOptions)
	case o.Model.Provider == "":
		return fmt.Errorf("%w: the model has no provider", ErrOptions)
	case o.MaxSteps < 0 || o.MaxTokens < 0:
		return fmt.Errorf("%w: MaxSteps is %d, MaxTokens is %d; they are positive, or 0 for those of the configuration", ErrOptions, o.MaxSteps, o.MaxTokens)
	case slices.Contains(o.Plugins, nil):
		return fmt.Errorf("%w: a plugin is nil", ErrOptions)
	}
	return nil
}

// Start starts the agent of a session. ctx bounds the start, not the agent. After
// an error nothing is left of it: its plugins are unmounted. The error says which
// plugin failed, or what it waits for.
//
// The order is: the agent's scope and fiber, its plugins, agent/created,
// agent/session-start. Messages that wake are kept until then. What waits in the
// inbox of a resumed session is left there until somebody wakes the agent.
func (g *Agents) Start(ctx context.Context, o Options) (*Agent, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("start agent: %w", err)
	}
	o.MaxSteps = cmp.Or(o.MaxSteps, g.cfg.MaxSteps)
	o.MaxTokens = cmp.Or(o.MaxTokens, g.cfg.MaxTokens)
	a := newAgent(g, o)
	if err := g.reserve(a); err != nil {
		return nil, err
	}
	if err := a.mount(ctx, o.Plugins); err != nil {
		a.unmount(ctx)
		g.remove(a)
		return nil, fmt.Errorf("start agent of session %s: %w", a.id, err)
	}
	if err := g.publish(ctx, a); err != nil {
		return nil, err
	}
	return a, nil
}

// reserve takes the session for an agent.
func (g *Agents) reserve(a *Agent) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids[a.id] != nil {
		return fmt.Errorf("start agent of session %s: %w", plain.Name(a.id), ErrStarted)
	}
	g.ids[a.id], g.scopes[a.scope] = a, a
	return nil
}

// publish makes an agent known.
func (g *Agents) publish(ctx context.Context, a *Agent) error {
	ctx, leave, err := a.fiber.Enter(ctx, "agent.start") // so that its end comes after this
	if err != nil {
		return fmt.Errorf("start agent of session %s: %w: %w", a.id, ErrClosed, err)
	}
	defer leave()
	defer close(a.done)
	g.mu.Lock()
	g.order = append(g.order, a)
	g.mu.Unlock()
	a.mu.Lock()
	a.published = true
	a.mu.Unlock()
	kind := Startup
	if a.session.Turn().Turn > 0 {
		kind = Resume
	}
	Created.Emit(ctx, g.c, Lifecycle{a, a.id}, a.hearing())
	SessionStarted.Emit(ctx, g.c, SessionStart{a, a.id, kind}, a.hearing())
	a.release()
	return nil
}

// remove forgets an agent.
func (g *Agents) remove(a *Agent) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids[a.id] == a {
		delete(g.ids, a.id)
	}
	delete(g.scopes, a.scope)
	g.order = slices.DeleteFunc(g.order, func(b *Agent) bool { return a == b })
}

// Settings are the config of the agents in a cordis.yml document.
type Settings struct {
	MaxParallel int   `json:"maxParallel" min:"1" max:"AgentParallelMax" default:"AgentParallel" doc:"How many tool calls of one answer run at the same time."`
	Retries     int   `json:"retries" min:"0" max:"AgentRetriesMax" default:"LLMRetries" doc:"How often a request to a model that failed is sent again in the same step."`
	MaxSteps    int   `json:"maxSteps" min:"0" max:"AgentStepsMax" default:"0" doc:"Ends a turn that would have more steps; 0 is no limit. A flag beats it."`
	MaxTokens   int64 `json:"maxTokens" min:"0" max:"AgentTokensMax" default:"0" doc:"How many tokens a session may use in all its requests; beyond them a turn ends. 0 is no limit. A flag beats it."`
}

// Config is what the settings say.
func (s Settings) Config() Config {
	retry := llm.DefaultRetry()
	if retry.Max = s.Retries; retry.Max == 0 {
		retry.Max = -1
	}
	return Config{MaxParallel: s.MaxParallel, Retry: retry, MaxSteps: s.MaxSteps, MaxTokens: s.MaxTokens}
}
