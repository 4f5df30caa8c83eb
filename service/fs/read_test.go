package fs

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
)

func TestReadText(t *testing.T) {
	w := newWorld(t, Config{})
	big := strings.Repeat("0123456789abcdef", limits.FSText/16)
	tests := []struct{ name, data, code, text string }{
		{"empty", "", "", ""},
		{"plain", "a\nb\r\nc", "", ""},
		{"unicode", "é 漢字 😀", "", ""},
		{"byte_order_mark", "\ufeffa", "", ""},
		{"nul", "ab\x00c", CodeNotText, "byte 2 is NUL"},
		{"latin1", "caf\xe9", CodeNotText, "from byte 3 on"},
		{"surrogate", "a\xed\xa0\x80", CodeNotText, "from byte 1 on"},
		{"cut_character", "ab\xe6\xbc", CodeNotText, "from byte 2 on"},
		{"limit", big, "", ""},
		{"too_large", big + "x", CodeTooLarge, "streamText()"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			put(t, filepath.Join(w.dir, "file"), tt.data)
			got, err := w.fs.ReadText(t.Context(), "file", nil)
			wantCode(t, err, tt.code, tt.text)
			if err == nil && got != tt.data {
				t.Errorf("got %d bytes that differ", len(got))
			}
			var pieces strings.Builder
			for piece, serr := range w.fs.StreamText(t.Context(), "file", nil) {
				if err = serr; err != nil {
					break
				}
				if len(piece) > limits.FSPiece || piece == "" {
					t.Fatalf("a piece has %d bytes", len(piece))
				}
				pieces.WriteString(piece)
			}
			if tt.code == CodeNotText {
				wantCode(t, err, tt.code, tt.text)
			} else if pieces.String() != tt.data {
				t.Errorf("the stream has %d bytes that differ", pieces.Len())
			}
		})
	}
}

func TestReadBytes(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "file"), "\x00123456789")
	tests := []struct {
		name string
		o    *ReadBytesOptions
		want string
		code string
	}{
		{"all", nil, "\x00123456789", ""},
		{"offset", &ReadBytesOptions{Offset: 4}, "456789", ""},
		{"part", &ReadBytesOptions{Offset: 2, Length: ptr(int64(3))}, "234", ""},
		{"over_the_end", &ReadBytesOptions{Offset: 8, Length: ptr(int64(30))}, "89", ""},
		{"beyond", &ReadBytesOptions{Offset: 100}, "", ""},
		{"beyond_every_file", &ReadBytesOptions{Offset: math.MaxInt64}, "", ""},
		{"nothing", &ReadBytesOptions{Length: ptr(int64(0))}, "", ""},
		{"negative_offset", &ReadBytesOptions{Offset: -1}, "", CodeInvalidArgument},
		{"negative_length", &ReadBytesOptions{Length: ptr(int64(-1))}, "", CodeInvalidArgument},
		{"too_long", &ReadBytesOptions{Length: ptr(int64(limits.FSBytes + 1))}, "", CodeTooLarge},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.fs.ReadBytes(t.Context(), "file", tt.o)
			wantCode(t, err, tt.code, "")
			if string(got) != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	if err := os.Truncate(filepath.Join(w.dir, "file"), limits.FSText*2); err != nil {
		t.Fatal(err)
	}
	_, err := w.fs.ReadBytes(t.Context(), "file", nil)
	wantCode(t, err, CodeTooLarge, "offset and length")
	got, err := w.fs.ReadBytes(t.Context(), "file", &ReadBytesOptions{Offset: limits.FSText*2 - 5, Length: ptr(int64(100))})
	if err != nil || len(got) != 5 {
		t.Errorf("the end of a large file: %v, %v", got, err)
	}
}

// TestStreamLines: pieces end with lines, or at least with characters.
func TestStreamLines(t *testing.T) {
	w := newWorld(t, Config{})
	lines := strings.Repeat(strings.Repeat("é", 50)+"\n", 5000)
	long := strings.Repeat("漢", 100_000)
	put(t, filepath.Join(w.dir, "file"), lines+long)
	var all strings.Builder
	pieces := 0
	for piece, err := range w.fs.StreamText(t.Context(), "file", nil) {
		if err != nil {
			t.Fatal(err)
		}
		if all.Len()+len(piece) <= len(lines) && !strings.HasSuffix(piece, "\n") || !utf8.ValidString(piece) {
			t.Errorf("piece %d ends with %q", pieces, piece[len(piece)-3:])
		}
		all.WriteString(piece)
		pieces++
	}
	if all.String() != lines+long || pieces < 10 {
		t.Errorf("%d bytes in %d pieces", all.Len(), pieces)
	}
	for range w.fs.StreamText(t.Context(), "file", nil) {
		break // goleak and the race detector see that nothing goes on
	}
}

// TestStreamBroken: an error of the file ends the stream.
func TestStreamBroken(t *testing.T) {
	k := &call{ctx: t.Context(), op: "streamText", path: "x"}
	n, last := 0, error(nil)
	stream(k, io.MultiReader(strings.NewReader("a\n"), iotest.ErrReader(errors.New("unplugged"))), func(_ string, err error) bool {
		n++
		last = err
		return true
	})
	wantCode(t, last, CodeIO, "unplugged")
	if n != 1 {
		t.Errorf("%d pieces", n)
	}
}

func TestStat(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "file"), "12345")
	put(t, filepath.Join(w.dir, "d/x"), "")
	link(t, "file", filepath.Join(w.dir, "link"))
	before := time.Now().Add(-time.Minute).UnixMilli()
	for _, tt := range []struct {
		path, lpath EntryType
		name        Path
		size        *int64
	}{
		{TypeFile, TypeFile, "file", ptr(int64(5))},
		{TypeFile, TypeSymlink, "link", ptr(int64(5))},
		{TypeDirectory, TypeDirectory, "d", nil},
		{TypeDirectory, TypeDirectory, ".", nil},
	} {
		got, err := w.fs.Stat(t.Context(), tt.name, nil)
		if err != nil || got == nil || got.Type != tt.path || !cmp.Equal(got.Size, tt.size) || got.Version == "" || got.ModifiedMs < before {
			t.Errorf("stat of %s: %+v, %v", tt.name, got, err)
		}
		if got, err = w.fs.Lstat(t.Context(), tt.name, nil); err != nil || got == nil || got.Type != tt.lpath {
			t.Errorf("lstat of %s: %+v, %v", tt.name, got, err)
		}
	}
	for _, path := range []Path{"none", "none/x", "file/x", "d/none"} {
		if got, err := w.fs.Stat(t.Context(), path, nil); got != nil || err != nil {
			t.Errorf("stat of %s: %+v, %v", path, got, err)
		}
	}
}

// TestVersions: whatever changes a file changes its version, at once.
func TestVersions(t *testing.T) {
	w := newWorld(t, Config{})
	path := filepath.Join(w.dir, "file")
	put(t, path, "0")
	seen := map[string]int{}
	version := func(i int) {
		info, err := w.fs.Stat(t.Context(), "file", nil)
		if err != nil {
			t.Fatal(err)
		}
		if before, there := seen[info.Version]; there {
			t.Fatalf("change %d has the version of change %d", i, before)
		}
		seen[info.Version] = i
	}
	for i := range 20 {
		version(i)
		if err := os.WriteFile(path, []byte{byte('a' + i)}, 0o644); err != nil { // in place, of one size
			t.Fatal(err)
		}
	}
	for i := range 20 {
		got, err := w.fs.WriteText(t.Context(), "file", string(rune('a'+i)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if before, there := seen[got.Version]; there {
			t.Fatalf("write %d has the version of change %d", i, before)
		}
		seen[got.Version] = 100 + i
	}
	info, _ := w.fs.Stat(t.Context(), "file", nil)
	again, _ := w.fs.Stat(t.Context(), "file", nil)
	if info.Version != again.Version || seen[info.Version] != 119 {
		t.Errorf("without a change: %s, then %s, which is of %d", info.Version, again.Version, seen[info.Version])
	}
}

func TestPathJSON(t *testing.T) {
	for _, tt := range []struct{ json, want string }{
		{`"a/b"`, "a/b"},
		{`""`, ""},
		{`{"targetKey":"/x","displayPath":"x","path":"/x"}`, "/x"},
		{`{"targetKey":"/x"}`, "/x"},
	} {
		var p Path
		if err := json.Unmarshal([]byte(tt.json), &p); err != nil || string(p) != tt.want {
			t.Errorf("%s: %q, %v", tt.json, p, err)
		}
	}
	for _, bad := range []string{`null`, `1`, `{}`, `["a"]`, `{"targetKey":1}`, `{"path":""}`} {
		var p Path
		if err := json.Unmarshal([]byte(bad), &p); err == nil || !strings.Contains(err.Error(), "expected a path string, or a target") {
			t.Errorf("%s: %q, %v", bad, p, err)
		}
	}
}

func TestTargetsAreAccepted(t *testing.T) {
	w := newWorld(t, Config{})
	put(t, filepath.Join(w.dir, "d/file"), "x")
	list, err := w.fs.ListDir(t.Context(), "d", nil)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(list[0].Target)
	if err != nil {
		t.Fatal(err)
	}
	var p Path
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	if got, err := w.fs.ReadText(t.Context(), p, nil); err != nil || got != "x" {
		t.Errorf("got %q, %v", got, err)
	}
}

func BenchmarkReadText(b *testing.B) {
	w := newWorld(b, Config{})
	put(b, filepath.Join(w.dir, "a/b/file"), strings.Repeat("The quick brown fox jumps over the lazy dog, café.\n", (1<<20)/52))
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.fs.ReadText(b.Context(), "a/b/file", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStat(b *testing.B) {
	w := newWorld(b, Config{})
	put(b, filepath.Join(w.dir, "a/b/file"), "x")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := w.fs.Stat(b.Context(), "a/b/file", nil); err != nil {
			b.Fatal(err)
		}
	}
}
