package selfmod

import (
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
)

// didYouMean names the nearest of some names, or is empty.
func didYouMean(name string, among []string) string {
	if best := plain.Nearest(name, among); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}
