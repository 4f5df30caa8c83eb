package loader

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dsh-go/dsh/cordis"
)

const manyRows = 2000

// many is a document of many rows; number is the config of the one in the middle.
func many(number int) string {
	var b strings.Builder
	for i := range manyRows {
		n := 1
		if i == manyRows/2 {
			n = number
		}
		fmt.Fprintf(&b, "- id: row-%d\n  name: p\n  config: {value: '', number: %d}\n", i, n)
	}
	return b.String()
}

// A document of 2,000 rows is read, composed and mounted.
func BenchmarkLoad2000(b *testing.B) {
	text := many(1)
	for b.Loop() {
		w := openWorld()
		if r, err := w.apply(text); err != nil || len(r.Mounted) != manyRows {
			b.Fatal(len(r.Mounted), err)
		}
		b.StopTimer()
		w.close()
		b.StartTimer()
	}
}

// One line of a document of 2,000 rows changes: it is read, composed, and one row is
// mounted anew.
func BenchmarkEditOneOf2000(b *testing.B) {
	w := newWorld(b)
	w.must(many(1))
	texts := []string{many(1), many(2)}
	i := 0
	for b.Loop() {
		i++
		if r, err := w.apply(texts[i%2]); err != nil || len(r.Remounted) != 1 {
			b.Fatal(r, err)
		}
	}
}

// A one-line edit of 2,000 rows concerns the fiber that goes and the one that comes, and
// nothing else. The best of five is held to ten times what is aimed at, for machines that
// do other things and the race detector; the benchmarks say what it takes.
func TestOneLineEdit(t *testing.T) {
	w := newWorld(t)
	w.must(many(1))
	var mu sync.Mutex
	touched := map[*cordis.Fiber]bool{}
	must(cordis.StatusChanged.On(w.root, func(_ context.Context, c cordis.StatusChange) {
		mu.Lock()
		defer mu.Unlock()
		touched[c.Fiber] = true
	}))
	best := time.Hour
	for i := range 5 {
		old := w.fiber(fmt.Sprintf("row-%d", manyRows/2))
		began := time.Now()
		w.must(many(i%2 + 2))
		best = min(best, time.Since(began))
		now := w.fiber(fmt.Sprintf("row-%d", manyRows/2))
		mu.Lock()
		if len(touched) != 2 || !touched[old] || !touched[now] || old == now {
			t.Errorf("%d fibers were touched, want the old one and the new one", len(touched))
		}
		clear(touched)
		mu.Unlock()
	}
	if best > 800*time.Millisecond {
		t.Errorf("a one-line edit took %s", best)
	}
}
