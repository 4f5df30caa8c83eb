// Package terminal is the front door for a person at a terminal: it shows what a
// session does, as it happens or afterwards, asks the person what the policy and
// the model want to know, and reads lines for whoever plays the model.
//
// A View is given the events of a log in their order and writes lines. What came
// from a model, a tool, a plugin or a file is stripped of control sequences
// before it is written (package plain), and bounded. Colour is an Option; whether
// there is any is for the caller, who knows the stream and NO_COLOR.
//
// An Input owns one goroutine, which starts with the first line that is wanted
// and ends with its stream: a read of a terminal cannot be interrupted. Several
// may wait for lines; a question goes before the model that a person plays.
// Every wait for a person ends with its context.
//
// All methods may be called from any goroutine. Errors of writing are dropped:
// nobody could be told.
package terminal
