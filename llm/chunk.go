package llm

import "github.com/dsh-go/dsh/lossless"

// ChunkType says what a chunk is.
type ChunkType string

// The types of chunk, and the fields of Chunk that each uses.
const (
	BlockStart     ChunkType = "block-start"     // Index, BlockType
	TextDelta      ChunkType = "text-delta"      // Index, Text
	ReasoningDelta ChunkType = "reasoning-delta" // Index, Text
	ToolCallDelta  ChunkType = "tool-call-delta" // Index, ID, Name, ArgumentsDelta
	BlockEnd       ChunkType = "block-end"       // Index, Block (nil takes the block back)
	UsageChunk     ChunkType = "usage"           // Usage
	FinishChunk    ChunkType = "finish"          // Reason, Failure, ReplayState
)

// Chunk is one piece of a streamed answer. Which fields count is said by Type.
type Chunk struct {
	Type           ChunkType     `json:"type"`
	Index          int           `json:"index"`
	BlockType      BlockType     `json:"blockType,omitempty"`
	Text           string        `json:"text,omitempty"`
	ID             string        `json:"id,omitempty"`
	Name           string        `json:"name,omitempty"`
	ArgumentsDelta string        `json:"argumentsDelta,omitempty"`
	Block          *Block        `json:"block,omitempty"`
	Usage          *Usage        `json:"usage,omitempty"`
	Reason         FinishReason  `json:"reason,omitempty"`
	Failure        *Failure      `json:"failure,omitempty"`
	ReplayState    lossless.Text `json:"replayState,omitempty"`
}

// FinishReason says how an answer ended.
type FinishReason string

// The reasons. Aborted and Error come with a Failure.
const (
	Stop      FinishReason = "stop"
	ToolCalls FinishReason = "tool-calls"
	MaxTokens FinishReason = "max-tokens" // tool calls of it may be cut: none may be run
	Aborted   FinishReason = "aborted"
	Error     FinishReason = "error"
)

// Usage counts tokens. The counts are disjoint: each token is in one of them.
type Usage struct {
	InputTokens      int `json:"inputTokens"`                // neither read from nor written to a cache
	CacheReadTokens  int `json:"cacheReadTokens,omitempty"`  // input that came from a cache
	CacheWriteTokens int `json:"cacheWriteTokens,omitempty"` // input that went into a cache
	OutputTokens     int `json:"outputTokens"`               // without ReasoningTokens
	ReasoningTokens  int `json:"reasoningTokens,omitempty"`  // 0 where the provider counts them as output
}

// Context is how much of the context window the request and its answer took.
func (u Usage) Context() int { return u.Input() + u.OutputTokens + u.ReasoningTokens }

// Input is the whole input, cached or not.
func (u Usage) Input() int { return u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens }

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	u.InputTokens += v.InputTokens
	u.CacheReadTokens += v.CacheReadTokens
	u.CacheWriteTokens += v.CacheWriteTokens
	u.OutputTokens += v.OutputTokens
	u.ReasoningTokens += v.ReasoningTokens
	return u
}
