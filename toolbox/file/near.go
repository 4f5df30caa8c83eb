package file

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// What is shown of lines like those that were not found.
const (
	nearPlaces = 3
	nearLines  = 8    // of one place
	nearScore  = 0.45 // the least likeness
	nearBest   = 0.7  // and the least part of that of the best
)

// near is a place in a text that is like what was looked for.
type near struct {
	line  int // of its first line
	lines []string
	space bool // it differs in white space only
	score float64
}

// nearest finds the places in a text whose lines are most like those of old, in
// the order of the text. Texts have \n.
func nearest(text, old string) []near {
	want := strings.Split(strings.Trim(old, "\n"), "\n")
	shown := min(len(want), nearLines)
	if len(text) > limits.FileNear || strings.TrimSpace(old) == "" {
		return nil
	}
	want = want[:shown]
	marks := make([]letters, shown)
	weight := 0.0
	for k, line := range want {
		want[k] = spaced(line)
		marks[k] = lettersOf(want[k])
		weight += float64(len(want[k]))
	}
	have := strings.Split(text, "\n")
	scores := make([]float64, len(have))
	for i, line := range have {
		line = spaced(line)
		if line == "" {
			continue
		}
		mark := lettersOf(line)
		for k := 0; k < shown && k <= i; k++ {
			likeness := mark.like(&marks[k])
			if likeness == 1 && line != want[k] {
				likeness = 0.99
			}
			scores[i-k] += likeness * float64(len(want[k])) / weight
		}
	}
	return pick(have, scores, shown)
}

// spaced makes all white space of a line one space, and none at its ends.
func spaced(line string) string { return strings.Join(strings.Fields(line), " ") }

// pick takes the best places that do not overlap.
func pick(have []string, scores []float64, shown int) []near {
	var best []near
	for i, score := range scores {
		if score < nearScore {
			continue
		}
		best = append(best, near{line: i + 1, score: score, space: score > 0.9999})
		if len(best) > 200 {
			slices.SortStableFunc(best, byScore)
			best = best[:100]
		}
	}
	slices.SortStableFunc(best, byScore)
	var out []near
	for _, n := range best {
		overlaps := slices.ContainsFunc(out, func(o near) bool { return max(o.line-n.line, n.line-o.line) < shown })
		if overlaps || n.score < nearBest*best[0].score || best[0].space && !n.space {
			continue
		}
		n.lines = have[n.line-1 : min(n.line-1+shown, len(have))]
		if out = append(out, n); len(out) == nearPlaces {
			break
		}
	}
	slices.SortFunc(out, func(a, b near) int { return cmp.Compare(a.line, b.line) })
	return out
}

func byScore(a, b near) int { return cmp.Compare(b.score, a.score) }

// numbered shows lines with their numbers, as read does.
func numbered(first int, lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&b, "%d: %s\n", first+i, plain.Cut(line, limits.SourceLine))
	}
	return b.String()
}

// letters is the set of pairs of bytes in a line.
type letters struct {
	set [16]uint64
	n   int
}

func lettersOf(line string) (l letters) {
	if len(line) > limits.FileLine {
		line = line[:limits.FileLine]
	}
	previous := byte(0)
	for i := range len(line) {
		c := line[i]
		h := (uint32(previous)*31 + uint32(c)) * 2654435761 >> 22
		l.set[h/64] |= 1 << (h % 64)
		previous = c
	}
	for _, word := range l.set {
		l.n += bits.OnesCount64(word)
	}
	return l
}

// like is how much two sets have in common: 0 to 1.
func (l *letters) like(other *letters) float64 {
	if l.n+other.n == 0 {
		return 0
	}
	same := 0
	for i := range l.set {
		same += bits.OnesCount64(l.set[i] & other.set[i])
	}
	return 2 * float64(same) / float64(l.n+other.n)
}
