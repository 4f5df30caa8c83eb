package atomicfile

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The environment of a process that ends itself in the middle of a write.
const (
	dieAt   = "ATOMICFILE_DIE_AT"
	dieFile = "ATOMICFILE_FILE"
	dieHow  = "ATOMICFILE_HOW"
)

func TestMain(m *testing.M) {
	if at := os.Getenv(dieAt); at != "" {
		step = func(name string) {
			if name == at {
				p, _ := os.FindProcess(os.Getpid())
				_ = p.Kill()
				select {}
			}
		}
		write := Write
		if os.Getenv(dieHow) == "create" {
			write = Create
		}
		if err := write(os.Getenv(dieFile), []byte(strings.Repeat("new", 100_000)), 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestKilled: a process that is killed at any step leaves the old file or the new one,
// and at most a temporary file that can be told.
func TestKilled(t *testing.T) {
	for _, how := range []string{"write", "create"} {
		for _, at := range []string{"create", "write", "sync", "publish", "folder", "never"} {
			t.Run(how+"/"+at, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "file")
				old := ""
				if how == "write" {
					old = "old"
					if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				cmd := exec.Command(os.Args[0], "-test.run=^$")
				cmd.Env = append(os.Environ(), dieAt+"="+at, dieFile+"="+path, dieHow+"="+how)
				out, err := cmd.CombinedOutput()
				if (at == "never") != (err == nil) {
					t.Fatalf("%v: %s", err, out)
				}
				got, _ := os.ReadFile(path)
				wantNew := at == "folder" || at == "never"
				if isNew := len(got) == 300_000; isNew != wantNew || !isNew && string(got) != old {
					t.Errorf("%d bytes are there", len(got))
				}
				entries, err := os.ReadDir(dir)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range entries {
					if e.Name() != "file" && !Temporary(e.Name()) {
						t.Errorf("%s was left", e.Name())
					}
				}
			})
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, mode := range []fs.FileMode{0o600, 0o644, 0o640} {
		if err := Write(path, []byte(mode.String()), mode); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := os.ReadFile(path); string(got) != mode.String() || runtime.GOOS != "windows" && info.Mode() != mode {
			t.Errorf("%s: %q, %s", mode, got, info.Mode())
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink("file", link); err != nil {
		t.Fatal(err)
	}
	if err := Write(link, []byte("through"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "through" {
		t.Errorf("the link's target has %q", got)
	}
	if to, err := os.Readlink(link); err != nil || to != "file" {
		t.Errorf("the link is %q, %v", to, err)
	}
	only(t, dir, "file", "link")
}

// TestWriteFails: what goes wrong leaves what was there, and nothing beside it.
func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"folder", "none/file", "dangling"} {
		if err := Write(filepath.Join(dir, path), []byte("x"), 0o600); err == nil || !strings.HasPrefix(err.Error(), "write file: ") {
			t.Errorf("%s: %v", path, err)
		}
	}
	only(t, dir, "dangling", "folder")
}

func TestCreate(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := Create(path, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, there := range []string{"file", "dangling"} {
		if err := Create(filepath.Join(dir, there), []byte("two"), 0o644); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", there, err)
		}
	}
	if got, _ := os.ReadFile(path); string(got) != "one" {
		t.Errorf("it has %q", got)
	}
	only(t, dir, "dangling", "file")
}

// TestManyWriters: readers find one of the contents, whole.
func TestManyWriters(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := Write(path, bytes.Repeat([]byte{'x'}, 10_000), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	for n := range 4 {
		go func() {
			var err error
			for i := range 10 {
				err = errors.Join(err, Write(path, bytes.Repeat([]byte{byte('a' + n*10 + i)}, 10_000), 0o600))
			}
			done <- err
		}()
	}
	for left := 4; left > 0; {
		select {
		case err := <-done:
			if left--; err != nil {
				t.Error(err)
			}
		default:
		}
		got, err := os.ReadFile(path)
		if err != nil || len(got) != 10_000 || !bytes.Equal(got, bytes.Repeat(got[:1], 10_000)) {
			t.Fatalf("a reader found %d bytes, %v", len(got), err)
		}
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(t.Context(), path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(t.Context(), path, 20*time.Millisecond); !errors.Is(err, ErrLocked) {
		t.Errorf("held: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lock(ctx, path, time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	got := make(chan error)
	go func() {
		next, err := Lock(t.Context(), path, time.Minute)
		if err == nil {
			next()
		}
		got <- err
	}()
	release()
	if err := <-got; err != nil {
		t.Errorf("after release: %v", err)
	}
}

func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("the folder has %v, want %v", got, names)
	}
}

func BenchmarkWrite(b *testing.B) {
	path := filepath.Join(b.TempDir(), "file")
	data := make([]byte, 4096)
	for b.Loop() {
		if err := Write(path, data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
