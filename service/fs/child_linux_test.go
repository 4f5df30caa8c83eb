package fs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/service"
)

func init() { runChild = runCase }

// runCase runs a case in a process of its own, which prints what came of it.
func runCase(name string) int {
	dir := os.Getenv("FS_TEST_DIR")
	root := cordis.New()
	l, err := open(root, Config{Roots: []string{dir}, Denied: []string{filepath.Join(dir, "none")}})
	if err != nil {
		fmt.Println("open:", err)
		return 1
	}
	f := l.For(root)
	ctx := root.Context()
	switch name {
	case "filesize":
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4096, Max: 4096}); err != nil {
			fmt.Println("setrlimit:", err)
			return 1
		}
		_, err = f.WriteText(ctx, "file", strings.Repeat("x", 8192), nil)
	case "full":
		_, err = f.WriteText(ctx, "file", strings.Repeat("x", 1<<20), nil)
	case "readonly":
		_, err = f.WriteText(ctx, "file", "new", nil)
	case "read":
		_, err = f.ReadText(ctx, "secret", nil)
	case "write":
		_, err = f.WriteText(ctx, "secret", "new", nil)
	case "edit":
		_, err = f.EditText(ctx, "visible", Edit{OldString: "old", NewString: "new"}, nil)
	case "create":
		_, err = f.WriteText(ctx, "closed/new", "new", nil)
	case "remove":
		err = f.Remove(ctx, "closed/file", nil)
	case "list":
		_, err = f.ListDir(ctx, "unlisted", nil)
	}
	fmt.Printf("%s|%v\n", service.CodeOf(err), err)
	return 0
}

// binary is a copy of the test binary that every user may run.
func binary(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	exe = filepath.Join(publicDir(t), "test")
	if err := os.WriteFile(exe, data, 0o755); err != nil {
		t.Fatal(err)
	}
	return exe
}

// publicDir is a folder whose parents every user may enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fstest")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	return dir
}

// child runs a case as the given user and gives the code and the text of its error.
func child(t *testing.T, exe, name, dir string, uid uint32) (code, text string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = []string{"FS_TEST_CHILD=" + name, "FS_TEST_DIR=" + dir, "HOME=/", "DSH_HOME=/nowhere/dsh"}
	cmd.Dir = "/"
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("child: %v: %s", err, out)
	}
	code, text, _ = strings.Cut(strings.TrimSpace(string(out)), "|")
	return code, text
}

func checkChild(t *testing.T, name, dir, code, part string) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got, text := child(t, exe, name, dir, 0)
	if got != code || !strings.Contains(text, part) {
		t.Errorf("got %s: %s; want %s with %q", got, text, code, part)
	}
}

// TestFileSizeLimit: a write that the system cuts off leaves the old file.
func TestFileSizeLimit(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "old")
	checkChild(t, "filesize", dir, CodeNoSpace, "no space")
	if got := content(t, filepath.Join(dir, "file")); got != "old" {
		t.Errorf("the file is %q", got)
	}
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

// tmpfs mounts a small file system, where the user may.
func tmpfs(t *testing.T, flags uintptr) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("dsh-test", dir, "tmpfs", flags, "size=64k,mode=0777"); err != nil {
		t.Skipf("this user cannot mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestDiskFull(t *testing.T) {
	dir := tmpfs(t, 0)
	put(t, filepath.Join(dir, "file"), "old")
	checkChild(t, "full", dir, CodeNoSpace, "no space left for it")
	if got := content(t, filepath.Join(dir, "file")); got != "old" {
		t.Errorf("the file is %q", got)
	}
	if left := leftovers(t, dir); left != nil {
		t.Errorf("left over: %v", left)
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	dir := tmpfs(t, 0)
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	checkChild(t, "readonly", dir, CodeReadOnly, "mounted read-only")
}

// TestPermissionDenied runs as another user, since root is refused nothing.
func TestPermissionDenied(t *testing.T) {
	uid := uint32(0)
	if os.Getuid() == 0 {
		uid = 65534
	}
	dir, exe := publicDir(t), binary(t)
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "closed"), 0o755) }) // for RemoveAll
	put(t, filepath.Join(dir, "secret"), "old")
	put(t, filepath.Join(dir, "visible"), "old")
	put(t, filepath.Join(dir, "closed/file"), "old")
	put(t, filepath.Join(dir, "unlisted/file"), "old")
	for path, mode := range map[string]os.FileMode{"": 0o777, "secret": 0o000, "visible": 0o444, "closed": 0o555, "unlisted": 0o000} {
		if err := os.Chmod(filepath.Join(dir, path), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"read", "write", "edit", "create", "remove", "list"} {
		t.Run(name, func(t *testing.T) {
			code, text := child(t, exe, name, dir, uid)
			if code != CodePermissionDenied || !strings.Contains(text, "no permission") {
				t.Errorf("got %s: %s", code, text)
			}
		})
	}
	if got := content(t, filepath.Join(dir, "visible")); got != "old" {
		t.Errorf("the file that may only be read is %q", got)
	}
}

// TestPipe: nothing waits for the other end of a pipe.
func TestPipe(t *testing.T) {
	w := newWorld(t, Config{})
	if err := unix.Mkfifo(filepath.Join(w.dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, err := w.fs.ReadText(ctx, "pipe", nil)
	wantCode(t, err, CodeNotRegularFile, "pipe")
	_, err = w.fs.ReadBytes(ctx, "pipe", nil)
	wantCode(t, err, CodeNotRegularFile, "")
	for _, err = range w.fs.StreamText(ctx, "pipe", nil) {
		wantCode(t, err, CodeNotRegularFile, "")
	}
	_, err = w.fs.WriteText(ctx, "pipe", "x", nil)
	wantCode(t, err, CodeNotRegularFile, "")
	_, err = w.fs.EditText(ctx, "pipe", Edit{OldString: "a", NewString: "b"}, nil)
	wantCode(t, err, CodeNotRegularFile, "")
	_, err = w.fs.ReadText(ctx, "pipe/x", nil)
	wantCode(t, err, CodeNotDirectory, "not a folder")
	info, err := w.fs.Stat(ctx, "pipe", nil)
	if err != nil || info.Type != TypeOther || info.Size != nil {
		t.Errorf("stat of a pipe: %+v, %v", info, err)
	}
	got, err := w.fs.Glob(ctx, "*", nil)
	if err != nil || len(got) != 0 {
		t.Errorf("glob finds a pipe: %v, %v", got, err)
	}
	if err := w.fs.Remove(ctx, "pipe", nil); err != nil {
		t.Error(err)
	}
}
