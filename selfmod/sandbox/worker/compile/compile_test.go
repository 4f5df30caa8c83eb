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

// prelude calls the body and reports how it ended.
const prelude = `
const host = __host;
__hold((op, fn) => {
  const bad = (e) => { host('bad', e instanceof Error ? e.name + ': ' + e.message : String(e), (e && e.stack) || ''); };
  fn().then((v) => { host('ok', String(v)); }, bad);
});`

// body runs a body to its end.
type ended struct{ how, text, stack string }

func newVM(t testing.TB) (*qjs.VM, *ended) {
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
	code, err := vm.CompileStripped(prelude, "prelude.js")
	if err != nil {
		t.Fatal(err)
	}
	if err := vm.EvalBytecode(code); err != nil {
		t.Fatal(err)
	}
	vm.SetDeadline(time.Now().Add(10 * time.Second))
	return vm, end
}

const file = "dyn-1.js"

func runSource(t *testing.T, source string) (*Unit, ended) {
	t.Helper()
	vm, end := newVM(t)
	unit, err := Source(vm, source, file)
	if err != nil {
		t.Fatalf("compile: %v", err)
	}
	fn, err := vm.RunScript(unit.Code)
	if err != nil || !fn.IsFunction() {
		t.Fatalf("run: %v", err)
	}
	if _, _, err := vm.Call("run", fn); err != nil {
		t.Fatal(err)
	}
	if _, _, err := vm.RunJobs(1000); err != nil {
		t.Fatal(err)
	}
	return unit, *end
}

func TestPositions(t *testing.T) {
	for name, c := range map[string]struct {
		source     string
		typescript bool
		want       []string
	}{
		"first_line":   {"throw new Error('x')", false, []string{"at <anonymous> (dyn-1.js:1:16)"}},
		"second_line":  {"\nthrow new Error('x')", false, []string{"at <anonymous> (dyn-1.js:2:16)"}},
		"nested":       {"function deep() {\n  null.x\n}\nconst f = () => deep()\nf()", false, []string{"at deep (dyn-1.js:2:7)", "at f (dyn-1.js:4:21)", "at <anonymous> (dyn-1.js:5:2)"}},
		"callback":     {"[1].map(function each() {\n\tthrow new Error('x')\n})", false, []string{"at each (dyn-1.js:2:17)", "at <anonymous> (dyn-1.js:1:8)"}},
		"after_await":  {"await null\n\nthrow new Error('x')", false, []string{"at <anonymous> (dyn-1.js:3:16)"}},
		"crlf":         {"const a = 1\r\n\r\nthrow new Error('x')", false, []string{"at <anonymous> (dyn-1.js:3:16)"}},
		"separator":    {"const a = '\u2028'\nthrow new Error('x')", false, []string{"at <anonymous> (dyn-1.js:2:16)"}},
		"non_ascii":    {"const s = 'héllo 日本 😀'; throw new Error(s)", false, []string{"at <anonymous> (dyn-1.js:1:40)"}},
		"ts_first":     {"const a: number = 1; throw new Error('x')", true, []string{"at <anonymous> (dyn-1.js:1:32)"}},
		"ts_types":     {"interface A {\n  b: string\n}\n\ntype C = A & { d: 1 }\nfunction deep(a?: A): never {\n  throw new Error('x')\n}\ndeep()", true, []string{"at deep (dyn-1.js:7:13)", "at <anonymous> (dyn-1.js:9:1)"}},
		"ts_crlf":      {"const a: number = 1\r\n\r\nthrow new Error('x')", true, []string{"at <anonymous> (dyn-1.js:3:11)"}},
		"ts_separator": {"const a: string = '\u2028'\nthrow new Error('x')", true, []string{"at <anonymous> (dyn-1.js:2:11)"}},
		"ts_non_ascii": {"const s: string = '日本 😀'; throw new Error(s)", true, []string{"at <anonymous> (dyn-1.js:1:37)"}},
		"ts_await":     {"const a: number = await 1\nawait null\nthrow new Error('x')", true, []string{"at <anonymous> (dyn-1.js:3:11)"}},
		"ts_enum":      {"enum E { A, B }\nthrow new Error(E[0])", true, []string{"at <anonymous> (dyn-1.js:2:11)"}},
	} {
		t.Run(name, func(t *testing.T) {
			unit, end := runSource(t, c.source)
			if end.how != "bad" || unit.TypeScript != c.typescript {
				t.Errorf("%+v, TypeScript %t", end, unit.TypeScript)
			}
			if diff := cmp.Diff(c.want, unit.Positions.Frames(end.stack)); diff != "" {
				t.Errorf("frames (-want +got):\n%s\nof the stack:\n%s", diff, end.stack)
			}
		})
	}
}

// TestTypeScript: what is accepted, and what it gives.
func TestTypeScript(t *testing.T) {
	for name, c := range map[string]struct {
		source, want string
		typescript   bool
	}{
		"plain":       {"return 1 + 1", "2", false},
		"no_return":   {"", "undefined", false},
		"comment_end": {"return 3 // the end", "3", false},
		"strict":      {"'use strict'; return this === undefined", "true", false},
		"as":          {"return ({ type: 'text' as const }).type", "text", true},
		"satisfies":   {"return [1] satisfies number[]", "1", true},
		"generic":     {"const id = <T,>(x: T): T => x; return id<number>(4)", "4", true},
		"enum":        {"enum E { A = 5 }; return E.A", "5", true},
		"class":       {"class A { constructor(private x: number, public y?: string) {} get() { return this.x } }; return new A(6).get()", "6", true},
		"non_null":    {"const a: { b?: number } = { b: 7 }; return a!.b!", "7", true},
		"using":       {"const r = []; { using x = { [Symbol.dispose]() { r.push('gone') } } } return r", "gone", false},
		"decorator":   {"function d(v) { return v } @d class A { x() { return 8 } } return new A().x()", "8", false},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "using" {
				c.source = "Symbol.dispose ??= Symbol('dispose'); Symbol.asyncDispose ??= Symbol('asyncDispose'); " + c.source
			}
			unit, end := runSource(t, c.source)
			if end.how != "ok" || end.text != c.want || unit.TypeScript != c.typescript {
				t.Errorf("%+v, TypeScript %t", end, unit.TypeScript)
			}
		})
	}
}

func TestSyntax(t *testing.T) {
	long := strings.Repeat("a + ", 100) + "@ + " + strings.Repeat("b + ", 100) + "c"
	for name, c := range map[string]struct {
		source, excerpt, message string
	}{
		"closes_a_call": {
			"return {\n  name: 'oops',\n  apply(ctx) {}\n});",
			"dyn-1.js:4:2\n});\n ^\nSyntaxError: Expected \";\" but found \")\"", "Expected \";\" but found \")\"",
		},
		"line_and_column": {
			"const a = 1\nconst b = = 2", "dyn-1.js:2:11\nconst b = = 2\n          ^\nSyntaxError: Unexpected \"=\"", "Unexpected \"=\"",
		},
		"tabs": {
			"if (true) {\n\tconst é = 'ü' 5\n}", "dyn-1.js:2:16\n const é = 'ü' 5\n               ^\nSyntaxError: Expected \";\" but found \"5\"", "Expected \";\" but found \"5\"",
		},
		"twice": {
			"const x = 1\nconst x = 2", "dyn-1.js:2:7\nconst x = 2\n      ^\nSyntaxError: The symbol \"x\" has already been declared", "The symbol \"x\" has already been declared",
		},
		"missing_brace": {
			"function f() {\n  if (a) {\n}\n", "dyn-1.js:3:2\n}\n ^\nSyntaxError: Unexpected end of the code: the \"{\" opened at 1:14 is never closed",
			"Unexpected end of the code: the \"{\" opened at 1:14 is never closed",
		},
		"missing_parenthesis": {
			"foo(1, 2", "dyn-1.js:1:9\nfoo(1, 2\n        ^\nSyntaxError: Unexpected end of the code: the \"(\" opened at 1:4 is never closed",
			"Unexpected end of the code: the \"(\" opened at 1:4 is never closed",
		},
		"missing_value": {
			"const a =", "dyn-1.js:1:10\nconst a =\n         ^\nSyntaxError: Unexpected end of the code: Unexpected \"}\"", "Unexpected end of the code: Unexpected \"}\"",
		},
		"template": {
			"return `abc", "dyn-1.js:1:12\nreturn `abc\n           ^\nSyntaxError: Unexpected end of the code: the template opened at 1:8 is never closed",
			"Unexpected end of the code: the template opened at 1:8 is never closed",
		},
		"comment": {
			"/* abc", "dyn-1.js:1:7\n/* abc\n      ^\nSyntaxError: Unexpected end of the code: the comment opened at 1:1 is never closed",
			"Unexpected end of the code: the comment opened at 1:1 is never closed",
		},
		"regexp": {
			"const a = 1\nreturn /a{2,1}/", "dyn-1.js:2:8\nreturn /a{2,1}/\n       ^\nSyntaxError: invalid repetition count", "invalid repetition count",
		},
		"ts_regexp": {
			"const a: number = 1\nreturn /a{2,1}/", "dyn-1.js:2:8\nreturn /a{2,1}/\n       ^\nSyntaxError: invalid repetition count", "invalid repetition count",
		},
		"import": {
			"import fs from 'fs'\nreturn 1", "dyn-1.js:1:8\nimport fs from 'fs'\n       ^\nSyntaxError: Unexpected \"fs\"",
			"Unexpected \"fs\"\nThe code runs as the BODY of an async function, so there are no import and export statements: `return` the Plugin, and reach services with inject: ['fs', …] and ctx.",
		},
		"export": {
			"\nexport default { apply() {} }", "dyn-1.js:2:1\nexport default { apply() {} }\n^\nSyntaxError: Unexpected \"export\"",
			"Unexpected \"export\"\nThe code runs as the BODY of an async function, so there are no import and export statements: `return` the Plugin, and reach services with inject: ['fs', …] and ctx.",
		},
		"hashbang": {
			"#!/usr/bin/env node\nreturn 1", "dyn-1.js:1:2\n#!/usr/bin/env node\n ^\nSyntaxError: Syntax error \"!\"",
			"Syntax error \"!\"\nThe code is no script file: remove the first line (#!…).",
		},
		"namespace": {
			"namespace A { export const b = 1 }\nreturn A.b", "dyn-1.js:1:11\nnamespace A { export const b = 1 }\n          ^\nSyntaxError: Expected \";\" but found \"A\"",
			"Expected \";\" but found \"A\"\nA namespace cannot stand inside a function body: use an object or plain functions instead.",
		},
		"long_line": {
			long, "", "Expected identifier but found \"+\"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			vm, _ := newVM(t)
			_, err := Source(vm, c.source, file)
			var f *wire.Fault
			if !errors.As(err, &f) {
				t.Fatalf("got %v", err)
			}
			if f.Code != wire.CodeSyntax || f.Name != "SyntaxError" {
				t.Errorf("%#v", f)
			}
			if diff := cmp.Diff(c.message, f.Message); c.message != "" && diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.excerpt, f.Excerpt); c.excerpt != "" && diff != "" {
				t.Errorf("excerpt (-want +got):\n%s", diff)
			}
			lines := strings.Split(f.Excerpt, "\n")
			if len(lines) != 4 || len([]rune(lines[1])) > limits.SourceLine || strings.TrimLeft(lines[2], " ") != "^" || len(lines[2]) > limits.SourceLine {
				t.Errorf("excerpt:\n%s", f.Excerpt)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	vm, _ := newVM(t)
	nest := func(n int, open, shut string) string { return strings.Repeat(open, n) + strings.Repeat(shut, n) }
	for name, c := range map[string]struct {
		source, code string
	}{
		"largest":       {"return 1" + strings.Repeat(" ", limits.Source-8), ""},
		"too_large":     {"return 1" + strings.Repeat(" ", limits.Source-7), wire.CodeTooLarge},
		"deep":          {"return " + nest(limits.SourceNesting-1, "[", "]"), ""},
		"too_deep":      {"return " + nest(limits.SourceNesting+1, "[", "]"), wire.CodeSyntax},
		"deep_open":     {strings.Repeat("(", 100_000), wire.CodeSyntax},
		"deep_template": {"return " + nest(limits.SourceNesting+1, "`${", "}`"), wire.CodeSyntax},
		"in_a_string":   {"return '" + nest(limits.SourceNesting+1, "[", "]") + "'", ""},
		"in_a_comment":  {"// " + nest(limits.SourceNesting+1, "[", "]") + "\n/* " + strings.Repeat("(", 5000) + "*/ return 1", ""},
		"in_a_regexp":   {"return /" + strings.Repeat(`\(`, 5000) + "/", ""},
		"after_ratio":   {"const a = 1 / 2; const b = a / '" + strings.Repeat("(", 5000) + "'", ""},
		"prefixes":      {"return " + strings.Repeat("!", 200_000) + "1", wire.CodeSyntax},
		"invalid_utf8":  {"return '\xff'", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Source(vm, c.source, file)
			var f *wire.Fault
			if errors.As(err, &f); err == nil != (c.code == "") || f != nil && f.Code != c.code {
				t.Errorf("got %#v", err)
			}
			if f != nil && len(f.Excerpt) > 1000 {
				t.Errorf("an excerpt of %d bytes", len(f.Excerpt))
			}
		})
	}
}

func TestFrames(t *testing.T) {
	p := &Positions{file: file}
	stack := "    at f (dyn-1.js:3:4)\n    at native\n    at call (native)\n    at g (prelude.js:3:4)\n    at dyn-1.js:9:1\n" +
		"    at e\x1b[31mvil (dyn-1.js:2:1)\n    at " + strings.Repeat("n", 500) + " (dyn-1.js:2:1)\n    at h (dyn-1.js:1:1)\nnonsense\n    at x (dyn-1.js:0:1)\n"
	want := []string{"at f (dyn-1.js:2:4)", "at <anonymous> (dyn-1.js:8:1)", "at e[31mvil (dyn-1.js:1:1)", "at " + strings.Repeat("n", maxName-1) + "… (dyn-1.js:1:1)"}
	if diff := cmp.Diff(want, p.Frames(stack)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if n := len(p.Frames(strings.Repeat(stack, 100))); n != maxFrames {
		t.Errorf("%d frames", n)
	}
	if (*Positions)(nil).Frames(stack) != nil {
		t.Error("frames without positions")
	}
}

func FuzzSource(f *testing.F) {
	for _, s := range []string{"return 1", "const a: number = 1; throw a", "`${a", "/a/ / 2", "import x", "a\r\n\u2028b: x = 😀", "});("} {
		f.Add(s, "    at f (dyn-1.js:1:2)")
	}
	vm, _ := newVM(f)
	f.Fuzz(func(t *testing.T, source, stack string) {
		unit, err := Source(vm, source, file)
		var fault *wire.Fault
		if err != nil && !errors.As(err, &fault) {
			t.Skip(err) // the engine: out of memory
		}
		if fault != nil && fault.Code == wire.CodeSyntax && strings.Count(fault.Excerpt, "\n") != 3 {
			t.Errorf("excerpt %q", fault.Excerpt)
		}
		if unit != nil {
			unit.Positions.Frames(stack)
		}
	})
}

func FuzzMappings(f *testing.F) {
	f.Add("AAAA,CAAC;;AACA", 1, 2)
	f.Fuzz(func(t *testing.T, text string, line, column int) {
		p := &Positions{file: file, sources: []source{{"a", newIndex(text)}}, generated: strings.Split(text, ";"), mapping: decodeMappings(text)}
		p.original(line, column)
	})
}

// TestPrinted: what a plugin prints shows the author's frames only.
func TestPrinted(t *testing.T) {
	p := &Positions{file: file}
	tests := []struct{ name, text, want string }{
		{"plain", "a\n    at noon", "a\n    at noon"},
		{"frames", "Error: x\n    at typeError (prelude.js:1:2)\n    at f (" + file + ":3:4)\n    at apply (native)\n    at <anonymous> (prelude.js:5:6)", "Error: x\n    at f (" + file + ":2:4)"},
		{"rest", "{ e: Error\n    at f (" + file + ":3:4)\n    at enter (prelude.js:5:6) } and\n    at noon", "{ e: Error\n    at f (" + file + ":2:4) } and\n    at noon"},
		{"wrapper", "Error\n    at <anonymous> (" + file + ":1:1)\n", "Error\n"},
		{"elsewhere", "Error\n    at f (other.js:1:1)", "Error\n    at f (other.js:1:1)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := p.Printed(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if got := (*Positions)(nil).Printed(tests[1].text); got != tests[1].text {
		t.Errorf("without positions: %q", got)
	}
}
