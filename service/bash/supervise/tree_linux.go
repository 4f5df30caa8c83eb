package supervise

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"unsafe"
)

// proc is a process as /proc tells of it.
type proc struct {
	pid, parent, group, session int
}

// descendants gives the living processes below the supervisor. One that changes
// its parent while this looks may be missed; who needs all looks again.
//
// While a command forks without end there may be no room for one more thread, so
// it makes raw system calls: the runtime starts no thread in their place.
func descendants() []proc {
	children := map[int][]proc{}
	if !eachPid(func(pid int) {
		if p, ok := look(pid); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}) {
		return nil
	}
	var all []proc
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			all = append(all, p)
			next = append(next, p.pid)
		}
		delete(children, next[0])
	}
	return all
}

const atFdcwd = -100

// open opens a file for reading, and gives -1 if it cannot.
func open(path string, flags int) int {
	p, err := syscall.BytePtrFromString(path)
	if err != nil {
		return -1
	}
	cwd := atFdcwd
	fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(p)), uintptr(flags|syscall.O_CLOEXEC), 0, 0, 0)
	if e != 0 {
		return -1
	}
	return int(fd)
}

func shut(fd int) { _, _, _ = syscall.RawSyscall(syscall.SYS_CLOSE, uintptr(fd), 0, 0) }

// fill reads into buf by a system call that takes a descriptor, a buffer and its length.
func fill(call uintptr, fd int, buf []byte) int {
	n, _, e := syscall.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)))
	if e != 0 {
		return 0
	}
	return int(n)
}

// eachPid calls do for every process of the machine. False: there is no /proc.
func eachPid(do func(pid int)) bool {
	fd := open("/proc", syscall.O_RDONLY|syscall.O_DIRECTORY)
	if fd < 0 {
		return false
	}
	defer shut(fd)
	buf := make([]byte, 16<<10)
	var names []string
	for {
		n := fill(syscall.SYS_GETDENTS64, fd, buf)
		if n == 0 {
			return true
		}
		_, _, names = syscall.ParseDirent(buf[:n], -1, names[:0])
		for _, name := range names {
			if pid, err := strconv.Atoi(name); err == nil {
				do(pid)
			}
		}
	}
}

// stat reads /proc/PID/stat, without the name: state parent group session …
func stat(pid int) [][]byte {
	fd := open("/proc/"+strconv.Itoa(pid)+"/stat", syscall.O_RDONLY)
	if fd < 0 {
		return nil
	}
	defer shut(fd)
	var buf [512]byte
	text := buf[:fill(syscall.SYS_READ, fd, buf[:])]
	return bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name may hold anything
}

// Stopped tells whether a process is stopped by a signal.
func Stopped(pid int) bool {
	f := stat(pid)
	return len(f) > 0 && f[0][0] == 'T'
}

// look tells of a process that lives.
func look(pid int) (p proc, ok bool) {
	f := stat(pid)
	if len(f) < 4 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return p, false
	}
	p.pid = pid
	for i, into := range []*int{&p.parent, &p.group, &p.session} {
		n, err := strconv.Atoi(string(f[i+1]))
		if err != nil {
			return p, false
		}
		*into = n
	}
	return p, true
}

// signal signals a process, or a group by its negative number. One that has gone
// meanwhile, or belongs to another user, is none of ours.
func signal(pid int, sig syscall.Signal) {
	_, _, _ = syscall.RawSyscall(syscall.SYS_KILL, uintptr(pid), uintptr(sig), 0)
}

// signalGroups signals every process group among the descendants, and tells how
// many descendants there are. All groups belong to sessions that descendants
// opened, or to our own, so they hold nobody else.
func (s *supervisor) signalGroups(sig ...syscall.Signal) int {
	sent := map[int]bool{syscall.Getpgrp(): true}
	send := func(group int) {
		if sent[group] {
			return
		}
		sent[group] = true
		for _, sig := range sig {
			signal(-group, sig)
		}
	}
	if !s.ended { // without /proc, too
		send(s.shell)
	}
	all := descendants()
	for _, p := range all {
		send(p.group)
	}
	return len(all)
}

// killAll stops whatever it sees, until it sees nobody new, so that none of them
// forks any more, and then kills all of them.
func (s *supervisor) killAll() {
	// Group by group first: the kernel kills all of a group at once, forks included.
	s.signalGroups(syscall.SIGKILL)
	stopped := map[int]bool{}
	for range freezes {
		found := false
		for _, p := range descendants() {
			if !stopped[p.pid] {
				found, stopped[p.pid] = true, true
				signal(p.pid, syscall.SIGSTOP)
			}
		}
		if !found {
			break
		}
	}
	for pid := range stopped { // those that were reaped meanwhile: nobody has their numbers yet
		signal(pid, syscall.SIGKILL)
	}
}

// freezes bounds how often a strike looks for processes that still fork.
const freezes = 20

// EndSession kills the session of a supervisor that was killed itself, before its
// process id is waited for. What has opened another session is not found.
func EndSession(supervisor int) {
	for range freezes {
		found := false
		eachPid(func(pid int) {
			if p, ok := look(pid); ok && p.session == supervisor && pid != supervisor {
				found = true
				signal(pid, syscall.SIGKILL)
			}
		})
		if !found {
			return
		}
	}
}
