package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
)

type body struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	Stream       bool          `json:"stream"`
	Temperature  *float64      `json:"temperature,omitempty"`
	Thinking     *thinking     `json:"thinking,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	Tools        []tool        `json:"tools,omitempty"`
	System       []part        `json:"system,omitempty"`
	Messages     []message     `json:"messages"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type outputConfig struct {
	Effort string `json:"effort"`
}

type tool struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	InputSchema lossless.Value `json:"input_schema"`
	Cache       *mark          `json:"cache_control,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content []part `json:"content"`
}

type part struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature string          `json:"signature,omitempty"`
	Data      string          `json:"data,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   []part          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Source    *source         `json:"source,omitempty"`
	Cache     *mark           `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type mark struct {
	Type string `json:"type"`
}

var ephemeral = &mark{"ephemeral"}

// budgets are what an effort means to models that take a budget of thinking.
var budgets = map[string]int{"low": 4096, "medium": 12_000, "high": 24_000, "max": 64_000}

// Encode returns the body of the request.
func (a *Adapter) Encode(r *llm.Request) ([]byte, error) {
	m, err := a.Model(r.Model)
	if err != nil {
		return nil, err
	}
	b := body{Model: r.Model, MaxTokens: r.MaxTokens, Stream: true, Temperature: r.Temperature}
	if b.MaxTokens == 0 {
		b.MaxTokens = m.MaxTokens
	}
	if b.MaxTokens == 0 {
		b.MaxTokens = maxTokens
	}
	effort(&b, r)
	for _, t := range r.Tools {
		b.Tools = append(b.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: t.Parameters})
	}
	if n := len(b.Tools); n > 0 {
		b.Tools[n-1].Cache = ephemeral
	}
	if r.System != "" {
		b.System = []part{{Type: "text", Text: r.System, Cache: ephemeral}}
	}
	for i := range r.Messages {
		if b.Messages, err = appendMessage(b.Messages, r, &r.Messages[i], m.Images); err != nil {
			return nil, err
		}
	}
	resultsFirst(b.Messages)
	markLast(b.Messages)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, llm.Fail(llm.CodeInvalidRequest, "the request cannot be written as JSON: %v", err)
	}
	return bytes.TrimRight(out.Bytes(), "\n"), nil
}

// effort asks for thinking: newer models decide how much by themselves, older
// ones are given a budget below the limit of the answer.
func effort(b *body, r *llm.Request) {
	switch {
	case r.Effort == llm.EffortOff || r.Purpose == llm.PurposeTitle:
		b.Thinking = &thinking{Type: "disabled"}
	case r.Effort == "":
	case takesBudget(r.Model):
		budget := budgets[r.Effort]
		if budget == 0 {
			budget = budgets["medium"]
		}
		if budget = min(budget, b.MaxTokens-1024); budget >= 1024 {
			b.Thinking = &thinking{Type: "enabled", Budget: budget}
		}
	default:
		b.Thinking, b.OutputConfig = &thinking{Type: "adaptive"}, &outputConfig{r.Effort}
	}
}

func takesBudget(model string) bool {
	for _, old := range []string{"claude-3", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5", "claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5"} {
		if strings.HasPrefix(model, old) {
			return true
		}
	}
	return false
}

// appendMessage appends what a message of ours becomes; the API wants the roles
// to take turns, so what has the same role as the one before joins it.
func appendMessage(to []message, r *llm.Request, m *llm.Message, images bool) ([]message, error) {
	role := string(m.Role)
	var parts []part
	for i := range m.Content {
		p, err := convert(r, m, &m.Content[i], images)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p...)
	}
	if len(parts) == 0 {
		return to, nil
	}
	if n := len(to); n > 0 && to[n-1].Role == role {
		to[n-1].Content = append(to[n-1].Content, parts...)
		return to, nil
	}
	return append(to, message{Role: role, Content: parts}), nil
}

func convert(r *llm.Request, m *llm.Message, b *llm.Block, images bool) ([]part, error) {
	switch b.Type {
	case llm.TextBlock:
		if strings.TrimSpace(string(b.Text)) == "" {
			return nil, nil // the API refuses text that is only white space
		}
		return []part{{Type: "text", Text: string(b.Text)}}, nil
	case llm.ReasoningBlock:
		switch {
		case m.Source.Provider != r.Provider || m.Role != llm.Assistant:
		case b.Redacted != "":
			return []part{{Type: "redacted_thinking", Data: string(b.Redacted)}}, nil
		case b.Signature != "":
			text := string(b.Text)
			return []part{{Type: "thinking", Thinking: &text, Signature: string(b.Signature)}}, nil
		}
		return nil, nil
	case llm.CallBlock:
		return []part{{Type: "tool_use", ID: b.ID, Name: b.Name, Input: input(string(b.Arguments))}}, nil
	case llm.ResultBlock:
		p := part{Type: "tool_result", ToolUseID: b.CallID, IsError: b.IsError}
		for i := range b.Content {
			inner, err := convert(r, m, &b.Content[i], images)
			if err != nil {
				return nil, err
			}
			p.Content = append(p.Content, inner...)
		}
		if len(p.Content) == 0 {
			p.Content = []part{{Type: "text", Text: "(no output)"}}
		}
		return []part{p}, nil
	case llm.ImageBlock:
		return image(r, b, images)
	}
	return nil, nil
}

func image(r *llm.Request, b *llm.Block, images bool) ([]part, error) {
	if !images {
		return nil, llm.Fail(llm.CodeUnsupportedContent, "model %s takes no images", plain.Name(r.Model))
	}
	if b.Attachment == nil || r.Attachment == nil {
		return nil, llm.Fail(llm.CodeUnsupportedContent, "an image of the conversation has no bytes")
	}
	data, err := r.Attachment(b.Attachment.Hash)
	if err != nil {
		return nil, llm.Fail(llm.CodeUnsupportedContent, "an image of the conversation cannot be read: %v", err)
	}
	return []part{{Type: "image", Source: &source{"base64", b.Attachment.MediaType, base64.StdEncoding.EncodeToString(data)}}}, nil
}

// input is the arguments as the object that the API wants.
func input(arguments string) json.RawMessage {
	if strings.TrimSpace(arguments) == "" {
		return json.RawMessage("{}")
	}
	if v, err := lossless.Parse([]byte(arguments)); err == nil && v.Kind() == lossless.Object {
		return json.RawMessage(arguments)
	}
	return lossless.Obj(lossless.M("invalid_json", lossless.Str(arguments))).Encode()
}

// resultsFirst puts results of tools ahead of everything else in their message,
// where the API wants them.
func resultsFirst(messages []message) {
	for i := range messages {
		var results, others []part
		for _, p := range messages[i].Content {
			if p.Type == "tool_result" {
				results = append(results, p)
			} else {
				others = append(others, p)
			}
		}
		if len(results) > 0 {
			messages[i].Content = append(results, others...)
		}
	}
}

// markLast marks the ends of the last two user messages.
func markLast(messages []message) {
	left := 2
	for i := len(messages) - 1; i >= 0 && left > 0; i-- {
		if m := messages[i]; m.Role == "user" {
			m.Content[len(m.Content)-1].Cache = ephemeral
			left--
		}
	}
}
