package llmtest

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

// Turn is what the model behind an adapter does with one request.
type Turn struct {
	Text      string
	Reasoning string
	Calls     []llm.Block // tool calls
	Fail      bool        // it answers with a failure that may pass (SERVER or RATE_LIMIT)
	Hang      bool        // it says the text and then nothing more, until the client goes
}

// New makes an adapter, with provider name "p" and model name "m", behind which a
// model answers requests with the turns in their order. It registers its own
// cleanup with t.
type New func(t *testing.T, turns ...Turn) llm.Adapter

// Run is the conformance suite of adapters.
func Run(t *testing.T, open New) {
	t.Run("text", func(t *testing.T) {
		a := ask(t, open(t, Turn{Text: "hello, 世界 🌍"}))
		if a.Reason != llm.Stop || llm.JoinText(a.Content) != "hello, 世界 🌍" {
			t.Fatalf("answer %+v", a)
		}
	})
	t.Run("parallelCalls", func(t *testing.T) { parallelCalls(t, open) })
	t.Run("failure", func(t *testing.T) {
		a := ask(t, open(t, Turn{Fail: true}))
		if a.Reason != llm.Failed || !a.Failure.Retryable() {
			t.Fatalf("answer %+v, failure %+v; want one that may be retried", a, a.Failure)
		}
	})
	t.Run("empty", func(t *testing.T) {
		a := ask(t, open(t, Turn{}))
		if a.Failure == nil || a.Failure.Code != llm.CodeEmpty {
			t.Fatalf("failure %v, want %s", a.Failure, llm.CodeEmpty)
		}
	})
	t.Run("cancel", func(t *testing.T) { cancelled(t, open) })
	t.Run("leave", func(t *testing.T) {
		for range call(t, open(t, Turn{Text: "a", Hang: true})).Stream(context.Background(), request()) {
			break // must return although the model says nothing more
		}
	})
	t.Run("pureEncode", func(t *testing.T) {
		a := open(t)
		first, err := a.Encode(request())
		again, err2 := a.Encode(request())
		if err != nil || err2 != nil || !bytes.Equal(first, again) || len(first) == 0 {
			t.Fatalf("two encodings differ, or failed: %v %v\n%s\n%s", err, err2, first, again)
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		const n = 8
		turns := make([]Turn, n)
		for i := range turns {
			turns[i].Text = "x"
		}
		a := open(t, turns...)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				r := request()
				r.Session = fmt.Sprint("s", i)
				c := call(t, a)
				if _, ans, err := Collect(c.Stream(context.Background(), r)); err != nil || ans.Failure != nil {
					t.Error(err, ans.Failure)
				}
			})
		}
		wg.Wait()
	})
}

func parallelCalls(t *testing.T, open New) {
	turn := Turn{Reasoning: "let me see"}
	for i := range 200 {
		turn.Calls = append(turn.Calls, llm.Block{Type: llm.CallBlock, ID: fmt.Sprint("id", i), Name: "read", Arguments: llm.Text(fmt.Sprintf(`{"path": "ü/%d",  "n":1.0}`, i))})
	}
	a := ask(t, open(t, turn))
	calls := a.Message("", llm.Config{}).Calls()
	if a.Reason != llm.ToolCalls || len(calls) != 200 {
		t.Fatalf("reason %s, %d calls, %v", a.Reason, len(calls), a.Failure)
	}
	ids := map[string]bool{} // a model may have its own ids; they are one for each call
	for i, c := range calls {
		if c.ID == "" || ids[c.ID] {
			t.Fatalf("call %d has the id %q, which is none or another's", i, c.ID)
		}
		ids[c.ID] = true
		if w := turn.Calls[i]; c.Name != w.Name || c.Arguments != w.Arguments {
			t.Fatalf("call %d is %+v, want %+v", i, c, w)
		}
	}
}

func cancelled(t *testing.T, open New) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	asm := llm.NewAssembler()
	for c := range call(t, open(t, Turn{Text: "partial", Hang: true})).Stream(ctx, request()) {
		asm.Add(c)
		if c.Type == llm.TextDelta {
			cancel()
		}
	}
	a := asm.Answer()
	if a.Reason != llm.Aborted || a.Failure.Code != llm.CodeAborted || !strings.HasPrefix("partial", llm.JoinText(a.Content)) {
		t.Fatalf("answer %+v, failure %v", a, a.Failure)
	}
}

func request() *llm.Request {
	return &llm.Request{
		Config: llm.Config{Provider: "p", Model: "m"}, System: "be brief",
		Messages: []llm.Message{llm.UserText("hello")},
		Tools:    []llm.Tool{{Name: "read", Description: "reads", Parameters: lossless.Obj(lossless.M("type", lossless.Str("object")))}},
	}
}

func call(t *testing.T, a llm.Adapter) *llm.Call {
	t.Helper()
	var g llm.Registry
	remove, err := g.Register("p", a)
	if err != nil {
		t.Fatal(err)
	}
	defer remove()
	c, err := g.Prepare(llm.Config{Provider: "p", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	c.Config.MaxTokens = 0
	return c
}

func ask(t *testing.T, a llm.Adapter) llm.Answer {
	t.Helper()
	_, ans, err := Collect(call(t, a).Stream(context.Background(), request()))
	if err != nil {
		t.Fatal(err)
	}
	return ans
}
