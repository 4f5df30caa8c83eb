// Package sandbox is the boundary around model-written code: it runs each mount,
// and each plugin file, in a virtual machine of its own inside a worker process, bounds every entry
// into it, and tells apart what the code threw from what the boundary did.
//
// It knows nothing of fibers, tools or services. What a mount asks for arrives
// at its [Host], which decides; what the harness wants of a mount goes through
// [VM.Invoke] and its relatives.
//
// # Bounds
//
// Each entry has a time inside the engine (vmTimeout) and a time for the whole
// (callTimeout, or the [Call]'s own limit up to maxCallTimeout). An entry that is
// past the first is interrupted by the worker; one that is past the second is
// cancelled and abandoned: its caller gets the error at once, and what still
// runs is counted against [limits.AbandonedCalls]. What the engine cannot
// interrupt ends with the worker: a report that an entry is stuck, or silence
// on a ping, kills the process. Its VMs die; their hosts are told with
// [Host.Died] and who was to blame: only what a crash itself says, and how much
// memory each mount held, counts for that; a worker that was ended from outside
// ended for nobody's fault.
//
// While a call waits for something that has a limit of its own, its time for the
// whole can stand still: see [VM.Hold].
//
// # Ownership and concurrency
//
// A [Sandbox] owns at most one worker at a time, started by the first Load and
// again by the first Load after a death. A worker owns three goroutines: one
// that started the process and waits for its end, one that reads frames, one
// that drains its standard error; all end with the process. All methods are safe
// for concurrent use. Methods of a Host are called on goroutines of their own,
// except Send and Console, which the reader calls and which must not block.
// No lock is held while a Host's method runs.
//
// # Trust
//
// The host trusts nothing that comes out of a worker: a frame for an unknown
// mount, call or run is dropped or refused, sizes are bounded by package wire,
// and a frame that the protocol does not know ends the worker.
package sandbox
