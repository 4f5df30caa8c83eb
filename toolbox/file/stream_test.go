package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/tool"
)

// found searches a text.
func found(t testing.TB, text, pattern string, fold bool, around int) (fileHits, error) {
	t.Helper()
	m, err := compile(pattern, fold)
	if err != nil {
		t.Fatal(err)
	}
	l := &lookup{matcher: m, context: around, max: limits.GrepMatches}
	err = l.search(context.Background(), strings.NewReader(text), func(int) error { return nil })
	return l.out, err
}

// naive is the same, line by line.
func naive(text, pattern string, fold bool, around int) (out fileHits) {
	if fold {
		pattern = "(?i)" + pattern
	}
	re := regexp.MustCompile("(?m)" + pattern)
	lines := strings.Split(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	var fits, near []int
	for i, line := range lines {
		lines[i] = strings.TrimSuffix(line, "\r")
		if re.MatchString(lines[i]) {
			fits = append(fits, i)
			for n := max(0, i-around); n <= min(len(lines)-1, i+around); n++ {
				near = append(near, n)
			}
		}
	}
	slices.Sort(near)
	out.Matches = len(fits)
	for _, i := range slices.Compact(near) {
		out.Lines = append(out.Lines, hit{i + 1, lines[i], slices.Contains(fits, i)})
	}
	return out
}

var patterns = []string{
	"func", "x", `\bfoo\b`, "^", "$", "^$", "^foo", "bar$", "foo|bar|baz", "fo+b", `[a-c]{2}`, `\d+`, "(?i)FOO", "a.*b", `\s+foo`, `[^x]b`, "a.c", `\Afoo`, `bar\z`,
	"foo(?:x|y)?bar", "(foo){2,3}", "k", "sky", `ba[rz]\s*$`, "ä", "(?s)a.b", "x*", `foo\b.`, "(a|b)(c|d)", `\W$`,
}

// TestSearchLikeLineByLine: the quick ways find what the slow one finds.
func TestSearchLikeLineByLine(t *testing.T) {
	words := []string{"foo", "bar", "baz", "FOO", "x", "a", "b", "c", "ab", "k", "K", "K", "ſky", "12", " ", "\t", "ä", "func", "foobar", "foofoo", ""}
	random := rand.New(rand.NewPCG(1, 2))
	for _, ending := range []string{"\n", "\r\n"} {
		for range 20 {
			var b strings.Builder
			for range random.IntN(60) {
				for range random.IntN(5) {
					b.WriteString(words[random.IntN(len(words))])
				}
				b.WriteString(ending)
			}
			text := b.String() + strings.Repeat("foo", random.IntN(2))
			for _, pattern := range patterns {
				for around := range 3 {
					for _, fold := range []bool{false, true} {
						got, err := found(t, text, pattern, fold, around)
						if err != nil {
							t.Fatal(err)
						}
						if diff := cmp.Diff(naive(text, pattern, fold, around), got); diff != "" {
							t.Fatalf("pattern %q, fold %v, around %d, text %q: %s", pattern, fold, around, text, diff)
						}
					}
				}
			}
		}
	}
}

// TestSearchAcrossBuffers: where a buffer ends makes no difference.
func TestSearchAcrossBuffers(t *testing.T) {
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, "line %d of many %s\n", i, strings.Repeat("y", i%37))
		if i%7000 == 0 {
			b.WriteString("needle\n")
		}
	}
	for _, pattern := range []string{"needle", `ne+dle$`, `[n]eedle`} {
		got, err := found(t, b.String(), pattern, false, 3)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(naive(b.String(), pattern, false, 3), got); diff != "" {
			t.Errorf("%s: %s", pattern, diff)
		}
	}
}

func TestSearchSkips(t *testing.T) {
	if _, err := found(t, strings.Repeat("a\n", 200_000)+"\x00", "a", false, 0); !errors.Is(err, errBinary) {
		t.Errorf("of a file with NUL: %v", err)
	}
	if _, err := found(t, strings.Repeat("a", limits.GrepRecord+1), "a", false, 0); !errors.Is(err, errRecord) {
		t.Errorf("of a line that is too long: %v", err)
	}
	got, err := found(t, strings.Repeat("a", limits.GrepRecord-100)+"\nb", "b", false, 0)
	if err != nil || got.Matches != 1 || got.Lines[0].Line != 2 {
		t.Errorf("after a long line: %v %v", got, err)
	}
	got, err = found(t, "caf\xe9 au lait\n", "lait", false, 0)
	if err != nil || got.Lines[0].Text != "caf\ufffd au lait" {
		t.Errorf("of another encoding: %v %v", got, err)
	}
}

func TestSearchEnds(t *testing.T) {
	m, err := compile("a", false)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l := &lookup{matcher: m}
	err = l.search(ctx, strings.NewReader(strings.Repeat("b\n", 1<<20)), func(int) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	broken := errors.New("broken")
	if err := l.search(t.Context(), iotest.ErrReader(broken), func(int) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// TestLargePatternsEnd: a pattern as large as is taken can be stopped between lines.
func TestLargePatternsEnd(t *testing.T) {
	m, err := compile(strings.Repeat("(?:[a-y]?[b-z]?){20}", 10), false)
	if err != nil {
		t.Fatal(err)
	}
	if !m.slow {
		t.Error("the pattern is not taken for a large one")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	l := &lookup{matcher: m, max: 1}
	err = l.search(ctx, strings.NewReader(strings.Repeat(strings.Repeat("q", 1000)+"\n", 100_000)), func(int) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestShownLine(t *testing.T) {
	m, err := compile("needle", false)
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("ä", 2000)
	for _, c := range []struct{ name, line, has string }{
		{"short", "a needle\r", "a needle"},
		{"beginning", "needle" + long, "needleä"},
		{"middle", long + "needle" + long, "äneedleä"},
		{"end", long + "needle", "äneedle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shownLine(m, []byte(c.line), true)
			if !strings.Contains(got, c.has) || len([]rune(got)) > limits.GrepLine+2 {
				t.Errorf("%d characters: %q", len([]rune(got)), got)
			}
		})
	}
}

// TestCompileTeaches is the golden test of what is said about patterns.
func TestCompileTeaches(t *testing.T) {
	var b strings.Builder
	for _, pattern := range []string{
		"", "foo(?=bar)", "foo(?!bar)", "(?<=foo)bar", "(?<!foo)bar", "(?>a+)b", `(a)\1`, "a++", "a(", "a)", "[a", "*a", `a\`, "a{2000}", `\Kfoo`, "a\nb",
		`(?#note)a`, "(?P<n", "a{3,2}", "[z-a]", "((((a{10}){10}){10}){10})", strings.Repeat("(?:[a-z]{50}x?){9}", 10), strings.Repeat("a", limits.GrepPattern+1), "\xff",
	} {
		_, err := compile(pattern, false)
		var e *tool.Error
		if !errors.As(err, &e) || e.Code != codePattern {
			t.Errorf("%q: %v", pattern, err)
			continue
		}
		fmt.Fprintln(&b, err)
	}
	golden(t, "patterns", b.String())
}

func FuzzCompile(f *testing.F) {
	for _, p := range patterns {
		f.Add(p, "foo bar\nfoo\r\nkK", true)
	}
	f.Add(`(?=a)`, "", false)
	f.Add("(((((a*)*)*)*)*)*b", strings.Repeat("a", 100), false)
	f.Fuzz(func(t *testing.T, pattern, text string, fold bool) {
		m, err := compile(pattern, fold)
		if err != nil {
			if m != nil || err.Error() == "" {
				t.Fatal("an error with a matcher, or without a text")
			}
			return
		}
		if strings.ContainsRune(text, 0) {
			return
		}
		l := &lookup{matcher: m, max: 1 << 20}
		if err := l.search(t.Context(), strings.NewReader(text), func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, line := range bytes.SplitAfter([]byte(text), newline) {
			if len(line) > 0 && m.re.Match(bytes.TrimSuffix(bytes.TrimSuffix(line, newline), []byte("\r"))) {
				want++
			}
		}
		if l.out.Matches != want {
			t.Errorf("pattern %q in %q: %d lines, want %d", pattern, text, l.out.Matches, want)
		}
	})
}
