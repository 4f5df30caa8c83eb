package mcp

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestBurst(t *testing.T) {
	tests := []struct {
		name string
		hits []time.Duration // pauses before each hit
		want []time.Duration // when fire runs, from the start
	}{
		{"one", []time.Duration{0}, []time.Duration{5 * time.Millisecond}},
		{"many_at_once", []time.Duration{0, 0, 0, 0}, []time.Duration{5 * time.Millisecond}},
		{"trailing", []time.Duration{0, 4 * time.Millisecond, 4 * time.Millisecond}, []time.Duration{13 * time.Millisecond}},
		{"two_bursts", []time.Duration{0, 20 * time.Millisecond}, []time.Duration{5 * time.Millisecond, 25 * time.Millisecond}},
		{"endless", repeat(100, 4*time.Millisecond), []time.Duration{254 * time.Millisecond, 405 * time.Millisecond}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				var mu sync.Mutex
				var got []time.Duration
				b := newBurst(quietFor, mostFor, func() {
					mu.Lock()
					defer mu.Unlock()
					got = append(got, time.Since(start))
				})
				for _, pause := range tt.hits {
					time.Sleep(pause)
					b.hit()
				}
				time.Sleep(time.Second)
				b.stop()
				mu.Lock()
				defer mu.Unlock()
				if len(got) != len(tt.want) {
					t.Fatalf("fired at %v, want %v", got, tt.want)
				}
				for i := range got {
					if got[i] != tt.want[i] {
						t.Errorf("fired at %v, want %v", got, tt.want)
					}
				}
			})
		})
	}
}

func repeat(n int, d time.Duration) []time.Duration {
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = d
	}
	return out
}

// TestBurstStop: after stop nothing fires, and stop waits for a fire that runs.
func TestBurstStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fired atomic.Int32
		release := make(chan struct{})
		b := newBurst(quietFor, mostFor, func() { <-release; fired.Add(1) })
		b.hit()
		time.Sleep(10 * time.Millisecond) // the first runs and waits
		b.hit()                           // the second is pending
		stopped := make(chan struct{})
		go func() { b.stop(); close(stopped) }()
		synctest.Wait()
		select {
		case <-stopped:
			t.Fatal("stop did not wait for the fire that runs")
		default:
		}
		close(release)
		<-stopped
		b.hit()
		time.Sleep(time.Second)
		if n := fired.Load(); n != 1 {
			t.Errorf("fired %d times, want 1", n)
		}
	})
}
