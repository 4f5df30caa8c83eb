// Package trust keeps which files of a project a person has trusted, by their
// content. What a project's .dsh folder and its agent.cordis.yml say is run with the
// rights of dsh, so nothing of it is loaded before somebody who knows what it is has
// said so, and what changed since is asked about again.
//
// # What is trusted
//
// The very bytes: a file is trusted when a person trusted a file of that project, of
// that name, with that SHA-256. Files are handed over as bytes ([File]) that were
// read once ([Read]), so what was shown is what is trusted, and what was checked is
// what is loaded: whoever loads a file loads the bytes of the File that was checked,
// and never reads it again.
//
// Only the content that was trusted last counts: a file that goes back to what was
// trusted before is asked about again. A project is known by the path of its folder,
// with links resolved; moved, it is another one.
//
// # The store
//
// $DSH_HOME/trust (0700): a record for each project, and the contents that were
// trusted, for diffs alone. Contents are bounded in number and size, the oldest go,
// and a change whose old content has gone says so and shows the new one whole. Of
// projects, too, the one that was trusted longest ago goes when there are more than
// limits.TrustProjects: it is asked about again.
//
// Every record is replaced in one step (package atomicfile): a process that is killed
// at any point leaves the old or the new. A record that cannot be read is reported
// ([ErrDamaged]) and trusts nothing; to trust the project again replaces it.
//
// # Concurrency
//
// A Store may be used from everywhere, and by several processes at once: those that
// write exclude each other with a lock on a file, for which they wait at most
// limits.TrustLock, or until ctx ends. Who only checks takes no lock: a record is
// always whole. No goroutine is started.
package trust
