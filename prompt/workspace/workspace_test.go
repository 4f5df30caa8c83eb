package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a session with files.
type world struct {
	t       testing.TB
	dir     string // the root
	root    *cordis.Context
	scope   *tool.Scope
	prompts *prompt.Registry
}

// day is the clock of tests.
var day = time.Date(2026, 11, 30, 23, 0, 0, 0, time.UTC)

// newWorld makes files, by their paths in the root, and starts a session in cwd, a
// folder below it. What begins with -> is a link.
func newWorld(t testing.TB, cwd string, files map[string]string) *world {
	t.Helper()
	t.Setenv("DSH_HOME", filepath.Join(t.TempDir(), "home"))
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, root: cordis.New(), scope: tool.NewScope("session", nil)}
	for path, text := range files {
		w.put(path, text)
	}
	if err := os.MkdirAll(filepath.Join(dir, cwd), 0o755); err != nil {
		t.Fatal(err)
	}
	w.plugin(w.root, fs.Plugin(fs.Config{Roots: []string{dir}}))
	w.plugin(w.root, prompt.Plugin(prompt.Config{}))
	w.plugin(tool.WithScope(w.root, w.scope), Plugin(Config{Cwd: filepath.Join(dir, cwd), Platform: "linux/amd64", Now: func() time.Time { return day }}))
	w.prompts, _ = prompt.Service.Get(w.root)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := w.root.Fiber().Dispose(ctx); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) plugin(c *cordis.Context, p *cordis.Plugin) {
	w.t.Helper()
	f, err := c.Mount(p, nil)
	if err == nil {
		err = f.Await(w.t.Context())
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	var err error
	if target, link := strings.CutPrefix(text, "->"); link {
		err = os.Symlink(target, path)
	} else {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// contexts are the runtime context, with $ for the root.
func (w *world) contexts() string {
	w.t.Helper()
	text, err := w.prompts.Contexts(w.t.Context(), prompt.View{Scope: w.scope})
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.ReplaceAll(text, w.dir, "$")
}

// files are the part about files.
func (w *world) files() string {
	w.t.Helper()
	_, text, _ := strings.Cut(w.contexts(), strings.TrimSpace(agentsText)+"\n\n")
	return text
}

func TestGolden(t *testing.T) {
	w := newWorld(t, "repo/a/b", map[string]string{
		"AGENTS.md":          "outside of the repository",
		"repo/.git/HEAD":     "x",
		"repo/AGENTS.md":     "Run {{tests}}.\n\nUse tabs.\n\n\n",
		"repo/a/AGENTS.md":   " \n",
		"repo/a/b/AGENTS.md": "Use spaces here.",
	})
	want, err := os.ReadFile("testdata/contexts.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), w.contexts()+"\n"); diff != "" {
		t.Error(diff)
	}
	if text, err := w.prompts.Contexts(t.Context(), prompt.View{}); err != nil || text != "" {
		t.Errorf("others see %q, error %v", text, err)
	}
}

func TestOutermost(t *testing.T) {
	files := map[string]string{"AGENTS.md": "one", "a/AGENTS.md": "two", "a/b/AGENTS.md": "three"}
	w := newWorld(t, "a/b", files)
	if got := w.files(); !strings.HasPrefix(got, `<file path="$/AGENTS.md">`) {
		t.Errorf("without .git:\n%s", got)
	}
	w.put("a/.git", "gitdir: elsewhere")
	if got := w.files(); !strings.HasPrefix(got, `<file path="$/a/AGENTS.md">`) || !strings.Contains(got, "three") {
		t.Errorf("with the .git file of a worktree:\n%s", got)
	}
}

func TestKinds(t *testing.T) {
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"none", nil, ""},
		{"empty", map[string]string{"AGENTS.md": ""}, ""},
		{"text", map[string]string{"AGENTS.md": "x"}, "<file path=\"$/AGENTS.md\">\nx\n</file>"},
		{"crlf", map[string]string{"AGENTS.md": "x\r\ny\r\n"}, "<file path=\"$/AGENTS.md\">\nx\r\ny\r\n</file>"},
		{"link", map[string]string{"AGENTS.md": "->CLAUDE.md", "CLAUDE.md": "x"}, "<file path=\"$/AGENTS.md\" link-to=\"$/CLAUDE.md\">\nx\n</file>"},
		{"dangling", map[string]string{"AGENTS.md": "->gone"}, "<file path=\"$/AGENTS.md\">\n[not shown: it is a link to what is not there]\n</file>"},
		{"circle", map[string]string{"AGENTS.md": "->AGENTS.md"}, "<file path=\"$/AGENTS.md\">\n[not shown: it cannot be read: FS_IO_ERROR]\n</file>"},
		{"outside", map[string]string{"AGENTS.md": "->" + outside + "/secret"}, "<file path=\"$/AGENTS.md\">\n[not shown: it cannot be read: FS_SANDBOX_DENIED]\n</file>"},
		{"folder", map[string]string{"AGENTS.md/x": "x"}, "<file path=\"$/AGENTS.md\">\n[not shown: it is not a regular file]\n</file>"},
		{"binary", map[string]string{"AGENTS.md": "x\xff"}, "<file path=\"$/AGENTS.md\">\n[not shown: it is not UTF-8 text]\n</file>"},
		{"nul", map[string]string{"AGENTS.md": "x\x00"}, "<file path=\"$/AGENTS.md\">\n[not shown: it is not UTF-8 text]\n</file>"},
		{"twice", map[string]string{"AGENTS.md": "x", "a/AGENTS.md": "->../AGENTS.md"},
			"<file path=\"$/AGENTS.md\">\n[not shown: it is the same file as \"$/a/AGENTS.md\"]\n</file>\n\n<file path=\"$/a/AGENTS.md\" link-to=\"$/AGENTS.md\">\nx\n</file>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "a", tt.files)
			for range 2 {
				if diff := cmp.Diff(tt.want, w.files()); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestPolicy(t *testing.T) {
	w := newWorld(t, "", map[string]string{"AGENTS.md": "x"})
	_, err := fs.ReadIntent.On(w.root, func(_ context.Context, r fs.Read, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		if filepath.Base(r.Path) == fileName {
			return tool.Deny("no"), nil
		}
		return next(t.Context())
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := w.files(); !strings.Contains(got, "[not shown: it cannot be read: FS_PERMISSION_DENIED]") {
		t.Error(got)
	}
}

func TestWorkingFolder(t *testing.T) {
	w := newWorld(t, "", nil)
	files, _ := fs.Service.Get(w.root)
	outside := newWorkspace(w.root, Config{Cwd: t.TempDir()}, files)
	text, err := outside.agents(t.Context(), prompt.View{})
	if err != nil || !strings.Contains(text, "the working folder cannot be reached: FS_SANDBOX_DENIED") {
		t.Errorf("%q, error %v", text, err)
	}
	first := newWorkspace(w.root, Config{}, files)
	text, err = first.environment(t.Context(), prompt.View{})
	if err != nil || !strings.Contains(text, w.dir) {
		t.Errorf("%q, error %v", text, err)
	}
	odd := newWorkspace(w.root, Config{Cwd: "/a\nb"}, files)
	text, err = odd.environment(t.Context(), prompt.View{})
	if err != nil || !strings.Contains(text, `Working folder: "/a\nb"`) {
		t.Errorf("%q, error %v", text, err)
	}
}

func TestCut(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	big := strings.Repeat(line, limits.WorkspaceFile/100+50)
	tests := []struct {
		name  string
		files map[string]string
		parts []string
	}{
		{"lines", map[string]string{"AGENTS.md": big}, []string{"x\n[cut here: these are the first 32700 of 37700 bytes; read the rest when you need it]\n</file>"}},
		{"one_line", map[string]string{"AGENTS.md": strings.Repeat("ä", limits.WorkspaceFile)}, []string{"ä\n[cut here: these are the first 32768 of 65536 bytes"}},
		{"in_a_character", map[string]string{"AGENTS.md": "x" + strings.Repeat("ä", limits.WorkspaceFile)}, []string{"ä\n[cut here: these are the first 32767 of 65537 bytes"}},
		{"exactly", map[string]string{"AGENTS.md": strings.Repeat("x", limits.WorkspaceFile)}, []string{"x\n</file>"}},
		{"all", map[string]string{"AGENTS.md": big, "a/AGENTS.md": big, "a/b/AGENTS.md": big, "a/b/c/AGENTS.md": "near"},
			[]string{"[not shown, because there is no room left: 1 AGENTS.md of folders further up]", "[cut here: these are the first 24", "[cut here: these are the first 32700", "near\n</file>"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, "a/b/c", tt.files)
			got := w.files()
			if len(got) > limits.WorkspaceAll+100 {
				t.Errorf("%d bytes", len(got))
			}
			at := 0
			for _, part := range tt.parts {
				n := strings.Index(got[at:], part)
				if n < 0 {
					t.Fatalf("it lacks %q after the first %d bytes: …%s", part, at, got[max(len(got)-300, 0):])
				}
				at += n
			}
		})
	}
}

// TestBound: whatever there is, the part has room in the context.
func TestBound(t *testing.T) {
	deep := strings.Repeat(strings.Repeat("d", 100)+"/", 30)
	files := map[string]string{}
	for n := range 30 {
		files[deep[:101*n]+fileName] = strings.Repeat("x", 1000*n)
	}
	w := newWorld(t, deep, files)
	got := w.files()
	if len(got) > limits.WorkspaceAll+100 || !strings.HasPrefix(got, "[") || !strings.Contains(got, "AGENTS.md of folders further up]") {
		t.Errorf("%d bytes: %.200s", len(got), got)
	}
}

func TestRereads(t *testing.T) {
	w := newWorld(t, "", map[string]string{"AGENTS.md": "one"})
	read := 0
	_, err := fs.Observed.On(w.root, func(context.Context, fs.Observation) { read++ })
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one", "two", "three"} {
		w.put("AGENTS.md", text)
		before := read
		for range 3 {
			if got := w.files(); !strings.Contains(got, "\n"+text+"\n") {
				t.Errorf("%q is not there: %s", text, got)
			}
		}
		if read != before+1 {
			t.Errorf("%q was read %d times", text, read-before)
		}
	}
	if err := os.Remove(filepath.Join(w.dir, fileName)); err != nil {
		t.Fatal(err)
	}
	if got := w.files(); got != "" {
		t.Error(got)
	}
}

func TestCancelled(t *testing.T) {
	w := newWorld(t, "", map[string]string{"AGENTS.md": "x"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if text, err := w.prompts.Contexts(ctx, prompt.View{Scope: w.scope}); err == nil {
		t.Errorf("no error, but %q", text)
	}
	if got := w.files(); !strings.Contains(got, "x\n</file>") {
		t.Error(got)
	}
}

func BenchmarkContexts(b *testing.B) {
	w := newWorld(b, "a/b/c", map[string]string{"AGENTS.md": "x", "a/AGENTS.md": "y", "a/b/c/AGENTS.md": "z"})
	w.contexts()
	for b.Loop() {
		w.contexts()
	}
}
