package llm

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
)

// Fail returns a Failure with a message formatted as by fmt.Sprintf.
func Fail(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: plain.Error(fmt.Sprintf(format, args...))}
}

// AsFailure returns err as a Failure: the one it wraps, ABORTED for a cancelled
// context, TIMEOUT for a passed deadline, else one with the given code.
func AsFailure(err error, code string) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f
	case errors.Is(err, context.Canceled):
		return Fail(CodeAborted, "the request was cancelled")
	case errors.Is(err, context.DeadlineExceeded):
		return Fail(CodeTimeout, "the request took longer than it was given")
	}
	return Fail(code, "%v", err)
}
