package limitstest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/dsh-go/dsh/selfmod"
)

// TestPromisesThatNeverSettle goes every way into a plugin that then waits for
// ever. The call is abandoned at its limit; the plugin goes on.
func TestPromisesThatNeverSettle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *selfmod.Config) { c.CallTimeout = 400 * time.Millisecond })
	t.Run("all", func(t *testing.T) {
		for _, way := range ways {
			if way.sync {
				continue // a promise is no answer there: see TestPromiseWhereNoneIsAwaited
			}
			// One after the other: a listener that wraps the calls of others waits
			// for them within its own limit.
			t.Run(way.name, func(t *testing.T) {
				w := w.in(t)
				if way.name == "service_member" { // who waits is abandoned: the call is of the mount that asks
					way.entry = func(n string) string { return fmt.Sprintf("tool %q", "user"+n) }
				}
				way.goes(w, "async", "await new Promise(() => {})", "did not settle within 400 ms (callTimeout)")
			})
		}
	})
	w.unnoticed()
}

// TestPromiseWhereNoneIsAwaited: isConcurrencySafe is asked, not awaited.
func TestPromiseWhereNoneIsAwaited(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Mount(toolWith("", "", "", "async isConcurrencySafe() { await new Promise(() => {}) }"))
	w.meanwhile(promptly, func() {
		if mode := w.mode("culprit"); mode != "exclusive" {
			t.Errorf("mode %s", mode)
		}
	})
	if report := w.Inspect("temporary", ""); strings.Contains(report, "errors:") {
		t.Error(report)
	}
}
