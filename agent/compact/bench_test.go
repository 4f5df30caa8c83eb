package compact

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// BenchmarkMeter is what a step costs that has nothing to compact, in a log of so
// many events: one step is appended, then the size of the next request is asked for.
func BenchmarkMeter(b *testing.B) {
	for _, events := range []int{100, 50_000} {
		b.Run(fmt.Sprintf("events-%d", events), func(b *testing.B) {
			s := newSession(b)
			defer func() { _ = s.Close(b.Context()) }()
			add(b, s, session.TurnStart{Turn: 1})
			text := strings.Repeat("word ", 100)
			n := 0
			grow := func() {
				n++
				add(b, s, session.StepStart{Turn: 1, Step: n})
				for range 5 {
					add(b, s, sessiontest.Chunk(1, n, "word "))
				}
				answer := sessiontest.Answer(1, n, fmt.Sprint("a", n), text, sessiontest.CallBlock("c", "echo", "{}"))
				answer.Usage = &message.Usage{Input: 1000, Output: 100}
				add(b, s, answer, sessiontest.Call(1, n, sessiontest.CallBlock("c", "echo", "{}")), sessiontest.Result(1, n, "c", text), session.StepEnd{Turn: 1, Step: n})
			}
			for s.Len() < int64(events) {
				grow()
			}
			var m meter
			m.tokens(s.Log)
			for b.Loop() {
				b.StopTimer()
				grow()
				b.StartTimer()
				if m.tokens(s.Log) < 1100 {
					b.Fatal("it does not count")
				}
			}
		})
	}
}
