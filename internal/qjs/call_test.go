package qjs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCallArguments(t *testing.T) {
	vm := open(t, Options{})
	if _, _, err := vm.Call("x"); !errors.Is(err, ErrNoFunction) {
		t.Fatalf("Call without a held function: %v", err)
	}
	holdFunction(t, vm, "(...a) => a.map(x => typeof x + ' ' + (Object.is(x, -0) ? '-0' : String(x))).join('|')")
	fn, err := eval2(vm, "(function f() { return 7 })")
	if err != nil {
		t.Fatal(err)
	}
	if !fn.IsFunction() {
		t.Error("IsFunction of a function is false")
	}
	if text, ok := fn.Text(); ok {
		t.Errorf("Text of a function = %q", text)
	}
	got, defined, err := vm.Call("s", 7, int64(1)<<53, -1, 1.5, true, false, nil, fn, Value{})
	if err != nil || !defined {
		t.Fatalf("Call = %v, %v", defined, err)
	}
	const text = "string s|number 7|number 9007199254740992|number -1|number 1.5|boolean true|boolean false|" +
		"undefined undefined|function function f() { return 7 }|undefined undefined"
	if diff := cmp.Diff(text, got); diff != "" {
		t.Error(diff)
	}
	other := open(t, Options{})
	foreign, err := eval2(other, "({})")
	if err != nil {
		t.Fatal(err)
	}
	fn.Free()
	fn.Free()
	for name, c := range map[string]struct {
		arg  any
		want string
	}{
		"type":    {struct{}{}, "argument 1: a struct {} cannot cross"},
		"foreign": {foreign, "argument 1: the value belongs to another VM"},
		"freed":   {fn, "argument 1: the value was freed"},
	} {
		if _, _, err := vm.Call("ok", c.arg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: Call = %v; want %q", name, err, c.want)
		}
	}
	if fn.IsFunction() {
		t.Error("IsFunction of a freed value")
	}
}

func TestCallResults(t *testing.T) {
	for _, c := range []struct {
		name, fn string
		text     string
		defined  bool
	}{
		{"string", "() => 'x'", "x", true},
		{"empty", "() => ''", "", true},
		{"undefined", "() => {}", "", false},
		{"number", "() => 1.5", "1.5", true},
		{"boolean", "() => false", "false", true},
		{"rope", "() => { let s = ''; for (let i = 0; i < 9999; i++) s += 'ab'; return s }", strings.Repeat("ab", 9999), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			vm := open(t, Options{})
			holdFunction(t, vm, c.fn)
			text, defined, err := vm.Call()
			if text != c.text || defined != c.defined || err != nil {
				t.Fatalf("Call = %q, %v, %v", text, defined, err)
			}
		})
	}
	for _, fn := range []string{"() => null", "() => ({})", "() => Symbol()", "() => () => 1", "async () => 1"} {
		vm := open(t, Options{})
		holdFunction(t, vm, fn)
		if text, defined, err := vm.Call(); err == nil || text != "" || defined {
			t.Errorf("%s: Call = %q, %v, %v; want an error", fn, text, defined, err)
		}
	}
}

func TestHold(t *testing.T) {
	vm := open(t, Options{})
	for src, text := range map[string]string{
		"__hold()":          "want one function",
		"__hold(1)":         "want one function",
		"__hold(f => f, 1)": "want one function",
	} {
		if _, err := eval(vm, src); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v; want %q", src, err, text)
		}
	}
	holdFunction(t, vm, "() => 'first'")
	if _, err := eval(vm, "__hold(() => 'second')"); err == nil || !strings.Contains(err.Error(), "held already") {
		t.Errorf("second __hold: %v", err)
	}
	want(t, vm, "delete globalThis.__hold && delete globalThis.__host && typeof __hold + typeof __host", "undefinedundefined")
	if text, _, err := vm.Call(); text != "first" || err != nil {
		t.Errorf("Call = %q, %v", text, err)
	}
}

func TestHost(t *testing.T) {
	vm := open(t, Options{})
	if _, err := eval(vm, "__host('x')"); err == nil || !strings.Contains(err.Error(), "no host function is set") {
		t.Errorf("without SetHost: %v", err)
	}
	long := strings.Repeat("long ", 1000)
	vm.SetHost(func(op string, args []string) (string, bool, error) {
		switch op {
		case "undefined":
			return "ignored", false, nil
		case "error":
			return "", false, errors.New(args[0])
		case "panic":
			panic("host bug")
		}
		return fmt.Sprintf("%s%q", op, args), true, nil
	})
	want(t, vm, "__host('op')", "op[]")
	want(t, vm, "__host('op', 'a', 1, 1.5, true, undefined, 'x' + 'y')", `op["a" "1" "1.5" "true" "" "xy"]`)
	want(t, vm, "typeof __host('undefined')", "undefined")
	want(t, vm, "try { __host('error', '100% wrong %s') } catch (e) { [e instanceof Error, e.name, e.message, typeof e.stack].join() }",
		"true,Error,100% wrong %s,string")
	want(t, vm, "try { __host('error', 'long '.repeat(1000)) } catch (e) { e.message }", long)
	for _, src := range []string{"__host()", "__host('op', {})", "__host('op', null)", "__host('op', Symbol())", "__host('op', () => 1)",
		"__host('op', 10n)", "__host(...Array(17).fill('x'))"} {
		if _, err := eval(vm, src); err == nil || !strings.Contains(err.Error(), "__host: ") {
			t.Errorf("%s: %v; want a teaching error", src, err)
		}
	}

	_, err := eval(vm, "try { __host('panic') } catch { globalThis.caught = 1 } finally { globalThis.caught = 1 }")
	var p *Panic
	if !errors.As(err, &p) || !p.Host || p.Value != "host bug" || !strings.Contains(string(p.Stack), "TestHost") {
		t.Errorf("panic: %v; want a *Panic of the host", err)
	}
	if !strings.Contains(err.Error(), "host function panicked: host bug") {
		t.Errorf("panic: %v", err)
	}
	want(t, vm, "typeof caught", "undefined")
}

func TestHostPanicInAsync(t *testing.T) {
	vm := open(t, Options{})
	vm.SetHost(func(string, []string) (string, bool, error) { panic("host bug") })
	var p *Panic
	if _, err := eval(vm, "(async () => { __host('x') })(); 1"); !errors.As(err, &p) || !p.Host {
		t.Errorf("in an async function: %v; want a *Panic of the host", err)
	}
	if _, err := eval(vm, "Promise.resolve().then(() => __host('x')); 1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := vm.RunJobs(10); !errors.As(err, &p) || !p.Host {
		t.Errorf("in a job: %v; want a *Panic of the host", err)
	}
}

// texts cross unchanged in both directions.
func TestTexts(t *testing.T) {
	vm := open(t, Options{MemoryLimit: 128 << 20})
	holdFunction(t, vm, "s => __host('echo', s)")
	vm.SetHost(func(_ string, args []string) (string, bool, error) { return args[0], true, nil })
	texts := map[string]string{
		"empty":        "",
		"zero":         "a\x00b\x00",
		"latin":        "naïve",
		"astral":       "😀 and 中",
		"json_escapes": `"\ud800\u0000"`,
		"replacement":  "\uFFFD",
		"near_ED":      "\uD7FF\uE000\u0365",
		"at_small":     strings.Repeat("x", smallText),
		"above_small":  strings.Repeat("x", smallText+1),
		"megabyte":     strings.Repeat("é", 512<<10),
	}
	if !raceEnabled {
		texts["16_megabytes"] = strings.Repeat("0123456789abcdef", 1<<20)
	}
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			got, defined, err := vm.Call(text)
			if err != nil || !defined || got != text {
				t.Fatalf("%d bytes came back as %d, %v, %v", len(text), len(got), defined, err)
			}
		})
	}
	t.Run("not_UTF8", func(t *testing.T) {
		if got, _, err := vm.Call("a\xffb"); got != "a\uFFFDb" || err != nil {
			t.Fatalf("Call = %q, %v", got, err)
		}
	})
	t.Run("lone_surrogates", func(t *testing.T) {
		want(t, vm, `"a\ud800b" + "\udc00" + "\ud83d\ude00"`, "a\uFFFDb\uFFFD😀")
		want(t, vm, `JSON.stringify("\ud800")`, `"\ud800"`)
		holdJSON := open(t, Options{})
		holdFunction(t, holdJSON, "s => JSON.stringify(JSON.parse(s))")
		if got, _, err := holdJSON.Call(`"\ud800\u0000é"`); got != `"\ud800\u0000é"` || err != nil {
			t.Fatalf("JSON text = %q, %v", got, err)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "a\x00", "\xed\xa0\x80", "😀", "\xed", "\xed\x9f\xbf", "\xf4\x90\x80\x80"} {
		f.Add(s)
	}
	vm := open(f, Options{})
	holdFunction(f, vm, "s => s")
	f.Fuzz(func(t *testing.T, s string) {
		got, _, err := vm.Call(s)
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\uFFFD"); got != want || !utf8.ValidString(got) {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}

// TestNested enters A, its host enters B, B's host enters A again.
func TestNested(t *testing.T) {
	a, b := open(t, Options{}), open(t, Options{})
	holdFunction(t, a, "s => s === 'in' ? 'deep' : s === 'throw' ? (() => { throw new RangeError('inner') })() : '[' + __host('b', s) + ']'")
	holdFunction(t, b, "s => '<' + __host('a', s) + '>'")
	a.SetHost(func(_ string, args []string) (string, bool, error) { return b.Call(args[0]) })
	b.SetHost(func(_ string, args []string) (string, bool, error) { return a.Call(strings.TrimPrefix(args[0], "!")) })

	if got, _, err := a.Call("!in"); got != "[<deep>]" || err != nil {
		t.Fatalf("nested = %q, %v", got, err)
	}
	_, _, err := a.Call("!throw")
	if err == nil || !strings.Contains(err.Error(), "RangeError: inner") {
		t.Fatalf("nested throw = %v", err)
	}
	for _, vm := range []*VM{a, b} {
		want(t, vm, "1 + 1", "2")
		if used := vm.StackUsed(); used > 2 {
			t.Errorf("%d stack slots are left in use", used)
		}
	}
	// Caught in the middle, the outer code goes on.
	want(t, a, "try { __host('b', '!throw') } catch (e) { 'caught ' + /RangeError: \\w+/.exec(e.message) }", "caught RangeError: inner")
}

func TestNestedWithoutEnd(t *testing.T) {
	a, b := open(t, Options{MaxStackSize: 300}), open(t, Options{MaxStackSize: 300})
	holdFunction(t, a, "s => __host('b', s)")
	holdFunction(t, b, "s => __host('a', s)")
	a.SetHost(func(_ string, args []string) (string, bool, error) { return b.Call(args[0]) })
	b.SetHost(func(_ string, args []string) (string, bool, error) { return a.Call(args[0]) })
	if _, _, err := a.Call("x"); err == nil || !strings.Contains(err.Error(), "stack overflow") {
		t.Fatalf("Call = %v; want a stack overflow", err)
	}
	want(t, a, "1 + 1", "2")
	want(t, b, "1 + 1", "2")
}
