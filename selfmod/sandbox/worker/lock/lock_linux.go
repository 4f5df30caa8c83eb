package lock

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

func apply(memoryMB int) wire.Lock {
	reserve.want = true
	Keep() // beside what the mounts get
	// The size is read from a file, so memory comes first.
	return wire.Lock{Memory: limitMemory(memoryMB), Landlock: restrictFiles(), Seccomp: restrictCalls()}
}

// limitMemory sets RLIMIT_AS relative to the size now: a Go process has over a
// gigabyte of address space at start.
func limitMemory(memoryMB int) string {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return "off: " + err.Error()
	}
	pages, _, _ := strings.Cut(string(text), " ")
	n, err := strconv.ParseUint(pages, 10, 64)
	if err != nil {
		return "off: /proc/self/statm has no size"
	}
	limit := n*uint64(os.Getpagesize()) + uint64(memoryMB)<<20
	if err := unix.Setrlimit(unix.RLIMIT_AS, &unix.Rlimit{Cur: limit, Max: limit}); err != nil {
		return "off: " + err.Error()
	}
	// No core file, which would hold what the mounts hold.
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	return fmt.Sprintf("+%d MiB", memoryMB)
}

// restrictFiles denies every path and TCP. It sets no_new_privs, too.
func restrictFiles() string {
	abi := landlockABI()
	if abi < 1 {
		return "off: the kernel has no Landlock"
	}
	err := landlock.V5.BestEffort().RestrictPaths()
	if abi >= 4 { // TCP is known from here on
		err = errors.Join(err, landlock.V5.BestEffort().RestrictNet())
	}
	if err != nil {
		return "off: " + err.Error()
	}
	return fmt.Sprintf("ABI %d", abi)
}

// landlockABI asks the kernel for its version; 0: none.
func landlockABI() int {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(n)
}
