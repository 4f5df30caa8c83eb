package selfmod_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// wellFormed demands that a report has nothing in it that hides, reorders or
// overwrites text, and that no line of it was forged by a test's "FORGED".
func wellFormed(t *testing.T, report string) {
	t.Helper()
	for _, r := range report {
		if r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
			t.Fatalf("%U stands in %.600q", r, report)
		}
	}
	for line := range strings.Lines(report) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "FORGED") || strings.HasPrefix(line, "## FORGED") || strings.HasPrefix(line, "- FORGED") {
			t.Errorf("a forged line %q in\n%.2000s", line, report)
		}
	}
}

// TestDescriptions: what the three descriptions say of names, numbers and
// members is what the program does.
func TestDescriptions(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	described := map[string]string{}
	for _, v := range r.Registry.List(nil) {
		described[v.Name] = v.Description
	}
	if len(described) != 3 {
		t.Fatalf("tools %v", described)
	}
	mount := described["cordis_mount"]
	for _, has := range []string{
		limits.ToolName,
		fmt.Sprintf("%d ms inside the engine", limits.VMTimeout.Milliseconds()),
		fmt.Sprintf("%d ms for the whole of it", limits.CallTimeout.Milliseconds()),
		fmt.Sprintf("at most %d ms", limits.MaxCallTimeout.Milliseconds()),
		fmt.Sprintf("%d MiB of memory", limits.VMMemoryMB),
		fmt.Sprintf("%d KB of source", limits.Source>>10),
		fmt.Sprintf("%d MiB each for arguments, a result", limits.Arguments>>20),
		"Nesting to 5,000 levels works",
		fmt.Sprintf("after %d of them the plugin is stopped", limits.AbandonedCalls),
		fmt.Sprintf("at most %d wait for one plugin", limits.EventQueue),
		fmt.Sprintf("its last %d lines", limits.ConsoleLines),
		fmt.Sprintf("at most %d bytes", limits.Name),
	} {
		if !strings.Contains(mount, has) {
			t.Errorf("the description of cordis_mount lacks %q", has)
		}
	}
	if limits.DepthWorks != 5000 || limits.Result != limits.Arguments || limits.Interrupts != 3 {
		t.Error("the description of cordis_mount states other limits")
	}
	for _, e := range cordis.Events() {
		if !strings.HasPrefix(e.Name(), "tools/") {
			continue // cordis_inspect has them
		}
		if said := strings.Contains(mount, "| '"+e.Name()+"' ("); said != e.Listenable() {
			t.Errorf("event %s: in the description %t, for plugins %t", e.Name(), said, e.Listenable())
		}
	}
	for name, text := range described {
		if placeholder := regexp.MustCompile(`\{[a-zA-Z]+(Timeout|MB)\}`).FindString(text); placeholder != "" || strings.TrimSpace(text) != text {
			t.Errorf("%s: %q was not filled in", name, placeholder)
		}
		for _, r := range text {
			if r != '\n' && unicode.IsControl(r) || r == '\ufffd' {
				t.Errorf("%s has %U", name, r)
			}
		}
	}
	if n := utf8.RuneCountInString(mount); n > 9000 {
		t.Errorf("the description of cordis_mount has %d characters", n)
	}
	for _, what := range selfmod.Sections() {
		if !strings.Contains(described["cordis_inspect"], "`"+what+"`") {
			t.Errorf("the description of cordis_inspect lacks %q", what)
		}
	}
	// The example is complete: it works as it stands.
	example := regexp.MustCompile("(?s)```js\n(return .*?)\n```").FindStringSubmatch(mount)
	if example == nil {
		t.Fatal("no example")
	}
	r.Mount(example[1])
	if got := r.Works(r.Call("word_count", `{"text":"three little words"}`)); got != "3 words" {
		t.Errorf("the example says %q", got)
	}
	guard := regexp.MustCompile("(?s)```js\n(ctx.on.*?)\n```").FindStringSubmatch(mount)
	if guard == nil {
		t.Fatal("no guard")
	}
	r.Mount("return (ctx) => " + guard[1])
	r.Mount(selfmodtest.Tool("deploy", "return ''"))
	r.Fails(r.Call("deploy", nil), "not on Fridays")
	// Everything that ctx is said to have, it has, and each global.
	r.Mount(selfmodtest.Tool("members", `
  const missing = []
  for (const name of ['on', 'once', 'provide', 'effect', 'get', 'setTimeout', 'setInterval', 'timeout', 'interval', 'throttle', 'debounce']) if (typeof ctx[name] !== 'function') missing.push(name)
  for (const name of ['register', 'schemas', 'get']) if (typeof ctx.tools[name] !== 'function') missing.push('tools.' + name)
  for (const name of ['btoa', 'atob', 'TextEncoder', 'TextDecoder', 'structuredClone', 'queueMicrotask', 'AbortController']) if (typeof globalThis[name] !== 'function') missing.push(name)
  for (const name of ['Intl', 'process', 'window', 'Buffer']) if (name in globalThis) missing.push('no ' + name)
  for (const name of ['callId', 'name', 'arguments', 'signal', 'progress']) if (exec[name] === undefined) missing.push('exec.' + name)
  if (Object.keys(harness).sort().join() !== 'defineTool,registerTool') missing.push('harness')
  return missing.join()`))
	if got := r.Works(r.Call("members", nil)); got != "" {
		t.Errorf("the description promises %s", got)
	}
}

// goldenAnswers is a short session: what is called, and what is read.
var goldenAnswers = []struct{ tool, args, want string }{
	{"cordis_inspect", `{"what":"temporary"}`, `## Temporary Plugins
No temporary Plugins are running. Temporary Plugins created with cordis_mount disappear when DSH restarts.
Worker process: not started; it starts with the first cordis_mount.`},
	{"cordis_mount", `{"code":"return { name: 'reader', inject: ['greeter', 'tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'greet', description: 'Greet.', parameters: { who: { type: 'string', required: true } }, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: (a) => ctx.greeter.hello(a.who) })) } }"}`,
		`Temporary Plugin dyn-1 is pending (plugin "reader"; missing services: greeter; available until unmounted or DSH restarts).`},
	{"cordis_mount", `{"code":"return { name: 'greeter', apply(ctx) { ctx.provide('greeter', { hello: (who) => 'hi ' + who }); ctx.on('tools/change', () => {}) } }"}`,
		`Temporary Plugin dyn-2 is running (plugin "greeter"; available until unmounted or DSH restarts).
Provides: greeter.
Listeners: 1.
Became active: reader (dyn-1; tools: greet).`},
	{"greet", `{"who":"you"}`, `hi you`},
	{"cordis_mount", `{"code":"throw new Error('no')"}`, `Error: no
    at <anonymous> (cordis-mount-dyn-3.js:1:16)
(Nothing is mounted; the id dyn-3 is used up.)`},
	{"cordis_inspect", `{}`, `## services
- greeter (provided by greeter)
- timer (provided by timer)
- tools (provided by tools)

## plugins
- cordis-dynamic [active]
- greeter [active]
- reader [active]
- timer [active]
- tool-cordis [active]
- tools [active]

## tools
- cordis_inspect
- cordis_mount
- cordis_unmount
- greet (dyn-1)

## Temporary Plugins
- Temporary Plugin dyn-1: reader [running] — provides: none; waiting for: none; lifetime: until unmounted or DSH restarts; tools: greet
- Temporary Plugin dyn-2: greeter [running] — provides: greeter; waiting for: none; lifetime: until unmounted or DSH restarts; listeners: 1
Worker process: running; Landlock: …; seccomp: …; memory: ….`},
	{"cordis_unmount", `{"id":"dyn-2"}`, `Temporary Plugin dyn-2 was unmounted and removed.
Undone: 0 tools, 1 service, 1 listener, 0 timers, 0 effects.
Gone tools: greet.
Gone services: greeter.
Parked until a service comes back: reader (dyn-1).`},
	{"greet", `{"who":"you"}`, `Error: unknown tool "greet" — its plugin, temporary Plugin dyn-1 (reader), waits for a service that went with temporary Plugin dyn-2 (unmounted)`},
	{"cordis_unmount", `{"id":"dyn-3"}`, `Error: no temporary Plugin with id "dyn-3" (list them with cordis_inspect what:"temporary"); dyn-3 failed to mount: no at <anonymous> (cordis-mount-dyn-3.js:1:16)`},
	{"cordis_unmount", `{"id":"dyn-1"}`, `Temporary Plugin dyn-1 was unmounted and removed.
Undone: 0 tools, 0 services, 0 listeners, 0 timers, 0 effects.`},
}

// TestAnswersAreAsDocumented: a short session reads exactly so.
func TestAnswersAreAsDocumented(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, selfmod.Config{})
	machine := regexp.MustCompile(`Landlock: .*; seccomp: .*; memory: .*\.`)
	for i, step := range goldenAnswers {
		got := machine.ReplaceAllString(selfmodtest.Text(r.Call(step.tool, step.args)), "Landlock: …; seccomp: …; memory: ….")
		got, _, _ = strings.Cut(got, "\n\n## api\n") // what is generated has tests of its own
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d, %s: %s", i, step.tool, diff)
		}
	}
}

// TestReportsAreBounded: with as much as a plugin may have, each report and
// answer stays within its limit and says what it leaves out.
func TestReportsAreBounded(t *testing.T) { // not parallel: it needs the processor
	r := selfmodtest.New(t, selfmod.Config{VMTimeout: 20 * time.Second})
	long := strings.Repeat("n", 50)
	mounted := r.Works(r.Call("cordis_mount", map[string]string{"code": `return { name: 'much', inject: { optional: Array.from({ length: 190 }, (_, i) => 'absent_` + long + `' + i) }, apply(ctx) {
  for (let i = 0; i < 200; i++) { ctx.provide('service_` + long + `' + i, { f() {} }); ctx.on('tools/change', () => { throw new Error('x'.repeat(5000)) }); ctx.effect(() => () => { throw new Error('left '.repeat(1000)) }, 'effect' + i)
    harness.registerTool(ctx, harness.defineTool({ name: 'tool_` + long + `' + i, description: 'd', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null })) }
  for (let i = 0; i < 400; i++) console.log('line ' + i, 'x'.repeat(5000))
} }`}))
	wellFormed(t, mounted)
	head, _, _ := strings.Cut(mounted, "\nTools, callable")
	if n := utf8.RuneCountInString(head); n > limits.MountAnswer || !strings.Contains(head, " more") {
		t.Errorf("the answer has %d characters beside the schemas:\n%.500s", n, head)
	}
	for _, what := range append(selfmod.Sections(), "") {
		report := r.Inspect(what, "")
		wellFormed(t, report)
		if n := utf8.RuneCountInString(report); n > limits.ReportAll {
			t.Errorf("%q has %d characters", what, n)
		}
		if what == "services" && !strings.Contains(report, "(cut: ") || what == "temporary" && !strings.Contains(report, "dyn-1: much") {
			t.Errorf("%q does not say what it leaves out:\n%.300s", what, report)
		}
	}
	report, source, _ := strings.Cut(r.Inspect("temporary", "dyn-1"), "\nSource, as it was mounted:\n")
	if n := utf8.RuneCountInString(report); n > limits.ReportName || !strings.Contains(source, "name: 'much'") {
		t.Errorf("one report has %d characters beside the source", n)
	}
	receipt := r.Unmount("dyn-1")
	if n := utf8.RuneCountInString(receipt); n > limits.Receipt || !strings.Contains(receipt, "Undone: 200 tools, 200 services, 200 listeners") || !strings.Contains(receipt, "A disposer failed: ") {
		t.Errorf("the receipt has %d characters:\n%s", n, receipt)
	}
}
