package selfmod_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

// hostileTexts are what a name or a message may be made of. Each tries to begin
// a line of its own with FORGED.
var hostileTexts = []struct{ name, text string }{
	{"newlines", "x\nFORGED\n## FORGED\n- FORGED (provided by the composition)"},
	{"carriage_returns", "x\r\nFORGED\r- FORGED"},
	{"line_separators", "x\u2028FORGED\u2029- FORGED\u0085FORGED\u000bFORGED\u000cFORGED"},
	{"heading", "## HEADING"},
	{"list", "- LISTED [active]"},
	{"quote_and_rule", "> QUOTED\n---\n***"},
	{"markdown", "**bold** `code` [link](https://example.com) ![i](x) <b>html</b> | table | ~~no~~"},
	{"fences", "```\nFORGED\n```"},
	{"quotes", `x" is running (plugin "y`},
	{"escape_sequences", "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;https://example.com\x1b\\link\u009b31m"},
	{"control", "a\x00b\x08\x7f\tc"},
	{"bidirectional", "safe\u202egnp.exe\u2066x\u2069\u200f\u061c"},
	{"invisible", "\u200b\u200d\ufeff\u2060\u00ad\U000e0041\ufe0f"},
	{"only_space", " \t\n "},
	{"lone_surrogate", "x\xed\xa0\x80y"},
	{"long", strings.Repeat("x", 300)},
	{"wide", strings.Repeat("日本🙂", 100)},
	{"megabyte", strings.Repeat("long\nFORGED ", 1<<16)},
	{"prototype", "__proto__"},
}

// js is text as JavaScript source; what is not UTF-8 is a lone surrogate there.
func js(text string) string {
	b, err := json.Marshal(strings.ReplaceAll(text, "\xed\xa0\x80", "@LONE@"))
	if err != nil {
		panic(err)
	}
	source := strings.ReplaceAll(string(b), "@LONE@", `\ud800`)
	if len(source) > 10_000 { // source is bounded, so it is made there
		return `'long\nFORGED '.repeat(1 << 16)`
	}
	return source
}

// TestNamesInReports: a plugin called anything, that prints, labels and throws
// anything, stands in each report as one line, and in each answer as part of one.
func TestNamesInReports(t *testing.T) {
	t.Parallel()
	for _, tt := range hostileTexts {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := selfmodtest.New(t, selfmod.Config{VMTimeout: 10 * time.Second, CallTimeout: 20 * time.Second})
			code := `const evil = ` + js(tt.text) + `
const named = Object.defineProperty(() => { throw new Error(evil) }, 'name', { value: evil })
return { name: evil, inject: ['tools', 'timer'], apply(ctx) {
  console.log(evil); console.error({ [evil]: evil }); console.warn('%s', evil, named)
  ctx.effect(() => () => {}, evil); ctx.effect(named.bind ? Object.defineProperty(() => () => {}, 'name', { value: evil }) : named)
  ctx.setTimeout(named, 1); ctx.setInterval(Object.defineProperty(() => {}, 'name', { value: evil }), 1e6)
  ctx.on('tools/pre-execute', (exec, next) => exec.name === 'denied' ? { kind: 'deny', reason: evil } : next())
  const tool = (name, execute) => harness.registerTool(ctx, harness.defineTool({ name, title: evil.slice(0, 9999), description: evil.slice(0, 9999), execute,
    parameters: { [evil]: { type: 'string', title: evil, description: evil, default: evil, examples: [evil] }, pick: { enum: [evil, 'b'] } },
    output: { schema: { type: 'string' }, render: (args, v) => [{ type: 'text', text: v }] } }))
  tool('fails', () => { throw Object.assign(new Error(evil), { name: evil, code: evil }) })
  tool('denied', () => '')
} }`
			mounted := r.Call("cordis_mount", map[string]string{"code": code})
			answer := r.Works(mounted, "Temporary Plugin dyn-1 is running")
			wellFormed(t, answer)
			head, schemas, _ := strings.Cut(answer, "\nTools, callable from your next step on:")
			if n := utf8.RuneCountInString(head); n > limits.MountAnswer {
				t.Errorf("the answer has %d characters beside the schemas", n)
			}
			if lines := strings.Split(strings.TrimPrefix(schemas, "\n"), "\n"); len(lines) != 2 {
				t.Errorf("two tools take %d lines:\n%.2000s", len(lines), schemas)
			}
			var v struct{ PluginName string }
			if err := json.Unmarshal(mounted.Value, &v); err != nil || utf8.RuneCountInString(v.PluginName) > limits.Name || strings.ContainsAny(v.PluginName, "\n\r\u2028\x1b\u202e") {
				t.Errorf("the value's name is %.200q (%v)", v.PluginName, err)
			}

			r.Fails(r.Call("denied", nil), "Error: ")
			r.Fails(r.Call("fails", nil), "Error: ")
			r.Fails(r.Call("fails", `{"pick":"c"}`), "Error: invalid arguments: ")
			wellFormed(t, r.MountFails(`return { apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'fails', description: '', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null })) } }`,
				"already registered by temporary Plugin dyn-1"))
			r.Eventually("the callback's error", func() (string, bool) {
				now := r.Inspect("temporary", "dyn-1")
				return now, strings.Contains(now, "last errors")
			})
			for _, what := range append(selfmod.Sections(), "") {
				report := r.Inspect(what, "")
				wellFormed(t, report)
				if n := strings.Count(report, "dyn-1"); (what == "temporary" || what == "") && n == 0 {
					t.Errorf("%q does not show the mount:\n%s", what, report)
				}
				if utf8.RuneCountInString(report) > limits.ReportAll {
					t.Errorf("%q has %d characters", what, utf8.RuneCountInString(report))
				}
			}
			if n := strings.Count(r.Inspect("temporary", ""), "\n- "); n != 1 {
				t.Errorf("one mount takes %d rows", n)
			}
			report, source, _ := strings.Cut(r.Inspect("temporary", "dyn-1"), "\nSource, as it was mounted:\n")
			wellFormed(t, report)
			if utf8.RuneCountInString(report) > limits.ReportName+100 || !strings.Contains(source, "const evil = ") {
				t.Errorf("the report has %d characters", utf8.RuneCountInString(report))
			}
			for _, line := range r.Console() {
				if !strings.HasPrefix(line, "[cordis:dyn-1] ") || strings.ContainsAny(line, "\n\r\x1b\u009b\u202e\x00") || len(line) > 2*limits.ConsoleLineBytes {
					t.Errorf("the console has %.300q", line)
				}
			}
			receipt := r.Unmount("dyn-1")
			wellFormed(t, receipt)
			if utf8.RuneCountInString(receipt) > limits.Receipt {
				t.Errorf("the receipt has %d characters", utf8.RuneCountInString(receipt))
			}
			wellFormed(t, r.Fails(r.Call("fails", nil), `unknown tool "fails" — it went with temporary Plugin dyn-1`))
		})
	}
}

// TestNamesThatAreRefused: tools, services and events have names by rule; the
// refusal states the rule and shows the name on one line.
func TestNamesThatAreRefused(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, hostile)
	for _, tt := range hostileTexts {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			check := func(code string, has ...string) {
				t.Helper()
				text := r.MountFails(`const evil = `+js(tt.text)+`; `+code, has...)
				first, _, _ := strings.Cut(text, "\n    at ")
				first, _, _ = strings.Cut(first, "\n(Nothing is mounted")
				wellFormed(t, first)
				if n := strings.Count(first, "\n"); n > 0 || utf8.RuneCountInString(first) > 1500 {
					t.Errorf("the refusal has %d lines and %d characters: %.400s", n+1, utf8.RuneCountInString(first), first)
				}
			}
			if tt.name == "prototype" {
				id := r.Mount(`return { apply(ctx) { ctx.provide('__proto__', { f: () => 42 }) } }`)
				use := func(inject string) string {
					return `return { name: 'user', inject: ` + inject + `, apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'use', description: '', parameters: {},
  output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: () => String(ctx.get('__proto__').f()) + Object.keys({}).length })) } }`
				}
				without := r.Mount(use(`[]`))
				r.Fails(r.Call("use", nil), "is not injected")
				r.Unmount(without)
				with := r.Mount(use(`['__proto__']`))
				r.Works(r.Call("use", nil), "420")
				r.Unmount(with)
				r.Unmount(id)
				return
			}
			check(`return { apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: evil, description: '', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null })) } }`, "name must match "+limits.ToolName)
			check(`return { apply(ctx) { ctx.provide(evil, { f() {} }) } }`, "no usable name")
			check(`return { inject: [evil], apply() {} }`, "no name that a service can have")
			check(`return { inject: { optional: [evil] }, apply() {} }`, "no name that a service can have")
			check(`return { apply(ctx) { ctx.on(evil, () => {}) } }`, "tools/pre-execute")
			check(`return { apply(ctx) { ctx[evil] } }`, "does not expose")
			check(`return { apply(ctx) { ctx[evil] = 1 } }`, "read-only")
			check(`return { apply(ctx) { ctx.tools[evil] } }`, "does not expose")
		})
	}
	root.MountFails(`return { apply(ctx) { ctx.provide('', 1) } }`, "non-empty string")
}

// TestNamesThatAreNoText: a name that is no string is no name.
func TestNamesThatAreNoText(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, hostile)
	for i, name := range []string{"5", "{}", "[]", "null", "undefined", "true", "Symbol('x')", "10n", "(() => {})", "{ toString() { return 'x' } }", "new String('boxed')", "new Proxy({}, {})", "''"} {
		text := root.Works(root.Call("cordis_mount", map[string]string{"code": `return { name: ` + name + `, apply() {} }`}))
		if !strings.Contains(text, `(plugin "<anonymous>"; `) {
			t.Errorf("name %s: %s", name, text)
		}
		for _, code := range []string{
			`harness.registerTool(ctx, harness.defineTool({ name: %s, description: '', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null }))`,
			`ctx.provide(%s, 1)`, `ctx.on(%s, () => {})`, `ctx.get(%s) === undefined || 0; if (%[1]s === '') throw new TypeError('a string')`, `ctx.effect(() => () => {}, %s === undefined || %[1]s === '' ? 5 : %[1]s)`,
			`ctx.tools.get(%s) === undefined || 0; if (%[1]s === '') throw new TypeError('a string')`,
		} {
			refusal := root.MountFails(`return { apply(ctx) { ` + fmt.Sprintf(code, name) + ` } }`)
			noneOfOurs(t, refusal)
			if !strings.Contains(refusal, "string") && !strings.Contains(refusal, "name must") && !strings.Contains(refusal, "takes the name") {
				t.Errorf("%d %s with %s: %s", i, code, name, refusal)
			}
		}
	}
	for _, title := range []string{"5", "{}"} {
		root.MountFails(`harness.defineTool({ name: 'x', title: `+title+`, description: '', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null })`, "title must be a string")
		root.MountFails(`harness.defineTool({ name: 'x', description: `+title+`, parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null })`, "description must be a string")
	}
}

// TestNamesOfCallers: what a caller names is echoed on one line, cut.
func TestNamesOfCallers(t *testing.T) {
	t.Parallel()
	root := selfmodtest.New(t, hostile)
	for _, tt := range hostileTexts {
		t.Run(tt.name, func(t *testing.T) {
			r := root.For(t)
			for _, text := range []string{
				r.Fails(r.Call("cordis_unmount", map[string]string{"id": tt.text}), "no temporary Plugin with id"),
				r.Fails(r.Call("cordis_inspect", map[string]string{"what": "temporary", "name": tt.text}), "no temporary Plugin with id"),
				r.Fails(r.Call("cordis_inspect", map[string]string{"what": "api", "name": tt.text}), "no catalogued service named"),
				r.Fails(r.Call("cordis_inspect", map[string]string{"what": "events", "name": tt.text}), "no catalogued event named"),
				r.Fails(r.Call("cordis_inspect", map[string]string{"what": tt.text}), "what must be one of services, plugins, tools, temporary"),
				r.Fails(r.Call(tt.text, nil), "unknown tool"),
			} {
				wellFormed(t, text)
				if strings.Contains(text, "\n") || utf8.RuneCountInString(text) > 400 {
					t.Errorf("%.600q", text)
				}
			}
		})
	}
}

// TestTakenNames: the owner of a taken name is named, and so is the way out,
// which differs for a plugin's tool and for one of the composition.
func TestTakenNames(t *testing.T) {
	t.Parallel()
	r := selfmodtest.New(t, hostile)
	id := r.Mount(`return { name: 'owner', apply(ctx) { ctx.provide('taken_service', { f() {} });
  harness.registerTool(ctx, harness.defineTool({ name: 'taken', description: '', parameters: {}, output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: () => 'mine' })) } }`)
	define := func(name string) string {
		return `harness.registerTool(ctx, harness.defineTool({ name: '` + name + `', description: '', parameters: {}, output: { schema: { type: 'null' }, render: () => [] }, execute: () => null }));`
	}
	text := r.MountFails(`return { name: 'thief', apply(ctx) { `+define("fresh")+define("taken")+` } }`,
		`tool "taken" is already registered by temporary Plugin dyn-1 (owner)`, "to REPLACE something an earlier temporary Plugin registered, first cordis_unmount", "the id dyn-2 is used up")
	if strings.Contains(text, "choose another name") {
		t.Errorf("two ways out: %s", text)
	}
	r.Fails(r.Call("fresh", nil), `unknown tool "fresh"`)
	r.Works(r.Call("taken", nil), "mine")
	for _, name := range []string{"cordis_inspect", "cordis_mount", "cordis_unmount"} {
		text := r.MountFails(`return { apply(ctx) { `+define(name)+` } }`, `tool "`+name+`" is already registered by the composition (tool-cordis): choose another name`)
		if strings.Contains(text, "to REPLACE") {
			t.Errorf("a tool of the composition cannot be replaced: %s", text)
		}
	}
	r.MountFails(`return { apply(ctx) { `+define("twice")+define("twice")+` } }`, `tool "twice" is already registered by temporary Plugin`)
	r.MountFails(`return { apply(ctx) { `+define("run_code")+` } }`, "reserved: choose another name")
	r.MountFails(`return { apply(ctx) { ctx.provide('taken_service', 1) } }`, `"taken_service"`, "dyn-1", "owner")
	for _, name := range []string{"tools", "timer"} {
		r.MountFails(`return { apply(ctx) { ctx.provide('`+name+`', {}) } }`, name, "choose another name")
	}
	for _, name := range []string{"on", "get", "provide", "effect", "setTimeout"} {
		r.MountFails(`return { apply(ctx) { ctx.provide('`+name+`', {}) } }`, name, "choose another name")
	}
	r.Unmount(id)
	r.Unmount(r.Mount(`return { name: 'heir', apply(ctx) { ` + define("taken") + `ctx.provide('taken_service', 1) } }`))
	for _, name := range []string{"a", "A-b_9", strings.Repeat("n", 64)} {
		r.Unmount(r.Mount(`return { apply(ctx) { ` + define(name) + ` } }`))
	}
	for _, name := range []string{"", " ", "a b", "a.b", "a/b", "é", strings.Repeat("n", 65), "a\\n"} {
		r.MountFails(`return { apply(ctx) { `+define(name)+` } }`, "name must match "+limits.ToolName)
	}
}
