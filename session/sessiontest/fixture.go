// Package sessiontest holds what every store of sessions does, as a test suite
// ([Run]), and short ways to write events for tests.
package sessiontest

import (
	"fmt"

	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
)

// User returns a message of the person.
func User(id, text string) session.UserMessage {
	return session.UserMessage{Message: message.Message{
		ID: id, Role: message.User, Content: []message.Block{message.Plain(text)}, Source: message.Source{Kind: message.SourceUser},
	}}
}

// Answer returns an answer with a text and calls.
func Answer(turn, step int, id, text string, calls ...message.Block) session.AssistantMessage {
	content := append([]message.Block{message.Plain(text)}, calls...)
	return session.AssistantMessage{Turn: turn, Step: step, Message: message.Message{
		ID: id, Role: message.Assistant, Content: content,
		Source: message.Source{Kind: message.SourceModel, Provider: "script", Model: "m"},
	}}
}

// CallBlock returns a tool-call block.
func CallBlock(id, name, args string) message.Block {
	return message.Block{Type: message.CallBlock, ID: id, Name: name, Arguments: message.Text(args)}
}

// Call returns the tool/call of a block.
func Call(turn, step int, b message.Block) session.Call {
	return session.Call{Turn: turn, Step: step, CallID: b.ID, Name: b.Name, Arguments: b.Arguments}
}

// Result returns the result of a call, a text.
func Result(turn, step int, callID, text string) session.Result {
	id := fmt.Sprintf("r-%d-%d-%s", turn, step, callID)
	return session.Result{Turn: turn, Step: step, Message: message.Result(id, callID, false, message.Plain(text))}
}

// Chunk returns a piece of text of a stream.
func Chunk(turn, step int, text string) session.Chunk {
	return session.Chunk{Turn: turn, Step: step, Chunk: message.Chunk{Type: message.TextDelta, Text: message.Text(text)}}
}

// Header returns a request header with one tool.
func Header(reason session.HeaderReason, tool string) session.RequestHeader {
	return session.RequestHeader{Reason: reason, Header: session.Header{
		Config: lossless.Obj(lossless.M("provider", lossless.Str("script")), lossless.M("model", lossless.Str("m"))),
		System: "You are a test.",
		Tools: []message.Tool{{Name: tool, Description: "A tool.", Parameters: lossless.Obj(
			lossless.M("type", lossless.Str("object")), lossless.M("properties", lossless.Obj()))}},
	}}
}

// Open returns the beginning of a turn up to the answer, which calls the tool
// "echo" once for each id.
func Open(turn int, callIDs ...string) []session.Payload {
	ps := []session.Payload{
		session.TurnStart{Turn: turn}, session.StepStart{Turn: turn, Step: 1}, User(fmt.Sprintf("u%d", turn), fmt.Sprintf("Do %d.", turn)),
	}
	if turn == 1 {
		ps = append(ps, Header(session.HeaderInitial, "echo"))
	}
	var calls []message.Block
	for _, id := range callIDs {
		calls = append(calls, CallBlock(id, "echo", `{"text":"`+id+`"}`))
	}
	return append(ps, Chunk(turn, 1, "Well, "), Chunk(turn, 1, "yes."), Answer(turn, 1, fmt.Sprintf("a%d", turn), "Well, yes.", calls...))
}

// Turn returns a whole turn of one step with two calls.
func Turn(turn int) []session.Payload {
	ps := Open(turn, "c1", "c2")
	for _, id := range []string{"c1", "c2"} {
		ps = append(ps, Call(turn, 1, CallBlock(id, "echo", `{"text":"`+id+`"}`)), Result(turn, 1, id, "said "+id))
	}
	return append(ps, session.StepEnd{Turn: turn, Step: 1},
		session.TurnEnd{Turn: turn, Reason: session.EndReason{Kind: session.EndCompleted}})
}

// Lines returns the events' lines.
func Lines(events []session.Event) []string {
	lines := make([]string, len(events))
	for i, e := range events {
		lines[i] = e.Line()
	}
	return lines
}
