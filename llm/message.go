package llm

import (
	"strings"

	"github.com/dsh-go/dsh/lossless"
)

// Role says who speaks in a message.
type Role string

// The roles. A tool's result is a user message with exactly one tool-result block.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one entry of a conversation.
type Message struct {
	ID      string  `json:"id,omitempty"`
	Role    Role    `json:"role"`
	Content []Block `json:"content"`
	Source  Source  `json:"source"`
}

// The kinds of source that this package sets or reads. Others may use more.
const (
	SourceUser   = "user"
	SourcePlugin = "plugin"
	SourceModel  = "model"
	SourceTool   = "tool"
)

// Source says where a message came from.
type Source struct {
	Kind string `json:"kind"`
	// Provider and Model are set for kind model: the route that answered.
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	// ReplayState is what the adapter of Provider wants to see again when the
	// message is sent back to it; no other adapter reads it.
	ReplayState lossless.Text `json:"replayState,omitempty"`
	// CallID is set for kind tool.
	CallID string `json:"callId,omitempty"`
	// Name says which plugin, for kind plugin.
	Name string `json:"name,omitempty"`
}

// BlockType says what a block is.
type BlockType string

// The types of block, and the fields of Block that each uses.
const (
	TextBlock       BlockType = "text"        // Text
	ReasoningBlock  BlockType = "reasoning"   // Text, Signature, Redacted
	ImageBlock      BlockType = "image"       // Attachment
	ToolCallBlock   BlockType = "tool-call"   // ID, Name, Arguments
	ToolResultBlock BlockType = "tool-result" // ToolCallID, Content, IsError
)

// Block is one piece of a message's content. Which fields count is said by Type.
type Block struct {
	Type BlockType `json:"type"`

	Text string `json:"text,omitempty"`

	// Signature proves to the provider that Text is its own thinking. Redacted
	// is thinking that the provider shows to nobody. Both go back byte for byte
	// to the provider of the message's source and to no other.
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`

	// ID and Name are of a tool call. Arguments is what the model wrote, byte
	// for byte; it need not be JSON, and "" means no arguments.
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`

	// ToolCallID is the ID of the call that Content (text and images) answers.
	ToolCallID string  `json:"toolCallId,omitempty"`
	Content    []Block `json:"content,omitempty"`
	IsError    bool    `json:"isError,omitempty"`

	Attachment *Attachment `json:"attachment,omitempty"`
}

// Attachment names bytes that are kept beside the conversation.
type Attachment struct {
	Hash      string `json:"hash"`      // by which Request.Attachment finds the bytes
	MediaType string `json:"mediaType"` // such as image/png
	Bytes     int    `json:"bytes,omitempty"`
}

// Text returns a text block.
func Text(s string) Block { return Block{Type: TextBlock, Text: s} }

// UserText returns a message of a person with one text block.
func UserText(s string) Message {
	return Message{Role: RoleUser, Content: []Block{Text(s)}, Source: Source{Kind: SourceUser}}
}

// ToolResult returns the message that answers a call with text.
func ToolResult(callID, text string, isError bool) Message {
	b := Block{Type: ToolResultBlock, ToolCallID: callID, IsError: isError}
	if text != "" {
		b.Content = []Block{Text(text)}
	}
	return Message{Role: RoleUser, Content: []Block{b}, Source: Source{Kind: SourceTool, CallID: callID}}
}

// Text returns the text blocks of a message joined.
func (m Message) Text() string { return joinText(m.Content) }

// ToolCalls returns the tool calls of a message in their order.
func (m Message) ToolCalls() []Block {
	var calls []Block
	for _, b := range m.Content {
		if b.Type == ToolCallBlock {
			calls = append(calls, b)
		}
	}
	return calls
}

// JoinText returns the text blocks among the blocks joined, nothing between them.
func JoinText(blocks []Block) string { return joinText(blocks) }

func joinText(blocks []Block) string {
	var s strings.Builder
	for _, b := range blocks {
		if b.Type == TextBlock {
			s.WriteString(b.Text)
		}
	}
	return s.String()
}

// Tool is a tool as a model sees it.
type Tool struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Parameters  lossless.Text `json:"parameters"` // JSON Schema of an object
}

// Config is what a request asks for beside its content: the part that is
// resolved by Prepare and kept in the log.
type Config struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// MaxTokens bounds the answer; 0 is the model's default.
	MaxTokens int `json:"maxTokens,omitempty"`
	// Effort is how hard the model should think, one of Model.Efforts; "" leaves
	// it to the provider, EffortOff asks for no thinking.
	Effort string `json:"effort,omitempty"`
	// Temperature is left to the provider when nil.
	Temperature *float64 `json:"temperature,omitempty"`
}

// EffortOff asks for an answer without thinking.
const EffortOff = "off"

// Purposes of a request other than a step of the conversation.
const (
	PurposeCompact = "compact"
	PurposeTitle   = "session-title"
)

// Request is one question to a model.
type Request struct {
	Config
	System   string
	Messages []Message
	Tools    []Tool
	// Purpose is "" for a step of the conversation.
	Purpose string
	// Session goes to providers that ask for it in a header, and tells scripts
	// apart. It is no part of what Encode returns.
	Session string
	// Attachment returns the bytes of an attachment by its hash. It may be nil
	// where there are no images.
	Attachment func(hash string) ([]byte, error)
}

// Model is what is known of a model.
type Model struct {
	Name          string
	ContextWindow int      // tokens; 0 is unknown
	MaxTokens     int      // of an answer, by default; 0 leaves it to the provider
	Images        bool     // takes images
	Efforts       []string // accepted values of Config.Effort; none means unknown, and any goes
}
