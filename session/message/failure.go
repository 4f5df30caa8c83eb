package message

import (
	"context"
	"time"
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

// A Failure says why there is no answer of a model. It is an error, and it is
// what a finish chunk carries. Nothing in it is a key.
type Failure struct {
	Message string `json:"message"`
	Code    string `json:"code"`             // stable, such as RATE_LIMIT
	Status  int    `json:"status,omitempty"` // of HTTP; 0 where there was none
	// RetryAfterMs is how long the provider asks to wait; nil when it does not say.
	RetryAfterMs *int64 `json:"providerRetryAfterMs,omitempty"`
	RequestID    string `json:"requestId,omitempty"`
	// Permanent says that the provider forbids a retry, whatever the code.
	Permanent bool `json:"permanent,omitempty"`
}

var _ error = (*Failure)(nil)

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
