package selfmod_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dsh-go/dsh/internal/golden"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
	"github.com/dsh-go/dsh/tool"
)

// replace mounts code in the place of a plugin.
func replace(r *selfmodtest.Rig, id, code string) *tool.Result {
	return r.Call("cordis_mount", map[string]string{"code": code, "replaces": id})
}

func says(what string) string { return selfmodtest.Tool("say", "return '"+what+"'") }

func TestReplace(t *testing.T) {
	t.Parallel()
	var audit bytes.Buffer
	r := selfmodtest.New(t, selfmod.Config{Audit: &audit})
	first := r.Mount(says("old"))
	res := replace(r, first, says("new"))
	r.Works(res, `Temporary Plugin dyn-2 is running (plugin "say"`, `Replaces dyn-1 (plugin "say"), which was unmounted and removed.`,
		"Undone: 1 tool, 0 services, 0 listeners, 0 timers, 0 effects.", "- say {")
	if text := selfmodtest.Text(res); strings.Contains(text, "Gone tools") {
		t.Errorf("a tool that the new one has is said to be gone:\n%s", text)
	}
	var v struct {
		ID       string
		Replaced struct {
			ID      string
			Drained bool
			Gone    struct{ Tools []string }
		}
	}
	if err := json.Unmarshal(res.Value, &v); err != nil || v.ID != "dyn-2" || v.Replaced.ID != "dyn-1" || !v.Replaced.Drained || len(v.Replaced.Gone.Tools) != 0 {
		t.Errorf("value %s, %v", res.Value, err)
	}
	if got := r.Works(r.Call("say", nil)); got != "new" {
		t.Errorf("the tool says %q", got)
	}
	r.Fails(r.Call("cordis_unmount", map[string]string{"id": first}), "dyn-1 was replaced by dyn-2")
	if n := strings.Count(audit.String(), "\n"); n != 2 {
		t.Errorf("%d lines of audit", n)
	}
	// What the new one has no more is gone, and a call says with whom it went.
	r.Works(replace(r, "dyn-2", selfmodtest.Tool("other", "return ''")), "Gone tools: say.", "- other {")
	r.Fails(r.Call("say", nil), "it went with temporary Plugin dyn-2 (say), which was replaced by dyn-3")
	r.Unmount("dyn-3")
}

// TestReplaceKeeps: what cannot take a plugin's place leaves it as it was.
func TestReplaceKeeps(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	id := r.Mount(says("old"))
	other := r.Mount(selfmodtest.Tool("taken", "return ''"))
	r.Unmount(r.Mount(selfmodtest.Tool("brief", "return ''")))
	const keeps = "temporary Plugin dyn-1 (say) keeps serving, as it was."
	for _, c := range []struct {
		name, id, code string
		has            []string
	}{
		{"syntax", id, "return {", []string{"failed to parse", "Nothing is mounted", keeps}},
		{"throws", id, "return { name: 'say', apply() { throw new Error('no luck') } }", []string{"no luck", "Nothing is mounted", keeps}},
		{"halfway", id, selfmodtest.Tool("say", "return 'new'", "ctx.setTimeout(() => {}, 1e6)") + ".none", []string{keeps}},
		{"pending", id, "return { name: 'say', inject: ['nothing-like-it'], apply() {} }", []string{"would have to wait for nothing-like-it", "while dyn-1 runs", keeps}},
		{"foreign", id, selfmodtest.Tool("taken", "return ''"), []string{"already registered by temporary Plugin " + other, "REPLACE", keeps}},
		{"unknown", "dyn-99", says("new"), []string{`replaces: no temporary Plugin with id "dyn-99"`, "Nothing is mounted"}},
		{"name", "say", says("new"), []string{"; of that name: dyn-1 (give the id)"}},
		{"gone", "dyn-3", says("new"), []string{"dyn-3 was unmounted"}},
		{"empty", "", says("new"), []string{`no temporary Plugin with id ""`}},
		{"large", id, strings.Repeat(" ", limits.Source+1), []string{"more than the limit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := r.For(t)
			r.Fails(replace(r, c.id, c.code), c.has...)
			if got := r.Works(r.Call("say", nil)); got != "old" {
				t.Errorf("the old one says %q", got)
			}
			if n := strings.Count(r.Inspect("temporary", ""), "- Temporary Plugin"); n != 2 {
				t.Errorf("%d plugins are mounted", n)
			}
		})
	}
}

// TestReplacePending: what waits can take the place of what waits.
func TestReplacePending(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	id := r.Mount("return { name: 'waits', inject: ['absent'], apply() {} }")
	r.Works(replace(r, id, "return { name: 'waits', inject: ['absent', 'absent2'], apply() {} }"),
		"Temporary Plugin dyn-2 is pending", "Replaces dyn-1", "which was unmounted and removed")
	r.Fails(replace(r, "dyn-2", "return { apply() { throw new Error('no luck') } }"), "temporary Plugin dyn-2 (waits) stays as it was (pending)")
	r.Works(replace(r, "dyn-2", says("now")), "is running")
}

// TestReplaceRunning: a call that runs in the old one ends there, while what comes
// runs in the new one.
func TestReplaceRunning(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	r.Mount(`let open, waiting = 0
const opened = new Promise(resolve => { open = resolve })
` + selfmodtest.Tool("gate", "if (args.open) open(); return String(waiting)", "ctx.provide('gate', { wait: () => { waiting++; return opened } })"))
	waits := func(word string) string {
		return strings.Replace(selfmodtest.Tool("say", "if (args.wait) await ctx.gate.wait(); return '"+word+"'"), "'timer'", "'gate'", 1)
	}
	id := r.Mount(waits("old"))
	running := make(chan *tool.Result, 1)
	go func() { running <- r.Call("say", `{"wait":true}`) }()
	r.Eventually("the call is running", func() (string, bool) {
		now := r.Works(r.Call("gate", nil))
		return now, now == "1"
	})
	replaced := make(chan *tool.Result, 1)
	go func() { replaced <- replace(r, id, waits("new")) }()
	r.Eventually("the new one is called", func() (string, bool) {
		now := r.Works(r.Call("say", nil))
		return now, now == "new"
	})
	select {
	case res := <-replaced:
		t.Errorf("it was replaced while a call ran: %s", selfmodtest.Text(res))
	case res := <-running:
		t.Errorf("the call did not wait: %s", selfmodtest.Text(res))
	default:
	}
	r.Works(r.Call("gate", `{"open":true}`))
	if got := r.Works(<-running); got != "old" {
		t.Errorf("the running call says %q", got)
	}
	r.Works(<-replaced, "Replaces "+id)
}

// TestReplaceSeamless: a loop that lists and calls never sees the tool missing or
// twice, and each answer is of a version that was there.
func TestReplaceSeamless(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	id := r.Mount(says("0"))
	stop := make(chan struct{})
	var work sync.WaitGroup
	defer work.Wait()
	defer close(stop)
	var calls atomic.Int64
	for range 3 {
		work.Go(func() {
			for last := 0; ; {
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
				if n != 1 {
					t.Errorf("the tool is listed %d times", n)
				}
				var now int
				res := r.Call("say", nil)
				if text := selfmodtest.Text(res); res.IsError {
					t.Errorf("a call failed: %s", text)
					return
				} else if _, err := fmt.Sscan(text, &now); err != nil || now < last {
					t.Errorf("version %q after %d", text, last)
				}
				last = now
				calls.Add(1)
			}
		})
	}
	for version := 1; version <= 20 && !t.Failed(); version++ {
		before := calls.Load()
		res := replace(r, id, says(fmt.Sprint(version)))
		r.Works(res, "Replaces "+id)
		id = fmt.Sprintf("dyn-%d", version+1)
		r.Eventually("calls", func() (string, bool) { return "", calls.Load() > before+3 || t.Failed() })
	}
}

// TestReplaceService: who uses the old one's service runs again, once, with the new
// one's.
func TestReplaceService(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	provider := func(word string) string {
		return "return { name: 'greeter', apply(ctx) { ctx.provide('greeter', { hello: () => '" + word + "' }) } }"
	}
	id := r.Mount(provider("hi"))
	r.Mount(strings.NewReplacer("return {\n", "let runs = 0\nreturn {\n", "'timer'", "'timer', 'greeter'").Replace(
		selfmodtest.Tool("greet", "return ctx.greeter.hello() + runs", "runs++")))
	if got := r.Works(r.Call("greet", nil)); got != "hi1" {
		t.Fatalf("it says %q", got)
	}
	text := r.Works(replace(r, id, provider("hello")), "Restarted once, with the new service: greet (dyn-2; tools: greet).", "Provides: greeter.")
	if strings.Contains(text, "Became active") || strings.Contains(text, "Parked") || strings.Contains(text, "Gone services") {
		t.Errorf("the answer says\n%s", text)
	}
	if got := r.Works(r.Call("greet", nil)); got != "hello2" {
		t.Errorf("it says %q", got)
	}
	// One that does not provide it any more parks its users.
	r.Works(replace(r, "dyn-3", "return { name: 'greeter', apply() {} }"), "Gone services: greeter", "Parked until a service comes back: greet (dyn-2)")
}

// TestReplaceGuard: a guard's new version guards from the moment that the old one does
// not, and no call is denied for the change.
func TestReplaceGuard(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	r.Mount(says("said"))
	r.Mount(selfmodtest.Tool("deploy", "return 'deployed'"))
	guard := func(n int) string {
		return fmt.Sprintf("return (ctx) => ctx.on('tools/pre-execute', (exec, next) => exec.name === 'deploy' ? { kind: 'deny', reason: 'not now %d' } : next())", n)
	}
	id := r.Mount(guard(0))
	stop := make(chan struct{})
	var work sync.WaitGroup
	defer work.Wait()
	defer close(stop)
	for range 2 {
		work.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if res := r.Call("deploy", nil); !res.IsError || !strings.Contains(selfmodtest.Text(res), "not now") {
					t.Errorf("the guard was passed over, or stood in the way: %s", selfmodtest.Text(res))
					return
				}
				if res := r.Call("say", nil); res.IsError {
					t.Errorf("a call failed: %s", selfmodtest.Text(res))
					return
				}
			}
		})
	}
	for n := 1; n <= 10 && !t.Failed(); n++ {
		r.Works(replace(r, id, guard(n)), "Replaces "+id)
		id = fmt.Sprintf("dyn-%d", n+3)
	}
	r.Fails(r.Call("deploy", nil), "not now 10")
}

// TestReplaceMany: of several that replace one plugin, one has its place in the end and
// none of the others is left.
func TestReplaceMany(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	id := r.Mount(says("0"))
	var work sync.WaitGroup
	var worked atomic.Int64
	for n := range 4 {
		work.Go(func() {
			if res := replace(r, id, says(fmt.Sprint(n))); !res.IsError {
				worked.Add(1)
			} else if text := selfmodtest.Text(res); !strings.Contains(text, "being replaced") && !strings.Contains(text, "was replaced by") {
				t.Errorf("refused with: %s", text)
			}
		})
	}
	work.Wait()
	if n := worked.Load(); n != 1 {
		t.Errorf("%d have taken its place", n)
	}
	if n := strings.Count(r.Inspect("temporary", ""), "- Temporary Plugin"); n != 1 {
		t.Errorf("%d plugins are mounted:\n%s", n, r.Inspect("temporary", ""))
	}
	r.Works(r.Call("say", nil))
}

// TestReplaceAnswers: what the model reads of it.
func TestReplaceAnswers(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	provider := `{ name: 'kit', apply(ctx) { ctx.provide('kit', { v: 1 }); ctx.on('tools/result', () => {}); ctx.tools.register(harness.defineTool({ name: 'kit', description: '', parameters: {},
  output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: () => 'one' })) } }`
	var out strings.Builder
	for _, step := range []struct{ id, code string }{
		{"", "return " + provider},
		{"", "return { name: 'user', inject: ['kit'], apply(ctx) { ctx.effect(() => () => {}) } }"},
		{"dyn-1", "return " + strings.Replace(provider, "'one'", "'two'", 1)},
		{"dyn-3", "return { name: 'kit', apply() { throw new Error('no luck') } }"},
		{"dyn-3", "return { name: 'kit', inject: ['absent'], apply() {} }"},
		{"dyn-3", "return { name: 'kit', apply() {} }"},
		{"dyn-3", "return { name: 'kit', apply() {} }"},
		{"kit", "return { name: 'kit', apply() {} }"},
	} {
		res := replace(r, step.id, step.code)
		if step.id == "" {
			res = r.Call("cordis_mount", map[string]string{"code": step.code})
		}
		fmt.Fprintf(&out, "# replaces %q\n%s\n\n", step.id, selfmodtest.Text(res))
	}
	golden.Compare(t, "replace.md", out.String())
}
