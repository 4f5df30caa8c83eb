package yaml

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkParse2000Rows(b *testing.B) {
	var s strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&s, "# row %d\n- id: row-%d\n  name: tool-bash\n  config: {timeoutMs: %d, path: \"/tmp/x\"}\n", i, i, i)
	}
	text := []byte(s.String())
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := Parse(text); fault != nil {
			b.Fatal(fault)
		}
	}
}
