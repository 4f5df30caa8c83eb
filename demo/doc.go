// Package demo plays the demonstration of dsh: a real MCP client, as any agent
// has one, drives the real server over a pipe and mounts plugins, uses them,
// composes them, makes a mistake, stops a runaway and takes everything out
// again. What happens is printed as a transcript for a person.
//
// The script is data (script.go); the plugins are files beside it, written as a
// model writes them. Every answer is held against what the transcript claims:
// [Run] returns an error at the first one that differs, so a transcript that
// ends is true.
//
// The text is plain, at most [Columns] wide, and the same in every run but for
// times and for what the lock of the worker's system is called.
//
// Run owns the goroutine that serves and waits for its end.
package demo
