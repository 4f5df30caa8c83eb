// Package composition makes a running dsh of its documents: it reads the layers,
// checks and composes them, mounts their rows, and follows their edits.
//
// # Layers
//
// In this order, later ones override: the built-in composition of the command, the
// person's own cordis.yml in $DSH_HOME, the project's, the files of --config, the
// values of --set, the other flags. With Options.Safe only the built-in one and the
// flags count. A document that the person named and that has faults refuses the
// start, with all of its faults; of one of a project what is faulty is reported and left
// out, unless guards may be among it: then the project is refused.
//
// # Planes and places
//
// Rows of the host plane are mounted once, on the root context. Rows of the agent
// plane are mounted for each agent, on its context, where [Place.Plugin] stands among
// the agent's plugins. A [Place] is a folder that a session works in. Its project is
// the nearest folder at or above it with a .dsh folder that is not dsh's own home.
// A project is mounted once, whoever asks first, under a scope of its own with a realm
// of its own for its services; agents that work in it have that scope as their parent.
// A project's rows may add plugin files and what belongs to agents; they change
// nothing of the host.
//
// # Trust
//
// Nothing of a project is loaded before a person trusts it, and what is loaded are
// the bytes that were checked. Who can be asked is asked with the diff; else the
// project is left out, with a notice and the command that trusts it.
//
// # Reload
//
// An edit of a document or of a plugin file, [Composition.Reload], and what was
// trusted since make one transaction over all trees: everything that changed is
// mounted beside what is there, and either all of it takes over or nothing does. What
// was refused is told to the person, in the log and by inspect; what is there goes on.
// Reloads never overlap, and an edit during one is followed by another.
//
// # Boot
//
// A row that cannot be mounted is reported and left out; the rest serves.
//
// # Concurrency
//
// A Composition may be used from everywhere. One transaction runs at a time; who
// waits for it waits until ctx ends. The goroutine that follows the files is the
// Composition's, and has ended when Close returns.
package composition
