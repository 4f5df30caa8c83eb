package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// answered is the answer of a step, as it was logged.
type answered struct {
	message message.Message
	cut     bool // at max-tokens; its calls were dropped
}

// ask asks the model until it answers, and logs the answer.
func (t *turn) ask(ctx context.Context) (answered, error) {
	for attempt := 1; ; attempt++ {
		got, config, failure, err := t.attempt(ctx)
		if err != nil {
			return answered{}, err
		}
		if failure == nil {
			return got, nil
		}
		if err := context.Cause(ctx); err != nil {
			return answered{}, err
		}
		if err := t.recover(ctx, attempt, config, failure); err != nil {
			return answered{}, err
		}
	}
}

// attempt makes one request. A failure may be recovered from; an error may not.
func (t *turn) attempt(ctx context.Context) (got answered, config llm.Config, failure *llm.Failure, err error) {
	a := t.a
	plan := RequestPlan{Agent: a, Session: a.id, Turn: t.n, Step: t.step, Config: a.opts.Model}
	config, err = Requesting.Run(ctx, a.g.c, plan, func(_ context.Context, p RequestPlan) (llm.Config, error) { return p.Config, nil }, a.hearing())
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = a.checkTokens()
	}
	if err != nil {
		return got, config, nil, err
	}
	call, err := a.g.models.Prepare(config)
	if err != nil {
		return got, config, llm.AsFailure(err, llm.CodeInvalidRequest), nil
	}
	t.images = call.Model.Images
	if err := t.logHeader(ctx, config, call); err != nil {
		return got, config, nil, err
	}
	if err := a.session.Checkpoint(ctx); err != nil {
		return got, config, nil, storeFailure(err)
	}
	answer, chunks, err := t.stream(ctx, call)
	if err != nil {
		return got, config, nil, err
	}
	if failure := failureOf(answer); failure != nil {
		return got, config, failure, nil
	}
	got = answered{message: answer.Message(newID(), call.Config), cut: answer.Reason == llm.MaxTokens}
	if got.cut {
		got.message.Content = slices.DeleteFunc(got.message.Content, func(b message.Block) bool { return b.Type == message.CallBlock })
	}
	if why := malformed(got.message); why != nil {
		return got, config, llm.Fail(llm.CodeMalformed, "the answer cannot be used: %v", why), nil
	}
	_, err = a.session.Append(session.AssistantMessage{Turn: t.n, Step: t.step, Message: got.message, Usage: answer.Usage, Sources: chunks})
	return got, config, nil, err
}

// failureOf says why an answer is none.
func failureOf(a llm.Answer) *llm.Failure {
	switch {
	case a.Failure != nil:
		return a.Failure
	case a.Reason == llm.Failed || a.Reason == llm.Aborted:
		return llm.Fail(llm.CodeInternal, "the request failed, and the adapter does not say why")
	case len(a.Content) == 0 && a.Reason != llm.MaxTokens:
		return llm.Fail(llm.CodeEmpty, "the answer is empty")
	}
	return nil
}

// malformed says what of an answer no log takes.
func malformed(m message.Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range m.Calls() {
		if seen[c.ID] {
			return fmt.Errorf("two calls have the id %q", plain.Name(c.ID))
		}
		seen[c.ID] = true
	}
	return nil
}

// stream sends what the log says and logs what comes back, as it comes.
func (t *turn) stream(ctx context.Context, call *llm.Call) (llm.Answer, []int64, error) {
	log := t.a.session
	held, err := log.Request()
	if err != nil {
		return llm.Answer{}, nil, err
	}
	q, err := RequestOf(held, t.a.id)
	if err != nil {
		return llm.Answer{}, nil, err
	}
	q.Attachment = log.Attachment
	assembler := llm.NewAssembler()
	chunks := []int64{}
	for c := range call.Stream(ctx, &q) {
		events, err := log.Append(session.Chunk{Turn: t.n, Step: t.step, Chunk: c})
		if err != nil {
			return llm.Answer{}, nil, err
		}
		chunks = append(chunks, events[0].Seq)
		assembler.Add(c)
	}
	return assembler.Answer(), chunks, nil
}

// assembled is what a logged header was made of.
type assembled struct {
	asked, config string // JSON
	system        string
	tools         []*tool.View
}

func (h assembled) equal(other assembled) bool {
	return h.asked == other.asked && h.config == other.config && h.system == other.system && slices.Equal(h.tools, other.tools)
}

// logHeader makes the header of the next request, and logs it if it is not the one
// that the log has. asked is the config before the adapter's defaults.
func (t *turn) logHeader(ctx context.Context, asked llm.Config, call *llm.Call) error {
	a := t.a
	system, err := a.g.prompt.System(ctx, a.view(call.Config))
	if err != nil {
		return err
	}
	config, err := configValue(call.Config)
	if err != nil {
		return err
	}
	before, err := configValue(asked)
	if err != nil {
		return err
	}
	now := assembled{before.String(), config.String(), system, a.g.tools.List(a.scope)}
	var payloads []session.Payload
	if !now.equal(a.header) {
		h := session.Header{Config: config, AdapterDefaults: defaults(asked, call.Config), System: message.Text(system)}
		for _, v := range now.tools {
			h.Tools = append(h.Tools, message.Tool{Name: v.Name, Description: v.Description, Parameters: v.Parameters.Value()})
		}
		last, logged := a.session.Header()
		switch {
		case !logged:
			payloads = append(payloads, session.RequestHeader{Header: h, Reason: session.HeaderInitial})
		case a.header.config == "":
			payloads = append(payloads, session.RequestHeader{Header: h, Reason: session.HeaderResume})
		case !last.Equal(h):
			payloads = append(payloads, session.RequestHeader{Header: h, Reason: session.HeaderChange})
		}
	}
	where := session.RequestContext{Provider: call.Config.Provider, Model: call.Config.Model, ContextWindow: int64(call.Model.ContextWindow)}
	if a.session.Context() != where {
		payloads = append(payloads, where)
	}
	if len(payloads) > 0 {
		if _, err := a.session.Append(payloads...); err != nil {
			return err
		}
	}
	a.header = now
	return nil
}

// defaults marks what the adapter filled in.
func defaults(asked, got llm.Config) lossless.Value {
	var marks []lossless.Member
	if asked.Model == "" && got.Model != "" {
		marks = append(marks, lossless.M("model", lossless.Boolean(true)))
	}
	if asked.MaxTokens == 0 && got.MaxTokens != 0 {
		marks = append(marks, lossless.M("maxTokens", lossless.Boolean(true)))
	}
	if len(marks) == 0 {
		return lossless.Value{}
	}
	return lossless.Obj(marks...)
}

// The policies of the loop's own retries, as the log names them.
const (
	policyNormal   = "normal"
	policyAlways   = "always"
	policyListener = "listener" // of a listener that gives no name
)

// recover waits until a failed request may be made again, or returns the failure.
func (t *turn) recover(ctx context.Context, attempt int, config llm.Config, f *llm.Failure) error {
	a := t.a
	own := policyNormal
	if a.g.cfg.Retry.Always {
		own = policyAlways
	}
	made, retries, others, err := t.retries(config.Provider, own)
	if err != nil {
		return err
	}
	failed := RequestError{Agent: a, Session: a.id, Turn: t.n, Step: t.step, Attempt: attempt, Config: config, Failure: *f}
	recovery, err := RequestFailed.Run(ctx, a.g.c, failed, func(context.Context, RequestError) (Recovery, error) {
		if wait, again := a.g.cfg.Retry.Next(made+1, f); again {
			return Recovery{Kind: Retry, Delay: wait, Policy: own}, nil
		}
		return Recovery{Kind: GiveUp}, nil
	}, a.hearing())
	if err == nil {
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		return err
	case recovery.Kind == GiveUp:
		return a.g.cfg.Retry.Last(f)
	case recovery.Kind != Retry:
		return fmt.Errorf("agent/request-error: a listener answered %q; a recovery is %q or %q", plain.Name(string(recovery.Kind)), GiveUp, Retry)
	}
	if recovery.Policy == "" {
		recovery.Policy = policyListener
	}
	if recovery.Policy != own && others >= limits.AgentRecoveries {
		return f
	}
	wait := max(recovery.Delay, 0)
	_, err = a.session.Append(session.Retry{
		Turn: t.n, Step: t.step, Provider: config.Provider, Policy: recovery.Policy,
		Attempt: retries + 1, DelayMs: wait.Round(time.Millisecond).Milliseconds(), Failure: *f,
	})
	if err != nil {
		return err
	}
	if err := llm.Wait(ctx, wait); err != nil {
		return context.Cause(ctx)
	}
	_, err = a.session.Append(session.RetryStarted{Turn: t.n, Step: t.step, Attempt: retries + 1})
	return err
}

// retries counts the retries of the open step: those that a policy made with a
// provider, all, and those of listeners.
func (t *turn) retries(provider, policy string) (made, all, others int, err error) {
	for _, e := range t.a.session.Events(t.stepFrom) {
		if e.Type != session.TypeRetry {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			return 0, 0, 0, err
		}
		r := p.(session.Retry)
		all++
		if r.Policy != policyNormal && r.Policy != policyAlways {
			others++
		}
		if r.Provider == provider && r.Policy == policy {
			made++
		}
	}
	return made, all, others, nil
}
