package compile

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

type texts = map[string]string

// runModule compiles a module and gives what its plugin is, as JSON.
func runModule(t *testing.T, files texts, entry, file string) (*Unit, ended) {
	t.Helper()
	vm, end := newVM(t)
	unit, err := Module(vm, files, entry, file)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	fn, err := vm.RunScript(unit.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer fn.Free()
	if _, _, err := vm.Call("run", fn); err != nil {
		t.Fatal(err)
	}
	if _, _, err := vm.RunJobs(1000); err != nil {
		t.Fatal(err)
	}
	return unit, *end
}

// shows makes the text of a plugin: its toString.
const shows = `; Object.prototype.toString = function () { return JSON.stringify({ name: this.name, inject: this.inject, Config: this.Config, applied: this.apply(1, 2) }) };`

func TestModuleExports(t *testing.T) {
	for name, c := range map[string]struct {
		files texts
		want  string
	}{
		"default_object":   {texts{"a.js": "export default { name: 'n', inject: ['fs'], Config: { a: { type: 'string' } }, apply(c, d) { return [c, d, this.name] } }" + shows}, `{"name":"n","inject":["fs"],"Config":"{\"a\":{\"type\":\"string\"}}","applied":[1,2,"n"]}`},
		"default_function": {texts{"a.js": "export default function greet(c, d) { return d }" + shows}, `{"name":"greet","applied":2}`},
		"named":            {texts{"a.js": "export const name = 'n', inject = { required: ['a'] }; export function apply() { return 7 }" + shows}, `{"name":"n","inject":{"required":["a"]},"applied":7}`},
		"both":             {texts{"a.js": "export const inject = ['b']; export const Config = {}; export default function f() { return 1 }" + shows}, `{"name":"f","inject":["b"],"Config":"{}","applied":1}`},
		"named_wins":       {texts{"a.js": "export const name = 'outer'; export default { name: 'inner', apply() { return 1 } }" + shows}, `{"name":"outer","applied":1}`},
		"typescript":       {texts{"a.ts": "interface X { a: number }\nconst x: X = { a: 3 };\nexport default { apply(): number { return x.a } }" + shows}, `{"applied":3}`},
		"several": {texts{"a.js": "import { two } from './lib/two'; import data from './data.json'; import './side.js'; export function apply() { return two + data.n }" + shows,
			"lib/two.ts": "export { two } from '../deep/index.js'", "deep/index.ts": "export const two: number = 2", "data.json": `{"n":5}`, "side.js": ""}, `{"applied":7}`},
		"cycle":             {texts{"a.js": "import { b } from './b.js'; export const one = () => 1; export function apply() { return b() }" + shows, "b.js": "import { one } from './a.js'; export const b = () => one() + 1"}, `{"applied":2}`},
		"byte_order_mark":   {texts{"a.js": "\uFEFFexport function apply() { return 1 }" + shows}, `{"applied":1}`},
		"no_plugin":         {texts{"a.js": "export const apply = 5"}, "exports no plugin"},
		"class":             {texts{"a.js": "export default class X {}"}, "exports no plugin"},
		"empty":             {texts{"a.js": ""}, "exports no plugin"},
		"body_of_a_mount":   {texts{"a.js": "return { apply() {} }"}, "write `export default {…}` instead"},
		"throws_at_its_top": {texts{"a.js": "throw new Error('top')"}, "Error: top"},
	} {
		t.Run(name, func(t *testing.T) {
			entry := "a.js"
			if c.files["a.ts"] != "" {
				entry = "a.ts"
			}
			unit, end := runModule(t, c.files, entry, "plugins/"+entry)
			if !strings.Contains(end.text, c.want) {
				t.Errorf("%s %s\nwant %s", end.how, end.text, c.want)
			}
			if unit.TypeScript != (entry == "a.ts") {
				t.Errorf("TypeScript: %t", unit.TypeScript)
			}
		})
	}
}

func TestModuleRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		files texts
		want  string
	}{
		"bare":          {texts{"index.js": "\nimport x from 'lodash'"}, "plugins/p/index.js:2:15"},
		"bare_teaches":  {texts{"index.js": "import 'node:fs'"}, "a plugin imports nothing but its own files"},
		"outside":       {texts{"index.js": "import '../other.js'"}, "is outside of the plugin's folder"},
		"absolute":      {texts{"index.js": "import '/etc/passwd'"}, "a plugin imports nothing but its own files"},
		"missing":       {texts{"index.js": "import './x.js'", "y.js": ""}, `the plugin has no file "x.js"; its files are: index.js, y.js`},
		"dynamic":       {texts{"index.js": "const x = import('./y.js')", "y.js": ""}, "import() is not there"},
		"require":       {texts{"index.js": "require('./y.js')", "y.js": ""}, "require is not there"},
		"await_on_top":  {texts{"index.js": "export const x = await 1"}, "await in apply"},
		"in_an_import":  {texts{"index.js": "import './lib/y.ts'", "lib/y.ts": "\n\nconst x: = 1"}, "plugins/p/lib/y.ts:3:10"},
		"no_such_name":  {texts{"index.js": "import { z } from './y.js'; export const apply = z", "y.js": "export const a = 1"}, "No matching export"},
		"too_deep":      {texts{"index.js": "export const x = " + strings.Repeat("[", limits.SourceNesting+1)}, "nested deeper than"},
		"too_large":     {texts{"index.js": strings.Repeat(" ", limits.Source/2), "b.js": strings.Repeat(" ", limits.Source/2+1)}, "together"},
		"without_entry": {texts{"b.js": ""}, `no file "index.js"`},
		"return_inside": {texts{"index.js": "export const a = 1\nreturn { apply() {} }"}, "export default"},
	} {
		t.Run(name, func(t *testing.T) {
			vm, _ := newVM(t)
			_, err := Module(vm, c.files, "index.js", "plugins/p")
			f := new(wire.Fault)
			if !errors.As(err, &f) {
				t.Fatalf("error %v", err)
			}
			if text := f.Message + "\n" + f.Excerpt; !strings.Contains(text, c.want) {
				t.Errorf("%s\nwant %s", text, c.want)
			}
		})
	}
}

func TestModulePositions(t *testing.T) {
	unit, end := runModule(t, texts{
		"index.ts":    "import { fail } from './lib/fail'\nexport default { apply(): void {\n  fail()\n} }\nconst p = { toString() { return 'x' } }\nfail(true)",
		"lib/fail.ts": "type T = boolean\n\nexport function fail(now: T = false): void {\n  if (now) throw new Error('é' + 'here')\n}",
	}, "index.ts", "plugins/p")
	frames := strings.Join(unit.Positions.Frames(end.stack), "\n")
	for _, want := range []string{"at fail (plugins/p/lib/fail.ts:4:", "(plugins/p/index.ts:6:"} {
		if !strings.Contains(frames, want) {
			t.Errorf("frames:\n%s\nof %s\nwant %s", frames, end.stack, want)
		}
	}
	if strings.Contains(unit.Positions.Printed("x\n"+end.stack), "plugins/p:") {
		t.Errorf("printed: %s", unit.Positions.Printed("x\n"+end.stack))
	}
}

func FuzzModule(f *testing.F) {
	f.Add("import x from './b.js'; export default { apply() { return x } }", "export default 1")
	f.Add("export * from './b.js'", "export * from './index.js'")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a)+len(b) > 4096 {
			return
		}
		vm, _ := newVM(t)
		unit, err := Module(vm, texts{"index.ts": a, "b.js": b}, "index.ts", "plugins/p")
		if err == nil {
			unit.Code.Free()
		}
	})
}
