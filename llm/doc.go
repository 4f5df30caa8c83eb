// Package llm is what the agent loop knows of models: messages, requests,
// streams of chunks, failures, retries, and the registry of adapters. The
// adapters are in the packages below it; this one knows no wire format.
//
// Messages, chunks, usage and failures are the types of package message, which
// are what the session log keeps; the names here are aliases of them.
//
// # A request and its answer
//
//	call, err := registry.Prepare(config)      // resolves defaults, pins the adapter
//	body, err := call.Encode(request)          // the bytes that Stream will send
//	asm := llm.NewAssembler()
//	for chunk := range call.Stream(ctx, request) {
//		// log the chunk, show it
//		asm.Add(chunk)
//	}
//	answer := asm.Answer()                     // blocks, usage, finish
//
// Encode is a pure function of the request: the same request gives the same
// bytes in every process, so a request that was rebuilt from a log can be
// compared with the one that was sent. Neither the key nor anything of the
// environment is in these bytes.
//
// # Streams
//
// A stream is an iter.Seq of chunks. It may be ranged over once. Adapters keep
// this grammar by using Emitter, and package llmtest checks it:
//
//	stream  = { start | delta } { end } [ usage ] finish
//
// Every block has one start before its deltas and one end after them; indexes
// count from 0 in the order of the starts; the block in the end is authoritative.
// An end without a block takes the block back: the provider began its answer
// again. There is exactly one finish, and nothing after it: Call.Stream holds that
// whatever the adapter does, and Assembler takes any order. Nothing is an error
// value and nothing panics: what goes wrong is a Failure in the finish.
//
// Leaving the loop early or cancelling the context ends the request and releases
// its connection before the range returns. A stream runs on the goroutine that
// ranges over it; waiting for the network is bounded by an idle timeout.
//
// # Concurrency and ownership
//
// A Registry and the adapters may be used from any goroutine. Requests, messages
// and blocks are values that nobody changes once they are handed over.
package llm
