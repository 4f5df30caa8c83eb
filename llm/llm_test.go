package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/llmtest"
	"github.com/dsh-go/dsh/lossless"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRetryNext(t *testing.T) {
	ms := func(n int64) *int64 { return &n }
	normal := llm.DefaultRetry()
	normal.Jitter = 0
	forever := normal
	forever.Always = true
	for _, c := range []struct {
		name   string
		policy llm.Retry
		n      int
		f      *llm.Failure
		wait   time.Duration // -1: no retry
	}{
		{"first", normal, 1, &llm.Failure{Code: llm.CodeServer}, 500 * time.Millisecond},
		{"second", normal, 2, &llm.Failure{Code: llm.CodeTransport}, time.Second},
		{"third", normal, 3, &llm.Failure{Code: llm.CodeServer}, -1},
		{"providerSays", normal, 1, &llm.Failure{Code: llm.CodeRateLimit, RetryAfterMs: ms(3000)}, 3 * time.Second},
		{"providerSaysLess", normal, 2, &llm.Failure{Code: llm.CodeRateLimit, RetryAfterMs: ms(0)}, time.Second},
		{"providerSaysTooMuch", normal, 1, &llm.Failure{Code: llm.CodeRateLimit, RetryAfterMs: ms(60_000)}, -1},
		{"alwaysCuts", forever, 1, &llm.Failure{Code: llm.CodeRateLimit, RetryAfterMs: ms(60_000)}, 10 * time.Second},
		{"alwaysGoesOn", forever, 1000, &llm.Failure{Code: llm.CodeEmpty}, 10 * time.Second},
		{"alwaysNotForEver", forever, 1, &llm.Failure{Code: llm.CodeAuth}, -1},
		{"permanent", normal, 1, &llm.Failure{Code: llm.CodeServer, Permanent: true}, -1},
		{"aborted", normal, 1, &llm.Failure{Code: llm.CodeAborted}, -1},
		{"zero", llm.Retry{}, 1, &llm.Failure{Code: llm.CodeServer}, -1},
		{"none", normal, 1, nil, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			wait, ok := c.policy.Next(c.n, c.f)
			if !ok {
				wait = -1
			}
			if wait != c.wait {
				t.Errorf("wait %v, want %v", wait, c.wait)
			}
		})
	}
}

// TestRetryLast: a failure that ends the run because of a long wait says how long.
func TestRetryLast(t *testing.T) {
	hour, second := int64(3_600_000), int64(1000)
	long := &llm.Failure{Code: llm.CodeRateLimit, Message: "slow down", RetryAfterMs: &hour}
	got := llm.DefaultRetry().Run(t.Context(), 0, func() *llm.Failure { return long }, nil)
	if want := "slow down; the provider asks to wait 3600 s, more than this program waits (10 s)"; got.Message != want || long.Message != "slow down" {
		t.Errorf("%q, want %q", got.Message, want)
	}
	always := llm.DefaultRetry()
	always.Always = true
	for name, f := range map[string]*llm.Failure{
		"short":   llm.DefaultRetry().Last(&llm.Failure{Code: llm.CodeRateLimit, Message: "a", RetryAfterMs: &second}),
		"notSaid": llm.DefaultRetry().Last(&llm.Failure{Code: llm.CodeRateLimit, Message: "a"}),
		"never":   llm.DefaultRetry().Last(&llm.Failure{Code: llm.CodeAuth, Message: "a", RetryAfterMs: &hour}),
		"always":  always.Last(&llm.Failure{Code: llm.CodeRateLimit, Message: "a", RetryAfterMs: &hour}),
	} {
		if f.Message != "a" {
			t.Errorf("%s: %q", name, f.Message)
		}
	}
}

// TestRetryBounded: whatever fails and whatever is asked for, a wait is within its bounds.
func TestRetryBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := llm.DefaultRetry()
		p.Always = rapid.Bool().Draw(t, "always")
		f := &llm.Failure{Code: llm.CodeServer}
		if rapid.Bool().Draw(t, "asks") {
			n := rapid.Int64Range(-5, 1<<40).Draw(t, "ms")
			f.RetryAfterMs = &n
		}
		n := rapid.IntRange(1, 1<<20).Draw(t, "n")
		if wait, ok := p.Next(n, f); ok && (wait < 0 || wait > p.Limit || (n > p.Max && !p.Always)) {
			t.Fatalf("failure %d of %+v: wait %v", n, f, wait)
		}
	})
}

func TestRetryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := llm.DefaultRetry()
		p.Jitter = 0
		start, tries := time.Now(), 0
		var notes []string
		f := p.Run(t.Context(), 0, func() *llm.Failure {
			if tries++; tries == 3 {
				return nil
			}
			return llm.Fail(llm.CodeServer, "down")
		}, func(n int, _ *llm.Failure, wait time.Duration) error {
			notes = append(notes, fmt.Sprint(n, wait))
			return nil
		})
		if f != nil || tries != 3 || time.Since(start) != 1500*time.Millisecond || !slices.Equal(notes, []string{"1 500ms", "2 1s"}) {
			t.Errorf("failure %v after %d tries and %v; notes %v", f, tries, time.Since(start), notes)
		}
		// A run that is continued has the retries that are left.
		tries = 0
		if f := p.Run(t.Context(), 2, func() *llm.Failure { tries++; return llm.Fail(llm.CodeServer, "down") }, nil); f == nil || tries != 1 {
			t.Errorf("continued: %v after %d tries", f, tries)
		}
		// A wait ends with its context.
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start = time.Now()
		if f := p.Run(ctx, 0, func() *llm.Failure { return llm.Fail(llm.CodeServer, "down") }, nil); f.Code != llm.CodeTimeout || time.Since(start) != 100*time.Millisecond {
			t.Errorf("cancelled: %v after %v", f, time.Since(start))
		}
		stop := errors.New("the log is full")
		if f := p.Run(t.Context(), 0, func() *llm.Failure { return llm.Fail(llm.CodeServer, "down") }, func(int, *llm.Failure, time.Duration) error { return stop }); f.Code != llm.CodeInternal {
			t.Errorf("stopped: %v", f)
		}
	})
}

// fake is an adapter whose stream is the function.
type fake struct {
	stream func(ctx context.Context, yield func(llm.Chunk) bool)
}

func (f fake) Models() []llm.Model { return []llm.Model{{Name: "one"}, {Name: "two"}} }
func (f fake) Model(name string) (llm.Model, error) {
	if name == "bad" {
		return llm.Model{}, errors.New("no such model")
	}
	return llm.Model{Name: name, MaxTokens: 7, Efforts: []string{"low"}}, nil
}
func (f fake) Encode(r *llm.Request) ([]byte, error) { return []byte(r.System), nil }
func (f fake) Stream(ctx context.Context, _ *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) { f.stream(ctx, yield) }
}

func prepared(t *testing.T, f fake) *llm.Call {
	t.Helper()
	var g llm.Registry
	if _, err := g.Register("p", f); err != nil {
		t.Fatal(err)
	}
	c, err := g.Prepare(llm.Config{Provider: "p"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestPrepare(t *testing.T) {
	var g llm.Registry
	remove, err := g.Register("p", fake{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Register("p", fake{}); !errors.Is(err, llm.ErrRegistered) {
		t.Errorf("registered twice: %v", err)
	}
	for _, name := range []string{"", "a b", "a/b", strings.Repeat("x", 65), "é"} {
		if _, err := g.Register(name, fake{}); err == nil {
			t.Errorf("registered as %q", name)
		}
	}
	c, err := g.Prepare(llm.Config{Provider: "p", Effort: "low"})
	if err != nil || c.Config.Model != "one" || c.Config.MaxTokens != 7 {
		t.Errorf("prepared %+v, %v", c, err)
	}
	for code, cfg := range map[string]llm.Config{
		llm.CodeNoAdapter:         {Provider: "q"},
		llm.CodeUnknownModel:      {Provider: "p", Model: "bad"},
		llm.CodeUnsupportedEffort: {Provider: "p", Effort: "huge"},
		llm.CodeInvalidRequest:    {Provider: "p", MaxTokens: -1},
	} {
		var f *llm.Failure
		if _, err := g.Prepare(cfg); !errors.As(err, &f) || f.Code != code {
			t.Errorf("%+v: %v, want %s", cfg, err, code)
		}
	}
	remove()
	remove()
	if got := g.Providers(); len(got) != 0 || g.Models("p") != nil {
		t.Errorf("left: %v", got)
	}
	for i := range limits.LLMProviders + 1 {
		_, err = g.Register(fmt.Sprint("x", i), fake{})
	}
	if err == nil {
		t.Error("there is no limit of providers")
	}
}

func TestCallKeepsTheGrammar(t *testing.T) {
	text := llm.Chunk{Type: llm.TextDelta, Text: "a"}
	for _, c := range []struct {
		name   string
		stream func(context.Context, func(llm.Chunk) bool)
		reason llm.FinishReason
		code   string
	}{
		{"noFinish", func(_ context.Context, y func(llm.Chunk) bool) { y(text) }, llm.Stop, ""},
		{"twoFinishes", func(_ context.Context, y func(llm.Chunk) bool) {
			_ = y(llm.Chunk{Type: llm.Finish, Reason: llm.MaxTokens}) && y(text)
		}, llm.MaxTokens, ""},
		{"panic", func(context.Context, func(llm.Chunk) bool) { panic("oops") }, llm.Failed, llm.CodeInternal},
	} {
		t.Run(c.name, func(t *testing.T) {
			call := prepared(t, fake{c.stream})
			chunks := slices.Collect(call.Stream(t.Context(), &llm.Request{Config: call.Config}))
			last := chunks[len(chunks)-1]
			if last.Type != llm.Finish || last.Reason != c.reason || (c.code != "" && last.Failure.Code != c.code) {
				t.Errorf("chunks %+v", chunks)
			}
			again := slices.Collect(call.Stream(t.Context(), &llm.Request{Config: call.Config}))
			if len(again) != 1 || again[0].Failure.Code != llm.CodeInvalidRequest {
				t.Errorf("streamed again: %+v", again)
			}
		})
	}
	t.Run("otherConfig", func(t *testing.T) {
		call := prepared(t, fake{})
		if _, err := call.Encode(&llm.Request{}); err == nil {
			t.Error("a request with another config is encoded")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		call := prepared(t, fake{func(_ context.Context, y func(llm.Chunk) bool) {
			cancel()
			y(llm.Chunk{Type: llm.Finish, Reason: llm.Failed, Failure: llm.Fail(llm.CodeTransport, "gone")})
		}})
		_, a, _ := llmtest.Collect(call.Stream(ctx, &llm.Request{Config: call.Config}))
		if a.Reason != llm.Aborted || !errors.Is(a.Failure, context.Canceled) {
			t.Errorf("answer %+v, %v", a, a.Failure)
		}
	})
	t.Run("readerPanics", func(t *testing.T) {
		defer func() {
			if recover() != "mine" {
				t.Error("the reader's panic was swallowed")
			}
		}()
		call := prepared(t, fake{func(_ context.Context, y func(llm.Chunk) bool) { y(text) }})
		for range call.Stream(t.Context(), &llm.Request{Config: call.Config}) {
			panic("mine")
		}
	})
}

// TestEmitterAndAssembler: whatever an adapter does with an emitter, the stream
// keeps the grammar, and the deltas amount to the blocks in the ends.
func TestEmitterAndAssembler(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all, part := llm.NewAssembler(), llm.NewAssembler()
		var chunks []llm.Chunk
		e := llm.NewEmitter(func(c llm.Chunk) bool {
			chunks = append(chunks, c)
			all.Add(c)
			if c.Type != llm.BlockEnd || c.Block == nil || c.Block.Signature+c.Block.Redacted == "" && c.Block.Type != llm.CallBlock {
				part.Add(c)
			}
			return true
		})
		types := []llm.BlockType{llm.TextBlock, llm.ReasoningBlock, llm.CallBlock}
		n := 0
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			if n == 0 || rapid.IntRange(0, 3).Draw(t, "open") == 0 {
				e.Open(rapid.SampledFrom(types).Draw(t, "type"))
				n++
			}
			i := rapid.IntRange(0, n-1).Draw(t, "i")
			s := rapid.String().Draw(t, "s")
			if e.Is(i, llm.CallBlock) {
				e.Call(i, rapid.SampledFrom([]string{"", "x"}).Draw(t, "id"), "name", s)
			} else {
				e.Append(i, s)
			}
		}
		if rapid.IntRange(0, 5).Draw(t, "reset") == 0 {
			e.Reset()
		}
		e.Usage(llm.Usage{Input: 1})
		e.Finish(llm.Stop, lossless.Value{})
		e.Fail(llm.Fail(llm.CodeServer, "too late"))
		if err := llmtest.Grammar(chunks); err != nil {
			t.Fatal(err)
		}
		a := all.Answer()
		ids := map[string]bool{}
		for _, b := range a.Content {
			if a.Failure == nil && b.Type == llm.CallBlock && (b.ID == "" || ids[b.ID]) {
				t.Fatalf("the id %q is none, or not the only one", b.ID)
			}
			ids[b.ID] = b.Type == llm.CallBlock
		}
		if len(part.Answer().Content) < len(a.Content) {
			t.Fatalf("without ends: %d blocks, with them %d", len(part.Answer().Content), len(a.Content))
		}
	})
}

func TestBounds(t *testing.T) {
	a := llm.NewAssembler()
	for range limits.LLMMessage/(1<<20) + 1 {
		a.Add(llm.Chunk{Type: llm.TextDelta, Text: llm.Text(strings.Repeat("x", 1<<20))})
	}
	if f := a.Answer().Failure; f == nil || f.Code != llm.CodeMalformed {
		t.Errorf("too many bytes: %v", f)
	}
	a = llm.NewAssembler()
	for i := range limits.LLMBlocks + 1 {
		a.Add(llm.Chunk{Type: llm.BlockStart, Index: i, BlockType: llm.TextBlock})
	}
	if f := a.Answer().Failure; f == nil || f.Code != llm.CodeMalformed {
		t.Errorf("too many blocks: %v", f)
	}
	_, ans, err := llmtest.Collect(func(yield func(llm.Chunk) bool) {
		e := llm.NewEmitter(yield)
		for !e.Done() {
			e.Append(e.Open(llm.TextBlock), "x")
		}
	})
	if err != nil || ans.Failure == nil || ans.Failure.Code != llm.CodeMalformed {
		t.Errorf("too many blocks emitted: %v, %v", ans.Failure, err)
	}
}

// FuzzAssembler: chunks of any shape, as a log that was damaged may have them.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte(`[{"type":"block-end","index":3},{"type":"text-delta","index":-1,"text":"x"},{"type":"usage"},{"type":"finish"}]`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		var chunks []llm.Chunk
		if json.Unmarshal(text, &chunks) != nil {
			return
		}
		a := llm.NewAssembler()
		for _, c := range chunks {
			a.Add(c)
			_ = a.Answer()
		}
	})
}

func BenchmarkAssemble(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		a := llm.NewAssembler()
		for i := range 1000 {
			a.Add(llm.Chunk{Type: llm.TextDelta, Index: i % 4, Text: "some words "})
		}
		_ = a.Answer()
	}
}
