package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
)

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

// Find looks a model up among those that are known. One that is not there is a
// failure that names them where the list is closed, and not ok where it is open.
func Find(known []Model, closed bool, name string) (m Model, ok bool, err error) {
	names := make([]string, len(known))
	for i, m := range known {
		if m.Name == name {
			return m, true, nil
		}
		names[i] = m.Name
	}
	if closed {
		return Model{}, false, Fail(CodeUnknownModel, "there is no model %q; there are: %s", plain.Name(name), strings.Join(names, ", "))
	}
	return Model{}, false, nil
}

// JSON is the request as one JSON text, all of it but session and attachments: what
// adapters encode that have no wire format of their own.
func (r *Request) JSON() ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		Config   Config    `json:"config"`
		Purpose  string    `json:"purpose,omitempty"`
		Tools    []Tool    `json:"tools,omitempty"`
		System   string    `json:"system,omitempty"`
		Messages []Message `json:"messages"`
	}{r.Config, r.Purpose, r.Tools, r.System, r.Messages})
	if err != nil {
		return nil, Fail(CodeInvalidRequest, "the request cannot be written as JSON: %v", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}
