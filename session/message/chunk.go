package message

import (
	"time"

	"github.com/dsh-go/dsh/lossless"
)

// A ChunkType says what a chunk of a model's stream tells.
type ChunkType string

// The types of chunks, in the order in which a stream uses them. Exactly one
// finish ends a stream.
const (
	BlockStart     ChunkType = "block-start"     // Index, BlockType
	TextDelta      ChunkType = "text-delta"      // Index, Text
	ReasoningDelta ChunkType = "reasoning-delta" // Index, Text
	CallDelta      ChunkType = "tool-call-delta" // Index, ID, Name, Text: a piece of the arguments
	BlockEnd       ChunkType = "block-end"       // Index, Block: authoritative
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
	MaxTokens FinishReason = "max-tokens"
	Aborted   FinishReason = "aborted" // with Failure
	Failed    FinishReason = "error"   // with Failure
)

// Usage counts tokens. The counts are disjoint: their sum is what was processed.
type Usage struct {
	Input      int64 `json:"inputTokens"` // neither read from nor written to a cache
	Output     int64 `json:"outputTokens"`
	CacheRead  int64 `json:"cacheReadTokens,omitempty"`
	CacheWrite int64 `json:"cacheWriteTokens,omitempty"`
	// Reasoning is the part of Output that was reasoning, where it is told.
	Reasoning int64 `json:"reasoningTokens,omitempty"`
}

// Total is the sum of the disjoint counts.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// A Failure is what went wrong with a request to a model.
type Failure struct {
	Message      string `json:"message"`
	Code         string `json:"code"`                           // stable, such as RATE_LIMIT
	Status       int    `json:"status,omitempty"`               // of HTTP
	RetryAfterMs int64  `json:"providerRetryAfterMs,omitempty"` // what the provider asked for
	RequestID    string `json:"requestId,omitempty"`
}

// Error returns the code and the message.
func (f *Failure) Error() string { return f.Code + ": " + f.Message }

// RetryAfter is how long the provider asked to wait; 0 if it did not say.
func (f *Failure) RetryAfter() time.Duration { return time.Duration(f.RetryAfterMs) * time.Millisecond }

// A Tool is what a model is told of a tool.
type Tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Parameters  lossless.Value `json:"parameters"` // JSON Schema, in its order
}
