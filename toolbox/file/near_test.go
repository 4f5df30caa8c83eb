package file

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service/fs"
	"github.com/dsh-go/dsh/tool"
)

func TestNearest(t *testing.T) {
	text := "package a\n\nfunc Open(name string) error {\n\tx := 1\n\treturn nil\n}\n\nfunc Close() error {\n\treturn nil\n}\n"
	for _, c := range []struct {
		name, old string
		lines     []int
		space     bool
	}{
		{"one_word_differs", "func Open(path string) error {", []int{3}, false},
		{"white_space", "func Open(name string) error {\n    x := 1", []int{3}, true},
		{"more_blanks_in_it", "func  Open(name  string) error {", []int{3}, true},
		{"two_places", "\treturn nil\n}\n", []int{5, 9}, true},
		{"break_before", "\n\nfunc Close() error {\n\treturn err\n}\n", []int{8}, false},
		{"nothing_like_it", "SELECT * FROM users WHERE id = 7", nil, false},
		{"blank", " \n\t\n", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var lines []int
			space := false
			for _, n := range nearest(text, c.old) {
				lines = append(lines, n.line)
				space = n.space
			}
			if diff := cmp.Diff(c.lines, lines); diff != "" || space != c.space {
				t.Errorf("space %v, want %v; %s", space, c.space, diff)
			}
		})
	}
}

func TestNearestIsBounded(t *testing.T) {
	text := strings.Repeat("a line that is there often\n", 20_000)
	if n := len(nearest(text, "a line that is there oftem")); n > nearPlaces {
		t.Errorf("%d places", n)
	}
	if got := nearest(text+strings.Repeat("x", limits.FileNear), "a line"); got != nil {
		t.Errorf("a text beyond the limit was searched: %v", got)
	}
	if got := why(fs.CodeAmbiguousEdit, text, "line"); len(got) > 1000 || !strings.Contains(got, "20,000 times") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	long := strings.Repeat("word ", 100_000)
	if got := why(fs.CodeEditNotFound, long, strings.Repeat("word ", 99)+"x"); len(got) > 2000 {
		t.Errorf("%d bytes", len(got))
	}
}

func FuzzWhy(f *testing.F) {
	f.Add("a\nb\nc\n", "b\nd", false)
	f.Add("\tx := 1\n", "    x := 1", false)
	f.Add("aaa", "aa", true)
	f.Add("x\n", "1: x", false)
	f.Add("", "\n\n", false)
	f.Fuzz(func(t *testing.T, text, old string, ambiguous bool) {
		if old == "" || strings.Contains(text, old) != ambiguous {
			return
		}
		code := fs.CodeEditNotFound
		if ambiguous {
			code = fs.CodeAmbiguousEdit
		}
		got := why(code, text, old)
		if got == "" || len(got) > 64<<10 {
			t.Fatalf("%d bytes", len(got))
		}
		lines := strings.Split(text, "\n")
		for _, n := range nearest(text, old) {
			if n.line < 1 || n.line+len(n.lines)-1 > len(lines) {
				t.Fatalf("line %d of %d", n.line, len(lines))
			}
			if diff := cmp.Diff(lines[n.line-1:n.line-1+len(n.lines)], n.lines); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestChangeOf(t *testing.T) {
	was := func(s string) *string { return &s }
	many := strings.Repeat("same\n", 100)
	for _, c := range []struct {
		name      string
		before    *string
		after     string
		truncated bool
		want      hunk
	}{
		{"new", nil, "a\n", false, hunk{Line: 1, New: "a\n"}},
		{"middle", was("1\n2\n3\n4\n5\n6\n7\n8\n9\n"), "1\n2\n3\n4\nx\n6\n7\n8\n9\n", false, hunk{2, was("2\n3\n4\n5\n6\n7\n8\n"), "2\n3\n4\nx\n6\n7\n8\n"}},
		{"grows_in_what_repeats", was("a\na\n"), "a\na\na\n", false, hunk{1, was("a\na\n"), "a\na\na\n"}},
		{"nothing", was(many), many, false, hunk{99, was("same\nsame\n"), "same\nsame\n"}},
		{"emptied", was("a\n"), "", false, hunk{1, was("a\n"), ""}},
		{"line_endings", was("a\r\nb\r\n"), "a\nc\n", false, hunk{1, was("a\nb\n"), "a\nc\n"}},
		{"cut", was("x\n" + many), "y\n" + many, true, hunk{1, was("x\n" + many), "y\n" + many}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, changeOf(c.before, c.after, c.truncated)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// whole is the window made of the whole text at once.
func whole(text string, from, limit int) (out []string, lines int) {
	all := strings.Split(text, "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	for i, line := range all {
		if i+1 >= from && len(out) < limit {
			out = append(out, strings.TrimSuffix(line, "\r"))
		}
	}
	return out, len(all)
}

// TestWindowOfPieces: how the text is cut into pieces makes no difference.
func TestWindowOfPieces(t *testing.T) {
	texts := []string{"", "a", "a\n", "\n", "\n\n", "a\nb", "a\r\nb\r\n", "one\ntwo\nthree\nfour\nfive\n", "x\n\n\ny"}
	for _, text := range texts {
		for size := 1; size <= 7; size++ {
			for from := 1; from <= 5; from++ {
				for limit := 1; limit <= 4; limit++ {
					w := &window{from: from, limit: limit}
					for at := 0; at < len(text); at += size {
						w.add(text[at:min(len(text), at+size)])
					}
					w.end()
					out, lines := whole(text, from, limit)
					if diff := cmp.Diff(out, w.out); diff != "" || w.lines != lines {
						t.Fatalf("%q in pieces of %d, from %d, %d lines: %d lines, want %d; %s", text, size, from, limit, w.lines, lines, diff)
					}
				}
			}
		}
	}
}

func TestWindowBounds(t *testing.T) {
	t.Run("long_lines", func(t *testing.T) {
		w := &window{from: 1, limit: 10}
		for range 100 {
			w.add(strings.Repeat("ä", 1000))
		}
		w.add("\nshort\n")
		w.end()
		want := strings.Repeat("ä", limits.FileLine) + "… (the line has 200,000 bytes)"
		if diff := cmp.Diff([]string{want, "short"}, w.out); diff != "" || w.cut != 1 {
			t.Errorf("cut %d; %s", w.cut, diff)
		}
	})
	t.Run("output", func(t *testing.T) {
		w := &window{from: 1, limit: limits.FileLinesMax}
		w.add(strings.Repeat(strings.Repeat("x", 99)+"\n", 1000))
		w.end()
		if n := len(w.out); !w.full || n != limits.FileShown/100 || w.lines != 1000 {
			t.Errorf("full %v, %d lines of %d", w.full, n, w.lines)
		}
	})
	t.Run("counting", func(t *testing.T) {
		w := &window{from: 1, limit: 1}
		piece := strings.Repeat("x\n", 1<<19)
		for !w.enough() {
			w.add(piece)
		}
		w.end()
		if len(w.out) != 1 || w.lines < limits.FileCounted/2 {
			t.Errorf("%d lines", w.lines)
		}
	})
}

// TestSearchIsTheSameEachTime: of more matches than are shown always the same are.
func TestSearchIsTheSameEachTime(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range 900 {
		w.put(fmt.Sprintf("d%d/f%03d", i%10, i), "match\nmatch\nother\nmatch\n")
	}
	for _, mode := range []string{modeContent, modeFiles, modeCount} {
		first := w.text("grep", args{"pattern": "match", "output_mode": mode})
		for range 5 {
			if got := w.text("grep", args{"pattern": "match", "output_mode": mode}); got != first {
				t.Fatalf("another answer: %s", cmp.Diff(first, got))
			}
		}
		var v grepValue
		w.value(w.call("grep", args{"pattern": "match", "output_mode": mode}), &v)
		shown := 0
		for _, f := range v.Files {
			for _, line := range f.Lines {
				if line.Match {
					shown++
				}
			}
		}
		if mode == modeContent && (shown != limits.GrepMatches || v.Matches != 2700) || mode != modeContent && len(v.Files) != limits.GrepMatches || v.Matched != 900 || !v.Truncated {
			t.Errorf("%s: %d lines, %d files shown; %d matches in %d files, truncated %v", mode, shown, len(v.Files), v.Matches, v.Matched, v.Truncated)
		}
	}
	var g globValue
	w.value(w.call("glob", args{"pattern": "**"}), &g)
	if len(g.Paths) != limits.GlobPaths || g.Total != 900 || !g.Truncated {
		t.Errorf("glob: %d of %d, truncated %v", len(g.Paths), g.Total, g.Truncated)
	}
}

func TestGrepOutputIsBounded(t *testing.T) {
	w := newWorld(t, Config{})
	for i := range 300 {
		w.put(fmt.Sprintf("f%03d", i), strings.Repeat("x", 3000)+"\n")
	}
	text := w.text("grep", args{"pattern": "x+", "context": 2})
	if len(text) > limits.FileShown+1000 || !strings.Contains(text, "of 300 matches in 300 files") {
		t.Errorf("%d bytes, which end with %q", len(text), text[len(text)-200:])
	}
}

func TestUnseen(t *testing.T) {
	timed, stop := context.WithTimeout(t.Context(), 0)
	defer stop()
	<-timed.Done()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	w := newWorld(t, Config{})
	files := &tools{fs: w.fs}
	for _, c := range []struct {
		name string
		s    fs.Scanned
		err  error
		ctx  context.Context
		want string
	}{
		{"everything", fs.Scanned{Visited: 9}, nil, t.Context(), ""},
		{"too_much", fs.Scanned{Unseen: "there are more than 7 files and folders to look at"}, nil, t.Context(), "The search did not see everything: there are more than 7 files and folders to look at. Name a folder in path."},
		{"no_permission", fs.Scanned{Unread: 2}, nil, t.Context(), "2 folders could not be read."},
		{"time", fs.Scanned{}, timed.Err(), timed, "The search did not see everything: it was ended after 30s. Name a folder in path, or a narrower pattern."},
		{"cancelled", fs.Scanned{}, cancelled.Err(), cancelled, ""},
		{"another_error", fs.Scanned{}, errBytes, t.Context(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := files.unseen(c.ctx, c.s, c.err); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestSearchEndsWithItsCall: a cancelled search is over at once.
func TestSearchEndsWithItsCall(t *testing.T) {
	var cancel atomic.Pointer[context.CancelFunc]
	stopper := &cordis.Plugin{Name: "stopper", Apply: func(c *cordis.Context, _ any) error {
		_, err := fs.ReadIntent.On(c, func(ctx context.Context, r fs.Read, next func(context.Context) (tool.Decision, error)) (tool.Decision, error) {
			if stop := cancel.Load(); stop != nil {
				(*stop)()
			}
			return next(ctx)
		})
		return err
	}}
	w := newWorld(t, Config{}, stopper)
	for i := range 300 {
		w.put(fmt.Sprintf("d%d/%d", i%7, i), "x\n")
	}
	for name, a := range map[string]string{"grep": `{"pattern":"x"}`, "glob": `{"pattern":"**"}`, "read": `{"file_path":"d1/1"}`} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			cancel.Store(&stop)
			r := w.tools.Execute(ctx, tool.Call{Name: name, Arguments: []byte(a)})
			if !r.IsError || r.Error.Code != tool.CodeAborted {
				t.Errorf("got %+v, %+v", r.Error, r.Content)
			}
		})
	}
}
