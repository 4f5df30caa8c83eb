// Package loader mounts the rows of a composition as fibers, and follows its edits.
//
// A [Tree] holds the rows of one place: the host, a project, an agent. Each row that
// is not disabled is a fiber below the tree's context; a group is no fiber of its own,
// it lays its isolations, interceptions and injections on what is in it, so a row that
// is moved between groups which lay the same goes on as it is.
//
// # Transactions
//
// [Tree.Prepare] compares the rows with those that are there and starts what changed
// in a [cordis.Stage], beside what it is to replace; [Change.Commit] swaps all of it
// in one step, [Change.Abort] leaves everything as it was. [Tree.Apply] is both.
// Several trees make one transaction by [Change.Join]. A changed row whose plugin fails
// refuses the whole transaction; one that waits for a service is valid, but for a
// plugin file whose old version serves. Rows that did not change are not touched;
// plugins that depend on a changed one restart once.
//
// The first rows of a tree are a boot: what cannot be mounted is reported and left
// out, the rest serves. What is down is tried again by each transaction, and refuses
// none that leaves it as it was. A row of a Static plugin changes at the next start,
// which the report says.
//
// # What makes a row another one
//
// Its plugin, its config, the text of its file, its injections, and the isolations
// and interceptions that hold where it stands. Not its place, its id's order, or what
// guards it.
//
// # Guards
//
// A row with guards keeps tools from the tree's scope while its plugin is not active:
// they are withheld before it is mounted, come back after it is active, and go again
// when it leaves that state.
//
// # Concurrency
//
// All methods are safe for concurrent use. Transactions of a tree are made one after
// the other: Prepare waits for the one before. No lock is held while a plugin runs.
// The package starts no goroutine, and polls nothing: it follows the status events of the
// runtime.
package loader
