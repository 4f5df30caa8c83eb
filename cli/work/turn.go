package work

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/cli/command"
	"github.com/dsh-go/dsh/serve/terminal"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// goOn is what a model is told where a turn that was interrupted goes on.
//
//go:embed goon.md
var goOn string

// When the parts of an end are to be over, of limits.Shutdown; what one leaves the
// next one has. The commands of an agent that closes have limits.BashLost to end by
// themselves. What follows the plugins is for standard error.
const (
	turnBy    = 700 * time.Millisecond
	agentBy   = 1500 * time.Millisecond
	sessionBy = 1600 * time.Millisecond
	readerBy  = 1700 * time.Millisecond // of standard output
	pluginsBy = 1800 * time.Millisecond
)

// run works on one task.
func run(ctx context.Context, s command.Streams, o *runOptions) (err error) {
	w := &work{o: o, s: s, desk: newDesk(s, o)}
	defer w.desk.close()
	begun := time.Now()
	events := &follower{}
	defer func() {
		unprinted := w.end(ctx, events)
		if err = w.conclude(ctx, err, begun); err == nil {
			err = unprinted
		}
	}()
	if err := w.open(ctx); err != nil {
		return err
	}
	if o.resume && o.task == "" && !w.unfinished() {
		fmt.Fprintf(s.Err, "dsh run: the last turn of session %s is completed; there is nothing to go on with. Give a task.\n", w.session.Meta().ID)
		return errNothing
	}
	if o.asJSON {
		events.start(w.session, w.from, s.Out)
	}
	if err := w.start(ctx); err != nil {
		return err
	}
	return w.turn(ctx)
}

// errNothing says that there is nothing to do, which was told.
var errNothing = errors.New("nothing to do")

// unfinished reports whether the session has something to go on with.
func (w *work) unfinished() bool {
	if len(w.session.Inbox(session.NextTurn)) > 0 {
		return true
	}
	end := lastEnd(w.session.Events(0))
	return end != nil && end.Kind != session.EndCompleted
}

// lastEnd is why the last turn among the events ended; nil where none did.
func lastEnd(events []session.Event) *session.EndReason {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type != session.TypeTurnEnd {
			continue
		}
		if p, err := events[i].Payload(); err == nil {
			if end, ok := p.(session.TurnEnd); ok {
				return &end.Reason
			}
		}
	}
	return nil
}

// turn says the task and waits for its end.
func (w *work) turn(ctx context.Context) error {
	if err := w.say(); err != nil {
		return err
	}
	id := w.session.Meta().ID
	command.PartingOf(ctx).Say("dsh run: ended at once; what it still ran is killed; dsh run --resume --session " + id + " goes on\nsession " + id + "\n")
	idle := make(chan error, 1)
	go func() { idle <- w.agent.WhenIdle(context.WithoutCancel(ctx)) }() // it ends with the agent
	var timeout <-chan time.Time
	if w.o.timeout.Value > 0 {
		timer := time.NewTimer(w.o.timeout.Value)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case err := <-idle:
		return err
	case <-ctx.Done():
		w.cancel(agent.Cause{Kind: agent.CauseUser, Text: "interrupted"})
	case <-timeout:
		w.cancel(agent.Cause{Kind: agent.CauseLimit, Text: "--timeout " + w.o.timeout.String()})
	}
	grace := time.NewTimer(turnBy)
	defer grace.Stop()
	select {
	case err := <-idle:
		return err
	case <-grace.C:
		status := command.Failure
		if ctx.Err() != nil {
			status = exitInterrupted
		}
		what := command.List(command.Awaited(w.agent.Context().Fiber()))
		if what == "" {
			what = "what the turn ran"
		}
		return &command.StatusError{Status: status, Err: fmt.Errorf("the turn was cancelled, and what did not end when it was told to is killed: %s; a resume tells the model", what)}
	}
}

// cancel begins the end of a turn.
func (w *work) cancel(why agent.Cause) {
	w.ending = time.Now()
	if w.desk.view != nil {
		w.desk.view.Ending()
	}
	w.agent.Cancel(why, true)
}

// say gives the agent its task, or tells it to go on.
func (w *work) say() error {
	switch {
	case w.o.task != "":
		return w.agent.Followup(w.o.task)
	case len(w.session.Inbox(session.NextTurn)) > 0:
		return w.agent.Wake()
	}
	m := message.Message{ID: "go-on-" + freshID(), Role: message.User, Content: []message.Block{message.Plain(strings.TrimSpace(goOn))},
		Source: message.Source{Kind: message.SourcePlugin, Name: "run"}}
	return w.agent.Send(m, session.NextTurn, true)
}

// end takes everything down, within limits.Shutdown, and says why events were not
// printed.
func (w *work) end(ctx context.Context, events *follower) (unprinted error) {
	from := w.ending
	if from.IsZero() {
		from = time.Now()
	}
	bounded := func(by time.Duration, do func(context.Context) error) error {
		end, cancel := context.WithDeadline(context.WithoutCancel(ctx), from.Add(by))
		defer cancel()
		return do(end)
	}
	if w.running != nil {
		w.running.Still()
	}
	if w.agent != nil {
		_ = bounded(agentBy, w.agent.Close) // what hangs is told with the plugins, of which it is one
	}
	if w.session != nil {
		// Of an interruption the summary tells, and of a store that failed the end of the turn.
		if err := bounded(sessionBy, w.session.Close); err != nil && ctx.Err() == nil && !w.unwritten() {
			fmt.Fprintf(w.s.Err, "dsh: the session could not be closed: %v\n", err)
		}
	}
	unprinted = events.wait(ctx, from.Add(readerBy))
	w.desk.over(ctx, from.Add(readerBy))
	if w.root != nil {
		if waited := time.Now().Add(-readerBy); ctx.Err() == nil && waited.After(from) {
			from = waited // for who reads, as long as it took
		}
		command.StopBy(w.root, w.s.Err, from.Add(pluginsBy))
	}
	return unprinted
}

// unwritten reports whether the turn ended because its session could not be written.
func (w *work) unwritten() bool {
	end := lastEnd(w.session.Events(w.from))
	return end != nil && end.Error != nil && end.Error.Code == agent.CodeStore
}

// conclude prints the answer and the summary, and turns the end of the turn into
// an exit status.
func (w *work) conclude(ctx context.Context, err error, begun time.Time) error {
	if w.session == nil || w.session.Len() == 0 {
		return err // there is no session to tell of
	}
	if errors.Is(err, errNothing) {
		return nil
	}
	events := w.session.Events(w.from)
	var why *session.EndReason
	if w.agent != nil {
		why = lastEnd(events)
	}
	status := command.Status(err)
	var text string
	switch {
	case err != nil:
		text = err.Error()
	case why == nil:
		status, text = command.Failure, "the turn did not begin"
	default:
		status = statusOf(*why)
		text = "the turn ended: " + terminal.Outcome(*why)
	}
	if !w.o.asJSON && (status == command.OK || status == exitDenied) {
		if printed := w.print(ctx, lastText(events)); printed != nil && status == command.OK {
			status, text = command.Status(printed), printed.Error()
		}
	}
	if status != command.OK {
		fmt.Fprintf(w.s.Err, "dsh run: %s\n", text)
	}
	if w.desk.view != nil && w.agent != nil {
		fmt.Fprintln(w.s.Err, tally(events, begun))
	}
	if w.store.Has(w.session.Meta().ID) { // not where nothing of it could be written
		fmt.Fprintf(w.s.Err, "session %s\n", w.session.Meta().ID)
	}
	if status == command.OK {
		return nil
	}
	return &command.StatusError{Status: status, Err: errors.New(text), Told: true}
}

// print prints the answer. After an interruption it does not wait for who reads it.
func (w *work) print(ctx context.Context, text string) error {
	answer := &follower{}
	answer.begin(func() error { return command.PrintText(w.s.Out, text) })
	return answer.wait(ctx, time.Now().Add(pluginsBy-readerBy))
}

// statusOf is the exit status for the end of a turn.
func statusOf(r session.EndReason) int {
	switch r.Kind {
	case session.EndCompleted:
		return command.OK
	case session.EndDenied:
		return exitDenied
	case session.EndInterrupted:
		return exitInterrupted
	case session.EndAborted:
		if r.Abort != nil && r.Abort.Kind == string(agent.CauseUser) {
			return exitInterrupted
		}
	}
	return command.Failure
}

// lastText is what the model said last.
func lastText(events []session.Event) string {
	for i := len(events) - 1; i >= 0; i-- {
		if events[i].Type != session.TypeAssistant {
			continue
		}
		if p, err := events[i].Payload(); err == nil {
			if m, ok := p.(session.AssistantMessage); ok {
				return m.Message.Text()
			}
		}
	}
	return ""
}

// tally is a line on what a run took.
func tally(events []session.Event, begun time.Time) string {
	var steps, calls int
	var used message.Usage
	for _, e := range events {
		switch e.Type {
		case session.TypeStepStart:
			steps++
		case session.TypeCall:
			calls++
		case session.TypeAssistant, session.TypeLLMCall:
			p, err := e.Payload()
			if err != nil {
				continue
			}
			var u *message.Usage
			switch p := p.(type) {
			case session.AssistantMessage:
				u = p.Usage
			case session.LLMCall:
				u = p.Usage
			}
			if u != nil {
				used = used.Add(*u)
			}
		}
	}
	text := fmt.Sprintf("%s, %s, %s", count(steps, "step"), count(calls, "tool call"), time.Since(begun).Round(100*time.Millisecond))
	if used.Total() > 0 {
		text += fmt.Sprintf(", tokens: %d in (%d from cache), %d out", used.Prompt(), used.CacheRead, used.Output+used.Reasoning)
	}
	return text
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// watch shows progress.
func (d *desk) watch(ctx context.Context, w *work) error {
	c, err := newCards(ctx, w.root, w.agent.Scope())
	if err != nil {
		return err
	}
	d.cards.Cards = c
	if d.view == nil {
		return nil
	}
	scope := w.agent.Scope()
	if _, err := tool.Progressed.On(w.root, func(_ context.Context, r tool.ProgressReport) {
		if r.Exec != nil && r.Exec.Scope.Within(scope) {
			d.view.Progress(r.Progress.Text)
		}
	}); err != nil {
		return fmt.Errorf("watch progress: %w", err)
	}
	d.seen = &follower{}
	d.seen.follow(w.session.Follow(context.Background(), w.from), func(e session.Event) error { d.view.Event(e); return nil })
	return nil
}

// over waits until everything was shown, after an interruption not longer than by.
func (d *desk) over(ctx context.Context, by time.Time) {
	if d.seen != nil {
		_ = d.seen.wait(ctx, by) // nobody could be told
	}
	if d.view != nil {
		d.view.Clear()
	}
}

// A follower passes the events of a log on until the log is closed, or prints
// something else on a goroutine of its own.
type follower struct {
	done chan struct{}
	err  error // set when done is closed
}

// start prints what is in the store: a program that has read a line can count on it.
func (f *follower) start(w *session.Session, from int64, out io.Writer) {
	f.follow(w.FollowWritten(context.Background(), from), func(e session.Event) error {
		_, err := io.WriteString(out, e.Line()+"\n")
		return err
	})
}

func (f *follower) follow(events iter.Seq[session.Event], do func(session.Event) error) {
	f.begin(func() error { // ends with the log, or where nobody reads any more
		for e := range events {
			if err := do(e); err != nil {
				return fmt.Errorf("print events: %w", err)
			}
		}
		return nil
	})
}

func (f *follower) begin(do func() error) {
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.err = do()
	}()
}

// wait waits until the last of it was passed on, after an interruption not longer
// than by. It says why it was not.
func (f *follower) wait(ctx context.Context, by time.Time) error {
	if f.done == nil {
		return nil
	}
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(time.Until(by))
	defer timer.Stop()
	select {
	case <-f.done:
		return f.err
	case <-timer.C:
		return &command.StatusError{Status: exitInterrupted, Err: errors.New("interrupted before all was printed")}
	}
}
