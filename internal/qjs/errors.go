package qjs

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrClosed is returned by every use of a VM after Close.
	ErrClosed = errors.New("the VM is closed")
	// ErrBroken is returned by every use of a VM after the engine panicked in
	// it. Only Close is left.
	ErrBroken = errors.New("the VM is broken by an earlier panic of the engine; close it")
	// ErrFreed is returned when a Value is used after Free.
	ErrFreed = errors.New("the value was freed")
	// ErrNoFunction is returned by Call when no script has called __hold.
	ErrNoFunction = errors.New("no function is held; a script hands one over with __hold(fn)")
)

// Kind says which bound or act ended an entry.
type Kind int

// The kinds of Error.
const (
	// KindThrown is an exception of the script, or of the engine on its behalf.
	KindThrown Kind = iota
	// KindSyntax is source that Compile refused.
	KindSyntax
	// KindInterrupted is the deadline or Interrupt. Scripts cannot forge or catch it away.
	KindInterrupted
	// KindOutOfMemory is the memory limit.
	KindOutOfMemory
	// KindStackOverflow is the stack limit, while running, parsing source or parsing JSON.
	KindStackOverflow
)

var kindNames = [...]string{"thrown", "syntax", "interrupted", "out of memory", "stack overflow"}

// String returns the kind in plain words.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", int(k))
	}
	return kindNames[k]
}

// Error is how an entry into the engine failed. Texts are cut at MaxText bytes.
type Error struct {
	Kind Kind
	// Name and Message are those of a thrown Error, as the script's getters
	// give them; for another thrown value Name is empty and Message its text.
	Name, Message string
	// Code is the error's "code" where that is a string.
	Code string
	// Stack is the engine's trace, one "    at f (file:line:column)" a line.
	Stack string
	// File, Line and Column say where: of the refused source, else of the first
	// frame of Stack that has a position. Both count from 1, Column in code
	// points. Zero when unknown.
	File         string
	Line, Column int
}

var _ error = (*Error)(nil)

// Error returns "Name: Message (file:line:column)" with what is known.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Name != "" && e.Message != "":
		b.WriteString(e.Name + ": " + e.Message)
	case e.Name != "" || e.Message != "":
		b.WriteString(e.Name + e.Message)
	default:
		b.WriteString(e.Kind.String())
	}
	if e.File != "" {
		fmt.Fprintf(&b, " (%s:%d:%d)", e.File, e.Line, e.Column)
	}
	return b.String()
}

// Panic is a Go panic that an entry contained.
type Panic struct {
	// Value is what was passed to panic, Stack the trace where it was recovered.
	Value any
	Stack []byte
	// Host is true when the host function panicked: the VM goes on. Otherwise
	// the engine did, and the VM is broken.
	Host bool
}

var _ error = (*Panic)(nil)

// Error names the culprit and the panic's value, without the trace.
func (p *Panic) Error() string {
	if p.Host {
		return fmt.Sprintf("host function panicked: %v", p.Value)
	}
	return fmt.Sprintf("JavaScript engine panicked: %v", p.Value)
}

// KindOf returns the Kind of the *Error in err's chain, and whether there is one.
func KindOf(err error) (Kind, bool) {
	var e *Error
	if !errors.As(err, &e) {
		return 0, false
	}
	return e.Kind, true
}

// position sets File, Line and Column from the first frame of Stack that has
// them: "    at f (mounts/demo.js:3:24)" or "    at mounts/demo.js:3:24". The
// text that JSON.parse was given, "<input>", is no file.
func (e *Error) position() {
	for line := range strings.Lines(e.Stack) {
		line = strings.TrimSuffix(strings.TrimRight(line, "\r\n"), ")")
		if i := strings.LastIndexByte(line, '('); i >= 0 {
			line = line[i+1:]
		} else {
			line = strings.TrimPrefix(strings.TrimSpace(line), "at ")
		}
		rest, column, ok := cutNumber(line)
		if !ok {
			continue
		}
		if file, l, ok := cutNumber(rest); ok && file != "<input>" {
			e.File, e.Line, e.Column = file, l, column
			return
		}
	}
}

// cutNumber splits "text:12" into "text" and 12.
func cutNumber(s string) (string, int, bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 || i == len(s)-1 || len(s)-i > 10 {
		return "", 0, false
	}
	n := 0
	for _, c := range []byte(s[i+1:]) {
		if c < '0' || c > '9' {
			return "", 0, false
		}
		n = n*10 + int(c-'0')
	}
	return s[:i], n, true
}
