package script

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/limits"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/llm/internal/strictyaml"
	"github.com/dsh-go/dsh/lossless"
)

// Script is a scripted conversation.
type Script struct {
	Steps    []Step            `yaml:"steps"`
	Purposes map[string][]Step `yaml:"purposes,omitempty"`
}

// Step is one answer, with what it expects to be asked.
type Step struct {
	Expect    *Expect   `yaml:"expect,omitempty"`
	Reasoning string    `yaml:"reasoning,omitempty"`
	Text      string    `yaml:"text,omitempty"`
	Calls     []Call    `yaml:"calls,omitempty"`
	Usage     *Usage    `yaml:"usage,omitempty"`
	Finish    string    `yaml:"finish,omitempty"`
	Chunk     int       `yaml:"chunk,omitempty"`
	DelayMs   int       `yaml:"delayMs,omitempty"`
	Failures  []Failure `yaml:"failures,omitempty"`
}

// Call is a tool call.
type Call struct {
	Name      string    `yaml:"name"`
	ID        string    `yaml:"id,omitempty"`
	Arguments Arguments `yaml:"arguments,omitempty"`
}

// Arguments is the raw text of a call's arguments.
type Arguments string

// UnmarshalYAML takes a string as it stands, and anything else as JSON with the
// members in their order.
func (a *Arguments) UnmarshalYAML(text []byte) error {
	var s any
	if err := yaml.Unmarshal(text, &s); err != nil {
		return err
	}
	if str, ok := s.(string); ok {
		*a = Arguments(str)
		return nil
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		return err
	}
	v, err := lossless.Parse(bytes.TrimSpace(raw))
	if err != nil {
		return fmt.Errorf("arguments are no JSON: %w", err)
	}
	*a = Arguments(v.Encode())
	return nil
}

// Usage is what a step says it took.
type Usage struct {
	Input      int64 `yaml:"input"`
	Output     int64 `yaml:"output"`
	CacheRead  int64 `yaml:"cacheRead,omitempty"`
	CacheWrite int64 `yaml:"cacheWrite,omitempty"`
	Reasoning  int64 `yaml:"reasoning,omitempty"`
}

// Failure is an attempt that fails.
type Failure struct {
	Code         string `yaml:"code"`
	Message      string `yaml:"message,omitempty"`
	Status       int    `yaml:"status,omitempty"`
	RetryAfterMs *int64 `yaml:"retryAfterMs,omitempty"`
	Text         string `yaml:"text,omitempty"` // what comes before it
}

// Parse reads a script. The error says the line and what is allowed there.
func Parse(text []byte) (*Script, error) {
	if len(text) > limits.LLMScript {
		return nil, fmt.Errorf("read script: it has more than %d bytes", limits.LLMScript)
	}
	var s Script
	if err := strictyaml.Decode(text, &s); err != nil {
		return nil, fmt.Errorf("read script: %w", err)
	}
	total := len(s.Steps)
	for _, steps := range s.Purposes {
		total += len(steps)
	}
	if total == 0 || total > limits.LLMScriptSteps {
		return nil, fmt.Errorf("read script: it has %d steps; it needs 1 to %d", total, limits.LLMScriptSteps)
	}
	if err := check("steps", s.Steps); err != nil {
		return nil, err
	}
	for p, steps := range s.Purposes {
		if err := check("purposes."+plain.Name(p), steps); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func check(where string, steps []Step) error {
	for i, st := range steps {
		switch llm.FinishReason(st.Finish) {
		case "", llm.Stop, llm.ToolCalls, llm.MaxTokens:
		default:
			return fmt.Errorf("read script: %s[%d].finish is %q; it may be stop, tool-calls or max-tokens", where, i, plain.Name(st.Finish))
		}
		if st.Chunk < 0 || st.DelayMs < 0 {
			return fmt.Errorf("read script: %s[%d]: chunk and delayMs may not be negative", where, i)
		}
		for j, c := range st.Calls {
			if c.Name == "" {
				return fmt.Errorf("read script: %s[%d].calls[%d] has no name", where, i, j)
			}
		}
		for j, f := range st.Failures {
			if f.Code == "" {
				return fmt.Errorf("read script: %s[%d].failures[%d] has no code, such as RATE_LIMIT", where, i, j)
			}
		}
	}
	return nil
}
