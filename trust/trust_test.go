package trust

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/internal/atomicfile"
	"github.com/dsh-go/dsh/limits"
)

// The environment of a process that trusts again and again until it is killed.
const (
	againHome = "TRUST_TEST_HOME"
	againRoot = "TRUST_TEST_ROOT"
)

func TestMain(m *testing.M) {
	if home := os.Getenv(againHome); home != "" {
		again(home, os.Getenv(againRoot))
	}
	os.Exit(m.Run())
}

func store(t testing.TB) (*Store, string) {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s, root
}

func file(path, content string) File { return File{path, []byte(content)} }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// brief is a state in one line: what is new, changed, gone, trusted.
func brief(s State) string {
	names := func(list []Change) string {
		var out []string
		for _, c := range list {
			out = append(out, c.Path)
		}
		return strings.Join(out, ",")
	}
	return fmt.Sprintf("new %s changed %s gone %s trusted %s", names(s.New), names(s.Changed), strings.Join(s.Gone, ","), strings.Join(s.Trusted, ","))
}

func TestStates(t *testing.T) {
	s, root := store(t)
	check := func(want string, files ...File) State {
		t.Helper()
		state, err := s.Check(root, files)
		ok(t, err)
		if got := brief(state); got != want || state.Root != root {
			t.Errorf("%s of %s\nwant %s", got, state.Root, want)
		}
		return state
	}
	a, b := file(".dsh/cordis.yml", "- id: a\n"), file(".dsh/plugins/b.js", "one\ntwo\n")
	if state := check("new .dsh/cordis.yml,.dsh/plugins/b.js changed  gone  trusted ", b, a); state.Complete() || state.Allows(a.Path) {
		t.Error("what is new is trusted")
	}
	check("new  changed  gone  trusted ")
	ok(t, s.Trust(t.Context(), root, []File{a, b}))
	if state := check("new  changed  gone  trusted .dsh/cordis.yml,.dsh/plugins/b.js", a, b); !state.Complete() || !state.Allows(a.Path) || state.Allows("c") {
		t.Error("what is trusted is not")
	}
	changed := file(b.Path, "one\nthree\n")
	state := check("new  changed .dsh/plugins/b.js gone .dsh/cordis.yml trusted ", changed)
	want := "--- .dsh/plugins/b.js (trusted)\n+++ .dsh/plugins/b.js\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n"
	if diff := cmp.Diff([]Change{{Path: b.Path, Hash: Hash(changed.Content), Size: 10, Diff: want}}, state.Changed); diff != "" {
		t.Error(diff)
	}
	ok(t, s.Add(t.Context(), root, changed))
	check("new  changed  gone  trusted .dsh/cordis.yml,.dsh/plugins/b.js", a, changed)
	check("new  changed .dsh/plugins/b.js gone  trusted .dsh/cordis.yml", a, b) // what was trusted before is not any more
	ok(t, s.Trust(t.Context(), root, []File{a}))
	check("new .dsh/plugins/b.js changed  gone  trusted .dsh/cordis.yml", a, changed)
	if was, err := s.Forget(t.Context(), root); err != nil || !was {
		t.Errorf("forget: %v, %v", was, err)
	}
	if was, err := s.Forget(t.Context(), root); err != nil || was {
		t.Errorf("forget again: %v, %v", was, err)
	}
	check("new .dsh/cordis.yml changed  gone  trusted ", a)
}

// TestRoots: a project is known by where its folder really is.
func TestRoots(t *testing.T) {
	s, root := store(t)
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(root, link))
	f := file(".dsh/cordis.yml", "x")
	ok(t, s.Trust(t.Context(), link, []File{f}))
	other := t.TempDir()
	for dir, want := range map[string]bool{root: true, root + "/": true, link: true, other: false} {
		state, err := s.Check(dir, []File{f})
		if err != nil || state.Complete() != want {
			t.Errorf("%s: %v, %v", dir, state.Complete(), err)
		}
	}
	ok(t, s.Trust(t.Context(), other, []File{f}))
	list, err := s.Projects()
	ok(t, err)
	if len(list) != 2 || list[0].Files != 1 || time.Since(list[0].Time) > time.Minute {
		t.Errorf("projects %v", list)
	}
}

// TestDiff: everything in a diff is to be seen, and it is bounded.
func TestDiff(t *testing.T) {
	s, root := store(t)
	ok(t, s.Trust(t.Context(), root, []File{file(".dsh/a.js", "x\ny\n")}))
	state, err := s.Check(root, []File{file(".dsh/a.js", "x\n\x1b[2J\u202ey\r\n"), file(".dsh/b\n--- forged.js", "new"), file(".dsh/c.js", ""),
		file(".dsh/d.js", strings.Repeat("a long line\n", limits.TrustDiff/10))})
	ok(t, err)
	var got []string
	for _, c := range append(state.Changed, state.New...) {
		got = append(got, c.Diff)
	}
	if len(got) != 4 || len([]rune(got[3])) > limits.TrustDiff+1 || !strings.HasSuffix(got[3], "characters cut)\n") {
		t.Fatalf("%d diffs, the last of %d characters", len(got), len(got[3]))
	}
	want := []string{
		"--- .dsh/a.js (trusted)\n+++ .dsh/a.js\n@@ -1,2 +1,2 @@\n x\n-y\n+\\x1b[2J<U+202E>y\\r\n",
		"--- /dev/null\n+++ .dsh/b --- forged.js\n@@ -0,0 +1,1 @@\n+new\n\\ No newline at end of file\n",
		"",
	}
	if diff := cmp.Diff(want, got[:3]); diff != "" {
		t.Error(diff)
	}
}

// TestDamaged: whatever is wrong with a record, it is told and trusts nothing, and to
// trust the project again mends it.
func TestDamaged(t *testing.T) {
	f := file(".dsh/cordis.yml", "x")
	valid := func(s *Store, root string) string {
		ok(t, s.Trust(t.Context(), root, []File{f}))
		text, err := os.ReadFile(s.recordPath(root))
		ok(t, err)
		return string(text)
	}
	for name, damage := range map[string]func(string) string{
		"empty":    func(string) string { return "" },
		"half":     func(s string) string { return s[:len(s)/2] },
		"more":     func(s string) string { return s + "{}" },
		"unknown":  func(s string) string { return strings.Replace(s, `"root"`, `"rout"`, 1) },
		"version":  func(s string) string { return strings.Replace(s, `"version": 1`, `"version": 2`, 1) },
		"folder":   func(s string) string { return strings.Replace(s, `"root": "`, `"root": "/x`, 1) },
		"hash":     func(s string) string { return strings.Replace(s, Hash(f.Content)[:4], "zzzz", 1) },
		"path":     func(s string) string { return strings.Replace(s, `.dsh/c`, `../c`, 1) },
		"zeros":    func(s string) string { return strings.Repeat("\x00", len(s)) },
		"large":    func(s string) string { return s + strings.Repeat(" ", limits.TrustRecord) },
		"noobject": func(string) string { return "[1]" },
	} {
		t.Run(name, func(t *testing.T) {
			s, root := store(t)
			text := damage(valid(s, root))
			ok(t, os.WriteFile(s.recordPath(root), []byte(text), 0o600))
			state, err := s.Check(root, []File{f})
			if !errors.Is(err, ErrDamaged) || len(state.Trusted) > 0 || len(state.New) != 1 {
				t.Fatalf("%s, %v", brief(state), err)
			}
			if err := s.Add(t.Context(), root, f); !errors.Is(err, ErrDamaged) {
				t.Errorf("add: %v", err)
			}
			if was, err := s.Wrote(t.Context(), filepath.Join(root, f.Path), nil, "x"); was || !errors.Is(err, ErrDamaged) {
				t.Errorf("wrote: %v, %v", was, err)
			}
			if list, err := s.Projects(); !errors.Is(err, ErrDamaged) || len(list) > 0 {
				t.Errorf("list: %v, %v", list, err)
			}
			valid(s, root)
			if state, err := s.Check(root, []File{f}); err != nil || !state.Complete() {
				t.Errorf("mended: %s, %v", brief(state), err)
			}
		})
	}
	t.Run("folder_instead", func(t *testing.T) {
		s, root := store(t)
		ok(t, os.MkdirAll(s.recordPath(root), 0o700))
		if state, err := s.Check(root, []File{f}); err == nil || len(state.Trusted) > 0 {
			t.Errorf("%s, %v", brief(state), err)
		}
	})
}

// TestLost: a content that is kept no more, or is not what it was, is said to be lost.
func TestLost(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone":    os.Remove,
		"changed": func(path string) error { return os.WriteFile(path, []byte("forged"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			s, root := store(t)
			ok(t, s.Trust(t.Context(), root, []File{file(".dsh/a.js", "old\n")}))
			ok(t, damage(s.contentPath(Hash([]byte("old\n")))))
			state, err := s.Check(root, []File{file(".dsh/a.js", "new\n")})
			ok(t, err)
			if len(state.Changed) != 1 || !state.Changed[0].Lost || state.Changed[0].Diff != "--- /dev/null\n+++ .dsh/a.js\n@@ -0,0 +1,1 @@\n+new\n" {
				t.Errorf("%+v", state)
			}
		})
	}
}

// TestWrote: what a person allowed is trusted as the very bytes; an edit only of what
// is trusted already.
func TestWrote(t *testing.T) {
	s, root := store(t)
	at := func(rel string) string { return filepath.Join(root, filepath.FromSlash(rel)) }
	text := func(s string) *string { return &s }
	for _, c := range []struct {
		path    string
		before  *string
		content string
		want    bool
	}{
		{".dsh/plugins/x.js", text("planted"), "planted, edited", false},
		{".dsh/plugins/x.js", nil, "one", true},
		{".dsh/plugins/x.js", text("one"), "two", true},
		{".dsh/plugins/x.js", text("one"), "three", false},
		{".dsh/README.md", nil, "one", false},
		{"src/x.js", nil, "one", false},
		{"sub/.dsh/x.js", nil, "one", true},
		{"agent.cordis.yml", nil, "one", true},
	} {
		got, err := s.Wrote(t.Context(), at(c.path), c.before, c.content)
		if err != nil || got != c.want {
			t.Errorf("%s %q: %v, %v", c.path, c.content, got, err)
		}
	}
	state, err := s.Check(root, []File{file(".dsh/plugins/x.js", "two"), file("agent.cordis.yml", "one")})
	if err != nil || !state.Complete() || len(state.Gone) > 0 {
		t.Errorf("%s, %v", brief(state), err)
	}
	state, err = s.Check(at("sub"), []File{file(".dsh/x.js", "one")})
	if err != nil || !state.Complete() {
		t.Errorf("%s, %v", brief(state), err)
	}
}

func TestRefused(t *testing.T) {
	s, root := store(t)
	large := File{".dsh/x.js", make([]byte, limits.TrustFile+1)}
	for _, f := range []File{large, file("../x.js", ""), file("/x.js", ""), file("", ""), file(".", "")} {
		if err := errors.Join(s.Trust(t.Context(), root, []File{f})); err == nil {
			t.Errorf("%s is trusted", f.Path)
		}
		if err := s.Add(t.Context(), root, f); err == nil {
			t.Errorf("%s is added", f.Path)
		}
	}
	many := make([]File, limits.TrustFiles+1)
	for i := range many {
		many[i] = file(fmt.Sprintf(".dsh/%d.js", i), "")
	}
	if err := s.Trust(t.Context(), root, many); err == nil {
		t.Error("more files than the limit are trusted")
	}
	if list, err := s.Projects(); err != nil || len(list) > 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Open(""); err == nil {
		t.Error("a store without a home")
	}
}

// TestPrune: the oldest goes, and so does what a killed process left.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	for i := range 10 {
		name := filepath.Join(dir, fmt.Sprint(i))
		ok(t, os.WriteFile(name, make([]byte, 100), 0o600))
		when := time.Now().Add(time.Duration(i-20) * time.Minute)
		ok(t, os.Chtimes(name, when, when))
	}
	left := func() string {
		entries, err := os.ReadDir(dir)
		ok(t, err)
		names := ""
		for _, e := range entries {
			names += e.Name() + " "
		}
		return names
	}
	ok(t, os.WriteFile(filepath.Join(dir, ".0-x"+atomicfile.Suffix), nil, 0o600))
	prune(dir, 8, 10_000)
	if got := left(); got != "2 3 4 5 6 7 8 9 " {
		t.Errorf("by number: %s", got)
	}
	prune(dir, 8, 350)
	if got := left(); got != "7 8 9 " {
		t.Errorf("by size: %s", got)
	}
}

// TestBusy: who holds the lock for too long is told, and nothing is changed.
func TestBusy(t *testing.T) {
	s, root := store(t)
	ok(t, s.Trust(t.Context(), root, []File{file(".dsh/x.js", "x")}))
	release, err := atomicfile.Lock(t.Context(), filepath.Join(s.dir, lockName), time.Second)
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := s.Add(ctx, root, file(".dsh/y.js", "y")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("add: %v", err)
	}
	if state, err := s.Check(root, []File{file(".dsh/x.js", "x")}); err != nil || !state.Complete() {
		t.Errorf("who only checks waits: %v", err)
	}
	release()
	ok(t, s.Add(t.Context(), root, file(".dsh/y.js", "y")))
}

// again trusts two states in turn, until it is killed.
func again(home, root string) {
	s, err := Open(home)
	for i := 0; err == nil; i++ {
		err = s.Trust(context.Background(), root, states()[i%2])
		fmt.Println(i) // the first line says that it has begun
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func states() [2][]File {
	long := strings.Repeat("x", 100_000)
	return [2][]File{{file(".dsh/a.js", "a"), file(".dsh/b.js", long)}, {file(".dsh/a.js", "A"), file(".dsh/b.js", long+"y"), file(".dsh/c.js", "c")}}
}

// TestKilled: a process that is killed while it trusts leaves one of the two states,
// whole, and a store that the next can use at once.
func TestKilled(t *testing.T) {
	s, root := store(t)
	ok(t, s.Trust(t.Context(), root, states()[0]))
	for i := range 15 {
		cmd := exec.Command(os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), againHome+"="+filepath.Dir(s.dir), againRoot+"="+root)
		out, err := cmd.StdoutPipe()
		ok(t, err)
		ok(t, cmd.Start())
		_, err = out.Read(make([]byte, 1))
		ok(t, err)
		time.Sleep(time.Duration(i*37%100) * 100 * time.Microsecond) // anywhere in its work
		ok(t, cmd.Process.Kill())
		_ = cmd.Wait()
		whole := 0
		for _, files := range states() {
			state, err := s.Check(root, files)
			ok(t, err)
			if state.Complete() && len(state.Gone) == 0 {
				whole++
			}
		}
		if whole != 1 {
			t.Fatalf("after kill %d neither of the states is there", i)
		}
		ok(t, s.Add(t.Context(), t.TempDir(), file(".dsh/x.js", "x")))
	}
	for _, name := range []string{recordsName, contentsName} {
		entries, err := os.ReadDir(filepath.Join(s.dir, name))
		ok(t, err)
		for _, e := range entries {
			if atomicfile.Temporary(e.Name()) {
				t.Errorf("%s was left", e.Name())
			}
		}
	}
}

// TestManyStores: what several stores of one folder add at once is all there. The lock
// is one of open files, so it holds between processes as it does here.
func TestManyStores(t *testing.T) {
	s, root := store(t)
	const each = 10
	done := make(chan error)
	for p := range 3 {
		own, err := Open(filepath.Dir(s.dir))
		ok(t, err)
		go func() {
			var err error
			for i := range each {
				err = errors.Join(err, own.Add(t.Context(), root, file(fmt.Sprintf(".dsh/%d-%d.js", p, i), "x")))
			}
			done <- err
		}()
	}
	for range 3 {
		ok(t, <-done)
	}
	list, err := s.Projects()
	if err != nil || len(list) != 1 || list[0].Files != 3*each {
		t.Errorf("%v, %v", list, err)
	}
}

func FuzzRecord(f *testing.F) {
	f.Add(`{"version": 1, "root": "/x", "time": "2026-11-30T00:00:00Z", "files": {".dsh/x.js": "` + Hash(nil) + `"}}`)
	f.Add(`{"version": 1`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, text string) {
		r, err := parse([]byte(text))
		if err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%v", err)
		}
		for path, hash := range r.Files {
			if err == nil && (len(hash) != 64 || strings.HasPrefix(path, "/")) {
				t.Errorf("%q: %q", path, hash)
			}
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	s, root := store(b)
	var files []File
	for i := range 50 {
		files = append(files, file(fmt.Sprintf(".dsh/plugins/%d.js", i), strings.Repeat("x", 4000)))
	}
	ok(b, s.Trust(b.Context(), root, files))
	for b.Loop() {
		if state, err := s.Check(root, files); err != nil || !state.Complete() {
			b.Fatal(err)
		}
	}
}
