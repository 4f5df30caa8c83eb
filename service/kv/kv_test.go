package kv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	t    *testing.T
	root *cordis.Context
	kv   *cordis.Fiber
	n    int
}

func newWorld(t *testing.T, cfg Config) *world {
	t.Helper()
	w := &world{t: t, root: cordis.New()}
	w.kv = w.up(cfg)
	return w
}

func (w *world) up(cfg Config) *cordis.Fiber {
	w.t.Helper()
	f, err := w.root.Mount(Plugin(cfg), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.Await(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return f
}

func (w *world) down(f *cordis.Fiber) {
	w.t.Helper()
	if _, err := f.Dispose(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// mount mounts a temporary plugin under c, and gives its store once it runs.
func (w *world) mount(c *cordis.Context, id string, run func(ForPlugins), inject ...string) *cordis.Fiber {
	w.t.Helper()
	w.n++
	return w.plugin(tool.WithMount(c, tool.Mount{Number: w.n, ID: id, Plugin: id}), id, run, inject...)
}

func (w *world) plugin(c *cordis.Context, name string, run func(ForPlugins), inject ...string) *cordis.Fiber {
	w.t.Helper()
	decl, _ := cordis.LookupService("kv")
	f, err := c.Mount(&cordis.Plugin{Name: name, Inject: cordis.Require(append(inject, "kv")...), Apply: func(c *cordis.Context, _ any) error {
		v, err := Service.Use(c)
		if err == nil {
			run(decl.Bind(v, c).(ForPlugins))
		}
		return err
	}}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := f.Await(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return f
}

func wantCode(t *testing.T, err error, code string) string {
	t.Helper()
	if service.CodeOf(err) != code {
		t.Fatalf("got error %v (%q), want code %s", err, service.CodeOf(err), code)
	}
	return err.Error()
}

func set(t *testing.T, s ForPlugins, key, value string) {
	t.Helper()
	if err := s.Set(t.Context(), key, lossless.Text(value)); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s ForPlugins, key, value string) {
	t.Helper()
	got, err := s.Get(t.Context(), key)
	if err != nil || string(got) != value {
		t.Errorf("%s: got %q, %v; want %q", key, got, err, value)
	}
}

func TestStore(t *testing.T) {
	for name, cfg := range map[string]Config{"memory": {}, "files": {Dir: t.TempDir() + "/new/kv"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, cfg)
			var s ForPlugins
			w.plugin(w.root, "a", func(p ForPlugins) { s = p })
			want(t, s, "none", "")
			set(t, s, "b", `{ "x" : [1.0, "é\ud800"], "__proto__": null }`)
			want(t, s, "b", `{"x":[1.0,"é\ud800"],"__proto__":null}`)
			set(t, s, "a", "1")
			set(t, s, "a", "null")
			want(t, s, "a", "null")
			set(t, s, "é\x00\n", "2")
			prefix := "a"
			for p, keys := range map[*string][]string{nil: {"a", "b", "é\x00\n"}, &prefix: {"a"}} {
				if got, err := s.Keys(t.Context(), p); err != nil || !cmp.Equal(got, keys) {
					t.Errorf("got %q, %v; want %q", got, err, keys)
				}
			}
			for _, there := range []bool{true, false} {
				if was, err := s.Delete(t.Context(), "a"); was != there || err != nil {
					t.Error(was, err)
				}
			}
			want(t, s, "a", "")
			prefix = "zz"
			if got, err := s.Keys(t.Context(), &prefix); err != nil || got == nil || len(got) != 0 {
				t.Error(got, err)
			}
			w.down(w.kv)
		})
	}
}

func TestValuesAreCopies(t *testing.T) {
	w := newWorld(t, Config{})
	var s ForPlugins
	w.plugin(w.root, "a", func(p ForPlugins) { s = p })
	v := lossless.Text(`"abc"`)
	if err := s.Set(t.Context(), "k", v); err != nil {
		t.Fatal(err)
	}
	v[1] = 'X'
	got, _ := s.Get(t.Context(), "k")
	got[2] = 'X'
	want(t, s, "k", `"abc"`)
}

func TestBadInput(t *testing.T) {
	w := newWorld(t, Config{})
	var s ForPlugins
	w.plugin(w.root, "a", func(p ForPlugins) { s = p })
	for _, key := range []string{"", strings.Repeat("k", limits.KVKey+1), "\xff", "\xed\xa0\x80"} {
		wantCode(t, s.Set(t.Context(), key, lossless.Text("1")), CodeInvalidKey)
		_, err := s.Get(t.Context(), key)
		wantCode(t, err, CodeInvalidKey)
		_, err = s.Delete(t.Context(), key)
		wantCode(t, err, CodeInvalidKey)
	}
	for _, value := range []string{"", "{", "undefined", `{"a":1,"a":2}`, "\"\xff\"", strings.Repeat("[", limits.Depth+1)} {
		wantCode(t, s.Set(t.Context(), "k", lossless.Text(value)), CodeInvalidValue)
	}
	wantCode(t, s.Set(t.Context(), "k", lossless.Text(`"`+strings.Repeat("x", limits.KVValue-1)+`"`)), CodeTooLarge)
	if got, _ := s.Keys(t.Context(), nil); len(got) > 0 {
		t.Error(got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Set(ctx, "k", lossless.Text("1")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestBounds(t *testing.T) {
	w := newWorld(t, Config{})
	var s, many ForPlugins
	w.plugin(w.root, "a", func(p ForPlugins) { s = p })
	w.plugin(w.root, "b", func(p ForPlugins) { many = p })
	value := `"` + strings.Repeat("x", limits.KVValue-2) + `"`
	for i := range limits.KVTotal/limits.KVValue - 1 {
		set(t, s, fmt.Sprint(i), value)
	}
	set(t, s, "x", `"`+strings.Repeat("x", limits.KVValue-2-4)+`"`) // 4 bytes of keys: full to the byte
	wantCode(t, s.Set(t.Context(), "y", lossless.Text("1")), CodeTooLarge)
	set(t, s, "x", "1") // smaller than what was there
	set(t, s, "y", "1")
	wantCode(t, s.Set(t.Context(), "x", lossless.Text(value)), CodeTooLarge)
	want(t, s, "x", "1")
	for i := range limits.KVKeys {
		set(t, many, fmt.Sprint(i), "0")
	}
	wantCode(t, many.Set(t.Context(), "more", lossless.Text("0")), CodeTooLarge)
	set(t, many, "0", "1")
	if _, err := many.Delete(t.Context(), "0"); err != nil {
		t.Fatal(err)
	}
	set(t, many, "more", "0")
}

func TestOwnStores(t *testing.T) {
	w := newWorld(t, Config{})
	var a, b, go1, go2, other ForPlugins
	w.mount(w.root, "dyn-1", func(p ForPlugins) { a = p })
	w.mount(w.root, "dyn-1", func(p ForPlugins) { b = p }) // of another session
	w.plugin(w.root, "x", func(p ForPlugins) { go1 = p })
	w.plugin(w.root, "x", func(p ForPlugins) { go2 = p })
	w.plugin(w.root, "dyn-1", func(p ForPlugins) { other = p })
	for i, s := range []ForPlugins{a, b, go1, other} {
		set(t, s, "k", fmt.Sprint(i))
	}
	for i, s := range []ForPlugins{a, b, go1, other} {
		want(t, s, "k", fmt.Sprint(i))
	}
	want(t, go2, "k", "2") // shared by name
}

// A temporary plugin's store lasts as long as its mount.
func TestLifeOfAMount(t *testing.T) {
	w := newWorld(t, Config{})
	clock := cordis.NewService[int]("kvtest-clock")
	provide := func() *cordis.Fiber {
		f, err := w.root.Mount(&cordis.Plugin{Name: "clock", Apply: func(c *cordis.Context, _ any) error {
			_, err := clock.Provide(c, 1)
			return err
		}}, nil)
		if err != nil || f.Await(t.Context()) != nil {
			t.Fatal(err)
		}
		return f
	}
	provider := provide()
	var s ForPlugins
	runs := 0
	f := w.mount(w.root, "dyn-1", func(p ForPlugins) {
		s = p
		runs++
		want(t, p, "k", map[int]string{1: "", 2: "1"}[runs])
		set(t, p, "k", fmt.Sprint(runs))
	}, "kvtest-clock")
	w.down(provider) // parked
	want(t, s, "k", "1")
	set(t, s, "late", "1")
	provide()
	if err := f.Await(t.Context()); err != nil || runs != 2 {
		t.Fatal(err, runs)
	}
	want(t, s, "late", "1")
	w.down(f)
	_, err := s.Get(t.Context(), "k")
	wantCode(t, err, CodeGone)
	w.mount(w.root, "dyn-2", func(p ForPlugins) { want(t, p, "k", "") })
}

// What a plugin does at its own unmount still works.
func TestDisposersMayUseTheStore(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, Config{Dir: dir, Session: "s"})
	var err error
	f := w.mount(w.root, "dyn-1", func(p ForPlugins) {
		set(t, p, "k", "1")
		_, err = p.(*handle).c.Defer("save", func(ctx context.Context) error { return p.Set(ctx, "k", lossless.Text("2")) })
	})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := f.Dispose(t.Context())
	if err != nil || rec.Err != nil {
		t.Error(rec, err)
	}
	if files := list(t, dir); len(files) > 0 {
		t.Error(files)
	}
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Dir: dir, Session: "S/1"}
	w := newWorld(t, cfg)
	use := func(p ForPlugins) { set(t, p, "k", "1") }
	w.plugin(w.root, "../Ä", use)
	group, err := w.root.Mount(&cordis.Plugin{Name: "group", Apply: func(*cordis.Context, any) error { return nil }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := w.mount(group.Context(), "dyn-1", use)
	removed := w.mount(group.Context(), "dyn-2", use)
	w.mount(group.Context(), "dyn-3", func(ForPlugins) {})
	if d := cmp.Diff([]string{"plugin-%2e%2e%2f%c3%84.json", "session-%53%2f1.dyn-1.json", "session-%53%2f1.dyn-2.json"}, list(t, dir)); d != "" {
		t.Error(d)
	}
	text, err := os.ReadFile(filepath.Join(dir, "session-%53%2f1.dyn-1.json"))
	if err != nil || string(text) != "{\n\"k\": 1\n}\n" || !json.Valid(text) {
		t.Errorf("%q %v", text, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "session-%53%2f1.dyn-1.json")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	w.down(removed) // unmounted
	w.down(group)   // the program stops
	if kept.State() != cordis.Disposed {
		t.Fatal(kept.State())
	}
	if d := cmp.Diff([]string{"plugin-%2e%2e%2f%c3%84.json", "session-%53%2f1.dyn-1.json"}, list(t, dir)); d != "" {
		t.Error(d)
	}

	// The next run of the program finds what is there.
	w = newWorld(t, cfg)
	w.plugin(w.root, "../Ä", func(p ForPlugins) { want(t, p, "k", "1") })
	f := w.mount(w.root, "dyn-1", func(p ForPlugins) { want(t, p, "k", "1") })
	w.down(f)
	if d := cmp.Diff([]string{"plugin-%2e%2e%2f%c3%84.json"}, list(t, dir)); d != "" {
		t.Error(d)
	}
	// Without a session temporary plugins are in memory.
	w = newWorld(t, Config{Dir: dir})
	w.mount(w.root, "dyn-1", use)
	if files := list(t, dir); len(files) != 1 {
		t.Error(files)
	}
}

// A store that was not opened since the program began is removed all the same.
func TestUnopenedFileIsRemoved(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "session-s.dyn-1.json")
	if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, Config{Dir: dir, Session: "s"})
	w.down(w.mount(w.root, "dyn-1", func(ForPlugins) {}))
	if files := list(t, dir); len(files) > 0 {
		t.Error(files)
	}
}

func TestFileTrouble(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plugin-a.json")
	big := "{" + strings.Repeat(" ", limits.KVTotal+limits.KVKeys*(6*limits.KVKey+8)) + "}"
	for name, text := range map[string]string{
		"no-json": "{", "no-object": "[]", "empty": "", "empty-key": `{"":1}`, "large-value": `{"a":"` + strings.Repeat("x", limits.KVValue) + `"}`,
		"large": big, "twice": `{"a":1,"a":2}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			w := newWorld(t, Config{Dir: dir})
			w.plugin(w.root, "a", func(s ForPlugins) {
				msg := wantCode(t, s.Set(t.Context(), "k", lossless.Text("1")), CodeCorrupt)
				if !strings.Contains(msg, "plugin-a.json") || strings.Contains(msg, dir) {
					t.Error(msg)
				}
			})
			if left, _ := os.ReadFile(path); string(left) != text {
				t.Error("the file was changed")
			}
		})
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, Config{Dir: dir})
	var s ForPlugins
	w.plugin(w.root, "a", func(p ForPlugins) { s = p })
	set(t, s, "k", "1")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	msg := wantCode(t, s.Set(t.Context(), "k", lossless.Text("2")), CodeIO)
	if strings.Contains(msg, dir) {
		t.Error(msg)
	}
	wantCode(t, s.Set(t.Context(), "new", lossless.Text("2")), CodeIO)
	_, err := s.Delete(t.Context(), "k")
	wantCode(t, err, CodeIO)
	want(t, s, "k", "1") // nothing has changed
	want(t, s, "new", "")

	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := cordis.New().Mount(Plugin(Config{Dir: dir}), nil)
	if err != nil || f.Await(t.Context()) == nil {
		t.Error("a folder that cannot be made is no error", err)
	}
}

func TestFileNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.String().Draw(t, "a"), rapid.String().Draw(t, "b")
		fa, fb := fileName(a), fileName(b)
		if (a == b) != strings.EqualFold(fa, fb) || len(fa) > 100 || strings.ContainsAny(fa, "/\\.:") {
			t.Errorf("%q is %s, %q is %s", a, fa, b, fb)
		}
	})
	if a, b := fileName(strings.Repeat("x", 200)), fileName(strings.Repeat("x", 201)); a == b || len(a) > 100 {
		t.Error(a, b)
	}
}

func TestConcurrentCalls(t *testing.T) {
	w := newWorld(t, Config{Dir: t.TempDir()})
	var s ForPlugins
	w.plugin(w.root, "a", func(p ForPlugins) { s = p })
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				key := fmt.Sprint(i, "-", j)
				if err := s.Set(t.Context(), key, lossless.Text("1")); err != nil {
					t.Error(err)
				}
				if v, err := s.Get(t.Context(), key); err != nil || string(v) != "1" {
					t.Error(v, err)
				}
			}
		})
	}
	wg.Wait()
	if keys, err := s.Keys(t.Context(), nil); err != nil || len(keys) != 80 {
		t.Error(len(keys), err)
	}
	if files := list(t, filepath.Dir(s.(*handle).stores.named["a"].path)); len(files) != 1 {
		t.Error(files)
	}
}

func BenchmarkSet(b *testing.B) {
	for name, cfg := range map[string]Config{"memory": {}, "file": {Dir: b.TempDir()}} {
		b.Run(name, func(b *testing.B) {
			st := &store{}
			if cfg.Dir != "" {
				st.path = filepath.Join(cfg.Dir, "x.json")
			}
			for b.Loop() {
				if err := st.set("key", lossless.Text(`{"a":1}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
