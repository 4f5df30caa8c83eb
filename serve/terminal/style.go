package terminal

import (
	"os"

	"golang.org/x/term"
)

// ANSI styles. They are written only where Options.Color is.
const (
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
	reset  = "\x1b[0m"
)

// The columns that a line has where the terminal does not say, and at least.
const (
	defaultWidth = 80
	minWidth     = 40
)

// descriptor is a stream of the system.
type descriptor interface{ Fd() uintptr }

// Is reports whether a stream is a terminal.
func Is(stream any) bool {
	d, ok := stream.(descriptor)
	return ok && term.IsTerminal(int(d.Fd()))
}

// Width is how many columns a stream has; 80 where it does not say.
func Width(stream any) int {
	d, ok := stream.(descriptor)
	if !ok {
		return defaultWidth
	}
	columns, _, err := term.GetSize(int(d.Fd()))
	if err != nil || columns <= 0 {
		return defaultWidth
	}
	return max(columns, minWidth)
}

// Color reports whether a stream should get colour: it is a terminal, and the
// person has not set NO_COLOR or a dumb terminal.
func Color(stream any) bool {
	return Is(stream) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
