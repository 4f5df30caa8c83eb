package relay

import (
	"encoding/binary"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sys is what the kernel keeps.
type sys struct {
	pipe    int // whose reading this is about
	sleeper int // what the standby sleeps in
	waiter  int // what the reader waits in
	ended   int // readable from Close on
	woken   int // readable after Wake
}

// New returns a Relay for a pipe that is read with blocking calls; nil where there
// can be none.
func New(f *os.File) *Relay {
	r := &Relay{sys: sys{pipe: int(f.Fd()), sleeper: -1, waiter: -1, ended: -1, woken: -1}}
	if err := r.open(); err != nil {
		r.free()
		return nil
	}
	return r
}

func (s *sys) open() (err error) {
	for _, fd := range []*int{&s.sleeper, &s.waiter} {
		if *fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
			return err
		}
	}
	for _, fd := range []*int{&s.ended, &s.woken} {
		if *fd, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
			return err
		}
	}
	for _, add := range []struct {
		epoll, fd int
		events    uint32
	}{
		{s.sleeper, s.pipe, unix.EPOLLONESHOT}, {s.sleeper, s.ended, unix.EPOLLIN},
		{s.waiter, s.pipe, unix.EPOLLIN}, {s.waiter, s.woken, unix.EPOLLIN},
	} {
		if err := unix.EpollCtl(add.epoll, unix.EPOLL_CTL_ADD, add.fd, &unix.EpollEvent{Events: add.events, Fd: int32(add.fd)}); err != nil {
			return err
		}
	}
	return nil
}

func (s *sys) free() {
	for _, fd := range []int{s.sleeper, s.waiter, s.ended, s.woken} {
		if fd >= 0 {
			_ = unix.Close(fd)
		}
	}
}

// arm lets the standby wake, once, when something can be read, or keeps it asleep.
func (s *sys) arm(on bool) error {
	e := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: int32(s.pipe)}
	if on {
		e.Events |= unix.EPOLLIN
	}
	return unix.EpollCtl(s.sleeper, unix.EPOLL_CTL_MOD, s.pipe, &e)
}

// sleep returns when the armed pipe can be read, or at the end; false: it cannot.
func (s *sys) sleep() bool { return s.poll(s.sleeper, -1) >= 0 }

func (s *sys) wait(limit time.Duration) bool {
	// In whole milliseconds, and not shorter than asked.
	fd := s.poll(s.waiter, int((limit+time.Millisecond-1)/time.Millisecond))
	if fd == s.woken {
		var count [8]byte
		_, _ = unix.Read(s.woken, count[:])
	}
	return fd == s.pipe
}

// poll returns the descriptor that is ready, -1 for none. It calls the kernel
// directly: package unix has only the call that some filters do not let through.
func (s *sys) poll(epoll, ms int) int {
	var e unix.EpollEvent
	for {
		n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epoll), uintptr(unsafe.Pointer(&e)), 1, uintptr(ms), 0, 0)
		switch {
		case errno == unix.EINTR:
			if ms > 0 {
				return -1 // the caller looks at its clock
			}
		case errno != 0 || n == 0:
			return -1
		default:
			return int(e.Fd)
		}
	}
}

func (s *sys) wake() { signal(s.woken) }
func (s *sys) end()  { signal(s.ended) }

func signal(fd int) {
	var one [8]byte
	binary.NativeEndian.PutUint64(one[:], 1)
	_, _ = unix.Write(fd, one[:])
}
