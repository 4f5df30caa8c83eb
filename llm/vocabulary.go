package llm

import "github.com/dsh-go/dsh/session/message"

// The vocabulary is that of package message, which the log keeps: what a model is
// sent and what it answers is logged as it is. The contracts are there.

type (
	// Role says who speaks.
	Role = message.Role
	// Message is one entry of a conversation.
	Message = message.Message
	// Source says where a message came from.
	Source = message.Source
	// BlockType says what a block holds.
	BlockType = message.BlockType
	// Block is one piece of a message.
	Block = message.Block
	// Text is a string that is kept byte for byte.
	Text = message.Text
	// Attachment names bytes that are kept beside the log.
	Attachment = message.Attachment
	// Tool is a tool as a model sees it.
	Tool = message.Tool
	// ChunkType says what a chunk tells.
	ChunkType = message.ChunkType
	// Chunk is one piece of a streamed answer.
	Chunk = message.Chunk
	// FinishReason says how an answer ended.
	FinishReason = message.FinishReason
	// Usage counts tokens, each one once.
	Usage = message.Usage
	// Failure says why there is no answer.
	Failure = message.Failure
)

// The constants of the vocabulary; see package message.
const (
	User      = message.User
	Assistant = message.Assistant

	SourceUser   = message.SourceUser
	SourcePlugin = message.SourcePlugin
	SourceModel  = message.SourceModel
	SourceTool   = message.SourceTool

	TextBlock      = message.TextBlock
	ReasoningBlock = message.ReasoningBlock
	ImageBlock     = message.ImageBlock
	CallBlock      = message.CallBlock
	ResultBlock    = message.ResultBlock

	BlockStart     = message.BlockStart
	TextDelta      = message.TextDelta
	ReasoningDelta = message.ReasoningDelta
	CallDelta      = message.CallDelta
	BlockEnd       = message.BlockEnd
	UsageChunk     = message.UsageChunk
	Finish         = message.Finish

	Stop      = message.Stop
	ToolCalls = message.ToolCalls
	MaxTokens = message.MaxTokens
	Aborted   = message.Aborted
	Failed    = message.Failed
)

// The codes of a Failure; see package message.
const (
	CodeAuth               = message.CodeAuth
	CodeQuota              = message.CodeQuota
	CodeRateLimit          = message.CodeRateLimit
	CodeContextWindow      = message.CodeContextWindow
	CodeInvalidRequest     = message.CodeInvalidRequest
	CodeServer             = message.CodeServer
	CodeTransport          = message.CodeTransport
	CodeTimeout            = message.CodeTimeout
	CodeAborted            = message.CodeAborted
	CodeMissingCredential  = message.CodeMissingCredential
	CodeInvalidCredential  = message.CodeInvalidCredential
	CodeNoAdapter          = message.CodeNoAdapter
	CodeUnsupportedEffort  = message.CodeUnsupportedEffort
	CodeUnknownModel       = message.CodeUnknownModel
	CodeUnsupportedContent = message.CodeUnsupportedContent
	CodeStreamClosed       = message.CodeStreamClosed
	CodeMalformed          = message.CodeMalformed
	CodeEmpty              = message.CodeEmpty
	CodeContentFilter      = message.CodeContentFilter
	CodeRefusal            = message.CodeRefusal
	CodeScript             = message.CodeScript
	CodeInternal           = message.CodeInternal
)

// Plain returns a text block.
func Plain(text string) Block { return message.Plain(text) }

// Result returns the user message that answers a call.
func Result(id, callID string, isError bool, content ...Block) Message {
	return message.Result(id, callID, isError, content...)
}

// UserText returns a message of a person with one text block.
func UserText(s string) Message {
	return Message{Role: User, Content: []Block{Plain(s)}, Source: Source{Kind: SourceUser}}
}

// JoinText returns the text blocks among the blocks joined, nothing between them.
func JoinText(blocks []Block) string { return message.JoinText(blocks) }
