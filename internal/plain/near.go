package plain

import (
	"strings"

	"github.com/dsh-go/dsh/limits"
)

// Nearest is the name among some that a wrong one was most likely meant to be, ""
// where none is like it.
func Nearest(name string, among []string) string {
	if len(name) > limits.Name {
		return ""
	}
	best, least := "", 1<<30
	for _, candidate := range among {
		if d := distance(name, candidate); d < least || d == least && candidate < best {
			best, least = candidate, d
		}
	}
	if best == "" || least > max(1, len(name)/3) || least > 0 && least >= len(name) {
		return ""
	}
	return best
}

// distance is how many letters two names differ by, whatever their case. What follows
// the first dot of a name is near to the whole, and so are its beginning and
// its end.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	if _, last, ok := strings.Cut(b, "."); ok && last == a {
		return 0
	}
	if len(a) >= 3 && (strings.HasPrefix(b, a) || strings.HasSuffix(b, a)) {
		return 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
