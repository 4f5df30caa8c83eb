package llm

import (
	"strings"

	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/lossless"
)

// Answer is what a stream amounted to.
type Answer struct {
	// Content has the blocks in their order. After a failure it has what came
	// before it; then it is no message, and no call in it may be run.
	Content     []Block
	Usage       *Usage // nil when the provider did not say
	Reason      FinishReason
	Failure     *Failure // set for Aborted and Failed
	ReplayState lossless.Value
}

// Message returns the answer as the message that goes into the log and back to
// the model.
func (a Answer) Message(id string, c Config) Message {
	return Message{ID: id, Role: Assistant, Content: a.Content,
		Source: Source{Kind: SourceModel, Provider: c.Provider, Model: c.Model, ReplayState: a.ReplayState}}
}

// Assembler makes one answer of chunks. It is the only thing that does: what is
// shown, logged and sent back agree because of it. It takes any order of chunks
// without a panic: a delta opens the block it is for, the first end of a block
// wins, what follows a finish is left out, and a stream without finish counts as
// stop. It is for one goroutine.
type Assembler struct {
	blocks   map[int]*partial
	order    []int
	bytes    int
	answer   Answer
	finished bool
}

type partial struct {
	block Block
	text  strings.Builder // of Text, or of Arguments
	ended bool
	gone  bool
}

// NewAssembler returns an empty Assembler.
func NewAssembler() *Assembler { return &Assembler{blocks: map[int]*partial{}} }

// Add takes the next chunk. What passes limits.LLMMessage or limits.LLMBlocks
// makes the answer fail with MALFORMED_RESPONSE.
func (a *Assembler) Add(c Chunk) {
	if a.finished {
		return
	}
	switch c.Type {
	case BlockStart:
		a.open(c.Index, c.BlockType)
	case TextDelta:
		a.grow(a.open(c.Index, TextBlock), string(c.Text))
	case ReasoningDelta:
		a.grow(a.open(c.Index, ReasoningBlock), string(c.Text))
	case CallDelta:
		p := a.open(c.Index, CallBlock)
		if p == nil || p.ended {
			return
		}
		if p.block.ID == "" {
			p.block.ID = c.ID
		}
		if p.block.Name == "" {
			p.block.Name = c.Name
		}
		a.grow(p, string(c.Text))
	case BlockEnd:
		a.end(c)
	case UsageChunk:
		if c.Usage != nil {
			u := *c.Usage
			a.answer.Usage = &u
		}
	case Finish:
		a.finished = true
		a.answer.Reason, a.answer.Failure, a.answer.ReplayState = c.Reason, c.Failure, c.ReplayState
	}
}

func (a *Assembler) open(index int, t BlockType) *partial {
	if p := a.blocks[index]; p != nil {
		return p
	}
	if len(a.order) >= limits.LLMBlocks {
		a.tooMuch("more than %d blocks", limits.LLMBlocks)
		return nil
	}
	p := &partial{block: Block{Type: t}}
	a.blocks[index] = p
	a.order = append(a.order, index)
	return p
}

func (a *Assembler) grow(p *partial, s string) {
	if p == nil || p.ended {
		return
	}
	if a.bytes += len(s); a.bytes > limits.LLMMessage {
		a.tooMuch("more than %d bytes", limits.LLMMessage)
		return
	}
	p.text.WriteString(s)
}

func (a *Assembler) end(c Chunk) {
	t := TextBlock
	if c.Block != nil {
		t = c.Block.Type
	}
	p := a.open(c.Index, t)
	if p == nil || p.ended {
		return
	}
	p.ended, p.gone = true, c.Block == nil
	if c.Block != nil {
		b := *c.Block
		a.bytes += len(b.Text) + len(b.Arguments) + len(b.Signature) + len(b.Redacted) - p.text.Len()
		if a.bytes > limits.LLMMessage {
			a.tooMuch("more than %d bytes", limits.LLMMessage)
			return
		}
		p.block = b
	}
	p.text = strings.Builder{}
}

func (a *Assembler) tooMuch(format string, n int) {
	a.finished = true
	a.answer.Reason = Failed
	a.answer.Failure = Fail(CodeMalformed, "the answer has "+format, n)
}

// Answer returns what the chunks so far amount to. Blocks without an end are
// what their deltas made them; blocks with nothing in them are left out.
func (a *Assembler) Answer() Answer {
	out := a.answer
	out.Content = nil
	for _, i := range a.order {
		p := a.blocks[i]
		b := p.block
		if !p.ended {
			if b.Type == CallBlock {
				b.Arguments = Text(p.text.String())
			} else {
				b.Text = Text(p.text.String())
			}
		}
		if !p.gone && !isEmpty(b) {
			out.Content = append(out.Content, b)
		}
	}
	if out.Reason == "" {
		out.Reason = Stop
	}
	return out
}

func isEmpty(b Block) bool {
	switch b.Type {
	case TextBlock:
		return b.Text == ""
	case ReasoningBlock:
		return b.Text == "" && b.Signature == "" && b.Redacted == ""
	}
	return false
}
