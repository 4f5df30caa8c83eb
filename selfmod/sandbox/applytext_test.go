package sandbox

import (
	"strings"
	"testing"
)

// TestAdviceOfApply: what helps a tool is not said of an apply, and the other way round.
func TestAdviceOfApply(t *testing.T) {
	for entry, want := range map[string]bool{"apply": false, `tool "x"`: true} {
		text := (&Error{Code: CodeCallTimeout, Mount: "m", Entry: entry, Limit: 100}).Error()
		if strings.Contains(text, "timeoutMs") != want {
			t.Errorf("%s: %s", entry, text)
		}
	}
}
