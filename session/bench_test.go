package session_test

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// long returns the payloads of a session with at least n events: turns of a
// question, a stream of 40 chunks, an answer with two calls and their results.
func long(n int) []session.Payload {
	var all []session.Payload
	for turn := 1; len(all) < n; turn++ {
		ps := sessiontest.Turn(turn)
		for i, p := range ps {
			if _, ok := p.(session.Chunk); ok {
				all = append(all, ps[:i]...)
				for range 40 {
					all = append(all, sessiontest.Chunk(turn, 1, "some words of a stream "))
				}
				all = append(all, ps[i:]...)
				break
			}
		}
	}
	return all
}

func BenchmarkAppend(b *testing.B) {
	payloads := long(50_000)
	b.Run("one-at-a-time", func(b *testing.B) {
		l := newLog(b)
		i := 0
		for b.Loop() {
			if i == len(payloads) {
				l, i = newLog(b), 0
			}
			if _, err := l.Append(payloads[i]); err != nil {
				b.Fatal(err)
			}
			i++
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
	})
}

func BenchmarkDecode50k(b *testing.B) {
	l := newLog(b, long(50_000)...)
	text := l.Meta().Line() + "\n" + strings.Join(sessiontest.Lines(l.Events(0)), "\n") + "\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, err := session.Decode(text, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name string
		n    int
	}{{"events=100", 100}, {"events=50000", 50_000}} {
		b.Run(c.name, func(b *testing.B) {
			l := newLog(b, long(c.n)...)
			for b.Loop() {
				if _, err := l.Request(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
