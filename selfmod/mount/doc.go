// Package mount makes a model-written plugin an ordinary fiber: it answers what
// the plugin's façade asks for with effects of that fiber, and enters the
// plugin's functions when the runtime calls them.
//
// A [Set] holds the temporary plugins of one session. Each is a [Mount] with an
// id, dyn-1, dyn-2, …, that is never used again, a virtual machine in package
// sandbox, and a fiber under the group's context. One execution of the plugin's
// apply is a run; everything that the façade registers belongs to the run in
// which it was registered and ends with it, strictly in reverse.
//
// # What survives what
//
// A mount that waits for a service keeps its machine and its state outside of
// apply; when the service comes, apply runs again with a fresh façade. A mount
// whose machine died, with its worker or because it was spent, is loaded again
// from its source with empty state, unless it was to blame or deaths come too
// often; then its fiber fails with the reason.
//
// # Services of the host
//
// A service that has an interface for plugins (package service) is bound once for
// each run, with the run's context, so that what it starts for the plugin are
// effects of the mount. Every request is checked: the plugin declares the service,
// the member is one of its interface, an object is one that this run was given.
// Objects, iterations and functions that were given belong to the run and end with
// it; so do calls under way, which are cancelled and waited for, a second at most.
// A call is cancelled, too, by its signal, and with the call that it is made for,
// but not when that has its answer.
//
// # Policy
//
// A mounted listener of an event whose answer is a decision (tools/pre-execute,
// fs/write-intent, …) is a guard. It can only tighten, and it fails closed: while it
// throws, hangs, answers nonsense, or its mount is down, it denies by name. It is
// not asked about what it does itself, nor about what others do for it: that counts
// as next(). Listeners of emit and parallel events run from the mount's own queue,
// in order, and never delay or fail the emitter; they do not hear what they cause.
// A listener of any other waterfall, such as prompt/assemble, is passed over where
// it fails, takes longer than limits.ListenerAnswer, or answers what the event does
// not take; its mount is told once. What wraps a tool's call may fail that call.
//
// # Concurrency
//
// All methods are safe for concurrent use. A Set owns the goroutines that drain
// event queues and that load mounts again; they end with their mounts.
package mount
