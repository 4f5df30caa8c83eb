package compact_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/dsh-go/dsh/agent"
	"github.com/dsh-go/dsh/agent/agenttest"
	"github.com/dsh-go/dsh/agent/compact"
	"github.com/dsh-go/dsh/cordis"
	"github.com/dsh-go/dsh/llm"
	"github.com/dsh-go/dsh/lossless"
	"github.com/dsh-go/dsh/schema"
	"github.com/dsh-go/dsh/session"
	"github.com/dsh-go/dsh/session/message"
	"github.com/dsh-go/dsh/tool"
)

// small is a model with a small window. A token is four bytes of the request. It
// refuses what is larger than the window, and what no provider takes.
type small struct {
	window  int
	silent  bool // it does not say how large the window is, and does not count
	answer  func(r *llm.Request) (text string, calls []string)
	summary func(history string) string

	mu       sync.Mutex
	refused  int
	invalid  []error
	requests int
}

var _ llm.Adapter = (*small)(nil)

func (m *small) Models() []llm.Model { return nil }

func (m *small) Model(name string) (llm.Model, error) {
	if m.silent {
		return llm.Model{Name: name}, nil
	}
	return llm.Model{Name: name, ContextWindow: m.window}, nil
}

func (m *small) Encode(r *llm.Request) ([]byte, error) { return r.JSON() }

func (m *small) Stream(ctx context.Context, r *llm.Request) iter.Seq[llm.Chunk] {
	return func(yield func(llm.Chunk) bool) {
		out := llm.NewEmitter(yield)
		body, err := r.JSON()
		tokens := len(body) / 4
		m.mu.Lock()
		defer m.mu.Unlock()
		m.requests++
		if err == nil {
			err = compact.Valid(r.Messages)
		}
		if err != nil {
			m.invalid = append(m.invalid, err)
		}
		if tokens > m.window {
			m.refused++
			out.Fail(llm.Fail(llm.CodeContextWindow, "%d tokens are more than %d", tokens, m.window))
			return
		}
		var text string
		var calls []string
		if r.Purpose == llm.PurposeCompact {
			text = m.summary(r.Messages[0].Text())
		} else {
			text, calls = m.answer(r)
		}
		if err := ctx.Err(); err != nil {
			out.Fail(llm.AsFailure(err, llm.CodeAborted))
			return
		}
		if text != "" {
			out.Append(out.Open(llm.TextBlock), text)
		}
		for i, c := range calls {
			out.Call(out.Open(llm.CallBlock), fmt.Sprintf("call-%d", i), "big", c)
		}
		if !m.silent {
			out.Usage(llm.Usage{Input: int64(tokens), Output: int64(len(text)+20) / 4})
		}
		out.Finish(llm.Stop, lossless.Value{})
	}
}

// keeps is a summary of the marked words of a history.
func keeps(history string) string {
	var words []string
	for _, w := range strings.Fields(history) {
		if strings.HasPrefix(w, "KEEP-") {
			words = append(words, w)
		}
	}
	return "## Task\n" + strings.Join(words, " ")
}

// bigTool is a plugin with a tool whose result is as long as its argument says.
func bigTool(k *agenttest.Kit) *cordis.Plugin {
	return &cordis.Plugin{Name: "big", Apply: func(c *cordis.Context, _ any) error {
		_, err := k.Tools.Register(c, &tool.Definition{
			Name: "big", Description: "Gives much.",
			Parameters: schema.Must(schema.Parameters(schema.Object(schema.Prop("size", schema.Integer("characters"), schema.Required)))),
			Output: tool.Output{Schema: schema.Must(schema.Output(schema.String(""))), Render: func(_ context.Context, _, v lossless.Text) ([]tool.Block, error) {
				text, err := lossless.Parse(v)
				return []tool.Block{{Type: "text", Text: text.Str()}}, err
			}},
			Execute: func(_ context.Context, exec *tool.Exec) (tool.Outcome, error) {
				args, err := lossless.Parse(exec.Arguments)
				size, _ := args.Get("size")
				n, _ := size.Int64()
				return tool.Outcome{Value: lossless.Str(strings.Repeat("x", int(n))).Encode()}, err
			},
		})
		return err
	}}
}

// start starts an agent that compacts.
func start(k *agenttest.Kit, m *small, o agent.Options) *agent.Agent {
	k.T.Helper()
	if len(k.Models.Providers()) == 0 {
		k.Adapter("small", m)
	}
	o.Model = llm.Config{Provider: "small", Model: "m"}
	o.Plugins = append(o.Plugins, bigTool(k), compact.Plugin())
	return k.Start(o)
}

func completed(k *agenttest.Kit, a *agent.Agent, prompt string) {
	k.T.Helper()
	if end := k.Run(a, prompt); end.Kind != session.EndCompleted {
		k.T.Fatalf("%q ended %+v: %+v", prompt, end, end.Error)
	}
}

// works is the answer of a model that calls the tool twice for each prompt.
func works(size int) func(*llm.Request) (string, []string) {
	return func(r *llm.Request) (string, []string) {
		results := 0
		for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Source.Kind != message.SourceUser; i-- {
			if r.Messages[i].Content[0].Type == message.ResultBlock {
				results++
			}
		}
		if results < 2 {
			return "", []string{fmt.Sprintf(`{"size":%d}`, size)}
		}
		return "Done.", nil
	}
}

func outcomes(t testing.TB, s *session.Session) map[string]int {
	count := map[string]int{}
	reasons := map[string]string{}
	for _, p := range agenttest.Payloads[session.CompactStart](t, s.Log) {
		reasons[p.ID] = p.Reason
	}
	for _, p := range agenttest.Payloads[session.CompactEnd](t, s.Log) {
		count[reasons[p.ID]+" "+p.Outcome]++
	}
	return count
}
