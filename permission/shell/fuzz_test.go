package shell

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// FuzzParse: whatever the line is, it is read without a panic, within its bounds,
// and a line that only reads stays no more than that in front of a writer.
func FuzzParse(f *testing.F) {
	for _, line := range slices.Concat(reading, writers) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := Parse(text)
		ok, why := l.ReadOnly()
		if ok != (why == "") {
			t.Fatalf("%q: read-only %v, because %q", text, ok, why)
		}
		for _, c := range l.Commands {
			if len(c.Args) == 0 {
				t.Fatalf("%q: a command without a name", text)
			}
		}
		// What is complete stays so with a writer behind it on a line of its own, unless
		// a heredoc or a comment swallows that: then nothing of it is run.
		if ok && len(l.Unknown) == 0 && !strings.Contains(text, "<<") {
			if again, _ := Parse(text + "\nrm -rf x").ReadOnly(); again && !strings.HasSuffix(strings.TrimRight(text, "\n"), "\\") {
				t.Fatalf("%q with rm behind it was called read-only", text)
			}
		}
	})
}

// TestWriterAnywhere: a writer makes a line more than reading, wherever it stands
// and whatever is around it.
func TestWriterAnywhere(t *testing.T) {
	frames := []string{
		"%s", "ls; %s", "%s; ls", "ls && %s", "%s || ls", "ls |& %s", "%s & wait", "(%s)", "{ %s; }", "! { %s; }", "if ls; then %s\nfi", "if %s\nthen ls; fi",
		"while ls; do %s\ndone", "for f in a b; do %s\ndone", "case a in a) %s\n;; esac", "echo \"$(%s\n)\"", "cat <(%s\n)", "ls $(\n%s\n)",
		"cat <<E\n$(%s\n)\nE", "[[ -n $(%s\n) ]]", "echo ${x:-$(%s\n)}", "f() { %s\n}; f", "time { %s\n}", "ls # comment\n%s",
	}
	simple := make([]string, 0, len(writers))
	for _, w := range writers {
		if !strings.Contains(w, "<<") && !strings.Contains(w, "\x00") { // a heredoc needs its end on a line of its own
			simple = append(simple, w)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom(simple).Draw(t, "writer")
		for range rapid.IntRange(0, 3).Draw(t, "frames") {
			line = fmt.Sprintf(rapid.SampledFrom(frames).Draw(t, "frame"), line)
		}
		if r := rapid.SampledFrom(reading).Draw(t, "reader"); !strings.Contains(r, "<<") && rapid.Bool().Draw(t, "first") {
			line = r + "\n" + line
		}
		if ok, _ := Parse(line).ReadOnly(); ok {
			t.Fatalf("%q may write, and was called read-only", line)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		Parse("cd sub && git log --oneline -5 | head -n 3; find . -name '*.go' -exec grep -l x {} +")
	}
}
