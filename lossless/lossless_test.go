package lossless_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

func parse(t testing.TB, text string) lossless.Value {
	t.Helper()
	v, err := lossless.Parse([]byte(text))
	if err != nil {
		t.Fatalf("Parse(%.80q): %v", text, err)
	}
	return v
}

func TestParseKeeps(t *testing.T) {
	for name, text := range map[string]string{
		"null":            `null`,
		"scalars":         `[true,false,null,0,-1,"a"]`,
		"member_order":    `{"z":1,"a":2,"m":{"y":1,"b":2}}`,
		"number_literals": `[1.0,1e3,1E+3,-0.50,123456789012345678901234567890,-0]`,
		"proto":           `{"__proto__":{"constructor":1},"toString":2}`,
		"empty":           `[{},[],""]`,
		"html":            `"<a href='x'>&</a>"`,
		"lone_surrogates": `["\ud800","\udfff x","a\udc00\ud800"]`,
		"line_separators": "\"\u2028\u2029\"",
		"controls":        `"\u0000\b\f\n\r\t\u001f"`,
		"many_members":    `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9,"j":10,"k":11,"l":12,"m":13,"n":14,"o":15,"p":16,"q":17,"r":18,"":19}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, text).String(); got != text {
				t.Errorf("came back as %s, want %s", got, text)
			}
		})
	}
}

func TestParseNormalises(t *testing.T) {
	for name, c := range map[string][2]string{
		"white_space":    {" \t\r\n{ \"a\" : [ 1 , 2 ] } \n", `{"a":[1,2]}`},
		"escapes":        {`"\u0041\/\"\\\u00e9"`, `"A/\"\\é"`},
		"surrogate_pair": {`"\ud83d\ude00"`, `"😀"`},
		"high_then_pair": {`"\ud83d\ud83d\ude00"`, `"\ud83d😀"`},
		"upper_case_hex": {`"\uD800\u00E9"`, `"\ud800é"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parse(t, c[0]).String(); got != c[1] {
				t.Errorf("got %s, want %s", got, c[1])
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string][2]string{
		"empty":            {``, `json at byte 0: the text ends where a value is expected`},
		"trailing_data":    {`{} x`, `json at byte 3: data after the document: one JSON value is expected`},
		"two_documents":    {`1 2`, `json at byte 2: data after the document`},
		"nul_after":        {"1\x00", `json at byte 1: data after the document`},
		"trailing_comma":   {`[1,]`, `json at byte 3: ']' where a value is expected`},
		"object_comma":     {`{"a":1,}`, `json at byte 7: '}' where a key in double quotes is expected`},
		"wrong_bracket":    {`[1}`, `json at byte 2: '}' where ',' or ']' is expected`},
		"no_colon":         {`{"a" 1}`, `json at byte 5: '1' where ':' is expected`},
		"unclosed":         {`{"a":[1`, `json at byte 7, in a: the text ends where ',' or ']' is expected`},
		"leading_zero":     {`01`, `a number does not begin with 0`},
		"bare_minus":       {`-`, `json at byte 1: the text ends where a digit is expected`},
		"no_fraction":      {`1.`, `a digit is expected`},
		"no_exponent":      {`[1e+]`, `json at byte 4: ']' where a digit is expected`},
		"not_a_number":     {`NaN`, `json at byte 0: 'N' where a value is expected`},
		"cut_word":         {`tru`, `json at byte 0: 't' where a value is expected`},
		"single_quotes":    {`'a'`, `'\'' where a value is expected`},
		"raw_newline":      {"\"a\nb\"", `json at byte 2: control character 0x0a in a string: write it as \u000a`},
		"raw_after_escape": {"\"\\t\n\"", `control character 0x0a`},
		"bad_escape":       {`"\x"`, `json at byte 1: not an escape`},
		"short_unicode":    {`"\u12"`, `not an escape`},
		"bad_hex":          {`"\u12g4"`, `not an escape`},
		"unclosed_string":  {`"abc`, `json at byte 4: the text ends inside a string`},
		"unclosed_escape":  {`"a\`, `not an escape`},
		"invalid_utf8":     {"\"a\xff\"", `json at byte 2: not valid UTF-8`},
		"raw_surrogate":    {"\"\xed\xa0\x80\"", `json at byte 1: not valid UTF-8`},
		"byte_order_mark":  {"\ufeff{}", `'\ufeff' where a value is expected`},
		"duplicate":        {`{"cfg":{"items":[0,1,{"label":1,"x":2,"label":3}]}}`, `json at byte 38, in cfg.items[2]: duplicate key "label"`},
		"duplicate_escape": {`{"a":1,"\u0061":2}`, `json at byte 7: duplicate key "a"`},
		"duplicate_proto":  {`{"__proto__":1,"__proto__":2}`, `duplicate key "__proto__"`},
		"odd_path":         {`{"odd key":{"a":[[x]]}}`, `in ["odd key"].a[0]: 'x' where`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lossless.Parse([]byte(c[0]))
			if err == nil || !strings.Contains(err.Error(), c[1]) {
				t.Fatalf("got %v, want %s", err, c[1])
			}
			if e := (*lossless.SyntaxError)(nil); !errors.As(err, &e) || errors.Is(err, lossless.ErrDepth) {
				t.Errorf("%T is no plain SyntaxError", err)
			}
		})
	}
}

func TestDuplicateAmongMany(t *testing.T) {
	var text strings.Builder
	text.WriteByte('{')
	for i := range 5000 {
		text.WriteString(`"k` + strings.Repeat("x", i%7) + string(rune('0'+i%10)) + lossless.Int(int64(i)).String() + `":1,`)
	}
	text.WriteString(`"k00":2}`)
	if _, err := lossless.Parse([]byte(text.String())); err == nil || !strings.Contains(err.Error(), `duplicate key "k00"`) {
		t.Fatalf("got %v", err)
	}
}

// nested returns JSON text of the kind nested n deep.
func nested(kind string, n int) string {
	if kind == "array" {
		return strings.Repeat("[", n) + strings.Repeat("]", n)
	}
	return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1)
}

func TestDepth(t *testing.T) {
	for _, kind := range []string{"array", "object"} {
		for _, n := range []int{limits.DepthWorks, limits.Depth} {
			text := nested(kind, n)
			v := parse(t, text)
			if v.String() != text {
				t.Errorf("%s nested %d deep does not come back", kind, n)
			}
			if !lossless.Equal(v, parse(t, text)) {
				t.Errorf("%s nested %d deep is not equal to itself", kind, n)
			}
			if err := lossless.CheckNumbers("", v); err != nil {
				t.Error(err)
			}
		}
		for _, n := range []int{limits.Depth + 1, 100_000, 1_000_000} {
			began := time.Now()
			_, err := lossless.Parse([]byte(nested(kind, n)))
			if err == nil || !errors.Is(err, lossless.ErrDepth) || !strings.Contains(err.Error(), "nested deeper than 10000") {
				t.Errorf("%s nested %d deep: %v", kind, n, err)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("refusing depth %d took %v", n, took)
			}
		}
	}
	if _, err := lossless.ParseDepth([]byte(`[[]]`), 2); err != nil {
		t.Error(err)
	}
	if _, err := lossless.ParseDepth([]byte(`[[[]]]`), 2); err == nil || !strings.Contains(err.Error(), "json at byte 2: nested deeper than 2") {
		t.Errorf("got %v", err)
	}
}

func TestUnclosedDepth(t *testing.T) {
	if _, err := lossless.Parse([]byte(strings.Repeat("[", 100_000))); !errors.Is(err, lossless.ErrDepth) {
		t.Errorf("got %v", err)
	}
	_, err := lossless.Parse([]byte(strings.Repeat(`{"a":`, 9_000)))
	if err == nil || len(err.Error()) > 400 {
		t.Errorf("the error of a deep place is not short: %v", err)
	}
}

func TestCheckNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`9007199254740991`:       "",
		`-9007199254740992`:      "",
		`9007199254740993`:       "9007199254740993 is an integer beyond 2^53 that a number does not keep: pass it as a string",
		`9007199254740994`:       "",
		`1152921504606846976`:    "beyond 2^53", // 2^60: exact, but JavaScript prints it as …7000
		`1152921504606847000`:    "",
		`1e23`:                   "",
		`123e21`:                 "",
		`123456789012345678`:     "beyond 2^53",
		`12345678901234567.0`:    "beyond 2^53",
		`1.7976931348623157e308`: "",
		`1e309`:                  "out of the range",
		`-1e999999999999`:        "out of the range",
		`1e-400`:                 "too small",
		`-0`:                     "negative zero",
		`-0.0e5`:                 "negative zero",
		`0.0`:                    "",
		`0.1234567890123456789`:  "",
		`"9007199254740993"`:     "",
		`{"cfg":{"items":[1,{"id":9007199254740993}]},"z":-0}`: "args.cfg.items[1].id: 9007199254740993 is an integer beyond 2^53 that a number does not keep: pass it as a string; args.z: -0 is negative zero",
	} {
		err := lossless.CheckNumbers("args", parse(t, text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, lossless.ErrNumber)):
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestCheckNumbersIsBounded(t *testing.T) {
	v := parse(t, "["+strings.Repeat("-0,", 100_000)+strings.Repeat("9", 100_000)+"]")
	err := lossless.CheckNumbers("", v)
	if err == nil || len(err.Error()) > 2000 || !strings.HasSuffix(err.Error(), "; and 99981 more") {
		t.Errorf("got %v", err)
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`1`, `1.0`, true},
		{`100`, `1e2`, true},
		{`0.001`, `1E-3`, true},
		{`-0`, `0`, true},
		{`9007199254740993`, `9007199254740992`, false},
		{`1`, `"1"`, false},
		{`{"a":1,"b":2}`, `{"b":2,"a":1}`, true},
		{`{"a":1}`, `{"b":1}`, false},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`[1,2]`, `[2,1]`, false},
		{`[]`, `{}`, false},
		{`true`, `false`, false},
		{`null`, `null`, true},
		{`"\ud800"`, `"\ud801"`, false},
	} {
		if got := lossless.Equal(parse(t, c.a), parse(t, c.b)); got != c.want {
			t.Errorf("Equal(%s, %s) = %v", c.a, c.b, got)
		}
	}
}

func TestInt64(t *testing.T) {
	for text, want := range map[string]any{
		`0`: int64(0), `-0`: int64(0), `0.0`: int64(0), `2.0`: int64(2), `1e3`: int64(1000), `-1.5e1`: int64(-15),
		`9223372036854775807`: int64(9223372036854775807), `-9223372036854775808.0`: int64(-9223372036854775808),
		`9223372036854775808`: nil, `1e19`: nil, `1.5`: nil, `1e-3`: nil, `1e400`: nil, `"1"`: nil,
	} {
		v := parse(t, text)
		got, ok := v.Int64()
		if want == nil && ok || want != nil && (!ok || got != want) {
			t.Errorf("Int64(%s) = %v, %v", text, got, ok)
		}
	}
	if v := parse(t, `1e400`); !v.IsInteger() {
		t.Error("1e400 is an integer")
	}
	if v := parse(t, `1.5`); v.IsInteger() {
		t.Error("1.5 is no integer")
	}
}

func TestBuild(t *testing.T) {
	v := lossless.Obj(
		lossless.M("b", lossless.Int(-3)),
		lossless.M("a", lossless.Arr(lossless.Boolean(true), lossless.Value{}, lossless.Str("x\xffy"))),
		lossless.M("b", lossless.Obj()),
	)
	if got, want := v.With("a", lossless.Arr()).With("c", lossless.Boolean(false)).String(), `{"b":{},"a":[],"c":false}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := v.String(), "{\"b\":{},\"a\":[true,null,\"x\ufffdy\"]}"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	from, err := lossless.From(struct {
		A string         `json:"a"`
		V lossless.Value `json:"v"`
		T lossless.Text  `json:"t"`
	}{"<&>", parse(t, `{"z":1.50}`), lossless.Text(`[1e2]`)})
	if err != nil || from.String() != `{"a":"<&>","v":{"z":1.50},"t":[1e2]}` {
		t.Errorf("got %v, %v", from, err)
	}
	if _, err := lossless.From(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func TestPrefix(t *testing.T) {
	for _, text := range []string{
		`"` + strings.Repeat("é", 1000) + `"`,
		`{"` + strings.Repeat("k", 1000) + `":1}`,
		"[" + strings.Repeat(`{"a":[1,2]},`, 1000) + "0]",
		strings.Repeat("7", 1000),
		`{"a":1}`,
		"null",
		"true",
	} {
		whole := parse(t, text).String()
		for _, n := range []int{0, 1, 10, 11, 100, 5000, 100_000} {
			got := string(parse(t, text).Prefix(n))
			if len(got) < min(n, len(whole)) || len(got) > n+20 && got != whole {
				t.Errorf("Prefix(%d) of %.20s has %d bytes", n, text, len(got))
			}
			if body := strings.TrimSuffix(got, `"`); !strings.HasPrefix(whole, body) || !utf8.ValidString(got) {
				t.Errorf("Prefix(%d) of %.20s is %.80s", n, text, got)
			}
		}
	}
}

func TestPathFormat(t *testing.T) {
	key := func(k string) lossless.Step { return lossless.Step{Key: k} }
	at := func(i int) lossless.Step { return lossless.Step{Index: i, IsIndex: true} }
	for _, c := range []struct {
		root string
		path lossless.Path
		want string
	}{
		{"", nil, ""},
		{"value", nil, "value"},
		{"", lossless.Path{key("cfg"), key("items"), at(2), key("label")}, "cfg.items[2].label"},
		{"value", lossless.Path{at(0), key("content-type")}, "value[0].content-type"},
		{"", lossless.Path{key("a b"), key(""), key("日本語"), key("0x")}, `["a b"][""].日本語["0x"]`},
		{"v", lossless.Path{key("a\n\u202e# b")}, `v["a\n\u202e# b"]`},
		{"v", lossless.Path{key(strings.Repeat("k", 100))}, `v["` + strings.Repeat("k", 60) + `"…]`},
	} {
		if got := c.path.Format(c.root); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	deep := make(lossless.Path, 10_000)
	for i := range deep {
		deep[i] = at(i)
	}
	got := deep.Format("v")
	if len(got) > 220 || !strings.HasPrefix(got, "v[0][1]") || !strings.HasSuffix(got, "[9998][9999]") || !strings.Contains(got, "]…[") {
		t.Errorf("got %s", got)
	}
}

// genText draws JSON text by way of values, so that keys are not repeated.
func genValue() *rapid.Generator[lossless.Value] {
	return rapid.Custom(func(t *rapid.T) lossless.Value { return drawValue(t, 4) })
}

func drawValue(t *rapid.T, depth int) lossless.Value {
	kinds := 6
	if depth == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return lossless.Boolean(rapid.Bool().Draw(t, "bool"))
	case 1:
		text := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
		v, err := lossless.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return v
	case 2:
		return lossless.Str(rapid.String().Draw(t, "string"))
	case 3:
		return lossless.Value{}
	case 4:
		items := make([]lossless.Value, rapid.IntRange(0, 4).Draw(t, "len"))
		for i := range items {
			items[i] = drawValue(t, depth-1)
		}
		return lossless.Arr(items...)
	}
	members := make([]lossless.Member, rapid.IntRange(0, 20).Draw(t, "len"))
	for i := range members {
		members[i] = lossless.M(rapid.String().Draw(t, "key"), drawValue(t, 0))
	}
	return lossless.Obj(members...)
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := genValue().Draw(t, "value")
		text := v.Encode()
		back, err := lossless.Parse(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if !lossless.Equal(v, back) || string(back.Encode()) != string(text) {
			t.Fatalf("%s came back as %s", text, back)
		}
		if !json.Valid(text) {
			t.Fatalf("encoding/json refuses %s", text)
		}
	})
}
