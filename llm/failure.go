package llm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dsh-go/dsh/internal/plain"
)

// The codes of a Failure. A finish that a provider invented comes through as its
// upper-cased word, an HTTP status that is none of these as HTTP_<n>.
const (
	CodeAuth               = "AUTH"
	CodeQuota              = "QUOTA"
	CodeRateLimit          = "RATE_LIMIT"
	CodeContextWindow      = "CONTEXT_WINDOW_EXCEEDED"
	CodeInvalidRequest     = "INVALID_REQUEST"
	CodeServer             = "SERVER"
	CodeTransport          = "TRANSPORT"
	CodeTimeout            = "TIMEOUT"
	CodeAborted            = "ABORTED"
	CodeMissingCredential  = "MISSING_CREDENTIAL"
	CodeInvalidCredential  = "INVALID_CREDENTIAL"
	CodeNoAdapter          = "NO_ADAPTER"
	CodeUnsupportedEffort  = "UNSUPPORTED_REASONING_EFFORT"
	CodeUnknownModel       = "UNKNOWN_MODEL"
	CodeUnsupportedContent = "UNSUPPORTED_CONTENT"
	CodeStreamClosed       = "STREAM_CLOSED"      // the connection ended before the answer did
	CodeMalformed          = "MALFORMED_RESPONSE" // the answer is not what the API promises
	CodeEmpty              = "EMPTY_RESPONSE"     // the answer ended without anything in it
	CodeContentFilter      = "CONTENT_FILTER"
	CodeRefusal            = "REFUSAL"
	CodeScript             = "SCRIPT" // a script was sent something else than it expects
	CodeInternal           = "INTERNAL"
)

// Failure says why there is no answer. It is an error, and it is what a finish
// chunk carries. Nothing in it is a key.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code"`
	// Status is the HTTP status, 0 where there was none.
	Status int `json:"status,omitempty"`
	// RetryAfterMs is how long the provider asks to wait; nil when it does not say.
	RetryAfterMs *int64 `json:"providerRetryAfterMs,omitempty"`
	RequestID    string `json:"requestId,omitempty"`
	// Permanent says that the provider forbids a retry, whatever the code.
	Permanent bool `json:"permanent,omitempty"`
}

var _ error = (*Failure)(nil)

// Fail returns a Failure with a message formatted as by fmt.Sprintf.
func Fail(code, format string, args ...any) *Failure {
	return &Failure{Code: code, Message: plain.Error(fmt.Sprintf(format, args...))}
}

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// Is makes errors.Is(f, context.Canceled) true for an aborted request, and
// errors.Is(f, context.DeadlineExceeded) for one that timed out.
func (f *Failure) Is(target error) bool {
	switch target {
	case context.Canceled:
		return f.Code == CodeAborted
	case context.DeadlineExceeded:
		return f.Code == CodeTimeout
	}
	return false
}

// Retryable reports whether the same request may succeed later: the codes
// EMPTY_RESPONSE, RATE_LIMIT, SERVER, TIMEOUT, TRANSPORT and STREAM_CLOSED,
// unless the provider says that it will not.
func (f *Failure) Retryable() bool {
	if f.Permanent {
		return false
	}
	switch f.Code {
	case CodeEmpty, CodeRateLimit, CodeServer, CodeTimeout, CodeTransport, CodeStreamClosed:
		return true
	}
	return false
}

// RetryAfter is how long the provider asks to wait, and whether it does.
func (f *Failure) RetryAfter() (time.Duration, bool) {
	if f.RetryAfterMs == nil {
		return 0, false
	}
	return time.Duration(*f.RetryAfterMs) * time.Millisecond, true
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
