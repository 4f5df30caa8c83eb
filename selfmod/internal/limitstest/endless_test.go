package limitstest

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/selfmod/sandbox"
)

// TestEndlessWork goes every way into a plugin that then works without end. The
// engine stops it; the plugin itself goes on.
func TestEndlessWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, inEngine)
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			w := w.in(t)
			way.goes(w, "", "for (;;) { try { while (true) {} } catch {} finally { continue } }",
				"did not return within "+sandbox.Millis(vmLimit)+" inside the engine (vmTimeout)")
			w.unnoticed()
		})
	}
}

// goes mounts the plugin, enters it, and checks what is said and what is left.
func (y way) goes(w *world, async, trouble, limit string) {
	w.T.Helper()
	n := "_" + strings.ReplaceAll(w.T.Name()[strings.LastIndexByte(w.T.Name(), '/')+1:], "-", "_")
	var text, id string
	w.meanwhile(promptly, func() {
		code := y.code(n, async, trouble)
		if y.mounts {
			text = w.MountFails(code, "Nothing is mounted; the id ")
			_, id, _ = strings.Cut(text, "the id ")
			id, _, _ = strings.Cut(id, " ")
			return
		}
		id = w.Mount(code)
		text = y.enter(w, n, id)
	})
	contains(w.T, text, y.entry(n), limit)
	if !strings.Contains(text, "user"+n) {
		contains(w.T, text, id)
	}
	if report := w.Inspect("temporary", ""); strings.Contains(report, "Temporary Plugin "+id+":") {
		if !strings.Contains(report, "Temporary Plugin "+id+": culprit"+n+" [running]") {
			w.T.Errorf("the plugin does not run any more:\n%s", report)
		}
		w.Unmount(id)
	}
	w.gone(id, "culprit"+n+" ")
}
