package message

import (
	"encoding/json"
	"fmt"

	"github.com/dsh-go/dsh/lossless"
)

var (
	_ json.Unmarshaler = (*Message)(nil)
	_ json.Unmarshaler = (*Block)(nil)
)

// UnmarshalJSON reads a message as Read does.
func (m *Message) UnmarshalJSON(text []byte) error {
	v, err := lossless.Parse(text)
	if err == nil {
		*m, err = Read(v)
	}
	return err
}

// UnmarshalJSON reads a block.
func (b *Block) UnmarshalJSON(text []byte) error {
	v, err := lossless.Parse(text)
	if err == nil {
		*b, err = readBlock(v, 0)
	}
	return err
}

// Read returns the message that a JSON object says. Members that are not known
// are left out; known ones have to be of their kind. Whether it makes sense is
// for Check.
func Read(v lossless.Value) (Message, error) {
	var m Message
	err := members(v, "a message", func(key string, v lossless.Value) (err error) {
		switch key {
		case "id":
			m.ID, err = str(v)
		case "role":
			var role string
			role, err = str(v)
			m.Role = Role(role)
		case "content":
			m.Content, err = readBlocks(v, 0)
		case "source":
			m.Source, err = readSource(v)
		}
		return err
	})
	return m, err
}

// nesting is how deep blocks may lie in blocks: a result's content and no more.
const nesting = 2

func readBlocks(v lossless.Value, depth int) ([]Block, error) {
	if v.IsNull() {
		return nil, nil
	}
	if v.Kind() != lossless.Array {
		return nil, fmt.Errorf("it is a list of blocks, not: %s", v.Kind())
	}
	if depth >= nesting && v.Len() > 0 {
		return nil, fmt.Errorf("blocks are nested deeper than a tool-result's content")
	}
	if v.Len() == 0 {
		return nil, nil
	}
	blocks := make([]Block, v.Len())
	for i, b := range v.Items() {
		var err error
		if blocks[i], err = readBlock(b, depth); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
	}
	return blocks, nil
}

func readBlock(v lossless.Value, depth int) (Block, error) {
	var b Block
	err := members(v, "a block", func(key string, v lossless.Value) (err error) {
		switch key {
		case "type":
			var kind string
			kind, err = str(v)
			b.Type = BlockType(kind)
		case "text":
			b.Text, err = text(v)
		case "signature":
			b.Signature, err = text(v)
		case "redacted":
			b.Redacted, err = text(v)
		case "arguments":
			b.Arguments, err = text(v)
		case "id":
			b.ID, err = str(v)
		case "name":
			b.Name, err = str(v)
		case "toolCallId":
			b.CallID, err = str(v)
		case "content":
			b.Content, err = readBlocks(v, depth+1)
		case "isError":
			if v.Kind() != lossless.Bool {
				return fmt.Errorf("it is true or false")
			}
			b.IsError = v.Bool()
		case "attachment":
			b.Attachment, err = readAttachment(v)
		}
		return err
	})
	return b, err
}

func readAttachment(v lossless.Value) (*Attachment, error) {
	var a Attachment
	err := members(v, "an attachment", func(key string, v lossless.Value) (err error) {
		switch key {
		case "sha256":
			a.Hash, err = str(v)
		case "mediaType":
			a.MediaType, err = str(v)
		case "name":
			a.Name, err = str(v)
		case "size":
			n, ok := v.Int64()
			if !ok {
				return fmt.Errorf("it is an integer")
			}
			a.Size = n
		}
		return err
	})
	return &a, err
}

func readSource(v lossless.Value) (Source, error) {
	var s Source
	err := members(v, "a source", func(key string, v lossless.Value) (err error) {
		switch key {
		case "kind":
			s.Kind, err = str(v)
		case "name":
			s.Name, err = str(v)
		case "callId":
			s.CallID, err = str(v)
		case "provider":
			s.Provider, err = str(v)
		case "model":
			s.Model, err = str(v)
		case "replayState":
			s.ReplayState = v
		}
		return err
	})
	return s, err
}

// members calls read with each member of an object, and names the one that fails.
func members(v lossless.Value, what string, read func(key string, v lossless.Value) error) error {
	if v.Kind() != lossless.Object {
		return fmt.Errorf("%s is an object, not: %s", what, v.Kind())
	}
	for key, m := range v.Members() {
		if err := read(key, m); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func str(v lossless.Value) (string, error) {
	if v.Kind() != lossless.String {
		return "", fmt.Errorf("it is a text, not: %s", v.Kind())
	}
	return v.Str(), nil
}

func text(v lossless.Value) (Text, error) {
	t, ok := ReadText(v)
	if !ok {
		return "", fmt.Errorf(`it is a text, or {"base64": "…"}`)
	}
	return t, nil
}
