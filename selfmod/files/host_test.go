package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/files"
	"github.com/dsh-go/dsh/selfmod/mount"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

// rig is a runtime with the toolset and a host of plugin files.
type rig struct {
	*selfmodtest.Rig
	host  *files.Host
	ctx   *cordis.Context // of the host's fiber
	fiber *cordis.Fiber

	mu    sync.Mutex
	lines []string
}

func newRig(t testing.TB, scope ...*tool.Scope) *rig {
	t.Helper()
	r := &rig{Rig: selfmodtest.New(t, selfmod.Config{})}
	c := r.Root
	for _, s := range scope {
		c = tool.WithScope(c, s)
	}
	var err error
	r.fiber, err = c.Mount(&cordis.Plugin{Name: "files", Apply: func(c *cordis.Context, _ any) (err error) {
		r.ctx = c
		r.host, err = files.New(c, files.Options{
			Sandbox: sandbox.Config{Exe: os.Getenv("DSH_TEST_WORKER"), MemoryMB: 16}, Registry: r.Registry,
			Console: func(line string) {
				r.mu.Lock()
				defer r.mu.Unlock()
				r.lines = append(r.lines, line)
			},
		})
		return err
	}}, nil)
	if err == nil {
		err = r.fiber.Await(r.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// module is the code of a plugin as a file has it.
func module(body string) string { return strings.Replace(body, "return {", "export default {", 1) }

// says is a plugin file with one tool, say.
func says(word string) string { return module(selfmodtest.Tool("say", "return '"+word+"'")) }

// file is a plugin file of a single part.
func file(t testing.TB, name, text string) files.File {
	t.Helper()
	f, err := files.From("plugins/"+name, map[string]string{name: text})
	if err != nil {
		t.Fatal(err)
	}
	f.Path = "./plugins/" + name
	return f
}

func (r *rig) open(f files.File) *cordis.Plugin {
	r.T.Helper()
	p, err := r.host.Open(r.Context(), f)
	if err != nil {
		r.T.Fatalf("open %s: %v", f.Path, err)
	}
	return p
}

// mount opens and mounts a file, and waits until it has settled.
func (r *rig) mount(name, text string, config any) *cordis.Fiber {
	r.T.Helper()
	return r.on(r.ctx, name, text, config)
}

func (r *rig) on(c *cordis.Context, name, text string, config any) *cordis.Fiber {
	r.T.Helper()
	f, err := c.Mount(r.open(file(r.T, name, text)), config)
	if err != nil {
		r.T.Fatal(err)
	}
	_ = f.Await(r.Context()) // its state says how it ended
	return f
}

// stage mounts a file in the place of fibers, and commits.
func (r *rig) stage(name, text string, old ...*cordis.Fiber) (*cordis.Fiber, *cordis.Stage) {
	r.T.Helper()
	st := r.Root.Runtime().NewStage(cordis.StageOptions{Replaces: old, MayTake: r.host.MayTake})
	f := r.on(st.On(r.ctx), name, text, nil)
	if f.State() != cordis.Active {
		r.T.Fatalf("%s is %s: %v", name, f.State(), f.Err())
	}
	if err := st.Commit(); err != nil {
		r.T.Fatal(err)
	}
	return f, st
}

func (r *rig) dispose(f *cordis.Fiber) {
	r.T.Helper()
	if _, err := f.Dispose(r.Context()); err != nil {
		r.T.Error(err)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := r.mount("say.js", module(selfmodtest.Tool("say", "console.log('said it'); return 'hi'")), nil)
	if f.State() != cordis.Active || f.Name() != "say" {
		t.Fatalf("%s is %s: %v", f.Name(), f.State(), f.Err())
	}
	if got := r.Works(r.Call("say", nil)); got != "hi" {
		t.Errorf("it says %q", got)
	}
	if v, ok := r.Registry.Get("say", nil); !ok || v.Ownership() != "plugin file ./plugins/say.js (say)" {
		t.Errorf("the tool is that of %s", v.Ownership())
	}
	r.mu.Lock()
	if len(r.lines) != 1 || r.lines[0] != "[cordis:./plugins/say.js] said it" {
		t.Errorf("the console says %q", r.lines)
	}
	r.mu.Unlock()
	if got := r.Inspect("plugins", ""); !strings.Contains(got, "- say [active] — plugin file ./plugins/say.js; tools: say") {
		t.Errorf("plugins are\n%s", got)
	}
	if got := r.Inspect("temporary", ""); !strings.Contains(got, "No temporary Plugins are running") {
		t.Errorf("temporary ones are\n%s", got)
	}
	for _, name := range []string{"./plugins/say.js", "say.js", "say"} {
		got := r.Inspect("plugins", name)
		for _, has := range []string{"## Plugin file ./plugins/say.js", "- name: say", "- state: running", "calls into its functions: 1; errors: 0", "said it", "Source, as it was loaded, say.js:", "export default {"} {
			if !strings.Contains(got, has) {
				t.Errorf("of %s the report lacks %q:\n%s", name, has, got)
			}
		}
		r.Fails(r.Call("cordis_unmount", map[string]string{"id": name}), "is a plugin file, ./plugins/say.js, and no temporary Plugin: cordis_unmount cannot remove it", "disabled: true")
		r.Fails(r.Call("cordis_mount", map[string]string{"code": "return {}", "replaces": name}), "is a plugin file", "edit that file")
	}
	r.Fails(r.Call("cordis_inspect", `{"what":"plugins","name":"other"}`), `there is no plugin file or row "other"; plugin files that are loaded: ./plugins/say.js`)
	r.MountFails(selfmodtest.Tool("say", "return ''"), "already registered by plugin file ./plugins/say.js (say)", "a plugin file is not replaced by a mount")
	r.dispose(f)
	r.Fails(r.Call("say", nil), "plugin file ./plugins/say.js")
	if got := r.Inspect("plugins", ""); strings.Contains(got, "plugin file") {
		t.Errorf("plugins are\n%s", got)
	}
}

// TestGenerations: new code is mounted beside the old and takes its place; a call that
// runs ends where it began, and what cannot be loaded leaves the old one.
func TestGenerations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := r.mount("say.js", says("one"), nil)
	if _, err := r.host.Open(r.Context(), file(t, "say.js", "export default {")); err == nil || !strings.Contains(err.Error(), "plugin file ./plugins/say.js failed to parse") {
		t.Errorf("error %v", err)
	}
	stop := make(chan struct{})
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if res := r.Call("say", nil); res.IsError {
					t.Errorf("a call failed: %s", selfmodtest.Text(res))
					return
				}
			}
		})
	}
	for n := range 10 {
		next, st := r.stage("say.js", says(fmt.Sprint(n)), f)
		if err := st.Wait(r.Context()); err != nil {
			t.Error(err)
		}
		r.dispose(f)
		f = next
	}
	close(stop)
	work.Wait()
	if got := r.Works(r.Call("say", nil)); got != "9" {
		t.Errorf("it says %q", got)
	}
	if all := mount.Files(r.Context(), r.Root, nil); len(all) != 1 {
		t.Errorf("%d generations are left", len(all))
	}
}

// TestGuardStays: a file's guard fails closed while it is down, and a new version of it
// denies no call for the change.
func TestGuardStays(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.Mount(selfmodtest.Tool("deploy", "return ''"))
	r.Mount(selfmodtest.Tool("other", "return ''"))
	guard := func(n int) string {
		return fmt.Sprintf("export default { name: 'guard', apply(ctx) { ctx.on('tools/pre-execute', (exec, next) => exec.name === 'deploy' ? { kind: 'deny', reason: 'not now %d' } : next()) } }", n)
	}
	f := r.mount("guard.js", guard(0), nil)
	stop := make(chan struct{})
	var work sync.WaitGroup
	for range 2 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if res := r.Call("deploy", nil); !strings.Contains(selfmodtest.Text(res), "not now") {
					t.Errorf("not denied: %s", selfmodtest.Text(res))
					return
				}
				if res := r.Call("other", nil); res.IsError {
					t.Errorf("denied: %s", selfmodtest.Text(res))
					return
				}
			}
		})
	}
	for n := 1; n <= 5; n++ {
		next, st := r.stage("guard.js", guard(n), f)
		if err := st.Wait(r.Context()); err != nil {
			t.Error(err)
		}
		r.dispose(f)
		f = next
	}
	close(stop)
	work.Wait()
	if err := f.Restart(r.Context()); err != nil {
		t.Fatal(err)
	}
	r.Fails(r.Call("deploy", nil), "(refused by plugin file ./plugins/guard.js (guard))")
	r.dispose(f)
	r.Works(r.Call("deploy", nil))

	f = r.mount("guard.js", "export default { name: 'guard', inject: ['gate'], apply(ctx) { ctx.on('tools/pre-execute', (exec, next) => next()) } }", nil)
	gate := r.Mount("return { name: 'gate', apply(ctx) { ctx.provide('gate', {}) } }")
	if err := f.Await(r.Context()); err != nil || f.State() != cordis.Active {
		t.Fatalf("%s, %v", f.State(), err)
	}
	r.Works(r.Call("other", nil))
	r.Unmount(gate)
	r.Fails(r.Call("other", nil), "plugin file ./plugins/guard.js (guard) listens to tools/pre-execute and is pending, so nothing can be allowed; to mend or to disable that file removes its guard")
	r.dispose(f)
	r.Works(r.Call("other", nil))
}

// TestTakesOver: a file that has the names of a temporary plugin takes them in one
// step, and that is unmounted.
func TestTakesOver(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	id := r.Mount(selfmodtest.Tool("say", "return 'tried'", "harness.registerTool(ctx, harness.defineTool({ name: 'rest', description: '', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null }))"))
	r.Mount(selfmodtest.Tool("own", "return ''"))
	stop := make(chan struct{})
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			n := 0
			for _, v := range r.Registry.List(nil) {
				if v.Name == "say" {
					n++
				}
			}
			if res := r.Call("say", nil); n != 1 || res.IsError {
				t.Errorf("listed %d times, %s", n, selfmodtest.Text(res))
				return
			}
		}
	})
	r.stage("say.js", says("kept"))
	close(stop)
	work.Wait()
	if got := r.Inspect("temporary", ""); strings.Contains(got, id) { // at once
		t.Errorf("temporary ones are\n%s", got)
	}
	r.Fails(r.Call("cordis_inspect", map[string]string{"what": "temporary", "name": id}), "it was replaced by plugin file ./plugins/say.js")
	if got := r.Works(r.Call("say", nil)); got != "kept" {
		t.Errorf("it says %q", got)
	}
	r.Fails(r.Call("cordis_unmount", map[string]string{"id": id}), id+" was replaced by plugin file ./plugins/say.js")
	r.Eventually("what it did not take over is gone", func() (string, bool) {
		now := selfmodtest.Text(r.Call("rest", nil))
		return now, strings.Contains(now, "it went with temporary Plugin "+id+" (say), which was replaced by plugin file ./plugins/say.js")
	})
	r.Works(r.Call("own", nil))

	// Beside a stage nothing is taken, and none is taken from another file.
	if f := r.mount("own.js", module(selfmodtest.Tool("own", "return ''")), nil); f.State() != cordis.Failed || !strings.Contains(f.Err().Error(), "already registered by temporary Plugin") {
		t.Errorf("it is %s: %v", f.State(), f.Err())
	}
	st := r.Root.Runtime().NewStage(cordis.StageOptions{MayTake: r.host.MayTake})
	if f := r.on(st.On(r.ctx), "say2.js", says("stolen"), nil); f.State() != cordis.Failed || !strings.Contains(f.Err().Error(), "already registered by plugin file ./plugins/say.js (say)") {
		t.Errorf("it is %s: %v", f.State(), f.Err())
	}
	if err := st.Abort(r.Context()); err != nil {
		t.Error(err)
	}
}

// TestTakesWithin: what is mounted outside of the scope of a host is not taken.
func TestTakesWithin(t *testing.T) {
	t.Parallel()
	r := newRig(t, tool.NewScope("project", nil))
	r.Mount(selfmodtest.Tool("say", "return 'tried'"))
	for _, f := range r.Root.Runtime().Fibers() {
		if m := mount.Of(f); m != nil && r.host.MayTake(f) {
			t.Errorf("%s may be taken", m.ID)
		}
	}
}

// TestDeaths: a file that brings down its machine is loaded again, but at the third
// time it is skipped until it changes.
func TestDeaths(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mount("other.js", module(selfmodtest.Tool("other", "return 'here'")), nil)
	hungry := module(selfmodtest.Tool("say", "if (args.eat) { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) } return 'hi'"))
	f := r.mount("say.js", hungry, nil)
	for n := 1; n <= limits.FileDeaths; n++ {
		r.Fails(r.Call("say", `{"eat":true}`), "memory")
		r.Eventually("it is loaded again, or skipped", func() (string, bool) {
			now := selfmodtest.Text(r.Call("say", nil))
			return now, now == "hi" && n < limits.FileDeaths || f.State() == cordis.Failed && n == limits.FileDeaths
		})
	}
	const skipped = "plugin file ./plugins/say.js brought down its machine or its worker 3 times and is skipped until the file changes"
	if err := f.Err(); !errors.Is(err, files.ErrSkipped) || !strings.Contains(err.Error(), skipped) {
		t.Errorf("error %v", err)
	}
	if got := r.Inspect("plugins", "say.js"); !strings.Contains(got, skipped) || !strings.Contains(got, "loaded again 2 times, each time with empty state") {
		t.Errorf("the report says\n%s", got)
	}
	r.dispose(f)
	if _, err := r.host.Open(r.Context(), file(t, "say.js", hungry)); !errors.Is(err, files.ErrSkipped) {
		t.Errorf("error %v", err)
	}
	if f := r.mount("say.js", says("mended"), nil); f.State() != cordis.Active {
		t.Errorf("%s, %v", f.State(), f.Err())
	}
	if got := r.Works(r.Call("other", nil)); got != "here" {
		t.Errorf("another file says %q", got)
	}
	if got := r.Works(r.Call("say", nil)); got != "mended" {
		t.Errorf("it says %q", got)
	}
}

// TestDiesWhileLoading: a file that uses up its machine while it is loaded counts, too.
func TestDiesWhileLoading(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := file(t, "eat.js", "const all = []; for (;;) all.push(new Uint8Array(1 << 20))\nexport default {}")
	for n := 1; n <= limits.FileDeaths+1; n++ {
		_, err := r.host.Open(r.Context(), f)
		if err == nil || errors.Is(err, files.ErrSkipped) != (n >= limits.FileDeaths) {
			t.Errorf("time %d: %v", n, err)
		}
	}
}

func TestMountedOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open(file(t, "say.js", says("hi")))
	for n, want := range []cordis.State{cordis.Active, cordis.Failed} {
		f, err := r.ctx.Mount(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Await(r.Context()); f.State() != want {
			t.Errorf("mount %d is %s: %v", n, f.State(), err)
		}
	}
}

func TestDiscard(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	p := r.open(file(t, "say.js", says("hi")))
	r.host.Discard(p)
	r.host.Discard(p)
	mounted := r.open(file(t, "say.js", says("hi")))
	f, err := r.ctx.Mount(mounted, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.host.Discard(mounted) // it is mounted: nothing happens
	if err := f.Await(r.Context()); err != nil {
		t.Fatal(err)
	}
	r.Works(r.Call("say", nil))
	for n := range limits.PluginFiles - 1 {
		if n > 20 {
			break
		}
		r.host.Discard(r.open(file(t, fmt.Sprintf("f%d.js", n), says("hi"))))
	}
}

// TestHostEnds: with its host everything of its files ends.
func TestHostEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.mount("say.js", says("hi"), nil)
	r.dispose(r.fiber)
	r.Fails(r.Call("say", nil), "say")
	if _, err := r.host.Open(context.Background(), file(t, "say.js", says("hi"))); err == nil {
		t.Error("a file was opened after the end")
	}
}
