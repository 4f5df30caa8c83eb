package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/keys"
	"github.com/dsh-go/dsh/llm/providers"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/plugins/standard"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/serve/terminal"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/jsonl"
	"github.com/dsh-go/dsh/trust"
)

// work is one run: a session, the runtime around it, and who looks on.
type work struct {
	o       *runOptions
	s       command.Streams
	desk    *desk
	models  *llm.Registry
	store   *jsonl.Store
	session *session.Session
	from    int64 // the first event of this run
	root    *cordis.Context
	running *command.Running
	given   standard.Given // to the plugins
	agent   *agent.Agent
	ending  time.Time // when the turn was cancelled; zero: it was not
}

// open finds or makes the session, and what depends on it: folder, model, mode.
func (w *work) open(ctx context.Context) (err error) {
	if w.store, err = store(); err != nil {
		return err
	}
	if w.o.resume {
		return w.openOld(ctx)
	}
	cwd := w.o.cwd
	if cwd == "" {
		cwd = "."
	}
	if err := w.o.place(cwd); err != nil {
		return err
	}
	if err := w.provide(); err != nil {
		return err
	}
	if err := w.compose(ctx); err != nil {
		return err
	}
	id := w.o.session
	if id == "" {
		id = freshID()
	}
	w.session, err = w.store.Create(ctx, session.Meta{ID: id, Cwd: w.o.cwd})
	if errors.Is(err, session.ErrExists) {
		return command.Usagef("there is a session %s already: add --resume to go on with it, or choose another id", id)
	}
	if err != nil {
		return fmt.Errorf("create session: %w", err)
	}
	return nil
}

func (w *work) openOld(ctx context.Context) error {
	asked := w.o.cwd
	if asked == "" {
		asked = "."
	}
	cwd, err := folder(asked)
	if err != nil {
		return command.Usagef("--cwd: %w", err)
	}
	name := w.o.session
	if name == "" {
		name = latest
	}
	id, err := find(ctx, w.store, name, cwd)
	if err != nil {
		return err
	}
	if w.session, err = w.store.Open(ctx, id); err != nil {
		return wayOut(ctx, w.store, id, fmt.Errorf("resume session %s: %w", id, err))
	}
	w.from = max(0, w.session.FirstLive()-1)
	now, err := w.moved(cwd)
	if err != nil {
		return err
	}
	if err := w.o.place(now); err != nil {
		return err
	}
	if w.o.mode == "" {
		w.o.mode = permission.Mode(w.session.PermissionMode())
	}
	if err := w.oldModel(); err != nil {
		return err
	}
	if w.o.task != "" && !w.o.fromStdin {
		if err := w.o.addPiped(ctx, w.s, limits.TaskWait); err != nil {
			return err
		}
	}
	if err := w.provide(); err != nil {
		return err
	}
	return w.compose(ctx)
}

// moved is the folder in which an old session goes on: its own or, where that has
// gone, the one that --cwd names.
func (w *work) moved(cwd string) (string, error) {
	id, own := w.session.Meta().ID, w.session.Meta().Cwd
	if own == "" || own == cwd {
		return cwd, nil
	}
	_, err := folder(own)
	shown := plain.Line(own, limits.Preview)
	switch {
	case err == nil && w.o.cwd != "":
		return "", command.Usagef("session %s works in %s: leave --cwd out", id, shown)
	case err == nil:
		return own, nil
	case w.o.cwd == "":
		return "", command.Usagef("session %s worked in %s, which is not there any more: say with --cwd where it goes on", id, shown)
	}
	fmt.Fprintf(w.s.Err, "dsh: session %s worked in %s, which is not there any more; it goes on in %s\n", id, shown, plain.Line(cwd, limits.Preview))
	return cwd, nil
}

// oldModel takes the model of the session's last request, where no flag says.
func (w *work) oldModel() error {
	if w.o.config.Provider != "" {
		return nil
	}
	if h, ok := w.session.Header(); ok {
		var last llm.Config
		if err := json.Unmarshal(h.Config.Encode(), &last); err != nil {
			return fmt.Errorf("read model of session: %w", err)
		}
		w.o.config = llm.Config{Provider: last.Provider, Model: last.Model}
		return nil
	}
	c, err := chooseModel("", os.Getenv("DSH_MODEL"), keyStore())
	w.o.config = c
	return err
}

// provide makes the providers: the chosen one, and those that have a key.
func (w *work) provide() error {
	w.models = &llm.Registry{}
	if w.o.effort != "" {
		w.o.config.Effort = w.o.effort
	}
	opt := providers.Options{Keys: keyStore(), ScriptDir: ".", Out: w.s.Err, UserAgent: "dsh/" + command.Version()}
	chosen := w.o.config.Provider
	if chosen == providers.Manual {
		in, err := w.desk.typed()
		if err != nil {
			return err
		}
		opt.In = in
	}
	for _, name := range providers.Names() {
		needless := name == providers.Manual || name == providers.Script
		if name != chosen && needless {
			continue
		}
		a, err := providers.New(name, opt)
		if err != nil && name == chosen {
			return command.AsUsage(err)
		}
		if err != nil {
			continue // told when it is chosen
		}
		if _, err := w.models.Register(name, a); err != nil {
			return fmt.Errorf("provider %s: %w", name, err)
		}
	}
	if _, err := w.models.Prepare(w.o.config); err != nil {
		return command.Usagef("--model: %w", err)
	}
	return checkKey(chosen, opt.Keys)
}

// checkKey says at once what the first request would say.
func checkKey(provider string, store keys.Store) error {
	if !slices.Contains(providers.WithKey(), provider) {
		return nil
	}
	c, err := store.Find(provider)
	if err != nil && c.BaseURL == "" {
		return command.Usagef("--model %s: %w", provider, err)
	}
	return nil
}

// compose starts the runtime that the documents say.
func (w *work) compose(ctx context.Context) (err error) {
	var late command.Late
	w.given = standard.Given{
		Program: command.Program, Cwd: w.o.cwd, Roots: w.o.implied, Models: w.models, Sessions: w.store,
		Toolset: selfmod.Config{Console: w.s.Err, Memory: selfmod.NewMemory()},
		Deny:    w.o.rules.deny,
		Trusted: late.Trusted, Loads: late.Loads,
	}
	if p := w.desk.person; p != nil {
		w.given.Questions = p
	}
	w.running, err = w.o.layers.Start(ctx, w.s.Err, selfmod.Config{}.DrainLimit(), composition.Options{
		Sources: w.o.layers.Sources(standard.Run()), Catalog: standard.Catalog(w.given), Watch: true,
		Sandbox: sandbox.Config{Exe: command.Program, Stderr: w.s.Err},
		Console: func(line string) { fmt.Fprintln(w.s.Err, line) },
		Confirm: w.desk.confirm(),
	})
	if err == nil {
		w.root = w.running.Root
		late.Set(w.running)
	}
	return err
}

// start starts the agent, in its project.
func (w *work) start(ctx context.Context) error {
	place, err := w.running.Place(ctx, w.o.cwd)
	if err != nil {
		return err
	}
	agents, err := agent.Service.Use(w.root)
	if err != nil {
		return fmt.Errorf("find agents: %w", err)
	}
	own := w.given
	own.Session, own.Mode, own.Allow = w.session, w.o.mode, w.o.rules.allow
	if p := w.desk.person; p != nil {
		own.Ask = p.Approve
	}
	w.agent, err = agents.Start(ctx, agent.Options{
		Session: w.session, Model: w.o.config, Cwd: w.o.cwd, Parent: place.Scope(),
		Plugins:  []*cordis.Plugin{place.Plugin(standard.Catalog(own))},
		MaxSteps: int(w.o.maxSteps.value), MaxTokens: w.o.maxTokens.value,
	})
	if err != nil {
		return err
	}
	return w.desk.watch(ctx, w)
}

// desk is where a person sits, if there is one.
type desk struct {
	s      command.Streams
	view   *terminal.View   // progress; nil where nobody looks on
	input  *terminal.Input  // nil where nobody can be asked
	person *terminal.Person // likewise
	tty    *os.File         // what had to be opened for it
	cards  lateCards
	task   bool // standard input was the task
	seen   *follower
}

// lateCards are cards that come with the runtime, after the view.
type lateCards struct{ terminal.Cards }

// newDesk looks for a person: one who sees standard error or types on standard
// input. Where the task comes on standard input they type on the terminal itself.
func newDesk(s command.Streams, o *runOptions) *desk {
	d := &desk{s: s, task: o.fromStdin}
	sees, types := terminal.Is(s.Err), terminal.Is(s.In)
	if !sees && !types {
		return d
	}
	var in io.Reader = s.In
	out := io.Writer(s.Err)
	if !sees || !types {
		tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
		if err == nil {
			d.tty = tty
		}
		switch {
		case err != nil && !types, err != nil && !sees:
			in = nil
		case !types:
			in = tty
		case !sees:
			out = tty
		}
	}
	v := terminal.New(terminal.Options{Out: out, Color: terminal.Color(out), Width: terminal.Width(out), Cards: &d.cards, Live: true, Answers: o.asJSON})
	if sees {
		d.view = v
	}
	if in != nil {
		d.input = terminal.NewInput(in)
		d.person = terminal.NewPerson(v, d.input)
	}
	return d
}

// typed is what whoever plays the model types.
func (d *desk) typed() (io.Reader, error) {
	switch {
	case d.input != nil:
		return d.input.Typed(), nil
	case d.task:
		return nil, command.Usagef("--model manual needs a terminal, or what the model says on standard input; give the task as an argument")
	}
	return d.s.In, nil
}

// confirm asks the person whether they trust a project's files; nil where there is
// nobody.
func (d *desk) confirm() func(context.Context, trust.State) (bool, error) {
	if d.person == nil {
		return nil
	}
	return func(ctx context.Context, s trust.State) (bool, error) {
		return d.person.Confirm(ctx, s.Text(), "These files of "+plain.Visible(s.Root)+" are run with your rights. Trust them?")
	}
}

func (d *desk) close() {
	if d.input != nil {
		_ = d.input.Close() // it only ends waiting
	}
	if d.tty != nil {
		_ = d.tty.Close() // it was for questions
	}
}
