// Package demo is the tour through the live runtime: an agent whose model is a
// script looks at the runtime that it runs in, extends it, makes mistakes, mends
// them, and leaves nothing behind. Everything but the model is real.
//
// [Play] drives an agent that the caller has started and shows what it does by
// following its session's log, which stays with the caller. It checks every
// answer against the script. Everything runs on the caller's goroutine.
package demo
