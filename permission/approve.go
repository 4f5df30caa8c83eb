package permission

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/tool"
)

// Approve implements [tool.Approver]: it puts a question of this policy, or of a
// listener, to the person of the scope. A denial is a [*tool.Refusal].
func (p *Policy) Approve(ctx context.Context, exec *tool.Exec, reason string) (tool.ApprovalOutcome, error) {
	var a *act
	if payload, ok := service.IntentOf(ctx); ok {
		a = p.intent(ctx, payload)
	} else {
		a = call(ctx, exec)
	}
	if a == nil { // of a service that is not known here: its name and its intent are shown
		a = call(ctx, exec)
	}
	b := p.of(a.actor.Scope)
	if b.ask == nil { // a listener asks
		d := p.deny(a, b, sourceHeadless, fmt.Sprintf("%s was denied: it needs approval (%s), and there is nobody to ask", a.summary, plain.Line(reason, limits.SourceLine)))
		return "", &tool.Refusal{Reason: d.Reason}
	}
	defer tool.Pause(ctx)()
	leave, err := b.enter(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return tool.ApprovalCancelled, nil
		}
		d := p.deny(a, b, sourcePolicy, fmt.Sprintf("%s was denied: %v", a.summary, err))
		return "", &tool.Refusal{Reason: d.Reason}
	}
	defer leave()
	// While it waited, another answer may have decided it.
	d, why := p.table(a, b)
	ours := strings.HasPrefix(reason, a.summary+" needs approval")
	switch {
	case d == tool.DecisionDeny:
		return "", &tool.Refusal{Reason: p.deny(a, b, sourcePolicy, why).Reason}
	case d == tool.DecisionAllow && ours:
		p.allowed(a, b)
		return tool.AllowedOnce, nil
	}
	q := p.question(ctx, a)
	switch {
	case !ours:
		q.Remember = ""
		q.Detail = bounded("Asked for: "+plain.Line(reason, limits.SourceLine), q.Detail)
	case why != "":
		q.Detail = bounded("Asked because "+why, q.Detail)
	}
	outcome, err := p.put(ctx, a, b, q)
	if err == nil && outcome == tool.AllowedOnce {
		p.entrust(a)
	}
	return outcome, err
}

// enter waits until no other question of the binding is open.
func (b *binding) enter(ctx context.Context) (leave func(), err error) {
	b.mu.Lock()
	if b.waiting >= limits.PermissionWaiting {
		b.mu.Unlock()
		return nil, fmt.Errorf("%d questions wait for an answer already, the most that may", limits.PermissionWaiting)
	}
	b.waiting++
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		b.waiting--
		b.mu.Unlock()
	}()
	select {
	case b.asking <- struct{}{}:
		if ctx.Err() != nil { // both were ready
			<-b.asking
			return nil, ctx.Err()
		}
		return func() { <-b.asking }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// put asks the question, and logs it and the answer.
func (p *Policy) put(ctx context.Context, a *act, b *binding, q Question) (tool.ApprovalOutcome, error) {
	if err := b.log(logged(q)); err != nil {
		return "", &tool.Refusal{Reason: fmt.Sprintf("%s was denied: the question cannot be logged: %s", a.summary, plain.Error(err.Error()))}
	}
	answer, err := consult(ctx, b.ask, q)
	decided := session.ApprovalDecided{ID: q.ID, Decision: decisionDeny, Scope: scopeOnce, Source: sourceUser, Reason: plain.Cut(answer.Reason, limits.PermissionReasonText)}
	events := []session.Payload{}
	refusal := ""
	switch {
	case ctx.Err() != nil:
		decided.Source, decided.Reason = sourceCancelled, "cancelled before an answer came"
	case err != nil:
		decided.Source, decided.Reason = sourceHeadless, plain.Error(err.Error())
		refusal = fmt.Sprintf("%s was denied: nobody could be asked: %s", a.summary, decided.Reason)
	case answer.Stop:
		decided.Scope = scopeStop
		refusal = p.refused(a, decided.Reason, "the user denied it and ended the turn")
	case !answer.Allow:
		refusal = p.refused(a, decided.Reason, "the user denied it")
	default:
		decided.Decision = decisionAllow
		if rule, _ := a.remember(); answer.Remember && q.Remember != "" {
			if r, err := ParseRule(rule); err == nil {
				decided.Scope = scopeSession
				b.remember(remembered{r, a.hash})
				events = append(events, session.ApprovalRule{Rule: rule, Decision: decisionAllow, SourceHash: a.hash})
			}
		}
	}
	if err := b.log(append([]session.Payload{decided}, events...)...); err != nil {
		return "", &tool.Refusal{Reason: fmt.Sprintf("%s was denied: the answer cannot be logged: %s", a.summary, plain.Error(err.Error()))}
	}
	switch {
	case decided.Decision == decisionAllow:
		return tool.AllowedOnce, nil
	case refusal == "":
		return tool.ApprovalCancelled, nil
	}
	return "", &tool.Refusal{Reason: refusal}
}

// refused is what the model reads of a person's no.
func (p *Policy) refused(a *act, reason, what string) string {
	if strings.TrimSpace(reason) == "" {
		return fmt.Sprintf("%s was denied: %s", a.summary, what)
	}
	return fmt.Sprintf("%s was denied: %s, and says: %s", a.summary, what, reason)
}

// consult asks; a panic is an error.
func consult(ctx context.Context, ask Asker, q Question) (answer Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			answer, err = Answer{}, fmt.Errorf("the front door failed: %v", v)
		}
	}()
	return ask(ctx, q)
}

// deny logs a denial without a question, and gives it.
func (p *Policy) deny(a *act, b *binding, source, reason string) tool.Decision {
	reason = plain.Cut(reason, limits.ErrorText)
	if b.session == nil {
		p.c.Logger().Warn("denied", "act", a.summary, "source", source, "mount", mountID(a.actor.Mount))
		return tool.Deny(reason)
	}
	if a.actor.Mount != nil && !b.logsDenial() {
		return tool.Deny(reason)
	}
	q := Question{ID: newID(), Kind: a.kind, Summary: a.summary}
	q.Tool, q.CallID, q.Mount = acting(a)
	err := b.log(logged(q), session.ApprovalDecided{ID: q.ID, Decision: decisionDeny, Scope: scopeOnce, Source: source, Reason: reason})
	if err != nil {
		p.c.Logger().Error("a denial could not be logged", "act", a.summary, "error", err)
	}
	return tool.Deny(reason)
}

// logsDenial counts the denials of mounts, which come by themselves.
func (b *binding) logsDenial() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.denials++
	return b.denials <= limits.PermissionDenials
}

// log appends to the session, if there is one.
func (b *binding) log(events ...session.Payload) error {
	if b.session == nil {
		return nil
	}
	_, err := b.session.Append(events...)
	return err
}

// logged is a question as the log has it. The code of a mount is in its call.
func logged(q Question) session.Payload {
	detail := []lossless.Member{lossless.M("kind", lossless.Str(string(q.Kind)))}
	if q.Detail != "" {
		detail = append(detail, lossless.M("text", lossless.Str(plain.Cut(q.Detail, limits.PermissionLogged))))
	}
	if q.Remember != "" {
		detail = append(detail, lossless.M("remember", lossless.Str(q.Remember)))
	}
	return session.ApprovalAsked{ID: q.ID, CallID: q.CallID, Tool: q.Tool, Mount: q.Mount, Summary: q.Summary, Detail: lossless.Obj(detail...)}
}

// newID is an id that no session has twice.
func newID() string { return "ask-" + strings.ToLower(rand.Text()[:12]) }

func mountID(m *tool.Mount) string {
	if m == nil {
		return ""
	}
	return m.ID
}
