package prompt_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/prompt"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// rig is a toolset with the service.
func rig(t *testing.T) (*selfmodtest.Rig, *world) {
	r := selfmodtest.New(t, selfmod.Config{})
	w := &world{t: t, root: r.Root}
	w.plugin(r.Root, prompt.Plugin(prompt.Config{Persona: "You help in {{cwd}}."}))
	w.Registry, _ = prompt.Service.Get(r.Root)
	return r, w
}

var view = prompt.View{Values: map[string]string{"cwd": "/home/a"}}

// plugin is the code of a plugin that uses the service.
func plugin(body string) string {
	return "return { name: 'notes', inject: ['prompt'], async apply(ctx) { " + body + " } }"
}

func TestMountedParts(t *testing.T) {
	r, w := rig(t)
	before := w.system(view)
	if before != "You help in /home/a." {
		t.Fatal(before)
	}
	id := r.Mount(plugin(`
		let asked = 0
		ctx.prompt.section({ name: 'style', text: 'Be {{mood}} in {{cwd}}.' })
		ctx.prompt.section({ name: 'first', order: -200, render: (view) => 'First of ' + view.values.cwd })
		ctx.prompt.variable('mood', async (view) => 'kind')
		ctx.prompt.context({ name: 'asked', render: () => 'asked ' + ++asked })
		const gone = ctx.prompt.section({ name: 'gone', text: 'gone' })
		await gone()`))
	want := "First of /home/a\n\n" + prompt.Identity + "\n\nYou help in /home/a.\n\nBe kind in /home/a."
	for range 2 {
		if got, err := w.System(t.Context(), view); err != nil || got != want {
			t.Errorf("error %v\n%s", err, got)
		}
	}
	if got, err := w.Contexts(t.Context(), view); err != nil || got != "asked 1" {
		t.Error(got, err)
	}
	r.Unmount(id)
	if got := w.system(view); got != before {
		t.Errorf("after the unmount: %q, want %q", got, before)
	}
	if got, err := w.Contexts(t.Context(), view); err != nil || got != "" {
		t.Error(got, err)
	}
}

func TestMountedPartsThatFail(t *testing.T) {
	r, w := rig(t)
	before := w.system(view)
	for _, tt := range []struct {
		name, body, fault string
		atLeast           time.Duration
	}{
		{"throws", `ctx.prompt.section({ name: 'x', render() { throw new Error('it broke') } })`, "it broke", 0},
		{"number", `ctx.prompt.section({ name: 'x', render: () => 5 })`, "must be string", 0},
		{"undefined", `ctx.prompt.section({ name: 'x', render() {} })`, "undefined", 0},
		{"long", `ctx.prompt.section({ name: 'x', render: () => 'x'.repeat(70000) })`, "at most 65536", 0},
		{"unknown_variable", `ctx.prompt.section({ name: 'x', text: '{{nobody}}' })`, "{{nobody}}", 0},
		{"hangs", `ctx.prompt.section({ name: 'x', render: () => new Promise(() => {}) })`, "no text within 3s", limits.PromptPart},
		{"spins", `ctx.prompt.section({ name: 'x', render() { for (;;); } })`, "no text within 3s", limits.PromptPart},
		{"listener_throws", `ctx.on('prompt/assemble', () => { throw new Error('it broke') })`, "it broke", 0},
		{"listener_number", `ctx.on('prompt/assemble', () => 5)`, "no answer", 0},
		{"listener_nothing", `ctx.on('prompt/assemble', async (draft, next) => { await next() })`, "returned nothing", 0},
		{"listener_long", `ctx.on('prompt/assemble', () => 'x'.repeat(600000))`, "at most 524288", 0},
		{"listener_hangs", `ctx.on('prompt/assemble', async (draft, next) => { await next(); await new Promise(() => {}) })`, "3", limits.ListenerAnswer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, w := r.For(t), *w
			w.t = t
			id := r.Mount(plugin(tt.body))
			began := time.Now()
			if got := w.system(view); got != before {
				t.Errorf("%q, want %q", got, before)
			}
			if took := time.Since(began); took < tt.atLeast || took > tt.atLeast+20*time.Second {
				t.Errorf("it took %v", took)
			}
			if tt.name == "spins" {
				return // its machine is ended for it, and says why itself
			}
			if report := r.Inspect("temporary", id); !strings.Contains(report, tt.fault) {
				t.Errorf("its faults lack %q:\n%s", tt.fault, report)
			}
			r.Unmount(id)
			if got := w.system(view); got != before {
				t.Errorf("after the unmount: %q, want %q", got, before)
			}
		})
	}
}

func TestMountedRegistrationErrors(t *testing.T) {
	r, _ := rig(t)
	for body, fault := range map[string]string{
		`ctx.prompt.section({ name: 'harness:identity', text: 'mine' })`: "the composition (prompt)",
		`ctx.prompt.section({ name: 'x', text: '{{ x }}' })`:             "without spaces",
		`ctx.prompt.section({ text: 'x' })`:                              "name",
		`ctx.prompt.section({ name: 'x', txt: 'x' })`:                    "txt",
		`ctx.prompt.section({ name: 'x', order: 'first' })`:              "order",
		`ctx.prompt.variable('X', () => 'x')`:                            "[a-z][a-z0-9_]*",
	} {
		r.MountFails(plugin(body), fault)
	}
}

func TestMountedListener(t *testing.T) {
	r, w := rig(t)
	before := w.system(view)
	id := r.Mount(plugin(`ctx.on('prompt/assemble', async (draft, next) => (await next()) + '\n\n' + draft.sections.map((s) => s.name).join() + draft.values.cwd)`))
	if got, want := w.system(view), before+"\n\nharness:identity,deployment:persona/home/a"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.Unmount(id)
	if got := w.system(view); got != before {
		t.Error(got)
	}
	id = r.Mount(plugin(`ctx.on('prompt/assemble', (draft, next) => next())`))
	if got := w.system(view); got != before {
		t.Error(got)
	}
	r.Unmount(id)
}
