// Package bash runs shell commands for plugins and for Go code.
//
// A command ends with exactly one [RunResult]: its exit status or its signal, whether it
// ran out of time or was aborted, and the ends of its two streams. That a command
// fails is a result; an error means that it could not be run, and has a code:
//
//   - BASH_BAD_REQUEST: an argument is not usable; the message says which and why.
//   - BASH_BAD_WORKDIR: the working directory is not a directory that can be entered.
//   - BASH_DENIED: policy (bash/run-intent) refused the command.
//   - BASH_TOO_MANY: the plugin, or the program, runs as many commands as it may.
//   - BASH_NO_SHELL: there is neither bash nor sh.
//   - BASH_FAILED: the machine could not start the command, or lost track of it.
//
// # What ends with what
//
// A command belongs to the context that it is run for: when that ends, the command
// is stopped and waited for; it is stopped already when anything that the context
// was mounted on begins to end. When the shell has ended, for whatever reason, what
// it left running in the background has [limits.BashLinger] to end by itself, and
// is then ended too. On Linux each command runs under a supervisor, a process of
// this program (package supervise) that adopts every descendant, also one that left the
// process group or the session, and ends all of them with the shell, when it is
// told to, and when this program is gone, however it went. Elsewhere it is the
// shell's process group that is ended: what leaves it, lives on. A command that
// kills its own supervisor ends with its session, but for what left that.
//
// To stop is SIGTERM to all of them, and SIGKILL after [limits.BashKillAfter], or at
// once if they multiply; where nobody waits for the command any more, because the
// context that it ran for ends, after [limits.BashLost]. What SIGKILL does not end within [limits.BashGiveUp] (or
// what is born as fast as it is killed, within [limits.BashGiveUpAll]) is left, and
// logged. The end of a command, and so that of its plugin, takes no longer than that.
//
// # What a command gets
//
// The environment of this program without credentials (env.go lists them) and DSH_*,
// with NO_COLOR=1, TERM=dumb, PAGER=cat and GIT_PAGER=cat, and what the request
// sets. No terminal. An empty standard input, or the request's. It is not confined:
// it may do what this program may.
//
// # Output
//
// Of each stream the end is kept as text. A stream that is longer is written to a
// file too, from its beginning, in a folder that only this user can enter. The
// file lives until the plugin ends, or until [limits.BashSpillFiles] newer ones of
// it exist. A program that is killed leaves the folder behind (dsh-bash-* in the
// system's folder for temporary files).
//
// Everything is safe for concurrent use. Each running command has up to five
// goroutines; they end with it.
package bash
