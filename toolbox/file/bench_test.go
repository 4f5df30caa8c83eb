package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
)

// tree writes many files of Go-like text.
func tree(b *testing.B, w *world, files int) {
	b.Helper()
	var body strings.Builder
	for i := range 120 {
		fmt.Fprintf(&body, "func (r *Reader%d) Read(p []byte) (n int, err error) { return r.next.Read(p[%d:]) }\n", i, i)
	}
	for i := range files {
		dir := filepath.Join(w.dir, fmt.Sprintf("d%d/e%d", i%100, i%13))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		text := body.String()[:(i*37)%body.Len()]
		if i%5000 == 0 {
			text += "// needle in a haystack\n"
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.go", i)), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGrep searches a tree of 50,000 files, about 250 MB.
func BenchmarkGrep(b *testing.B) {
	w := newWorld(b, Config{})
	tree(b, w, 50_000)
	for _, c := range []struct {
		name string
		args args
	}{
		{"literal", args{"pattern": "needle"}},
		{"nothing", args{"pattern": "no such text"}},
		{"any_case", args{"pattern": "HAYSTACK", "case_insensitive": true}},
		{"expression", args{"pattern": `n\w+le in`}},
		{"no_literal", args{"pattern": `[xyz]\d{3}\s`}},
		{"many_matches", args{"pattern": "Reader1"}},
		{"one_folder", args{"pattern": "needle", "path": "d1"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if r := w.call("grep", c.args); r.IsError {
					b.Fatal(r.Error.Message)
				}
			}
		})
	}
	b.Run("glob", func(b *testing.B) {
		for b.Loop() {
			if r := w.call("glob", args{"pattern": "**/*0.go"}); r.IsError {
				b.Fatal(r.Error.Message)
			}
		}
	})
}

func BenchmarkRead(b *testing.B) {
	w := newWorld(b, Config{})
	line := strings.Repeat("x", 60) + "\n"
	w.put("small", strings.Repeat(line, 100), "full", strings.Repeat(line, limits.FileLines), "large", strings.Repeat(line, 1_000_000))
	for _, c := range []struct {
		name string
		args args
	}{
		{"100_lines", args{"file_path": "small"}},
		{"2000_lines", args{"file_path": "full"}},
		{"begin_of_60MB", args{"file_path": "large"}},
		{"end_of_60MB", args{"file_path": "large", "offset": 999_000}},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				if r := w.call("read", c.args); r.IsError {
					b.Fatal(r.Error.Message)
				}
			}
		})
	}
}

func BenchmarkNearest(b *testing.B) {
	text := strings.Repeat("\tif err := thing.Do(ctx, argument); err != nil {\n", 20_000)
	for b.Loop() {
		nearest(text, "\tif err := other.Do(ctx, parameter); err != nil {\n\t\treturn err\n\t}\n")
	}
}
