package tool

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
	"github.com/google/go-cmp/cmp"
)

func TestProgress(t *testing.T) {
	w := newWorld(t)
	var kept *Exec
	half, nan := 0.5, math.NaN()
	w.owner(w.root, "o", def("x", body(func(_ context.Context, exec *Exec) (Outcome, error) {
		kept = exec
		exec.Progress(Progress{Text: "one", Done: &half})
		exec.Progress(Progress{Text: strings.Repeat("é", 2*limits.Progress), Done: &nan})
		return Outcome{Value: str("")}, nil
	})))
	var event, callback []Progress
	_, err := Progressed.On(w.root, func(_ context.Context, p ProgressReport) { event = append(event, p.Progress) })
	w.must(err)
	r := w.r.Execute(w.ctx(), Call{Name: "x", OnProgress: func(p Progress) {
		callback = append(callback, p)
		kept.Progress(Progress{Text: "a report within a report is dropped"})
		panic("a bad reader")
	}})
	if r.IsError {
		t.Fatal(r.Error)
	}
	if diff := cmp.Diff(event, callback); diff != "" {
		t.Error(diff)
	}
	if len(event) != 2 || *event[0].Done != 0.5 || event[1].Done != nil {
		t.Fatalf("got %+v", event)
	}
	if n := utf8.RuneCountInString(event[1].Text); n > limits.Progress+100 {
		t.Errorf("%d characters", n)
	}
	kept.Progress(Progress{Text: "too late"})
	if len(event) != 2 || kept.Dropped() != 2 {
		t.Errorf("%d events, %d dropped", len(event), kept.Dropped())
	}
}

// TestProgressListenerUnmountsTheTool must not wait for the call that reports.
func TestProgressListenerUnmountsTheTool(t *testing.T) {
	w := newWorld(t)
	f := w.owner(w.root, "o", def("x", body(func(_ context.Context, exec *Exec) (Outcome, error) {
		exec.Progress(Progress{Text: "now"})
		return Outcome{Value: str("done")}, nil
	})))
	var disposal error
	_, err := Progressed.On(w.root, func(ctx context.Context, _ ProgressReport) { _, disposal = f.Dispose(ctx) })
	w.must(err)
	results := make(chan *Result, 1)
	go func() { results <- w.call("x", "") }()
	if r := within(t, results, "result"); text(r) != "done" || !errors.Is(disposal, cordis.ErrSelf) {
		t.Errorf("got %s, %v", text(r), disposal)
	}
}

func TestProgressRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.owner(w.root, "o", def("x", body(func(_ context.Context, exec *Exec) (Outcome, error) {
			for range 1000 {
				exec.Progress(Progress{})
			}
			time.Sleep(time.Second)
			for range 1000 {
				exec.Progress(Progress{})
			}
			return Outcome{Value: str("")}, nil
		})))
		n := 0
		w.r.Execute(w.ctx(), Call{Name: "x", OnProgress: func(Progress) { n++ }})
		if n != progressBurst+progressPerSecond {
			t.Errorf("got %d", n)
		}
	})
}

func TestDeferContext(t *testing.T) {
	w := newWorld(t)
	var kept *Exec
	m := Message{Content: []Block{TextBlock("look")}}
	w.owner(w.root, "o", def("x", body(func(_ context.Context, exec *Exec) (Outcome, error) {
		kept = exec
		if exec.DeferContext(Message{Content: []Block{{}}}) {
			t.Error("took an invalid message")
		}
		for i := range maxContexts + 1 {
			if got := exec.DeferContext(m); got != (i < maxContexts) {
				t.Errorf("message %d: %v", i, got)
			}
		}
		exec.ConcludeTurn()
		return Outcome{Value: str("")}, nil
	})))
	r := w.call("x", "")
	if len(r.Contexts) != maxContexts || !r.ConcludeTurn {
		t.Errorf("%d contexts, concludes %v", len(r.Contexts), r.ConcludeTurn)
	}
	if kept.DeferContext(m) {
		t.Error("took a message after the end")
	}
}

func TestExecJSON(t *testing.T) {
	e := &Exec{Token: 7, CallID: "a<b", RootCallID: "root", Name: "x", Arguments: lossless.Text(`{"n":1.50}`), Parent: 3}
	text, err := e.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"token":7,"callId":"a<b","rootCallId":"root","name":"x","arguments":{"n":1.50},"parent":3}`; string(text) != want {
		t.Errorf("got %s", text)
	}
	refused := &Exec{Arguments: null}
	if text, err := json.Marshal(refused); err != nil || !json.Valid(text) {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestBlockJSON(t *testing.T) {
	tests := []struct{ name, in, out, text string }{
		{"text", `{"type":"text","text":"a<b"}`, `{"type":"text","text":"a<b"}`, "a<b"},
		{"text-with-more", `{"type":"text","text":"a","lang":"go"}`, `{"type":"text","text":"a","lang":"go"}`, "a"},
		{"unknown-tag", `{"type":"chart","n":1.50,"__proto__":{}}`, `{"type":"chart","n":1.50,"__proto__":{}}`, ""},
		{"text-without-text", `{"type":"text"}`, `{"type":"text"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b Block
			if err := b.UnmarshalJSON([]byte(tt.in)); err != nil {
				t.Fatal(err)
			}
			out, err := b.MarshalJSON()
			if err != nil || string(out) != tt.out || b.Text != tt.text || b.check() != nil {
				t.Errorf("got %s, text %q, %v", out, b.Text, err)
			}
		})
	}
	for _, in := range []string{``, `1`, `[]`, `{}`, `{"type":1}`, `null`} {
		var b Block
		if err := b.UnmarshalJSON([]byte(in)); err == nil {
			t.Errorf("took %s", in)
		}
	}
}

func FuzzBlock(f *testing.F) {
	f.Add([]byte(`{"type":"text","text":"a"}`))
	f.Add([]byte(`{"type":"x","text":null}`))
	f.Add([]byte(`{"type":"text","text":"\ud800"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		var b Block
		if b.UnmarshalJSON(in) != nil {
			return
		}
		out, err := b.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		want, err := lossless.Parse(in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := lossless.Parse(out)
		if err != nil || !lossless.Equal(want, got) {
			t.Fatalf("%s became %s: %v", in, out, err)
		}
		if b.Type != "" && b.check() != nil {
			t.Fatalf("%s: %v", in, b.check())
		}
	})
}

func TestLastToken(t *testing.T) {
	w := newWorld(t)
	var seen Token
	w.owner(w.root, "o", def("x", body(func(_ context.Context, exec *Exec) (Outcome, error) {
		seen = exec.Token
		return Outcome{Value: str("")}, nil
	})))
	before := LastToken()
	w.r.Execute(w.ctx(), Call{Name: "x"})
	if seen <= before || LastToken() < seen {
		t.Errorf("token %d, last before %d, last after %d", seen, before, LastToken())
	}
}
