// Package files makes plugin files ordinary plugins: JavaScript or TypeScript on
// disk, one file or a folder, that runs as temporary plugins do, in a worker
// process of its own, behind the same façade and within the same limits.
//
// [Read] reads a file or a folder; nothing is read again later. A [Host] owns one
// worker. [Host.Open] runs the module in a machine of its own, reads what it exports
// (name, inject, Config, apply) and gives a plugin that may be mounted once: one
// generation of the file. New code, and another configuration, is another one.
//
// # Life
//
// The machine of a plugin ends with the fiber that it was mounted as, before
// Fiber.Dispose returns, or by [Host.Discard] if it was never mounted. A machine that
// died is loaded again from the text that was opened, with empty state. A file that
// has brought down its machine, or the worker, limits.FileDeaths times is skipped: its
// fiber fails, and Open refuses it, until its content is another.
//
// A plugin file may take over the names of temporary plugins: give [Host.MayTake] to
// the stage on which it is mounted, and what the stage claimed to [Retired] after the
// commit.
//
// # Concurrency
//
// All methods are safe for concurrent use. The goroutines of a Host end with the
// context that it was made for.
package files
