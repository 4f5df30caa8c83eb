package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// A Status says what an agent does.
type Status string

// The statuses.
const (
	Idle    Status = "idle"
	Running Status = "running"
)

// A CauseKind says who cancelled a turn.
type CauseKind string

// The kinds of a Cause. CauseLimit ends the turn as EndLimit, the others as
// EndAborted.
const (
	CauseUser     CauseKind = "user"
	CauseParent   CauseKind = "parent"
	CauseHook     CauseKind = "hook"
	CauseDisposed CauseKind = "disposed"
	CauseLimit    CauseKind = "limit"
)

// A Cause says why a turn is cancelled. It is the cause of the contexts of what
// the turn calls.
type Cause struct {
	Kind CauseKind
	Text string // for people; it is logged
}

// Error says that the turn was cancelled, by whom and why.
func (c Cause) Error() string {
	if c.Text == "" {
		return "cancelled (" + string(c.Kind) + ")"
	}
	return "cancelled (" + string(c.Kind) + "): " + c.Text
}

// An Agent drives one session.
type Agent struct {
	g       *Agents
	id      string
	scope   *tool.Scope
	session *session.Session
	opts    Options
	fiber   *cordis.Fiber
	c       *cordis.Context // the fiber's

	mu        sync.Mutex // guards what follows; the log and the runtime are used under it
	closed    bool
	published bool
	running   bool
	held      bool                    // a start or a maintenance keeps turns from beginning
	wake      bool                    // a turn begins when what runs or holds now has ended
	cancel    context.CancelCauseFunc // of the turn or the maintenance
	ending    bool                    // the turn was cancelled or is over
	cancelled bool                    // it was cancelled
	keep      bool                    // and what waits is kept
	done      chan struct{}           // of the newest driver, start or maintenance; closed when it has ended

	header assembled // what the log's header was made of; the driver's
	asks   asks      // what plugins ask of it
}

func newAgent(g *Agents, o Options) *Agent {
	id := o.Session.Meta().ID
	a := &Agent{g: g, id: id, scope: tool.NewScope("session "+id, o.Parent), session: o.Session, opts: o, held: true, done: make(chan struct{})}
	a.opts.Plugins = nil
	a.opts.Model = inheritEffort(o.Model, o.Session)
	return a
}

// ID returns the id of the agent, which is its session's.
func (a *Agent) ID() string { return a.id }

// Scope returns the scope of what belongs to the agent.
func (a *Agent) Scope() *tool.Scope { return a.scope }

// Context returns the context that carries the scope: what is mounted on it, or
// registered through it, belongs to the agent and ends with it.
func (a *Agent) Context() *cordis.Context { return a.c }

// Session returns the session.
func (a *Agent) Session() *session.Session { return a.session }

// Model returns the config that requests have unless agent/request says otherwise.
func (a *Agent) Model() llm.Config { return a.opts.Model }

// Status returns what the agent does now.
func (a *Agent) Status() Status {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running {
		return Running
	}
	return Idle
}

// Usage returns what the requests of the session took, in this life of it and in
// earlier ones: of attempts that failed and one-shots too, as far as the provider
// told. It is a function of the log. Those of the session that was forked do not
// count.
func (a *Agent) Usage() message.Usage { return a.session.Usage() }

// hearing selects the listeners of the agent's events.
func (a *Agent) hearing() cordis.DispatchOption {
	return cordis.WithFilter(func(c *cordis.Context) bool { return a.scope.Within(tool.ScopeOf(c)) })
}

// mount makes the agent's fiber and mounts its plugins.
func (a *Agent) mount(ctx context.Context, plugins []*cordis.Plugin) error {
	ran := false
	f, err := tool.WithScope(a.g.c, a.scope).Mount(&cordis.Plugin{Name: "agent " + plain.Name(a.id), Apply: func(c *cordis.Context, _ any) error {
		if ran {
			return errors.New("an agent is not restarted; close it and start another one")
		}
		ran = true
		a.c = c
		_, err := c.Defer("agent", a.leave)
		return err
	}}, nil)
	if err != nil {
		return err
	}
	a.fiber = f
	if err := f.Await(ctx); err != nil {
		return err
	}
	fibers := make([]*cordis.Fiber, len(plugins))
	for i, p := range plugins {
		if fibers[i], err = a.c.Mount(p, nil); err != nil {
			return fmt.Errorf("mount plugin %s: %w", plain.Name(p.Name), err)
		}
		if err := fibers[i].Await(ctx); err != nil {
			return fmt.Errorf("plugin %s: %w", plain.Name(p.Name), err)
		}
	}
	for _, f := range fibers {
		// One that waited for a later one may run only now.
		if err := f.Await(ctx); err != nil {
			return fmt.Errorf("plugin %s: %w", plain.Name(f.Name()), err)
		}
		if f.State() != cordis.Active {
			return fmt.Errorf("plugin %s is %s: %s", plain.Name(f.Name()), f.State(), waiting(f))
		}
	}
	return nil
}

// unmount takes back what mount did.
func (a *Agent) unmount(ctx context.Context) {
	a.shut()
	if a.fiber == nil {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), limits.Shutdown)
	defer stop()
	if _, err := a.fiber.Dispose(ctx); err != nil {
		a.g.c.Logger("agents").Warn("an agent that could not be started did not unmount", "session", a.id, "error", err)
	}
}

// shut takes no more messages, and begins no turn.
func (a *Agent) shut() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// leave is the last thing of the agent's fiber: its plugins and calls have ended.
func (a *Agent) leave(ctx context.Context) error {
	a.mu.Lock()
	a.closed = true
	published := a.published
	a.published = false
	a.mu.Unlock()
	if !published {
		close(a.done) // of the start
	}
	a.g.remove(a)
	if published {
		Disposed.Emit(ctx, a.g.c, Lifecycle{a, a.id}, a.hearing())
	}
	return nil
}

// turnKey marks the contexts of an agent's turn, and of its maintenance.
type turnKey struct{ a *Agent }

func (a *Agent) within(ctx context.Context) bool { return ctx.Value(turnKey{a}) != nil }

// WhenIdle returns when no turn runs and none is about to, and no maintenance
// either; turns that begin while it waits are waited for too. ErrBusy within a
// turn of the agent, or ctx's error.
func (a *Agent) WhenIdle(ctx context.Context) error {
	if a.within(ctx) {
		return fmt.Errorf("wait for agent %s: %w", a.id, ErrBusy)
	}
	for {
		a.mu.Lock()
		done, busy := a.done, a.running || a.held && !a.closed
		a.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("wait for agent %s: %w", a.id, ctx.Err())
		}
		if !busy {
			return nil
		}
	}
}

// Maintain waits until the agent is idle and runs fn, during which no turn begins:
// messages that wake are kept until it has ended. The context of fn ends with ctx,
// with Cancel and with the agent. ErrBusy within a turn of the agent; ErrClosed; else
// what fn returns.
func (a *Agent) Maintain(ctx context.Context, fn func(ctx context.Context) error) error {
	for {
		if err := a.WhenIdle(ctx); err != nil {
			return err
		}
		a.mu.Lock()
		if a.closed {
			a.mu.Unlock()
			return fmt.Errorf("maintain agent %s: %w", a.id, ErrClosed)
		}
		if !a.running && !a.held {
			break
		}
		a.mu.Unlock()
	}
	inner, leave, err := a.enter(ctx, "agent.maintain")
	if err != nil {
		a.mu.Unlock()
		return fmt.Errorf("maintain agent %s: %w", a.id, err)
	}
	inner, cancel := context.WithCancelCause(inner)
	done := make(chan struct{})
	a.held, a.cancel, a.done = true, cancel, done
	a.mu.Unlock()
	defer leave()
	defer close(done)
	defer a.release()
	defer cancel(nil)
	return guard(func() error { return fn(context.WithValue(inner, turnKey{a}, true)) })
}

// enter begins a tracked call of the agent's fiber whose context ends with ctx, with
// the fiber's run and with that of the agents plugin.
func (a *Agent) enter(ctx context.Context, label string) (context.Context, func(), error) {
	inner, leave, err := a.fiber.Enter(ctx, label)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrClosed, err)
	}
	inner, cancel := context.WithCancelCause(inner)
	disposed := func() { cancel(Cause{Kind: CauseDisposed}) }
	stop := context.AfterFunc(a.c.Context(), disposed)
	// The plugin above waits for its own calls, bodies among them, before it unloads
	// the agents.
	stopAll := context.AfterFunc(a.g.c.Context(), disposed)
	return inner, func() {
		stop()
		stopAll()
		cancel(nil)
		leave()
	}, nil
}

// release lets turns begin again.
func (a *Agent) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held, a.cancel = false, nil
	if a.wake && !a.closed {
		_ = a.begin() // it fails when the agent is going, and then nobody waits for it
	}
}

// begin makes the agent run. A turn that runs will take what waits; one that is
// over, or was cancelled, will not, and another one follows. The caller has the lock.
func (a *Agent) begin() error {
	if a.running || a.held {
		a.wake = a.wake || a.held || a.ending
		return nil
	}
	a.wake = false
	ctx, leave, err := a.enter(a.c.Context(), "agent.turn")
	if err != nil {
		return err
	}
	before, done := a.done, make(chan struct{})
	a.running, a.ending, a.done = true, false, done
	go func() {
		defer close(done)
		defer leave()
		<-before // so that statuses are told in their order
		a.drive(context.WithValue(ctx, turnKey{a}, true))
	}()
	return nil
}

// Close cancels what runs, takes the agent out of the runtime with everything that
// belongs to it, and returns when it is quiescent. The session stays open. The
// error is about the wait (ctx, or calls that did not end in time); the end goes on.
func (a *Agent) Close(ctx context.Context) error {
	a.shut()
	a.Cancel(Cause{Kind: CauseDisposed}, true)
	if _, err := a.fiber.Dispose(ctx); err != nil {
		return fmt.Errorf("close agent %s: %w", a.id, err)
	}
	return nil
}

// fail tells of a failure.
func (a *Agent) fail(turn, step int, err error) {
	failure := Failure{Agent: a, Session: a.id, Turn: turn, Step: step, Err: err}
	f := llm.AsFailure(err, llm.CodeInternal)
	failure.Message, failure.Code = plain.Cut(f.Message, limits.ErrorText), f.Code
	if p := new(panicError); errors.As(err, &p) {
		a.g.c.Logger("agents").Error("a turn panicked", "session", a.id, "turn", turn, "panic", p.value, "stack", string(p.stack))
	}
	Errored.Emit(a.c.Context(), a.g.c, failure, a.hearing())
}

// waiting says what a fiber waits for.
func waiting(f *cordis.Fiber) string {
	w := f.Waiting()
	text := ""
	for i, m := range w.Missing {
		if i > 0 {
			text += "; "
		}
		text += "it waits for the service " + plain.Name(m.Name) + " (" + m.Reason + ")"
	}
	if len(w.Cycle) > 0 {
		text += fmt.Sprintf("; a cycle: %q", w.Cycle)
	}
	return text
}

// panicError is a panic of somebody else's code.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// afterwards is a context for what has to be done after a cancellation.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), limits.AgentAfterwards)
}
