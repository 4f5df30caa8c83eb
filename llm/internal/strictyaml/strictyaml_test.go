package strictyaml

import (
	"errors"
	"strings"
	"testing"
)

func TestDecode(t *testing.T) {
	type file struct {
		A int               `yaml:"a"`
		M map[string]string `yaml:"m"`
	}
	for _, c := range []struct {
		name, text string
		line       int // 0: it is read
	}{
		{"good", "a: 1\nm: {x: y}\n", 0},
		{"empty", "", 0},
		{"comment", "# nothing\n", 0},
		{"unknown", "a: 1\nb: 2\n", 2},
		{"type", "a: 1\nm: 2\n", 2},
		{"syntax", "a: [1\n", 1},
		{"alias", "m:\n  x: &q y\n  z: *q\n", 2},
		{"documents", "a: 1\n---\na: 2\n", 1},
		{"flowNesting", "a: " + strings.Repeat("[", 1000), 1},
		{"indentNesting", strings.Repeat("- ", 3000) + "x", 1},
		{"separatorLine", "m:\n  x: |\n    " + strings.Repeat("-", 300) + "\n", 0},
		{"twice", "a: 1\na: 2\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var f *Fault
			err := Decode([]byte(c.text), &file{})
			line := 0
			if errors.As(err, &f) {
				line = f.Line
			}
			if line != c.line || (err == nil) != (c.line == 0) {
				t.Errorf("error %v, want line %d", err, c.line)
			}
		})
	}
}
