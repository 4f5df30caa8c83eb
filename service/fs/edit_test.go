package fs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/limits"
)

func TestEditText(t *testing.T) {
	w := newWorld(t, Config{})
	tests := []struct {
		name, before, old, new string
		all                    bool
		after, code, text      string
	}{
		{name: "once", before: "a b c", old: "b", new: "x", after: "a x c"},
		{name: "delete", before: "a b c", old: " b", after: "a c"},
		{name: "whole", before: "abc", old: "abc", new: "x", after: "x"},
		{name: "lines", before: "a\nb\nc\n", old: "b\nc", new: "x", after: "a\nx\n"},
		{name: "all", before: "aXbXc", old: "X", new: "XX", all: true, after: "aXXbXXc"},
		{name: "all_once", before: "aXb", old: "X", new: "", all: true, after: "ab"},
		{name: "all_adjacent", before: "aaaa", old: "aa", new: "b", all: true, after: "bb"},
		{name: "unicode", before: "é漢😀", old: "漢", new: "字", after: "é字😀"},

		{name: "crlf", before: "a\r\nb\r\nc\r\n", old: "a\nb", new: "x\ny", after: "x\r\ny\r\nc\r\n"},
		{name: "crlf_given", before: "a\r\nb\r\n", old: "a\r\nb", new: "x\r\ny", after: "x\r\ny\r\n"},
		{name: "crlf_given_for_lf", before: "a\nb\n", old: "a\r\nb", new: "x\r\ny", after: "x\ny\n"},
		{name: "mixed_mostly_crlf", before: "a\r\nb\nc\r\n", old: "b", new: "x\ny", after: "a\r\nx\r\ny\nc\r\n"},
		{name: "mixed_mostly_lf", before: "a\nb\r\nc\n", old: "b", new: "x\ny", after: "a\nx\ny\r\nc\n"},
		{name: "rest_keeps_its_bytes", before: "1\r\n2\n3\r\n4\nend", old: "end", new: "END", after: "1\r\n2\n3\r\n4\nEND"},
		{name: "lone_cr", before: "a\rb\rc", old: "b", new: "x", after: "a\rx\rc"},
		{name: "all_crlf", before: "x\r\n-\r\nx\r\n", old: "x\n", new: "y\nz\n", all: true, after: "y\r\nz\r\n-\r\ny\r\nz\r\n"},

		{name: "ambiguous", before: "x\n-\nx\nx x\n", old: "x", new: "y", code: CodeAmbiguousEdit, text: "lines 1, 3, 4. Add lines before or after it until it occurs once, or set replaceAll: true"},
		{name: "ambiguous_overlap", before: "aaa", old: "aa", new: "b", code: CodeAmbiguousEdit, text: "line 1"},
		{name: "ambiguous_often", before: strings.Repeat("x\n", 100), old: "x", new: "y", code: CodeAmbiguousEdit, text: "lines 1, 2, 3, 4, 5, 6, 7, 8, …"},
		{name: "not_found", before: "a\nb\n", old: "c", new: "d", code: CodeEditNotFound, text: "nor does its first line"},
		{name: "not_found_all", before: "a\nb\n", old: "c", new: "d", all: true, code: CodeEditNotFound},
		{name: "white_space", before: "a\n\tif x {\n\t\ty()\n", old: "  if x {\n    y()", new: "d", code: CodeEditNotFound, text: "with other white space it does, at line 2"},
		{name: "first_line", before: "a\nfunc f() {\n  x\n}\n", old: "func f() {\n  y\n}", new: "d", code: CodeEditNotFound, text: "line 2 (line 3 differs)"},
		{name: "empty_file", before: "", old: "a", new: "b", code: CodeEditNotFound, text: "the file is empty"},
		{name: "blank", before: "a", old: "\n\n", new: "b", code: CodeEditNotFound},
		{name: "empty_old", before: "a", old: "", new: "b", code: CodeInvalidArgument, text: "oldString is empty"},
		{name: "same", before: "a", old: "a\r\n", new: "a\n", code: CodeInvalidArgument, text: "nothing to change"},
		{name: "old_is_no_text", before: "a", old: "\x00", new: "b", code: CodeNotText, text: "oldString"},
		{name: "new_is_no_text", before: "a", old: "a", new: "\xff", code: CodeNotText, text: "newString"},
		{name: "old_too_large", before: "a", old: strings.Repeat("a", limits.FSEdit+1), new: "b", code: CodeTooLarge, text: "oldString"},
		{name: "grows_too_large", before: strings.Repeat("a", 100), old: "a", new: strings.Repeat("b", limits.FSEdit), all: true, code: CodeTooLarge, text: "after the edit"},
		{name: "binary", before: "a\x00", old: "a", new: "b", code: CodeNotText},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(w.dir, "file")
			put(t, path, tt.before)
			got, err := w.fs.EditText(t.Context(), "file", Edit{tt.old, tt.new, tt.all}, nil)
			wantCode(t, err, tt.code, tt.text)
			want := tt.after
			if tt.code != "" {
				want = tt.before
			}
			if now := content(t, path); now != want {
				t.Errorf("the file is %q, want %q", now, want)
			}
			if err != nil {
				return
			}
			info, err := w.fs.Stat(t.Context(), "file", nil)
			if err != nil || got.Before != tt.before || got.After != tt.after || got.Version != info.Version || got.Replacements < 1 {
				t.Errorf("got %+v; stat %+v, %v", got, info, err)
			}
		})
	}
	_, err := w.fs.EditText(t.Context(), "none", Edit{OldString: "a", NewString: "b"}, nil)
	wantCode(t, err, CodeNotFound, "writeText()")
}

// TestEditVersion: the version is checked before the text is looked for.
func TestEditVersion(t *testing.T) {
	w := newWorld(t, Config{})
	path := filepath.Join(w.dir, "file")
	put(t, path, "one two")
	info, err := w.fs.Stat(t.Context(), "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	put(t, path, "one TWO") // another program's, of the same size, a moment later
	_, err = w.fs.EditText(t.Context(), "file", Edit{OldString: "two", NewString: "2"}, &EditOptions{Version: info.Version})
	wantCode(t, err, CodeStaleVersion, info.Version)
	if info, err = w.fs.Stat(t.Context(), "file", nil); err != nil {
		t.Fatal(err)
	}
	got, err := w.fs.EditText(t.Context(), "file", Edit{OldString: "TWO", NewString: "2"}, &EditOptions{Version: info.Version})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = w.fs.EditText(t.Context(), "file", Edit{OldString: "2", NewString: "3"}, &EditOptions{Version: got.Version}); err != nil {
		t.Fatal(err)
	}
	if now := content(t, path); now != "one 3" {
		t.Errorf("the file is %q", now)
	}
}

// TestChangedWhileEdited: another program writes between the reading and the
// renaming; its text stays.
func TestChangedWhileEdited(t *testing.T) {
	w := newWorld(t, Config{})
	path := filepath.Join(w.dir, "file")
	for name, change := range map[string]func(){
		"in_place": func() { put(t, path, "theirs") },
		"replaced": func() {
			put(t, path+"2", "theirs")
			if err := os.Rename(path+"2", path); err != nil {
				t.Error(err)
			}
		},
		"removed": func() {
			if err := os.Remove(path); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			put(t, path, "before")
			k := &call{ctx: t.Context(), op: "editText", path: "file"}
			l := w.svc.(*local)
			at, err := l.walk(k, "file", "", true)
			if err != nil {
				t.Fatal(err)
			}
			defer at.close()
			time.Sleep(limits.FSRacy) // as edit waits: the change is to be told from the one before
			if err := at.look(); err != nil {
				t.Fatal(err)
			}
			change()
			_, err = at.put("mine", expectSame)
			wantCode(t, err, CodeStaleVersion, "as they left it")
			if name != "removed" && content(t, path) != "theirs" {
				t.Error("their text is lost")
			}
			if left := leftovers(t, w.dir); left != nil {
				t.Errorf("left over: %v", left)
			}
		})
	}
}

var (
	genText = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", "\n", "\r\n", "é", " "}), 0, 30).Draw(t, "text"), "")
	})
	genPiece = rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "\n", "\r\n", "é"}), 0, 3).Draw(t, "piece"), "")
	})
)

// TestReplaceModel: on the text with LF an edit is strings.Replace, and the line
// endings of what is not replaced stay.
func TestReplaceModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		data := genText.Draw(t, "data")
		e := Edit{toLF(genPiece.Draw(t, "old")), toLF(genPiece.Draw(t, "new")), rapid.Bool().Draw(t, "all")}
		if e.OldString == "" {
			return
		}
		text := toLF(data)
		times := 0
		for i := range text {
			if strings.HasPrefix(text[i:], e.OldString) {
				times++
			}
		}
		got, count, refused := replace(data, e)
		switch {
		case times == 0:
			if refused == nil || refused.code != CodeEditNotFound {
				t.Fatalf("it does not occur: %q, %v", got, refused)
			}
			return
		case times > 1 && !e.ReplaceAll:
			if refused == nil || refused.code != CodeAmbiguousEdit {
				t.Fatalf("it occurs %d times: %q, %v", times, got, refused)
			}
			return
		case refused != nil:
			t.Fatalf("it occurs %d times: %v", times, refused)
		}
		if want := strings.ReplaceAll(text, e.OldString, e.NewString); toLF(got) != want {
			t.Fatalf("got %q, want %q", got, want)
		}
		if count != strings.Count(text, e.OldString) {
			t.Fatalf("%d replacements", count)
		}
		if crlf, lf := strings.Count(data, "\r\n"), strings.Count(text, "\n"); crlf == 0 || crlf == lf {
			// One kind of line ending: it stays the only one.
			if now := strings.Count(got, "\r\n"); lf > 0 && now != 0 && now != strings.Count(got, "\n") {
				t.Fatalf("%q became %q", data, got)
			}
		}
		first := strings.Index(text, e.OldString)
		var c cursor
		c.data = data
		if head := c.to(first); !strings.HasPrefix(got, head) {
			t.Fatalf("%q became %q: what stands before it changed", data, got)
		}
	})
}

// TestFilesModel: the service against a map, with unconditional and conditional
// writes, edits and removals.
func TestFilesModel(t *testing.T) {
	w := newWorld(t, Config{})
	rapid.Check(t, func(rt *rapid.T) {
		model, versions := map[string]string{}, map[string]string{}
		if err := w.fs.Remove(t.Context(), "m", &RemoveOptions{Recursive: true}); err != nil {
			wantCode(t, err, CodeNotFound, "")
		}
		path := func() string { return rapid.SampledFrom([]string{"m/a", "m/b", "m/c/d"}).Draw(rt, "path") }
		acts := map[string]func(*rapid.T){
			"write": func(rt *rapid.T) {
				p, text := path(), genText.Draw(rt, "text")
				got, err := w.fs.WriteText(t.Context(), Path(p), text, nil)
				before, there := model[p]
				if err != nil || there != (got.Before != nil) || there && *got.Before != before || got.After != text {
					rt.Fatalf("%+v, %v; before it was %q, %v", got, err, before, there)
				}
				model[p], versions[p] = text, got.Version
			},
			"create": func(rt *rapid.T) {
				p, text := path(), genText.Draw(rt, "text")
				got, err := w.fs.WriteText(t.Context(), Path(p), text, &WriteOptions{Kind: CreateIfAbsent})
				if _, there := model[p]; there != (err != nil) {
					rt.Fatalf("%+v, %v; it was there: %v", got, err, there)
				}
				if err == nil {
					model[p], versions[p] = text, got.Version
				}
			},
			"edit": func(rt *rapid.T) {
				p, e := path(), Edit{genPiece.Draw(rt, "old"), genPiece.Draw(rt, "new"), rapid.Bool().Draw(rt, "all")}
				got, err := w.fs.EditText(t.Context(), Path(p), e, &EditOptions{Version: versions[p]})
				if err != nil {
					return // the text is compared below
				}
				want, _, _ := replace(model[p], Edit{toLF(e.OldString), toLF(e.NewString), e.ReplaceAll})
				if got.After != want {
					rt.Fatalf("got %q, want %q", got.After, want)
				}
				model[p], versions[p] = want, got.Version
			},
			"remove": func(rt *rapid.T) {
				p := path()
				err := w.fs.Remove(t.Context(), Path(p), nil)
				if _, there := model[p]; there != (err == nil) {
					rt.Fatalf("%v; it was there: %v", err, there)
				}
				delete(model, p)
				delete(versions, p)
			},
			"check": func(rt *rapid.T) {
				for _, p := range []string{"m/a", "m/b", "m/c/d"} {
					got, err := w.fs.ReadText(t.Context(), Path(p), nil)
					if want, there := model[p]; there != (err == nil) || got != want {
						rt.Fatalf("%s is %q, %v; want %q, %v", p, got, err, want, there)
					}
				}
			},
		}
		for range rapid.IntRange(1, 8).Draw(rt, "steps") {
			acts[rapid.SampledFrom([]string{"write", "create", "edit", "remove"}).Draw(rt, "act")](rt)
			acts["check"](rt)
		}
	})
}

// FuzzReplace: no text makes an edit panic or lose what it does not replace.
func FuzzReplace(f *testing.F) {
	f.Add("a\r\nb\nc", "b", "x\ny", false)
	f.Add("\r\r\n\n", "\n", "", true)
	f.Add("aaa", "aa", "b", true)
	f.Fuzz(func(t *testing.T, data, old, with string, all bool) {
		e := Edit{toLF(old), toLF(with), all}
		if e.OldString == "" || e.OldString == e.NewString {
			return
		}
		got, count, refused := replace(data, e)
		if (refused == nil) != (count > 0) {
			t.Fatalf("%d replacements, %v", count, refused)
		}
		if refused != nil {
			if got != "" || refused.text == "" {
				t.Fatalf("%q, %+v", got, refused)
			}
			return
		}
		if count != strings.Count(toLF(data), e.OldString) {
			t.Fatalf("%d replacements", count)
		}
		if i := strings.Index(data, e.OldString); i >= 0 && !strings.Contains(e.OldString, "\n") && !strings.HasPrefix(got, data[:i]) {
			t.Fatalf("%q became %q", data, got)
		}
	})
}

func BenchmarkEditText(b *testing.B) {
	text := strings.Repeat("some line of text\r\n", 50_000) + "the end"
	e := Edit{OldString: "line of text\nthe end", NewString: "line\nTHE END"}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, refused := replace(text, e); refused != nil {
			b.Fatal(refused)
		}
	}
}
