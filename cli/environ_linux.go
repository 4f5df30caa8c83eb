package cli

import "golang.org/x/sys/unix"

// hideEnviron keeps other processes of the same user, such as a command that a model
// runs, from reading the environment and the memory of this one, where keys are:
// through /proc or as a debugger. It does not stop root. A program that this one
// starts, itself too, is not bound by it.
func hideEnviron() {
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) // what fails there has no other way
}
