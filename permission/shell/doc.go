// Package shell says what a command line does, as far as its text tells: the
// commands that it runs, also those that other commands run for it, and the files
// that it opens by redirection.
//
// [Parse] never fails: what it does not understand is a reason in [Line.Unknown],
// and then the list of commands may not be all of them. [Line.ReadOnly] is the
// conservative list of what only reads. It says yes only to what it knows.
package shell
