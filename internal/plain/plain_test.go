package plain_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

func TestNameKeepsOrdinaryNames(t *testing.T) {
	for _, name := range []string{
		"change-logger", "greeter provider", "日本語", "my_plugin", "__init__", "C++", "C#", "@scope/name", "dyn-3 (draft)",
		"Ärger & Söhne", "it's", "a.b:c", "v1.2.3", "привет", "שלום", "x = y", "100%", "emoji 🎉", "1. Step",
	} {
		if got := plain.Name(name); got != name {
			t.Errorf("Name(%q) = %q", name, got)
		}
	}
}

func TestName(t *testing.T) {
	for name, c := range map[string][2]string{
		"newline":        {"a\n## forged\r\nb", "a ## forged b"},
		"heading":        {"# Plugins", "Plugins"},
		"list":           {"- dyn-9 active", "dyn-9 active"},
		"quote":          {"> quoted", "quoted"},
		"rule":           {"---", "(unnamed)"},
		"code":           {"```js\nx```", "'''js x'''"},
		"link":           {"[a](http://x)", "(a)(http://x)"},
		"html":           {"<img src=x>", "‹img src=x›"},
		"table":          {"a | b", "a ¦ b"},
		"emphasis":       {"**bold**", "∗∗bold∗∗"},
		"quotes":         {`x" (active)`, `x' (active)`},
		"separators":     {"a\u2028b\u2029c\u0085d", "a b c d"},
		"bidi":           {"a\u202eb\u2066c\u200f", "abc"},
		"zero_width":     {"a\u200bb\ufeffc\u2060", "abc"},
		"tags":           {"a\U000e0041\ufe0fb", "ab"},
		"ansi":           {"\x1b[31mred\x1b[0m", "red"},
		"empty":          {"", "(unnamed)"},
		"only_invisible": {"\u200b\u202e \x00", "(unnamed)"},
		"invalid":        {"a\xffb", "a\ufffdb"},
		"long":           {strings.Repeat("é", 81), strings.Repeat("é", 79) + "…"},
		"long_enough":    {strings.Repeat("é", 80), strings.Repeat("é", 80)},
		"megabyte":       {strings.Repeat("x", 1<<20), strings.Repeat("x", 79) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.Name(c[0]); got != c[1] {
				t.Errorf("Name(%.60q) = %q, want %q", c[0], got, c[1])
			}
		})
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain é 漢\n\tx":       "plain é 漢\n\tx",
		"a\x1b[2Jb\x00\x7f":    `a\x1b[2Jb\x00\x7f`,
		"a\r\nb":               `a\r` + "\nb",
		"\u202ea\u200b\ufe0f":  "<U+202E>a<U+200B><U+FE0F>",
		"a\u00a0b\u2028\u0085": "a<U+00A0>b<U+2028><U+0085>",
		"\U000e0041\xff":       "<U+E0041>\ufffd",
	} {
		got := plain.Visible(in)
		if got != want || plain.Visible(got) != got || plain.Terminal(got) != got {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTerminal(t *testing.T) {
	for name, c := range map[string][2]string{
		"plain":       {"a\tb\nc", "a\tb\nc"},
		"colour":      {"\x1b[1;31mred\x1b[0m!", "red!"},
		"title":       {"\x1b]0;evil\x07ok", "ok"},
		"link":        {"\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		"dcs":         {"\x1bPq#0\x1b\\ok", "ok"},
		"c1":          {"\u009b31mred\u009d0;x\u009cok\u0085", "redok"},
		"charset":     {"\x1b(Bok", "ok"},
		"reset":       {"\x1bcok", "ok"},
		"unfinished":  {"ok\x1b]0;evil\nnext", "ok\nnext"},
		"alone":       {"ok\x1b", "ok"},
		"cr":          {"real\rfake\r\nx", "real\nfake\nx"},
		"backspace":   {"ab\b\bcd\x7f", "abcd"},
		"bidi":        {"a\u202eb\u2069", "ab"},
		"nested":      {"\x1b[\x1b[31mx", "x"},
		"c1_as_bytes": {"a\x9b31mb", "a\ufffd31mb"},
		"joined":      {"\x1b\x1b[31m[31mx", "[31mx"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.Terminal(c[0]); got != c[1] {
				t.Errorf("Terminal(%q) = %q, want %q", c[0], got, c[1])
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		s    string
		max  int
		want string
	}{
		{"short", 5, "short"},
		{strings.Repeat("日", 100), 60, strings.Repeat("日", 35) + "… (65 characters cut)"},
		{strings.Repeat("x", 1000), 100, strings.Repeat("x", 75) + "… (925 characters cut)"},
		{"abcdef", 4, "abc…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, ""},
		{"abcdef", -1, ""},
	} {
		got := plain.Cut(c.s, c.max)
		if utf8.RuneCountInString(got) > max(c.max, 0) || (got != c.want && !strings.Contains(c.want, "characters")) {
			t.Errorf("Cut(%.10q, %d) = %q, want %q", c.s, c.max, got, c.want)
		}
	}
	got := plain.Error("x\n" + strings.Repeat("y", 5000))
	if !strings.HasPrefix(got, "x\nyyy") || !strings.HasSuffix(got, " characters cut)") || len([]rune(got)) > limits.ErrorText {
		t.Errorf("Error = %.20q…%q", got, got[len(got)-40:])
	}
}

func TestPreview(t *testing.T) {
	for name, c := range map[string][2]string{
		"compact":   {"{ \"a b\" : [ 1,\n 2 ] }", `{"a b":[1,2]}`},
		"escapes":   {`{"a\" b": "\\" , "c": 1}`, `{"a\" b":"\\","c":1}`},
		"cut":       {`"` + strings.Repeat("é", 200) + `"`, `"` + strings.Repeat("é", 119) + "…"},
		"exact":     {`"` + strings.Repeat("x", 118) + `"`, `"` + strings.Repeat("x", 118) + `"`},
		"trailing":  {`"` + strings.Repeat("x", 118) + `"` + "\n  ", `"` + strings.Repeat("x", 118) + `"`},
		"invisible": {"\"a\u202eb\u2028\U000e0041\x1b\"", `"a\u202eb\u2028\udb40\udc41\u001b"`},
		"no_json":   {"not json", "notjson"},
		"empty":     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.Preview(c[0]); got != c[1] {
				t.Errorf("Preview = %q, want %q", got, c[1])
			}
		})
	}
}

func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		s    string
		max  int
		want string
	}{
		"plain":      {"[x] `code` | # not touched", 80, "[x] `code` | # not touched"},
		"one_line":   {"  a\n\n b\tc  ", 80, "a b c"},
		"cut":        {"abcdef", 4, "abc…"},
		"nothing":    {"abc", 0, ""},
		"controls":   {"a\x00\x1b[2Jb\u202e", 80, "ab"},
		"space_edge": {"abc def", 5, "abc …"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.Line(c.s, c.max); got != c.want {
				t.Errorf("Line = %q, want %q", got, c.want)
			}
		})
	}
}

// text draws text with many of the characters that matter here.
var text = rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.OneOf(
		rapid.String(),
		rapid.SampledFrom([]string{"\x1b", "[", "]", "0;31m", "\x07", "\u009b", "\u009d", "\u009c", `\`, "\n", "\r", " ", "\u202e", "\u200b", "#", "-", ">", "`", "\xff", "\ue000"}),
		rapid.StringN(50, 200, -1),
	), 0, 12).Draw(t, "parts"), "")
})

// check tells what every function promises of every text.
func check(fatal func(string, ...any), s string, max int) {
	safe := func(name, got string, newline bool, most int) {
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > most {
			fatal("%s(%q) = %q: not UTF-8 or longer than %d", name, s, got, most)
		}
		for _, r := range got {
			if unicode.Is(unicode.Cc, r) && !(newline && (r == '\n' || r == '\t')) || r == 0x202e {
				fatal("%s(%q) = %q holds %U", name, s, got, r)
			}
			if !newline && (unicode.Is(unicode.Cf, r) || r == 0x2028 || r == 0x2029) {
				fatal("%s(%q) = %q holds %U", name, s, got, r)
			}
		}
	}
	same := func(name, once, twice string) {
		if once != twice {
			fatal("%s(%q) = %q, again %q", name, s, once, twice)
		}
	}
	n := plain.Name(s)
	safe("Name", n, false, limits.Name)
	same("Name", n, plain.Name(n))
	if n == "" || strings.ContainsAny(n, "`\"[]<>|*~\\") || strings.ContainsAny(n[:1], "#-+= ") {
		fatal("Name(%q) = %q", s, n)
	}
	l := plain.Line(s, max)
	safe("Line", l, false, max)
	same("Line", l, plain.Line(l, max))
	e := plain.Error(s)
	safe("Error", e, true, limits.ErrorText)
	same("Error", e, plain.Error(e))
	c := plain.Cut(s, max)
	if !utf8.ValidString(c) || utf8.RuneCountInString(c) > max {
		fatal("Cut(%q, %d) = %q", s, max, c)
	}
	same("Cut", c, plain.Cut(c, max))
	term := plain.Terminal(s)
	safe("Terminal", term, true, len(s)*3)
	same("Terminal", term, plain.Terminal(term))
	p := plain.Preview(s)
	safe("Preview", p, false, limits.Preview*12+1)
	if json.Valid([]byte(s)) && utf8.ValidString(s) && !strings.HasSuffix(p, "…") && !json.Valid([]byte(p)) {
		fatal("Preview(%q) = %q is no JSON any more", s, p)
	}
}

func TestPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check(t.Fatalf, text.Draw(t, "text"), rapid.IntRange(0, 300).Draw(t, "max"))
	})
}

func FuzzPlain(f *testing.F) {
	for _, seed := range []string{"greeter", "\x1b[31mx", "\x1b]0;x\x07", "a\u202eb", "# x\n- y", `{"a": [1]}`, "\xff\u009b", "\"\\\u200b\""} {
		f.Add(seed, 20)
	}
	f.Fuzz(func(t *testing.T, s string, max int) {
		if max < 0 || max > 1<<20 {
			return
		}
		check(t.Fatalf, s, max)
	})
}

func BenchmarkName(b *testing.B) {
	for b.Loop() {
		plain.Name("greeter provider")
	}
}

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"ordinary", `{"a":"é ü 日本 🙂"}`, `{"a":"é ü 日本 🙂"}`},
		{"bidirectional", "{\"a\":\"\u202ex\u2028\"}", `{"a":"\u202ex\u2028"}`},
		{"control", "{\"a\":\"\u0085\u009b\"}", `{"a":"\u0085\u009b"}`},
		{"beyond_16_bits", "\"\U000e0001\"", `"\udb40\udc01"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := plain.Escape(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
