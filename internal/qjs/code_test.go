package qjs

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	lib "modernc.org/libquickjs"
)

func TestSyntaxErrors(t *testing.T) {
	for _, c := range []struct {
		name, src, message string
		line, column       int
	}{
		{"unexpected", "let a = 1\nlet b = ;", "unexpected token in expression: ';'", 2, 9},
		{"unterminated", "`abc", "unexpected end of string", 1, 1},
		{"regexp", "let x;\n/a{2,1}/", "invalid repetition count", 2, 1},
		{"code_points", "'😀é'; let = ;", "", 1, 13},
		{"import", "import x from 'y'", "", 1, 8},
		{"zero_byte", "a\x00b", "", 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := open(t, Options{})
			_, err := vm.Compile(c.src, "dir/file.js")
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("Compile = %v; want an *Error", err)
			}
			want := &Error{Kind: KindSyntax, Name: "SyntaxError", Message: c.message, File: "dir/file.js", Line: c.line, Column: c.column}
			if c.message == "" {
				want.Message = e.Message
			}
			if diff := cmp.Diff(want, e, cmpopts.IgnoreFields(Error{}, "Stack")); diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
		})
	}
	if _, err := open(t, Options{}).Compile("1", "a\x00b"); err == nil {
		t.Error("a file name with a zero byte was taken")
	}
}

func TestThrown(t *testing.T) {
	const cut = MaxText
	for _, c := range []struct {
		name, src string
		want      Error
	}{
		{"error", "\n\n  throw new TypeError('no')", Error{Name: "TypeError", Message: "no", File: "test.js", Line: 3, Column: 22}},
		{"engine", "null.x", Error{Name: "TypeError", Message: "cannot read property 'x' of null", File: "test.js", Line: 1, Column: 5}},
		{"class", // the constructor that a class gets by itself is a frame of its own
			"class E extends Error { get name() { return 'E' } }\nthrow new E('m')", Error{Name: "E", Message: "m", File: "test.js", Line: 1, Column: 51}},
		{"code", "throw Object.assign(new Error('m'), {code: 'ENOENT'})", Error{Name: "Error", Message: "m", Code: "ENOENT", File: "test.js", Line: 1, Column: 30}},
		{"code_number", "throw {name: 'N', message: 'm', code: 5}", Error{Name: "N", Message: "m"}},
		{"string", "throw 'text'", Error{Message: "text"}},
		{"number", "throw 42", Error{Message: "42"}},
		{"null", "throw null", Error{Message: "null"}},
		{"undefined", "throw undefined", Error{Message: "undefined"}},
		{"symbol", "throw Symbol('x')", Error{Message: "a symbol"}},
		{"object", "throw {a: 1}", Error{Message: "[object Object]"}},
		{"bigint", "throw 10n", Error{Message: "10"}},
		{"getters_throw", "throw {get name() { throw 1 }, get message() { throw 2 }, toString() { throw 3 }}", Error{}},
		{"proxy", "throw new Proxy({}, {get(t, k) { return typeof k === 'string' ? 'p:' + k : undefined }})",
			Error{Name: "p:name", Message: "p:message", Code: "p:code"}},
		{"long", "throw 'é'.repeat(100000)", Error{Message: strings.Repeat("é", cut/2)}},
		{"json", "JSON.parse('{a')", Error{Name: "SyntaxError", Message: "expecting property name", File: "test.js", Line: 1, Column: 11}},
		{"forged_interrupt", "throw Object.assign(new InternalError('interrupted'), {})", Error{Name: "InternalError", Message: "interrupted", File: "test.js", Line: 1, Column: 38}},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := open(t, Options{})
			_, err := eval(vm, c.src)
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("error %v; want an *Error", err)
			}
			if diff := cmp.Diff(&c.want, e, cmpopts.IgnoreFields(Error{}, "Stack")); diff != "" {
				t.Errorf("%v: %s", err, diff)
			}
			want(t, vm, "1 + 1", "2") // nothing is left pending
		})
	}
}

func TestKindOfOutOfMemory(t *testing.T) {
	for _, c := range []struct {
		name         string
		e            Error
		isError, oom bool
		tag          int32
		want         Kind
	}{
		{"plain", Error{Name: "InternalError", Message: "out of memory"}, true, true, lib.EJS_TAG_OBJECT, KindOutOfMemory},
		{"size_overflow", Error{Name: "InternalError", Message: "out of memory"}, true, false, lib.EJS_TAG_OBJECT, KindOutOfMemory},
		{"regexp", Error{Name: "SyntaxError", Message: "out of memory"}, true, true, lib.EJS_TAG_OBJECT, KindOutOfMemory},
		{"forged_regexp", Error{Name: "SyntaxError", Message: "out of memory"}, true, false, lib.EJS_TAG_OBJECT, KindThrown},
		{"forged_object", Error{Name: "InternalError", Message: "out of memory"}, false, true, lib.EJS_TAG_OBJECT, KindThrown},
		{"null", Error{Message: "null"}, false, true, lib.EJS_TAG_NULL, KindOutOfMemory},
		{"forged_null", Error{Message: "null"}, false, false, lib.EJS_TAG_NULL, KindThrown},
		{"nothing", Error{}, false, true, lib.EJS_TAG_UNINITIALIZED, KindOutOfMemory},
		{"no_text", Error{Name: "InternalError"}, true, true, lib.EJS_TAG_OBJECT, KindOutOfMemory},
		{"other_after_one", Error{Name: "Error", Message: "x"}, true, true, lib.EJS_TAG_OBJECT, KindThrown},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := kindOf(&c.e, c.isError, c.oom, c.tag); got != c.want {
				t.Errorf("kindOf = %v; want %v", got, c.want)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]*Error{
		"E: m":         {Name: "E", Message: "m"},
		"E":            {Name: "E"},
		"m (f.js:1:2)": {Message: "m", File: "f.js", Line: 1, Column: 2},
		"thrown":       {},
		"interrupted":  {Kind: KindInterrupted},
	} {
		if got := e.Error(); got != want {
			t.Errorf("Error = %q; want %q", got, want)
		}
	}
	if got := Kind(99).String(); got != "kind 99" {
		t.Errorf("Kind(99) = %q", got)
	}
	if _, ok := KindOf(ErrClosed); ok {
		t.Error("KindOf finds a kind in ErrClosed")
	}
}

func FuzzPosition(f *testing.F) {
	for _, s := range []string{"    at f (a.js:3:24)\n", "at a:b.js:1:2", "at f (native)", "x:99999999999:1", ":1:2", "(((1:2:3)"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stack string) {
		e := &Error{Stack: stack}
		e.position()
		if (e.File == "") != (e.Line == 0 && e.Column == 0) && e.File == "" || e.Line < 0 || e.Column < 0 {
			t.Fatalf("%q gives %q:%d:%d", stack, e.File, e.Line, e.Column)
		}
	})
}

func TestBytecode(t *testing.T) {
	a, b := open(t, Options{}), open(t, Options{})
	src := "function f() {\n  throw new Error('x')\n}\n__hold(f);\n'done'"
	plain, err := a.Compile(src, "mounts/demo.js")
	if err != nil {
		t.Fatal(err)
	}
	v, err := b.RunBytecode(plain)
	if err != nil {
		t.Fatal(err)
	}
	if text, ok := v.Text(); text != "done" || !ok {
		t.Errorf("completion value = %q, %v", text, ok)
	}
	var e *Error
	if _, _, err := b.Call(); !errors.As(err, &e) || e.File != "mounts/demo.js" || e.Line != 2 {
		t.Errorf("Call = %v; want the place in mounts/demo.js", err)
	}
	want(t, b, "f.toString().length", "39")

	stripped, err := a.CompileStripped(src, "prelude.js")
	if err != nil {
		t.Fatal(err)
	}
	if len(stripped) >= len(plain) {
		t.Errorf("stripped %d bytes, plain %d", len(stripped), len(plain))
	}
	again, err := a.Compile(src, "mounts/demo.js")
	if err != nil || string(again) != string(plain) {
		t.Errorf("Compile after CompileStripped gives other bytes (%v)", err)
	}
	c := open(t, Options{})
	if err := c.EvalBytecode(stripped); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Call(); !errors.As(err, &e) || e.Message != "x" {
		t.Errorf("Call = %v", err)
	}
	if err := c.EvalBytecode(nil); err == nil {
		t.Error("empty bytecode was taken")
	}
	if _, err := c.RunBytecode([]byte("not bytecode")); err == nil {
		t.Error("text was taken for bytecode")
	}
	bad, err := c.Compile("throw new Error('body')", "x.js")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.EvalBytecode(bad); err == nil || !strings.Contains(err.Error(), "body") {
		t.Errorf("EvalBytecode = %v", err)
	}
	if !strings.Contains(EngineVersion, "2026-06-04") {
		t.Errorf("EngineVersion = %q", EngineVersion)
	}
}

func TestRunJobs(t *testing.T) {
	vm := open(t, Options{})
	if _, err := eval(vm, `
		globalThis.log = [];
		for (const n of ['a', 'b', 'c']) (async () => { log.push(n + 0); await 0; log.push(n + 1); await 0; log.push(n + 2) })()`); err != nil {
		t.Fatal(err)
	}
	want(t, vm, "log.join()", "a0,b0,c0")
	if !vm.PendingJobs() {
		t.Error("no job is pending")
	}
	if ran, more, err := vm.RunJobs(0); ran != 0 || !more || err != nil {
		t.Errorf("RunJobs(0) = %d, %v, %v", ran, more, err)
	}
	if ran, more, err := vm.RunJobs(2); ran != 2 || !more || err != nil {
		t.Errorf("RunJobs(2) = %d, %v, %v", ran, more, err)
	}
	want(t, vm, "log.join()", "a0,b0,c0,a1,b1")
	if ran, more, err := vm.RunJobs(100); ran != 4 || more || err != nil {
		t.Errorf("RunJobs(100) = %d, %v, %v", ran, more, err)
	}
	want(t, vm, "log.join()", "a0,b0,c0,a1,b1,c1,a2,b2,c2")
	if ran, more, err := vm.RunJobs(100); ran != 0 || more || err != nil {
		t.Errorf("RunJobs with nothing to do = %d, %v, %v", ran, more, err)
	}
	vm.SetDeadline(time.Now().Add(-time.Second))
	_, _, err := vm.RunJobs(1)
	wantKind(t, err, KindInterrupted)
}

// TestScript: a script that stays in its VM keeps its file name and runs once.
func TestScript(t *testing.T) {
	vm, other := open(t, Options{}), open(t, Options{})
	s, err := vm.CompileScript("(function () {\n  return new Error('x').stack\n})", "plugin.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.RunScript(s); err == nil {
		t.Error("another VM ran it")
	}
	fn, err := vm.RunScript(s)
	if err != nil || !fn.IsFunction() {
		t.Fatalf("run: %v", err)
	}
	holdFunction(t, vm, "(f) => f()")
	if stack, _, err := vm.Call(fn); err != nil || !strings.Contains(stack, "plugin.js:2:") {
		t.Errorf("the stack is %q, %v", stack, err)
	}
	fn.Free()
	if _, err := vm.RunScript(s); err == nil {
		t.Error("it ran twice")
	}
	s.Free()
	_, err = vm.CompileScript("return (", "plugin.js")
	wantKind(t, err, KindSyntax)
	freed, err := vm.CompileScript("1", "plugin.js")
	if err != nil {
		t.Fatal(err)
	}
	freed.Free()
	if _, err := vm.RunScript(freed); err == nil {
		t.Error("a freed one ran")
	}
	if _, err := vm.CompileScript("throw 1", "a\x00b"); err == nil {
		t.Error("a file name with a zero byte was taken")
	}
	thrower, err := vm.CompileScript("throw new TypeError('ran')", "plugin.js")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vm.RunScript(thrower); err == nil || !strings.Contains(err.Error(), "ran") {
		t.Errorf("it gave %v", err)
	}
}
