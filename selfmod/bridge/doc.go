// Package bridge calls the methods of services and of the objects that they
// return, by name, with values as JSON, so that code in another language can use
// them. It knows neither workers nor mounts: who carries the calls is a [Caller].
//
// An [Interface] is what can be called: the methods of a Go interface, in their
// JavaScript names and kinds, as package service says they are written. For a
// service that the catalog has, the catalog decides which methods there are.
//
// An [Object] is a value with its interface. [Object.Call] reads the arguments,
// strictly, by the types of the method, calls it and writes the result;
// [Object.Iterate] begins an iteration. Wrong arguments are an [*Error] that says
// what is wrong, where, and shows the signature. A panic of a method is an error
// of its call.
//
// # Values
//
// Arguments are JSON. An object with the key "$" stands for what JSON has not:
//
//	{"$":"u"}           undefined, which counts as left out
//	{"$":"b","v":"…"}   bytes, in base64
//	{"$":"f","h":7}     a function of the caller
//
// A result is nothing for undefined, or one of
//
//	~text               a string, as it is
//	^base64             bytes
//	*json               JSON with objects as above, and {"$":"h","h":7,"t":"Process"}
//	                    for an object that stays here, {"$":"d","h":7} for a [service.Dispose]
//	json                JSON, to be taken as it is
//
// In arguments and in *json a key of data that consists of "$" signs has one more.
//
// # Concurrency
//
// Everything is safe for concurrent use. An [Iteration] has a goroutine that runs
// the Go iterator; it ends with the values, with Stop, or with its context.
package bridge
