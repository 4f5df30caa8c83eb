//go:build unix

package bash_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// fifo tells who is alive: a process that has opened it for writing, and all
// that it starts, hold it open.
type fifo struct {
	path string
	fd   int
}

func newFifo(t testing.TB) *fifo {
	t.Helper()
	f := &fifo{path: filepath.Join(t.TempDir(), "fifo")}
	err := unix.Mkfifo(f.path, 0o600)
	if err == nil {
		f.fd, err = unix.Open(f.path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(f.fd) })
	return f
}

// closed demands that nobody holds it open.
func (f *fifo) closed(t testing.TB) {
	t.Helper()
	for buf := make([]byte, 4096); ; {
		n, err := unix.Read(f.fd, buf)
		if n == 0 && err == nil {
			return
		}
		if err != nil {
			t.Errorf("somebody is alive: %v", err)
			return
		}
	}
}

// send gives a line to whoever reads from it, now or later: "read x <> FIFO".
func (f *fifo) send(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(f.path, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
}

// await waits until somebody writes.
func (f *fifo) await(t testing.TB) { f.poll(t, unix.POLLIN) }

// gone waits until nobody holds it open.
func (f *fifo) gone(t testing.TB) {
	f.poll(t, unix.POLLHUP)
	f.closed(t)
}

func (f *fifo) poll(t testing.TB, event int16) {
	t.Helper()
	for {
		fds := []unix.PollFd{{Fd: int32(f.fd), Events: event & unix.POLLIN}}
		n, err := unix.Poll(fds, 30_000)
		switch {
		case err == unix.EINTR:
		case err != nil || n == 0:
			t.Errorf("nothing happened in 30 s: %v", err)
			return
		case fds[0].Revents&event != 0:
			return
		}
	}
}
