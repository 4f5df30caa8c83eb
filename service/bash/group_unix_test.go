//go:build unix

package bash

import (
	"os"
	"testing"
	"time"
)

// TestNeverLater: whoever hurries brings SIGKILL forward, and never puts it off.
func TestNeverLater(t *testing.T) {
	c, err := startGroup("/bin/sh", Spec{Command: "trap '' TERM; sleep 60", Workdir: t.TempDir()}, os.Environ(), [3]*os.File{})
	if err != nil {
		t.Fatal(err)
	}
	g := c.(*group)
	defer func() {
		g.finish()
		_, _ = g.wait() // it was killed
	}()
	g.stop()
	asked := g.until
	if g.hurry(); !g.until.Before(asked) {
		t.Errorf("SIGKILL is to come at %s, although somebody hurries; it was to come at %s", g.until, asked)
	}
	soon := time.Now().Add(time.Millisecond)
	g.until = soon
	for _, again := range []func(){g.hurry, g.stop} {
		if again(); g.until != soon {
			t.Errorf("SIGKILL was put off until %s", g.until)
		}
	}
}
