package trust

import (
	"bytes"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
)

// shown is a path as it is shown.
func shown(path string) string { return plain.Line(path, limits.SourceLine) }

// change is what a person is shown of a file: its difference to old, or all of it.
func change(f File, hash string, old []byte, lost bool) Change {
	c := Change{Path: f.Path, Hash: hash, Size: len(f.Content), Lost: lost}
	name, before := shown(f.Path), "/dev/null"
	if lost {
		old = nil
	}
	if old != nil {
		before = name + " (trusted)"
	}
	text := diff.Diff(before, old, name, f.Content)
	// The line before --- is not of the unified form.
	if first, rest, ok := bytes.Cut(text, []byte("\n")); ok && bytes.HasPrefix(first, []byte("diff ")) {
		text = rest
	}
	c.Diff = plain.Cut(plain.Visible(string(text)), limits.TrustDiff)
	if c.Diff != "" && !strings.HasSuffix(c.Diff, "\n") {
		c.Diff += "\n"
	}
	return c
}
