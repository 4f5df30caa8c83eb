// Package limitstest breaks the toolset on purpose, through the real worker:
// work without end, promises that never settle, memory, depth, size and counts,
// at every way into a plugin. In every case the rest must go on meanwhile, the
// error must name the mount, the entry and the limit, and nothing may be left.
package limitstest

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
	"github.com/dsh-go/dsh/selfmod/selfmodtest"
)

func TestMain(m *testing.M) { selfmodtest.Main(m) }

// The limits of these tests, and how long others may have to wait: what is
// promised is 100 ms, and 500 ms while a worker is replaced; the rest is for a
// machine that does other things too.
const (
	vmLimit   = 150 * time.Millisecond
	callLimit = 700 * time.Millisecond

	promptly = 30 * 100 * time.Millisecond
	replaced = 12 * 500 * time.Millisecond
)

// world is a rig with a plugin that must not notice anything.
type world struct {
	*selfmodtest.Rig
	witness string // its id
}

func newWorld(t *testing.T, change ...func(*selfmod.Config)) *world {
	t.Helper()
	cfg := selfmod.Config{VMTimeout: vmLimit, CallTimeout: callLimit}
	for _, f := range change {
		f(&cfg)
	}
	w := &world{Rig: selfmodtest.New(t, cfg)}
	w.witness = w.Mount(selfmodtest.Tool("witness", "const was = state; if (args.mark) state = 'marked'; return was", "let state = 'fresh'"))
	w.Works(w.Call("witness", map[string]bool{"mark": true}), "fresh")
	return w
}

// in is the same world in a subtest.
func (w *world) in(t *testing.T) *world { return &world{w.For(t), w.witness} }

// meanwhile asks others all the time while f runs; each must answer within the
// limit, and some before f has ended.
func (w *world) meanwhile(limit time.Duration, f func()) {
	w.T.Helper()
	stop := make(chan struct{})
	var slowest time.Duration
	var answers atomic.Int64
	var asker sync.WaitGroup
	asker.Go(func() {
		for {
			began := time.Now()
			w.Call("cordis_inspect", map[string]string{"what": "temporary"})
			w.Call("witness", nil)
			slowest = max(slowest, time.Since(began))
			answers.Add(1)
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	})
	func() {
		defer asker.Wait()
		defer close(stop)
		began := time.Now()
		f()
		if took := time.Since(began); took > promptly && limit == promptly && answers.Load() == 0 {
			w.T.Errorf("nobody was answered for %v", took)
		}
	}()
	if slowest > limit {
		w.T.Errorf("others had to wait %v, more than %v", slowest, limit)
	}
}

// unnoticed checks that the witness kept its state.
func (w *world) unnoticed() {
	w.T.Helper()
	if text := w.Works(w.Call("witness", nil)); text != "marked" {
		w.T.Errorf("the witness lost its state: %s", text)
	}
	if report := w.Inspect("temporary", w.witness); strings.Contains(report, "mounted again") {
		w.T.Errorf("the witness was mounted again:\n%s", report)
	}
}

// started is the witness after its worker was replaced: there, and inspect says
// what became of it.
func (w *world) started() {
	w.T.Helper()
	w.Eventually("the witness is mounted again", func() (string, bool) {
		report := w.Inspect("temporary", "")
		for line := range strings.Lines(report) {
			if strings.Contains(line, w.witness+":") && strings.Contains(line, "[running]") &&
				strings.Contains(line, "mounted again from its source 1 times, with empty state") {
				return report, true
			}
		}
		return report, false
	})
}

// afresh checks that the witness has empty state.
func (w *world) afresh() {
	w.T.Helper()
	if text := w.Works(w.Call("witness", nil)); text != "fresh" {
		w.T.Errorf("the witness kept its state: %s", text)
	}
}

// says waits until the report about a mount has all of the given parts.
func (w *world) says(id string, parts ...string) string {
	w.T.Helper()
	var report string
	w.Eventually(fmt.Sprintf("inspect of %s says %q", id, parts), func() (string, bool) {
		report = w.Inspect("temporary", id)
		for _, p := range parts {
			if !strings.Contains(head(report), p) {
				return report, false
			}
		}
		return report, true
	})
	return report
}

// head is a report without the source at its end.
func head(report string) string {
	text, _, _ := strings.Cut(report, "\nSource, as it was mounted:")
	return text
}

// gone checks that nothing of a mount is left in any report.
func (w *world) gone(id, culprit string) {
	w.T.Helper()
	if report := w.Inspect("", ""); strings.Contains(report, id+":") || strings.Contains(report, culprit) {
		w.T.Errorf("something of %s is left:\n%s", id, report)
	}
}

// contains demands all of the given parts of a text.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("the text lacks %q:\n%s", p, text)
		}
	}
}
