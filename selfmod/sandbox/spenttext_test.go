package sandbox

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// TestSpentText: of code that is only being mounted nobody is told that it is mounted
// again.
func TestSpentText(t *testing.T) {
	for entry, again := range map[string]bool{"the code": false, "apply": false, `tool "spin"`: true, "a continuation": true} {
		t.Run(strings.ReplaceAll(entry, " ", "_"), func(t *testing.T) {
			text := (&Error{Code: wire.CodeMemory, Mount: "./a.js", Entry: entry, Limit: 64, Spent: true}).Error()
			if strings.Contains(text, "mounted again") != again {
				t.Error(text)
			}
		})
	}
}
