package limitstest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/selfmod"
)

func deep(open, middle, close string, n int) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(close, n)
}

// TestSourceThatTheParserCannotTake: depth and size of the source.
func TestSourceThatTheParserCannotTake(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.VMTimeout, c.CallTimeout = 3*time.Second, 10*time.Second })
	nested := fmt.Sprintf("nested deeper than %d", limits.SourceNesting)
	for name, c := range map[string]struct{ code, says string }{
		"parentheses":       {"return " + deep("(", "1", ")", 20_000), nested},
		"brackets":          {"return " + deep("[", "1", "]", 50_000), nested},
		"braces":            {deep("{", "", "}", 100_000), nested},
		"never_closed":      {deep("(", "", "", 100_000), nested},
		"closed_only":       {deep("", "", ")", 100_000), "failed to parse"},
		"type_arguments":    {"let x: " + deep("Array<", "number", ">", 20_000), ""},
		"template":          {"return " + deep("`${", "1", "}`", 20_000), nested},
		"unary":             {"return " + deep("!", "1", "", 200_000), ""},
		"minus":             {"return " + deep("- ", "1", "", 100_000), ""},
		"new":               {"return " + deep("new ", "x", "", 60_000), ""},
		"await":             {"return " + deep("await ", "1", "", 40_000), ""},
		"typeof":            {"return " + deep("typeof ", "1", "", 30_000), ""},
		"exponent":          {"return " + deep("2**", "1", "", 60_000), ""},
		"assignments":       {"let x; " + deep("x=", "1", "", 100_000), ""},
		"else_if":           {deep("if(0);else ", ";", "", 20_000), ""},
		"for":               {deep("for(;;)", ";", "", 30_000), ""},
		"if":                {deep("if(1)", ";", "", 50_000), ""},
		"do":                {deep("do ", ";", "", 50_000), ""},
		"with":              {deep("with(1)", ";", "", 30_000), ""},
		"member_chain":      {"return x" + deep(".x", "", "", 100_000), ""},
		"plus":              {"return 1" + deep("+1", "", "", 100_000), ""},
		"regexp_groups":     {"return /" + deep("(", "a", ")", 50_000) + "/", ""},
		"regexp_runtime":    {"return new RegExp('('.repeat(50000) + ')'.repeat(50000))", ""},
		"regexp_repeated":   {"return /" + deep("(?:", "a", "){2}", 900) + "/", ""},
		"regexp_big":        {"return /((((((((((a{1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000}){1000})/", ""},
		"huge_string":       {"return '" + strings.Repeat("x", limits.Source) + "'", fmt.Sprintf("more than the limit of %d", limits.Source)},
		"huge_typescript":   {"let x: number = 1; " + strings.Repeat("type T = { a: string };", 11_000), ""},
		"many_functions":    {strings.Repeat("()=>{};", 37_000), "did you forget `return`"},
		"many_errors":       {strings.Repeat("@", 200_000), "failed to parse"},
		"one_long_line":     {strings.Repeat("x ", 120_000), "failed to parse"},
		"types_union":       {"let x: " + strings.Repeat("'a' | ", 40_000) + "'b' = 'a' as any", ""},
		"types_conditional": {"type T = " + deep("A extends B ? C : ", "D", "", 14_000), ""},
		"types_keyof":       {"type T = " + deep("keyof ", "D", "", 40_000) + "; let x: T", ""},
		"types_infer":       {"type T = " + deep("() => ", "D", "", 40_000) + "; let x: T", ""},
		"types_array":       {"type T = D" + deep("[]", "", "", 100_000) + "; let x: T", ""},
		"types_as":          {"return 1" + deep(" as any", "", "", 35_000), ""},
		"types_new":         {"type T = " + deep("new () => ", "D", "", 25_000) + "; let x: T", ""},
		"jsx":               {"return " + deep("<a>", "", "</a>", 20_000), ""},
		"classes":           {deep("class X { x = ", "1", "}", 990), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			w.meanwhile(replaced, func() {
				res := w.Call("cordis_mount", map[string]string{"code": c.code})
				text := w.Fails(res, c.says)
				if len(text) > 3000 {
					t.Errorf("the error has %d characters", len(text))
				}
				t.Log(text[:min(len(text), 300)])
			})
		})
	}
	w.unnoticed()
}

// TestSourceThatEndsTheWorker: the parsers recurse, and only brackets are
// counted before. The mount is to blame, and the others come back.
func TestSourceThatEndsTheWorker(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"stack": "let y: any; return " + deep("!", "1", "", 200_000),
		"types": "return " + deep("<any>", "1", "", 50_000),
		"time":  "let y: any; " + deep("if(1)", ";", "", 50_000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(c *selfmod.Config) { c.CallTimeout = 5 * time.Second })
			w.meanwhile(replaced, func() {
				text := w.MountFails(code, "temporary Plugin dyn-2: the code")
				if !strings.Contains(text, "worker process") {
					t.Skip("the worker survives it: " + text)
				}
				if !strings.Contains(text, "its worker process was ended") {
					contains(t, text, "this mount is to blame")
				}
				w.started()
			})
			w.afresh()
			w.gone("dyn-2", "dyn-2")
			w.Works(w.Call("cordis_mount", map[string]string{"code": "return () => {}"}))
		})
	}
}
