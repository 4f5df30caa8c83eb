package fs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

func TestWriteText(t *testing.T) {
	w := newWorld(t, Config{})
	ctx := t.Context()
	got, err := w.fs.WriteText(ctx, "new/deep/file", "one\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	version := got.Version
	if diff := cmp.Diff(Written{Operation: OperationCreate, Version: version, After: "one\n"}, got); diff != "" {
		t.Error(diff)
	}
	info, err := w.fs.Stat(ctx, "new/deep/file", nil)
	if err != nil || info.Version != version {
		t.Errorf("stat gives %+v, %v; the write gave version %s", info, err, version)
	}
	path := filepath.Join(w.dir, "new/deep/file")
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if got, err = w.fs.WriteText(ctx, "new/deep/file", "two", nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Written{Operation: OperationUpdate, Version: got.Version, Before: ptr("one\n"), After: "two"}, got); diff != "" {
		t.Error(diff)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o640 || content(t, path) != "two" {
		t.Errorf("there is %v, %v", st.Mode(), err)
	}
	if left := leftovers(t, filepath.Dir(path)); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestWriteConditions(t *testing.T) {
	w := newWorld(t, Config{})
	ctx := t.Context()
	put(t, filepath.Join(w.dir, "file"), "old")
	info, err := w.fs.Stat(ctx, "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, path string
		o          WriteOptions
		code, text string
	}{
		{"exists", "file", WriteOptions{Kind: CreateIfAbsent}, CodeExists, "nothing was replaced"},
		{"stale", "file", WriteOptions{Kind: ReplaceIfVersion, Version: "1-2-3"}, CodeStaleVersion, info.Version},
		{"gone", "none", WriteOptions{Kind: ReplaceIfVersion, Version: info.Version}, CodeStaleVersion, "nothing is there"},
		{"gone_deep", "x/y/none", WriteOptions{Kind: ReplaceIfVersion, Version: info.Version}, CodeStaleVersion, "nothing is there"},
		{"no_version", "file", WriteOptions{Kind: ReplaceIfVersion}, CodeInvalidArgument, `{kind: "replaceIfVersion", version: "…"}`},
		{"no_kind", "file", WriteOptions{Version: info.Version}, CodeInvalidArgument, "createIfAbsent"},
		{"both", "file", WriteOptions{Kind: CreateIfAbsent, Version: "1"}, CodeInvalidArgument, ""},
		{"unknown", "file", WriteOptions{Kind: "append"}, CodeInvalidArgument, `kind "append"`},
		{"folder", ".", WriteOptions{Kind: CreateIfAbsent}, CodeNotRegularFile, "folder"},
		{"replace", "file", WriteOptions{Kind: ReplaceIfVersion, Version: info.Version}, "", ""},
		{"replaced", "file", WriteOptions{Kind: ReplaceIfVersion, Version: info.Version}, CodeStaleVersion, ""},
		{"create", "other", WriteOptions{Kind: CreateIfAbsent}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := w.fs.WriteText(ctx, Path(tt.path), "new", &tt.o)
			wantCode(t, err, tt.code, tt.text)
			if now, _ := w.fs.Stat(ctx, Path(tt.path), nil); err == nil && now.Version != got.Version {
				t.Errorf("the write gave version %s, stat gives %s", got.Version, now.Version)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(w.dir, "x")); err == nil {
		t.Error("a refused write made a folder")
	}
	if left := leftovers(t, w.dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestWriteRefusesWhatIsNoText(t *testing.T) {
	w := newWorld(t, Config{})
	for _, tt := range []struct{ content, code string }{
		{"a\x00", CodeNotText}, {"\xff", CodeNotText}, {strings.Repeat("x", limits.FSText+1), CodeTooLarge},
	} {
		_, err := w.fs.WriteText(t.Context(), "file", tt.content, nil)
		wantCode(t, err, tt.code, "content")
	}
	if _, err := os.Stat(filepath.Join(w.dir, "file")); err == nil {
		t.Error("something was written")
	}
}

// TestEcho: what results show is bounded, and cut between characters.
func TestEcho(t *testing.T) {
	w := newWorld(t, Config{})
	long := "a" + strings.Repeat("é", limits.FSEcho)
	for i, before := range []string{long, "\x00binary"} {
		put(t, filepath.Join(w.dir, "file"), before)
		got, err := w.fs.WriteText(t.Context(), "file", long, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !got.Truncated || got.After != long[:limits.FSEcho-1] {
			t.Errorf("after has %d bytes", len(got.After))
		}
		if i == 0 && (got.Before == nil || *got.Before != long[:limits.FSEcho-1]) || i == 1 && got.Before != nil {
			t.Errorf("before is %v", got.Before)
		}
		if content(t, filepath.Join(w.dir, "file")) != long {
			t.Error("the file differs")
		}
	}
}

// TestWritersExcludeEachOther: of those who expect the same version one wins.
func TestWritersExcludeEachOther(t *testing.T) {
	w := newWorld(t, Config{})
	const writers = 8
	race := func(write func(i int) error, loser string) {
		t.Helper()
		errs := make([]error, writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() { errs[i] = write(i) })
		}
		all.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if service.CodeOf(err) != loser {
				t.Errorf("a writer got %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d writers won", won)
		}
	}
	race(func(i int) error {
		_, err := w.fs.WriteText(t.Context(), "file", fmt.Sprint(i), &WriteOptions{Kind: CreateIfAbsent})
		return err
	}, CodeExists)
	info, err := w.fs.Stat(t.Context(), "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	race(func(i int) error {
		_, err := w.fs.WriteText(t.Context(), "file", fmt.Sprint(i), &WriteOptions{Kind: ReplaceIfVersion, Version: info.Version})
		return err
	}, CodeStaleVersion)

	put(t, filepath.Join(w.dir, "list"), "end\n")
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			if _, err := w.fs.EditText(t.Context(), "list", Edit{OldString: "end\n", NewString: fmt.Sprint(i, "\nend\n")}, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := strings.Count(content(t, filepath.Join(w.dir, "list")), "\n"); got != writers+1 {
		t.Errorf("%d lines: an edit was lost", got)
	}
}

// TestReadersSeeWholeFiles: never a part of a new text.
func TestReadersSeeWholeFiles(t *testing.T) {
	w := newWorld(t, Config{})
	texts := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	if _, err := w.fs.WriteText(t.Context(), "file", texts[0], nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_, err := w.fs.WriteText(ctx, "file", texts[i%2], nil)
			if err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for range 60 {
		got, err := w.fs.ReadText(t.Context(), "file", nil)
		if err != nil || got != texts[0] && got != texts[1] {
			t.Fatalf("read %d bytes, %v", len(got), err)
		}
	}
	cancel()
	writing.Wait()
	if left := leftovers(t, w.dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// TestChangedWhilePolicyIsAsked: what happens between is seen.
func TestChangedWhilePolicyIsAsked(t *testing.T) {
	w := newWorld(t, Config{})
	path := filepath.Join(w.dir, "file")
	put(t, path, "old")
	info, err := w.fs.Stat(t.Context(), "file", nil)
	if err != nil {
		t.Fatal(err)
	}
	onWrite(t, w, func(Write) { put(t, path, "new") })
	_, err = w.fs.WriteText(t.Context(), "file", "mine", &WriteOptions{Kind: ReplaceIfVersion, Version: info.Version})
	wantCode(t, err, CodeStaleVersion, "Read it again")
	onWrite(t, w, func(Write) {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
		link(t, "/etc/passwd", path)
	})
	_, err = w.fs.WriteText(t.Context(), "file", "mine", nil)
	wantCode(t, err, CodeNotRegularFile, "link")
}
