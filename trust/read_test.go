package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
)

// put makes files of a project.
func put(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		ok(t, os.MkdirAll(filepath.Dir(path), 0o755))
		ok(t, os.WriteFile(path, []byte(text), 0o600))
	}
}

// names are the paths of files.
func names(files []File) []string {
	var out []string
	for _, f := range files {
		out = append(out, f.Path)
	}
	return out
}

func TestRead(t *testing.T) {
	_, root := store(t)
	put(t, root, map[string]string{
		".dsh/cordis.yml": "- id: x\n", ".dsh/plugins/b.ts": "b", ".dsh/plugins/a/index.js": "a", ".dsh/plugins/a/data.json": "{}", ".dsh/more.yaml": "",
		"agent.cordis.yml": "x", "other.js": "x", ".dsh/README.md": "x", ".dsh/plugins/.x.js.swp": "x", ".dsh/plugins/.hidden.js": "x",
		".dsh/plugins/node_modules/x/index.js": "x", ".dsh/plugins/.git/x.js": "x", ".dsh/plugins/x.js~": "x", "sub/.dsh/x.js": "x",
	})
	ok(t, os.Symlink("b.ts", filepath.Join(root, ".dsh/plugins/same.ts")))
	files, err := Read(root)
	ok(t, err)
	want := []string{".dsh/cordis.yml", ".dsh/more.yaml", ".dsh/plugins/a/data.json", ".dsh/plugins/a/index.js", ".dsh/plugins/b.ts", ".dsh/plugins/same.ts", "agent.cordis.yml"}
	if diff := cmp.Diff(want, names(files)); diff != "" {
		t.Error(diff)
	}
	if string(files[0].Content) != "- id: x\n" || string(files[5].Content) != "b" {
		t.Errorf("contents %q, %q", files[0].Content, files[5].Content)
	}
	none, err := Read(t.TempDir())
	if err != nil || len(none) > 0 {
		t.Errorf("without any: %v, %v", names(none), err)
	}
	if _, err := Read(filepath.Join(root, "nowhere")); err == nil {
		t.Error("a project that is not there was read")
	}
}

// TestReadRefuses: what leads out or is no file is named, and the rest is read.
func TestReadRefuses(t *testing.T) {
	outside := t.TempDir()
	put(t, outside, map[string]string{"x.js": "secret", "plugins/x.js": "secret"})
	for name, c := range map[string]struct {
		make func(root string) error
		want string
		left int
	}{
		"absolute": {func(root string) error {
			return os.Symlink(filepath.Join(outside, "x.js"), filepath.Join(root, ".dsh/plugins/out.js"))
		}, "out.js: " + ErrOutside.Error(), 1},
		"relative": {func(root string) error { return os.Symlink("../../x.js", filepath.Join(root, ".dsh/plugins/out.js")) }, "out.js: " + ErrOutside.Error(), 1},
		"project":  {func(root string) error { return os.Symlink("../../src.js", filepath.Join(root, ".dsh/plugins/out.js")) }, "out.js: " + ErrOutside.Error(), 1},
		"folder":   {func(root string) error { return os.Symlink(outside, filepath.Join(root, ".dsh/plugins/out")) }, "out: " + ErrOutside.Error(), 1},
		"inside":   {func(root string) error { return os.Symlink("plugins", filepath.Join(root, ".dsh/in")) }, "in: it is a link to a folder", 1},
		"nowhere":  {func(root string) error { return os.Symlink("none.js", filepath.Join(root, ".dsh/plugins/out.js")) }, "leads nowhere", 1},
		"agent": {func(root string) error {
			return os.Symlink(filepath.Join(outside, "x.js"), filepath.Join(root, "agent.cordis.yml"))
		}, "agent.cordis.yml: ", 1},
		"agentdir": {func(root string) error { return os.Mkdir(filepath.Join(root, "agent.cordis.yml"), 0o755) }, "agent.cordis.yml: it is no regular file", 1},
		"large": {func(root string) error {
			return os.Truncate(filepath.Join(root, ".dsh/plugins/ok.js"), limits.TrustFile+1)
		}, "more than", 0},
		"unread":   {func(root string) error { return os.Chmod(filepath.Join(root, ".dsh/plugins/ok.js"), 0) }, "permission denied", 0},
		"dsh_link": {func(root string) error { return swap(root, func(dsh string) error { return os.Symlink(outside, dsh) }) }, ".dsh: it is a link", 0},
		"dsh_in":   {func(root string) error { return swap(root, func(dsh string) error { return os.Symlink("was", dsh) }) }, ".dsh: it is a link", 0},
		"dsh_file": {func(root string) error {
			return swap(root, func(dsh string) error { return os.WriteFile(dsh, nil, 0o600) })
		}, ".dsh: it is no folder", 0},
		"manyfiles": {func(root string) error { return many(root, limits.TrustFiles+5) }, "more than 1000 files", limits.TrustFiles},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "unread" && os.Getuid() == 0 {
				t.Skip("it runs as root, whom no mode of a file keeps from reading")
			}
			_, root := store(t)
			put(t, root, map[string]string{".dsh/plugins/ok.js": "x", "src.js": "x"})
			ok(t, c.make(root))
			files, err := Read(root)
			if err == nil || !strings.Contains(err.Error(), c.want) || len(files) != c.left {
				t.Errorf("%d files, %v; want %q", len(files), err, c.want)
			}
			for _, f := range files {
				if string(f.Content) == "secret" {
					t.Errorf("%s was read", f.Path)
				}
			}
		})
	}
}

func swap(root string, f func(dsh string) error) error {
	dsh := filepath.Join(root, ".dsh")
	return errors.Join(os.Rename(dsh, filepath.Join(root, "was")), f(dsh))
}

func many(root string, n int) error {
	var err error
	for i := range n {
		err = errors.Join(err, os.WriteFile(filepath.Join(root, ".dsh/plugins", fmt.Sprintf("f%d.js", i)), nil, 0o600))
	}
	return err
}

func TestProtected(t *testing.T) {
	for path, want := range map[string]struct {
		protected bool
		root, rel string
	}{
		"/p/.dsh/plugins/x.js":         {true, "/p", ".dsh/plugins/x.js"},
		"/p/.dsh":                      {true, "", ""},
		"/p/.DSH/x.js":                 {true, "/p", ".DSH/x.js"},
		"/p/agent.cordis.yml":          {true, "/p", "agent.cordis.yml"},
		"/agent.cordis.yml":            {true, "/", "agent.cordis.yml"},
		"/.dsh/x.js":                   {true, "/", ".dsh/x.js"},
		"/p/.dsh/q/agent.cordis.yml":   {true, "/p", ".dsh/q/agent.cordis.yml"},
		"/p/.dsh/q/.dsh/x.js":          {true, "/p/.dsh/q", ".dsh/x.js"},
		"/p/x.dsh/x.js":                {},
		"/p/.dshx":                     {},
		"/p/agent.cordis.yml.bak":      {},
		"/p/agent.cordis.yml/x":        {},
		"/p/src/cordis.yml":            {},
		"/p/sub/.dsh/plugins/a/b/c.ts": {true, "/p/sub", ".dsh/plugins/a/b/c.ts"},
	} {
		if got := Protected(path); got != want.protected {
			t.Errorf("%s: protected %v", path, got)
		}
		root, rel, found := Locate(path)
		if root != want.root || rel != want.rel || found != (rel != "") {
			t.Errorf("%s: %q, %q, %v", path, root, rel, found)
		}
	}
}

func TestFind(t *testing.T) {
	_, root := store(t)
	put(t, root, map[string]string{"home/.dsh/cordis.yml": "", "home/p/.dsh/cordis.yml": "", "home/p/a/b/x": "", "home/q/x": "", "file/.dsh": ""})
	at := func(rel string) string { return filepath.Join(root, rel) }
	own := at("home/.dsh")
	for dir, want := range map[string]string{"home/p/a/b": "home/p", "home/p": "home/p", "home/p/.dsh": "home/p", "home/q": "", "home": "", "file": ""} {
		got, found := Find(at(dir), own)
		if want != "" {
			want = at(want)
		}
		if got != want || found != (want != "") {
			t.Errorf("%s: %q, %v; want %q", dir, got, found, want)
		}
	}
	if got, _ := Find(at("home/q"), ""); got != at("home") {
		t.Errorf("without a home of its own: %q", got)
	}
}

func TestCommand(t *testing.T) {
	for root, want := range map[string]string{"/a/b-c": "dsh trust /a/b-c", "/a b/'c": `dsh trust '/a b/'\''c'`, "/a;rm": "dsh trust '/a;rm'"} {
		if got := Command(root); got != want {
			t.Errorf("%s: %s", root, got)
		}
	}
}
