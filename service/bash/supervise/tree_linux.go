package supervise

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// proc is a process as /proc tells of it.
type proc struct {
	pid, parent, group int
	zombie             bool
}

// descendants gives the living processes below the supervisor. One that changes
// its parent while this looks may be missed; who needs all looks again.
func (s *supervisor) descendants() []proc {
	children := map[int][]proc{}
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1) // what was read before an error is of use
	_ = dir.Close()
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		if p, ok := look(name); ok {
			children[p.parent] = append(children[p.parent], p)
		}
	}
	var all []proc
	for next := []int{os.Getpid()}; len(next) > 0; next = next[1:] {
		for _, p := range children[next[0]] {
			if !p.zombie {
				all = append(all, p)
				next = append(next, p.pid)
			}
		}
		delete(children, next[0])
	}
	return all
}

// look reads /proc/PID/stat: pid (name) state parent group …
func look(name string) (p proc, ok bool) {
	text, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return p, false
	}
	end := bytes.LastIndexByte(text, ')') // the name may hold anything
	if end < 0 {
		return p, false
	}
	f := bytes.Fields(text[end+1:])
	if len(f) < 3 {
		return p, false
	}
	p.zombie = f[0][0] == 'Z' || f[0][0] == 'X'
	if p.pid, err = strconv.Atoi(name); err != nil {
		return p, false
	}
	if p.parent, err = strconv.Atoi(string(f[1])); err != nil {
		return p, false
	}
	p.group, err = strconv.Atoi(string(f[2]))
	return p, err == nil
}

// signalGroups signals every process group among the descendants. All of them
// belong to sessions that descendants opened, so they hold nobody else.
func (s *supervisor) signalGroups(sig syscall.Signal) {
	sent := map[int]bool{syscall.Getpgrp(): true}
	if !s.ended { // without /proc, too
		sent[s.shell] = true
		_ = syscall.Kill(-s.shell, sig)
	}
	for _, p := range s.descendants() {
		if !sent[p.group] {
			sent[p.group] = true
			_ = syscall.Kill(-p.group, sig) // gone meanwhile, or another user's
		}
	}
}
