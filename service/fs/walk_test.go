package fs

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
)

// TestBadPaths: what is no path is told as that, by every method.
func TestBadPaths(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "file"), "text")
	tests := []struct{ name, path, code, text string }{
		{"empty", "", CodeInvalidArgument, "the path is empty"},
		{"nul", "a\x00b", CodeInvalidArgument, "NUL"},
		{"long", strings.Repeat("a/", 2500), CodeInvalidArgument, "5000 bytes; at most 4096"},
		{"long_name", strings.Repeat("a", 300), CodeInvalidArgument, "too long"},
		{"outside", "/etc/passwd", CodeSandboxDenied, "`--root DIR`"},
		{"parent", "../x", CodeSandboxDenied, w.dir},
		{"parent_of_folder", "new/../../x", CodeNotFound, ""},
		{"below_file", "file/x", CodeNotDirectory, `"file" is not a folder`},
		{"missing", "none", CodeNotFound, `readText "none": there is no such file`},
		{"folder", ".", CodeNotRegularFile, "listDir()"},
		{"line_break", "a\nb", CodeNotFound, `"a b"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := w.fs.ReadText(t.Context(), Path(tt.path), nil)
			wantCode(t, err, tt.code, tt.text)
			if tt.code == CodeNotFound {
				return
			}
			_, err = w.fs.WriteText(t.Context(), Path(tt.path), "x", nil)
			wantCode(t, err, tt.code, "")
			_, err = w.fs.EditText(t.Context(), Path(tt.path), Edit{OldString: "a", NewString: "b"}, nil)
			wantCode(t, err, tt.code, "")
		})
	}
}

func TestEveryMethodStaysInside(t *testing.T) {
	outside := t.TempDir()
	put(t, filepath.Join(outside, "file"), "secret")
	w := newWorld(t, Config{})
	link(t, outside, filepath.Join(w.dir, "out"))
	link(t, filepath.Join(outside, "file"), filepath.Join(w.dir, "outfile"))
	link(t, filepath.Join(outside, "new"), filepath.Join(w.dir, "outnew"))
	ctx := t.Context()
	for _, path := range []Path{"out/file", "outfile", Path(outside) + "/file", "outnew", "out/../outfile", "out/new/deep"} {
		for name, do := range methods(w.fs) {
			if name == "remove" && path != "out/file" || name == "lstat" && !strings.HasPrefix(string(path), "out/") {
				continue // they act on the link
			}
			t.Run(name+"_"+strings.ReplaceAll(string(path), "/", "_"), func(t *testing.T) {
				wantCode(t, do(ctx, path), CodeSandboxDenied, "--root DIR")
			})
		}
	}
	if got := content(t, filepath.Join(outside, "file")); got != "secret" {
		t.Errorf("the file outside is %q", got)
	}
	if entries, _ := os.ReadDir(outside); len(entries) != 1 {
		t.Errorf("outside there is %v", entries)
	}
}

// methods calls every method with a path.
func methods(f ForPlugins) map[string]func(context.Context, Path) error {
	return map[string]func(context.Context, Path) error{
		"resolve":   func(ctx context.Context, p Path) error { _, err := f.Resolve(ctx, p, nil); return err },
		"stat":      func(ctx context.Context, p Path) error { _, err := f.Stat(ctx, p, nil); return err },
		"lstat":     func(ctx context.Context, p Path) error { _, err := f.Lstat(ctx, p, nil); return err },
		"readText":  func(ctx context.Context, p Path) error { _, err := f.ReadText(ctx, p, nil); return err },
		"readBytes": func(ctx context.Context, p Path) error { _, err := f.ReadBytes(ctx, p, nil); return err },
		"streamText": func(ctx context.Context, p Path) (err error) {
			for _, err = range f.StreamText(ctx, p, nil) {
				break
			}
			return err
		},
		"listDir":   func(ctx context.Context, p Path) error { _, err := f.ListDir(ctx, p, nil); return err },
		"glob":      func(ctx context.Context, p Path) error { _, err := f.Glob(ctx, string(p)+"/*", nil); return err },
		"writeText": func(ctx context.Context, p Path) error { _, err := f.WriteText(ctx, p, "x", nil); return err },
		"create": func(ctx context.Context, p Path) error {
			_, err := f.WriteText(ctx, p, "x", &WriteOptions{Kind: CreateIfAbsent})
			return err
		},
		"editText": func(ctx context.Context, p Path) error {
			_, err := f.EditText(ctx, p, Edit{OldString: "secret", NewString: "b"}, nil)
			return err
		},
		"remove": func(ctx context.Context, p Path) error {
			return f.Remove(ctx, p, &RemoveOptions{Recursive: true})
		},
		"mkdir": func(ctx context.Context, p Path) error {
			return f.Mkdir(ctx, p, &MkdirOptions{Recursive: true})
		},
		"watch": func(ctx context.Context, p Path) error {
			_, err := f.Watch(ctx, p, func(context.Context, []Change) error { return nil }, nil)
			return err
		},
	}
}

func TestNoRoots(t *testing.T) {
	w := newWorld(t, Config{Roots: []string{}})
	for name, do := range methods(w.fs) {
		t.Run(name, func(t *testing.T) { wantCode(t, do(t.Context(), "x"), CodeSandboxDenied, "start it with `--root DIR`") })
	}
	if got := w.svc.Describe(); !strings.Contains(got, "--root DIR") {
		t.Errorf("it describes itself as %q", got)
	}
}

// TestAborted: every method stops when its call has ended.
func TestAborted(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/secret"), "secret")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, do := range methods(w.fs) {
		t.Run(name, func(t *testing.T) { wantCode(t, do(ctx, "d/secret"), CodeAborted, "ended") })
	}
	if got := content(t, filepath.Join(w.dir, "d/secret")); got != "secret" {
		t.Errorf("the file is %q", got)
	}
}

func TestLinksInside(t *testing.T) {
	second := t.TempDir()
	w := newWorld(t, Config{Roots: []string{t.TempDir(), second}})
	put(t, filepath.Join(w.dir, "d/e/file"), "found")
	put(t, filepath.Join(second, "file"), "found")
	link(t, filepath.Join(w.dir, "d/e"), filepath.Join(w.dir, "abs"))
	link(t, "d/e/file", filepath.Join(w.dir, "rel"))
	link(t, "../abs/file", filepath.Join(w.dir, "d/up"))
	link(t, filepath.Join(second, "file"), filepath.Join(w.dir, "other"))
	link(t, "abs", filepath.Join(w.dir, "chain"))
	link(t, "none", filepath.Join(w.dir, "dangling"))
	link(t, "loop2", filepath.Join(w.dir, "loop1"))
	link(t, "loop1", filepath.Join(w.dir, "loop2"))
	link(t, w.dir, filepath.Join(second, "first"))
	for _, path := range []string{
		"d/e/file", "abs/file", "rel", "d/up", "other", "chain/file", "abs/../e/file", "./d//e/./file", "d/../d/e/file",
		filepath.Join(w.dir, "abs/file"), filepath.Join(second, "first/chain/file"), filepath.Join(w.dir, "..", filepath.Base(w.dir), "rel"),
	} {
		got, err := w.fs.ReadText(t.Context(), Path(path), nil)
		if err != nil || got != "found" {
			t.Errorf("%s: got %q, %v", path, got, err)
		}
	}
	_, err := w.fs.ReadText(t.Context(), "loop1", nil)
	wantCode(t, err, CodeIO, "symbolic links")
	_, err = w.fs.ReadText(t.Context(), "dangling", nil)
	wantCode(t, err, CodeNotFound, "")
	info, err := w.fs.Lstat(t.Context(), "rel", nil)
	if err != nil || info.Type != TypeSymlink {
		t.Errorf("lstat of a link: %+v, %v", info, err)
	}
	target, err := w.fs.Resolve(t.Context(), "chain/new", nil)
	want := filepath.Join(w.dir, "d/e/new")
	if err != nil || target.Path != want || target.DisplayPath != "d/e/new" {
		t.Errorf("resolved to %+v, %v; want %s", target, err, want)
	}
	// A write follows the link to its target.
	if _, err := w.fs.WriteText(t.Context(), "dangling", "x", nil); err != nil {
		t.Fatal(err)
	}
	if got := content(t, filepath.Join(w.dir, "none")); got != "x" {
		t.Errorf("the target of the link is %q", got)
	}
}

func TestCwd(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "a/b/file"), "x")
	for _, cwd := range []Path{"a", Path(w.dir) + "/a", "./a/../a"} {
		got, err := w.fs.Resolve(t.Context(), "b/file", &ResolveOptions{Cwd: cwd})
		if err != nil || got.DisplayPath != "a/b/file" {
			t.Errorf("from %s: %+v, %v", cwd, got, err)
		}
	}
	_, err := w.fs.Resolve(t.Context(), "file", &ResolveOptions{Cwd: "/etc"})
	wantCode(t, err, CodeSandboxDenied, "")
	info, err := w.fs.Lstat(t.Context(), "file", &ResolveOptions{Cwd: "a/b"})
	if err != nil || info == nil {
		t.Errorf("lstat in a folder: %v, %v", info, err)
	}
}

// TestHome: dsh's own folder cannot be reached inside a root, whatever leads there.
func TestHome(t *testing.T) {
	for _, there := range []bool{true, false} {
		name := map[bool]string{true: "there", false: "absent"}[there]
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			home := filepath.Join(dir, "sub/.dsh")
			t.Setenv("DSH_HOME", home)
			w := newWorld(t, Config{Roots: []string{dir}})
			put(t, filepath.Join(dir, "sub/file"), "x")
			if there {
				put(t, filepath.Join(home, "secret"), "secret")
			}
			link(t, home, filepath.Join(dir, "abs"))
			link(t, "sub/.dsh", filepath.Join(dir, "rel"))
			link(t, "sub/.dsh/secret", filepath.Join(dir, "file"))
			for _, path := range []Path{"sub/.dsh/secret", "sub/../sub/.dsh/secret", "abs/secret", "rel/secret", "file", "sub/.dsh/new/deep"} {
				for name, do := range methods(w.fs) {
					if path == "file" && (name == "remove" || name == "lstat") {
						continue // they act on the link
					}
					wantCode(t, do(t.Context(), path), CodeSandboxDenied, "")
				}
			}
			for _, path := range []Path{"sub", ".", "sub/.dsh"} {
				wantCode(t, w.fs.Remove(t.Context(), path, &RemoveOptions{Recursive: true}), CodeSandboxDenied, "")
			}
			wantCode(t, w.fs.Mkdir(t.Context(), "sub/.dsh", &MkdirOptions{Recursive: true}), CodeSandboxDenied, "never reach")
			list, err := w.fs.ListDir(t.Context(), "sub", nil)
			if err != nil || len(list) != 1 || list[0].Name != "file" {
				t.Errorf("listing shows %+v, %v", list, err)
			}
			found, err := w.fs.Glob(t.Context(), "**", nil)
			if err != nil || !slices.Equal(found, []string{"sub/file"}) {
				t.Errorf("search shows %+v, %v", found, err)
			}
			if there && content(t, filepath.Join(home, "secret")) != "secret" {
				t.Error("the secret was changed")
			}
			if _, err := os.Stat(home); !there && err == nil {
				t.Error("the folder was made")
			}
		})
	}
}

// TestHomeMoved: it is recognized by what it is, not only by its path.
func TestHomeMoved(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "real")
	put(t, filepath.Join(home, "secret"), "secret")
	link(t, home, filepath.Join(dir, "named"))
	t.Setenv("DSH_HOME", filepath.Join(dir, "named"))
	w := newWorld(t, Config{Roots: []string{dir}})
	for _, path := range []Path{"real/secret", "named/secret"} {
		_, err := w.fs.ReadText(t.Context(), path, nil)
		wantCode(t, err, CodeSandboxDenied, "")
	}
}

// TestHomeComes: a link to what is not there yet is denied, and where it leads, too.
func TestHomeComes(t *testing.T) {
	dir := t.TempDir()
	link(t, "real", filepath.Join(dir, "named"))
	t.Setenv("DSH_HOME", filepath.Join(dir, "named"))
	w := newWorld(t, Config{Roots: []string{dir}})
	for _, path := range []Path{"real/new", "named/new"} {
		_, err := w.fs.WriteText(t.Context(), path, "x", nil)
		wantCode(t, err, CodeSandboxDenied, "")
	}
	for _, there := range []bool{false, true} {
		wantCode(t, w.fs.Remove(t.Context(), "named", nil), CodeSandboxDenied, "")
		if !there {
			put(t, filepath.Join(dir, "real/secret"), "secret")
		}
	}
}

func TestReadOnlyRoots(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "x")
	put(t, filepath.Join(dir, "vendor/file"), "x")
	put(t, filepath.Join(dir, "vendor/mine/file"), "x")
	w := newWorld(t, Config{Roots: []string{dir, filepath.Join(dir, "vendor/mine")}, ReadOnly: []string{filepath.Join(dir, "vendor")}})
	link(t, "vendor", filepath.Join(dir, "link"))
	link(t, "../../vendor/file", filepath.Join(dir, "vendor/mine/out"))
	ctx := t.Context()
	for _, path := range []Path{"file", "vendor/mine/file", "link/mine/new", "vendor/../new"} {
		if _, err := w.fs.WriteText(ctx, path, "y", nil); err != nil {
			t.Error(err)
		}
	}
	for _, path := range []Path{"vendor/file", "vendor/new", "link/file", "vendor/mine/../file", "vendor/mine/out", "vendor/new/deep"} {
		_, err := w.fs.WriteText(ctx, path, "y", nil)
		wantCode(t, err, CodeReadOnly, "these can be written: "+dir)
	}
	_, err := w.fs.EditText(ctx, "vendor/file", Edit{OldString: "x", NewString: "y"}, nil)
	wantCode(t, err, CodeReadOnly, "may only read")
	wantCode(t, w.fs.Mkdir(ctx, "vendor/new/deep", &MkdirOptions{Recursive: true}), CodeReadOnly, "")
	wantCode(t, w.fs.Remove(ctx, "vendor/file", nil), CodeReadOnly, "")
	wantCode(t, w.fs.Remove(ctx, "vendor", &RemoveOptions{Recursive: true}), CodeReadOnly, "")
	wantCode(t, w.fs.Remove(ctx, ".", &RemoveOptions{Recursive: true}), CodeSandboxDenied, "roots stay")
	if got := content(t, filepath.Join(dir, "vendor/file")); got != "x" {
		t.Errorf("the file is %q", got)
	}

	only := newWorld(t, Config{Roots: []string{}, ReadOnly: []string{dir}})
	_, err = only.fs.WriteText(ctx, "file", "y", nil)
	wantCode(t, err, CodeReadOnly, "--root DIR")
	if got := only.svc.Describe(); !strings.Contains(got, dir+" (read-only)") {
		t.Errorf("it describes itself as %q", got)
	}
}

// TestRootReplaced: another folder of the same name is not the root.
func TestRootReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "root")
	put(t, filepath.Join(dir, "old"), "x")
	w := newWorld(t, Config{Roots: []string{dir}})
	do(t, os.RemoveAll(dir))
	put(t, filepath.Join(dir, "new"), "x")
	_, err := w.fs.ReadText(t.Context(), "new", nil)
	wantCode(t, err, CodeIO, "start it again")
	_, err = w.fs.WriteText(t.Context(), "d/new", "x", nil)
	wantCode(t, err, CodeIO, dir)
}

func TestConfigErrors(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "")
	t.Setenv("DSH_HOME", filepath.Join(dir, "home"))
	put(t, filepath.Join(dir, "home/file"), "")
	for name, cfg := range map[string]Config{
		"missing": {Roots: []string{filepath.Join(dir, "none")}},
		"file":    {Roots: []string{filepath.Join(dir, "file")}},
		"empty":   {ReadOnly: []string{""}},
		"home":    {Roots: []string{filepath.Join(dir, "home")}},
		"denied":  {Roots: []string{dir}, Denied: []string{dir}},
	} {
		t.Run(name, func(t *testing.T) {
			root := cordis.New()
			f, err := root.Mount(Plugin(cfg), nil)
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Await(t.Context())
			if f.Err() == nil || !strings.Contains(f.Err().Error(), "open root") {
				t.Errorf("got %v", f.Err())
			}
		})
	}
}

func TestDefaultRoots(t *testing.T) {
	home := t.TempDir()
	link(t, home, filepath.Join(home, "link"))
	for _, tt := range []struct {
		cwd, home string
		want      []string
	}{
		{"/", home, nil},
		{home, home, nil},
		{home + "/", home, nil},
		{home + "/link", home, nil},
		{home + "/project", home, []string{home + "/project"}},
		{home + "/project/", "", []string{home + "/project"}},
		{"", home, nil},
	} {
		if got := DefaultRoots(tt.cwd, tt.home); !slices.Equal(got, tt.want) {
			t.Errorf("DefaultRoots(%q, %q) = %q, want %q", tt.cwd, tt.home, got, tt.want)
		}
	}
}

// TestSwappedLinks: someone changes a name between a folder, a link to the
// outside and a link to a denied folder, while it is read and written.
func TestSwappedLinks(t *testing.T) {
	base := t.TempDir()
	dir, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	home := filepath.Join(dir, "home")
	t.Setenv("DSH_HOME", home)
	put(t, filepath.Join(outside, "file"), "secret")
	put(t, filepath.Join(home, "file"), "secret")
	put(t, filepath.Join(dir, "real/file"), "public")
	put(t, filepath.Join(dir, "flat"), "public")
	w := newWorld(t, Config{Roots: []string{dir}})

	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		name, flat, temp := filepath.Join(dir, "name"), filepath.Join(dir, "flat"), filepath.Join(dir, "temp")
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			targets := []string{"real", outside, "home", "../outside"}
			_ = os.Symlink(targets[i%4], temp)
			_ = os.Rename(temp, name)
			_ = os.Symlink(targets[i%4]+"/file", temp)
			_ = os.Rename(temp, flat)
			_ = os.Remove(name)
			_ = os.Mkdir(name, 0o755)
			_ = os.WriteFile(name+"/file", []byte("public"), 0o644)
			_ = os.Remove(flat)
			_ = os.WriteFile(flat, []byte("public"), 0o644)
			_ = os.Rename(name, filepath.Join(dir, "old"))
			_ = os.RemoveAll(filepath.Join(dir, "old"))
		}
	})
	counts := map[string]int{}
	for range 1000 {
		for _, path := range []Path{"name/file", "flat"} {
			got, err := w.fs.ReadText(t.Context(), path, nil)
			counts[service.CodeOf(err)]++
			if got == "secret" {
				t.Fatal("the secret was read")
			}
		}
	}
	for range 40 {
		for _, path := range []Path{"name/file", "name/new", "flat"} {
			_, err := w.fs.WriteText(t.Context(), path, "public", nil)
			counts[service.CodeOf(err)]++
			_, _ = w.fs.EditText(t.Context(), path, Edit{OldString: "secret", NewString: "public"}, nil)
			_ = w.fs.Remove(t.Context(), path, nil)
		}
		_ = w.fs.Mkdir(t.Context(), "name/newdir", nil)
	}
	close(stop)
	swapping.Wait()
	for _, there := range []string{outside, home} {
		entries, err := os.ReadDir(there)
		if err != nil || len(entries) != 1 || content(t, filepath.Join(there, "file")) != "secret" {
			t.Errorf("%s was changed: %v, %v", there, entries, err)
		}
	}
	if counts[""] == 0 || counts[CodeSandboxDenied] == 0 {
		t.Errorf("nothing was swapped in time: %v", counts)
	}
	t.Log(counts)
}

// FuzzPath: no path leads out, and none does harm.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"file", "a/../..", "abs/file", "//", "out/file", ".", "..", "a/b/c", "link/../../x", "\x00", "home/.dsh", "é/\xff"} {
		f.Add(seed)
	}
	base := f.TempDir()
	dir, outside := filepath.Join(base, "root"), filepath.Join(base, "outside")
	put(f, filepath.Join(outside, "file"), "secret")
	put(f, filepath.Join(dir, "home/.dsh/file"), "secret")
	put(f, filepath.Join(dir, "a/b/file"), "public")
	put(f, filepath.Join(dir, "file"), "public")
	link(f, outside, filepath.Join(dir, "out"))
	link(f, filepath.Join(dir, "a"), filepath.Join(dir, "abs"))
	link(f, "a/b", filepath.Join(dir, "link"))
	link(f, "..", filepath.Join(dir, "a/up"))
	f.Setenv("DSH_HOME", filepath.Join(dir, "home/.dsh"))
	w := newWorld(f, Config{Roots: []string{dir}})
	f.Fuzz(func(t *testing.T, path string) {
		target, err := w.fs.Resolve(t.Context(), Path(path), nil)
		if err == nil {
			if _, in := within(target.Path, w.dir); !in || target.Path != filepath.Clean(target.Path) {
				t.Fatalf("%q resolved to %q", path, target.Path)
			}
			again, err := w.fs.Resolve(t.Context(), Path(target.DisplayPath), nil)
			if err != nil || again != target {
				t.Fatalf("%q resolved to %+v, and its display path to %+v, %v", path, target, again, err)
			}
		} else if service.CodeOf(err) == "" {
			t.Fatalf("%q: an error without a code: %v", path, err)
		}
		if text, err := w.fs.ReadText(t.Context(), Path(path), nil); err == nil && text != "public" {
			t.Fatalf("%q reads %q", path, text)
		}
	})
}

// TestSwappedMeanwhile: what the system refuses because a link that leads out came
// in between is told as any other way out.
func TestSwappedMeanwhile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(t.TempDir(), filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	k := &call{ctx: t.Context(), op: "readText", path: "out/file"}
	_, err = root.Open("out/file")
	wantCode(t, k.wrap(err), CodeSandboxDenied, "replaced meanwhile")
	wantCode(t, k.wrap(root.Rename("out", "out/file")), CodeSandboxDenied, "replaced meanwhile")
}
