package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

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
func (a *Arguments) UnmarshalYAML(node ast.Node) error {
	var v any
	if err := yaml.NodeToValue(node, &v, yaml.UseOrderedMap()); err != nil {
		return err
	}
	if s, ok := v.(string); ok {
		*a = Arguments(s)
		return nil
	}
	value, err := valueOf(v)
	if err == nil {
		_, err = lossless.Parse(value.Encode()) // a key may be there twice as JSON has it
	}
	if err != nil {
		at := node.GetToken().Position
		return &strictyaml.Fault{Line: at.Line, Column: at.Column, Message: "arguments are no JSON: " + err.Error()}
	}
	*a = Arguments(value.Encode())
	return nil
}

// valueOf is the JSON value of what YAML says.
func valueOf(v any) (lossless.Value, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return lossless.Value{}, errors.New("a string is not UTF-8")
		}
		return lossless.Str(v), nil
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".eIN") { // 1.0 is not 1
			s += ".0"
		}
		return lossless.Parse([]byte(s))
	case yaml.MapSlice:
		members := make([]lossless.Member, len(v))
		for i, item := range v {
			value, err := valueOf(item.Value)
			if err != nil {
				return lossless.Value{}, err
			}
			members[i] = lossless.M(fmt.Sprint(item.Key), value)
		}
		return lossless.Obj(members...), nil
	case []any:
		items := make([]lossless.Value, len(v))
		for i, item := range v {
			value, err := valueOf(item)
			if err != nil {
				return lossless.Value{}, err
			}
			items[i] = value
		}
		return lossless.Arr(items...), nil
	}
	return lossless.From(v)
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
