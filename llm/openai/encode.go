package openai

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

// body is the request. What changes least comes first: the bytes of a request
// begin as those of the one before it.
type body struct {
	Model         string    `json:"model"`
	Stream        bool      `json:"stream"`
	StreamOptions any       `json:"stream_options"`
	MaxTokens     int       `json:"max_tokens,omitempty"`
	MaxCompletion int       `json:"max_completion_tokens,omitempty"`
	Temperature   *float64  `json:"temperature,omitempty"`
	Thinking      *thinking `json:"thinking,omitempty"`
	Effort        string    `json:"reasoning_effort,omitempty"`
	Tools         []tool    `json:"tools,omitempty"`
	Messages      []message `json:"messages"`
}

type thinking struct {
	Type string `json:"type"`
}

type tool struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Parameters  lossless.Value `json:"parameters,omitzero"`
}

type message struct {
	Role             string           `json:"role"`
	Content          any              `json:"content"`
	ReasoningContent *string          `json:"reasoning_content,omitempty"`
	Reasoning        *string          `json:"reasoning,omitempty"`
	ReasoningDetails []map[string]any `json:"reasoning_details,omitempty"`
	ToolCalls        []toolCall       `json:"tool_calls,omitempty"`
	ToolCallID       string           `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function calledByName `json:"function"`
}

type calledByName struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type part struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

// Encode returns the body of the request.
func (a *Adapter) Encode(r *llm.Request) ([]byte, error) {
	b := body{Model: r.Model, Stream: true, StreamOptions: map[string]bool{"include_usage": true}, Temperature: r.Temperature}
	if a.dialect == OpenAI {
		b.MaxCompletion = r.MaxTokens
	} else {
		b.MaxTokens = r.MaxTokens
	}
	a.effort(&b, r)
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{Type: "function", Function: function{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	if r.System != "" {
		b.Messages = append(b.Messages, message{Role: "system", Content: r.System})
	}
	for i := range r.Messages {
		var err error
		if b.Messages, err = a.message(b.Messages, r, &r.Messages[i]); err != nil {
			return nil, err
		}
	}
	b.Messages = resultsFirst(b.Messages)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, llm.Fail(llm.CodeInvalidRequest, "the request cannot be written as JSON: %v", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

func (a *Adapter) effort(b *body, r *llm.Request) {
	effort := r.Effort
	if a.dialect != DeepSeek {
		if effort == llm.EffortOff {
			effort = "none"
		}
		b.Effort = effort
		return
	}
	switch {
	case effort == llm.EffortOff || r.Purpose == llm.PurposeTitle:
		b.Thinking = &thinking{"disabled"}
	case effort != "":
		b.Thinking, b.Effort = &thinking{"enabled"}, effort
	}
}

// message appends what a message of ours becomes.
func (a *Adapter) message(to []message, r *llm.Request, m *llm.Message) ([]message, error) {
	if m.Role == llm.Assistant {
		return a.assistant(to, r, m), nil
	}
	var said, shown []part
	for _, b := range m.Content {
		if b.Type != llm.ResultBlock {
			p, err := a.part(r, b)
			if err != nil {
				return nil, err
			}
			said = append(said, p...)
			continue
		}
		text := llm.JoinText(b.Content)
		for _, inner := range b.Content {
			if inner.Type == llm.TextBlock {
				continue
			}
			p, err := a.part(r, inner)
			if err != nil {
				return nil, err
			}
			if len(p) > 0 {
				shown = append(shown, part{Type: "text", Text: "Image in the result of call " + b.CallID + ":"})
			}
			shown = append(shown, p...)
		}
		if text == "" {
			text = "(no output)"
		}
		to = append(to, message{Role: "tool", Content: text, ToolCallID: b.CallID})
	}
	if said = append(shown, said...); len(said) > 0 {
		to = append(to, message{Role: "user", Content: joined(said)})
	}
	return to, nil
}

// joined is a plain string where all parts are text, as every server takes it.
func joined(parts []part) any {
	var s strings.Builder
	for _, p := range parts {
		if p.Type != "text" {
			return parts
		}
		s.WriteString(p.Text)
	}
	return s.String()
}

func (a *Adapter) part(r *llm.Request, b llm.Block) ([]part, error) {
	switch b.Type {
	case llm.TextBlock:
		return []part{{Type: "text", Text: string(b.Text)}}, nil
	case llm.ImageBlock:
		m, err := a.Model(r.Model)
		if err != nil {
			return nil, err
		}
		if !m.Images {
			return nil, llm.Fail(llm.CodeUnsupportedContent, "model %s takes no images", plain.Name(r.Model))
		}
		if b.Attachment == nil || r.Attachment == nil {
			return nil, llm.Fail(llm.CodeUnsupportedContent, "an image of the conversation has no bytes")
		}
		data, err := r.Attachment(b.Attachment.Hash)
		if err != nil {
			return nil, llm.Fail(llm.CodeUnsupportedContent, "an image of the conversation cannot be read: %v", err)
		}
		return []part{{Type: "image_url", ImageURL: &imageURL{"data:" + b.Attachment.MediaType + ";base64," + base64.StdEncoding.EncodeToString(data)}}}, nil
	}
	return nil, nil
}

func (a *Adapter) assistant(to []message, r *llm.Request, m *llm.Message) []message {
	if len(m.Content) == 0 {
		return to
	}
	out := message{Role: "assistant", Content: llm.JoinText(m.Content)}
	var reasoning strings.Builder
	for _, b := range m.Content {
		switch b.Type {
		case llm.ReasoningBlock:
			reasoning.WriteString(string(b.Text))
		case llm.CallBlock:
			arguments := string(b.Arguments)
			if strings.TrimSpace(arguments) == "" {
				arguments = "{}"
			}
			out.ToolCalls = append(out.ToolCalls, toolCall{ID: b.ID, Type: "function", Function: calledByName{b.Name, arguments}})
		}
	}
	if len(out.ToolCalls) > 0 {
		a.think(&out, r, m, reasoning.String())
	}
	return append(to, out)
}

// think puts the reasoning of a message with tool calls back where it came from.
func (a *Adapter) think(out *message, r *llm.Request, m *llm.Message, reasoning string) {
	own := m.Source.Provider == r.Provider
	if a.dialect == DeepSeek || (a.dialect == Compatible && strings.Contains(strings.ToLower(r.Model), "deepseek")) {
		if !own {
			reasoning = ""
		}
		out.ReasoningContent = &reasoning
		return
	}
	var state replay
	if !own || a.dialect == OpenAI || json.Unmarshal(m.Source.ReplayState.Encode(), &state) != nil {
		return
	}
	out.ReasoningDetails = state.Details
	switch {
	case len(state.Details) > 0 || reasoning == "":
	case state.Field == "reasoning_content":
		out.ReasoningContent = &reasoning
	case state.Field == "reasoning":
		out.Reasoning = &reasoning
	}
}

// resultsFirst moves results of tools that others came before up to the calls:
// no server takes a conversation in which something stands between them.
func resultsFirst(in []message) []message {
	out := make([]message, 0, len(in))
	at := 0 // where the next result belongs: behind the last calls and their results
	for _, m := range in {
		if m.Role == "tool" && at < len(out) && at > 0 {
			out = append(out[:at], append([]message{m}, out[at:]...)...)
			at++
			continue
		}
		out = append(out, m)
		if m.Role == "tool" || (m.Role == "assistant" && len(m.ToolCalls) > 0) {
			at = len(out)
		}
	}
	return out
}
