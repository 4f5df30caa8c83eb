package agent

import (
	"encoding/json"
	"fmt"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
)

// RequestOf returns the request that a log says: the one way from what a session
// holds to what a provider is sent. The loop uses it for every step, so whoever has
// the log can make the bytes of each request again, with [session.Log.RequestAt] and
// [llm.Call.Encode]. Attachment is not set.
func RequestOf(r session.Request, sessionID string) (llm.Request, error) {
	var c llm.Config
	if err := json.Unmarshal(r.Header.Config.Encode(), &c); err != nil {
		return llm.Request{}, fmt.Errorf("read the config of a request: %w", err)
	}
	return llm.Request{Config: c, System: string(r.Header.System), Messages: r.Messages, Tools: r.Header.Tools, Session: sessionID}, nil
}

// OneShotOf returns the request that an llm/call says, as RequestOf does for a step.
func OneShotOf(c session.LLMCall, sessionID string) (llm.Request, error) {
	var parts struct {
		Header   session.Header
		Messages []llm.Message
	}
	if err := json.Unmarshal(c.Request.Encode(), &parts); err != nil {
		return llm.Request{}, fmt.Errorf("read a one-shot request: %w", err)
	}
	r, err := RequestOf(session.Request{Header: parts.Header, Messages: parts.Messages}, sessionID)
	r.Purpose = c.Purpose
	return r, err
}

// configValue returns a config as the log holds it.
func configValue(c llm.Config) (lossless.Value, error) {
	v, err := lossless.From(c)
	if err != nil {
		return v, fmt.Errorf("write the config of a request: %w", err)
	}
	return v, nil
}

// inheritEffort returns the config with the effort of the session's last request,
// where none is asked for and that went to the same model.
func inheritEffort(c llm.Config, s *session.Session) llm.Config {
	h, ok := s.Header()
	if !ok || c.Effort != "" {
		return c
	}
	last, err := RequestOf(session.Request{Header: h}, "")
	if err == nil && last.Provider == c.Provider && last.Model == c.Model {
		c.Effort = last.Effort
	}
	return c
}
