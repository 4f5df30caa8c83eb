package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
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

// oneShot is the request of an llm/call, as it is logged.
type oneShot struct {
	Header   session.Header `json:"header"`
	Messages []llm.Message  `json:"messages"`
}

// OneShotOf returns the request that an llm/call says, as RequestOf does for a step.
func OneShotOf(c session.LLMCall, sessionID string) (llm.Request, error) {
	var parts oneShot
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

// A OneShot is a request outside of the conversation.
type OneShot struct {
	Purpose   string // such as compact, session-title; "" is plugin
	Owner     string // the plugin that asks; "" is the program
	System    string
	Messages  []llm.Message // ids and sources that are missing are filled in
	MaxTokens int           // of the answer; 0 is the model's default
}

// Ask makes a request outside of the conversation to the agent's model, without
// tools, with the retries of the agent's policy. Each attempt is logged whole as a
// [session.LLMCall], and its tokens count. The error is the last [llm.Failure];
// ErrLimit when the session has used its tokens; ErrClosed; or that of the log.
//
// It may be called within a turn and beside it.
func (a *Agent) Ask(ctx context.Context, q OneShot) (*llm.Answer, error) {
	ctx, leave, err := a.enter(ctx, "agent.ask")
	if err != nil {
		return nil, fmt.Errorf("ask the model of agent %s: %w", a.id, err)
	}
	defer leave()
	config := a.opts.Model
	if q.MaxTokens > 0 {
		config.MaxTokens = q.MaxTokens
	}
	if q.Purpose == "" {
		q.Purpose = purposePlugin
	}
	if q.Messages, err = complete(q.Messages); err != nil {
		return nil, fmt.Errorf("ask the model of agent %s: %w", a.id, err)
	}
	var answer llm.Answer
	var other error // that is no failure of the model
	f := a.g.cfg.Retry.Run(ctx, 0, func() *llm.Failure {
		var f *llm.Failure // nil with other, which is not tried again
		other = guard(func() (err error) {
			answer, f, err = a.askOnce(ctx, config, q)
			return err
		})
		return f
	}, nil)
	switch {
	case other != nil:
		return nil, fmt.Errorf("ask the model of agent %s: %w", a.id, other)
	case f != nil:
		return nil, f
	}
	return &answer, nil
}

// complete fills in what messages of a one-shot request lack.
func complete(messages []llm.Message) ([]llm.Message, error) {
	out := slices.Clone(messages)
	for i := range out {
		m := &out[i]
		if m.ID == "" {
			m.ID = fmt.Sprintf("message-%d", i+1)
		}
		if m.Source.Kind == "" {
			m.Source.Kind = message.SourcePlugin
			if m.Role == message.Assistant {
				m.Source.Kind = message.SourceModel
			}
		}
		if err := m.Check(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// askOnce makes one attempt of a one-shot request, and logs it.
func (a *Agent) askOnce(ctx context.Context, config llm.Config, q OneShot) (llm.Answer, *llm.Failure, error) {
	if err := a.checkTokens(); err != nil {
		return llm.Answer{}, nil, err
	}
	call, err := a.g.models.Prepare(config)
	if err != nil {
		return llm.Answer{}, llm.AsFailure(err, llm.CodeInvalidRequest), nil
	}
	value, err := configValue(call.Config)
	if err != nil {
		return llm.Answer{}, nil, err
	}
	request, err := lossless.From(oneShot{session.Header{Config: value, System: message.Text(q.System)}, q.Messages})
	if err != nil {
		return llm.Answer{}, nil, err
	}
	record := session.LLMCall{Purpose: q.Purpose, Owner: q.Owner, Request: request}
	r, err := OneShotOf(record, a.id)
	if err != nil {
		return llm.Answer{}, nil, err
	}
	r.Attachment = a.session.Attachment
	assembler := llm.NewAssembler()
	for c := range call.Stream(ctx, &r) {
		assembler.Add(c)
	}
	answer := assembler.Answer()
	record.Usage = answer.Usage
	if record.Failure = failureOf(answer); record.Failure == nil {
		m := answer.Message(newID(), call.Config)
		record.Answer = &m
	}
	if _, err := a.session.Append(record); err != nil {
		return answer, nil, err
	}
	return answer, record.Failure, nil
}
