package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/lossless"
	"github.com/google/go-cmp/cmp"
)

func ptr[T any](v T) *T { return &v }

func cards() map[string]Card {
	return map[string]Card{
		"generic": {Generic: &GenericCard{Title: "Mount", Kind: KindExecute, RawInput: lossless.Text(`{"code":"a<b"}`),
			Content: []Block{TextBlock("t")}, Locations: []Location{{Path: "a.go", Line: 3}}}},
		"empty-generic":   {Generic: &GenericCard{}},
		"terminal-call":   {Terminal: &TerminalCard{Title: "ls", Cwd: "/tmp"}},
		"terminal-result": {Terminal: &TerminalCard{Output: ptr("out"), ExitCode: ptr(0)}},
		"diff":            {Diff: &DiffCard{Title: "edit", Diffs: []FileDiff{{Path: "a", NewText: "x"}, {Path: "b", OldText: ptr(""), NewText: "y"}}}},
		"matches":         {Search: &SearchCard{Shape: ShapeMatches, Total: 9, Truncated: true, Matches: []Match{{"a", 1, "t"}}}},
		"paths":           {Search: &SearchCard{Shape: ShapePaths, Total: 1, Paths: []string{"a"}}},
		"read":            {Read: &ReadCard{Path: "a", Offset: 2, TotalLines: 9, Lang: "go", Lines: []ReadLine{{2, "x"}}}},
		"web":             {Web: &WebCard{Kind: WebSearch, Query: "q", Results: []WebResult{{Title: "t", URL: "u"}}}},
	}
}

func TestCardJSON(t *testing.T) {
	for name, card := range cards() {
		t.Run(name, func(t *testing.T) {
			if err := card.Validate(); err != nil {
				t.Fatal(err)
			}
			text, err := card.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), `{"type":"`+card.Type()+`"`) {
				t.Errorf("got %s", text)
			}
			var back Card
			if err := back.UnmarshalJSON(text); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if diff := cmp.Diff(card, back); diff != "" {
				t.Error(diff)
			}
		})
	}
	text, _ := cards()["generic"].MarshalJSON()
	if want := `{"type":"generic","title":"Mount","kind":"execute","rawInput":{"code":"a<b"},"content":[{"type":"text","text":"t"}],"locations":[{"path":"a.go","line":3}]}`; string(text) != want {
		t.Errorf("got %s", text)
	}
}

func TestCardRefuses(t *testing.T) {
	long := strings.Repeat("x", maxCardBytes+1)
	tests := []struct {
		name string
		card Card
		want string
	}{
		{"none", Card{}, "exactly one of generic, terminal"},
		{"two", Card{Generic: &GenericCard{}, Web: &WebCard{}}, "not 2"},
		{"kind", Card{Generic: &GenericCard{Kind: "dance"}}, `kind "dance" is not one of read, edit`},
		{"raw-input", Card{Generic: &GenericCard{RawInput: lossless.Text("{")}}, "rawInput"},
		{"content", Card{Generic: &GenericCard{Content: []Block{{}}}}, "without a type"},
		{"location", Card{Generic: &GenericCard{Locations: []Location{{}}}}, "locations[0]"},
		{"too-much-text", Card{Generic: &GenericCard{Title: long}}, "more than the limit"},
		{"too-much-output", Card{Terminal: &TerminalCard{Output: &long}}, "more than the limit"},
		{"too-much-input", Card{Generic: &GenericCard{RawInput: lossless.Text(long)}}, "more than the limit"},
		{"no-diffs", Card{Diff: &DiffCard{}}, "diffs is empty"},
		{"diff-path", Card{Diff: &DiffCard{Diffs: []FileDiff{{}}}}, "diffs[0].path"},
		{"shape", Card{Search: &SearchCard{Shape: "round"}}, `shape "round"`},
		{"matches-with-paths", Card{Search: &SearchCard{Shape: ShapeMatches, Total: 1, Paths: []string{"a"}}}, "has paths"},
		{"paths-with-matches", Card{Search: &SearchCard{Shape: ShapePaths, Total: 1, Matches: []Match{{"a", 1, ""}}}}, "has matches"},
		{"total", Card{Search: &SearchCard{Shape: ShapePaths, Paths: []string{"a"}}}, "total 0 is less"},
		{"match-line", Card{Search: &SearchCard{Shape: ShapeMatches, Total: 1, Matches: []Match{{Path: "a"}}}}, "matches[0]"},
		{"too-many", Card{Search: &SearchCard{Shape: ShapePaths, Total: 1 << 20, Paths: make([]string, maxCardItems+1)}}, "more than the limit of 10000"},
		{"read-path", Card{Read: &ReadCard{}}, "path is empty"},
		{"read-offset", Card{Read: &ReadCard{Path: "a", Offset: -1}}, "not negative"},
		{"read-line", Card{Read: &ReadCard{Path: "a", Lines: []ReadLine{{}}}}, "counts from 1"},
		{"web-kind", Card{Web: &WebCard{Kind: "dark"}}, `kind "dark" is neither`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.card.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want it to contain %q", err, tt.want)
			}
		})
	}
	for _, in := range []string{``, `1`, `{}`, `{"type":"poem"}`, `{"type":"generic","kind":"dance"}`, `{"type":"read","path":1}`} {
		card := Card{Web: &WebCard{Kind: WebFetch}}
		if err := card.UnmarshalJSON([]byte(in)); err == nil || card.Web == nil {
			t.Errorf("%s: got %v, %+v", in, err, card)
		}
	}
}

func FuzzCard(f *testing.F) {
	for _, c := range cards() {
		text, _ := c.MarshalJSON()
		f.Add(text)
	}
	f.Add([]byte(`{"type":"generic","content":null,"rawInput":null}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var c Card
		if c.UnmarshalJSON(in) != nil {
			return
		}
		text, err := c.MarshalJSON()
		if err != nil {
			t.Fatalf("%s: %v", in, err)
		}
		var again Card
		if err := again.UnmarshalJSON(text); err != nil {
			t.Fatalf("%s became %s: %v", in, text, err)
		}
	})
}

func TestPresenters(t *testing.T) {
	w := newWorld(t)
	var call, result func() (*Card, error)
	w.owner(w.root, "o",
		def("x", func(d *Definition) {
			d.Title, d.Kind = "The X", KindSearch
			d.PresentCall = func(context.Context, lossless.Text) (*Card, error) { return call() }
			d.PresentResult = func(context.Context, lossless.Text, *Result) (*Card, error) { return result() }
		}),
		def("bare", func(d *Definition) { d.Kind = KindRead }))
	mine := &Card{Terminal: &TerminalCard{Title: "mine"}}
	genericCall := &Card{Generic: &GenericCard{Title: "The X", Kind: KindSearch, RawInput: lossless.Text(`{"text":"a"}`)}}
	res := &Result{Content: []Block{TextBlock("content")}}
	genericResult := &Card{Generic: &GenericCard{Kind: KindSearch, Content: res.Content}}
	tests := []struct {
		name                   string
		fn                     func() (*Card, error)
		args                   string
		wantCall, wantedResult *Card
	}{
		{"own", func() (*Card, error) { return mine, nil }, `{"text":"a"}`, mine, mine},
		{"nil", func() (*Card, error) { return nil, nil }, `{"text":"a"}`, genericCall, genericResult},
		{"error", func() (*Card, error) { return mine, errors.New("no") }, `{"text":"a"}`, genericCall, genericResult},
		{"panic", func() (*Card, error) { panic("ouch") }, `{"text":"a"}`, genericCall, genericResult},
		{"invalid", func() (*Card, error) { return &Card{}, nil }, `{"text":"a"}`, genericCall, genericResult},
		{"result-card-for-a-call", func() (*Card, error) { return &Card{Read: &ReadCard{Path: "a"}}, nil }, `{"text":"a"}`,
			genericCall, &Card{Read: &ReadCard{Path: "a"}}},
		{"call-without-title", func() (*Card, error) { return &Card{Generic: &GenericCard{}}, nil }, `{"text":"a"}`,
			genericCall, &Card{Generic: &GenericCard{}}},
		{"invalid-arguments", func() (*Card, error) { return mine, nil }, `{"text":1}`,
			&Card{Generic: &GenericCard{Title: "The X", Kind: KindSearch, RawInput: lossless.Text(`{"text":1}`)}}, genericResult},
		{"not-json", func() (*Card, error) { return mine, nil }, `{`,
			&Card{Generic: &GenericCard{Title: "The X", Kind: KindSearch}}, genericResult},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			call, result = tt.fn, tt.fn
			if diff := cmp.Diff(tt.wantCall, w.r.PresentCall(w.ctx(), "x", nil, lossless.Text(tt.args))); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.wantedResult, w.r.PresentResult(w.ctx(), "x", nil, lossless.Text(tt.args), res)); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("unknown", func(t *testing.T) {
		want := &Card{Generic: &GenericCard{Title: "y", Kind: KindOther, RawInput: lossless.Text(`{}`)}}
		if diff := cmp.Diff(want, w.r.PresentCall(w.ctx(), "y", nil, nil)); diff != "" {
			t.Error(diff)
		}
		if got := w.r.PresentResult(w.ctx(), "y", nil, nil, nil); got.Validate() != nil {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("bare", func(t *testing.T) {
		if got := w.r.PresentCall(w.ctx(), "bare", nil, nil); got.Generic.Title != "bare" || got.Generic.Kind != KindRead {
			t.Errorf("got %+v", got.Generic)
		}
	})
}

func TestExecutionMode(t *testing.T) {
	w := newWorld(t)
	w.owner(w.root, "o", def("plain"),
		def("safe", func(d *Definition) {
			d.ConcurrencySafe = func(_ context.Context, args lossless.Text) bool {
				var a struct{ Text string }
				_ = json.Unmarshal(args, &a)
				if a.Text == "panic" {
					panic("ouch")
				}
				return a.Text == "hi"
			}
		}))
	tests := []struct {
		name, tool, args string
		want             Mode
	}{
		{"safe-with-default", "safe", `{}`, Parallel}, {"unsafe", "safe", `{"text":"no"}`, Exclusive},
		{"panics", "safe", `{"text":"panic"}`, Exclusive}, {"invalid", "safe", `{"text":1}`, Exclusive},
		{"not-json", "safe", `{`, Exclusive}, {"says-nothing", "plain", `{}`, Exclusive}, {"unknown", "y", `{}`, Exclusive},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := w.r.ExecutionMode(w.ctx(), Call{Name: tt.tool, Arguments: lossless.Text(tt.args)}); got != tt.want {
				t.Errorf("got %s", got)
			}
		})
	}
}
