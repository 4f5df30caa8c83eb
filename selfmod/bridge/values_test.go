package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/selfmod/bridge"
)

// declared is the declaration of a service with the interface P.
func declared[P any](name string) cordis.ServiceDecl {
	return cordis.ServiceDecl{Name: name, Type: reflect.TypeFor[int](), Plugin: reflect.TypeFor[P](), Bind: func(v any, _ *cordis.Context) any { return v }}
}

// caller has functions that return what they are given, and keeps objects.
type caller struct {
	kept []*bridge.Object
	lost []error
}

func (c *caller) Call(_ context.Context, fn uint32, _ string, args []byte) (json.RawMessage, error) {
	if fn == 9 {
		return nil, errors.New("it threw")
	}
	v, err := lossless.Parse(args[strings.IndexByte(string(args), '['):])
	if err != nil || v.Len() == 0 {
		return nil, err
	}
	return v.At(0).Encode(), nil
}
func (c *caller) Release(uint32) {}
func (c *caller) Lost(err error) { c.lost = append(c.lost, err) }
func (c *caller) Keep(o *bridge.Object) (uint32, error) {
	c.kept = append(c.kept, o)
	return uint32(len(c.kept)), nil
}

type data struct {
	Text  string          `json:"text"`
	Count uint8           `json:"count"`
	Float float64         `json:"float"`
	List  []string        `json:"list"`
	Map   map[string]bool `json:"map"`
	Bytes []byte          `json:"bytes"`
	Any   any             `json:"any"`
	Raw   json.RawMessage `json:"raw,omitempty"`
	When  time.Time       `json:"when,omitzero"`
	Inner *data           `json:"inner,omitempty"`
	Skip  int             `json:"-"`
	embedded
}

type embedded struct {
	Promoted string `json:"promoted,omitempty"`
}

type methods struct{}

func (methods) Echo(d data) data           { return d }
func (methods) Map(fn func(n int) int) int { return fn(4) }
func (methods) Try(fn func(ctx context.Context, s string) error) error {
	return fn(context.Background(), "x")
}
func (methods) Run(fn func()) { fn() }
func (methods) Endless(ctx context.Context) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for n := 0; yield(n, nil); n++ {
		}
	}
}

type methodsForPlugins interface {
	Echo(d data) data
	Map(fn func(n int) int) int
	Try(fn func(ctx context.Context, s string) error) error
	Run(fn func())
	Endless(ctx context.Context) iter.Seq2[int, error]
}

func target(t testing.TB) *bridge.Object {
	i, err := bridge.Of(declared[methodsForPlugins]("test-methods"))
	if err != nil {
		t.Fatal(err)
	}
	return bridge.NewObject(i, methods{})
}

// call calls a method with arguments in JSON.
func call(t testing.TB, c *caller, method, args string) (string, error) {
	o := target(t)
	m, err := o.Find(method)
	if err != nil {
		t.Fatal(err)
	}
	v, err := lossless.Parse([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	b, err := o.Call(context.Background(), m, v, c)
	return string(b), err
}

func TestValues(t *testing.T) {
	const full = `{"text":"t","count":255,"float":1.5,"list":["a"],"map":{"x":true},"bytes":{"$":"b","v":"AQI="},"any":{"$$":[1]},"promoted":"p"}`
	for _, c := range []struct{ name, method, args, want, fails string }{
		{"full", "echo", "[" + full + "]", "*" + full, ""},
		{"inner", "echo", `[{"text":"","count":0,"float":0,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":null,"inner":` + full + `}]`, `*{"text":"","count":0,"float":0,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":null,"inner":` + full + `}`, ""},
		{"too_small", "echo", `[{"text":"","count":256,"float":0,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":1}]`, "", "argument 1 (arg1).count is out of range: the number 256"},
		{"negative", "echo", `[{"text":"","count":-1,"float":0,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":1}]`, "", "argument 1 (arg1).count must be an integer ≥ 0, got the number -1"},
		{"infinite", "echo", `[{"text":"","count":1,"float":1e999,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":1}]`, "", "argument 1 (arg1).float is out of range"},
		{"bad_base64", "echo", `[{"text":"","count":1,"float":1,"list":[],"map":{},"bytes":{"$":"b","v":"*"},"any":1}]`, "", "not encoded as they should be"},
		{"time", "echo", `[{"text":"","count":1,"float":1,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":1,"when":"soon"}]`, "", `argument 1 (arg1).when must be string, got the string "soon": `},
		{"hidden", "echo", `[{"hidden":1}]`, "", `argument 1 (arg1) has no member "hidden".`},
		{"skipped", "echo", `[{"Skip":1}]`, "", `argument 1 (arg1) has no member "Skip".`},
		{"forged_special", "echo", `[{"$":"x"}]`, "", `argument 1 (arg1) must be data, got the object {"$":"x"}`},
		{"forged_handle", "echo", `[{"$":"h","h":1}]`, "", `argument 1 (arg1) must be data`},
		{"special_in_any", "echo", `[{"text":"","count":1,"float":1,"list":[],"map":{},"bytes":{"$":"b","v":""},"any":[{"$":"f","h":1}]}]`, "", "argument 1 (arg1).any[0] must be JSON data, got a function"},
		{"function", "map", `[{"$":"f","h":1}]`, "4", ""},
		{"function_throws_to_nobody", "run", `[{"$":"f","h":9}]`, "", ""},
		{"function_throws", "try", `[{"$":"f","h":9}]`, "", "it threw"},
		{"deep", "echo", `[` + strings.Repeat(`{"inner":`, 9000) + `5` + strings.Repeat(`}`, 9000) + `]`, "", "must be data, got the number 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			caller := &caller{}
			got, err := call(t, caller, c.method, c.args)
			switch {
			case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
				t.Errorf("the error is %.500v\nwant %s", err, c.fails)
			case err != nil && len(err.Error()) > 2000:
				t.Errorf("the error has %d bytes", len(err.Error()))
			case c.fails == "" && (err != nil || got != c.want):
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
			if c.name == "function_throws_to_nobody" && len(caller.lost) != 1 {
				t.Errorf("%d errors that nobody waits for were told", len(caller.lost))
			}
		})
	}
}

// Data goes through a service unchanged, whatever its keys are.
func TestDataRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var draw func(depth int) any
		draw = func(depth int) any {
			switch kind := rapid.IntRange(0, 5).Draw(rt, "kind"); {
			case kind == 0:
				return nil
			case kind == 1:
				return rapid.Bool().Draw(rt, "bool")
			case kind == 2:
				return float64(rapid.IntRange(-1e9, 1e9).Draw(rt, "number"))
			case kind == 3 || depth > 3:
				return rapid.String().Draw(rt, "text")
			case kind == 4:
				list := []any{}
				for range rapid.IntRange(0, 3).Draw(rt, "length") {
					list = append(list, draw(depth+1))
				}
				return list
			}
			object := map[string]any{}
			for range rapid.IntRange(0, 3).Draw(rt, "members") {
				object[rapid.SampledFrom([]string{"$", "$$", "a", "__proto__", "", "$a"}).Draw(rt, "key")] = draw(depth + 1)
			}
			return object
		}
		v := draw(0)
		text, err := json.Marshal([]any{map[string]any{"text": "", "count": 1, "float": 1, "list": []string{}, "map": map[string]bool{}, "bytes": special("b"), "any": escape(v)}})
		if err != nil {
			rt.Fatal(err)
		}
		got, err := call(t, &caller{}, "echo", string(text))
		if err != nil {
			rt.Fatal(err)
		}
		var out struct {
			Any any `json:"any"`
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(got, "*")), &out); err != nil {
			rt.Fatal(err)
		}
		if want := escape(v); !reflect.DeepEqual(out.Any, want) {
			rt.Fatalf("got %v, want %v", out.Any, want)
		}
	})
}

func special(kind string) map[string]any { return map[string]any{"$": kind, "v": ""} }

// escape is what the other side does to keys.
func escape(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for n := range v {
			out[n] = escape(v[n])
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for key, member := range v {
			if key != "" && strings.Trim(key, "$") == "" {
				key = "$" + key
			}
			out[key] = escape(member)
		}
		return out
	}
	return v
}

// An iterator runs ahead of its reader by so much and not more.
func TestIterationRunsAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := target(t)
		m, err := o.Find("endless")
		if err != nil {
			t.Fatal(err)
		}
		it, err := o.Iterate(t.Context(), m, lossless.Arr(), &caller{})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			`{"v":[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]}`,
			`{"v":[16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31]}`,
		} {
			synctest.Wait()
			if got, _, err := it.Next(t.Context()); string(got) != want || err != nil {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
		}
		if err := it.Stop(t.Context(), errors.New("enough")); err != nil {
			t.Error(err)
		}
		for range 3 {
			if _, _, err := it.Next(t.Context()); err != nil {
				if !strings.Contains(err.Error(), "enough") {
					t.Errorf("the error is %v", err)
				}
				return
			}
		}
		t.Error("a stopped iteration does not end")
	})
}

// FuzzArguments: whatever comes as arguments is a result or an error that says
// where, never a panic.
func FuzzArguments(f *testing.F) {
	for _, args := range []string{"[]", "[1]", `[{"$":"f","h":1}]`, `[{"text":"x"}]`, `[{"$":"b","v":"AA=="}]`, `[{"any":{"$$$":{"$":"u"}}}]`, `[null,null]`} {
		f.Add("echo", args)
		f.Add("map", args)
	}
	f.Fuzz(func(t *testing.T, method, args string) {
		o := target(t)
		m, err := o.Find(method)
		if err != nil {
			return
		}
		v, err := lossless.Parse([]byte(args))
		if err != nil || v.Kind() != lossless.Array {
			return
		}
		b, err := o.Call(context.Background(), m, v, &caller{})
		if e := new(bridge.Error); err != nil && !errors.As(err, &e) && !strings.Contains(err.Error(), "callback") {
			if err.Error() != "it threw" {
				t.Errorf("%s %s: %v", method, args, err)
			}
		} else if err == nil && len(b) > 0 && b[0] != '~' && b[0] != '^' && !json.Valid([]byte(strings.TrimPrefix(string(b), "*"))) {
			t.Errorf("%s %s gave %s", method, args, b)
		}
	})
}
