//go:build amd64 || arm64

package lock

import (
	"os"
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// allowed is what the Go runtime and the engine need once the process stands.
// Everything else is answered with EPERM.
var allowed = []string{
	// The two pipes.
	"read", "write", "writev", "close", "fcntl", "fstat",
	"epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "eventfd2",
	// Memory.
	"mmap", "munmap", "madvise", "mprotect", "mremap", "brk", "mincore", "membarrier",
	// Time and threads.
	"futex", "nanosleep", "clock_nanosleep", "clock_gettime", "gettimeofday",
	"sched_yield", "sched_getaffinity", "gettid", "getpid", "set_robust_list", "rseq", "restart_syscall",
	// Signals: preemption and faults.
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack",
	"getrandom", "getrusage", "exit", "exit_group",
}

// restrictCalls installs the filter on every thread.
func restrictCalls() string {
	filter, err := filter()
	if err == nil {
		err = seccomp.LoadFilter(filter)
	}
	if err != nil {
		return "off: " + err.Error()
	}
	return "on"
}

func filter() (seccomp.Filter, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return seccomp.Filter{}, err
	}
	names := slices.DeleteFunc(slices.Clone(allowed), func(name string) bool {
		_, known := info.SyscallNames[name]
		return !known
	})
	return seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls: []seccomp.SyscallGroup{
				{Action: seccomp.ActionAllow, Names: names},
				// ENOSYS lets glibc fall back to clone, whose flags a filter can see.
				{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
				{Action: seccomp.ActionAllow, NamesWithCondtions: []seccomp.NameWithConditions{
					// Threads, no processes.
					{Name: "clone", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD}}},
					// The runtime preempts its own threads with a signal.
					{Name: "tgkill", Conditions: seccomp.ArgumentConditions{{Argument: 0, Operation: seccomp.Equal, Value: uint64(os.Getpid())}}},
				}},
			},
		},
	}, nil
}
