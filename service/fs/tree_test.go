package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
)

func TestListDir(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/b.txt"), "12")
	put(t, filepath.Join(w.dir, "d/a/x"), "")
	put(t, filepath.Join(w.dir, "d/.hidden"), "")
	link(t, "/etc", filepath.Join(w.dir, "d/link"))
	got, err := w.fs.ListDir(t.Context(), "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range got {
		size := int64(-1)
		if e.Size != nil {
			size = *e.Size
		}
		lines = append(lines, fmt.Sprint(e.Name, " ", e.Type, " ", size, " ", e.Target.DisplayPath))
	}
	want := []string{".hidden file 0 d/.hidden", "a directory -1 d/a", "b.txt file 2 d/b.txt", "link symlink -1 d/link"}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
	_, err = w.fs.ListDir(t.Context(), "d/b.txt", nil)
	wantCode(t, err, CodeNotDirectory, "not a folder")
	_, err = w.fs.ListDir(t.Context(), "none", nil)
	wantCode(t, err, CodeNotFound, "")
	if empty, err := w.fs.ListDir(t.Context(), "d/a/../a", nil); err != nil || len(empty) != 1 {
		t.Errorf("%+v, %v", empty, err)
	}
}

func TestListDirIsBounded(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "000000"), "")
	for i := range limits.FSEntries + 5 {
		link(t, "000000", filepath.Join(w.dir, fmt.Sprintf("%06d", i+1)))
	}
	_, err := w.fs.ListDir(t.Context(), ".", nil)
	wantCode(t, err, CodeTooLarge, "more than 10000 entries")
	_, err = w.fs.Glob(t.Context(), "*", nil)
	wantCode(t, err, CodeTooLarge, "more than 10000 files match")
	got, err := w.fs.Glob(t.Context(), "*", &GlobOptions{Limit: limits.FSEntries})
	if err != nil || len(got) != limits.FSEntries || got[9] != "000009" {
		t.Errorf("%d paths, %v", len(got), err)
	}
}

func TestGlob(t *testing.T) {
	second := t.TempDir()
	w := newWorld(t, Config{Roots: []string{t.TempDir(), second}})
	for _, path := range []string{"a.ts", "b.go", "src/a.ts", "src/deep/c.ts", "src/deep/d.md", "node_modules/m/x.ts", ".git/config", "src.ts/y.ts", "sp ace/[x].ts"} {
		put(t, filepath.Join(w.dir, path), "")
	}
	put(t, filepath.Join(second, "z.ts"), "")
	link(t, "src", filepath.Join(w.dir, "dirlink"))
	link(t, "src/a.ts", filepath.Join(w.dir, "filelink.ts"))
	link(t, "/etc/passwd", filepath.Join(w.dir, "outlink.ts"))
	tests := []struct {
		name, pattern string
		o             *GlobOptions
		want          []string
	}{
		{"here", "*.ts", nil, []string{"a.ts", "filelink.ts"}},
		{"all", "**/*.ts", &GlobOptions{Exclude: []string{"**/node_modules", "src.ts/**"}}, []string{"a.ts", "filelink.ts", "sp ace/[x].ts", "src/a.ts", "src/deep/c.ts"}},
		{"base", "src/**/*.ts", nil, []string{"src/a.ts", "src/deep/c.ts"}},
		{"dot_base", "./src/*", nil, []string{"src/a.ts"}},
		{"middle", "*/deep/*.md", nil, []string{"src/deep/d.md"}},
		{"braces", "{src,x}/{a,deep/c}.ts", nil, []string{"src/a.ts", "src/deep/c.ts"}},
		{"class", "[ab].*", nil, []string{"a.ts", "b.go"}},
		{"hidden", ".git/*", nil, []string{".git/config"}},
		{"escaped", `sp ace/\[x\].ts`, nil, []string{"sp ace/[x].ts"}},
		{"no_wildcard", "src/a.ts", nil, []string{"src/a.ts"}},
		{"cwd", "*.ts", &GlobOptions{Cwd: "src"}, []string{"src/a.ts"}},
		{"up", "../*.ts", &GlobOptions{Cwd: "src"}, []string{"a.ts", "filelink.ts"}},
		{"through_link", "dirlink/*.ts", nil, []string{"src/a.ts"}},
		{"absolute", second + "/*.ts", nil, []string{second + "/z.ts"}},
		{"nothing", "*.zig", nil, []string{}},
		{"no_folder", "none/**", nil, []string{}},
		{"file_base", "a.ts/*", nil, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.fs.Glob(t.Context(), tt.pattern, tt.o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	got, err := w.fs.Glob(t.Context(), "**", &GlobOptions{Limit: 3})
	if err != nil || len(got) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	for name, bad := range map[string]struct {
		pattern string
		o       GlobOptions
		text    string
	}{
		"open_class":   {"[a", GlobOptions{}, "not closed"},
		"open_brace":   {"{a", GlobOptions{}, "not closed"},
		"exclude":      {"*", GlobOptions{Exclude: []string{"["}}, `"["`},
		"many":         {"*", GlobOptions{Exclude: slices.Repeat([]string{"a"}, limits.FSPatterns+1)}, "at most 50"},
		"long":         {strings.Repeat("a", limits.FSPattern+1), GlobOptions{}, "1001 bytes"},
		"empty":        {"", GlobOptions{}, "empty"},
		"limit":        {"*", GlobOptions{Limit: limits.FSEntries + 1}, "from 1 to"},
		"negative":     {"*", GlobOptions{Limit: -1}, "from 1 to"},
		"nul":          {"\x00*", GlobOptions{}, "NUL"},
		"trailing_esc": {`a\`, GlobOptions{}, "not a pattern"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.fs.Glob(t.Context(), bad.pattern, &bad.o)
			wantCode(t, err, CodeInvalidArgument, bad.text)
		})
	}
}

// TestGlobStaysOut: folders that cannot match are not entered.
func TestGlobStaysOut(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "src/a.ts"), "")
	for i := range 300 {
		put(t, filepath.Join(w.dir, "other", fmt.Sprint(i)), "")
	}
	for pattern, most := range map[string]int{"src/*.ts": 1, "s*/*.ts": 3, "*.ts": 2, "s*/**": 3, "**": 303} {
		p := w.fs.(*plugin)
		k := p.call(t.Context(), "glob", Path(pattern))
		s := &searcher{plugin: p, k: k, limit: 1000}
		base, rest, _ := strings.Cut(pattern, "/")
		if base != "src" {
			base, rest = ".", pattern
		}
		s.prepare(rest)
		at, err := p.walk(k, Path(base), "", true)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := at.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.search(dir, at.abs, base, "", 0); err != nil || s.visited > most {
			t.Errorf("%s looked at %d entries, %v", pattern, s.visited, err)
		}
		_ = dir.Close()
		at.close()
	}
}

func TestRemove(t *testing.T) {
	w := newWorld(t, Config{})
	ctx := t.Context()
	outside := t.TempDir()
	put(t, filepath.Join(outside, "file"), "x")
	put(t, filepath.Join(w.dir, "file"), "x")
	put(t, filepath.Join(w.dir, "d/a/b/c"), "x")
	put(t, filepath.Join(w.dir, "d/e"), "x")
	link(t, outside, filepath.Join(w.dir, "d/a/out"))
	link(t, "file", filepath.Join(w.dir, "link"))
	if err := os.Mkdir(filepath.Join(w.dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.fs.Remove(ctx, "none", nil), CodeNotFound, "")
	wantCode(t, w.fs.Remove(ctx, "d", nil), CodeNotEmpty, "{recursive: true}")
	wantCode(t, w.fs.Remove(ctx, ".", &RemoveOptions{Recursive: true}), CodeSandboxDenied, "roots stay")
	for _, path := range []Path{"link", "empty"} {
		if err := w.fs.Remove(ctx, path, nil); err != nil {
			t.Error(err)
		}
	}
	if err := w.fs.Remove(ctx, "d", &RemoveOptions{Recursive: true}); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "file" {
		t.Errorf("there is %v, %v", entries, err)
	}
	if err := w.fs.Remove(ctx, "file", &RemoveOptions{Recursive: true}); err != nil {
		t.Error(err)
	}
	if content(t, filepath.Join(outside, "file")) != "x" {
		t.Error("something outside was removed")
	}
}

func TestRemoveDeep(t *testing.T) {
	w := newWorld(t, Config{})
	deep := strings.Repeat("d/", limits.FSDepth+10)
	if err := os.MkdirAll(filepath.Join(w.dir, deep), 0o755); err != nil {
		t.Fatal(err)
	}
	wantCode(t, w.fs.Remove(t.Context(), "d", &RemoveOptions{Recursive: true}), CodeTooLarge, "deep")
	if err := w.fs.Remove(t.Context(), Path(strings.Repeat("d/", 20)), &RemoveOptions{Recursive: true}); err != nil {
		t.Error(err)
	}
}

func TestMkdir(t *testing.T) {
	w := newWorld(t, Config{})
	ctx := t.Context()
	put(t, filepath.Join(w.dir, "file"), "")
	recursive := &MkdirOptions{Recursive: true}
	for _, tt := range []struct {
		path Path
		o    *MkdirOptions
		code string
		text string
	}{
		{"a", nil, "", ""},
		{"a", nil, CodeExists, "{recursive: true}"},
		{"a", recursive, "", ""},
		{"b/c", nil, CodeNotFound, "{recursive: true} makes it too"},
		{"b/c/d", recursive, "", ""},
		{"file", recursive, CodeExists, ""},
		{"file/x", recursive, CodeNotDirectory, ""},
		{".", recursive, "", ""},
	} {
		wantCode(t, w.fs.Mkdir(ctx, tt.path, tt.o), tt.code, tt.text)
	}
	if info, err := w.fs.Stat(ctx, "b/c/d", nil); err != nil || info.Type != TypeDirectory {
		t.Errorf("%+v, %v", info, err)
	}
}
