package compile

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/internal/qjs"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

type texts = map[string]string

// moduleEnds has a dispatcher that tells how a module ended and what it exports.
const moduleEnds = `
const host = __host;
__hold((op, names, end) => {
  end.then(() => host('ok', JSON.stringify(names, (k, v) => typeof v === 'function' ? v.name + ': ' + v() : v)), (e) => host('bad', String(e), String(e && e.stack)));
});`

func newModuleVM(t testing.TB) (*qjs.VM, *ended) {
	t.Helper()
	vm, err := qjs.New(qjs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(vm.Close)
	end := new(ended)
	vm.SetHost(func(op string, args []string) (string, bool, error) {
		*end = ended{how: op, text: args[0]}
		if len(args) > 1 {
			end.stack = args[1]
		}
		return "", false, nil
	})
	code, err := vm.Compile(moduleEnds, "prelude.js")
	if err == nil {
		err = vm.EvalBytecode(code)
	}
	if err != nil {
		t.Fatal(err)
	}
	vm.SetDeadline(time.Now().Add(10 * time.Second))
	return vm, end
}

// runModule compiles and runs a module.
func runModule(t *testing.T, files texts, entry, file string) (*Unit, ended) {
	t.Helper()
	vm, end := newModuleVM(t)
	unit, err := Module(vm, files, entry, file)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	if !unit.Module {
		t.Error("it is no module")
	}
	names, ends, err := vm.RunModule(unit.Code)
	if err != nil {
		t.Fatal(err)
	}
	defer names.Free()
	defer ends.Free()
	if _, _, err := vm.Call("module", names, ends); err != nil {
		t.Fatal(err)
	}
	if _, _, err := vm.RunJobs(1000); err != nil {
		t.Fatal(err)
	}
	return unit, *end
}

func TestModule(t *testing.T) {
	for name, c := range map[string]struct {
		files texts
		want  string
	}{
		"alone":           {texts{"a.js": "export default { name: 'n' }; export const inject = ['fs']"}, `{"default":{"name":"n"},"inject":["fs"]}`},
		"function":        {texts{"a.js": "export default function greet() { return 1 }"}, `{"default":"greet: 1"}`},
		"nameless":        {texts{"a.js": "export default () => 1"}, `{"default":"default: 1"}`},
		"typescript":      {texts{"a.ts": "interface X { a: number }\nconst x: X = { a: 3 };\nexport const y: number = x.a"}, `{"y":3}`},
		"types_imported":  {texts{"a.ts": "import type { T } from './t'\nimport { U } from 'elsewhere'\nexport const y = 3 as T | U"}, `{"y":3}`},
		"decorator":       {texts{"a.js": "function d(v) { return v } @d class A { x() { return 8 } } export const y = new A().x()"}, `{"y":8}`},
		"strict":          {texts{"a.js": "export const y = this === undefined && (function () { return this === undefined })()"}, `{"y":true}`},
		"awaits":          {texts{"a.js": "export const y = await Promise.resolve(4)"}, `{"y":4}`},
		"awaits_imported": {texts{"a.js": "import { z } from './b.js'; export const y = z + 1", "b.js": "export const z = await Promise.resolve(4)"}, `{"y":5}`},
		"several": {texts{
			"a.js":       "import { two } from './lib/two'; import data from './data.json'; import * as up from './lib/sub'; import './side.js'; export const y = two + data.n + up.one",
			"lib/two.ts": "export { two } from '../deep/index.js'", "deep/index.ts": "export const two: number = 2", "data.json": `{"n":5}`, "side.js": "",
			"lib/sub/index.js": "export { one } from '../../one'", "one.js": "export const one = 1",
		}, `{"y":8}`},
		"exported_from":   {texts{"a.js": "export * from './b.js'", "b.js": "export const y = 1"}, `{"y":1}`},
		"cycle":           {texts{"a.js": "import { b } from './b.js'; export const one = () => 1; export const y = b()", "b.js": "import { one } from './a.js'; export function b() { return typeof one }"}, `"y":`},
		"itself":          {texts{"a.js": "import * as me from './a.js'; export const y = typeof me"}, `{"y":"object"}`},
		"same_names":      {texts{"a.js": "import { other } from './b.js'; export default function greet() { return other }", "b.js": "function greet() { return 2 }\nexport const other = greet()"}, `{"default":"greet: 2"}`},
		"nameless_import": {texts{"a.js": "import './b.js'; export default () => 1", "b.js": ""}, `{"default":"default: 1"}`},
		"byte_order_mark": {texts{"a.js": "\uFEFFexport const y = 1"}, `{"y":1}`},
		"hash_bang":       {texts{"a.js": "#!/usr/bin/env node\nexport const y = 1"}, `{"y":1}`},
		"empty":           {texts{"a.js": ""}, `{}`},
		"empty_imported":  {texts{"a.js": "import * as b from './b.js'; export const y = Object.keys(b)", "b.js": ""}, `{"y":[]}`},
		"throws":          {texts{"a.js": "throw new Error('top')"}, "Error: top"},
		"word_import":     {texts{"a.js": "// import x from 'y'\nexport const y = 'import'"}, `{"y":"import"}`},
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
		at    string
		want  string
	}{
		"bare":          {texts{"index.js": "\nimport x from 'lodash'"}, "p/index.js:2:15", `"lodash" is no file of the plugin: a plugin imports nothing but its own files (./file.js); reach services with inject: ['fs', …] and ctx`},
		"built_in":      {texts{"index.js": "import 'node:fs'"}, "p/index.js:1:8", "a plugin imports nothing but its own files"},
		"address":       {texts{"index.js": "import 'https://example.com/a.js'"}, "p/index.js:1:8", "a plugin imports nothing but its own files"},
		"outside":       {texts{"index.js": "import '../other.js'"}, "p/index.js:1:8", "is outside of the plugin's folder"},
		"outside_below": {texts{"index.js": "import './lib/a.js'", "lib/a.js": "export * from '../../x.js'"}, "p/lib/a.js:1:15", "is outside of the plugin's folder"},
		"absolute":      {texts{"index.js": "import '/etc/passwd'"}, "p/index.js:1:8", "is an absolute path"},
		"missing":       {texts{"index.js": "import './zebra.ts'", "other.js": ""}, "p/index.js:1:8", `the plugin has no file "zebra.ts"; its files are: index.js, other.js`},
		"misspelt":      {texts{"index.js": "import './helpr.js'", "helper.js": ""}, "p/index.js:1:8", `did you mean "helper.js"?`},
		"other_kind":    {texts{"index.js": "import './a.css'", "a.css": ""}, "p/index.js:1:8", "only .js, .ts and .json files can"},
		"dynamic":       {texts{"index.js": "const x = import('./y.js')", "y.js": ""}, "p/index.js:1:18", "import() is not there"},
		"require":       {texts{"index.js": "import './y.js'; const a = 1, b = require('./y.js')", "y.js": ""}, "p/index.js:1:43", "require is not there"},
		"common_js":     {texts{"index.js": "import './y.js'\nmodule.exports = { apply() {} }", "y.js": ""}, "p/index.js:2:1", "write `export default { … }`"},
		"in_an_import":  {texts{"index.js": "import './lib/y.ts'", "lib/y.ts": "\n\nconst x: = 1"}, "p/lib/y.ts:3:10", "Unexpected"},
		"in_json":       {texts{"index.js": "import './y.json'", "y.json": "{\n  a: 1 }"}, "p/y.json:2:3", "Expected"},
		"alone":         {texts{"index.js": "const a = 1\nconst b = = 2"}, "p/index.js:2:11", "Unexpected \"=\""},
		"never_closed":  {texts{"index.js": "export default {\n  apply() {\n"}, "p/index.js:2:12", "the \"{\" opened at 2:11 is never closed"},
		"regexp":        {texts{"index.js": "import './y.js'\nconst r = /a{2,1}/", "y.js": "export const a = 1"}, "p/index.js:2:11", "invalid repetition count"},
		"no_such_name":  {texts{"index.js": "import { z } from './y.js'; export const apply = z", "y.js": "export const a = 1"}, "p/index.js:1:10", "No matching export in \"y.js\""},
		"body":          {texts{"index.js": "const a = 1\nreturn {\n  apply() {}\n}"}, "p/index.js:2:1", "write `export default { … }` instead of `return { … }`"},
		"return_inside": {texts{"index.js": "export const a = 1\nreturn { apply() {} }"}, "p/index.js:2:1", "write `export default { … }` instead"},
		"types_in_js":   {texts{"index.js": "export const a: number = 1"}, "p/index.js:1:15", "This is TypeScript"},
		"too_deep":      {texts{"index.js": "export const x = " + strings.Repeat("[", limits.SourceNesting+1)}, "p/index.js:1:", "nested deeper than"},
		"deep_json":     {texts{"index.js": "import './y.json'", "y.json": strings.Repeat("[", 100_000)}, "p/y.json:1:", "nested deeper than"},
		"no_stack":      {texts{"index.js": "export const x = " + strings.Repeat("!", 200_000) + "1"}, "p/index.js:1:1", "nested too deep"},
		"no_utf8":       {texts{"index.js": "export const x = 1\n//\xff"}, "p/index.js:2:3", "no UTF-8"},
		"too_large":     {texts{"index.js": strings.Repeat(" ", limits.Source/2), "b.js": strings.Repeat(" ", limits.Source/2+1)}, "", "together"},
		"without_entry": {texts{"b.js": ""}, "", `no file "index.js"; its files are: b.js`},
	} {
		t.Run(name, func(t *testing.T) {
			vm, _ := newModuleVM(t)
			_, err := Module(vm, c.files, "index.js", "plugins/p")
			f := new(wire.Fault)
			if !errors.As(err, &f) {
				t.Fatalf("error %v", err)
			}
			if !strings.HasPrefix(f.Excerpt, "plugins/"+c.at) && c.at != "" || !strings.Contains(f.Message, c.want) {
				t.Errorf("%s\n%s\nwant %s at %s", f.Excerpt, f.Message, c.want, c.at)
			}
		})
	}
}

func TestModulePositions(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		files texts
		want  []string
	}{
		"alone":      {"plugins/a.js", texts{"a.js": "function deep() {\n  throw new Error('é')\n}\ndeep()"}, []string{"at deep (plugins/a.js:2:18)", "at <anonymous> (plugins/a.js:4:5)"}},
		"mark":       {"a.js", texts{"a.js": "\uFEFFthrow new Error('é')"}, []string{"at <anonymous> (a.js:1:16)"}},
		"odd_name":   {"a (1)/a.js", texts{"a.js": "\nthrow new Error('é')"}, []string{"at <anonymous> (a (1)/a.js:2:16)"}},
		"prelude":    {"prelude.js", texts{"prelude.js": "\nthrow new Error('é')"}, []string{"at <anonymous> (prelude.js:2:16)"}},
		"typescript": {"plugins/a.ts", texts{"a.ts": "type A = 1\n\nconst é: string = '日'; throw new Error(é)"}, []string{"at <anonymous> (plugins/a.ts:3:34)"}},
		"several": {"plugins/p", texts{
			"index.ts":    "import { fail } from './lib/fail'\nexport default { apply(): void {\n  fail()\n} }\nfail(true)",
			"lib/fail.ts": "type T = boolean\n\nexport function fail(now: T = false): void {\n  if (now) throw new Error('é' + 'here')\n}",
		}, []string{"at fail (plugins/p/lib/fail.ts:4:22)", "at <anonymous> (plugins/p/index.ts:5:1)"}},
	} {
		t.Run(name, func(t *testing.T) {
			entry := "index.ts"
			if len(c.files) == 1 {
				for entry = range c.files {
				}
			}
			unit, end := runModule(t, c.files, entry, c.file)
			if diff := cmp.Diff(c.want, unit.Positions.Frames(end.stack)); diff != "" {
				t.Errorf("frames (-want +got):\n%s\nof the stack:\n%s", diff, end.stack)
			}
			if got := unit.Positions.Printed("Error: é\n" + end.stack); !strings.Contains(got, "    "+c.want[0]) {
				t.Errorf("printed: %s", got)
			}
		})
	}
}

// TestModuleOrder: of several complaints it is always the same that is told.
func TestModuleOrder(t *testing.T) {
	files := texts{"index.js": "import './a.js'; import './b.js'; import './c.js'", "a.js": "const = 1", "b.js": "const = 1", "c.js": "const = 1"}
	for range 20 {
		vm, _ := newModuleVM(t)
		_, err := Module(vm, files, "index.js", "p")
		var f *wire.Fault
		if !errors.As(err, &f) || !strings.HasPrefix(f.Excerpt, "p/a.js:1:7\n") {
			t.Fatalf("got %#v", err)
		}
	}
}

func FuzzModule(f *testing.F) {
	for _, a := range []string{
		"import x from './b.js'; export default { apply() { return x } }", "export * from './b.js'", "const a: number = await import('./b')",
		"export default class", "return {}", "module.exports = require('./b')", "import * as b from './b'; `${b", "\uFEFF#!x\nexport {}",
	} {
		f.Add(a, "export default 1", "    at f (plugins/p/index.ts:1:2)")
	}
	f.Add("export {}", "export * from './index.js'; export * from './b.js'", "")
	f.Fuzz(func(t *testing.T, a, b, stack string) {
		if len(a)+len(b) > 4096 {
			return
		}
		vm, _ := newModuleVM(t)
		unit, err := Module(vm, texts{"index.ts": a, "b.js": b}, "index.ts", "plugins/p")
		var fault *wire.Fault
		switch {
		case errors.As(err, &fault):
			if fault.Code == wire.CodeSyntax && fault.Excerpt != "" && strings.Count(fault.Excerpt, "\n") != 3 {
				t.Errorf("excerpt %q", fault.Excerpt)
			}
		case err == nil:
			unit.Positions.Frames(stack)
			unit.Code.Free()
		}
	})
}
