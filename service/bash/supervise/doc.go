// Package supervise is the process that stands between dsh and one command, so
// that nothing of the command outlives it. It exists on Linux only.
//
// The supervisor is dsh's own program, started with [Command] as first argument,
// then the shell and its arguments; with the environment, the working directory,
// and the standard streams of the command; and with a socket as descriptor 3,
// whose other end only dsh holds. It is started as the leader of a session, without
// a terminal, and starts the shell in a process group of its own there. It lets go
// of the streams, and adopts every descendant that loses its parent, also
// one that left the session (PR_SET_CHILD_SUBREAPER). Whether anything is left is
// what wait4 says, so nothing is missed.
//
// # Protocol
//
// It writes lines: "starting" before it starts the shell, which may stop or kill it
// from there on; "begun" when the shell runs, or "error TEXT" if it cannot be
// started; "exit N" or "signal N" when the shell has ended; "left N" if it gives
// up on N processes that SIGKILL does not end. Then it exits, and the socket ends.
// It reads [Stop] and [Hurry], which are to end the command. The end of the socket means that
// dsh is gone; so does the death of its parent, of which the kernel tells by SIGHUP.
//
// # The end
//
// When the shell ends, what is left has limits.BashLinger to end too. Then, or when it
// is told to stop, every process group among the descendants gets SIGTERM, and
// after limits.BashKillAfter (after Hurry, if dsh is gone, or if the shell has ended:
// BashLost; if they multiply: at once) all of them are stopped, so that none of them forks, and
// killed, again and again until there are none. It gives up when none has died for
// limits.BashGiveUp, and at last after BashGiveUpAll.
//
// # Its start
//
// The package's init recognizes a supervisor and never returns in one. So every
// program that links the package is its own supervisor: also a test binary, which
// would otherwise run its tests instead, again and again. It imports the standard
// library only, so that its init comes before that of most of the program, which
// saves a millisecond and some memory. It starts two goroutines, which end with the
// process.
package supervise

// Command is the first argument of a supervisor.
const Command = "__supervise"

// ControlFD is the descriptor of the socket.
const ControlFD = 3

// What dsh writes to end the command; Hurry also when it has written Stop.
const (
	Stop  = 'T' // whoever waits for it lets it tidy up
	Hurry = 'H' // nobody waits any more
)
