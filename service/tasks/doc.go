// Package tasks keeps the background tasks of each scope: what a tool has
// started and does not wait for.
//
// Go code starts a task with [Tasks.Start]; whoever is in the same scope lists
// it, reads what it wrote, waits for it, and kills it. Ids are t1, t2, … in each
// scope, and are never used again in it.
//
// # What ends with what
//
// A task belongs to the fiber of the context that it was started on, and is of
// the scope that this context carries. When the fiber begins to unload, all its
// tasks are told to end, at once; the unload waits until they have, and takes
// their records with it. A task that does not end within [limits.TaskEnd] is left,
// and the unload says so. When the service unloads, the same happens to all
// tasks.
//
// # Output
//
// What a task writes is kept until it is read, at most [limits.TaskOutput] bytes;
// beyond, the oldest bytes go and the next reader is told. Each reader (the
// program itself, and each plugin) has a place of its own in the output, so that
// none takes anything from another. One answer has at most [limits.TaskRead] bytes,
// cut between characters, and says how much is left.
//
// # Bounds
//
// At most [limits.TasksRunning] tasks run in a scope, and [limits.TasksAll] in
// all. The last [limits.TasksKept] that ended are remembered, with their output.
//
// # Concurrency
//
// Everything is safe for concurrent use. Each running task has one goroutine,
// which waits for its end and then calls Task.Ended. No lock is held while a
// function of a task runs.
//
// # Errors
//
// All errors of ids and bounds are *[service.Error] with one of the codes Code…;
// what Begin returns is passed on.
package tasks
