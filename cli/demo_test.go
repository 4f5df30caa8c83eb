package cli

import (
	"strings"
	"testing"

	"github.com/dsh-go/dsh/cli/command"
)

// TestDemo plays the demonstration in this process, so that the race detector
// and the search for leaks see it.
func TestDemo(t *testing.T) {
	status, stdout, stderr := runText(t, "", "demo")
	if status != command.OK || stderr != "" || !strings.Contains(stdout, "each checked") {
		t.Errorf("status %d, standard error %q, transcript:\n%s", status, stderr, stdout)
	}
}
