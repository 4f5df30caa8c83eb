// Package message is the vocabulary that the session log keeps and that model
// providers speak: messages of blocks, stream chunks, usage, failures.
//
// Values are plain data; whoever gets one from a log owns its copy. JSON tags
// are the format of the log. Text is kept byte for byte (see [Text]).
//
// A conversation is a list of messages of the roles user and assistant. The
// result of a tool is a user message that holds exactly one tool-result block;
// the system prompt and the tools are no messages, they are in the request's
// header.
package message

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/lossless"
)

// A Role says who speaks.
type Role string

// The two roles of a conversation.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// A Message is one entry of a conversation.
type Message struct {
	ID      string  `json:"id"`
	Role    Role    `json:"role"`
	Content []Block `json:"content"` // empty: the message is logged and the model does not see it
	Source  Source  `json:"source"`
}

// A Source says where a message came from. Which fields are set depends on Kind.
type Source struct {
	Kind     string `json:"kind"`               // see the Source constants; others are carried
	Name     string `json:"name,omitempty"`     // plugin: which
	CallID   string `json:"callId,omitempty"`   // tool: which call
	Provider string `json:"provider,omitempty"` // model
	Model    string `json:"model,omitempty"`    // model
	// ReplayState is what the provider needs back with the message, such as
	// signatures of thinking; nobody else reads it.
	ReplayState lossless.Value `json:"replayState,omitzero"`
}

// Kinds of sources.
const (
	SourceUser   = "user"
	SourceModel  = "model"
	SourceTool   = "tool"
	SourcePlugin = "plugin"
)

// IsPlugin says whether the source is the plugin of that name.
func (s Source) IsPlugin(name string) bool { return s.Kind == SourcePlugin && s.Name == name }

// A BlockType says what a block holds.
type BlockType string

// The types of blocks.
const (
	TextBlock      BlockType = "text"        // Text
	ReasoningBlock BlockType = "reasoning"   // Text, which may be empty; Signature, Redacted
	ImageBlock     BlockType = "image"       // Attachment
	CallBlock      BlockType = "tool-call"   // ID, Name, Arguments
	ResultBlock    BlockType = "tool-result" // CallID, Content, IsError
)

// A Block is one piece of a message. Which fields are set depends on Type.
type Block struct {
	Type BlockType `json:"type"`
	Text Text      `json:"text,omitempty"`
	// Signature proves to the provider that Text is its own thinking. Redacted
	// is thinking that the provider shows to nobody. Both go back byte for byte
	// to the provider of the message's source and to no other.
	Signature  Text        `json:"signature,omitempty"`
	Redacted   Text        `json:"redacted,omitempty"`
	Attachment *Attachment `json:"attachment,omitempty"`
	ID         string      `json:"id,omitempty"`
	Name       string      `json:"name,omitempty"`
	// Arguments is the raw text that the model wrote, JSON or not; "" means none.
	Arguments Text    `json:"arguments,omitempty"`
	CallID    string  `json:"toolCallId,omitempty"`
	Content   []Block `json:"content,omitempty"` // text and image blocks
	IsError   bool    `json:"isError,omitempty"`
}

// An Attachment names bytes that a store keeps beside the log.
type Attachment struct {
	Hash      string `json:"sha256"` // 64 lower-case hex digits of the content
	MediaType string `json:"mediaType"`
	Size      int64  `json:"size"` // bytes
	Name      string `json:"name,omitempty"`
}

// Plain returns a text block.
func Plain(text string) Block { return Block{Type: TextBlock, Text: Text(text)} }

// Result returns the user message that answers a call.
func Result(id, callID string, isError bool, content ...Block) Message {
	return Message{
		ID: id, Role: User, Source: Source{Kind: SourceTool, CallID: callID},
		Content: []Block{{Type: ResultBlock, CallID: callID, Content: content, IsError: isError}},
	}
}

// FromPlugin returns a user message of the plugin of that name.
func FromPlugin(id, name string, content ...Block) Message {
	return Message{ID: id, Role: User, Source: Source{Kind: SourcePlugin, Name: name}, Content: content}
}

// Calls returns the tool-call blocks of a message in their order.
func (m Message) Calls() []Block {
	var calls []Block
	for _, b := range m.Content {
		if b.Type == CallBlock {
			calls = append(calls, b)
		}
	}
	return calls
}

// Text returns the text blocks of a message joined.
func (m Message) Text() string { return JoinText(m.Content) }

// JoinText returns the text blocks among the blocks joined, nothing between them.
func JoinText(blocks []Block) string {
	var s strings.Builder
	for _, b := range blocks {
		if b.Type == TextBlock {
			s.WriteString(string(b.Text))
		}
	}
	return s.String()
}

// Clone returns a copy that shares nothing that can be changed.
func (m Message) Clone() Message {
	c := cloner{}
	m.Content = c.blocks(m.Content)
	return m
}

// CloneAll makes a copy of each message, in place. Their blocks share one array, with
// no room to grow into each other: a long conversation is copied for every request.
func CloneAll(messages []Message) {
	total := 0
	for _, m := range messages {
		total += count(m.Content)
	}
	c := cloner{make([]Block, 0, total)}
	for i := range messages {
		messages[i].Content = c.blocks(messages[i].Content)
	}
}

// count is how many blocks there are, those within blocks too.
func count(blocks []Block) int {
	n := len(blocks)
	for i := range blocks {
		n += count(blocks[i].Content)
	}
	return n
}

// cloner copies blocks into the room that it has, else into new arrays.
type cloner struct{ room []Block }

func (c *cloner) blocks(blocks []Block) []Block {
	if len(blocks) == 0 {
		return blocks[:0:0] // nil stays nil
	}
	from := len(c.room)
	if cap(c.room)-from < len(blocks) {
		c.room, from = make([]Block, 0, len(blocks)), 0
	}
	c.room = append(c.room, blocks...)
	copied := c.room[from:len(c.room):len(c.room)]
	for i := range copied {
		if a := copied[i].Attachment; a != nil {
			own := *a
			copied[i].Attachment = &own
		}
		copied[i].Content = c.blocks(copied[i].Content)
	}
	return copied
}

var hashRule = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ValidHash reports whether text is a content hash as attachments have it.
func ValidHash(text string) bool { return hashRule.MatchString(text) }

// Attachments returns the attachments of a message's images, those inside of
// tool results too.
func (m Message) Attachments() []Attachment {
	var found []Attachment
	var walk func([]Block)
	walk = func(blocks []Block) { // as deep as Check allows: two levels
		for _, b := range blocks {
			if b.Attachment != nil {
				found = append(found, *b.Attachment)
			}
			walk(b.Content)
		}
	}
	walk(m.Content)
	return found
}

// Check says what of a message no log takes: an unknown role, a block that lacks
// what its type needs, a block that does not belong to the role. Block types
// that this package does not know pass.
func (m Message) Check() error {
	if m.ID == "" {
		return fmt.Errorf("the message has no id")
	}
	if m.Role != User && m.Role != Assistant {
		return fmt.Errorf("message %q: the role is %q; it is user or assistant", plain.Name(m.ID), plain.Name(string(m.Role)))
	}
	if m.Source.Kind == "" {
		return fmt.Errorf("message %q: the source has no kind (user, model, tool, plugin)", plain.Name(m.ID))
	}
	for i, b := range m.Content {
		if err := b.check(m, false); err != nil {
			return fmt.Errorf("message %q: block %d: %w", plain.Name(m.ID), i, err)
		}
	}
	return nil
}

func (b Block) check(m Message, inner bool) error {
	switch b.Type {
	case "":
		return fmt.Errorf("it has no type")
	case ImageBlock:
		if b.Attachment == nil || !hashRule.MatchString(b.Attachment.Hash) || b.Attachment.Size < 0 {
			return fmt.Errorf("an image needs an attachment with the sha256 of its bytes")
		}
	case CallBlock:
		if m.Role != Assistant || inner {
			return fmt.Errorf("a tool-call belongs into a message of the assistant")
		}
		if b.ID == "" || b.Name == "" {
			return fmt.Errorf("a tool-call needs an id and a name")
		}
	case ResultBlock:
		if m.Role != User || inner {
			return fmt.Errorf("a tool-result belongs into a message of the user")
		}
		if len(m.Content) != 1 {
			return fmt.Errorf("a message with a tool-result holds that one block; it has %d", len(m.Content))
		}
		if b.CallID == "" || m.Source.Kind != SourceTool || m.Source.CallID != b.CallID {
			return fmt.Errorf("a tool-result names its call, and so does the message's source {kind: tool, callId}")
		}
		for i, c := range b.Content {
			if err := c.check(m, true); err != nil {
				return fmt.Errorf("content %d: %w", i, err)
			}
		}
		return nil
	}
	if len(b.Content) > 0 {
		return fmt.Errorf("only a tool-result has content")
	}
	return nil
}
