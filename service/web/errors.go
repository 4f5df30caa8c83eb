package web

import (
	"context"
	"errors"
	"fmt"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/service"
)

// The codes of errors.
const (
	CodeInvalidURL      = "WEB_INVALID_URL"     // not an absolute http or https URL without credentials
	CodeInvalidRequest  = "WEB_INVALID_REQUEST" // another part of a request or registration is not usable
	CodeBlockedURL      = "WEB_BLOCKED_URL"     // the address is not public
	CodeTooLarge        = "WEB_FETCH_TOO_LARGE" // the body is larger than maxBytes, or too large to convert
	CodeTimeout         = "WEB_FETCH_TIMEOUT"
	CodeRedirectBlocked = "WEB_REDIRECT_BLOCKED" // to another origin, or too often
	CodeAborted         = "WEB_ABORTED"          // the caller, or the service, ended
	CodeUnsupportedType = "WEB_UNSUPPORTED_CONTENT_TYPE"
	CodeDenied          = "WEB_DENIED" // by policy
	CodeFetchFailed     = "WEB_FETCH_FAILED"
	CodeSearchFailed    = "WEB_SEARCH_FAILED"
	CodeSearchTimeout   = "WEB_SEARCH_TIMEOUT"

	CodeDuplicateProvider     = "WEB_DUPLICATE_PROVIDER"
	CodeTooManyProviders      = "WEB_TOO_MANY_PROVIDERS"
	CodeConfiguredMissing     = "WEB_PROVIDER_CONFIGURED_MISSING"     // the one that was named is not registered
	CodeConfiguredUnavailable = "WEB_PROVIDER_CONFIGURED_UNAVAILABLE" // it is, but cannot be used now
	CodeAmbiguous             = "WEB_PROVIDER_AMBIGUOUS"              // there are several and none was named
	CodeUnavailable           = "WEB_PROVIDER_UNAVAILABLE"            // there is none that can be used
)

func fail(code, format string, args ...any) *service.Error {
	err := fmt.Errorf(format, args...)
	return &service.Error{Code: code, Message: plain.Error(err.Error()), Err: err}
}

// shown is a foreign text in a message.
func shown(s string) string { return plain.Line(s, limits.SourceLine) }

// expired is the cause of a context whose time is over.
type expired struct{ error }

// ended tells why ctx ended: its own time, or the caller. nil: it did not.
func ended(ctx context.Context, timeoutCode, what string) error {
	if ctx.Err() == nil {
		return nil
	}
	if e := (expired{}); errors.As(context.Cause(ctx), &e) {
		return fail(timeoutCode, "%s took longer than %w", what, e.error)
	}
	return fail(CodeAborted, "%s was aborted", what)
}
