package agent

import (
	"context"

	"github.com/dsh-go/dsh/llm"
)

// A OneShot is a request outside of the conversation.
type OneShot struct {
	Purpose   string // such as compact, session-title, plugin
	Owner     string // the plugin that asks; "" is the program
	System    string
	Messages  []llm.Message
	MaxTokens int // of the answer; 0 is the model's default
}

// Ask makes a request outside of the conversation to the agent's model, without
// tools, with the retries of the agent's policy. Each attempt is logged whole as a
// [session.LLMCall], and its tokens count. The error is the last [llm.Failure];
// ErrLimit when the session has used its tokens; ErrClosed; or that of the log.
//
// It may be called within a turn and beside it.
func (a *Agent) Ask(ctx context.Context, q OneShot) (*llm.Answer, error) {
	return nil, llm.Fail(llm.CodeInternal, "not implemented")
}
