// Package service is what the services that plugins inject have in common: how
// their plugin interfaces are written, and the errors that cross to plugins.
//
// # Plugin interfaces
//
// A service that mounted plugins may inject declares, beside its key, an
// interface for them ([cordis.PluginInterface]), by convention called ForPlugins.
// The catalog is generated from it, and the bridge calls it. Its methods, their
// parameters, results and the fields of the types they mention are documented;
// the generator refuses what is not. In JavaScript:
//
//   - A method has its Go name in lowerCamel. One that takes a [context.Context]
//     first returns a promise, another is synchronous. The context ends when the
//     call is cancelled, when its signal fires, and when the plugin ends.
//   - Values follow their JSON tags. []byte is a Uint8Array. A pointer is an
//     optional parameter; the last parameter may be a pointer to a struct of
//     options, which may have a [Signal]. A named string type with constants is
//     a union of literals. A type that reads several forms says so in a line
//     "//dsh:ts string | Target" of its comment.
//   - A parameter of a function type is a callback, func(context.Context, A…) (R, error)
//     or any part of it. It can be called until the plugin ends.
//   - A method whose only result is an iter.Seq2[T, error] returns an
//     AsyncIterable<T>; the method is called when iteration begins, and its
//     context ends with it.
//   - A result of another interface type is an object with that interface's
//     methods. There, a method without parameters and without an error is a
//     property, read anew each time; one that returns a [Promise] is a property
//     that is a promise. The object ends with the plugin.
//   - A result of type [Dispose] is a function that returns a promise.
//
// What a method starts or registers for a plugin is an effect of the context that
// the interface was bound to, so that it ends with the plugin.
//
// An error crosses with its message, and with its code where it is an [*Error].
//
// Everything here is safe for concurrent use; nothing starts a goroutine.
package service

import (
	"context"
	"errors"
)

// Signal is an AbortSignal among a method's options: the bridge ends the method's
// context when it fires, so Go code has nothing to read here.
type Signal struct{}

// Promise is the value of a property that a plugin can await. It is called at
// most once for each object.
type Promise[T any] func(ctx context.Context) (T, error)

// Dispose undoes what the method that returned it has begun. A second call does
// nothing.
type Dispose func(ctx context.Context) error

// Error is an error with a code, which callers can tell apart.
type Error struct {
	Code    string // such as "FS_NOT_FOUND"
	Message string // tells what to do; it is all that a plugin sees
	Err     error  // the cause; nil: none
}

// Error gives the message.
func (e *Error) Error() string { return e.Message }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode gives the code.
func (e *Error) ErrorCode() string { return e.Code }

// CodeOf gives the code of an error, "" for one that has none.
func CodeOf(err error) string {
	if e := new(Error); errors.As(err, &e) {
		return e.Code
	}
	return ""
}
