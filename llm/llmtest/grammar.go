package llmtest

import (
	"fmt"
	"iter"

	"github.com/dsh-go/dsh/llm"
)

// Collect ranges over a stream to its end and returns the chunks and the answer
// they amount to. The error says where the stream broke the grammar.
func Collect(stream iter.Seq[llm.Chunk]) ([]llm.Chunk, llm.Answer, error) {
	var chunks []llm.Chunk
	a := llm.NewAssembler()
	for c := range stream {
		chunks = append(chunks, c)
		a.Add(c)
	}
	return chunks, a.Answer(), Grammar(chunks)
}

// Grammar says where chunks break what package llm promises of a stream, nil
// when they do not.
func Grammar(chunks []llm.Chunk) error {
	type block struct {
		t     llm.BlockType
		text  llm.Text
		nm    string
		ended bool
	}
	var blocks []*block
	ending, used := false, false
	for n, c := range chunks {
		bad := func(format string, args ...any) error {
			return fmt.Errorf("chunk %d (%s): %s", n, c.Type, fmt.Sprintf(format, args...))
		}
		last := n == len(chunks)-1
		if (c.Type == llm.Finish) != last {
			return bad("the finish is not the last chunk")
		}
		switch c.Type {
		case llm.Finish:
			if (c.Failure != nil) != (c.Reason == llm.Failed || c.Reason == llm.Aborted) {
				return bad("reason %q with failure %v", c.Reason, c.Failure)
			}
			for i, b := range blocks {
				if !b.ended {
					return bad("block %d has no end", i)
				}
			}
			continue
		case llm.UsageChunk:
			if used || c.Usage == nil {
				return bad("a second usage, or none")
			}
			used = true
			continue
		case llm.BlockStart:
			if ending || c.Index != len(blocks) {
				return bad("index %d after %d blocks, or after an end", c.Index, len(blocks))
			}
			blocks = append(blocks, &block{t: c.BlockType})
			continue
		}
		if c.Index < 0 || c.Index >= len(blocks) {
			return bad("block %d never started", c.Index)
		}
		b := blocks[c.Index]
		want := map[llm.ChunkType]llm.BlockType{llm.TextDelta: llm.TextBlock, llm.ReasoningDelta: llm.ReasoningBlock, llm.CallDelta: llm.CallBlock}
		switch {
		case used || b.ended:
			return bad("it comes after the end of block %d, or after the usage", c.Index)
		case c.Type == llm.BlockEnd:
			ending, b.ended = true, true
			if c.Block == nil {
				continue
			}
			if c.Block.Type != b.t || (c.Block.Text+c.Block.Arguments) != b.text || (b.nm != "" && c.Block.Name != b.nm) {
				return bad("block %d ends as %+v, its deltas say %q", c.Index, *c.Block, b.text)
			}
		case ending || want[c.Type] != b.t:
			return bad("block %d is %s, or an end came before", c.Index, b.t)
		default:
			b.text += c.Text
			b.nm += c.Name
		}
	}
	if len(chunks) == 0 {
		return fmt.Errorf("no chunk, not even a finish")
	}
	return nil
}
