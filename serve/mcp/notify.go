package mcp

import (
	"sync"
	"time"
)

// A burst of changes ends when quietFor passes without one, and is reported
// after mostFor at the latest.
const (
	quietFor = 5 * time.Millisecond
	mostFor  = 250 * time.Millisecond
)

// burst turns many hits into one call of fire, on a goroutine of its own, after
// the last hit. No lock is held while fire runs.
type burst struct {
	quiet, most time.Duration
	fire        func()

	mu      sync.Mutex
	timer   *time.Timer // nil while nothing is pending
	first   time.Time
	stopped bool
	running sync.WaitGroup
}

func newBurst(quiet, most time.Duration, fire func()) *burst {
	return &burst{quiet: quiet, most: most, fire: fire}
}

// hit notes a change. It never waits.
func (b *burst) hit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped {
		return
	}
	if b.timer == nil {
		b.first = time.Now()
		b.timer = time.AfterFunc(b.quiet, b.run)
		return
	}
	b.timer.Reset(max(0, min(b.quiet, b.most-time.Since(b.first))))
}

func (b *burst) run() {
	b.mu.Lock()
	if b.timer == nil || b.stopped {
		b.mu.Unlock()
		return
	}
	b.timer = nil
	b.running.Add(1)
	b.mu.Unlock()
	defer b.running.Done()
	b.fire()
}

// stop drops what is pending and waits for a fire that runs. Later hits do nothing.
func (b *burst) stop() {
	b.mu.Lock()
	b.stopped = true
	if b.timer != nil {
		b.timer.Stop()
		b.timer = nil
	}
	b.mu.Unlock()
	b.running.Wait()
}
