package agenttest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/script"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/tool"
)

// Patience is how long the kit waits for anything before the test fails.
const Patience = 30 * time.Second

// Provider and Model name the scripted model of a Kit.
const (
	Provider = "script"
	Model    = "test"
)

// A Kit is a runtime with the services tools, prompt, llm, sessions and agents.
// Everything in it ends with the test.
type Kit struct {
	T      testing.TB
	Root   *cordis.Context
	Tools  *tool.Registry
	Prompt *prompt.Registry
	Models *llm.Registry
	Store  session.Store // *memory.Store, unless Options say otherwise
	Agents *agent.Agents
	// Recorder has what every model was sent.
	Recorder *Recorder

	sessions []*session.Session
	closed   bool
}

// Options configure a Kit.
type Options struct {
	Agents agent.Config
	Prompt prompt.Config
	Store  session.Store    // nil: a new memory.Store
	Host   []*cordis.Plugin // mounted on the root, before the agents plugin
}

// New returns a Kit with the default options.
func New(t testing.TB) *Kit { return NewWith(t, Options{}) }

// NewWith returns a Kit.
func NewWith(t testing.TB, o Options) *Kit {
	t.Helper()
	k := &Kit{T: t, Root: cordis.New(), Models: &llm.Registry{}, Store: o.Store}
	if k.Store == nil {
		k.Store = memory.New()
	}
	k.Recorder = newRecorder()
	t.Cleanup(k.Close)
	for _, p := range []*cordis.Plugin{tool.Plugin(), prompt.Plugin(o.Prompt), agent.ProvideModels(k.Models), agent.ProvideSessions(k.Store)} {
		k.Mount(p)
	}
	for _, p := range o.Host {
		k.Mount(p)
	}
	k.Mount(agent.Plugin(o.Agents))
	k.Tools = get(k, tool.Service)
	k.Prompt = get(k, prompt.Service)
	k.Agents = get(k, agent.Service)
	return k
}

func get[T any](k *Kit, key cordis.Service[T]) T {
	k.T.Helper()
	v, ok := key.Get(k.Root)
	if !ok {
		k.T.Fatalf("the service %s is not there", key.Name())
	}
	return v
}

// Close ends the runtime and holds what was sent against the logs. It is called when
// the test ends; one that makes many kits may call it before.
func (k *Kit) Close() {
	if k.closed {
		return
	}
	k.closed = true
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	for _, a := range k.Agents.List() {
		if err := a.Close(ctx); err != nil {
			k.T.Errorf("close agent: %v", err)
		}
	}
	if _, err := k.Root.Fiber().Dispose(ctx); err != nil {
		k.T.Errorf("end of the runtime: %v", err)
	}
	for _, s := range k.sessions {
		_ = s.Close(ctx) // a test may have closed it, or have made its store fail
	}
	k.Recorder.Check(k.T)
}

// Mount mounts a plugin on the root and waits until it is active.
func (k *Kit) Mount(p *cordis.Plugin) *cordis.Fiber {
	k.T.Helper()
	f, err := k.Root.Mount(p, nil)
	if err == nil {
		err = f.Await(k.Context())
	}
	if err != nil {
		k.T.Fatalf("mount %s: %v", p.Name, err)
	}
	if f.State() != cordis.Active {
		k.T.Fatalf("plugin %s is %s: %+v", p.Name, f.State(), f.Waiting())
	}
	return f
}

// Context returns a context that ends with the test, or when Patience has passed.
func (k *Kit) Context() context.Context {
	ctx, cancel := context.WithTimeout(k.T.Context(), Patience)
	k.T.Cleanup(cancel)
	return ctx
}

// Adapter registers a provider, whose requests are recorded.
func (k *Kit) Adapter(provider string, a llm.Adapter) {
	k.T.Helper()
	if _, err := k.Models.Register(provider, k.Recorder.Adapter(a)); err != nil {
		k.T.Fatal(err)
	}
}

// Script registers the provider Provider, which plays a script; see package
// llm/script.
func (k *Kit) Script(yaml string) {
	k.T.Helper()
	s, err := script.Parse([]byte(yaml))
	if err != nil {
		k.T.Fatal(err)
	}
	k.Adapter(Provider, script.New(s))
}

// Session creates a session in the store.
func (k *Kit) Session() *session.Session {
	k.T.Helper()
	s, err := k.Store.Create(k.Context(), session.Meta{ID: fmt.Sprintf("session-%d", len(k.sessions)+1), Cwd: "/project"})
	if err != nil {
		k.T.Fatal(err)
	}
	k.Own(s)
	return s
}

// Own closes a session with the test, and holds what models are sent in it against
// its log.
func (k *Kit) Own(s *session.Session) {
	k.Recorder.Watch(s)
	k.sessions = append(k.sessions, s)
}

// Start starts an agent. What the options leave out is a new session and the model
// of Script.
func (k *Kit) Start(o agent.Options) *agent.Agent {
	k.T.Helper()
	if o.Session == nil {
		o.Session = k.Session()
	}
	if o.Model.Provider == "" {
		o.Model = llm.Config{Provider: Provider, Model: Model}
	}
	a, err := k.Agents.Start(k.Context(), o)
	if err != nil {
		k.T.Fatal(err)
	}
	return a
}

// Run sends a prompt and waits until the agent is idle. It returns how the last turn
// ended.
func (k *Kit) Run(a *agent.Agent, prompt string) session.EndReason {
	k.T.Helper()
	if err := a.Followup(prompt); err != nil {
		k.T.Fatal(err)
	}
	k.Idle(a)
	return k.End(a)
}

// Idle waits until the agent is idle.
func (k *Kit) Idle(a *agent.Agent) {
	k.T.Helper()
	if err := a.WhenIdle(k.Context()); err != nil {
		k.T.Fatal(err)
	}
}

// End returns how the last turn of an agent ended.
func (k *Kit) End(a *agent.Agent) session.EndReason {
	k.T.Helper()
	ends := Payloads[session.TurnEnd](k.T, a.Session().Log)
	if len(ends) == 0 {
		k.T.Fatal("no turn has ended")
	}
	return ends[len(ends)-1].Reason
}

// Payloads returns the payloads of one type, in the order of the log.
func Payloads[P session.Payload](t testing.TB, l *session.Log) []P {
	t.Helper()
	var want P
	var out []P
	for _, e := range l.Events(0) {
		if e.Type != want.EventType() {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p.(P))
	}
	return out
}
