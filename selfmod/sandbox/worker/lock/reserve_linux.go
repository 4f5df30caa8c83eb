package lock

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// reserve is address space that nothing is in.
var reserve struct {
	sync.Mutex
	space []byte // nil: given up
	want  bool   // the process has a limit
}

const reserveSize = 32 << 20

// Keep takes the reserve again, if the process has a limit and room for it.
func Keep() {
	reserve.Lock()
	defer reserve.Unlock()
	if !reserve.want || reserve.space != nil {
		return
	}
	space, err := unix.Mmap(-1, 0, reserveSize, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err == nil { // else later
		reserve.space = space
	}
}

// GiveUp leaves the reserve to whoever needs memory now.
func GiveUp() {
	reserve.Lock()
	defer reserve.Unlock()
	if reserve.space != nil {
		_ = unix.Munmap(reserve.space)
		reserve.space = nil
	}
}

// Used is the processor time that the process has had, 0 where that is not known.
func Used() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
