package permission

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

// A Kind is what a question is about.
type Kind string

// The kinds of acts. Read is never asked about.
const (
	KindRead    Kind = "read"
	KindEdit    Kind = "edit"
	KindExecute Kind = "execute" // a command line, or a call of a mounted tool
	KindFetch   Kind = "fetch"   // a page, or a search
	KindMount   Kind = "mount"   // cordis_mount, or a change of what plugins are loaded from
)

// A Question is put to a person. Its texts are bounded and hold what a model or a
// plugin wrote: strip control characters before a terminal gets them.
type Question struct {
	// ID is unique in the session; approval/asked and approval/decided carry it.
	ID string
	// Tool is the tool call within which it happens; "" for none, such as a timer's.
	Tool string
	// CallID is that call's id.
	CallID string
	// Mount says which temporary plugin acts, "dyn-3 (name)"; "" for the model.
	Mount string
	Kind  Kind
	// Summary is one line: "run git push", "edit src/main.go".
	Summary string
	// Detail is everything a person needs to decide, on several lines: the whole
	// command and its folder, the code and what it injects. It may be "".
	Detail string
	// Card shows the act where there is one to show, such as the diff of an edit.
	Card *tool.Card
	// Remember is what "for this session" would allow, as a rule and in words; "" for
	// what cannot be remembered.
	Remember string
}

// An Answer is what a person said.
type Answer struct {
	Allow bool
	// Remember allows the like of it for the rest of the session. It counts only with
	// Allow, and where the question has a Remember.
	Remember bool
	// Stop denies and ends the turn.
	Stop bool
	// Reason is told to the model with a denial; optional.
	Reason string
}

// An Asker puts a question to a person and waits for the answer or the end of ctx.
// It is called once at a time for each binding. An error denies.
type Asker func(ctx context.Context, q Question) (Answer, error)

// question is everything that a person needs to decide about an act.
func (p *Policy) question(ctx context.Context, a *act) Question {
	q := Question{ID: newID(), Kind: a.kind, Summary: a.summary}
	q.Tool, q.CallID, q.Mount = acting(a)
	rule, words := a.remember()
	if rule != "" {
		q.Remember = rule + ": " + words
	}
	switch {
	case a.line != nil:
		q.Detail, q.Card = a.commandDetail(), &tool.Card{Terminal: &tool.TerminalCard{Title: plain.Cut(a.command, limits.PermissionDetail), Cwd: a.workdir}}
	case a.loaded:
		p.loadedQuestion(a, &q)
	case a.kind == KindMount:
		q.Detail = bounded("As far as its text tells, it injects "+injects(a.code)+".", a.code)
	case a.kind == KindEdit:
		q.Card = p.diff(ctx, a)
	case a.exec != nil:
		q.Card = p.registry.PresentCall(ctx, a.exec.Name, a.exec.Scope, a.exec.Arguments)
		q.Detail = bounded("with the arguments", string(a.exec.Arguments))
	}
	return q
}

// acting says within which call, and for which mount, an act happens.
func acting(a *act) (name, callID, mount string) {
	if x := a.actor.Exec; x != nil {
		name, callID = x.Name, x.CallID
	}
	switch {
	case a.actor.Mount != nil:
		mount = who(a.actor.Mount)
	case a.exec != nil && a.exec.Tool != nil && a.exec.Tool.Mount != nil:
		mount = who(a.exec.Tool.Mount)
	}
	return name, callID, mount
}

// bounded joins the lines of a detail.
func bounded(lines ...string) string {
	return plain.Cut(strings.Trim(strings.Join(lines, "\n"), "\n"), limits.PermissionDetail)
}

// commandDetail is the whole command, where it runs, and why it is asked about.
func (a *act) commandDetail() string {
	lines := []string{a.command, "in " + a.workdir}
	for _, name := range slices.Sorted(maps.Keys(a.env)) {
		lines = append(lines, fmt.Sprintf("with %s=%s", plain.Name(name), plain.Preview(a.env[name])))
	}
	if why := a.more(); why != "" {
		lines = append(lines, "It is asked about because "+why+".")
	}
	if a.stdin != "" {
		lines = append(lines, fmt.Sprintf("with %d bytes of input:", len(a.stdin)), a.stdin)
	}
	return bounded(lines...)
}

// injectList finds what the code of a plugin says that it injects. It is large, and
// most programs never need it.
var injectList = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\binject\s*[:=]\s*(\[[^\[\]]{0,1000}\]|\{[^{}]{0,1000}\}|'[^'\n]{0,100}'|"[^"\n]{0,100}")`)
})

var injectWord = regexp.MustCompile(`\binject\b`)

// injects says which services the code injects, as far as its text tells: only to
// run it would tell for certain.
func injects(code string) string {
	found := injectList().FindStringSubmatch(code)
	switch {
	case found != nil && len(injectWord.FindAllString(code, 2)) == 1:
		return plain.Line(found[1], limits.SourceLine)
	case injectWord.MatchString(code):
		return "what the code computes: read it"
	}
	return "nothing"
}

// diff shows an edit: the call's own card where the model itself edits, else what
// is there and what would come.
func (p *Policy) diff(ctx context.Context, a *act) *tool.Card {
	if x := a.actor.Exec; x != nil && x.Tool != nil && a.actor.Mount == nil {
		if card := p.registry.PresentCall(ctx, x.Name, x.Scope, x.Arguments); card != nil && card.Diff != nil {
			return card
		}
	}
	d := tool.FileDiff{Path: a.path}
	switch in := a.payload.(type) {
	case fs.Write:
		if in.Exists {
			d.OldText = textOf(a.path)
		}
		d.NewText = plain.Cut(in.Content, limits.PermissionDetail)
	case fs.EditRequest:
		d.OldText, d.NewText = &in.OldString, in.NewString
	default:
		return nil
	}
	return &tool.Card{Diff: &tool.DiffCard{Title: a.summary, Diffs: []tool.FileDiff{d}}}
}

// textOf is what a file has now, as far as it can be shown.
func textOf(path string) *string {
	text := "(its content is not shown: it is too large, or no text)"
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return &text // the open of a pipe would wait for its other end
	}
	f, err := os.Open(path)
	if err != nil {
		return &text
	}
	defer func() { _ = f.Close() }()
	if b, err := io.ReadAll(io.LimitReader(f, limits.PermissionDetail+1)); err == nil && len(b) <= limits.PermissionDetail && utf8.Valid(b) {
		text = string(b)
	}
	return &text
}

// remember is what "for this session" would allow: the rule, and what it means. ""
// for what cannot be remembered.
func (a *act) remember() (rule, words string) {
	switch {
	case a.line != nil && (len(a.env) > 0 || a.stdin != ""):
		return "", ""
	case a.line != nil:
		rule, words = a.rememberLine()
	case a.kind == KindEdit && a.subtree:
		return "", ""
	case a.loaded:
		if _, ok := a.payload.(fs.Write); !ok {
			return "", ""
		}
		rule, words = ruleMount, "writing these very bytes again"
	case a.kind == KindEdit:
		rule, words = "edit("+literalPath(a.path)+")", "changes of this file"
	case a.search:
		rule, words = ruleSearch, "searches of the web"
	case a.kind == KindFetch:
		scheme, rest, _ := strings.Cut(a.url, "://")
		host, _ := splitHost(rest)
		if strings.Contains(host, "*") { // which no host has, and a rule takes for any
			return "", ""
		}
		rule, words = "fetch("+scheme+"://"+host+"/*)", "pages of this host"
	case a.kind == KindMount:
		rule, words = ruleMount, "mounting this very code again"
	case a.exec != nil && a.hash != "":
		rule, words = "tool("+a.exec.Name+")", "this tool, as long as its plugin's code is the same"
	}
	if a.actor.Mount != nil && rule != "" && a.kind != KindMount {
		words += ", by this plugin as long as its code is the same"
	}
	if _, err := ParseRule(rule); err != nil {
		return "", ""
	}
	return rule, words
}

// verbs are programs whose second word says what they do, with those words that do
// the same whatever follows them.
var verbs = map[string][]string{
	"cargo": {"build", "check", "clippy", "fmt", "test"},
	"git":   {"add", "branch", "checkout", "commit", "restore", "stash", "switch", "tag"},
	"go":    {"build", "fmt", "test", "vet"},
}

// ordinaryFlags are those flags of programs of verbs that run no other program and
// write no other file. What was remembered with a * holds for them alone.
var ordinaryFlags = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"cargo": regexp.MustCompile(`^(-[vqr]+|-[pj]|--(all|workspace|all-targets|all-features|no-default-features|release|lib|bins?|tests?|examples?|doc|check|locked|offline|frozen|package|features|verbose|quiet|no-run|no-fail-fast))(=.*)?$`),
		"go":    regexp.MustCompile(`^--?(a|v|x|n|p|race|msan|asan|short|json|cover|covermode|coverpkg|failfast|bench|benchmem|benchtime|count|cpu|list|parallel|run|skip|shuffle|timeout|tags|trimpath|buildvcs|vet|fuzz|fuzztime)(=.*)?$`),
	}
})

// ordinary says whether every command of the line that has ordinary flags has no
// other. What comes after -- and -args is for what is tested.
func (a *act) ordinary() bool {
	for _, c := range a.line.Commands {
		flags := ordinaryFlags()[c.Args[0].Text]
		if flags == nil {
			continue
		}
		for _, w := range c.Args[1:] {
			if w.Text == "--" || w.Text == "-args" || w.Text == "--args" {
				break
			}
			if strings.HasPrefix(w.Text, "-") && !flags.MatchString(w.Text) {
				return false
			}
		}
	}
	return true
}

// rememberLine is the rule for a line: such as go test * where the line is one
// plain command of a program of verbs, else the very line.
func (a *act) rememberLine() (rule, words string) {
	if c := a.line.Commands; len(a.line.Unknown) == 0 && len(a.line.Writes) == 0 && len(c) == 1 && len(c[0].Outer) == 0 && len(c[0].Args) > 1 {
		name, verb := c[0].Args[0], c[0].Args[1]
		if verb.Literal && slices.Contains(verbs[name.Text], verb.Text) && a.ordinary() {
			rule = fmt.Sprintf("bash(%s %s *)", name.Text, verb.Text)
			words = "every " + name.Text + " " + verb.Text
			if ordinaryFlags()[name.Text] != nil {
				words += " with ordinary flags"
			}
			return rule, words
		}
	}
	return "bash(=" + strings.TrimSpace(a.command) + ")", "this very line, in any folder"
}
