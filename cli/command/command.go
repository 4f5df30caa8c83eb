// Package command holds what the commands of dsh have in common: their streams,
// the errors that become exit statuses, the flags of everything that mounts, and
// how a list of plugins becomes a running runtime. The commands themselves are
// in package cli and below it.
//
// Errors: a command returns a UsageError for a request that makes no sense, a
// StatusError where its status says more than that it failed, and any other
// error for a failure. Nothing here writes to standard output by itself.
package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dsh-go/dsh/internal/plain"
)

// The exit statuses that every command has.
const (
	OK      = 0
	Failure = 1
	Usage   = 2
)

// Program is the executable of workers and supervisors; empty means this program.
// Tests name another one, since a test binary is a poor worker.
var Program string

// Streams are what a command reads and writes.
type Streams struct {
	In       io.ReadCloser
	Out, Err io.WriteCloser
}

// UsageError is a request for something that does not exist.
type UsageError struct{ error }

// Usagef returns a UsageError with a text as of fmt.Errorf.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// AsUsage marks an error as one of usage.
func AsUsage(err error) error { return UsageError{err} }

func (e UsageError) Unwrap() error { return e.error }

// StatusError ends the program with a status of its own.
type StatusError struct {
	Status int
	Err    error
	Told   bool // the person has been told already
}

// Told reports whether an error was told to the person by whoever returned it.
func Told(err error) bool {
	status := new(StatusError)
	return errors.As(err, &status) && status.Told
}

func (e *StatusError) Error() string { return e.Err.Error() }

func (e *StatusError) Unwrap() error { return e.Err }

// Status is the exit status for what a command returned.
func Status(err error) int {
	var usage UsageError
	status := new(StatusError)
	switch {
	case err == nil:
		return OK
	case errors.As(err, &status):
		return status.Status
	case errors.As(err, &usage):
		return Usage
	}
	return Failure
}

// Unknown says that there is no such command below cmd, and what there is.
func Unknown(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("there is no command %q", name)
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return Usagef("%s; did you mean %q?", text, near[0])
	}
	var names string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names += " " + c.Name()
		}
	}
	return Usagef("%s; the commands are:%s", text, names)
}

// NoArgs refuses arguments beside flags.
func NoArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("takes no arguments, got %q", args[0])
	}
	return nil
}

// PrintText prints foreign text and a line end.
func PrintText(out io.Writer, text string) error {
	if _, err := io.WriteString(out, strings.TrimRight(plain.Terminal(text), "\n")+"\n"); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// PrintJSON prints a value on one line.
func PrintJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
