package selfmod_test

import (
	"strings"
	"testing"
	"unicode"
)

// wellFormed demands that a report has nothing in it that hides, reorders or
// overwrites text, and that no line of it was forged by a test's "FORGED".
func wellFormed(t *testing.T, report string) {
	t.Helper()
	for _, r := range report {
		if r != '\n' && (unicode.Is(unicode.Cc, r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)) {
			t.Fatalf("%U stands in %.600q", r, report)
		}
	}
	for line := range strings.Lines(report) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "FORGED") || strings.HasPrefix(line, "## FORGED") || strings.HasPrefix(line, "- FORGED") {
			t.Errorf("a forged line %q in\n%.2000s", line, report)
		}
	}
}
