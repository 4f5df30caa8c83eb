package standard

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/composition"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/casetest"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/script"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/permission"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/memory"
	"github.com/dsh-go/dsh/session/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		casetest.Clean()
		os.Exit(status)
	}))
}

// conversation is one turn of an agent of the whole composition.
type conversation struct {
	script  string // YAML
	self    bool
	mode    permission.Mode
	program string // that of the worker and of supervisors; "" where neither is started
}

// hold lets the turn take place, and returns its session, closed, and its folder.
func (c conversation) hold(t testing.TB) (*session.Session, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	played, err := script.Parse([]byte(c.script))
	if err != nil {
		t.Fatal(err)
	}
	models := &llm.Registry{}
	if _, err := models.Register("script", script.New(played)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	store := memory.New()
	s, err := store.Create(ctx, session.Meta{ID: "s", Cwd: dir})
	if err != nil {
		t.Fatal(err)
	}
	given := Given{
		Program: c.program, Cwd: dir, Roots: []string{dir}, Models: models, Sessions: store, Session: s, Mode: c.mode,
	}
	sources := composition.Sources{Builtin: Run()}
	if c.self {
		d, faults := document.Parse(Self())
		if len(faults) > 0 {
			t.Fatal(faults)
		}
		sources.Set = append(sources.Set, d)
	}
	root := cordis.New()
	defer func() {
		if _, err := root.Fiber().Dispose(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	whole, err := composition.Start(ctx, root, composition.Options{
		Sources: sources, Catalog: Catalog(given), Tell: func(text string) { t.Error(text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := whole.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	place, err := whole.Place(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	agents, err := agent.Service.Use(root)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agents.Start(ctx, agent.Options{Session: s, Model: llm.Config{Provider: "script", Model: "greeting"}, Parent: place.Scope(), Plugins: []*cordis.Plugin{place.Plugin(Catalog(given))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Followup("hello"); err != nil {
		t.Fatal(err)
	}
	if err := a.WhenIdle(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
	return s, dir
}

// header is what a model is told at its first request by the whole composition.
func header(t *testing.T, self bool) session.Header {
	t.Helper()
	s, dir := conversation{script: "steps: [{text: Hello.}]", self: self}.hold(t)
	h, ok := s.Header()
	if !ok {
		t.Fatal("no request was made")
	}
	h.System = message.Text(strings.ReplaceAll(string(h.System), dir, "/project"))
	return h
}

// TestSystemPrompt: what the model is told of its work is reviewed as text.
func TestSystemPrompt(t *testing.T) {
	for _, self := range []bool{false, true} {
		golden := filepath.Join("testdata", "system.golden") // the toolset speaks through its tools alone
		got := string(header(t, self).System) + "\n"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: run with -update after a change that is meant:\n%s", golden, diff)
		}
	}
}

// TestRuntimeContext: what the model is told of the place and the policy, in this order.
func TestRuntimeContext(t *testing.T) {
	s, dir := conversation{script: "steps: [{text: Hello.}]", mode: permission.Ask}.hold(t)
	told, ok := s.LastNode(func(n session.Node) bool { return n.Message.Source.Kind == message.SourcePlugin })
	if !ok {
		t.Fatal("nothing was told")
	}
	got := regexp.MustCompile(`(?m)^(Platform|Date): .*`).ReplaceAllString(strings.ReplaceAll(told.Message.Text(), dir, "/project"), "$1: here")
	want := "Current runtime context. This snapshot supersedes earlier runtime-context snapshots.\n\n" +
		"Working folder: /project\nPlatform: here\nDate: here\n\n" +
		"Permission: ask, and nobody can be asked: reading and commands that only read run; edits, fetches, mounts, mounted tools and other commands are denied."
	if diff := cmp.Diff(want, strings.ReplaceAll(got, "\n\n\n", "\n\n")); diff != "" {
		t.Error(diff)
	}
}

// TestTools: which tools a model has, and that the toolset is never there by itself.
func TestTools(t *testing.T) {
	ordinary := []string{"ask_user_question", "bash", "edit", "glob", "grep", "read", "task_kill", "task_list", "task_output", "todo_write", "web_fetch", "write"}
	own := []string{"cordis_inspect", "cordis_mount", "cordis_unmount"}
	for _, self := range []bool{false, true} {
		want := slices.Clone(ordinary)
		if self {
			want = append(want, own...)
		}
		slices.Sort(want)
		var got []string
		for _, d := range header(t, self).Tools {
			got = append(got, d.Name)
			if !strings.HasSuffix(string(d.Parameters.Encode()), `"additionalProperties":false}`) {
				t.Errorf("%s takes arguments that it does not know: %s", d.Name, d.Parameters.Encode())
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("self %t: %s", self, diff)
		}
	}
}
