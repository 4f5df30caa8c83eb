package permission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// The sources of decisions in the log, and the decisions.
const (
	sourceUser      = "user"
	sourcePolicy    = "policy"
	sourceCancelled = "cancelled" // nobody has decided: the turn ended
	sourceHeadless  = "headless"

	decisionAllow = "allow"
	decisionDeny  = "deny"

	scopeOnce    = "once"
	scopeSession = "session"
	scopeStop    = "stop"
)

// decide decides an act by the mode, the rules and what is remembered. A denial is
// logged. That a person is to be asked comes back as ask, unless there is nobody.
func (p *Policy) decide(ctx context.Context, a *act) tool.Decision {
	if a == nil {
		return tool.Deny("this act is not known to the policy")
	}
	b := p.of(a.actor.Scope)
	d, why := p.table(a, b)
	switch {
	case d == tool.DecisionDeny:
		return p.deny(a, b, sourcePolicy, why)
	case d == tool.DecisionAsk && b.ask == nil:
		return p.deny(a, b, sourceHeadless, headless(a, b.now(), why))
	case d == tool.DecisionAsk:
		return tool.Ask(asked(a, why))
	}
	p.allowed(a, b)
	return tool.Allow()
}

// asked is the reason of a question of ours; Approve knows it again.
func asked(a *act, why string) string {
	if why != "" {
		return fmt.Sprintf("%s needs approval: %s", a.summary, why)
	}
	return a.summary + " needs approval"
}

// table is the table of the package comment with the rules around it; why is the
// reason of a denial, or of a question where it is not the mode.
func (p *Policy) table(a *act, b *binding) (d tool.DecisionKind, why string) {
	roots := b.roots(p)
	by, denied := a.denied(b.deny, roots)
	if denied == yes {
		return tool.DecisionDeny, byRule(a, by)
	}
	if a.kind == KindRead {
		return tool.DecisionAllow, ""
	}
	mode := b.now()
	reads := a.onlyReads()
	if mode == ReadOnly && !reads && a.kind != KindFetch {
		return tool.DecisionDeny, readOnly(a)
	}
	if denied == maybe {
		why = fmt.Sprintf("it cannot be told whether the rule %s denies it", by)
	} else if mode == Full || reads || mode == AutoEdit && a.kind == KindEdit && a.inside(roots) || a.allowed(b.allow, roots) {
		return tool.DecisionAllow, ""
	}
	if b.recalls(a, roots) {
		return tool.DecisionAllow, ""
	}
	return tool.DecisionAsk, why
}

// byRule says that a rule denies.
func byRule(a *act, r Rule) string {
	return fmt.Sprintf("%s was denied by the rule %s. Do not try another way to the same end; whoever started dsh can lift it by leaving out --deny '%s'", a.summary, r, r)
}

// readOnly says that the mode denies.
func readOnly(a *act) string {
	why := ""
	if a.line != nil {
		why = " (" + a.more() + ")"
	}
	return fmt.Sprintf("%s was denied: the permission mode is read-only, in which nothing may be changed%s. Whoever started dsh can allow it: --permission %s",
		a.summary, why, strings.Join(names(Ask, looser(a), Full), " or "))
}

// headless says that there is nobody to ask, and how to allow.
func headless(a *act, m Mode, why string) string {
	ways := []string{}
	if rule, _ := a.remember(); rule != "" && why == "" && len(rule) <= limits.SourceLine {
		ways = append(ways, "--allow '"+strings.ReplaceAll(rule, "'", `'\''`)+"'"+scopeOf(a, rule))
	}
	modes := []Mode{}
	for _, next := range []Mode{looser(a), Full} {
		if next != m && !slices.Contains(modes, next) && why == "" {
			modes = append(modes, next)
		}
	}
	if len(modes) > 0 {
		ways = append(ways, "--permission "+strings.Join(names(modes...), " or "))
	}
	how := "change the rules"
	switch {
	case a.loaded && why == "":
		how = "--allow mount, or --permission full, in which nothing is trusted by itself: dsh trust has to be run before what was written is loaded"
	case len(ways) > 0:
		how = strings.Join(ways, ", or ")
	}
	if why != "" {
		why = " (" + why + ")"
	}
	return fmt.Sprintf("%s was denied: it needs approval%s, and there is nobody to ask (the permission mode is %s). Whoever started dsh can allow it: %s", a.summary, why, m, how)
}

// scopeOf says of a rule that is suggested what its form does not.
func scopeOf(a *act, rule string) string {
	switch {
	case strings.HasPrefix(rule, ruleBash+"(="):
		return " (this very line only; bash(program *) allows a program with any arguments)"
	case a.kind == KindEdit:
		return " (edit rules cover write and edit; edit(src/**) allows a folder)"
	}
	return ""
}

// looser is the mode that allows the act, and as little more as there is.
func looser(a *act) Mode {
	if a.kind == KindEdit {
		return AutoEdit
	}
	return Full
}

func names(modes ...Mode) []string {
	var out []string
	for _, m := range modes {
		if s := string(m); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
