package composition

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/casetest"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/loader"
	"github.com/dsh-go/dsh/loader/document"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/service/timer"
	"github.com/dsh-go/dsh/tool"
	"github.com/dsh-go/dsh/trust"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(status int) {
		casetest.Clean()
		os.Exit(status)
	}))
}

// testCatalog has a few plugins of both planes.
type testCatalog struct{}

func (testCatalog) Names() []string { return []string{"crew", "helper", "secret", "timer", "tools"} }

func (c testCatalog) Lookup(name string) (loader.Spec, bool) {
	spec := loader.Spec{Name: name, New: func(any) (*cordis.Plugin, error) {
		return &cordis.Plugin{Name: name, Apply: func(*cordis.Context, any) error { return nil }}, nil
	}}
	switch name {
	case "tools":
		spec.New = func(any) (*cordis.Plugin, error) { return tool.Plugin(), nil }
	case "timer":
		spec.New = func(any) (*cordis.Plugin, error) { return timer.Plugin(), nil }
	case "crew":
		spec.Plane = loader.Agent
	case "secret":
		spec.PersonOnly = true
	case "helper":
	default:
		return loader.Spec{}, false
	}
	return spec, true
}

const builtin = "- name: tools\n- name: timer\n- {id: crew, name: crew}\n"

// rig is a composition with a home and a project of its own.
type rig struct {
	*testing.T
	*Composition
	root          *cordis.Context
	home, project string
	o             Options

	mu   sync.Mutex
	told []string
}

func newRig(t *testing.T) *rig {
	r := &rig{T: t, home: t.TempDir(), project: real(t, t.TempDir())}
	r.o = Options{
		Sources: Sources{Home: r.home, Builtin: document.Layer{Name: "built-in", Text: []byte(builtin)}},
		Catalog: testCatalog{}, Sandbox: sandbox.Config{Exe: casetest.Program(t)},
		Tell: func(text string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.told = append(r.told, text)
		},
	}
	return r
}

func real(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// start starts it; its end is that of the test.
func (r *rig) start() error {
	r.Helper()
	r.root = cordis.New()
	r.Cleanup(func() {
		if r.Composition != nil {
			if err := r.Close(context.Background()); err != nil {
				r.Error(err)
			}
		}
		if _, err := r.root.Fiber().Dispose(context.Background()); err != nil {
			r.Error(err)
		}
	})
	c, err := Start(r.ctx(), r.root, r.o)
	r.Composition = c
	return err
}

func (r *rig) ctx() context.Context {
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	r.Cleanup(cancel)
	return ctx
}

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) write(name, text string) {
	r.Helper()
	r.must(os.MkdirAll(filepath.Dir(name), 0o700))
	r.must(os.WriteFile(name, []byte(text), 0o600))
}

// inProject writes a file of the project, inHome one of the person's own.
func (r *rig) inProject(name, text string) { r.write(filepath.Join(r.project, ".dsh", name), text) }
func (r *rig) inHome(name, text string)    { r.write(filepath.Join(r.home, name), text) }

func (r *rig) trust() {
	r.Helper()
	store, err := trust.Open(r.home)
	r.must(err)
	read, err := trust.Read(r.project)
	r.must(err)
	r.must(store.Trust(r.ctx(), r.project, read))
}

// heard says whether something with the text was told.
func (r *rig) heard(text string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.told, func(s string) bool { return strings.Contains(s, text) })
}

func (r *rig) want(texts ...string) {
	r.Helper()
	for _, text := range texts {
		if !r.heard(text) {
			r.Errorf("it was not told: %s\ntold: %q", text, r.told)
		}
	}
}

// states are the rows that a scope sees, with their states.
func (r *rig) states(scope *tool.Scope) map[string]string {
	r.Helper()
	states := map[string]string{}
	for _, row := range (told{r.Composition}).Rows(scope) {
		states[row.ID] = row.State
	}
	return states
}

// answer calls a tool.
func (r *rig) answer(scope *tool.Scope, name string) string {
	r.Helper()
	registry, err := tool.Service.Use(r.root)
	r.must(err)
	res := registry.Execute(r.ctx(), tool.Call{Name: name, Scope: scope, Arguments: []byte("{}")})
	return res.Content[0].Text
}

// says is a plugin file whose tool answers with a word.
func says(name, word string) string {
	return fmt.Sprintf(`export default { name: '%[1]s', apply(ctx) {
  harness.registerTool(ctx, harness.defineTool({ name: '%[1]s', description: 'Says.', parameters: {},
    output: { schema: { type: 'string' }, render: (args, v) => [{ type: 'text', text: v }] }, execute: () => '%[2]s' }))
} }
`, name, word)
}

// agent mounts the agent's rows of a place, as agents do.
func (r *rig) agent(p *Place) (*cordis.Fiber, *tool.Scope) {
	r.Helper()
	scope := tool.NewScope("session", p.Scope())
	f, err := tool.WithScope(r.root, scope).Mount(p.Plugin(r.o.Catalog), nil)
	r.must(err)
	r.must(f.Await(r.ctx()))
	return f, scope
}

func TestStart(t *testing.T) {
	r := newRig(t)
	r.inHome("cordis.yml", "- name: helper\n- {id: crew, disabled: true}\n")
	r.inHome("plugins/mine.js", says("mine", "hello"))
	r.inHome("plugins/bad.js", "export default { name: 'bad', apply() { throw new Error('no such thing') } }")
	r.must(r.start())
	if got := r.answer(nil, "mine"); got != "hello" {
		t.Error(got)
	}
	want := map[string]string{"tools": "running", "timer": "running", "helper": "running", "mine": "running", "bad": "failed"}
	if diff := cmp.Diff(want, r.states(nil)); diff != "" {
		t.Error(diff)
	}
	r.want("bad", "no such thing")
}

// TestStartRefused: a document that the person named is right, or nothing starts.
func TestStartRefused(t *testing.T) {
	r := newRig(t)
	r.inHome("cordis.yml", "- {id: x, name: helper, colour: red}\n- {id: crew, disabled: 1}\n")
	err := r.start()
	var faults document.Faults
	if !asFaults(err, &faults) || len(faults) < 2 {
		t.Fatalf("%v", err)
	}
	r.o.Safe = true
	r.must(r.start())
}

// TestStartWithoutTools: to disable the registry of tools is a fault that names the row.
func TestStartWithoutTools(t *testing.T) {
	r := newRig(t)
	r.inHome("cordis.yml", "- {id: tools, disabled: true}\n")
	var faults document.Faults
	if err := r.start(); !asFaults(err, &faults) || !strings.Contains(err.Error(), "cordis.yml:1:25: the row tools cannot be disabled") {
		t.Fatalf("%v", err)
	}
}

// TestStartUnused: a row that a flag's row makes useless is told.
func TestStartUnused(t *testing.T) {
	r := newRig(t)
	r.inHome("cordis.yml", "- {id: helper, disabled: true}\n")
	r.o.Elsewhere = func(id string) bool { return id == "helper" }
	flag, faults := document.Parse(document.Layer{Name: "--self", Kind: document.Flags, Text: []byte("- {id: helper, name: helper}\n")})
	r.must(faults.Err())
	r.o.Set = []*document.Document{flag}
	r.must(r.start())
	r.want("cordis.yml:1: this row changes nothing, since a later layer adds the row of that id (--self, or a --config)")
}

func asFaults(err error, to *document.Faults) bool {
	return errors.As(err, to)
}

// TestPlace: a project is mounted once, in a scope and a realm of its own, and its
// agents see it; others do not.
func TestPlace(t *testing.T) {
	r := newRig(t)
	r.inProject("plugins/ours.js", says("ours", "project"))
	r.inProject("cordis.yml", "- {id: crew, disabled: true}\n")
	r.trust()
	r.must(r.start())
	var places [8]*Place
	var wait sync.WaitGroup
	for i := range places {
		wait.Go(func() {
			dir := filepath.Join(r.project, "below", fmt.Sprint(i))
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Error(err)
				return
			}
			var err error
			if places[i], err = r.Place(r.ctx(), dir); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	for _, p := range places {
		if p.Scope() == nil || p.Scope() != places[0].Scope() {
			t.Fatal("the project was not mounted once")
		}
	}
	_, scope := r.agent(places[0])
	if got := r.answer(scope, "ours"); got != "project" {
		t.Error(got)
	}
	if got := r.answer(nil, "ours"); got == "project" {
		t.Error("it is there for everybody")
	}
	if got := r.states(scope); got["ours"] != "running" || got["crew"] != "disabled" {
		t.Error(got)
	}
	elsewhere, err := r.Place(r.ctx(), t.TempDir())
	r.must(err)
	if _, other := r.agent(elsewhere); r.states(other)["crew"] != "running" {
		t.Error("the project changes another one's agents", r.states(other))
	}
}

// TestPlaceUntrusted: nothing of a project counts before it is trusted; what was
// trusted goes on to count until its edit is.
func TestPlaceUntrusted(t *testing.T) {
	r := newRig(t)
	r.inProject("plugins/ours.js", says("ours", "one"))
	r.must(r.start())
	p, err := r.Place(r.ctx(), r.project)
	r.must(err)
	r.want("dsh trust")
	if got := r.answer(p.Scope(), "ours"); got == "one" {
		t.Error("it was loaded")
	}
	r.trust()
	r.must(r.Reload(r.ctx()))
	if got := r.answer(p.Scope(), "ours"); got != "one" {
		t.Error(got)
	}
	r.inProject("plugins/ours.js", says("ours", "two"))
	r.must(r.Reload(r.ctx()))
	if got := r.answer(p.Scope(), "ours"); got != "one" {
		t.Error(got)
	}
	if n := (told{r.Composition}).Notices(p.Scope()); len(n) != 1 || !strings.Contains(n[0], "ours.js (changed, what was loaded before goes on)") {
		t.Errorf("notices: %q", n)
	}
	r.trust()
	r.must(r.Reload(r.ctx()))
	if got := r.answer(p.Scope(), "ours"); got != "two" {
		t.Error(got)
	}
	if n := (told{r.Composition}).Notices(p.Scope()); len(n) != 0 {
		t.Errorf("notices: %q", n)
	}
}

// TestPlaceAsked: who is there is shown the files and asked.
func TestPlaceAsked(t *testing.T) {
	for _, yes := range []bool{false, true} {
		t.Run(fmt.Sprint(yes), func(t *testing.T) {
			r := newRig(t)
			r.inProject("plugins/ours.js", says("ours", "one"))
			asked := 0
			r.o.Confirm = func(_ context.Context, s trust.State) (bool, error) {
				asked++
				if !strings.Contains(s.Text(), "harness.defineTool") {
					t.Errorf("it does not show the file: %s", s.Text())
				}
				return yes, nil
			}
			r.must(r.start())
			p, err := r.Place(r.ctx(), r.project)
			r.must(err)
			if got := r.answer(p.Scope(), "ours") == "one"; got != yes || asked != 1 {
				t.Errorf("loaded %t, asked %d times", got, asked)
			}
		})
	}
}

// TestPlaceFaulty: what is wrong with a project's rows is told, and its files are there.
func TestPlaceFaulty(t *testing.T) {
	for _, tt := range []struct{ name, rows, told string }{
		{"unknown_key", "- {id: x, colour: red}\n", "colour"},
		{"no_yaml", "- [\n", "cordis.yml:"},
		{"host", "- {id: timer, disabled: true}\n", "a project may"},
		{"person_only", "- {name: secret}\n", "a project may"},
		{"no_plugin", "- {name: helpers}\n", "helper"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.o.TrustProject = true
			r.inProject("plugins/ours.js", says("ours", "one"))
			r.inProject("cordis.yml", tt.rows)
			r.must(r.start())
			p, err := r.Place(r.ctx(), r.project)
			r.must(err)
			if got := r.answer(p.Scope(), "ours"); got != "one" {
				t.Error(got)
			}
			r.want(tt.told)
			if got := r.states(p.Scope())["timer"]; got != "running" {
				t.Error("timer is " + got)
			}
		})
	}
}

// TestPlaceLimit: the projects of a process are bounded, and what is beyond is told.
func TestPlaceLimit(t *testing.T) {
	r := newRig(t)
	r.must(r.start())
	dir := t.TempDir()
	for i := range limits.CompositionProjects + 1 {
		place := filepath.Join(dir, fmt.Sprint(i))
		r.must(os.Mkdir(place, 0o700))
		p, err := r.Place(r.ctx(), place)
		r.must(err)
		if got := p.Scope() != nil; got != (i < limits.CompositionProjects) {
			t.Fatalf("project %d: mounted %t", i, got)
		}
	}
	r.want("200 projects are mounted, which is the limit")
}
