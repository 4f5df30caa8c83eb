package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/tool"
)

// scanned gives the sorted paths of a scan.
func (w *world) scanned(t testing.TB, o Scan) ([]string, Scanned) {
	t.Helper()
	var mu sync.Mutex
	out := []string{}
	rest, err := w.svc.Scan(t.Context(), w.root, o, func(f *Found) error {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, f.Rel)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out, rest
}

func TestScanLeavesOut(t *testing.T) {
	w := newWorld(t, Config{})
	for name, text := range map[string]string{
		".git/config": "", ".git/info/exclude": "local.txt\n", "node_modules/m/i.js": "", ".hidden": "",
		".gitignore": "*.log\n/dist/\nsecret\n!keep.log\n", "a.go": "", "a.log": "", "keep.log": "", "local.txt": "",
		"dist/x.js": "", "sub/dist/y.js": "", "sub/.gitignore": "!b.log\n*.tmp\n", "sub/b.log": "", "sub/c.tmp": "",
		"sub/deep/d.tmp": "", "sub/secret/k": "", "repo/.git/HEAD": "", "repo/r.log": "", "repo/node_modules/x": "",
		"tree/.git": "gitdir: elsewhere", "tree/t.log": "",
	} {
		put(t, filepath.Join(w.dir, name), text)
	}
	for _, c := range []struct {
		name, start, pattern string
		want                 []string
	}{
		{"all", ".", "", []string{".gitignore", ".hidden", "a.go", "keep.log", "repo/r.log", "sub/.gitignore", "sub/b.log", "sub/dist/y.js", "tree/t.log"}},
		{"from_below", "sub", "", []string{".gitignore", "b.log", "dist/y.js"}},
		{"starts_in_what_is_left_out", "dist", "", []string{"x.js"}},
		{"starts_in_node_modules", "node_modules/m", "", []string{"i.js"}},
		{"starts_in_git", ".git", "", []string{"config", "info/exclude"}},
		{"one_file", "a.log", "", []string{"a.log"}},
		{"pattern", ".", "sub/**/*.js", []string{"sub/dist/y.js"}},
		{"pattern_of_this_folder", ".", "*.go", []string{"a.go"}},
		{"pattern_of_nothing", ".", "x/*.go", []string{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, _ := w.scanned(t, Scan{Start: Path(c.start), Pattern: c.pattern})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestScanLikeGlob: where nothing is left out, both find the same.
func TestScanLikeGlob(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range 300 {
		put(t, filepath.Join(w.dir, fmt.Sprintf("d%d/e%d/f%d.%s", i%5, i%7, i, []string{"go", "md"}[i%2])), "x")
	}
	link(t, "d1/e1/f1.md", filepath.Join(w.dir, "link.md"))
	link(t, "d1", filepath.Join(w.dir, "folder"))
	link(t, "/etc/passwd", filepath.Join(w.dir, "out.md"))
	for _, pattern := range []string{"**", "**/*.go", "d1/**", "*/e2/*.md", "*", "d[1-3]/*/f?.go", "{d1,d2}/**/*.md", "*.md"} {
		want, err := w.fs.Glob(t.Context(), pattern, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := w.scanned(t, Scan{Start: ".", Pattern: pattern, Links: true})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
}

func TestScanStaysInside(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DSH_HOME", filepath.Join(dir, ".dsh"))
	w := newWorld(t, Config{Roots: []string{dir}, Denied: []string{filepath.Join(dir, "never")}})
	put(t, filepath.Join(w.dir, ".dsh/key"), "x")
	put(t, filepath.Join(w.dir, "never"), "x")
	put(t, filepath.Join(w.dir, "a"), "x")
	if err := os.Link(filepath.Join(w.dir, "never"), filepath.Join(w.dir, "same")); err != nil {
		t.Fatal(err)
	}
	link(t, "/etc", filepath.Join(w.dir, "etc"))
	var opened sync.Map
	_, err := w.svc.Scan(t.Context(), w.root, Scan{Start: ".", Links: true}, func(f *Found) error {
		if file, err := f.Open(); err == nil {
			opened.Store(f.Rel, true)
			return file.Close()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	opened.Range(func(k, _ any) bool { got = append(got, k.(string)); return true })
	if diff := cmp.Diff([]string{"a"}, got); diff != "" {
		t.Error(diff)
	}
	for start, code := range map[string]string{"/etc": CodeSandboxDenied, "none": CodeNotFound, ".dsh": CodeSandboxDenied, "a/b": CodeNotDirectory} {
		_, err := w.svc.Scan(t.Context(), w.root, Scan{Start: Path(start)}, func(*Found) error { return nil })
		wantCode(t, err, code, "search")
	}
	_, err = w.svc.Scan(t.Context(), w.root, Scan{Start: ".", Pattern: "["}, func(*Found) error { return nil })
	wantCode(t, err, CodeInvalidArgument, "not a pattern")
}

func TestScanAsksPolicy(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "a"), "x")
	put(t, filepath.Join(w.dir, "secret"), "x")
	var mu sync.Mutex
	var asked []string
	_, err := ReadIntent.On(w.root, func(ctx context.Context, r Read, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprintf("%s %s", r.Operation, strings.TrimPrefix(r.Path, w.dir)))
		if strings.HasSuffix(r.Path, "secret") {
			return tool.Deny("no"), nil
		}
		return next(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	var may sync.Map
	if _, err := w.svc.Scan(t.Context(), w.root, Scan{Start: "."}, func(f *Found) error { may.Store(f.Rel, f.MayRead()); return nil }); err != nil {
		t.Fatal(err)
	}
	a, _ := may.Load("a")
	secret, _ := may.Load("secret")
	if a != true || secret != false {
		t.Errorf("a may be read: %v; secret: %v", a, secret)
	}
	slices.Sort(asked)
	if diff := cmp.Diff([]string{"glob ", "readText /a", "readText /secret"}, asked); diff != "" {
		t.Error(diff)
	}
	_, err = w.svc.Scan(t.Context(), w.root, Scan{Start: "secret"}, func(*Found) error { return nil })
	wantCode(t, err, CodePermissionDenied, "no")
}

func TestScanEnds(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range 500 {
		put(t, filepath.Join(w.dir, fmt.Sprint(i%9), fmt.Sprint(i)), "x")
	}
	t.Run("with_an_error", func(t *testing.T) {
		stop := errors.New("stop")
		if _, err := w.svc.Scan(t.Context(), w.root, Scan{Start: "."}, func(*Found) error { return stop }); err != stop {
			t.Errorf("got %v, want the visit's error", err)
		}
		if _, err := w.svc.Scan(t.Context(), w.root, Scan{Start: "1/1"}, func(*Found) error { return stop }); err != stop {
			t.Errorf("of one file: got %v, want the visit's error", err)
		}
	})
	t.Run("with_its_context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		_, err := w.svc.Scan(ctx, w.root, Scan{Start: "."}, func(*Found) error { cancel(); return nil })
		wantCode(t, err, CodeAborted, "ended")
	})
}

func BenchmarkScan(b *testing.B) {
	w := newWorld(b, Config{})
	for i := range 5000 {
		put(b, filepath.Join(w.dir, fmt.Sprintf("d%d/e%d/f%d.go", i%50, i%7, i)), "package x\n")
	}
	b.Run("names_5000", func(b *testing.B) {
		for b.Loop() {
			if _, err := w.svc.Scan(b.Context(), w.root, Scan{Start: "."}, func(*Found) error { return nil }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("contents_5000", func(b *testing.B) {
		for b.Loop() {
			_, err := w.svc.Scan(b.Context(), w.root, Scan{Start: "."}, func(f *Found) error {
				file, err := f.Open()
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, file)
				return errors.Join(err, file.Close())
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
