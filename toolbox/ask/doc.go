// Package ask is the tool ask_user_question, with which a model asks the person
// that it works for.
//
// The questions go through the service "questions": whoever faces a person, such
// as the terminal of a run, provides an [Asker]. Without one, or where it says
// [ErrNobody], the answer tells the model that nobody is there and to decide by
// itself. The asker learns whose question it is from the context (tool.ActorOf).
//
// The call waits as long as the person takes: it ends with its context. Questions
// and answers are bounded by limits.Ask….
//
// Everything is safe for concurrent use; nothing starts a goroutine.
package ask
