package permission

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// A Mode says what happens without being asked about. The package comment has the
// table.
type Mode string

// The modes.
const (
	Ask      Mode = "ask"       // whatever changes something is asked about
	AutoEdit Mode = "auto-edit" // files within the roots may be changed
	Full     Mode = "full"      // nothing is asked about
	ReadOnly Mode = "read-only" // nothing may be changed
)

// Modes are all modes, in the order in which they are shown.
func Modes() []Mode { return []Mode{Ask, AutoEdit, Full, ReadOnly} }

// ParseMode reads a mode; the error names those that there are.
func ParseMode(s string) (Mode, error) {
	for _, m := range Modes() {
		if s == string(m) {
			return m, nil
		}
	}
	return "", fmt.Errorf("%q is no permission mode: choose ask, auto-edit, full or read-only", plain.Name(s))
}

// describedRules is the most rules of one kind that Describe names.
const describedRules = 20

// Describe tells a model what the policy of scope allows, before it tries: one line,
// the same as long as mode and rules are. It does not name what a person remembered.
func (p *Policy) Describe(scope *tool.Scope) string {
	b := p.of(scope)
	mode := b.now()
	text := fmt.Sprintf("Permission: %s%s: %s.", mode, audience(b), meaning(mode, b.ask != nil))
	if rules := listed(b.allow); rules != "" && mode != Full {
		if mode == ReadOnly {
			text += " Allowed besides, where nothing is changed: " + rules + "."
		} else {
			text += " Allowed besides: " + rules + "."
		}
	}
	if rules := listed(b.deny); rules != "" {
		text += " Denied in any case: " + rules + "."
	}
	return text
}

// audience says that there is nobody, where that matters.
func audience(b *binding) string {
	if b.ask == nil && b.now() != Full {
		return ", and nobody can be asked"
	}
	return ""
}

// meaning is what a mode does, for a model.
func meaning(m Mode, person bool) string {
	rest := "are denied"
	if person {
		rest = "wait for the person's approval"
	}
	switch m {
	case Ask:
		return "reading and commands that only read run; edits, fetches, mounts, mounted tools and other commands " + rest
	case AutoEdit:
		return "reading, commands that only read, and edits below the working folder but for .git and .dsh run; other edits, fetches, mounts, mounted tools and other commands " + rest
	case ReadOnly:
		return "reading and commands that only read run; fetches " + rest + "; whatever changes something is denied"
	default:
		return "everything runs without a question"
	}
}

// listed names rules.
func listed(rules []Rule) string {
	var texts []string
	for _, r := range rules[:min(len(rules), describedRules)] {
		if text := plain.Line(r.String(), limits.Preview); !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if more := len(rules) - describedRules; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
