package cli

import "syscall"

// hideEnviron keeps other processes of the same user, such as a command that a model
// runs, from reading the environment and the memory of this one, where keys are:
// through /proc or as a debugger. It does not stop root. A program that this one
// starts, itself too, is not bound by it.
func hideEnviron() {
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0) // there is no other way if it fails
}
