// Package lock takes away from a worker process what it does not need: on Linux
// files, the network, other processes and memory without end, for good and for
// every thread. On other systems it takes nothing and says so.
//
// Apply is called once, at the start of the process, before untrusted code is
// there and while few threads are. A step that fails is reported, not fatal: the
// VM's own bounds stand, and what the lock adds is defence in depth.
//
// A Go program that finds no memory for itself dies. So part of the memory is a
// reserve: whoever sees an allocation fail for want of memory calls GiveUp, and
// Keep when something has been freed.
//
// What else only the system knows of the process is here too: Used.
package lock

import "github.com/dsh-go/dsh/selfmod/sandbox/wire"

// Apply locks the process down and returns what is locked, or why not. The
// process may grow by memoryMB MiB of address space.
func Apply(memoryMB int) wire.Lock { return apply(memoryMB) }
