package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

// runChild runs a case in a process of its own; see child_linux_test.go.
var runChild func(name string) int

func TestMain(m *testing.M) {
	if child := os.Getenv("FS_TEST_CHILD"); child != "" {
		os.Exit(runChild(child))
	}
	goleak.VerifyTestMain(m)
}

// world is a runtime with the service.
type world struct {
	root *cordis.Context
	dir  string // the first root
	fs   ForPlugins
	svc  FS
}

// newWorld starts the service; without roots given, in a folder of its own.
func newWorld(t testing.TB, cfg Config) *world {
	t.Helper()
	if os.Getenv("DSH_HOME") == "" {
		t.Setenv("DSH_HOME", filepath.Join(t.TempDir(), "home"))
	}
	if cfg.Roots == nil {
		cfg.Roots = []string{t.TempDir()}
	}
	w := &world{root: cordis.New()}
	f, err := w.root.Mount(Plugin(cfg), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f.Err() != nil {
		t.Fatal(f.Err())
	}
	t.Cleanup(func() {
		if _, err := w.root.Fiber().Dispose(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	svc, ok := Service.Get(w.root)
	if !ok {
		t.Fatal("the service is not there")
	}
	w.svc, w.fs = svc, svc.For(w.root)
	if roots := svc.Roots(); len(roots) > 0 {
		w.dir = roots[0].Path
	}
	return w
}

// mounted gives the service as the mount dyn-N has it.
func (w *world) mounted(n int, id string) ForPlugins {
	return w.svc.For(tool.WithMount(w.root, tool.Mount{Number: n, ID: id, Plugin: "test"}))
}

// put writes a file past the service.
func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func link(t testing.TB, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// wantCode checks an error's code and a part of its text.
func wantCode(t testing.TB, err error, code, text string) {
	t.Helper()
	if got := service.CodeOf(err); got != code || (err == nil) != (code == "") {
		t.Fatalf("got error %v with code %q, want code %q", err, got, code)
	}
	if err != nil && !strings.Contains(err.Error(), text) {
		t.Fatalf("got %q, want a text with %q", err, text)
	}
}

// leftovers gives the temporary files in a folder.
func leftovers(t testing.TB, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) {
			out = append(out, e.Name())
		}
	}
	return out
}

func ptr[T any](v T) *T { return &v }
