package mount

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/schema"
)

// TestCompiled: what was compiled once is kept, within bounds; what is wrong is
// refused each time.
func TestCompiled(t *testing.T) {
	t.Parallel()
	var c compiled
	text := func(i int) []byte { return fmt.Appendf(nil, `{"a%d":{"type":"string"}}`, i) }
	first, err := c.compile(text(0), schema.Parameters)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.compile(text(0), schema.Parameters); err != nil || again != first {
		t.Errorf("the same text gave another schema: %v", err)
	}
	for range 2 {
		if _, err := c.compile([]byte(`{"a":{"type":"text"}}`), schema.Parameters); err == nil {
			t.Error("a wrong schema was taken")
		}
	}
	long := []byte(`{"a":{"type":"string","description":"` + strings.Repeat("x", keptSchema) + `"}}`)
	for range 2 {
		if _, err := c.compile(long, schema.Parameters); err != nil {
			t.Error(err)
		}
	}
	if len(c.kept) != 1 {
		t.Errorf("%d schemas are kept, want 1", len(c.kept))
	}
	for i := range 3 * keptSchemas {
		if _, err := c.compile(text(i), schema.Parameters); err != nil {
			t.Fatal(err)
		}
		if len(c.kept) > keptSchemas {
			t.Fatalf("%d schemas are kept", len(c.kept))
		}
	}
}
