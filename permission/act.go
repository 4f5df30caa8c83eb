package permission

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/permission/shell"
	"github.com/dsh-go/dsh/service/bash"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/service/web"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/trust"
)

// act is something that is about to happen. What it is, is in exactly one of the
// groups of fields.
type act struct {
	kind    Kind
	actor   tool.Actor
	summary string // "write src/main.go"
	hash    string // of the source that what is remembered is bound to; "": the model's

	path    string // of read and edit: absolute, with links resolved
	loaded  bool   // an edit of what plugins are loaded from: its kind is mount
	ours    bool   // of that: loaded whether it is trusted or not
	subtree bool   // everything below the path, too
	payload any    // the intent

	command, workdir string // of a command line
	env              map[string]string
	stdin            string
	line             *shell.Line
	stray            string // why a git that only reads may run something

	url    string // of a fetch
	search bool

	exec *tool.Exec // of a call of a tool
	code string     // of cordis_mount
}

// mountTool is the tool that mounts a plugin. It is the composition's; a mount
// cannot take its name.
const mountTool = "cordis_mount"

// intent makes an act of the payload of an intent.
func intent(ctx context.Context, payload any) *act {
	a := &act{actor: tool.ActorOf(ctx), payload: payload}
	if a.actor.Mount != nil {
		a.hash = a.actor.Mount.Source
	}
	switch p := payload.(type) {
	case fs.Read:
		a.kind, a.path, a.summary = KindRead, p.Path, "read "+p.Path
	case fs.Write:
		a.edit("write", p.Path)
		if a.loaded {
			a.hash = bytesHash(a.hash, p.Content)
		}
	case fs.EditRequest:
		a.edit("edit", p.Path)
	case fs.Removal:
		a.edit("remove", p.Path)
		if a.subtree = p.Recursive; p.Recursive {
			a.holdsLoaded()
			a.summary += " with everything in it"
		}
	case fs.NewFolder:
		a.edit("make the folder", p.Path)
	case bash.Run:
		a.kind, a.command, a.workdir, a.env = KindExecute, p.Command, p.Workdir, p.Env
		a.line = shell.Parse(p.Command)
		a.line.Set(slices.Sorted(maps.Keys(p.Env))...)
		if p.Shell != "" && p.Shell != "bash" {
			a.line.Plain(p.Command)
		}
		a.stdin, a.stray = p.Stdin, a.strayGit()
		a.summary = "run " + p.Command
	case web.PendingFetch:
		a.kind, a.url, a.summary = KindFetch, p.URL, "fetch "+p.URL
	case web.PendingSearch:
		a.kind, a.search, a.summary = KindFetch, true, "search the web for "+p.Query
	default:
		return nil
	}
	a.summary = plain.Line(a.summary, limits.SourceLine)
	return a
}

func (a *act) edit(verb, path string) {
	a.kind, a.path, a.summary = KindEdit, path, verb+" "+path
	if trust.Protected(path) {
		a.loads(verb)
	}
}

// call makes an act of a call of a tool.
func call(ctx context.Context, exec *tool.Exec) *act {
	a := &act{kind: KindExecute, actor: tool.ActorOf(ctx), exec: exec, summary: fmt.Sprintf("call the tool %s", plain.Name(exec.Name))}
	a.actor.Exec = exec
	switch m := exec.Tool; {
	case m == nil:
	case m.Mount != nil:
		a.hash = m.Mount.Source
		a.summary = fmt.Sprintf("call the tool %s of the %s %s", plain.Name(exec.Name), sort(m.Mount), who(m.Mount))
	case exec.Name == mountTool:
		var args struct {
			Code string `json:"code"`
		}
		_ = json.Unmarshal(exec.Arguments, &args) // valid under its schema; else there is no code to approve
		a.kind, a.code = KindMount, args.Code
		sum := sha256.Sum256([]byte(args.Code))
		a.hash = hex.EncodeToString(sum[:])
		a.summary = fmt.Sprintf("mount a temporary plugin of %d bytes of code", len(args.Code))
	}
	return a
}

// sort says what kind of plugin it is.
func sort(m *tool.Mount) string {
	if m.File {
		return "plugin file"
	}
	return "temporary plugin"
}

// who names a mount.
func who(m *tool.Mount) string { return fmt.Sprintf("%s (%s)", m.ID, plain.Name(m.Plugin)) }

// matches says whether a rule that is not about command lines names the act.
func (a *act) matches(r Rule, roots []string) bool {
	switch {
	case a.kind == KindRead:
		return r.name == ruleRead && r.pathMatches(a.path, roots)
	case a.kind == KindEdit:
		return r.name == ruleEdit && r.pathMatches(a.path, roots)
	case a.search:
		return r.name == ruleSearch
	case a.kind == KindFetch:
		return r.name == ruleFetch && r.urlMatches(a.url)
	case a.kind == KindMount && r.name == ruleMount:
		return true
	case a.loaded: // a rule that allows edits is not enough: see denied
		return false
	case a.exec != nil:
		return r.name == ruleTool && wild(r.arg, a.exec.Name)
	}
	return false
}

// allowed says whether the rules allow the act.
func (a *act) allowed(rules []Rule, roots []string) bool {
	if a.line != nil {
		return allowsLine(rules, a, roots)
	}
	return slices.ContainsFunc(rules, func(r Rule) bool {
		return a.matches(r, roots) && (a.url == "" || r.urlMatches(undotted(a.url))) && (!a.subtree || r.arg == "" || strings.HasSuffix(r.arg, "**"))
	})
}

// denied says whether the rules deny the act, and by which. Maybe: that cannot be
// told.
func (a *act) denied(rules []Rule, roots []string) (Rule, verdict) {
	var by Rule
	found := no
	for _, r := range rules {
		v := no
		switch {
		case a.line != nil:
			v = r.deniesLine(a, roots)
		case a.matches(r, roots), a.url != "" && r.name == ruleFetch && r.urlMatches(undotted(a.url)), a.subtree && r.name == ruleEdit && r.below(a.path, roots),
			a.loaded && r.name == ruleEdit && r.pathMatches(a.path, roots):
			v = yes
		}
		if v > found {
			by, found = r, v
		}
	}
	return by, found
}

// resolve is the path of a word of the act's line.
func (a *act) resolve(w shell.Word) (string, bool) {
	if !w.Literal || w.Text == "" {
		return "", false
	}
	path := w.Text
	if !filepath.IsAbs(path) {
		if a.line.Moved {
			return "", false
		}
		path = a.workdir + string(filepath.Separator) + path
	}
	path = fs.Canonical(path)
	return path, !strings.HasPrefix(path, "/proc/") // whose links lead elsewhere for each process
}

// onlyReads says whether the act is a command line that only reads.
func (a *act) onlyReads() bool {
	return a.line != nil && a.more() == ""
}

// more says why a command line may do more than read.
func (a *act) more() string {
	if ok, why := a.line.ReadOnly(); !ok {
		return why
	}
	return a.stray
}

// inside says whether an edit is within the roots, and not where files are settings
// that programs run: a repository's .git, or what would become one.
func (a *act) inside(roots []string) bool {
	for _, root := range roots {
		rest, err := filepath.Rel(root, a.path)
		if err != nil || rest == "." || rest == ".." || strings.HasPrefix(rest, ".."+string(filepath.Separator)) {
			continue
		}
		parts := strings.Split(filepath.ToSlash(rest), "/")
		if !slices.ContainsFunc(parts, func(p string) bool { return strings.EqualFold(p, ".git") || strings.EqualFold(p, "HEAD") }) {
			return true
		}
	}
	return false
}
