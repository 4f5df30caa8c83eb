package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// CodeStore is the code of a turn's failure whose session could not be written.
const CodeStore = "SESSION_STORE"

// errLimit ends a turn at a limit; its text says which.
type errLimit struct{ detail string }

func (e *errLimit) Error() string        { return e.detail }
func (e *errLimit) Is(target error) bool { return target == ErrLimit }

// guard runs somebody else's code and makes an error of its panic.
func guard(fn func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return fn()
}

// drive runs turns as long as there is something to do.
func (a *Agent) drive(ctx context.Context) {
	ctx = tool.WithActor(ctx, tool.Actor{Scope: a.scope})
	a.tellStatus(ctx, Running)
	for a.turn(ctx) {
	}
	a.tellStatus(ctx, Idle)
}

func (a *Agent) tellStatus(ctx context.Context, s Status) {
	StatusChanged.Emit(ctx, a.g.c, StatusChange{a, a.id, s}, a.hearing())
}

// turn runs one turn and says whether another one follows. Where none does, the
// agent is idle when it returns.
func (a *Agent) turn(driver context.Context) bool {
	ctx, cancel := context.WithCancelCause(driver)
	defer cancel(nil)
	a.mu.Lock()
	a.cancel, a.ending, a.cancelled, a.keep, a.wake = cancel, false, false, false, false
	if a.closed {
		cancel(Cause{Kind: CauseDisposed})
	}
	a.mu.Unlock()

	t := &turn{a: a, calledFrom: -1}
	var end session.EndReason
	err := guard(func() (err error) {
		end, err = t.run(ctx)
		return err
	})
	parked := t.close(ctx, end, err)

	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancel = nil
	waits := a.session.Waiting(session.NextTurn)+a.session.Waiting(session.NextStep) > 0
	again := !a.closed && driver.Err() == nil && (a.wake || waits && !parked)
	a.running = again
	return again
}

// turn is one turn under way. It belongs to the driver.
type turn struct {
	a          *Agent
	n          int
	step       int
	from       int64             // seq of turn/start
	stepFrom   int64             // seq of the last step/start
	calledFrom int64             // that of the last step that called tools; -1: none
	cut        bool              // an answer was cut
	claimed    []message.Message // taken from the inbox and not in a step yet
	images     bool              // the model that was asked last takes images
	answer     message.Message   // the last one
}

// run runs the turn up to its end, which the caller logs.
func (t *turn) run(ctx context.Context) (session.EndReason, error) {
	log := t.a.session
	if log.Turn().TurnOpen { // an earlier turn could not be closed
		if _, err := log.Repair(); err != nil {
			return session.EndReason{}, err
		}
	}
	t.n = log.Turn().Turn + 1
	started, err := log.Append(session.TurnStart{Turn: t.n})
	if err != nil {
		return session.EndReason{}, err
	}
	t.from = started[0].Seq
	for {
		entry, err := t.boundary(ctx)
		if err != nil {
			return session.EndReason{}, err
		}
		if entry.Kind == Reject {
			t.claimed = nil
			return session.EndReason{Kind: session.EndBlocked, Detail: plain.Cut(entry.Reason, limits.ErrorText)}, nil
		}
		if t.step == 0 && len(entry.Messages) == 0 {
			return session.EndReason{Kind: session.EndCompleted, Detail: nothingSaid}, nil
		}
		over, err := t.runStep(ctx, entry.Messages)
		if err != nil {
			return session.EndReason{}, err
		}
		if end, stopped, err := t.denied(t.stepFrom, scopeStop); stopped || err != nil {
			return end, err // the person ended the turn with a denial
		}
		if !over || log.Waiting(session.NextStep) > 0 {
			continue
		}
		if _, _, err := TurnStopping.Dispatch(ctx, t.a.g.c, Stopping{t.a, t.a.id, t.n, t.answer}, t.a.hearing()); err != nil {
			return session.EndReason{}, err
		}
		if log.Waiting(session.NextStep) == 0 {
			return t.completed()
		}
	}
}

// nothingSaid is the detail of a turn that ended without a step.
const nothingSaid = "nothing was said"

// completed is how the turn ends by itself: as denied where an act of the last step
// with calls was.
func (t *turn) completed() (session.EndReason, error) {
	if t.cut {
		return session.EndReason{Kind: session.EndMaxTokens}, nil
	}
	if t.calledFrom < 0 {
		return session.EndReason{Kind: session.EndCompleted}, nil
	}
	end, denied, err := t.denied(t.calledFrom, "")
	if !denied && err == nil {
		return session.EndReason{Kind: session.EndCompleted}, nil
	}
	if err == nil {
		end.Detail, err = t.denials()
	}
	return end, err
}

// boundary is what comes before a step: limits, the inbox, the runtime context,
// and whether the step begins.
func (t *turn) boundary(ctx context.Context) (Entry, error) {
	a := t.a
	if err := context.Cause(ctx); err != nil {
		return Entry{}, err
	}
	if limit := a.opts.MaxSteps; limit > 0 && t.step >= limit {
		return Entry{}, &errLimit{fmt.Sprintf("the turn had %d %s, the most it may have", limit, steps(limit))}
	}
	if err := a.checkTokens(); err != nil {
		return Entry{}, err
	}
	first := t.step == 0
	var err error
	if t.claimed, err = a.claim(ctx, first); err != nil {
		return Entry{}, err
	}
	contexts, err := a.g.prompt.Contexts(ctx, a.view(a.opts.Model))
	if err != nil {
		return Entry{}, err
	}
	messages := slices.Clone(t.claimed)
	if !first || len(messages) > 0 {
		messages = t.withContext(messages, contexts)
	}
	plan := StepPlan{Agent: a, Session: a.id, Turn: t.n, Step: t.step + 1, Messages: messages}
	entry, err := PreStep.Run(ctx, a.g.c, plan, func(_ context.Context, p StepPlan) (Entry, error) {
		return Entry{Kind: Enter, Messages: p.Messages}, nil
	}, a.hearing())
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && entry.Kind != Enter && entry.Kind != Reject {
		err = fmt.Errorf("agent/pre-step: a listener answered %q; an entry is %q or %q", plain.Name(string(entry.Kind)), Enter, Reject)
	}
	if err != nil {
		return Entry{}, err
	}
	if !first || len(entry.Messages) > 0 { // a listener may have compacted what the model was told
		entry.Messages = t.withContext(entry.Messages, contexts)
	}
	return entry, nil
}

// IsSnapshot says whether a message tells the runtime context, which the loop does
// before a step when the model was not told it yet, or cannot see it any more.
func IsSnapshot(m message.Message) bool { return m.Source.IsPlugin(prompt.Service.Name()) }

// withContext adds the runtime context to the messages of a step, if it is not what
// the model was told last, or that was compacted away.
func (t *turn) withContext(messages []message.Message, contexts string) []message.Message {
	if slices.ContainsFunc(messages, IsSnapshot) {
		return messages
	}
	told, ok := t.a.session.LastNode(func(n session.Node) bool { return IsSnapshot(n.Message) })
	text := prompt.Snapshot(contexts)
	if ok && told.Message.Text() == text || !ok && contexts == "" {
		return messages
	}
	return slices.Concat([]message.Message{message.FromPlugin(newID(), prompt.Service.Name(), message.Plain(text))}, messages)
}

func steps(n int) string {
	if n == 1 {
		return "step"
	}
	return "steps"
}

// view is for whom the prompt is made.
func (a *Agent) view(c llm.Config) prompt.View {
	if c.Model == "" { // the provider's default
		if call, err := a.g.models.Prepare(c); err == nil {
			c = call.Config
		}
	}
	cwd := cmp.Or(a.opts.Cwd, a.session.Meta().Cwd)
	return prompt.View{Scope: a.scope, Values: map[string]string{"provider": c.Provider, "model": c.Model, "cwd": cwd}}
}

// checkTokens says whether the session may make another request.
func (a *Agent) checkTokens() error {
	if limit, used := a.opts.MaxTokens, a.Usage().Total(); limit > 0 && used >= limit {
		return &errLimit{fmt.Sprintf("the session used %d tokens of the %d that it may", used, limit)}
	}
	return nil
}

// runStep runs one step and says whether the turn is over, as far as it goes.
func (t *turn) runStep(ctx context.Context, messages []message.Message) (over bool, err error) {
	log := t.a.session
	begin := []session.Payload{session.StepStart{Turn: t.n, Step: t.step + 1}}
	for _, m := range messages {
		begin = append(begin, session.UserMessage{Message: m})
	}
	if title := t.title(messages); title != "" {
		begin = append(begin, session.Title{Title: title, Source: "task"})
	}
	events, err := log.Append(begin...)
	if err != nil {
		return false, err
	}
	t.step, t.stepFrom, t.claimed = t.step+1, events[0].Seq, nil
	answered, err := t.ask(ctx)
	if err != nil {
		return false, err
	}
	t.answer = answered.message
	if calls := answered.message.Calls(); len(calls) > 0 {
		t.calledFrom = t.stepFrom
		if over, err = t.callTools(ctx, calls); err != nil {
			return false, err
		}
	} else {
		over = true
	}
	t.cut = t.cut || answered.cut
	if _, err := log.Append(session.StepEnd{Turn: t.n, Step: t.step}); err != nil {
		return false, err
	}
	return over, context.Cause(ctx)
}

// title is the first line of the first prompt, for a session that has none.
func (t *turn) title(messages []message.Message) string {
	if t.a.session.Title() != "" {
		return ""
	}
	for _, m := range messages {
		if m.Source.Kind == message.SourceUser {
			first, _, _ := strings.Cut(strings.TrimSpace(m.Text()), "\n")
			return session.CleanTitle(first)
		}
	}
	return ""
}

// close ends the turn in the log, whatever happened in it, and says whether what
// waits is left until somebody wakes the agent.
func (t *turn) close(ctx context.Context, end session.EndReason, failure error) (parked bool) {
	a := t.a
	a.mu.Lock()
	a.ending = true // from now on who wakes begins another turn
	keep := a.keep || !a.cancelled
	a.mu.Unlock()
	if failure != nil {
		end = endOf(ctx, failure)
	}
	turn := t.a.session.Turn()
	if end.Kind == session.EndError {
		a.fail(t.n, turn.Step, failure)
	}
	if err := t.settle(end, keep); err != nil {
		if failure == nil || !errors.Is(failure, err) {
			a.fail(t.n, turn.Step, fmt.Errorf("end turn %d: %w", t.n, err))
		}
		parked = true
	}
	after, stop := afterwards(ctx)
	defer stop()
	if err := a.session.Checkpoint(after); err != nil {
		a.fail(t.n, turn.Step, storeFailure(err))
		parked = true
	}
	switch end.Kind {
	case session.EndCompleted, session.EndDenied, session.EndMaxTokens:
		return parked || end.Detail == nothingSaid
	}
	return true
}

// endOf is how a turn ends that failed.
func endOf(ctx context.Context, failure error) session.EndReason {
	if limit := new(errLimit); errors.As(failure, &limit) {
		return session.EndReason{Kind: session.EndLimit, Detail: limit.detail}
	}
	if cause := context.Cause(ctx); cause != nil {
		c := Cause{Kind: CauseDisposed}
		errors.As(cause, &c)
		text := plain.Cut(c.Text, limits.ErrorText)
		if c.Kind == CauseLimit {
			return session.EndReason{Kind: session.EndLimit, Detail: text}
		}
		return session.EndReason{Kind: session.EndAborted, Abort: &session.AbortReason{Kind: string(c.Kind), Text: text}}
	}
	f := *llm.AsFailure(failure, llm.CodeInternal)
	f.Message = plain.Cut(f.Message, limits.ErrorText)
	return session.EndReason{Kind: session.EndError, Error: &f}
}

// settle appends what the open turn lacks: results, the ends of step and turn.
// Prompts that were claimed for a step that did not begin go back to the inbox.
func (t *turn) settle(end session.EndReason, keep bool) error {
	log := t.a.session
	at := log.Turn()
	if !at.TurnOpen {
		return nil
	}
	var payloads []session.Payload
	for _, p := range log.Unanswered() {
		payloads = append(payloads, t.unanswered(p))
	}
	if at.StepOpen {
		payloads = append(payloads, session.StepEnd{Turn: at.Turn, Step: at.Step})
	}
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	if len(t.claimed) > 0 && keep {
		payloads = append(payloads, session.InboxSplice{Target: session.NextTurn, Inserted: t.claimed})
	}
	_, err := log.Append(append(payloads, session.TurnEnd{Turn: at.Turn, Reason: end})...)
	if err != nil {
		// Of a full log the repair still closes the turn.
		_, repairErr := log.Repair()
		return errors.Join(err, repairErr)
	}
	return nil
}

// unanswered is the result of a call whose own could not be had or logged.
func (t *turn) unanswered(p session.Pending) session.Result {
	text, code := "Error: the turn ended before this call was started. It has done nothing; it is safe to call it again.", session.CodeNotStarted
	if p.Called {
		text = "Error: the turn ended while this call ran, and its outcome is unknown. Find out what it did before you call it again."
		code = session.CodeUnknown
	}
	return session.Result{
		Turn: t.n, Step: t.step, Message: message.Result(newID(), p.ID, true, message.Plain(text)),
		Error: &session.ResultError{Name: "Error", Code: code},
	}
}

// storeFailure is the failure of a checkpoint.
func storeFailure(err error) error {
	return &llm.Failure{Code: CodeStore, Message: plain.Cut(err.Error(), limits.ErrorText)}
}

// scopeStop is the scope of a denial by which the person ends the turn.
const scopeStop = "stop"

// denialsShown is the most denied acts that the end of a turn names.
const denialsShown = 8

// denied says whether an act was denied since an event, in the scope if one is
// given, and how a turn ends at that.
func (t *turn) denied(from int64, scope string) (session.EndReason, bool, error) {
	for _, e := range t.a.session.Events(from) {
		if e.Type != session.TypeApprovalDecided {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			return session.EndReason{}, false, err
		}
		if d := p.(session.ApprovalDecided); d.Decision == "deny" && (scope == "" || d.Scope == scope) {
			return session.EndReason{Kind: session.EndDenied, Detail: plain.Cut(d.Reason, limits.ErrorText)}, true, nil
		}
	}
	return session.EndReason{}, false, nil
}

// denials says which acts were denied in the turn, each once, and why the last one
// was.
func (t *turn) denials() (string, error) {
	summaries := map[string]string{} // by the id of the question
	var acts []string
	count, why := 0, ""
	for _, e := range t.a.session.Events(t.from) {
		if e.Type != session.TypeApprovalAsked && e.Type != session.TypeApprovalDecided {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			return "", err
		}
		switch p := p.(type) {
		case session.ApprovalAsked:
			summaries[p.ID] = plain.Line(p.Summary, limits.Preview)
		case session.ApprovalDecided:
			if p.Decision != "deny" {
				continue
			}
			count, why = count+1, p.Reason
			if act := summaries[p.ID]; !slices.Contains(acts, act) {
				acts = append(acts, act)
			}
		}
	}
	if count == 1 {
		return plain.Cut("completed, but 1 act was denied: "+why, limits.ErrorText), nil
	}
	more := ""
	if n := len(acts) - denialsShown; n > 0 {
		acts, more = acts[:denialsShown], fmt.Sprintf("; and %d more", n)
	}
	text := fmt.Sprintf("completed, but %d acts were denied: %s%s. The last: %s", count, strings.Join(acts, "; "), more, why)
	return plain.Cut(text, limits.ErrorText), nil
}
