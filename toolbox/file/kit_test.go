package file

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

// world is a runtime with the tools on a folder.
type world struct {
	t     testing.TB
	root  *cordis.Context
	tools *tool.Registry
	fs    fs.FS
	dir   string
	scope *tool.Scope // of calls
}

func newWorld(t testing.TB, cfg Config, plugins ...*cordis.Plugin) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DSH_HOME", filepath.Join(dir, ".dsh"))
	w := &world{t: t, root: cordis.New(), dir: filepath.Join(dir, "ada")}
	if err := os.Mkdir(w.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := w.root.Fiber().Dispose(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	w.mount(w.root, tool.Plugin())
	w.mount(w.root, fs.Plugin(fs.Config{Roots: []string{w.dir}}))
	for _, p := range plugins {
		w.mount(w.root, p)
	}
	w.mount(w.root, Plugin(cfg))
	w.tools, _ = tool.Service.Get(w.root)
	w.fs, _ = fs.Service.Get(w.root)
	return w
}

func (w *world) mount(c *cordis.Context, p *cordis.Plugin) *cordis.Fiber {
	w.t.Helper()
	f, err := c.Mount(p, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.Await(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	if f.Err() != nil {
		w.t.Fatal(f.Err())
	}
	return f
}

type args map[string]any

// call calls a tool as a model does.
func (w *world) call(name string, a args) *tool.Result {
	w.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.tools.Execute(w.t.Context(), tool.Call{Name: name, Arguments: text, Scope: w.scope})
}

// text is what the model reads of a call, the folder's name made the same in every run.
func (w *world) text(name string, a args) string {
	w.t.Helper()
	r := w.call(name, a)
	var b strings.Builder
	for i, block := range r.Content {
		if i > 0 {
			b.WriteString("\n")
		}
		if block.Type != "text" {
			b.WriteString("[" + block.Type + "]")
			continue
		}
		b.WriteString(block.Text)
	}
	if r.IsError {
		b.WriteString("\n[" + r.Error.Name + " " + r.Error.Code + "]")
	}
	return strings.ReplaceAll(b.String(), filepath.Dir(w.dir), "/home")
}

// ok calls a tool that has to succeed.
func (w *world) ok(name string, a args) string {
	w.t.Helper()
	if r := w.call(name, a); r.IsError {
		w.t.Fatalf("%s %v: %s", name, a, r.Error.Message)
	}
	return ""
}

// refused calls a tool that has to fail with a code.
func (w *world) refused(code, name string, a args) string {
	w.t.Helper()
	r := w.call(name, a)
	if !r.IsError || r.Error.Code != code {
		w.t.Fatalf("%s %v: got %+v %q, want an error with %s", name, a, r.Error, r.Content, code)
	}
	return r.Error.Message
}

// card is the card of a call and of its result, as JSON.
func (w *world) card(name string, a args) string {
	w.t.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		w.t.Fatal(err)
	}
	r := w.tools.Execute(w.t.Context(), tool.Call{Name: name, Arguments: text, Scope: w.scope})
	replayed := &tool.Result{IsError: r.IsError, Content: r.Content, Meta: r.Meta, Error: r.Error} // as a log has it
	var b strings.Builder
	for _, c := range []*tool.Card{w.tools.PresentCall(w.t.Context(), name, w.scope, text), w.tools.PresentResult(w.t.Context(), name, w.scope, text, replayed)} {
		shown, err := json.Marshal(c)
		if err != nil {
			w.t.Fatal(err)
		}
		b.Write(shown)
		b.WriteByte('\n')
	}
	return b.String()
}

// put writes files past the tools, each a second older than the one before.
func (w *world) put(pairs ...string) {
	w.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		name := filepath.Join(w.dir, pairs[i])
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(pairs[i+1]), 0o644); err != nil {
			w.t.Fatal(err)
		}
		at := time.Date(2026, 1, 1, 0, 0, -i, 0, time.UTC)
		if err := os.Chtimes(name, at, at); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) content(name string) string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(data)
}

func (w *world) value(r *tool.Result, into any) {
	w.t.Helper()
	if r.IsError {
		w.t.Fatal(r.Error.Message)
	}
	if err := json.Unmarshal(r.Value, into); err != nil {
		w.t.Fatal(err)
	}
}

var _ lossless.Text
