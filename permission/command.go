package permission

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/permission/shell"
)

// A verdict says whether a rule matches.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// wordsMatch compares the words of a rule with those of a command.
func (r Rule) wordsMatch(words []shell.Word) verdict {
	found := yes
	for i, pattern := range r.words {
		if pattern == "*" && i == len(r.words)-1 && i > 0 {
			return found
		}
		if i >= len(words) {
			return no
		}
		switch w := words[i]; {
		case w.Many:
			return maybe
		case !w.Literal:
			found = maybe
		case wild(pattern, w.Text):
		default:
			return no
		}
		if !words[i].Literal && !words[i].Single { // it may be any number of words
			return maybe
		}
	}
	if len(words) > len(r.words) {
		if slices.ContainsFunc(words[len(r.words):], func(w shell.Word) bool { return w.Literal || w.Single }) {
			return no
		}
		return maybe // what is there may turn out to be nothing
	}
	return found
}

// allowsCommand says whether the rules allow a command of the act's line.
func (a *act) allowsCommand(rules []Rule, c shell.Command) bool {
	if c.OnlyReads() && (a.stray == "" || !isGit(c)) {
		return true
	}
	// What a trailing * stands for may be anything, but not unknown.
	known := func(words []shell.Word) bool {
		return !slices.ContainsFunc(words, func(w shell.Word) bool { return !w.Literal })
	}
	return slices.ContainsFunc(rules, func(r Rule) bool {
		if r.name != ruleBash || len(r.words) == 0 {
			return false
		}
		return slices.ContainsFunc(append([][]shell.Word{c.Args}, c.Outer...), func(words []shell.Word) bool {
			return known(words) && r.wordsMatch(words) == yes
		})
	})
}

// allowsLine says whether the rules allow a command line.
func allowsLine(rules []Rule, a *act, roots []string) bool {
	for _, r := range rules {
		if r.name == ruleBash && (r.arg == "" || len(a.env) == 0 && a.stdin == "" && r.exactly(a.command)) {
			return true
		}
	}
	if len(a.line.Unknown) > 0 {
		return false
	}
	for _, c := range a.line.Commands {
		if !a.allowsCommand(rules, c) {
			return false
		}
	}
	// A redirection may connect to a host, which no rule is about.
	for _, w := range slices.Concat(a.line.Reads, a.line.Writes) {
		if !w.Literal || shell.Network(w.Text) {
			return false
		}
	}
	for _, w := range a.line.Writes {
		path, ok := a.resolve(w)
		if !ok || !slices.ContainsFunc(rules, func(r Rule) bool { return r.name == ruleEdit && r.pathMatches(path, roots) }) {
			return false
		}
	}
	return len(a.line.Commands) > 0 || len(a.line.Writes) > 0
}

// exactly says whether the rule is this very line.
func (r Rule) exactly(command string) bool {
	line, ok := strings.CutPrefix(r.arg, "=")
	return ok && strings.TrimSpace(line) == strings.TrimSpace(command)
}

// deniesLine says whether the rule denies a command line.
func (r Rule) deniesLine(a *act, roots []string) verdict {
	switch r.name {
	case ruleBash:
		if r.arg == "" || r.exactly(a.command) {
			return yes
		}
		if strings.HasPrefix(r.arg, "=") {
			return no
		}
	case ruleEdit, ruleRead:
		return r.deniesFiles(a, roots)
	default:
		return no
	}
	found := no
	if len(a.line.Unknown) > 0 {
		found = maybe
	}
	for _, c := range a.line.Commands {
		found = max(found, r.deniesCommand(c))
	}
	return found
}

// deniesCommand looks at a command in all its forms.
func (r Rule) deniesCommand(c shell.Command) verdict {
	found := no
	for _, words := range append([][]shell.Word{c.Args}, c.Outer...) {
		found = max(found, r.wordsMatch(words))
		if !words[0].Literal {
			continue
		}
		plainName := slices.Clone(words)
		plainName[0].Text = filepath.Base(words[0].Text)
		found = max(found, r.wordsMatch(plainName))
		switch {
		case plainName[0].Text == "git":
			found = max(found, r.wordsMatch(shell.WithoutGitOptions(plainName)))
			if slices.ContainsFunc(words, func(w shell.Word) bool { return strings.HasPrefix(strings.ToLower(w.Text), "alias.") }) {
				found = max(found, maybe) // another name for what is denied
			}
		case launchers[plainName[0].Text]:
			for i := 1; i < len(words); i++ {
				found = max(found, r.wordsMatch(words[i:]))
				if words[i].Literal && strings.ContainsAny(words[i].Text, " \t\n;|&") { // a line, as of su -c
					for _, inner := range shell.Parse(words[i].Text).Commands {
						found = max(found, r.deniesCommand(inner))
					}
				}
			}
		}
	}
	return found
}

// launchers run a command that their arguments name, in ways that package shell
// does not read.
var launchers = func() map[string]bool {
	m := map[string]bool{}
	for _, name := range strings.Fields(`chroot chrt dbus-run-session docker doas fakeroot firejail flock kubectl ltrace npx nsenter
		parallel podman proot runuser script setpriv ssh strace su sudo systemd-run taskset unbuffer unshare watch xvfb-run`) {
		m[name] = true
	}
	return m
}()

// glob are the files that a pattern of the shell stands for now; not all of them
// where there are too many, or the line goes to another folder first.
func (a *act) glob(w shell.Word) (paths []string, all bool) {
	if w.Literal || !strings.ContainsAny(w.Text, "*?[") || strings.ContainsAny(w.Text, "$`'\"{~\\") {
		return nil, true
	}
	pattern := w.Text
	if !filepath.IsAbs(pattern) {
		if a.line.Moved {
			return nil, false
		}
		pattern = filepath.Join(a.workdir, pattern)
	}
	paths, err := filepath.Glob(strings.ReplaceAll(pattern, "[!", "[^"))
	if err != nil {
		return nil, true
	}
	most := min(len(paths), limits.ShellCommands)
	return paths[:most], most == len(paths)
}

// deniesFiles looks at the files that a line names: those of redirections, and
// every argument that might be one.
func (r Rule) deniesFiles(a *act, roots []string) verdict {
	found := no
	look := func(w shell.Word) {
		path, ok := a.resolve(w)
		switch {
		case ok && r.pathMatches(path, roots):
			found = yes
		case !ok:
			found = max(found, maybe)
		}
	}
	files := a.line.Writes
	if r.name == ruleRead {
		files = a.line.Reads
	}
	for _, w := range files {
		look(w)
	}
	for _, c := range a.line.Commands {
		if r.arg == "" || r.name == ruleEdit && c.OnlyReads() { // which arguments are files cannot be told
			continue
		}
		for _, w := range c.Args[1:] {
			paths, all := a.glob(w)
			for _, path := range paths {
				look(shell.Word{Text: path, Literal: true})
			}
			if !all {
				found = max(found, maybe)
			}
			if w.Literal && w.Text != "" {
				if _, value, ok := strings.Cut(w.Text, "="); ok {
					look(shell.Word{Text: value, Literal: true})
				}
				look(w)
			}
		}
	}
	return found
}
