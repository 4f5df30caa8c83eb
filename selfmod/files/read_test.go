package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
)

// tree writes files below a folder of the test.
func tree(t *testing.T, texts map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadSingle(t *testing.T) {
	dir := tree(t, map[string]string{"greet.js": "export default {}", "other.ts": "export {}", "types.d.ts": "", "note.md": ""})
	f, err := Read(filepath.Join(dir, "greet.js"))
	if err != nil {
		t.Fatal(err)
	}
	want := File{Path: filepath.ToSlash(filepath.Join(dir, "greet.js")), Dir: dir, Entry: "greet.js", Files: map[string]string{"greet.js": "export default {}"}, Hash: f.Hash}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, name := range []string{"types.d.ts", "note.md"} {
		if _, err := Read(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), "a plugin is a .js or .ts file, or a folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "absent.js")); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

func TestReadFolder(t *testing.T) {
	dir := tree(t, map[string]string{
		"index.ts": "import './lib/a.js'", "lib/a.js": "export {}", "lib/data.json": "{}", "lib/types.d.ts": "", "README.md": "no",
		".hidden/x.js": "no", "node_modules/y/index.js": "no", ".eslintrc.js": "no",
	})
	f, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"index.ts": "import './lib/a.js'", "lib/a.js": "export {}", "lib/data.json": "{}"}, f.Files); diff != "" || f.Entry != "index.ts" {
		t.Errorf("entry %q (-want +got):\n%s", f.Entry, diff)
	}
	same, err := From(dir, map[string]string{"index.ts": "import './lib/a.js'", "lib/a.js": "export {}", "lib/data.json": "{}", "README.md": "no", "lib/types.d.ts": ""})
	if err != nil || same.Hash != f.Hash || same.Entry != f.Entry {
		t.Errorf("From gives %+v, %v", same, err)
	}
	for name, change := range map[string]map[string]string{
		"text": {"index.ts": "import './lib/b.js'", "lib/a.js": "export {}", "lib/data.json": "{}"},
		"name": {"index.ts": "import './lib/a.js'", "lib/c.js": "export {}", "lib/data.json": "{}"},
		"less": {"index.ts": "import './lib/a.js'", "lib/a.js": "export {}"},
		"cut":  {"index.ts": "import './lib/a.js'e", "lib/a.js": "xport {}", "lib/data.json": "{}"},
	} {
		if other, err := From(dir, change); err != nil || other.Hash == f.Hash {
			t.Errorf("%s: hash %s, %v", name, other.Hash, err)
		}
	}
}

// TestFromSingle: a plugin of one file is the same read and made of its text.
func TestFromSingle(t *testing.T) {
	dir := tree(t, map[string]string{"greet.js": "export default {}"})
	name := filepath.Join(dir, "greet.js")
	read, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	made, err := From(name, map[string]string{"greet.js": "export default {}"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read, made); diff != "" {
		t.Errorf("(-read +made):\n%s", diff)
	}
}

func TestReadRefuses(t *testing.T) {
	outside := tree(t, map[string]string{"secret.js": "export {}"})
	many := map[string]string{"index.js": ""}
	for n := range limits.PluginFileParts {
		many["part"+strings.Repeat("x", n)+".js"] = ""
	}
	for _, c := range []struct {
		name  string
		texts map[string]string
		links map[string]string
		want  string
	}{
		{"empty", map[string]string{"a.js": ""}, nil, "no index.js or index.ts"},
		{"two", map[string]string{"index.js": "", "index.ts": ""}, nil, "leave one"},
		{"large", map[string]string{"index.js": strings.Repeat(" ", limits.Source/2), "b.js": strings.Repeat(" ", limits.Source/2+1)}, nil, "all its files together"},
		{"many", many, nil, "at most"},
		{"deep", map[string]string{"index.js": "", strings.Repeat("d/", limits.PluginFileDepth+1) + "x.js": ""}, nil, "deeper than"},
		{"text", map[string]string{"index.js": "\xff"}, nil, "no UTF-8 text"},
		{"out", map[string]string{"index.js": ""}, map[string]string{"lib.js": filepath.Join(outside, "secret.js")}, "out of the plugin's folder"},
		{"up", map[string]string{"index.js": ""}, map[string]string{"lib.js": "../" + filepath.Base(outside) + "/secret.js"}, "out of the plugin's folder"},
		{"nowhere", map[string]string{"index.js": ""}, map[string]string{"lib.js": "absent.js"}, "leads nowhere"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := tree(t, c.texts)
			for name, to := range c.links {
				if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "read plugin file ") {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	dir := tree(t, map[string]string{"index.js": "", "a.js": "one"})
	if err := os.Symlink("a.js", filepath.Join(dir, "b.js")); err != nil {
		t.Fatal(err)
	}
	if f, err := Read(dir); err != nil || f.Files["b.js"] != "one" {
		t.Errorf("a link within the folder: %+v, %v", f.Files, err)
	}
}
