package sandbox_test

import (
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod/sandbox"
	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// printing is a host that keeps what the plugin prints and which errors come late.
type printing struct {
	host
	mu    sync.Mutex
	lines []string
}

func (h *printing) Console(_, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, text)
}

func (h *printing) Late(_ uint64, f *wire.Fault, _ bool) { h.Console("", "late: "+f.Message) }

func (h *printing) printed() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.lines, "\n")
}

type moduleFiles = map[string]string

// modules loads plugin files into one worker.
func modules(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.New(sandbox.Config{MemoryMB: 16, Exe: os.Getenv("DSH_TEST_WORKER"), VMTimeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// moduleSpec is a folder's, or of the only file.
func moduleSpec(files moduleFiles) sandbox.Spec {
	spec := sandbox.Spec{ID: "a.js", File: "plugins/p", Files: files, Entry: "index.ts"}
	for _, name := range []string{"a.js", "a.ts", "index.js"} {
		if _, ok := files[name]; ok {
			spec.Entry = name
		}
	}
	if len(files) == 1 {
		spec.File = "plugins/" + spec.Entry
	}
	return spec
}

// TestModuleExports: what a file may export, and what of it counts.
func TestModuleExports(t *testing.T) {
	t.Parallel()
	s := modules(t)
	const apply = "apply(ctx, config) { console.log('applied', config, this === undefined) }"
	for name, c := range map[string]struct {
		files  moduleFiles
		config string
		want   wire.Loaded
		prints string
	}{
		"object":   {moduleFiles{"a.js": "export default { name: 'n', inject: ['fs'], Config: { a: { type: 'string' } }, " + apply + " }"}, `{"a":"b"}`, wire.Loaded{Name: "n", Inject: []wire.Inject{{Name: "fs"}}, Config: `{"a":{"type":"string"}}`}, "applied { a: 'b' } false"},
		"function": {moduleFiles{"a.js": "export default function greet(ctx, config) { console.log('applied', config) }"}, "", wire.Loaded{Name: "greet"}, "applied {}"},
		"nameless": {moduleFiles{"a.js": "export default async (ctx, config) => { await null; console.log('applied', config) }"}, "", wire.Loaded{}, "applied {}"},
		"named":    {moduleFiles{"a.js": "export const name = 'n', inject = { required: ['a'], optional: ['b'] }, Config = { n: { type: 'integer', default: 3 } }; export function " + apply}, `{"n":3}`, wire.Loaded{Name: "n", Inject: []wire.Inject{{Name: "a"}, {Name: "b", Optional: true}}, Config: `{"n":{"type":"integer","default":3}}`}, "applied { n: 3 } true"},
		"both":     {moduleFiles{"a.js": "export const inject = ['b'], Config = {}; export default function f(ctx, config) { console.log('applied', config) }"}, "{}", wire.Loaded{Name: "f", Inject: []wire.Inject{{Name: "b"}}, Config: "{}"}, "applied {}"},
		"wins":     {moduleFiles{"a.js": "export const name = 'outer', other = 1; export default { name: 'inner', inject: ['x'], " + apply + " }"}, "", wire.Loaded{Name: "outer", Inject: []wire.Inject{{Name: "x"}}}, "applied {} false"},
		"apply":    {moduleFiles{"a.js": "export function apply() { console.log('applied by name') } export default { inject: ['x'], apply() { console.log('never') } }"}, "", wire.Loaded{Inject: []wire.Inject{{Name: "x"}}}, "applied by name"},
		"instance": {moduleFiles{"a.js": "class P { #n = 1; name = 'p'; apply() { console.log('applied', this.#n) } }\nexport default new P()"}, "", wire.Loaded{Name: "p"}, "applied 1"},
		"awaits":   {moduleFiles{"a.js": "const n = await Promise.resolve(2)\nexport default () => console.log('applied', n)"}, "", wire.Loaded{}, "applied 2"},
		"several": {moduleFiles{
			"index.ts": "import { word, type Word } from './lib/word'\nimport data from './data.json'\nexport const name: Word = word\nexport function apply(): void { console.log('applied', data.n) }", "lib/word.ts": "export type Word = string\nexport const word: Word = 'w'", "data.json": `{"n":1}`,
		}, "", wire.Loaded{Name: "w", TypeScript: true}, "applied 1"},
		"cycle": {moduleFiles{
			"index.js": "import { two } from './b.js'\nexport const one = () => 1\nexport default () => console.log('applied', two())", "b.js": "import { one } from './index.js'\nexport const two = () => one() + 1",
		}, "", wire.Loaded{}, "applied 2"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &printing{host: *newHost()}
			vm, loaded, err := s.Load(t.Context(), moduleSpec(c.files), h)
			if err != nil {
				t.Fatal(err)
			}
			defer vm.Close(t.Context())
			if c.want.Inject == nil {
				c.want.Inject = []wire.Inject{}
			}
			if diff := cmp.Diff(c.want, loaded); diff != "" {
				t.Errorf("loaded (-want +got):\n%s", diff)
			}
			if err := vm.Apply(t.Context(), 1, json.RawMessage("{}"), json.RawMessage(c.config)); err != nil {
				t.Fatal(err)
			}
			if got := h.printed(); got != c.prints {
				t.Errorf("it printed %q, want %q", got, c.prints)
			}
		})
	}
	if lock, ok := s.Lock(); !ok || runtime.GOOS == "linux" && lock.Seccomp != "on" {
		t.Errorf("the worker has no lock: %+v", lock)
	}
}

// TestModuleFails: what is wrong with a file is told as its author knows it, and
// nothing of it stays.
func TestModuleFails(t *testing.T) {
	t.Parallel()
	s := modules(t)
	const forms = "✓ export default { name: '…', inject: […], apply(ctx, config) { … } }"
	for name, c := range map[string]struct {
		files moduleFiles
		want  []string
	}{
		"nothing":         {moduleFiles{"a.js": ""}, []string{"the plugin file exports nothing", forms}},
		"no_apply":        {moduleFiles{"a.js": "export const name = 'x', helper = 1"}, []string{"must export a plugin", "It exports helper, name. The forms:", forms}},
		"default_number":  {moduleFiles{"a.js": "export default 5"}, []string{"(default is the number 5)", forms}},
		"default_class":   {moduleFiles{"a.js": "export default class X { apply() {} }"}, []string{"the default export is a class. Export its instance"}},
		"default_promise": {moduleFiles{"a.js": "export default (async () => ({ apply() {} }))()"}, []string{"the default export is a promise: write `export default await …`"}},
		"inject":          {moduleFiles{"a.js": "export const inject = 5; export function apply() {}"}, []string{"inject is a list of service names"}},
		"config_function": {moduleFiles{"a.js": "export const Config = () => ({}); export function apply() {}"}, []string{"Config says what configuration the plugin takes"}},
		"config_lossy":    {moduleFiles{"a.js": "export const Config = { a: { type: 'string', default: () => 1 } }; export function apply() {}"}, []string{"Config must be lossless JSON data", "Config.a.default"}},
		"mount_body":      {moduleFiles{"a.js": "return { apply() {} }"}, []string{"plugins/a.js:1:1", "write `export default { … }` instead of `return { … }`"}},
		"bare_import":     {moduleFiles{"index.js": "import './lib.ts'\nexport default () => {}", "lib.ts": "\n  import fs from 'node:fs'\n  fs.x"}, []string{"plugins/p/lib.ts:2:18", "imports nothing but its own files"}},
		"throws":          {moduleFiles{"index.js": "import './lib.ts'\nexport default () => {}", "lib.ts": "type T = 1\nfunction deep(): never { throw new RangeError('so') }\ndeep()"}, []string{"so\n", "plugins/p/lib.ts:2:36", "plugins/p/lib.ts:3:1"}},
		"loops":           {moduleFiles{"a.js": "for (;;);\nexport default () => {}"}, []string{"vmTimeout"}},
		"loops_later":     {moduleFiles{"a.js": "await null\nfor (;;);\nexport default () => {}"}, []string{"vmTimeout"}},
		"memory":          {moduleFiles{"a.js": "const a = []; for (;;) a.push(new Array(1e5).fill(1))"}, []string{"memory"}},
		"dynamic_import":  {moduleFiles{"a.js": "const n = './b.js'; await import(n)"}, []string{"import() is not available in a plugin"}},
		"timers":          {moduleFiles{"a.js": "setTimeout(() => {}, 1)"}, []string{"setTimeout is not available in the plugin sandbox"}},
		"too_large":       {moduleFiles{"a.js": "", "b.js": strings.Repeat(" ", limits.Source+1)}, []string{"together"}},
		"no_entry":        {moduleFiles{"b.js": ""}, []string{`has no file "index.ts"`}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &printing{host: *newHost()}
			vm, _, err := s.Load(t.Context(), moduleSpec(c.files), h)
			if err == nil {
				vm.Close(t.Context())
				t.Fatal("it was loaded")
			}
			text := err.Error()
			if e := new(sandbox.Error); errors.As(err, &e) && e.Fault != nil {
				text += "\n" + e.Fault.Excerpt + "\n" + strings.Join(e.Fault.Frames, "\n")
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%s\nhas no %q", text, want)
				}
			}
			if got := h.printed(); got != "" {
				t.Errorf("it printed %q", got)
			}
		})
	}
}

// TestModuleApplyFails: positions of what apply throws, and of what it prints.
func TestModuleApplyFails(t *testing.T) {
	t.Parallel()
	h := &printing{host: *newHost()}
	vm, _, err := modules(t).Load(t.Context(), moduleSpec(moduleFiles{
		"index.js": "import { fail } from './lib'\nexport default {\n  apply() {\n    try { fail() } catch (e) { console.log(e) }\n    fail()\n  },\n}",
		"lib.ts":   "export function fail(): never {\n  throw new Error('no')\n}",
	}), h)
	if err != nil {
		t.Fatal(err)
	}
	defer vm.Close(t.Context())
	var e *sandbox.Error
	if err := vm.Apply(t.Context(), 1, json.RawMessage("{}"), nil); !errors.As(err, &e) {
		t.Fatalf("apply: %v", err)
	}
	want := []string{"at fail (plugins/p/lib.ts:2:13)", "at apply (plugins/p/index.js:5:5)"}
	if diff := cmp.Diff(want, e.Fault.Frames); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if got := h.printed(); !strings.Contains(got, "at fail (plugins/p/lib.ts:2:13)\n    at apply (plugins/p/index.js:4:11)") {
		t.Errorf("it printed %q", got)
	}
}

// TestModuleHostile: a source that overflows a parser is refused, at worst with the
// worker, and then it is the one to blame; others can be loaded afterwards.
func TestModuleHostile(t *testing.T) {
	t.Parallel()
	s := modules(t)
	for name, text := range map[string]string{
		"prefixes": "import './b.js'; const x = " + strings.Repeat("!", 200_000) + "1",
		"else_if":  "import './b.js'; let x: number; " + strings.Repeat("if(x);else ", 23_000) + ";",
		"binary":   "import './b.js'; const x: number = " + strings.Repeat("1+", 125_000) + "1",
	} {
		t.Run(name, func(t *testing.T) {
			vm, _, err := s.Load(t.Context(), moduleSpec(moduleFiles{"index.ts": text, "b.js": ""}), &printing{host: *newHost()})
			if err == nil {
				vm.Close(t.Context())
				t.Fatal("it was loaded")
			}
			if e := new(sandbox.Error); !errors.As(err, &e) || e.Worker != 0 && !e.Blamed {
				t.Errorf("got %v", err)
			}
			vm, _, err = s.Load(t.Context(), moduleSpec(moduleFiles{"a.js": "export default () => {}"}), &printing{host: *newHost()})
			if err != nil {
				t.Fatal(err)
			}
			vm.Close(t.Context())
		})
	}
}
