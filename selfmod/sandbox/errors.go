package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/dsh-go/dsh/selfmod/sandbox/wire"
)

// Codes of an [Error] beside those of package wire.
const (
	CodeThrown      = ""               // the code threw: Fault is what
	CodeCallTimeout = "CALL_TIMEOUT"   // the whole entry took longer than its limit
	CodeStuck       = "WORKER_STUCK"   // in something that the engine cannot interrupt; the worker was ended
	CodeDied        = "WORKER_DIED"    // the worker process ended
	CodeClosed      = "MOUNT_CLOSED"   // the VM was closed
	CodeTooMany     = "TOO_MANY_CALLS" // too many calls in flight
	CodeAbandoned   = "ABANDONED"      // too many abandoned calls
	CodeProtocol    = "PROTOCOL"       // the worker broke the protocol
)

// ErrClosed is the error of a Sandbox that is closed.
var ErrClosed = errors.New("the sandbox is closed")

// Error is a failure of one entry into a mount, or of the mount's VM. Its text
// names the mount, the entry and the limit.
type Error struct {
	Code  string
	Mount string        // "dyn-1"
	Entry string        // what was entered: `tool "spin"`, "apply"
	Limit time.Duration // of the timeouts
	Fault *wire.Fault   // what the code threw, or what the worker says
	Cause string        // more on a death
	InRow uint32        // of VM_TIMEOUT: interrupted entries in a row, this one included
	Spent bool          // its machine is of no more use because of this
	// Worker tells one worker that ended from another; 0: none has. Blamed says
	// that it ended because of this mount.
	Worker uint64
	Blamed bool
}

// Error is the text that a model or a person reads. What the code itself threw
// stays untouched, followed by the author's positions.
func (e *Error) Error() string {
	who := e.Mount
	if e.Entry != "" {
		who += ": " + e.Entry
	}
	switch e.Code {
	case wire.CodeVMTimeout:
		return fmt.Sprintf("%s did not return within %s inside the engine (vmTimeout) and was stopped%s", who, Millis(e.Limit), e.spent())
	case CodeCallTimeout:
		advice := "If it only needs longer, a tool may set timeoutMs; else look for a promise that nothing resolves, and heed exec.signal"
		if e.Entry == "apply" {
			advice = "Look for a promise that nothing resolves; what takes long goes on after apply, without an await"
		}
		return fmt.Sprintf("%s did not settle within %s (callTimeout) and was abandoned; nothing waits for it any more. %s", who, Millis(e.Limit), advice)
	case wire.CodeMemory:
		return fmt.Sprintf("%s ran out of memory (its limit is %d MiB a mount)%s", who, int64(e.Limit), e.cause()+e.spent())
	case wire.CodePanic:
		return fmt.Sprintf("%s made the JavaScript engine fail%s", who, e.cause()+e.spent())
	case CodeStuck:
		return e.stuck() + "; its worker process was ended"
	case CodeDied:
		return fmt.Sprintf("%s: the worker process ended%s", who, e.cause())
	case CodeClosed:
		return who + ": the mount was unmounted" + e.cause()
	case CodeTooMany:
		return fmt.Sprintf("%s: %s", who, e.Cause)
	case CodeAbandoned, CodeProtocol, wire.CodeBusy, wire.CodeDeadlock, wire.CodeCancelled, wire.CodeNoMount, wire.CodeTooLarge:
		return who + e.cause() + e.faultText(": ")
	}
	return strings.TrimPrefix(e.faultText(""), ": ")
}

// spent says what follows for the plugin.
func (e *Error) spent() string {
	text := ""
	if e.InRow > 1 {
		text = fmt.Sprintf(", as the %d. entry in a row", e.InRow)
	}
	switch {
	case e.Spent && (e.Entry == "the code" || e.Entry == "apply"): // of a version that may not be mounted at all
		text += "; its machine was ended"
	case e.Spent:
		text += "; the plugin is mounted again from its source, with empty state, unless that came too often"
	}
	return text
}

// stuck says what a worker was ended for.
func (e *Error) stuck() string {
	return fmt.Sprintf("%s: %s went on beyond its limit of %s inside the engine (vmTimeout), in a native call that the engine cannot interrupt", e.Mount, e.Entry, Millis(e.Limit))
}

func (e *Error) cause() string {
	if e.Cause == "" {
		return ""
	}
	return ": " + e.Cause
}

// maxFrames is how many of the author's positions follow a message.
const maxFrames = 4

func (e *Error) faultText(sep string) string {
	if e.Fault == nil {
		return ""
	}
	var b strings.Builder
	b.WriteString(sep)
	b.WriteString(cmp.Or(e.Fault.Message, e.Fault.Name, "an error without a message"))
	for i, f := range e.Fault.Frames {
		if i == maxFrames {
			break
		}
		b.WriteString("\n    ")
		b.WriteString(f)
	}
	return b.String()
}
