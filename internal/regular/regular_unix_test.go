//go:build unix

package regular

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestOpen: what is no regular file is told as such, whatever it is and however it is
// to be opened, and a pipe that nobody has the other end of is not waited for.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	if err := syscall.Mkfifo(at("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", at("socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := errors.Join(os.WriteFile(at("file"), []byte("text"), 0o600), os.Symlink("file", at("link"))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		want error
	}{
		{"pipe", ErrIrregular}, {"socket", ErrIrregular}, {".", ErrIrregular}, {"absent", fs.ErrNotExist}, {"file", nil}, {"link", nil},
	} {
		for how, flags := range map[string]int{"read": os.O_RDONLY, "write": os.O_WRONLY, "both": os.O_RDWR} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				f, info, err := Open(at(c.name), flags, 0)
				if !errors.Is(err, c.want) || (f == nil) != (c.want != nil) {
					t.Fatalf("%v, %v; want %v", f, err, c.want)
				}
				if f == nil {
					return
				}
				if info.Size() != 4 {
					t.Errorf("%d bytes", info.Size())
				}
				if err := f.Close(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}
