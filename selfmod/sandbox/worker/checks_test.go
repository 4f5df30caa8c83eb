package worker

import (
	"fmt"
	"strings"
	"testing"
)

// TestChecks: what was found right once is right, within bounds; what is wrong is
// refused each time.
func TestChecks(t *testing.T) {
	var c checks
	definition := func(parameters string) string {
		return `{"name":"x","parameters":` + parameters + `,"output":{"type":"string"}}`
	}
	for range 2 {
		if got := c.check(definition(`{"a":{"type":"string"}}`)); got != "=" {
			t.Errorf("right: %s", got)
		}
		if got := c.check(definition(`{"a":{"type":"text"}}`)); !strings.Contains(got, "parameters") {
			t.Errorf("wrong: %s", got)
		}
		if got := c.check(definition(`{"a":{"type":"string","description":"` + strings.Repeat("x", keptCheck) + `"}}`)); got != "=" {
			t.Errorf("long: %s", got)
		}
	}
	if len(c.kept) != 1 {
		t.Errorf("%d are kept, want 1", len(c.kept))
	}
	for i := range 3 * keptChecks {
		if got := c.check(definition(fmt.Sprintf(`{"a%d":{"type":"string"}}`, i))); got != "=" || len(c.kept) > keptChecks {
			t.Fatalf("%s, %d are kept", got, len(c.kept))
		}
	}
}
