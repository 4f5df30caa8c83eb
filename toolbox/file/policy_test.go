package file

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

func edited(file, old, new string) args {
	return args{"file_path": file, "old_string": old, "new_string": new}
}

func TestReadBeforeEdit(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a", "one\n", "b", "one\n")
	w.refused(fs.CodeNotObserved, "edit", edited("a", "one", "two"))
	w.ok("grep", args{"pattern": "one"}) // does not count
	w.refused(fs.CodeNotObserved, "edit", edited("a", "one", "two"))
	w.ok("read", args{"file_path": "a", "limit": 1})
	w.ok("edit", edited("a", "one", "two"))
	w.ok("edit", edited("a", "two", "three")) // it knows what it did
	w.ok("write", args{"file_path": "a", "content": "four\n"})
	w.ok("edit", edited("./a", "four", "five"))
	w.ok("edit", edited(filepath.Join(w.dir, "a"), "five", "six"))

	w.put("a", "else\n")
	w.refused(fs.CodeStaleVersion, "edit", edited("a", "else", "x"))
	w.refused(fs.CodeStaleVersion, "write", args{"file_path": "a", "content": "x"})
	if got := w.content("a"); got != "else\n" {
		t.Errorf("a refused call wrote %q", got)
	}
	w.ok("read", args{"file_path": "a"})
	w.ok("edit", edited("a", "else", "x"))

	if err := os.Remove(filepath.Join(w.dir, "a")); err != nil {
		t.Fatal(err)
	}
	w.refused(fs.CodeNotFound, "edit", edited("a", "x", "y"))
	w.ok("write", args{"file_path": "a", "content": "again\n"})
	w.ok("write", args{"file_path": "new/file", "content": "x"})
	w.ok("edit", edited("new/file", "x", "y"))
	w.refused(fs.CodeNotObserved, "write", args{"file_path": "b", "content": "x"})
}

// TestLinksAreOneFile: what was read by one name may be changed by another.
func TestLinksAreOneFile(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("dir/a", "one\n")
	if err := os.Symlink("dir/a", filepath.Join(w.dir, "link")); err != nil {
		t.Fatal(err)
	}
	w.ok("read", args{"file_path": "link"})
	w.ok("edit", edited("dir/a", "one", "two"))
	w.ok("edit", edited("link", "two", "three"))
	if got := w.content("dir/a"); got != "three\n" {
		t.Errorf("got %q", got)
	}
}

func TestUnread(t *testing.T) {
	w := newWorld(t, Config{Unread: true})
	w.put("a", "one\n")
	w.ok("edit", edited("a", "one", "two"))
	w.ok("write", args{"file_path": "a", "content": "x"})
}

// TestEachScopeReadsForItself: what one session has read, another has not.
func TestEachScopeReadsForItself(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a", "one\n")
	first, second := tool.NewScope("first", nil), tool.NewScope("second", nil)
	w.scope = first
	w.ok("read", args{"file_path": "a"})
	w.scope = second
	w.refused(fs.CodeNotObserved, "edit", edited("a", "one", "two"))
	w.ok("read", args{"file_path": "a"})
	w.ok("edit", edited("a", "one", "two"))
	w.scope = first
	w.refused(fs.CodeStaleVersion, "edit", edited("a", "two", "three"))
}

// TestOthersAreNotBound: the policy is about the model of its own scope.
func TestOthersAreNotBound(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a", "one\n")
	exec := &tool.Exec{Name: "x"}
	own, _ := fs.Service.Get(w.root)
	for _, c := range []struct {
		name  string
		actor tool.Actor
		code  string
	}{
		{"program", tool.Actor{}, ""},
		{"mount", tool.Actor{Mount: &tool.Mount{ID: "dyn-1"}}, ""},
		{"tool_of_a_mount", tool.Actor{Mount: &tool.Mount{ID: "dyn-1"}, Exec: exec}, ""},
		{"other_tool_of_the_model", tool.Actor{Exec: exec}, fs.CodeNotObserved},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := tool.WithActor(t.Context(), c.actor)
			_, err := own.For(w.root).WriteText(ctx, "a", c.name, nil)
			if got := service.CodeOf(err); got != c.code {
				t.Errorf("got %v, want %q", err, c.code)
			}
		})
	}
	t.Run("another_tool_that_has_read", func(t *testing.T) {
		ctx := tool.WithActor(t.Context(), tool.Actor{Exec: exec})
		if _, err := own.For(w.root).ReadText(ctx, "a", nil); err != nil {
			t.Fatal(err)
		}
		if _, err := own.For(w.root).WriteText(ctx, "a", "x", nil); err != nil {
			t.Errorf("without a version: %v", err)
		}
		w.put("a", "behind its back")
		if _, err := own.For(w.root).WriteText(ctx, "a", "x", nil); service.CodeOf(err) != fs.CodeStaleVersion {
			t.Errorf("of a changed file: %v", err)
		}
	})
}

// TestPolicyBinds: what policy refuses is refused in its own words, searches show
// nothing of it, and nobody is asked about a file that was not read.
func TestPolicyBinds(t *testing.T) {
	var asked []string
	policy := &cordis.Plugin{Name: "policy", Apply: func(c *cordis.Context, _ any) error {
		_, err := fs.ReadIntent.On(c, func(ctx context.Context, r fs.Read, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			if filepath.Base(r.Path) == "secret" {
				return tool.Deny("secrets stay secret"), nil
			}
			return next(ctx)
		})
		if err != nil {
			return err
		}
		_, err = fs.EditIntent.On(c, func(_ context.Context, e fs.EditRequest, _ func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			asked = append(asked, filepath.Base(e.Path))
			return tool.Deny("no edits today"), nil
		})
		return err
	}}
	w := newWorld(t, Config{}, policy)
	w.put("secret", "key = 1\n", "a", "key = 2\n")
	if got := w.refused(fs.CodePermissionDenied, "read", args{"file_path": "secret"}); got != "secrets stay secret" {
		t.Errorf("got %q", got)
	}
	if got, want := w.text("grep", args{"pattern": "key"}), "Found 1 match\na:\n  Line 1: key = 2"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	w.refused(fs.CodePermissionDenied, "grep", args{"pattern": "key", "path": "secret"})
	w.refused(fs.CodeNotObserved, "edit", edited("a", "key", "x"))
	w.ok("read", args{"file_path": "a"})
	if got := w.refused(fs.CodePermissionDenied, "edit", edited("a", "key", "x")); got != "no edits today" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{"a"}, asked); diff != "" {
		t.Error(diff)
	}
}

// TestNumbersInAnyForm: models write integers in several ways.
func TestNumbersInAnyForm(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a", "1\n2\n3\n")
	for _, n := range []string{"2", "2.0", "2e0"} {
		r := w.tools.Execute(t.Context(), tool.Call{Name: "read", Arguments: []byte(`{"file_path":"a","limit":1,"offset":` + n + `}`)})
		var v readValue
		if w.value(r, &v); v.Offset != 2 || len(v.Lines) != 1 || v.Lines[0] != "2" {
			t.Errorf("offset %s: got %+v", n, v)
		}
	}
	for _, n := range []string{"9007199254740991", "-9007199254740991"} {
		r := w.tools.Execute(t.Context(), tool.Call{Name: "read", Arguments: []byte(`{"file_path":"a","offset":` + n + `}`)})
		if !r.IsError || r.Error.Code != fs.CodeInvalidArgument {
			t.Errorf("offset %s: got %+v", n, r)
		}
	}
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory()
	s := tool.NewScope("s", nil)
	for i := range limits.FileRemembered + 1 {
		m.see(s, fmt.Sprint(i), "v")
		m.see(s, "0", "kept") // seen again and again, it is not the oldest
	}
	if got := m.version(s, "1"); got != "" {
		t.Errorf("the oldest file is still known: %q", got)
	}
	if m.version(s, "0") != "kept" || m.version(s, fmt.Sprint(limits.FileRemembered)) != "v" {
		t.Error("a file that was seen lately is forgotten")
	}
	for i := range limits.FileScopes {
		m.see(tool.NewScope(fmt.Sprint(i), nil), "f", "v")
	}
	if m.version(s, "0") != "" || len(m.scopes) != limits.FileScopes {
		t.Errorf("the oldest scope is still known, or others are not: %d", len(m.scopes))
	}
}

// TestWithAgent: in the real loop an image becomes an attachment of the session, the
// policy binds each agent, and the guidance is in its prompt.
func TestWithAgent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DSH_HOME", filepath.Join(dir, ".dsh"))
	for name, text := range map[string]string{"pic.png": "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a": "one\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	k := agenttest.NewWith(t, agenttest.Options{Host: []*cordis.Plugin{fs.Plugin(fs.Config{Roots: []string{dir}})}})
	step := 0
	var system string
	k.Adapter(agenttest.Provider, agenttest.Func(func(_ context.Context, r *llm.Request, out *llm.Emitter) {
		system = r.System
		calls := []agenttest.Called{
			{Name: "edit", Arguments: `{"file_path":"a","old_string":"one","new_string":"two"}`},
			{Name: "read", Arguments: `{"file_path":"a"}`},
			{Name: "edit", Arguments: `{"file_path":"a","old_string":"one","new_string":"two"}`},
			{Name: "read", Arguments: `{"file_path":"pic.png"}`},
		}
		if step++; step > len(calls) {
			agenttest.Say(out, "done")
			return
		}
		agenttest.Calls(out, calls[step-1])
	}))
	a := k.Start(agent.Options{Plugins: []*cordis.Plugin{Plugin(Config{Cwd: dir})}})
	if end := k.Run(a, "go"); end.Kind != session.EndCompleted {
		t.Fatalf("the turn ended %+v", end)
	}
	results := agenttest.Payloads[session.Result](t, a.Session().Log)
	if len(results) != 4 || results[0].Error == nil || results[0].Error.Code != fs.CodeNotObserved || results[2].Error != nil {
		t.Fatalf("got %+v", results)
	}
	if !strings.Contains(system, strings.TrimSpace(guidance)) {
		t.Errorf("the guidance is not in the prompt: %q", system)
	}
	var kept *message.Attachment
	for _, b := range results[3].Message.Content[0].Content {
		if b.Attachment != nil {
			kept = b.Attachment
		}
	}
	if kept == nil {
		t.Logf("the model takes no images; content: %+v", results[3].Message.Content[0].Content)
	}
	r := k.Tools.Execute(t.Context(), tool.Call{Name: "read", Scope: a.Scope(), Arguments: []byte(`{"file_path":"pic.png"}`)})
	if r.IsError || len(r.Content) != 2 || !strings.Contains(string(r.Content[1].Raw), `"attachment":{"sha256":`) {
		t.Fatalf("got %+v", r)
	}
}
