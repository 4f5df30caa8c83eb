package message

import "github.com/dsh-go/dsh/lossless"

// A ChunkType says what a chunk of a model's stream tells.
type ChunkType string

// The types of chunks, in the order in which a stream uses them. Exactly one
// finish ends a stream.
const (
	BlockStart     ChunkType = "block-start"     // Index, BlockType
	TextDelta      ChunkType = "text-delta"      // Index, Text
	ReasoningDelta ChunkType = "reasoning-delta" // Index, Text
	CallDelta      ChunkType = "tool-call-delta" // Index, ID, Name, Text: a piece of the arguments
	BlockEnd       ChunkType = "block-end"       // Index, Block: authoritative; without one the block is taken back
	UsageChunk     ChunkType = "usage"           // Usage
	Finish         ChunkType = "finish"          // Reason, Failure, ReplayState
)

// A Chunk is one piece of a model's stream. Which fields are set depends on Type.
type Chunk struct {
	Type        ChunkType      `json:"type"`
	Index       int            `json:"index,omitempty"` // of the block in its message; absent is 0
	BlockType   BlockType      `json:"blockType,omitempty"`
	Text        Text           `json:"text,omitempty"`
	ID          string         `json:"id,omitempty"`
	Name        string         `json:"name,omitempty"`
	Block       *Block         `json:"block,omitempty"`
	Usage       *Usage         `json:"usage,omitempty"`
	Reason      FinishReason   `json:"reason,omitempty"`
	Failure     *Failure       `json:"failure,omitempty"`
	ReplayState lossless.Value `json:"replayState,omitzero"`
}

// A FinishReason says why a stream ended.
type FinishReason string

// The reasons. A stream that just ends counts as stop.
const (
	Stop      FinishReason = "stop"
	ToolCalls FinishReason = "tool-calls"
	MaxTokens FinishReason = "max-tokens" // tool calls of it may be cut: none may be run
	Aborted   FinishReason = "aborted"    // with Failure
	Failed    FinishReason = "error"      // with Failure
)

// Usage counts tokens. The counts are disjoint: each token is in one of them.
type Usage struct {
	Input      int64 `json:"inputTokens"`                // neither read from nor written to a cache
	Output     int64 `json:"outputTokens"`               // without Reasoning
	CacheRead  int64 `json:"cacheReadTokens,omitempty"`  // input that came from a cache
	CacheWrite int64 `json:"cacheWriteTokens,omitempty"` // input that went into a cache
	Reasoning  int64 `json:"reasoningTokens,omitempty"`  // 0 where the provider counts it as output
}

// Prompt is the whole input, cached or not.
func (u Usage) Prompt() int64 { return u.Input + u.CacheRead + u.CacheWrite }

// Total is the sum of the counts: how much of the context window the request and
// its answer took.
func (u Usage) Total() int64 { return u.Prompt() + u.Output + u.Reasoning }

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.Reasoning += v.Reasoning
	return u
}

// A Tool is what a model is told of a tool.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  lossless.Value `json:"parameters"` // JSON Schema, in its order
}
