package llm

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// Emitter writes a stream that keeps the grammar. An adapter makes one from the
// yield of its stream, feeds it as the answer arrives, and finishes it. After
// the reader has left (Done) every method does nothing. It is for one goroutine.
type Emitter struct {
	yield  func(Chunk) bool
	blocks []*emitted
	usage  *Usage
	bytes  int
	done   bool
	hidden secrets
}

type emitted struct {
	block Block
	text  strings.Builder
	// signature and redacted grow like the text; the block gets them at its end.
	signature, redacted strings.Builder
	gone                bool
}

// NewEmitter returns an Emitter that writes to yield.
func NewEmitter(yield func(Chunk) bool) *Emitter { return &Emitter{yield: yield} }

// Hide takes a secret, such as the key of the request, out of the failure that the
// stream may end with, wherever that comes from: an error of HTTP, an error inside
// the stream, a text that was not understood. It shows as "(key)" in the message,
// the code and the request id, also where only its beginning was left by a cut.
// What is streamed as text is the model's, and stays as it is.
func (e *Emitter) Hide(secret string) { e.hidden = newSecrets(secret) }

// Done reports that the stream is finished, or that nobody reads it any more.
func (e *Emitter) Done() bool { return e.done }

// Open starts a block of the type and returns its index.
func (e *Emitter) Open(t BlockType) int {
	i := len(e.blocks)
	e.blocks = append(e.blocks, &emitted{block: Block{Type: t}})
	e.send(Chunk{Type: BlockStart, Index: i, BlockType: t})
	if i+1 > limits.LLMBlocks {
		e.Fail(Fail(CodeMalformed, "the answer has more than %d blocks", limits.LLMBlocks))
	}
	return i
}

// Is reports whether the block was opened with the type.
func (e *Emitter) Is(i int, t BlockType) bool { return e.blocks[i].block.Type == t }

// Append adds text to a text or reasoning block.
func (e *Emitter) Append(i int, s string) {
	if s == "" || !e.room(len(s)) {
		return
	}
	b := e.blocks[i]
	b.text.WriteString(s)
	t := TextDelta
	if b.block.Type == ReasoningBlock {
		t = ReasoningDelta
	}
	e.send(Chunk{Type: t, Index: i, Text: Text(s)})
}

// Call adds to a tool call. The first id and the first name that are not empty
// stay; arguments are appended byte for byte.
func (e *Emitter) Call(i int, id, name, arguments string) {
	b := e.blocks[i]
	if b.block.ID != "" {
		id = ""
	}
	if b.block.Name != "" {
		name = ""
	}
	if (id == "" && name == "" && arguments == "") || !e.room(len(arguments)) {
		return
	}
	b.block.ID += id
	b.block.Name += name
	b.text.WriteString(arguments)
	e.send(Chunk{Type: CallDelta, Index: i, ID: id, Name: name, Text: Text(arguments)})
}

// Sign adds to the signature and to the redacted data of a reasoning block.
func (e *Emitter) Sign(i int, signature, redacted string) {
	if e.room(len(signature) + len(redacted)) {
		e.blocks[i].signature.WriteString(signature)
		e.blocks[i].redacted.WriteString(redacted)
	}
}

// Usage sets the usage that is sent before the finish; the last one counts.
func (e *Emitter) Usage(u Usage) { e.usage = &u }

// Reset takes back all blocks so far: the provider began again.
func (e *Emitter) Reset() {
	for _, b := range e.blocks {
		b.gone = true
	}
}

// Calls returns the number of tool calls, and Blocks that of all blocks, that
// were not taken back.
func (e *Emitter) Calls() int {
	return e.count(func(b *emitted) bool { return b.block.Type == CallBlock })
}

// Blocks returns the number of blocks that were not taken back.
func (e *Emitter) Blocks() int { return e.count(func(*emitted) bool { return true }) }

func (e *Emitter) count(f func(*emitted) bool) int {
	n := 0
	for _, b := range e.blocks {
		if !b.gone && f(b) {
			n++
		}
	}
	return n
}

// Fail ends the stream with a failure: aborted where its code is ABORTED.
func (e *Emitter) Fail(f *Failure) {
	reason := Failed
	if f.Code == CodeAborted {
		reason = Aborted
	}
	e.end(Chunk{Type: Finish, Reason: reason, Failure: f})
}

// Finish ends the stream. A stop with tool calls is tool-calls; a stop with no
// block in it is the failure EMPTY_RESPONSE; a call without a name is
// MALFORMED_RESPONSE. A call without an id, or with one that an earlier call of
// the answer has, gets one of its own.
func (e *Emitter) Finish(reason FinishReason, replay lossless.Value) {
	if reason == Stop || reason == ToolCalls {
		reason = Stop
		if e.Calls() > 0 {
			reason = ToolCalls
		}
	}
	if reason == Stop && e.Blocks() == 0 {
		e.Fail(Fail(CodeEmpty, "the model answered with nothing"))
		return
	}
	ids := map[string]bool{}
	for i, b := range e.blocks {
		if b.gone || b.block.Type != CallBlock {
			continue
		}
		if b.block.Name == "" {
			e.Fail(Fail(CodeMalformed, "the model called a tool without naming it"))
			return
		}
		id := b.block.ID
		if id == "" {
			id = fmt.Sprintf("call_%d", i)
		}
		for n := 2; ids[id]; n++ {
			id = fmt.Sprintf("%s-%d", strings.TrimSuffix(id, fmt.Sprintf("-%d", n-1)), n)
		}
		ids[id] = true
		b.block.ID = id
	}
	if !replay.IsNull() && len(replay.Encode()) > limits.LLMReplay {
		e.Fail(Fail(CodeMalformed, "the answer has more than %d bytes of hidden state", limits.LLMReplay))
		return
	}
	e.end(Chunk{Type: Finish, Reason: reason, ReplayState: replay})
}

func (e *Emitter) end(finish Chunk) {
	if e.done {
		return
	}
	finish.Failure = e.hidden.failure(finish.Failure)
	for i, b := range e.blocks {
		c := Chunk{Type: BlockEnd, Index: i}
		if !b.gone {
			block := b.block
			if block.Type == CallBlock {
				block.Arguments = Text(b.text.String())
			} else {
				block.Text = Text(b.text.String())
			}
			block.Signature, block.Redacted = Text(b.signature.String()), Text(b.redacted.String())
			c.Block = &block
		}
		e.send(c)
	}
	if e.usage != nil {
		e.send(Chunk{Type: UsageChunk, Usage: e.usage})
	}
	e.send(finish)
	e.done = true
}

func (e *Emitter) room(n int) bool {
	if e.done {
		return false
	}
	if e.bytes += n; e.bytes > limits.LLMMessage {
		e.Fail(Fail(CodeMalformed, "the answer has more than %d bytes", limits.LLMMessage))
		return false
	}
	return true
}

func (e *Emitter) send(c Chunk) {
	if !e.done && !e.yield(c) {
		e.done = true
	}
}
