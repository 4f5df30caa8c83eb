// Package mcp serves the tools of one registry to a Model Context Protocol
// client: newline-delimited JSON-RPC over a reader and a writer, usually
// standard input and output.
//
// The protocol itself (versions, handshake, cancellation, subscriptions) is the
// official SDK's. This package owns what the SDK does otherwise than a live
// registry needs:
//
//   - tools/list has the registry's order, its schemas byte for byte, and only
//     tools whose schema a client can read (Hidden says which are left out).
//   - tools/call goes to the registry, unknown names included: what went wrong
//     with a call is a result with isError whose text begins "Error: ", never a
//     protocol error, since only a result reaches the model.
//   - notifications/tools/list_changed is sent once per burst of changes, after
//     the tools can be called.
//   - A frame that is not JSON, nested deeper than limits.MCPDepth or longer than
//     limits.MCPFrame is answered with a JSON-RPC error, and the connection goes
//     on. So are batches, ids that would not survive a float64, and requests
//     beyond 1,024 or 64 MiB in flight.
//
// # Concurrency and order
//
// Requests run concurrently; answers come in the order in which calls end.
// Nothing here holds a lock while a tool runs. Progress of a call precedes its
// result, at most twenty a second, and what comes faster is dropped.
//
// # Ownership and end
//
// A Server is attached to a runtime by its plugin and serves a connection for as
// long as Run runs. Run ends when its context is cancelled, the input ends or
// cannot be written to any more, or the plugin is disposed. After the input has
// ended, running calls have 750 ms to answer; then, and at once in the other
// cases, they are cancelled. Run returns within limits.Shutdown whatever hangs;
// what hangs then still holds its own goroutine and nothing else.
package mcp
