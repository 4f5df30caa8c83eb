package files_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/files"
)

// greeter shows its configuration.
const greeter = `
export const name = 'greeter'
export const inject = ['tools']
export const Config = {
  word: { type: 'string', default: 'hi' },
  times: { type: 'integer', required: true },
  names: { type: 'array', items: { type: 'string' } },
}
export function apply(ctx, config) {
  ctx.tools.register(harness.defineTool({
    name: 'config', description: '', parameters: {},
    output: { schema: { type: 'json' }, render: (args, value) => [{ type: 'text', text: JSON.stringify(value) }] },
    execute: () => config,
  }))
}
`

func TestConfig(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for _, c := range []struct {
		name   string
		config any
		want   string   // the configuration as apply gets it
		wrong  []string // or what is said of it
	}{
		{"defaults", json.RawMessage(`{"times":2}`), `{"times":2,"word":"hi"}`, nil},
		{"all", map[string]any{"times": 3, "word": "ho", "names": []string{"a"}}, `{"names":["a"],"times":3,"word":"ho"}`, nil},
		{"value", lossless.Obj(lossless.M("times", lossless.Int(1))), `{"times":1,"word":"hi"}`, nil},
		{"absent", nil, "", []string{"the configuration of plugin file ./plugins/greeter.js does not fit its Config", "config.times"}},
		{"null", json.RawMessage("null"), "", []string{"config.times"}},
		{"every", json.RawMessage(`{"times":"x","word":1,"names":[2]}`), "", []string{"config.times", "config.word", "config.names[0]"}},
		{"misspelt", json.RawMessage(`{"times":1,"wrod":"x"}`), "", []string{"wrod", "word"}},
		{"list", json.RawMessage(`[]`), "", []string{"config"}},
		{"broken", json.RawMessage(`{`), "", []string{"read the configuration of plugin file ./plugins/greeter.js"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := r.mount("greeter.js", greeter, c.config)
			defer r.dispose(f)
			if c.wrong == nil {
				if f.State() != cordis.Active {
					t.Fatalf("it is %s: %v", f.State(), f.Err())
				}
				var got, want any
				if err := json.Unmarshal([]byte(r.Works(r.Call("config", nil))), &got); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte(c.want), &want); err != nil {
					t.Fatal(err)
				}
				a, _ := json.Marshal(got)
				b, _ := json.Marshal(want)
				if string(a) != string(b) {
					t.Errorf("apply gets %s, want %s", a, b)
				}
				return
			}
			if f.State() != cordis.Failed {
				t.Fatalf("it is %s", f.State())
			}
			for _, has := range c.wrong {
				if !strings.Contains(f.Err().Error(), has) {
					t.Errorf("the error lacks %q: %v", has, f.Err())
				}
			}
		})
	}
}

// TestReconfigured: a plugin whose configuration is changed in place runs again with
// the new one, and keeps the old one where that does not fit.
func TestReconfigured(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := r.mount("greeter.js", greeter, json.RawMessage(`{"times":1}`))
	if err := f.Update(r.Context(), json.RawMessage(`{"times":2}`)); err != nil {
		t.Fatal(err)
	}
	if got := r.Works(r.Call("config", nil)); !strings.Contains(got, `"times":2`) {
		t.Errorf("it is %s", got)
	}
	if err := f.Update(r.Context(), json.RawMessage(`{"times":[]}`)); err == nil {
		t.Error("a wrong one was taken")
	}
	if got := r.Works(r.Call("config", nil)); !strings.Contains(got, `"times":2`) {
		t.Errorf("it is %s", got)
	}
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f := r.mount("say.js", says("hi"), json.RawMessage(`{"a":1}`))
	if err := f.Err(); err == nil || !strings.Contains(err.Error(), "plugin file ./plugins/say.js takes no config: it exports no Config") {
		t.Errorf("error %v", err)
	}
	if f := r.mount("say.js", says("hi"), json.RawMessage(`{}`)); f.State() != cordis.Active {
		t.Errorf("an empty one: %v", f.Err())
	}
	for name, c := range map[string]struct{ code, want string }{
		"kind":   {"export const Config = { word: { type: 'strin' } }\nexport function apply() {}", "plugin file ./plugins/x.js"},
		"no_map": {"export const Config = 5\nexport function apply() {}", "Config"},
		"body":   {"return { apply() {} }", "export default"},
		"none":   {"const a = 1", "./plugins/x.js"},
		"import": {"import fs from 'node:fs'\nexport default {}", "./plugins/x.js"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.host.Open(r.Context(), file(t, "x.js", c.code))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestParts: a plugin of several files, in TypeScript too, is one module, and its
// errors name the part.
func TestParts(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	f, err := files.From("plugins/many", map[string]string{
		"index.ts":     "import { word } from './lib/word'\nimport data from './data.json'\nexport default { name: 'many', apply(ctx: any) { ctx.provide('many', { word: () => word(data.n), fail: () => word(-1) }) } }",
		"lib/word.ts":  "enum Kind { A = 'a' }\n\nexport const word = (n: number): string => {\n  if (n < 0) throw new Error('too few')\n  return Kind.A.repeat(n)\n}",
		"data.json":    `{"n": 3}`,
		"lib/types.js": "never imported",
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Path = "./plugins/many"
	fiber, err := r.ctx.Mount(r.open(f), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := fiber.Await(r.Context()); err != nil {
		t.Fatal(err)
	}
	user := r.mount("user.js", `export default { name: 'user', inject: ['many', 'tools'], apply(ctx) { harness.registerTool(ctx, harness.defineTool({ name: 'use', description: '', parameters: {},
		output: { schema: { type: 'string' }, render: (a, v) => [{ type: 'text', text: v }] }, execute: (args) => args.fail ? ctx.many.fail() : ctx.many.word() })) } }`, nil)
	if user.State() != cordis.Active {
		t.Fatalf("it is %s: %v", user.State(), user.Err())
	}
	if got := r.Works(r.Call("use", nil)); got != "aaa" {
		t.Errorf("it says %q", got)
	}
	r.Fails(r.Call("use", `{"fail":true}`), "too few")
	report := r.Inspect("plugins", "./plugins/many")
	for _, has := range []string{"## Plugin file ./plugins/many", "Source, as it was loaded, index.ts:", "Source, as it was loaded, lib/word.ts:", "- provides: many"} {
		if !strings.Contains(report, has) {
			t.Errorf("the report lacks %q:\n%s", has, report)
		}
	}
	f.Files["index.ts"] = strings.Replace(f.Files["index.ts"], "data.n", "data.", 1)
	if _, err := r.host.Open(r.Context(), f); err == nil || !strings.Contains(err.Error(), "many/index.ts:3:") {
		t.Errorf("error %v", err)
	}
}
