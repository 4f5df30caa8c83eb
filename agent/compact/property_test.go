package compact

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// TestSurfaceStaysValid: whatever the conversation, wherever it is cut and whatever
// the model answers, the surface is one that a provider takes; the messages of the
// open step stay; the log reads back as the same surface; each compaction that was
// begun has ended; nothing grows.
func TestSurfaceStaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newSession(t)
		defer func() { _ = s.Close(context.Background()) }()
		text := rapid.Custom(func(t *rapid.T) string {
			size := rapid.SampledFrom([]int{0, 10, 500, limits.CompactResult - 1, limits.CompactResult + 1}).Draw(t, "size")
			return strings.Repeat(rapid.SampledFrom([]string{"a", "é", "\xff", "𝄞"}).Draw(t, "letter"), size)
		})
		k := &compactor{s: s, ask: func(context.Context, agent.OneShot) (*llm.Answer, error) {
			switch n := rapid.IntRange(0, 3).Draw(t, "answer"); n {
			case 0:
				return nil, llm.Fail(rapid.SampledFrom([]string{llm.CodeContextWindow, llm.CodeServer}).Draw(t, "code"), "scripted")
			default:
				return &llm.Answer{Content: []message.Block{message.Plain(strings.Repeat("s", n*n*n*100))}}, nil
			}
		}}
		if rapid.Bool().Draw(t, "window") {
			k.room = roomIn(int64(rapid.IntRange(100, 100_000).Draw(t, "tokens")), 0)
		}
		for turn := 1; turn <= rapid.IntRange(1, 3).Draw(t, "turns"); turn++ {
			add(t, s, session.TurnStart{Turn: turn})
			for n := 1; n <= rapid.IntRange(1, 4).Draw(t, "steps"); n++ {
				if rapid.IntRange(0, 2).Draw(t, "compact") == 0 {
					random(t, s, k, math.MaxInt64)
				}
				from := s.Len()
				if rapid.IntRange(0, 3).Draw(t, "within") == 0 {
					add(t, s, session.StepStart{Turn: turn, Step: n}, sessiontest.User(fmt.Sprintf("w-%d-%d", turn, n), "Open. "+text.Draw(t, "open")))
					random(t, s, k, from)
					add(t, s, session.StepEnd{Turn: turn, Step: n})
					continue
				}
				var calls []string
				for range rapid.IntRange(0, 3).Draw(t, "calls") {
					calls = append(calls, "tool:"+text.Draw(t, "result"))
				}
				prompt := ""
				if n == 1 {
					prompt = "Do it. " + text.Draw(t, "prompt")
				}
				step(t, s, turn, n, prompt, "ok "+text.Draw(t, "said"), calls...)
			}
			endTurn(t, s, turn)
		}
		read, err := session.NewLog(s.Meta(), s.Events(0))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(s.Surface(), read.Surface(), cmp.Comparer(lossless.Equal)); d != "" {
			t.Fatal(d)
		}
	})
}

// random compacts in one of the ways and checks the surface. from is the start of
// the open step.
func random(t *rapid.T, s *session.Session, k *compactor, from int64) {
	before := seen(s)
	size := estimate(s.Log)
	at := s.Len()
	if rapid.Bool().Draw(t, "prune") {
		if _, _, err := k.prune(int64(rapid.IntRange(0, 10_000).Draw(t, "want"))); err != nil {
			t.Fatal(err)
		}
	}
	if rapid.Bool().Draw(t, "summarise") {
		nodes := s.Surface()
		end := position(nodes, from)
		keep := int64(rapid.IntRange(0, 10_000).Draw(t, "keep"))
		n, err := k.summarise(t.Context(), "full", cut(nodes, end, keep, keep*rapid.Int64Range(0, 3).Draw(t, "step")), 0)
		if n > end || (n > 0) != (err == nil) {
			t.Fatalf("replaced %d of %d: %v", n, end, err)
		}
		if f := new(llm.Failure); err != nil && !errors.Is(err, ErrNothing) && !errors.As(err, &f) {
			t.Fatal(err)
		}
	}
	after := seen(s)
	if err := Valid(after); err != nil && len(after) > 0 {
		t.Fatalf("%v: %q", err, show(s))
	}
	if estimate(s.Log) > size {
		t.Fatalf("%d tokens became %d", size, estimate(s.Log))
	}
	if from != math.MaxInt64 {
		if d := cmp.Diff(before[len(before)-1], after[len(after)-1], cmp.Comparer(lossless.Equal)); d != "" {
			t.Fatalf("the open step's message changed: %s", d)
		}
	}
	open := 0
	for _, e := range s.Events(at) {
		switch e.Type {
		case session.TypeCompactStart:
			open++
		case session.TypeCompactEnd:
			open--
		}
	}
	if open != 0 {
		t.Fatal("a compaction did not end")
	}
}
