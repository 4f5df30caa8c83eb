package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/session"
)

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
