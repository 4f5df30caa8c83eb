package mount

import (
	"slices"
	"sync"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// console keeps the last lines that a mount printed.
type console struct {
	mu    sync.Mutex
	lines []string
}

func (c *console) add(level, text string) {
	if level != "log" {
		text = level + ": " + text
	}
	text = plain.Cut(text, limits.ConsoleLine)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = keepLast(append(c.lines, text), limits.ConsoleLines)
}

func (c *console) list() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.lines)
}

// keptFaults is how many errors of a mount inspect can show.
const keptFaults = 20

// faults keeps the last errors of a mount.
type faults struct {
	mu  sync.Mutex
	all []fault
}

type fault struct {
	id   uint64 // of a late one; 0: cannot be withdrawn
	text string
}

func (f *faults) add(text string) { f.addID(0, text) }

func (f *faults) addID(id uint64, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = keepLast(append(f.all, fault{id, text}), keptFaults)
}

func (f *faults) withdraw(id uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = slices.DeleteFunc(f.all, func(x fault) bool { return x.id == id && id != 0 })
}

func (f *faults) list() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	texts := make([]string, len(f.all))
	for i, x := range f.all {
		texts[i] = x.text
	}
	return texts
}

func keepLast[T any](s []T, n int) []T {
	if len(s) > n {
		s = slices.Delete(s, 0, len(s)-n)
	}
	return s
}

// rate is a token bucket.
type rate struct {
	mu        sync.Mutex
	perSecond float64
	burst     float64
	tokens    float64
	last      time.Time
}

func newRate(perSecond, burst float64) *rate {
	return &rate{perSecond: perSecond, burst: burst, tokens: burst}
}

func (r *rate) allow(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.last.IsZero() {
		r.tokens = min(r.burst, r.tokens+now.Sub(r.last).Seconds()*r.perSecond)
	}
	r.last = now
	if r.tokens < 1 {
		return false
	}
	r.tokens--
	return true
}
