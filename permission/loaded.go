package permission

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

// loads makes an edit one of what plugins are loaded from. What it does comes before
// the path, which may be long.
func (a *act) loads(verb string) {
	a.kind, a.loaded, a.hash = KindMount, true, mountSource(a.actor.Mount)+"/loaded"
	what := "something in .dsh, where plugins are loaded from"
	switch strings.ToLower(filepath.Ext(a.path)) {
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".cts":
		what = "a file that will run as a plugin"
	case ".yml", ".yaml":
		what = "a file that says which plugins run"
	}
	if verb == "make the folder" {
		a.summary = "make a folder where plugins are loaded from: " + a.path
	} else {
		a.summary = verb + " " + what + ": " + a.path
	}
}

// intent makes an act of the payload of an intent, and looks whether it changes what
// the runtime's own documents load.
func (p *Policy) intent(ctx context.Context, payload any) *act {
	a := intent(ctx, payload)
	if a == nil || a.kind != KindEdit || p.loads == nil || !p.loads(a.path) {
		return a
	}
	verb, _, _ := strings.Cut(a.summary, " ")
	a.loads(verb)
	a.ours = true
	if w, ok := payload.(fs.Write); ok {
		a.hash = bytesHash(a.hash, w.Content)
	}
	return a
}

// holdsLoaded looks whether a folder that goes with everything in it is a project.
// Projects further below are not looked for: nothing is loaded by removing them.
func (a *act) holdsLoaded() {
	if a.loaded {
		return
	}
	for _, name := range []string{".dsh", "agent.cordis.yml"} {
		if _, err := os.Lstat(filepath.Join(a.path, name)); err == nil {
			a.kind, a.loaded, a.hash = KindMount, true, mountSource(a.actor.Mount)+"/loaded"
			a.summary = "remove a folder that plugins are loaded from: " + a.path
			return
		}
	}
}

func mountSource(m *tool.Mount) string {
	if m == nil {
		return ""
	}
	return m.Source
}

// bytesHash is what is remembered of a write of something that is loaded: these very
// bytes, from the same one. No mount's source has it.
func bytesHash(by, content string) string {
	sum := sha256.Sum256([]byte(by + "\x00" + content))
	return hex.EncodeToString(sum[:])
}

// vouched says whether an act that is allowed was allowed by a rule of a person, and
// not because everything is.
func (a *act) vouched(b *binding, roots []string) bool {
	return b.now() != Full && (a.allowed(b.allow, roots) || b.recalls(a, roots))
}

// allowed does what follows from an act that nobody was asked about.
func (p *Policy) allowed(a *act, b *binding) {
	switch {
	case !a.loaded:
	case a.vouched(b, b.roots(p)):
		p.entrust(a)
	default:
		p.disclaim(a)
	}
}

// entrust has what a person allowed trusted, once it has been written.
func (p *Policy) entrust(a *act) {
	if !a.loaded || p.trusted == nil {
		return
	}
	path := a.path
	// What was allowed and written is trusted also where the turn ended meanwhile.
	then := func(ctx context.Context, c fs.Committed) {
		p.trusted(context.WithoutCancel(ctx), path, c.Before, c.Content)
	}
	switch in := a.payload.(type) {
	case fs.Write:
		if fits(in.Content) {
			in.Done.Then(then)
		}
	case fs.EditRequest:
		if fits(in.Whole.OldString + in.Whole.NewString) {
			in.Done.Then(then)
		}
	}
}

// untrusted is what the model is told of a file that was written, and does not count.
//
//go:embed untrusted.md
var untrusted string

// disclaim tells the model that what mode full allowed is not trusted by that, once it
// has been written.
func (p *Policy) disclaim(a *act) {
	exec := a.actor.Exec
	if !a.loaded || a.ours || exec == nil {
		return
	}
	text := strings.TrimSpace(strings.ReplaceAll(untrusted, "{{path}}", plain.Line(a.path, limits.SourceLine)))
	then := func(context.Context, fs.Committed) {
		exec.DeferContext(tool.Message{Content: []tool.Block{tool.TextBlock(text)}}) // refused: the call is over, and so is its answer
	}
	switch in := a.payload.(type) {
	case fs.Write:
		in.Done.Then(then)
	case fs.EditRequest:
		in.Done.Then(then)
	}
}

// loadedIntro is how much of a question's detail is left for what it says itself.
const loadedIntro = 4000

// fits says whether a question shows a text in full.
func fits(text string) bool { return len(text) <= limits.PermissionDetail-loadedIntro }

// loadedQuestion is what a person is shown: the whole of what would be there, and of an
// edit what would change.
func (p *Policy) loadedQuestion(a *act, q *Question) {
	const runs = "What is there runs as a plugin, or says which plugins run, with the rights of dsh: when it is saved, and in later sessions."
	const unshown = "It is too long to be shown in full, so it will not be trusted: run dsh trust to look at it and load it."
	switch in := a.payload.(type) {
	case fs.Write:
		trusted := "To allow it trusts these very bytes. The whole file would be:"
		if !fits(in.Content) {
			trusted = unshown
		}
		q.Detail = bounded(runs, trusted, in.Content)
	case fs.EditRequest:
		trusted := "To allow it trusts the file as it is after the edit, if it is trusted as it is now."
		if !fits(in.Whole.OldString + in.Whole.NewString) {
			trusted = unshown
		}
		q.Detail = bounded(runs, trusted)
		q.Card = &tool.Card{Diff: &tool.DiffCard{Title: a.summary, Diffs: []tool.FileDiff{{
			Path: a.path, OldText: ref(plain.Cut(in.Whole.OldString, limits.PermissionDetail)), NewText: plain.Cut(in.Whole.NewString, limits.PermissionDetail),
		}}}}
	default:
		q.Detail = runs
	}
}

func ref(s string) *string { return &s }
