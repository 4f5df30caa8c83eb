package plain_test

import (
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/internal/plain"
)

func TestTorn(t *testing.T) {
	for name, c := range map[string]struct {
		text            string
		torn, continued int
	}{
		"empty":       {"", 0, 0},
		"ascii":       {"ab", 0, 0},
		"whole":       {"a€", 0, 0},
		"begun":       {"a\xe2\x82", 2, 0},
		"begun-alone": {"\xf0\x9f\x8e", 3, 0},
		"rest":        {"\x82\xac!", 0, 2},
		"rest-alone":  {"\x82\xac", 0, 2},
		"no-text":     {"\x80\x80\x80\x80\x80", 0, 0},
		"wrong":       {"\xe2a", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plain.Torn([]byte(c.text)); got != c.torn {
				t.Errorf("torn: %d, want %d", got, c.torn)
			}
			if got := plain.Continued([]byte(c.text)); got != c.continued {
				t.Errorf("continued: %d, want %d", got, c.continued)
			}
		})
	}
}

// TestTornAnywhere: what is cut where Torn and Continued say is text on both sides.
func TestTornAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(rapid.String().Draw(t, "text"))
		at := rapid.IntRange(0, len(b)).Draw(t, "at")
		head, tail := b[:at], b[at:]
		if whole := head[:len(head)-plain.Torn(head)]; !utf8.Valid(whole) {
			t.Fatalf("%q is cut in a character", whole)
		}
		if rest := tail[plain.Continued(tail):]; !utf8.Valid(rest) {
			t.Fatalf("%q begins in a character", rest)
		}
	})
}
