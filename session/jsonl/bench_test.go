package jsonl

import (
	"context"
	"testing"

	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/sessiontest"
)

// BenchmarkResume opens a session of 50,000 events from its file.
func BenchmarkResume(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name   string
		chunks int // in each turn
	}{{"streams", 40}, {"no-chunks", 0}} {
		b.Run(c.name, func(b *testing.B) {
			s := newStore(b)
			w, err := s.Create(ctx, session.Meta{ID: "one"})
			must(b, err)
			for turn := 1; w.Len() < 50_000; turn++ {
				for _, p := range sessiontest.Turn(turn) {
					if _, ok := p.(session.Chunk); ok {
						for range c.chunks / 2 {
							_, err = w.Append(p)
							must(b, err)
						}
						continue
					}
					_, err = w.Append(p)
					must(b, err)
				}
			}
			must(b, w.Close(ctx))
			for b.Loop() {
				w, err := s.Open(ctx, "one")
				must(b, err)
				must(b, w.Close(ctx))
			}
		})
	}
}

// BenchmarkAppend appends to a file, with a checkpoint for every so many events.
func BenchmarkAppend(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name  string
		every int
	}{{"checkpoint=1", 1}, {"checkpoint=100", 100}, {"checkpoint=10000", 10_000}} {
		b.Run(c.name, func(b *testing.B) {
			w, err := newStore(b).Create(ctx, session.Meta{ID: "one"})
			must(b, err)
			_, err = w.Append(session.TurnStart{Turn: 1}, session.StepStart{Turn: 1, Step: 1})
			must(b, err)
			for i := 1; b.Loop(); i++ {
				_, err := w.Append(sessiontest.Chunk(1, 1, "some words of a stream "))
				must(b, err)
				if i%c.every == 0 {
					must(b, w.Checkpoint(ctx))
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
			must(b, w.Close(ctx))
		})
	}
}
