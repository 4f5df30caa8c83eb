// Package kv is the service that gives each plugin a small store of JSON values
// of its own.
//
// # Whose store it is
//
// A temporary plugin has its own for as long as it is mounted: what it keeps is
// there when it is parked and runs again, and when its machine was replaced. When
// it is unmounted the store is removed; a new mount, of the same source too,
// begins empty. Any other plugin has the store of its name, and shares it with
// the plugins of that name.
//
// # Where it is kept
//
// In memory, for as long as the service runs. With [Config.Dir] each store is a
// file there, that of a temporary plugin only with [Config.Session], since its id
// means something within its session only. A change is written before the call
// returns: to a new file, which is synced and takes the place of the one before,
// so that a crash leaves the one or the other. Files can be read by this user
// alone. A file that is not what was written is an error and left as it is. When
// the program stops, the files stay; a temporary plugin's file is removed when it
// is unmounted while the service runs. Two programs must not have the same Dir.
//
// # Bounds
//
// Keys, values and their sum are bounded by the constants KV… of package limits.
// A call that would pass one changes nothing.
//
// # Errors and concurrency
//
// Errors are *[service.Error] with a code Code…, or that of the context. Calls on
// one store happen one after the other; everything is safe for concurrent use, and
// nothing starts a goroutine. Values are copied on their way in and out.
package kv
