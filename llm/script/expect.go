package script

import (
	"fmt"
	"strings"

	"github.com/dsh-go/dsh/internal/plain"
	"github.com/dsh-go/dsh/llm"
)

// Expect is what the request must be. What is not set is not looked at.
type Expect struct {
	LastUser    string   `yaml:"lastUser,omitempty"`
	System      string   `yaml:"system,omitempty"`
	Tools       []string `yaml:"tools,omitempty"`
	NoTools     []string `yaml:"noTools,omitempty"`
	ToolResults []Result `yaml:"toolResults,omitempty"`
	Messages    int      `yaml:"messages,omitempty"`
}

// Result is what a tool's result must be.
type Result struct {
	Contains string `yaml:"contains,omitempty"`
	IsError  *bool  `yaml:"isError,omitempty"`
}

// unmet says how the request differs from what is expected, "" when it does not.
func (e *Expect) unmet(r *llm.Request) string {
	if e == nil {
		return ""
	}
	offered := map[string]bool{}
	var names []string
	for _, t := range r.Tools {
		offered[t.Name] = true
		names = append(names, plain.Name(t.Name))
	}
	for _, n := range e.Tools {
		if !offered[n] {
			return fmt.Sprintf("tool %q is not offered; offered are: %s", n, strings.Join(names, ", "))
		}
	}
	for _, n := range e.NoTools {
		if offered[n] {
			return fmt.Sprintf("tool %q is offered", n)
		}
	}
	if !strings.Contains(r.System, e.System) {
		return fmt.Sprintf("the system text does not have %q in it", plain.Line(e.System, 200))
	}
	if e.Messages > 0 && len(r.Messages) != e.Messages {
		return fmt.Sprintf("there are %d messages, not %d", len(r.Messages), e.Messages)
	}
	user, results := tail(r.Messages)
	if !strings.Contains(user, e.LastUser) {
		return fmt.Sprintf("the last user message is %q, which does not have %q in it", plain.Line(user, 200), plain.Line(e.LastUser, 200))
	}
	if e.ToolResults != nil && len(e.ToolResults) != len(results) {
		return fmt.Sprintf("there are %d results of tools since the last answer, not %d", len(results), len(e.ToolResults))
	}
	for i, want := range e.ToolResults {
		got := llm.JoinText(results[i].Content)
		if !strings.Contains(got, want.Contains) {
			return fmt.Sprintf("result %d is %q, which does not have %q in it", i+1, plain.Line(got, 300), plain.Line(want.Contains, 200))
		}
		if want.IsError != nil && *want.IsError != results[i].IsError {
			return fmt.Sprintf("result %d has isError %v; it is %q", i+1, results[i].IsError, plain.Line(got, 300))
		}
	}
	return ""
}

// tail returns the text of the last user message that has some, and the results
// of tools since the last answer.
func tail(messages []llm.Message) (user string, results []llm.Block) {
	for _, m := range messages {
		if m.Role == llm.Assistant {
			results = nil
			continue
		}
		for _, b := range m.Content {
			if b.Type == llm.ResultBlock {
				results = append(results, b)
			}
		}
		if t := m.Text(); t != "" {
			user = t
		}
	}
	return user, results
}
