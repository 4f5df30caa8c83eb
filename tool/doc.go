// Package tool holds the tools of a runtime and runs them: the registry with
// its scope layers, the pipeline of a call with its events, and the cards by
// which people see calls.
//
// A plugin registers a [Definition] through [Registry.Register]; the tool is
// there as long as the plugin's effect stands. Whoever wants it run hands a
// [Call] to [Registry.Execute] and gets one [Result]; faults are results too,
// with content "Error: <message>". Others see a [View], which cannot be run.
//
// # Layers
//
// A context registers into the scope that it carries ([WithScope]), else into
// the global layer. A scope sees the tools of its whole chain, the nearest
// first; of the global ones those that every [Registry.Restrict] on the chain
// admits. Temporary plugins ([WithMount]) never take a name that is visible
// where they register. Layers come with the first registration and go with the
// last.
//
// [Registry.List] has a fixed order: the composition by name, then mounts by
// number, each with its tools in the order of their first registration. A
// plugin that parks or restarts finds its tools in their old places.
//
// # The stages of a call
//
//  1. The arguments are copied as lossless JSON (limits.Arguments,
//     limits.Depth), then the call's cancellation, its name, its nesting and its
//     arguments are checked, in this order; defaults are filled in.
//  2. tools/pre-execute, then the guards, then the policy; a decision to ask
//     goes to the service "approval", once. What was denied stays denied.
//  3. tools/execute around the body; in it: the owner is entered, Execute runs,
//     its value is validated, Render and Meta make content and meta of it.
//  4. tools/post-execute, of denials and failures too.
//  5. FinalizeContent, then tools/result.
//
// An error that a listener returns in 2, 3 or 4 is the result; the rest of
// these stages is skipped, 5 is not. So policy decides only about calls that
// could run, on the very arguments that the body gets:
//
//	a call …                              pre-execute  execute  post-execute  result
//	with arguments that are not valid     -            -        -             sees it
//	of a tool that is unknown or has gone -            -        -             sees it
//	cancelled before it began             -            -        -             sees it
//	denied by a listener or an approval   sees it      -        sees it       sees it
//	denied by a guard or the policy       sees it      -        sees it       sees it
//	whose listener returned an error      sees it      maybe    -             sees it
//	whose body failed or was cancelled    sees it      sees it  sees it       sees it
//	that succeeded                        sees it      sees it  sees it       sees it
//	running when the listener came        -            -        sees it       sees it
//	of an Unrouted tool, by a mount       -            -        -             sees it
//	of a Sealed tool, by a mount          sees it      -        -             sees it
//
// A listener hears the calls of its context's scope and of the scopes above
// it; one without a scope hears all. Listeners of mounts are those whose
// context carries a mount; they must not be registered as global listeners of
// cordis, which no filter reaches.
//
// # Time and cancellation
//
// The context of Execute cancels a call. A body that has started is always
// awaited. Cancelled before the body: code [CodeAbortedBeforeDispatch]. Later:
// a success is replaced by [CodeAborted], a failure keeps its own error unless
// it is the context's. When the limit (Definition.Timeout or Call.Timeout, the
// smaller) passes, the result is [CodeTimeout], whatever the body made of it.
//
// A running body is a tracked call of its owner's fiber: an unmount waits for
// it, and refuses new ones. A call of a tool that has gone says with whom it
// went, for the last limits.RememberedGone tools.
//
// # Concurrency and ownership
//
// Everything may be called from everywhere, from tools and listeners too. The
// package starts no goroutine: a call runs on its caller's. Lookups and dispatch
// wait for nobody; a list is a snapshot, made by the first who asks after a
// change. Writers take Registry.mu, and within it the locks of the remembered
// tools and of a mount's places; no lock is held while a function of a tool, a
// listener, a guard or a disposer runs. Panics in them are their errors.
package tool
