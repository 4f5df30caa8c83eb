package file

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsh-go/dsh/limits"
)

// step is one call whose text is golden.
type step struct {
	tool string
	args args
}

// play makes the calls and gives what a model reads.
func (w *world) play(steps ...step) string {
	w.t.Helper()
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "=== %s %v\n%s\n\n", s.tool, strings.ReplaceAll(fmt.Sprint(s.args), filepath.Dir(w.dir), "/home"), w.text(s.tool, s.args))
	}
	return b.String()
}

func TestDescriptions(t *testing.T) {
	w := newWorld(t, Config{})
	var b strings.Builder
	for _, v := range w.tools.List(nil) {
		fmt.Fprintf(&b, "=== %s (%s, %s)\n%s\n%s\n%s\n\n", v.Name, v.Title, v.Kind, v.Description, v.Parameters.JSON(), v.Output.JSON())
	}
	golden(t, "descriptions", b.String())
	for _, want := range []string{
		fmt.Sprintf("up to %d lines, %d KB", limits.FileLines, limits.FileShown>>10), fmt.Sprintf("more than %d characters", limits.FileLine),
		fmt.Sprintf("%d at most", limits.GlobPaths), fmt.Sprintf("%d matches at most", limits.GrepMatches),
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the descriptions do not say %q", want)
		}
	}
}

func TestReadTexts(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a.go", "package a\n\nfunc A() {}\n", "empty", "", "no-end", "one\ntwo", "crlf", "one\r\ntwo\r\n",
		"long", strings.Repeat("x", 5000)+"\nshort\n", "sub/b.txt", "b", "sub/deep/c", "", "bin", "\x00\x01\x02ELF", "latin", "caf\xe9 au lait, s'il vous pla\xeet\n",
		"big.png", "\x89PNG\r\n\x1a\n"+strings.Repeat("\x00", limits.FileImage), "pic.txt", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "many", strings.Repeat("a line of text\n", 6000))
	if err := os.Symlink("a.go", filepath.Join(w.dir, "sub/link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", filepath.Join(w.dir, "out")); err != nil {
		t.Fatal(err)
	}
	many := w.text("read", args{"file_path": "many"})
	golden(t, "read", w.play(
		step{"read", args{"file_path": "a.go"}},
		step{"read", args{"file_path": filepath.Join(w.dir, "sub/../a.go"), "offset": 2, "limit": 1}},
		step{"read", args{"file_path": "a.go", "offset": 3}},
		step{"read", args{"file_path": "a.go", "offset": 4}},
		step{"read", args{"file_path": "a.go", "offset": -1}},
		step{"read", args{"file_path": "a.go", "limit": 20000}},
		step{"read", args{"file_path": "empty"}},
		step{"read", args{"file_path": "no-end"}},
		step{"read", args{"file_path": "crlf"}},
		step{"read", args{"file_path": "sub"}},
		step{"read", args{"file_path": "sub", "offset": 2, "limit": 1}},
		step{"read", args{"file_path": "sub", "offset": 9}},
		step{"read", args{"file_path": "sub/deep"}},
		step{"read", args{"file_path": "pic.txt"}},
		step{"read", args{"file_path": "big.png"}},
		step{"read", args{"file_path": "bin"}},
		step{"read", args{"file_path": "latin"}},
		step{"read", args{"file_path": "sub/b.tx"}},
		step{"read", args{"file_path": "nothing/like/this"}},
		step{"read", args{"file_path": "zzzzzz"}},
		step{"read", args{"file_path": "a.go/b"}},
		step{"read", args{"file_path": "/etc/passwd"}},
		step{"read", args{"file_path": "out/passwd"}},
		step{"read", args{"file_path": ""}},
		step{"read", args{}},
		step{"read", args{"file_path": "many", "offset": 5999}},
	)+"=== long\n"+strings.ReplaceAll(w.text("read", args{"file_path": "long"}), strings.Repeat("x", 2000), "x*2000")+
		"\n\n=== many\n"+many[:80]+"…"+many[len(many)-150:]+"\n")
}

func TestChangeTexts(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a.go", "package a\n\nfunc A() {\n\treturn\n}\n\nfunc B() {\n\treturn\n}\n", "other.go", "package other\n", "bin", "\x00", "dir/x", "")
	edit := func(old, new string, more ...bool) step {
		return step{"edit", args{"file_path": "a.go", "old_string": old, "new_string": new, "replace_all": len(more) > 0}}
	}
	golden(t, "change", w.play(
		edit("package a", "package b"),
		step{"write", args{"file_path": "a.go", "content": "x"}},
		step{"read", args{"file_path": "a.go"}},
		edit("package a", "package b"),
		edit("\treturn\n", "\tpanic(0)\n"),
		edit("\treturn\n", "\tpanic(0)\n", true),
		edit("func C() {\n\tpanic(0)\n}", "x"),
		edit("func A() {\n    panic(0)\n}", "x"),
		edit("3: func A() {\n4: \tpanic(0)", "x"),
		edit("nothing that is like anything in it 0123456789", "x"),
		edit("same", "same"),
		edit("", "x"),
		step{"edit", args{"file_path": "a.g", "old_string": "a", "new_string": "b"}},
		step{"edit", args{"file_path": "dir", "old_string": "a", "new_string": "b"}},
		step{"edit", args{"file_path": "/etc/passwd", "old_string": "a", "new_string": "b"}},
		step{"edit", args{"file_path": "", "old_string": "a", "new_string": "b"}},
		step{"write", args{"file_path": "new/deep/file", "content": "one\n"}},
		step{"write", args{"file_path": "new/deep/file", "content": "two\n"}},
		step{"write", args{"file_path": "dir", "content": "x"}},
		step{"write", args{"file_path": "a.go/x", "content": "x"}},
		step{"write", args{"file_path": "nul", "content": "\x00"}},
		step{"write", args{"file_path": "", "content": "x"}},
		step{"write", args{"file_path": "/etc/dsh-test", "content": "x"}},
	))
	w.put("a.go", "changed behind its back\n")
	golden(t, "stale", w.play(
		edit("changed", "x"),
		step{"write", args{"file_path": "a.go", "content": "x"}},
		step{"read", args{"file_path": "a.go"}},
		step{"write", args{"file_path": "a.go", "content": "x"}},
	))
}

func TestSearchTexts(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("src/a.go", "package a\n\n// Foo is foo.\nfunc Foo() {}\n\nfunc bar() { Foo() }\n", "src/b_test.go", "package a\nfunc TestFoo() {\n\tFoo()\n}\n",
		"README.md", "Foo\n", ".gitignore", "ignored/\n", "ignored/x.go", "Foo\n", "node_modules/m/x.go", "Foo\n", "bin.dat", "Foo\x00", ".hidden.go", "Foo\n")
	grep := func(pattern string, more args) step {
		more["pattern"] = pattern
		return step{"grep", more}
	}
	golden(t, "search", w.play(
		step{"glob", args{"pattern": "**/*.go"}},
		step{"glob", args{"pattern": "*.go", "path": "src"}},
		step{"glob", args{"pattern": filepath.Join(w.dir, "src") + "/*_test.go"}},
		step{"glob", args{"pattern": "ignored/**"}},
		step{"glob", args{"pattern": "*.rs"}},
		step{"glob", args{"pattern": "**/*.rs"}},
		step{"glob", args{"pattern": "none/*.rs"}},
		step{"glob", args{"pattern": "*", "path": "scr"}},
		step{"glob", args{"pattern": "["}},
		step{"glob", args{"pattern": ""}},
		step{"glob", args{"pattern": "/etc/*"}},
		grep("Foo", args{}),
		grep("foo", args{}),
		grep("foo", args{"case_insensitive": true, "path": "src/a.go"}),
		grep(`^func \w+\(`, args{"glob": "*.go", "context": 1}),
		grep("Foo", args{"glob": "!*.go"}),
		grep("Foo", args{"glob": "src/*_test.go"}),
		grep("Foo", args{"output_mode": "files_with_matches"}),
		grep("Foo", args{"output_mode": "count"}),
		grep("Foo", args{"path": "ignored"}),
		grep("Foo", args{"path": "bin.dat"}),
		grep("nowhere", args{}),
		grep("nowhere", args{"path": "srd"}),
		grep("(", args{}),
		grep("x", args{"glob": "{"}),
		grep("x", args{"context": 99}),
		grep("x", args{"output_mode": "lines"}),
	))
}

func TestCards(t *testing.T) {
	w := newWorld(t, Config{})
	w.put("a.go", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "pic", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "sub/b.md", "two\nlines\n")
	golden(t, "cards",
		w.card("read", args{"file_path": "a.go", "offset": 2, "limit": 2})+
			w.card("read", args{"file_path": "pic"})+
			w.card("read", args{"file_path": "sub"})+
			w.card("read", args{"file_path": "none"})+
			w.card("edit", args{"file_path": "a.go", "old_string": "6", "new_string": "six\nand more"})+
			w.card("edit", args{"file_path": "a.go", "old_string": "none", "new_string": ""})+
			w.card("write", args{"file_path": filepath.Join(w.dir, "new"), "content": "n\n"})+
			w.card("write", args{"file_path": "a.go", "content": "1\n2\n3\n4\n5\n6\n7\n8\nnine\n"})+
			w.card("glob", args{"pattern": "**/*.md"})+
			w.card("grep", args{"pattern": "t", "path": "sub", "context": 1})+
			w.card("grep", args{"pattern": "t", "output_mode": "files_with_matches"}))
}
