//go:build linux

package bash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dsh-go/dsh/internal/plain"
)

// However output is cut into pieces, its end is kept, all of it is in the file once
// there is one, and what was read meanwhile is all of it.
func TestStreamProperties(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		keep := rapid.IntRange(1, 40).Draw(t, "keep")
		opened := 0
		n := &news{}
		s := &stream{max: keep, news: n, open: func() (*os.File, error) {
			opened++
			return os.Create(filepath.Join(dir, "out"))
		}}
		var all, read strings.Builder
		for _, piece := range rapid.SliceOf(rapid.SliceOfN(rapid.SampledFrom([]byte("ab\n\xc3\xa9\xff")), 1, 60)).Draw(t, "pieces") {
			all.Write(piece)
			s.add(piece)
			if rapid.Bool().Draw(t, "look") {
				delta, lossy := n.take()
				if lossy {
					t.Fatal("lossy")
				}
				read.WriteString(delta)
			}
		}
		out := s.close()
		delta, _ := n.take()
		read.WriteString(delta)

		want := all.String()
		if got, _ := text([]byte(want)); collapse(read.String()) != collapse(got) {
			t.Fatalf("read %q of %q", read.String(), got)
		}
		if out.Truncated != (len(want) > keep) || (opened == 1) != out.Truncated || (out.SpillPath != "") != out.Truncated {
			t.Fatalf("%d bytes of %d: %+v, opened %d", keep, len(want), out, opened)
		}
		if out.Truncated {
			spilled, err := os.ReadFile(out.SpillPath)
			if err != nil || string(spilled) != want {
				t.Fatalf("the file holds %q of %q: %v", spilled, want, err)
			}
			want = want[len(want)-keep:]
			want = want[plain.Continued([]byte(want)):]
		}
		if kept, binary := text([]byte(want)); out.Text != kept || out.Binary != binary {
			t.Fatalf("kept %+v, want %q", out, kept)
		}
	})
}

// collapse makes one of several replacements: how many there are for bytes that are
// no text depends on where they were cut.
func collapse(s string) string {
	for strings.Contains(s, "\uFFFD\uFFFD") {
		s = strings.ReplaceAll(s, "\uFFFD\uFFFD", "\uFFFD")
	}
	return s
}

// A file that cannot be made or written is not named, and removed.
func TestStreamWithoutAFile(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full") // a link, since the stream removes its file
	if err := os.Symlink("/dev/full", full); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func() (*os.File, error){
		"not_made":  func() (*os.File, error) { return nil, os.ErrPermission },
		"disk_full": func() (*os.File, error) { return os.OpenFile(full, os.O_WRONLY, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			s := &stream{max: 3, open: open}
			s.add([]byte("abcdef"))
			s.add([]byte("ghi"))
			if out := s.close(); out.Text != "ghi" || !out.Truncated || out.SpillPath != "" {
				t.Errorf("%+v", out)
			}
		})
	}
	if _, err := os.Lstat(full); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}
