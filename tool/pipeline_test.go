package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	w := newWorld(t)
	var got string
	w.owner(w.root, "o", def("x", func(d *Definition) {
		d.Parameters = parameters(`{"text":{"type":"string","default":"hi"},"n":{"type":"integer","required":true}}`)
	}, body(func(_ context.Context, exec *Exec) (Outcome, error) {
		got = string(exec.Arguments)
		return Outcome{Value: str("ok")}, nil
	})))
	tests := []struct{ name, args, want string }{
		{"defaults-are-filled-in", `{"n":1}`, `{"n":1,"text":"hi"}`},
		{"order-and-literals-stay", ` {"text" : "a<b", "n" : 2.0, "more" : {"__proto__":1} } `, `{"text":"a<b","n":2.0,"more":{"__proto__":1}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if r := w.call("x", tt.args); r.IsError || got != tt.want {
				t.Errorf("got %s, error %v", got, r.Error)
			}
		})
	}
	bad := []struct{ name, args, want string }{
		{"every-violation", `{"text":1}`, `Error: invalid arguments: missing required property "n"; "text" must be a string`},
		{"none", ``, `missing required property "n"`},
		{"not-json", `{`, `Error: invalid arguments: json at byte 1`},
		{"not-an-object", `[]`, `invalid arguments: `},
		{"big-integer", `{"n":9007199254740993}`, `pass it as a string`},
		{"too-deep", strings.Repeat("[", 100_000), fmt.Sprintf("nested deeper than %d", limits.Depth)},
		{"too-large", `{"n":1,"text":"` + strings.Repeat("x", limits.Arguments) + `"}`, fmt.Sprintf("more than the limit of %d", limits.Arguments)},
	}
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			r := w.call("x", tt.args)
			if code(r) != CodeInvalidArgs || r.Error.Name != "ToolArgsError" || !strings.Contains(text(r), tt.want) {
				t.Errorf("got %s %+v", text(r), r.Error)
			}
		})
	}
}

// TestRefused: whoever owns a tool is told why its outcome is an error.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	var told []string
	n := 0
	w.owner(w.root, "o", def("x", body(func(context.Context, *Exec) (Outcome, error) {
		n++
		switch n {
		case 1:
			return Outcome{Value: lossless.Text(`1`)}, nil
		case 2:
			return Outcome{Value: lossless.Text(`"v"`), Rendered: &Rendered{Err: errors.New("broke")}}, nil
		case 3:
			return Outcome{}, errors.New("thrown")
		}
		return Outcome{Value: lossless.Text(`"v"`)}, nil
	}), func(d *Definition) { d.Refused = func(err error) { told = append(told, err.Error()) } }))
	for range 4 {
		w.call("x", "{}")
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], `tool "x" returned invalid output: "value" must be a string`) || told[1] != "broke" {
		t.Errorf("told %q", told)
	}
}

func TestOutput(t *testing.T) {
	w := newWorld(t)
	value := func(text string) func(*Definition) {
		return body(func(context.Context, *Exec) (Outcome, error) { return Outcome{Value: lossless.Text(text)}, nil })
	}
	render := func(fn func() ([]Block, error)) func(*Definition) {
		return func(d *Definition) {
			d.Output.Render = func(context.Context, lossless.Text, lossless.Text) ([]Block, error) { return fn() }
		}
	}
	meta := func(fn func() (lossless.Text, error)) func(*Definition) {
		return func(d *Definition) {
			d.Output.Meta = func(context.Context, lossless.Text, lossless.Text) (lossless.Text, error) { return fn() }
		}
	}
	tests := []struct {
		name       string
		edit       func(*Definition)
		want, code string
	}{
		{"value", value(`"fine"`), "fine", ""},
		{"wrong-type", value(`1`), `Error: tool "x" returned invalid output: "value" must be a string`, CodeInvalidOutput},
		{"missing", value(``), `Error: tool "x" returned invalid output: value is missing`, CodeInvalidOutput},
		{"not-json", value(`undefined`), `Error: tool "x" returned invalid output: value is not lossless JSON`, CodeInvalidOutput},
		{"negative-zero", func(d *Definition) { d.Output.Schema = output(`{"type":"json"}`); value(`{"a":-0}`)(d) }, `Error: tool "x" returned invalid output: `, CodeInvalidOutput},
		{"huge-and-wrong", value(`["` + strings.Repeat("y", 1<<20) + `"]`), `Error: tool "x" returned invalid output: `, CodeInvalidOutput},
		{"too-large", value(`"` + strings.Repeat("y", limits.Result) + `"`), `more than the limit of`, CodeInvalidOutput},
		{"body-error", body(func(context.Context, *Exec) (Outcome, error) { return Outcome{}, errBoom }), "Error: boom", ""},
		{"typed-error", body(func(context.Context, *Exec) (Outcome, error) {
			return Outcome{}, fmt.Errorf("read: %w", &Error{Name: "FileError", Code: "NOT_FOUND", Message: "no such file"})
		}), "Error: read: no such file", "NOT_FOUND"},
		{"empty-error", body(func(context.Context, *Exec) (Outcome, error) { return Outcome{}, errors.New("") }), "Error: an error without a message", ""},
		{"hostile-error", body(func(context.Context, *Exec) (Outcome, error) { return Outcome{}, hostileError{} }), "Error: <unprintable error>", ""},
		{"huge-error", body(func(context.Context, *Exec) (Outcome, error) {
			return Outcome{}, errors.New(strings.Repeat("z", 1<<20))
		}), "Error: zzz", ""},
		{"panic", body(func(context.Context, *Exec) (Outcome, error) { panic("ouch") }), `Error: tool "x" execute failed: panic: ouch`, ""},
		{"panic-with-an-error", body(func(context.Context, *Exec) (Outcome, error) { panic(errBoom) }), `Error: tool "x" execute failed: panic: boom`, ""},
		{"render-error", render(func() ([]Block, error) { return nil, errBoom }), "Error: output.render failed: boom", ""},
		{"render-panic", render(func() ([]Block, error) { panic("ouch") }), `Error: output.render failed: tool "x" output.render failed: panic: ouch`, ""},
		{"render-nothing", render(func() ([]Block, error) { return nil, nil }), "", ""},
		{"render-not-json", render(func() ([]Block, error) { return []Block{{Type: "image", Raw: lossless.Text(`{"type":`)}}, nil }), "Error: output.render returned non-lossless JSON", ""},
		{"render-without-type", render(func() ([]Block, error) { return []Block{{}}, nil }), "Error: output.render returned non-lossless JSON", ""},
		{"meta-error", meta(func() (lossless.Text, error) { return nil, errBoom }), "Error: output.presentationMeta failed: boom", ""},
		{"meta-not-json", meta(func() (lossless.Text, error) { return lossless.Text("{"), nil }), "Error: output.presentationMeta returned non-lossless JSON", ""},
		{"rendered-with-the-value", body(func(context.Context, *Exec) (Outcome, error) {
			return Outcome{Value: str("v"), Rendered: &Rendered{Content: []Block{TextBlock("ready")}}}, nil
		}), "ready", ""},
		{"rendering-failed-with-the-value", body(func(context.Context, *Exec) (Outcome, error) {
			return Outcome{Value: str("v"), Rendered: &Rendered{Err: fmt.Errorf("output.render failed: %w", errBoom)}}, nil
		}), "Error: output.render failed: boom", ""},
		{"value-is-checked-before-its-rendering", body(func(context.Context, *Exec) (Outcome, error) {
			return Outcome{Value: lossless.Text("1"), Rendered: &Rendered{Content: []Block{TextBlock("ready")}}}, nil
		}), `Error: tool "x" returned invalid output`, CodeInvalidOutput},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := w.owner(w.root, "o", def("x", tt.edit))
			defer w.dispose(f)
			r := w.call("x", `{}`)
			fails := tt.code != "" || strings.HasPrefix(tt.want, "Error: ")
			if !strings.Contains(text(r), tt.want) || code(r) != tt.code || r.IsError != fails {
				t.Errorf("got %.200s, %+v", text(r), r.Error)
			}
			if r.IsError != (r.Error != nil) || r.Content == nil || len(text(r)) > 2*limits.ErrorText {
				t.Errorf("malformed result: error %v, %d bytes", r.Error, len(text(r)))
			}
		})
	}
}

type hostileError struct{}

func (hostileError) Error() string { panic("no") }

func TestMetaIsForOutermostCalls(t *testing.T) {
	w := newWorld(t)
	asked := 0
	w.owner(w.root, "o", def("inner", func(d *Definition) {
		d.Output.Meta = func(context.Context, lossless.Text, lossless.Text) (lossless.Text, error) {
			asked++
			return lossless.Text(`{"m":1}`), nil
		}
	}), def("outer", body(func(ctx context.Context, exec *Exec) (Outcome, error) {
		r := w.r.Execute(ctx, Call{Name: "inner", Parent: exec, CallID: "sub"})
		if r.Meta != nil {
			t.Errorf("a nested call has meta %s", r.Meta)
		}
		return Outcome{Value: r.Value}, nil
	})))
	if r := w.call("outer", ""); r.IsError {
		t.Error(r.Error)
	}
	if r := w.call("inner", ""); string(r.Meta) != `{"m":1}` || asked != 1 {
		t.Errorf("meta %s, asked %d times", r.Meta, asked)
	}
}

func TestNesting(t *testing.T) {
	w := newWorld(t)
	deepest, root := 0, ""
	w.owner(w.root, "o", def("again", body(func(ctx context.Context, exec *Exec) (Outcome, error) {
		deepest, root = exec.depth, exec.RootCallID
		r := w.r.Execute(ctx, Call{Name: "again", Parent: exec})
		if r.IsError {
			return Outcome{}, &Error{Code: r.Error.Code, Message: r.Error.Message}
		}
		return Outcome{Value: r.Value}, nil
	})))
	r := w.r.Execute(w.ctx(), Call{Name: "again", CallID: "top"})
	if code(r) != CodeNesting || deepest != maxNesting || root != "top" {
		t.Errorf("got %+v, deepest %d, root %q", r.Error, deepest, root)
	}
}

func TestPolicyOrder(t *testing.T) {
	w := newWorld(t)
	project := NewScope("project", nil)
	agent := NewScope("agent", project)
	ran := []string{}
	w.owner(w.root, "o", def("x", body(func(context.Context, *Exec) (Outcome, error) {
		ran = append(ran, "body")
		return Outcome{Value: str("")}, nil
	})))
	guard := func(c *cordis.Context, name string) {
		_, err := w.r.Guard(c, func(*Exec) string { ran = append(ran, name); return "" })
		w.must(err)
	}
	guard(WithScope(w.root, agent), "agent")
	guard(WithScope(w.root, project), "project")
	guard(w.root, "global-1")
	guard(w.root, "global-2")
	guard(WithScope(w.root, NewScope("other", nil)), "other")
	_, err := w.r.SetPolicy(w.root, func(_ context.Context, _ *Exec, d Decision) (Decision, error) {
		ran = append(ran, "policy:"+string(d.Kind))
		return Allow(), nil
	})
	w.must(err)
	_, err = PreExecute.On(w.root, func(ctx context.Context, _ *Exec, next func(context.Context) (Decision, error)) (Decision, error) {
		ran = append(ran, "listener")
		return next(ctx)
	})
	w.must(err)
	if r := w.r.Execute(w.ctx(), Call{Name: "x", Scope: agent}); r.IsError {
		t.Fatal(r.Error)
	}
	want := []string{"listener", "global-1", "global-2", "project", "agent", "policy:allow", "body"}
	if diff := cmp.Diff(want, ran); diff != "" {
		t.Error(diff)
	}
}

// approver answers every request with itself.
type approver ApprovalOutcome

func (a approver) Approve(context.Context, *Exec, string) (ApprovalOutcome, error) {
	if a == "panic" {
		panic("no")
	}
	if a == "error" {
		return AllowedOnce, errBoom
	}
	return ApprovalOutcome(a), nil
}

func TestDecisions(t *testing.T) {
	listener := func(d Decision) func(*world, *cordis.Context) {
		return func(w *world, c *cordis.Context) {
			_, err := PreExecute.On(c, func(context.Context, *Exec, func(context.Context) (Decision, error)) (Decision, error) { return d, nil })
			w.must(err)
		}
	}
	guard := func(fn func(*Exec) string) func(*world, *cordis.Context) {
		return func(w *world, c *cordis.Context) { _, err := w.r.Guard(c, fn); w.must(err) }
	}
	policy := func(p Policy) func(*world, *cordis.Context) {
		return func(w *world, c *cordis.Context) { _, err := w.r.SetPolicy(c, p); w.must(err) }
	}
	approve := func(o string) func(*world, *cordis.Context) {
		return func(w *world, c *cordis.Context) { _, err := Approval.Provide(c, approver(o)); w.must(err) }
	}
	type setups = []func(*world, *cordis.Context)
	tests := []struct {
		name   string
		setups setups
		want   string // "" for a success
	}{
		{"allow", setups{listener(Allow())}, ""},
		{"deny", setups{listener(Deny("not today"))}, "not today"},
		{"deny-without-reason", setups{listener(Deny(" "))}, `tool "x" was denied`},
		{"guard", setups{guard(func(*Exec) string { return "guarded" })}, "guarded"},
		{"guard-cannot-be-overridden", setups{listener(Allow()), guard(func(*Exec) string { return "guarded" }),
			policy(func(context.Context, *Exec, Decision) (Decision, error) { return Allow(), nil })}, "guarded"},
		{"guard-panics", setups{guard(func(*Exec) string { panic("ouch") })}, `tool "x" was denied: the guard of the composition (setup) failed: panic: ouch`},
		{"policy-denies", setups{listener(Allow()), policy(func(context.Context, *Exec, Decision) (Decision, error) { return Deny("read-only"), nil })}, "read-only"},
		{"policy-cannot-loosen", setups{listener(Ask("why")), policy(func(context.Context, *Exec, Decision) (Decision, error) { return Allow(), nil })}, "why"},
		{"policy-fails", setups{policy(func(context.Context, *Exec, Decision) (Decision, error) { return Allow(), errBoom })}, `tool "x" was denied: the policy of setup failed: boom`},
		{"policy-panics", setups{policy(func(context.Context, *Exec, Decision) (Decision, error) { panic("ouch") })}, `tool "x" was denied: the policy of setup failed: panic: ouch`},
		{"policy-answers-nonsense", setups{policy(func(context.Context, *Exec, Decision) (Decision, error) { return Decision{}, nil })}, `tool "x" was denied: the policy of setup failed: a decision is`},
		{"policy-asks", setups{policy(func(context.Context, *Exec, Decision) (Decision, error) { return Ask(""), nil }), approve("rejected")}, `the user rejected tool "x"`},
		{"ask-with-reason", setups{listener(Ask("look first"))}, "look first"},
		{"ask-without-reason", setups{listener(Ask(""))}, `tool "x" requires approval (not yet supported)`},
		{"ask-allowed", setups{listener(Ask("")), approve("allowed-once")}, ""},
		{"ask-rejected", setups{listener(Ask("")), approve("rejected")}, `the user rejected tool "x"`},
		{"ask-cancelled", setups{listener(Ask("")), approve("cancelled")}, `approval for tool "x" was cancelled`},
		{"ask-unavailable", setups{listener(Ask("")), approve("unavailable")}, `tool "x" requires approval, but no approval channel is available`},
		{"ask-no-agent", setups{listener(Ask("")), approve("no-agent")}, `tool "x" requires approval, but the call has no agent to route it through`},
		{"ask-nonsense", setups{listener(Ask("")), approve("whatever")}, `no approval channel is available`},
		{"ask-fails", setups{listener(Ask("")), approve("error")}, `no approval channel is available`},
		{"ask-panics", setups{listener(Ask("")), approve("panic")}, `no approval channel is available`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			ran, posts := 0, 0
			w.owner(w.root, "o", def("x", body(func(context.Context, *Exec) (Outcome, error) { ran++; return Outcome{Value: str("done")}, nil })))
			_, err := PostExecute.On(w.root, func(ctx context.Context, _ Finished, next func(context.Context) (PostDecision, error)) (PostDecision, error) {
				posts++
				return next(ctx)
			})
			w.must(err)
			w.plugin(w.root, "setup", func(c *cordis.Context) error {
				for _, s := range tt.setups {
					s(w, c)
				}
				return nil
			})
			r := w.call("x", "")
			if posts != 1 {
				t.Errorf("post-execute saw the call %d times", posts)
			}
			if tt.want == "" {
				if r.IsError || ran != 1 {
					t.Errorf("got %+v, ran %d", r.Error, ran)
				}
				return
			}
			if !strings.HasPrefix(text(r), "Error: ") || !strings.Contains(text(r), tt.want) || code(r) != CodeDenied || ran != 0 {
				t.Errorf("got %s, code %q, ran %d", text(r), code(r), ran)
			}
		})
	}
}

func TestStricter(t *testing.T) {
	for _, tt := range []struct{ a, b, want Decision }{
		{Allow(), Deny("b"), Deny("b")}, {Deny("a"), Allow(), Deny("a")}, {Ask("a"), Deny("b"), Deny("b")},
		{Ask("a"), Allow(), Ask("a")}, {Deny("a"), Deny("b"), Deny("a")},
	} {
		if got := Stricter(tt.a, tt.b); got != tt.want {
			t.Errorf("Stricter(%v, %v) = %v", tt.a, tt.b, got)
		}
	}
}

func TestSecondPolicy(t *testing.T) {
	w := newWorld(t)
	set := func(c *cordis.Context) error {
		_, err := w.r.SetPolicy(c, func(_ context.Context, _ *Exec, d Decision) (Decision, error) { return d, nil })
		return err
	}
	f := w.plugin(w.root, "first", set)
	if err := set(w.root); err == nil || !strings.Contains(err.Error(), "set by first") {
		t.Errorf("got %v", err)
	}
	w.dispose(f)
	w.must(set(w.root))
}

func TestAroundExecute(t *testing.T) {
	type next = func(context.Context) (*Result, error)
	tests := []struct {
		name    string
		wrapper func(ctx context.Context, x *Exec, next next) (*Result, error)
		want    string
		ran     int
	}{
		{"passes", func(ctx context.Context, _ *Exec, next next) (*Result, error) { return next(ctx) }, "rendered:body", 1},
		{"copies-the-result", func(ctx context.Context, _ *Exec, next next) (*Result, error) {
			r, err := next(ctx)
			if err != nil {
				return nil, err
			}
			return &Result{Value: slices.Clone(r.Value), Content: []Block{TextBlock("forged")}}, nil
		}, "rendered:body", 1},
		{"replaces-the-value", func(ctx context.Context, _ *Exec, next next) (*Result, error) {
			r, err := next(ctx)
			if err != nil {
				return nil, err
			}
			return &Result{Value: lossless.Str("not " + string(r.Value[1:5])).Encode(), Content: []Block{TextBlock("forged")}}, nil
		}, "rendered:not body", 1},
		{"invents-a-success", func(context.Context, *Exec, next) (*Result, error) { return &Result{Value: str("cached")}, nil }, "rendered:cached", 0},
		{"invents-an-invalid-success", func(context.Context, *Exec, next) (*Result, error) {
			return &Result{Value: lossless.Text("1")}, nil
		}, `Error: tool "x" returned invalid output: "value" must be a string`, 0},
		{"invents-a-failure", func(context.Context, *Exec, next) (*Result, error) {
			return &Result{IsError: true, Error: &ErrorInfo{Message: "down", Code: "DOWN"}}, nil
		}, "Error: down", 0},
		{"invents-an-empty-failure", func(context.Context, *Exec, next) (*Result, error) { return &Result{IsError: true}, nil }, `Error: tool "x" failed`, 0},
		{"adds-bad-context", func(context.Context, *Exec, next) (*Result, error) {
			return &Result{Value: str("v"), Contexts: []Message{{Content: []Block{{}}}}}, nil
		}, "Error: tools/execute: contexts[0]: content block 0: a block without a type", 0},
		{"invents-content-of-a-failure", func(context.Context, *Exec, next) (*Result, error) {
			return &Result{IsError: true, Content: []Block{TextBlock("mine")}}, nil
		}, "mine", 0},
		{"panics", func(context.Context, *Exec, next) (*Result, error) { panic("ouch") }, "ouch", 0},
		{"returns-nothing", func(context.Context, *Exec, next) (*Result, error) { return nil, nil }, "Error: tools/execute: a listener returned no result", 0},
		{"fails", func(context.Context, *Exec, next) (*Result, error) { return nil, errBoom }, "boom", 0},
		{"cancels-its-context", func(ctx context.Context, _ *Exec, next next) (*Result, error) {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return next(ctx)
		}, "Error: tool call aborted before dispatch", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			ran, renders := 0, map[string]int{}
			w.owner(w.root, "o", def("x", func(d *Definition) {
				d.Output.Render = func(_ context.Context, _, value lossless.Text) ([]Block, error) {
					if renders[string(value)]++; renders[string(value)] > 1 {
						t.Errorf("%s was rendered again", value)
					}
					return []Block{TextBlock("rendered:" + strings.Trim(string(value), `"`))}, nil
				}
			}, body(func(context.Context, *Exec) (Outcome, error) { ran++; return Outcome{Value: str("body")}, nil })))
			_, err := AroundExecute.On(w.root, func(ctx context.Context, x *Exec, next func(context.Context) (*Result, error)) (*Result, error) {
				return tt.wrapper(ctx, x, next)
			})
			w.must(err)
			if r := w.call("x", ""); !strings.Contains(text(r), tt.want) || ran != tt.ran {
				t.Errorf("got %s, ran %d", text(r), ran)
			}
		})
	}
}

func TestPostExecute(t *testing.T) {
	message := Message{Content: []Block{TextBlock("look")}}
	tests := []struct {
		name     string
		fail     bool
		decision PostDecision
		err      error
		want     string
		contexts int
	}{
		{"accept", false, Accept(), nil, "body", 1},
		{"content", false, PostDecision{Kind: PostAccept, Content: []Block{TextBlock("other")}, Contexts: []Message{message}}, nil, "other", 2},
		{"content-of-a-failure", true, PostDecision{Kind: PostAccept, Content: []Block{TextBlock("other")}}, nil, "other", 1},
		{"value", false, PostDecision{Kind: PostAccept, Value: str("other")}, nil, "other", 1},
		{"invalid-value", false, PostDecision{Kind: PostAccept, Value: lossless.Text("{}")}, nil, `Error: tool "x" returned invalid output: "value" must be a string`, 1},
		{"value-of-a-failure", true, PostDecision{Kind: PostAccept, Value: str("other")}, nil, "Error: tools/post-execute: a listener replaced the value of a call that failed", 0},
		{"both", false, PostDecision{Kind: PostAccept, Value: str("o"), Content: []Block{TextBlock("o")}}, nil, "not both", 0},
		{"block", false, PostDecision{Kind: PostBlock, Feedback: "secret"}, nil, "Error: secret", 0},
		{"block-with-context", false, PostDecision{Kind: PostBlock, Contexts: []Message{message}}, nil, `Error: the result of tool "x" was withheld`, 1},
		{"bad-content", false, PostDecision{Kind: PostAccept, Content: []Block{{}}}, nil, "without a type", 0},
		{"bad-context", false, PostDecision{Kind: PostAccept, Contexts: []Message{{Content: []Block{{}}}}}, nil, "contexts[0]", 0},
		{"block-with-value", false, PostDecision{Kind: PostBlock, Value: str("v")}, nil, "takes feedback", 0},
		{"too-many-contexts", false, PostDecision{Kind: PostAccept, Contexts: slices.Repeat([]Message{message}, 2*maxContexts)}, nil, "body", maxContexts},
		{"nonsense", false, PostDecision{Kind: "maybe"}, nil, `not kind "maybe"`, 0},
		{"error", false, Accept(), errBoom, "boom", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.owner(w.root, "o", def("x", body(func(_ context.Context, exec *Exec) (Outcome, error) {
				exec.DeferContext(message)
				exec.ConcludeTurn()
				if tt.fail {
					return Outcome{}, errBoom
				}
				return Outcome{Value: str("body")}, nil
			})))
			_, err := PostExecute.On(w.root, func(context.Context, Finished, func(context.Context) (PostDecision, error)) (PostDecision, error) {
				return tt.decision, tt.err
			})
			w.must(err)
			r := w.call("x", "")
			if !strings.Contains(text(r), tt.want) || len(r.Contexts) != tt.contexts {
				t.Errorf("got %s with %d contexts", text(r), len(r.Contexts))
			}
			if r.ConcludeTurn == r.IsError {
				t.Errorf("concludes the turn: %v, failed: %v", r.ConcludeTurn, r.IsError)
			}
		})
	}
}

func TestFinalizeContent(t *testing.T) {
	w := newWorld(t)
	runs := 0
	answer := func() ([]Block, error) { return []Block{TextBlock("final")}, nil }
	w.owner(w.root, "o", def("x", func(d *Definition) {
		d.FinalizeContent = func(context.Context, *Exec, *Result) ([]Block, error) { runs++; return answer() }
	}))
	canceled, cancel := context.WithCancel(w.ctx())
	cancel()
	for name, call := range map[string]func() *Result{
		"success":           func() *Result { return w.call("x", "") },
		"invalid-arguments": func() *Result { return w.call("x", "[") },
		"aborted":           func() *Result { return w.r.Execute(canceled, Call{Name: "x"}) },
	} {
		runs = 0
		if r := call(); text(r) != "final" || runs != 1 {
			t.Errorf("%s: got %s after %d runs", name, text(r), runs)
		}
	}
	for name, fn := range map[string]func() ([]Block, error){
		"nil":     func() ([]Block, error) { return nil, nil },
		"error":   func() ([]Block, error) { return []Block{TextBlock("no")}, errBoom },
		"panic":   func() ([]Block, error) { panic("ouch") },
		"invalid": func() ([]Block, error) { return []Block{{}}, nil },
	} {
		answer = fn
		if r := w.call("x", ""); text(r) != "hi" || r.IsError {
			t.Errorf("%s: got %s", name, text(r))
		}
	}
}
