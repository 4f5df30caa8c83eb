// Package worker is the process in which model-written code runs: one
// JavaScript virtual machine for each mount, each entry into one bounded, and
// nothing else. The host starts it as "dsh __worker" and speaks package wire
// with it over standard input and output. The worker knows nothing of fibers,
// tools or services: it schedules VMs, bounds them, and carries texts between
// the prelude in each VM and the host.
//
// # What is promised
//
//   - Ready is the first frame, sent once the lock is on; see package lock.
//   - Each Load, Apply, Invoke and Unload is answered by exactly one Result,
//     unless the worker ends first.
//   - Frames for one mount take effect in the order they came. Mounts are
//     independent of each other and run in parallel.
//   - A frame that the protocol does not allow ends the worker with one line on
//     standard error. An answer that comes too late (Settle, Reply, Cancel,
//     Bind or Retire for what has gone) is dropped.
//   - The end of standard input, or Quit, ends the worker whatever runs.
//
// # Bounds of an entry
//
// An entry is one way into a VM: a body, an apply, a registered function, the
// settling of a promise, a call by another mount. It has the mount's limit for
// its time inside the engine, the promise jobs that run after it included. The
// clock stands still while the VM waits for the host or is inside another
// mount, which has a clock of its own; an entry that nests in the same VM runs on
// what is left of the outer one's. Past the limit the entry is interrupted; what
// the engine cannot interrupt is reported as Stuck after a grace, and the host
// ends the process.
//
// A VM is spent after a failed allocation, after a panic of the engine, and
// after limits.Interrupts interrupted entries in a row. Its calls fail, it is
// closed, and the frame that says so has FlagSpent.
//
// # Threads, chains and who waits
//
// A thread is one synchronous run of JavaScript: an executor goroutine with the
// entries that nest on it. A VM is owned by one thread at a time, and a thread
// may own several, each called from the one before. Whoever wants a VM that
// another thread owns waits in the VM's queue, first come first served; a
// thread whose wait would close a circle gets DEADLOCK instead. A thread that
// waits serves what belongs to its own chain: an Invoke or a call by another
// mount for a VM that it owns runs nested, on the waiting goroutine.
//
// # Goroutines and locks
//
// Who has read a frame serves the VM that it is for on its own goroutine, where a
// second goroutine stands by to read what comes meanwhile; see package relay. A
// thread on such a goroutine reads itself while it waits for the host. Where there
// is no standby (it reads, or the system has none), executors run the JavaScript;
// they are reused, and end with Serve. Either way frames are read while JavaScript
// runs: none waits for a plugin. One goroutine keeps spare VMs ready and
// closes those that are of no more use, when nothing has run for a while. All scheduling state is guarded by
// worker.mu, which is never held while JavaScript runs or a frame is written.
// What belongs to a mount alone (its VM, clock, console, peers) is touched only
// by the thread that owns it.
//
// # Attribution
//
// What happens during an entry counts for the call whose entry it is. A settled
// promise is an entry of the call that asked, as far as that is known: after an
// await the prelude cannot tell which call runs, and what is asked for then
// counts for the call of the entry at hand.
package worker
