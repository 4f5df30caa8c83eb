package qjs

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// readModule has a dispatcher that tells how a module ended and what it exports.
const readModule = `
const host = __host;
__hold((op, names, end) => {
  end.then(() => host('ok', JSON.stringify(names)), (e) => host('bad', String(e), String(e && e.stack)));
});`

func runModule(t *testing.T, source string) (how string, args []string, err error) {
	t.Helper()
	vm := open(t, Options{})
	vm.SetHost(func(op string, a []string) (string, bool, error) {
		how, args = op, a
		return "", false, nil
	})
	if _, err := eval(vm, readModule); err != nil {
		t.Fatal(err)
	}
	code, err := vm.CompileModule(source, "m.js")
	if err != nil {
		return "", nil, err
	}
	defer code.Free()
	names, end, err := vm.RunModule(code)
	if err != nil {
		return "", nil, err
	}
	defer names.Free()
	defer end.Free()
	if _, _, err := vm.RunModule(code); err == nil {
		t.Error("it ran twice")
	}
	if _, _, err := vm.Call("module", names, end); err != nil {
		t.Fatal(err)
	}
	if _, _, err := vm.RunJobs(1000); err != nil {
		t.Fatal(err)
	}
	if list, more := vm.Unhandled(); len(list)+more > 0 {
		t.Errorf("unhandled: %+v", list)
	}
	return how, args, nil
}

func TestModule(t *testing.T) {
	for name, c := range map[string]struct {
		source, how, want string
	}{
		"exports":   {"export const a = 1; export default { b: 2 }; let c = 3; export { c as d }", "ok", `{"a":1,"d":3,"default":{"b":2}}`},
		"nothing":   {"", "ok", "{}"},
		"strict":    {"export const a = this === undefined && (function () { return this === undefined })()", "ok", `{"a":true}`},
		"awaits":    {"export const a = await new Promise((ok) => Promise.resolve(5).then(ok))", "ok", `{"a":5}`},
		"throws":    {"\n  throw new TypeError('x')", "bad", "TypeError: x"},
		"rejects":   {"await null; throw new TypeError('y')", "bad", "TypeError: y"},
		"imports":   {"const x = await import('./x.js')", "bad", "could not load module"},
		"hash_bang": {"#!/usr/bin/env node\nexport const a = 1", "ok", `{"a":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			how, args, err := runModule(t, c.source)
			if err != nil || how != c.how || !strings.Contains(args[0], c.want) {
				t.Errorf("%s %q, %v", how, args, err)
			}
			if name == "throws" && !strings.Contains(args[1], "(m.js:2:") {
				t.Errorf("stack %q", args[1])
			}
		})
	}
}

func TestModuleRefused(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		line   int
	}{
		"syntax":       {"const a = 1\nconst b = = 2", 2},
		"return":       {"\nreturn 1", 2},
		"static":       {"import x from './x.js'", 0},
		"twice":        {"export const a = 1\nexport { a }", 2},
		"not_declared": {"export { a }", 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := runModule(t, c.source)
			var e *Error
			if !errors.As(err, &e) || e.Kind != KindSyntax || c.line != 0 && e.Line != c.line {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// TestModuleKinds: a script is no module, and the other way round; both are still
// there after the mistake.
func TestModuleKinds(t *testing.T) {
	vm := open(t, Options{})
	module, err := vm.CompileModule("export const a = 1", "m.js")
	if err != nil {
		t.Fatal(err)
	}
	script, err := vm.CompileScript("1", "s.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vm.RunScript(module); err == nil {
		t.Error("a module ran as a script")
	}
	if _, _, err := vm.RunModule(script); err == nil {
		t.Error("a script ran as a module")
	}
	script.Free()
	module.Free()
	if _, _, err := vm.RunModule(module); err == nil {
		t.Error("a module ran that was freed")
	}
}

// TestModuleBounds: a module's own code is bounded as any.
func TestModuleBounds(t *testing.T) {
	for name, c := range map[string]struct {
		source string
		limit  time.Duration
		kind   Kind
	}{
		"loop":   {"for (;;);", 100 * time.Millisecond, KindInterrupted},
		"memory": {"const a = []; for (;;) a.push(new Array(1e5).fill(1))", time.Minute, KindOutOfMemory},
	} {
		t.Run(name, func(t *testing.T) {
			vm := open(t, Options{MemoryLimit: 16 << 20})
			vm.SetDeadline(time.Now().Add(c.limit))
			code, err := vm.CompileModule(c.source, "m.js")
			if err != nil {
				t.Fatal(err)
			}
			names, end, err := vm.RunModule(code)
			names.Free()
			end.Free()
			if k, _ := KindOf(err); k != c.kind && !(c.kind == KindOutOfMemory && vm.OutOfMemory()) {
				t.Errorf("got %v", err)
			}
		})
	}
}
