package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/service"
	"github.com/dsh-go/dsh/session/message"
)

// The codes of errors that plugins see when they ask the model. A failure of the
// provider has its own, such as RATE_LIMIT.
const (
	CodeInvalidAsk   = "LLM_INVALID_REQUEST"
	CodeBusy         = "LLM_BUSY"          // too many at a time
	CodeTooFast      = "LLM_TOO_FAST"      // too many in a minute
	CodeSessionLimit = "LLM_SESSION_LIMIT" // the session has used its tokens
)

// purposePlugin is the purpose of a one-shot request of a plugin.
const purposePlugin = "plugin"

// ModelsForPlugins asks the model of your own agent single questions, outside of
// the conversation: without tools, and without what was said before. Each request
// and its answer are logged in the session, and their tokens count as those of the
// session. Outside of a session ask throws AGENTS_NO_AGENT.
type ModelsForPlugins interface {
	// Ask gives the model's answer to one request. It takes as long as the model
	// does: a tool that awaits it should have a timeoutMs. limits.ModelAsks requests at
	// a time and limits.ModelAskRate a minute are allowed; it ends with the plugin.
	//
	// LLM_INVALID_REQUEST, LLM_BUSY (too many at a time), LLM_TOO_FAST (too many in a
	// minute), LLM_SESSION_LIMIT (the session has used the tokens that it may), or the
	// code of the provider's failure, such as RATE_LIMIT, AUTH, TIMEOUT, SERVER or
	// CONTEXT_WINDOW_EXCEEDED.
	//
	//   - request: the prompt, or the whole request.
	//   - options: a signal that ends it.
	Ask(ctx context.Context, request ModelQuestion, options *AskOptions) (AskAnswer, error)
	// Models gives the models that the session's providers know by name. Ask takes
	// the one that is current.
	Models(ctx context.Context) ([]ModelInfo, error)
}

// AskRequest is a question to the model: prompt or messages.
type AskRequest struct {
	// Prompt is what to answer.
	Prompt string `json:"prompt,omitempty"`
	// Messages is a conversation to answer instead, at most limits.ModelAskTurns, of which
	// the last is of the user.
	Messages []AskMessage `json:"messages,omitempty"`
	// System is the system prompt; there is none by default.
	System string `json:"system,omitempty"`
	// MaxTokens is the most tokens of the answer, thinking included: 1 to
	// limits.ModelAskMax. The default is limits.ModelAskIf.
	MaxTokens int `json:"maxTokens,omitempty"`
}

// AskRole says who speaks.
type AskRole string

// The roles.
const (
	AskUser      AskRole = "user"
	AskAssistant AskRole = "assistant"
)

// AskMessage is one message of a conversation.
type AskMessage struct {
	// Role says who speaks.
	Role AskRole `json:"role"`
	// Text is what is said.
	Text string `json:"text"`
}

// ModelQuestion is a prompt, or a whole request.
//
//dsh:ts string | AskRequest
type ModelQuestion struct{ AskRequest }

// UnmarshalJSON reads a prompt or a request.
func (q *ModelQuestion) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		return json.Unmarshal(text, &q.Prompt)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&q.AskRequest); err != nil {
		return fmt.Errorf("it is a prompt or { prompt or messages, system?, maxTokens? }: %w", err)
	}
	return nil
}

// AskOptions are the parts of a request beside the question.
type AskOptions struct {
	// Signal ends the request.
	Signal service.Signal `json:"signal,omitzero"`
}

// AskAnswer is the model's answer.
type AskAnswer struct {
	// Text is what it says, without its thinking.
	Text string `json:"text"`
	// Truncated tells that the answer was cut at maxTokens.
	Truncated bool `json:"truncated,omitempty"`
	// Usage is what it took.
	Usage TokenUsage `json:"usage"`
}

// TokenUsage counts tokens; each one is in one of the counts. They are 0 where the
// provider does not say.
type TokenUsage struct {
	// InputTokens are those of the input that no cache knew.
	InputTokens int64 `json:"inputTokens"`
	// OutputTokens are those of the answer, without thinking.
	OutputTokens int64 `json:"outputTokens"`
	// CacheReadTokens are those of the input that came from a cache.
	CacheReadTokens int64 `json:"cacheReadTokens"`
	// CacheWriteTokens are those of the input that went into a cache.
	CacheWriteTokens int64 `json:"cacheWriteTokens"`
	// ReasoningTokens are those of the thinking.
	ReasoningTokens int64 `json:"reasoningTokens"`
	// TotalTokens is the sum of the counts.
	TotalTokens int64 `json:"totalTokens"`
}

func tokenUsage(u message.Usage) TokenUsage {
	return TokenUsage{u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning, u.Total()}
}

// ModelInfo is what is known of a model.
type ModelInfo struct {
	// Provider is the provider's name.
	Provider string `json:"provider"`
	// Model is the model's name.
	Model string `json:"model"`
	// Current tells that the agent asks this one.
	Current bool `json:"current,omitempty"`
	// ContextWindow is how many tokens a request may have; absent where not known.
	ContextWindow int `json:"contextWindow,omitempty"`
	// MaxTokens is how many tokens an answer may have by default; absent where the
	// provider decides.
	MaxTokens int `json:"maxTokens,omitempty"`
	// Images tells whether it takes images.
	Images bool `json:"images"`
}

// modelsOf is the interface of one plugin.
type modelsOf struct {
	r *llm.Registry
	c *cordis.Context
}

var _ ModelsForPlugins = (*modelsOf)(nil)

func modelsForPlugins(r *llm.Registry, c *cordis.Context) ModelsForPlugins { return &modelsOf{r, c} }

// Ask implements ModelsForPlugins.
func (p *modelsOf) Ask(ctx context.Context, q ModelQuestion, _ *AskOptions) (AskAnswer, error) {
	if err := ctx.Err(); err != nil {
		return AskAnswer{}, err
	}
	a, err := ownAgent(nil, p.c, "llm")
	if err != nil {
		return AskAnswer{}, err
	}
	who := ownerOf(p.c)
	shot, err := q.oneShot(who)
	if err != nil {
		return AskAnswer{}, err
	}
	done, err := a.asks.model(who, time.Now())
	if err != nil {
		return AskAnswer{}, err
	}
	defer done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.c.Context(), cancel)() // whoever calls: it ends with the plugin
	answer, err := a.Ask(ctx, shot)
	if err != nil {
		return AskAnswer{}, askError(ctx, err)
	}
	out := AskAnswer{Text: llm.JoinText(answer.Content), Truncated: answer.Reason == llm.MaxTokens}
	if answer.Usage != nil {
		out.Usage = tokenUsage(*answer.Usage)
	}
	return out, nil
}

func askError(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if errors.Is(err, ErrLimit) {
		return &service.Error{Code: CodeSessionLimit, Message: "the session has used the tokens that it may (--max-tokens); no more is asked of the model in it", Err: err}
	}
	if errors.Is(err, ErrClosed) {
		return &service.Error{Code: CodeAgentClosed, Message: "the agent has ended; there is nobody to ask", Err: err}
	}
	f := llm.AsFailure(err, llm.CodeInternal)
	return &service.Error{Code: f.Code, Message: plain.Cut("the model did not answer: "+f.Message, limits.ErrorText), Err: err}
}

// oneShot checks a question.
func (q AskRequest) oneShot(who owner) (OneShot, error) {
	invalid := func(format string, args ...any) (OneShot, error) {
		return OneShot{}, &service.Error{Code: CodeInvalidAsk, Message: fmt.Sprintf(format, args...)}
	}
	messages := q.Messages
	if q.Prompt != "" {
		messages = append([]AskMessage{{AskUser, q.Prompt}}, messages...)
	}
	switch {
	case q.Prompt != "" && len(q.Messages) > 0:
		return invalid("a question has a prompt or messages, not both: make the prompt the last message")
	case len(messages) == 0:
		return invalid("a question needs a prompt, or messages: ask({ prompt: '…' })")
	case len(messages) > limits.ModelAskTurns:
		return invalid("a question has at most %d messages, this one has %d", limits.ModelAskTurns, len(messages))
	case messages[len(messages)-1].Role != AskUser:
		return invalid("the last message is of the role user: it is what the model answers")
	case q.MaxTokens < 0 || q.MaxTokens > limits.ModelAskMax:
		return invalid("maxTokens is %d; it is 1 to %d", q.MaxTokens, limits.ModelAskMax)
	}
	shot := OneShot{Purpose: purposePlugin, Owner: who.name, System: q.System, MaxTokens: q.MaxTokens}
	if shot.MaxTokens == 0 {
		shot.MaxTokens = limits.ModelAskIf
	}
	size := len(q.System)
	for i, m := range messages {
		if m.Role != AskUser && m.Role != AskAssistant {
			return invalid("message %d: the role is %q; it is user or assistant", i, plain.Name(string(m.Role)))
		}
		if m.Text == "" {
			return invalid("message %d: its text is empty", i)
		}
		size += len(m.Text)
		source := message.Source{Kind: message.SourcePlugin, Name: who.name}
		shot.Messages = append(shot.Messages, message.Message{
			ID: fmt.Sprintf("ask-%d", i+1), Role: message.Role(m.Role), Content: []message.Block{message.Plain(m.Text)}, Source: source,
		})
	}
	if size > limits.ModelAskText {
		return invalid("the question has %d bytes, and the limit is %d; ask about less at a time", size, limits.ModelAskText)
	}
	return shot, nil
}

// Models implements ModelsForPlugins.
func (p *modelsOf) Models(ctx context.Context) ([]ModelInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var current llm.Config
	if a, err := ownAgent(nil, p.c, "llm"); err == nil {
		current = a.Model()
		if call, err := p.r.Prepare(current); err == nil {
			current = call.Config // with the default model's name
		}
	}
	list, found := []ModelInfo{}, false
	add := func(provider string, m llm.Model) {
		is := provider == current.Provider && m.Name == current.Model
		found = found || is
		list = append(list, ModelInfo{provider, m.Name, is, m.ContextWindow, m.MaxTokens, m.Images})
	}
	for _, provider := range p.r.Providers() {
		for _, m := range p.r.Models(provider) {
			add(provider, m)
		}
	}
	if !found && current.Provider != "" {
		if call, err := p.r.Prepare(current); err == nil {
			add(current.Provider, call.Model)
		}
	}
	return list, nil
}
